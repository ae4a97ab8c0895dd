r"""Instances for the checks: objectives with known Lipschitz constants, matrices M with a chosen spectrum, points.

Everything is deterministic: the k-th instance of a seed is always the same, and the combinations of objective,
size, condition number and penalty parameter are gone through in turn, so that the extremes always occur.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import cycle, islice, product

import numpy as np

from cdfsg.linalg import Array, inv_sqrt, scale_spectrum, sym
from cdfsg.merits import Huber, Identity
from cdfsg.penalty import Penalty
from cdfsg.problems import GCCA, Linear, Problem, Quadratic

COUNT = 1200
"""Instances per statement, at least: every combination of objective, size, spectrum of M and beta occurs."""
SHAPES = ((1, 1), (2, 1), (2, 2), (3, 2), (4, 1), (4, 3), (3, 3), (5, 2))
"""Sizes (n, p), with p = 1 and p = n among them."""
CONDITIONS = (1.0, 10.0, 1e4)
"""Condition numbers of M."""
BETAS = (1.0001, 3.0, 100.0)
"""Penalty parameters in units of the threshold; the first is just above it."""
ANY_BETAS = (1e-3, 1.0, 1e3)
"""Penalty parameters for what holds for all of them."""
REACH = 1 / 6
"""Radius of the neighbourhood Omega_{1/6} of the feasible set (eq:omegar)."""


@dataclass(frozen=True)
class Sines:
    """f(X) = tr(X'AX) / 2 + <B, X> + a sum sin(X_ij), neither convex nor a polynomial.

    Attributes
    ----------
    A : array (n, n)
        Symmetric.
    B : array (n, p)
    a : float
    """

    A: Array
    B: Array
    a: float

    @property
    def lipschitz(self) -> float:
        """``||A||_2 + |a|``, the least constant: it is attained where all sines are 1, or all are -1."""
        return float(np.linalg.norm(self.A, 2)) + abs(self.a)

    def value(self, X: Array) -> float:
        """f(X)."""
        return float(np.vdot(X, self.A @ X) / 2 + np.vdot(self.B, X) + self.a * np.sin(X).sum())

    def gradient(self, X: Array) -> Array:
        """``A X + B + a cos(X)``."""
        gradient: Array = self.A @ X + self.B + self.a * np.cos(X)
        return gradient

    def hessian(self, X: Array, D: Array) -> Array:
        """``A D - a sin(X) * D``."""
        curvature: Array = self.A @ D - self.a * np.sin(X) * D
        return curvature


@dataclass(frozen=True)
class Instance:
    """A penalty function with the number p of its columns.

    Attributes
    ----------
    penalty : Penalty
    p : int
    kind : str
        Key of `KINDS`.
    """

    penalty: Penalty
    p: int
    kind: str

    @property
    def n(self) -> int:
        """Rows of X."""
        return len(self.penalty.M)

    @cached_property
    def threshold(self) -> float:
        """The paper's threshold beta~, with equality."""
        return self.penalty.threshold(self.p)

    @cached_property
    def spectrum(self) -> tuple[float, float]:
        """The smallest and the largest eigenvalue of M."""
        values = np.linalg.eigvalsh(self.penalty.M)
        return float(values[0]), float(values[-1])


# --- matrices and objectives -----------------------------------------------------------------------------


def orthogonal(rng: np.random.Generator, n: int) -> Array:
    """A random orthogonal matrix, shape (n, n)."""
    Q: Array = np.linalg.qr(rng.standard_normal((n, n)))[0]
    return Q


def definite(rng: np.random.Generator, n: int, condition: float) -> Array:
    """A symmetric positive definite matrix of a condition number (1 for n = 1), scaled at random, shape (n, n)."""
    values = condition ** np.concatenate([[0.0], rng.random(max(n - 2, 0)), [1.0]])[:n]
    return sym(scale_spectrum(values * 4 ** rng.uniform(-1, 1), orthogonal(rng, n)))


def singular(rng: np.random.Generator, n: int) -> Array:
    """A symmetric positive semidefinite matrix of rank n - 1, shape (n, n)."""
    return sym(scale_spectrum(np.concatenate([[0.0], rng.uniform(0.5, 2, n - 1)]), orthogonal(rng, n)))


def symmetric(rng: np.random.Generator, n: int) -> Array:
    """A random symmetric matrix, shape (n, n)."""
    return sym(rng.standard_normal((n, n)))


def root(M: Array) -> Array:
    """Square root of a symmetric positive semidefinite matrix, shape (n, n)."""
    values, vectors = np.linalg.eigh(M)
    return scale_spectrum(np.sqrt(np.maximum(values, 0)), vectors)


_Maker = Callable[[np.random.Generator, Array, int], tuple[Problem, Array]]


def _quadratic(rng: np.random.Generator, M: Array, p: int) -> tuple[Problem, Array]:
    return Quadratic(symmetric(rng, len(M))), M


def _linear(rng: np.random.Generator, M: Array, p: int) -> tuple[Problem, Array]:
    return Linear(rng.standard_normal((len(M), p))), M


def _sines(rng: np.random.Generator, M: Array, p: int) -> tuple[Problem, Array]:
    n = len(M)
    return Sines(symmetric(rng, n), rng.standard_normal((n, p)), float(rng.uniform(-2, 2))), M


def _identity(rng: np.random.Generator, M: Array, p: int) -> tuple[Problem, Array]:
    return _two_views(M, Identity())


def _huber(rng: np.random.Generator, M: Array, p: int) -> tuple[Problem, Array]:
    return _two_views(M, Huber(float(rng.uniform(0.02, 0.5))))


def _two_views(M: Array, merit: Identity | Huber) -> tuple[Problem, Array]:
    if len(M) == 1:  # no second view: a view and its copy
        M = M[0, 0] * np.eye(2)
    half = len(M) // 2
    if np.linalg.cond(M) < 1 + 1e-9:  # a multiple of the identity leaves the views uncorrelated, but for rounding
        cross = np.zeros_like(M)
        cross[:half, half:] = 0.9 * M[0, 0] * np.eye(half, len(M) - half)
        M = M + cross + cross.T
    problem = GCCA(M, (half, len(M) - half), merit)
    return problem, problem.M


KINDS: dict[str, _Maker] = {
    "quadratic": _quadratic, "linear": _linear, "sines": _sines, "identity": _identity, "huber": _huber,
}  # fmt: skip
"""The objectives; each maker takes a generator, M and p, and gives the problem and the M that goes with it."""
LIPSCHITZ = ("quadratic", "linear", "sines", "identity")
"""Those within the paper's blanket assumptions."""


# --- streams of instances --------------------------------------------------------------------------------


def instances(count: int, seed: int, kinds: Sequence[str] = LIPSCHITZ, betas: Sequence[float] = BETAS,
              conditions: Sequence[float] = CONDITIONS, shapes: Sequence[tuple[int, int]] = SHAPES,
              ) -> Iterator[tuple[Instance, np.random.Generator]]:  # fmt: skip
    """Instances within the blanket assumptions, each with a generator for its points.

    Parameters
    ----------
    count, seed : int
    kinds : sequence of str
        Keys of `KINDS` with a Lipschitz constant.
    betas : sequence of float
        Penalty parameters in units of the threshold.
    conditions : sequence of float
        Condition numbers of M.
    shapes : sequence of (int, int)
        Sizes (n, p).
    """
    rng = np.random.default_rng(seed)
    for kind, (n, p), condition, beta in islice(cycle(product(kinds, shapes, conditions, betas)), count):
        problem, M = KINDS[kind](rng, definite(rng, n, condition), p)
        threshold = Penalty(problem, M, 1.0).threshold(p)
        yield Instance(Penalty(problem, M, beta * threshold), p, kind), rng


def any_instances(count: int, seed: int, kinds: Sequence[str] = tuple(KINDS)
                  ) -> Iterator[tuple[Instance, np.random.Generator]]:  # fmt: skip
    """Instances for identities that need no assumption: also singular M, the Huber merit, and every beta."""
    rng = np.random.default_rng(seed)
    spectra = (*CONDITIONS, None)
    for kind, (n, p), condition, beta in islice(cycle(product(kinds, SHAPES, spectra, ANY_BETAS)), count):
        matrix = definite(rng, n, condition) if condition else singular(rng, n)
        problem, M = KINDS[kind](rng, matrix, p)
        yield Instance(Penalty(problem, M, beta), p, kind), rng


# --- points ----------------------------------------------------------------------------------------------


def with_spectrum(M: Array, spectrum: Array, rng: np.random.Generator) -> Array:
    """A random X with the given eigenvalues of ``X'MX``, shape (n, p); M must be positive definite."""
    n, p = len(M), len(spectrum)
    left = orthogonal(rng, n)[:, :p] * np.sqrt(spectrum)
    X: Array = inv_sqrt(M) @ left @ orthogonal(rng, p).T
    return X


def feasible(M: Array, p: int, rng: np.random.Generator) -> Array:
    """A random X with ``X'MX = I``, shape (n, p)."""
    return with_spectrum(M, np.ones(p), rng)


def somewhere(M: Array, p: int, rng: np.random.Generator) -> Array:
    """A random X for any M, of moderate ``X'MX``, shape (n, p)."""
    scale = float(np.linalg.norm(M, 2)) or 1.0
    X: Array = rng.standard_normal((len(M), p)) * rng.uniform(0.1, 1.5) / np.sqrt(scale * p)
    return X


def in_omega(M: Array, p: int, rng: np.random.Generator) -> Array:
    """A random X of Omega (eq:omega), often with eigenvalues of ``X'MX`` at its ends 0 and 1, shape (n, p)."""
    return with_spectrum(M, np.clip(rng.uniform(-0.3, 1.3, p), 0, 1), rng)


def near_feasible(M: Array, p: int, rng: np.random.Generator, reach: float = REACH) -> Array:
    """A random X with ``||X'MX - I|| <= reach`` (eq:omegar), on the boundary as often as inside, shape (n, p)."""
    shift = rng.standard_normal(p)
    radius = reach * min(1.0, 2 * rng.random())
    return with_spectrum(M, 1 + radius * shift / np.linalg.norm(shift), rng)


def crosses_kink(problem: Problem, points: Sequence[Array]) -> bool:
    """Whether the Huber merit of a two-view problem has a kink between some of the points."""
    if not (isinstance(problem, GCCA) and isinstance(problem.merit, Huber)):
        return False
    one, two = problem.slices
    cross = problem.covariance[one, two]
    t = np.array([np.sum(X[one] * (cross @ X[two]), axis=0) for X in points])
    signs = np.sign(np.stack([t - problem.merit.mu, t + problem.merit.mu]))
    return bool((signs != signs[:, :1]).any())
