"""Stationary points of h, from closed forms or a search with a certificate, and their classes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import product

import numpy as np
from scipy.linalg import eigh

from cdfsg.linalg import Array, inv_sqrt, sym
from cdfsg.merits import Identity
from cdfsg.penalty import Penalty
from cdfsg.problems import GCCA
from cdfsg.theory.instances import ANY_BETAS, QUADRATICS, Instance, instances, orthogonal, points, root, somewhere
from cdfsg.theory.statement import Searches, norm

FEASIBLE = 1e-6  # an eigenvalue of X'MX counts as 1 within this distance
CERTIFIED = 1e-9  # `certificate` up to which a point counts as stationary
MOST_STEPS = 150
ESCAPED = 1e6  # norm of ``M^(1/2) X`` from which a search is given up


@dataclass(frozen=True)
class Point:
    """A stationary point X of an instance's penalty function."""

    case: Instance
    X: Array

    def __str__(self) -> str:
        return str(self.case)

    @property
    def h(self) -> Penalty:
        return self.case.h

    @cached_property
    def factors(self) -> tuple[Array, Array, Array]:
        """U, sigma, V of ``M^(1/2) X = U diag(sigma)^(1/2) V'`` with ascending sigma; tiny ones are told from zero."""
        U, lengths, Vt = np.linalg.svd(root(self.h.M) @ self.X, full_matrices=False)
        return U[:, ::-1], lengths[::-1] ** 2, Vt[::-1].T

    @property
    def eigenvalues(self) -> Array:
        """Eigenvalues sigma of ``C = X'MX``, ascending."""
        return self.factors[1]

    @property
    def direction(self) -> Array:
        """``D = M^(-1/2) u v'`` of the least sigma, with ``<D, MD> = 1``; ``X v v'`` is ``sigma^(1/2) D``."""
        U, _, V = self.factors
        return inv_sqrt(self.h.M) @ U[:, :1] @ V[:, :1].T

    @property
    def is_feasible(self) -> bool:
        return bool(np.abs(self.eigenvalues - 1).max() <= FEASIBLE)

    @cached_property
    def least_curvature(self) -> float:
        return float(np.linalg.eigvalsh(hessian_matrix(self.h, self.X))[0])

    @property
    def is_strict_saddle(self) -> bool:
        return self.least_curvature < -FEASIBLE * self.h.beta


def certificate(h: Penalty, X: Array) -> float:
    """Norm of the gradient of h relative to the norms of its terms."""
    terms = norm(h.problem.gradient(h.dissolve(X))) * (1 + norm(h.constraint(X))) + h.beta * norm(h.M) ** 0.5
    return norm(h.gradient(X)) / terms


def units(X: Array) -> Array:
    """The unit matrices of the size of X, shape (n p, n, p)."""
    return np.eye(X.size).reshape(-1, *X.shape)


def hessian_matrix(h: Penalty, X: Array) -> Array:
    """The Hessian of h over the entries of X in C order, shape (n p, n p)."""
    return sym(np.array([h.hessian(X, unit).ravel() for unit in units(X)]))


def pencil(case: Instance) -> tuple[Array, Array]:
    """Eigenvalues, ascending, and M-orthonormal eigenvectors of a quadratic f's pencil (A, M)."""
    A = case.h.problem.hessian(np.zeros((case.n, case.n)), np.eye(case.n))
    values, vectors = eigh(sym(A), case.h.M)
    return values, vectors


def quadratic_minimiser(case: Instance) -> Array:
    """Minimiser of a quadratic f: the lowest p eigenvectors of the pencil."""
    return pencil(case)[1][:, : case.p]


def quadratic_lengths(lam: float, beta: float) -> list[float]:
    """Squared lengths of a stationary column along an eigenvector: 0, 1, perhaps a third."""
    slope = beta + 0.75 * lam
    third = (2.25 * lam - beta) / slope if slope else 0.0
    return [0.0, 1.0, third] if third > 0 else [0.0, 1.0]


def quadratic_points(case: Instance, chosen: Sequence[int] | Array) -> Iterator[Point]:
    """Stationary points of a quadratic f along the chosen eigenvectors of the pencil, in every pattern of lengths."""
    values, vectors = pencil(case)
    for lengths in product(*(quadratic_lengths(values[i], case.h.beta) for i in chosen)):
        yield Point(case, vectors[:, list(chosen)] * np.sqrt(lengths))


def linear_root(b: float, beta: float) -> float:
    """The real root t of ``beta t (1 + t^2) = 3 b / 2``, to rounding."""
    t = float(2 / 3**0.5 * np.sinh(np.arcsinh(3**1.5 / 2 * 1.5 * b / beta) / 3))
    return t - (t + t**3 - 1.5 * b / beta) / (1 + 3 * t**2)  # a Newton step for the last digits


def linear_points(case: Instance) -> Iterator[Point]:
    """``M^(-1/2) U diag(t) V'`` for ``f = <M^(1/2) U diag(b) V', X>``, with t = 1, -1 or the root."""
    inverse, beta = inv_sqrt(case.h.M), case.h.beta
    B = case.h.problem.gradient(np.zeros((case.n, case.p)))
    U, b, Vt = np.linalg.svd(inverse @ B, full_matrices=False)
    for t in product(*((1.0, -1.0, linear_root(float(value), beta)) for value in b)):
        yield Point(case, inverse @ (U * np.array(t)) @ Vt)


def huber_points(count: int) -> Iterator[Point]:
    """Eigenvectors of the identity merit's pencil, which are feasible and stationary for the Huber merit, too."""
    for case, rng in instances(count, 104, kinds=("huber",), betas=ANY_BETAS, absolute=True):
        f = case.h.problem
        assert isinstance(f, GCCA)
        plain = replace(case.h, problem=GCCA(f.covariance, f.sizes, Identity()))
        vectors = pencil(replace(case, h=plain))[1]
        yield Point(case, vectors[:, rng.permutation(case.n)[: case.p]])


def search(case: Instance, start: Array) -> Point | None:
    """A stationary point near a start by Newton's method; None if it is not certified.

    Its unknown is ``z = M^(1/2) X``; steps of minimal norm allow for points that are not isolated.
    """
    h, inverse = case.h, inv_sqrt(case.h.M)
    wide = np.kron(inverse, np.eye(case.p))
    z = (root(h.M) @ start).ravel()
    for _ in range(MOST_STEPS):
        X = inverse @ z.reshape(start.shape)
        scaled = wide @ hessian_matrix(h, X) @ wide / h.beta
        step = np.linalg.lstsq(scaled, (inverse @ h.gradient(X)).ravel() / h.beta, rcond=1e-10)[0]
        z = z - step
        if not np.linalg.norm(z) < ESCAPED:
            return None
        if np.linalg.norm(step) <= 1e-14 * (1 + np.linalg.norm(z)):
            break
    X = inverse @ z.reshape(start.shape)
    return Point(case, X) if certificate(h, X) <= CERTIFIED else None


@lru_cache(maxsize=1)
def pool() -> Searches:
    """Some thousands of stationary points within the paper's assumptions, feasible and not, some from searches."""
    starts = points(somewhere, 103, 480)  # one start anywhere per instance
    ends = [search(case, X * 10 ** rng.uniform(-2, 1)) for case, _, X, rng in starts]
    found = [point for point in ends if point]
    for case, rng in instances(432, 101, kinds=QUADRATICS):
        some = quadratic_points(case, rng.permutation(case.n)[: case.p])
        found += (Point(case, point.X @ orthogonal(rng, case.p)) for point in some)
    for case, _ in instances(216, 102, kinds=("linear",)):
        found += linear_points(case)
    return Searches(len(ends), ends.count(None), found)
