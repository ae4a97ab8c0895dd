r"""Stationary points of h: exact ones from closed forms, others from a search with a certificate, and their classes.

Closed forms (X' M X has the eigenvalue of a column's squared length):

* quadratic f = tr(X'AX) / 2: columns along eigenvectors of the pencil (A, M), of squared length 0, 1 or
  ``(9 lam / 4 - beta) / (beta + 3 lam / 4)``;
* linear f = <B, X> with ``B = M^(1/2) U diag(b) V'``: ``X = M^(-1/2) U diag(t) V'``, each t being 1, -1, or the
  real root of ``beta t (1 + t^2) = 3 b / 2``.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product

import numpy as np
from scipy.linalg import eigh

from cdfsg.linalg import Array, inv_sqrt, sym
from cdfsg.penalty import Penalty
from cdfsg.problems import GCCA, Linear
from cdfsg.theory.instances import Instance, any_instances, instances, orthogonal, root, with_spectrum

FEASIBLE = 1e-6
"""An eigenvalue of X'MX counts as 1 within this distance."""
SINGULAR = 1e-12
"""Relative eigenvalue up to which M counts as singular."""
CERTIFIED = 1e-9
"""Norm of the gradient of h, relative to that of its terms, up to which a point counts as stationary."""
MOST_STEPS = 40
ESCAPED = 1e6
"""Norm of ``M^(1/2) X`` from which a search is given up."""
CLASSES = ("feasible", "strict saddle", "other")


@dataclass(frozen=True)
class Point:
    """A stationary point of an instance's penalty function.

    Attributes
    ----------
    case : Instance
    X : array (n, p)
    """

    case: Instance
    X: Array

    @property
    def eigenvalues(self) -> Array:
        """Eigenvalues of ``C = X'MX``, ascending, shape (p,)."""
        return self.eigenvectors[0]

    @cached_property
    def eigenvectors(self) -> tuple[Array, Array]:
        """Eigenvalues (p,), ascending, and eigenvectors (p, p) of C; tiny ones are told from zero."""
        _, lengths, Vt = np.linalg.svd(root(self.case.penalty.M) @ self.X, full_matrices=False)
        return lengths[::-1] ** 2, Vt[::-1].T

    @property
    def is_feasible(self) -> bool:
        """Whether every eigenvalue of C is 1."""
        return bool(np.abs(self.eigenvalues - 1).max() <= FEASIBLE)

    @cached_property
    def least_curvature(self) -> float:
        """The smallest eigenvalue of the Hessian of h."""
        return float(np.linalg.eigvalsh(hessian_matrix(self.case.penalty, self.X))[0])

    def classify(self) -> str:
        """One of `CLASSES`: a feasible stationary point, an infeasible strict saddle point, or neither."""
        if self.is_feasible:
            return "feasible"
        return "strict saddle" if self.least_curvature < -FEASIBLE * self.case.penalty.beta else "other"


def certificate(h: Penalty, X: Array) -> float:
    """Norm of the gradient of h relative to the norms of its terms."""
    C = h.constraint(X)
    G = h.problem.gradient(h.dissolve(X))
    terms = np.linalg.norm(G) * (1 + np.linalg.norm(C)) + h.beta * np.linalg.norm(h.M) ** 0.5
    return float(np.linalg.norm(h.gradient(X)) / terms)


def hessian_matrix(h: Penalty, X: Array) -> Array:
    """The Hessian of h as a symmetric matrix over the entries of X in C order, shape (n p, n p)."""
    units = np.eye(X.size).reshape(-1, *X.shape)
    return sym(np.array([h.hessian(X, unit).ravel() for unit in units]))


# --- closed forms ----------------------------------------------------------------------------------------


def pencil(case: Instance) -> tuple[Array, Array]:
    """Eigenvalues (n,), ascending, and M-orthonormal eigenvectors (n, n) of a quadratic f's pencil (A, M)."""
    A = case.penalty.problem.hessian(np.zeros((case.n, case.n)), np.eye(case.n))
    values, vectors = eigh(sym(A), case.penalty.M)
    return values, vectors


def quadratic_lengths(lam: float, beta: float) -> list[float]:
    """Squared lengths that a column along an eigenvector of eigenvalue lam can have: 0, 1, and perhaps a third."""
    if beta + 0.75 * lam == 0:
        return [0.0, 1.0]
    third = (2.25 * lam - beta) / (beta + 0.75 * lam)
    return [0.0, 1.0, third] if third > 0 else [0.0, 1.0]


def quadratic_points(case: Instance, rng: np.random.Generator) -> Iterator[Point]:
    """Stationary points of a quadratic f in random directions: every pattern of squared lengths once."""
    values, vectors = pencil(case)
    chosen = rng.permutation(case.n)[: case.p]
    for lengths in product(*(quadratic_lengths(float(values[i]), case.penalty.beta) for i in chosen)):
        X = vectors[:, chosen] * np.sqrt(lengths) @ orthogonal(rng, case.p)
        yield Point(case, X)


def linear_root(b: float, beta: float) -> float:
    """The real root t of ``beta t (1 + t^2) = 3 b / 2``, to rounding."""
    t = float(2 / 3**0.5 * np.sinh(np.arcsinh(3**1.5 / 2 * 1.5 * b / beta) / 3))
    return t - (t + t**3 - 1.5 * b / beta) / (1 + 3 * t**2)  # a Newton step for the last digits


def linear_points(case: Instance, rng: np.random.Generator) -> Iterator[Point]:
    """Stationary points of a linear f: in each singular direction 1, -1 or the inner root."""
    problem, M = case.penalty.problem, case.penalty.M
    assert isinstance(problem, Linear)
    U, b, Vt = np.linalg.svd(inv_sqrt(M) @ problem.B, full_matrices=False)
    for t in product(*((1.0, -1.0, linear_root(float(value), case.penalty.beta)) for value in b)):
        yield Point(case, inv_sqrt(M) @ (U * np.array(t)) @ Vt)


def huber_pairs(count: int) -> Iterator[Point]:
    """Feasible stationary points of two-view GCCA with the Huber merit, for any beta, each with a random p.

    Columns are ``[a_k; +-b_k] / 2^(1/2)`` with canonical directions a_k, b_k.
    """
    for case, rng in any_instances(count, 104, kinds=("huber",)):
        problem, M = case.penalty.problem, case.penalty.M
        assert isinstance(problem, GCCA)
        if np.linalg.eigvalsh(M)[0] <= SINGULAR * np.linalg.eigvalsh(M)[-1]:
            continue
        one, two = problem.slices
        left, right = inv_sqrt(M[one, one]), inv_sqrt(M[two, two])
        U, _, Vt = np.linalg.svd(left @ problem.covariance[one, two] @ right, full_matrices=False)
        signs = rng.choice([-1.0, 1.0], len(Vt))
        pairs = np.vstack([left @ U, right @ Vt.T * signs]) / 2**0.5
        p = int(rng.integers(1, pairs.shape[1] + 1))
        yield Point(Instance(case.penalty, p, case.kind), pairs[:, :p])


# --- search ----------------------------------------------------------------------------------------------


def search(case: Instance, start: Array) -> Point | None:
    """A stationary point near a start by Newton's method on ``grad h = 0``; None if it is not certified.

    Newton's method finds saddle points as well as minimisers.  Its unknown is ``M^(1/2) X``, so that it does not
    suffer from M; steps of minimal norm allow for stationary points that are not isolated.
    """
    h = case.penalty
    inverse = inv_sqrt(h.M)
    z = (root(h.M) @ start).ravel()
    for _ in range(MOST_STEPS):
        step = np.linalg.lstsq(_scaled_hessian(h, inverse, z), _scaled_gradient(h, inverse, z), rcond=1e-10)[0]
        z = z - step
        if not np.linalg.norm(z) < ESCAPED:
            return None
        if np.linalg.norm(step) <= 1e-14 * (1 + np.linalg.norm(z)):
            break
    X: Array = inverse @ z.reshape(start.shape)
    return Point(case, X) if certificate(h, X) <= CERTIFIED else None


def _scaled_gradient(h: Penalty, inverse: Array, z: Array) -> Array:
    X = inverse @ z.reshape(len(h.M), -1)
    gradient: Array = (inverse @ h.gradient(X)).ravel() / h.beta
    return gradient


def _scaled_hessian(h: Penalty, inverse: Array, z: Array) -> Array:
    X = inverse @ z.reshape(len(h.M), -1)
    wide = np.kron(inverse, np.eye(X.shape[1]))
    matrix: Array = wide @ hessian_matrix(h, X) @ wide / h.beta
    return matrix


def searched(case: Instance, rng: np.random.Generator, starts: int) -> Iterator[Point]:
    """Certified stationary points from starts whose ``X'MX`` has eigenvalues near 0 and near 1."""
    for _ in range(starts):
        spectrum = rng.integers(0, 2, case.p) * rng.uniform(0.8, 1.2, case.p)
        point = search(case, with_spectrum(case.penalty.M, spectrum + 1e-3 * rng.random(case.p), rng))
        if point is not None:
            yield point


@lru_cache(maxsize=1)
def pool() -> tuple[Point, ...]:
    """Stationary points within the paper's assumptions, feasible ones and others, some thousands of them."""
    points: list[Point] = []
    for case, rng in instances(432, 101, kinds=("quadratic", "identity")):
        points += quadratic_points(case, rng)
    for case, rng in instances(216, 102, kinds=("linear",)):
        points += linear_points(case, rng)
    shapes = ((1, 1), (2, 1), (2, 2), (3, 2), (4, 1), (4, 3))
    for case, rng in instances(108, 103, kinds=("sines",), conditions=(1.0, 10.0, 100.0), shapes=shapes):
        points += searched(case, rng, 3)
    return tuple(points)
