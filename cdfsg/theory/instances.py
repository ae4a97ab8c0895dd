"""Instances for the checks: objectives with known Lipschitz constants, matrices M, points."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import cycle, islice, product
from typing import Any

import numpy as np
from numpy.random import Generator, default_rng

from cdfsg.linalg import Array, inv_sqrt, scale_spectrum, sym
from cdfsg.merits import Huber, Identity
from cdfsg.penalty import Penalty
from cdfsg.problems import GCCA, Linear, Problem, Quadratic
from cdfsg.theory.statement import norm

COUNT = 1200  # instances per statement, at least
KINDS = ("quadratic", "degenerate", "linear", "sines", "identity", "huber")
LIPSCHITZ = KINDS[:5]  # within the blanket assumptions
CURVED = ("quadratic", "degenerate", "sines", "identity")  # L_g > 0
QUADRATICS = ("quadratic", "degenerate", "identity")  # the second with repeated eigenvalues of its pencil
SHAPES = ((1, 1), (2, 1), (2, 2), (3, 2), (4, 1), (4, 3), (3, 3), (5, 2))
"""Sizes (n, p), with p = 1 and p = n among them."""
CONDITIONS = (1.0, 10.0, 1e4, 1e8)  # condition numbers of M
BETAS = (1.0, 3.0, 100.0)  # in units of the threshold
DIAGONAL = 1e6  # from this condition number on
ANY_BETAS = (1e-3, 1.0, 1e3)  # for what holds for every beta
ANYWHERE: Any = {"kinds": KINDS, "betas": ANY_BETAS, "conditions": (*CONDITIONS, np.inf), "absolute": True}
"""Options of `instances` without assumptions: also singular M, the Huber merit, and every beta."""
REACH = 1 / 6  # radius of Omega_{1/6} (eq:omegar)


@dataclass(frozen=True)
class Sines:
    """f(X) = tr(X'AX) / 2 + <B, X> + a sum sin(X_ij), neither convex nor a polynomial."""

    A: Array
    B: Array
    a: float

    @property
    def lipschitz(self) -> float:
        """Attained where all sines are 1, or all are -1."""
        return norm(self.A, 2) + abs(self.a)

    def value(self, X: Array) -> float:
        return float(np.vdot(X, self.A @ X) / 2 + np.vdot(self.B, X) + self.a * np.sin(X).sum())

    def gradient(self, X: Array) -> Array:
        return self.A @ X + self.B + self.a * np.cos(X)

    def hessian(self, X: Array, D: Array) -> Array:
        return self.A @ D - self.a * np.sin(X) * D


@dataclass(frozen=True)
class Instance:
    """A penalty function, the number p of its columns and the kind of its objective."""

    h: Penalty
    p: int
    kind: str

    @property
    def n(self) -> int:
        return len(self.h.M)

    @cached_property
    def threshold(self) -> float:
        return self.h.threshold(self.p)

    @cached_property
    def spectrum(self) -> tuple[float, float]:
        """The least and the largest eigenvalue of M."""
        values = np.linalg.eigvalsh(self.h.M)
        return float(values[0]), float(values[-1])

    def __str__(self) -> str:
        low, high = self.spectrum
        known = low > 1e-12 * high and self.kind != "huber"
        beta = f"{self.h.beta / self.threshold:.3g} beta~".removeprefix("1 ") if known else f"{self.h.beta:.3g}"
        condition = f"{high / low:.2g}" if low > 1e-12 * high else "inf"
        return f"{self.kind} f, n = {self.n}, p = {self.p}, cond M = {condition}, beta = {beta}"

    @property
    def L_g(self) -> float:
        return self.h.problem.lipschitz

    @property
    def L_0(self) -> float:
        return norm(self.h.problem.gradient(np.zeros((self.n, self.p))))


def draws(count: int, seed: int) -> Iterator[tuple[int, Generator]]:
    """Each number below count, with one generator for all."""
    rng = default_rng(seed)
    yield from ((number, rng) for number in range(count))


def orthogonal(rng: Generator, n: int) -> Array:
    return np.linalg.qr(rng.standard_normal((n, n)))[0]


def definite(rng: Generator, n: int, condition: float) -> Array:
    """A positive definite matrix of a condition number (1 for n = 1), scaled at random.

    Of large condition it is diagonal, so that its least eigenvalue has no error; a rotation of the coordinates, which
    changes no statement, makes it so.
    """
    values = condition ** np.concatenate([[0.0], rng.random(max(n - 2, 0)), [1.0]])[:n]
    basis = orthogonal(rng, n) if condition < DIAGONAL else np.eye(n)[rng.permutation(n)]
    return sym(scale_spectrum(values * 4 ** rng.uniform(-1, 1), basis))


def root(M: Array) -> Array:
    values, vectors = np.linalg.eigh(M)
    return scale_spectrum(np.sqrt(np.maximum(values, 0)), vectors)


def objective(kind: str, rng: Generator, M: Array, p: int) -> tuple[Problem, Array]:
    """An objective and its constraint matrix, which GCCA makes of the blocks of M."""
    n = len(M)
    if kind == "linear":
        return Linear(rng.standard_normal((n, p))), M
    if kind == "quadratic":
        return Quadratic(sym(rng.standard_normal((n, n)))), M
    if kind == "degenerate":
        wide = root(M) @ orthogonal(rng, n)
        return Quadratic(sym(wide * rng.choice([-1, 1], n) @ wide.T)), M
    if kind == "sines":
        A, B = sym(rng.standard_normal((n, n))), rng.standard_normal((n, p))
        return Sines(A, B, float(rng.uniform(-2, 2))), M
    merit = Identity() if kind == "identity" else Huber(float(rng.uniform(0.02, 0.5)))
    if n == 1:  # no second view: a view and its copy
        M = M[0, 0] * np.eye(2)
    half = len(M) // 2
    if norm(M[:half, half:]) < 1e-9 * norm(M):  # the views are uncorrelated, but for rounding
        spread, cross = np.sqrt(np.diag(M)), np.zeros_like(M)
        cross[:half, half:] = 0.9 * np.outer(spread[:half], spread[half:]) * np.eye(half, len(M) - half)
        M = M + cross + cross.T
    problem = GCCA(M, (half, len(M) - half), merit)
    return problem, problem.M


def instances(
    count: int, seed: int, kinds: Sequence[str] = LIPSCHITZ, betas: Sequence[float] = BETAS,
    conditions: Sequence[float] = CONDITIONS, shapes: Sequence[tuple[int, int]] = SHAPES, absolute: bool = False,
) -> Iterator[tuple[Instance, Generator]]:
    """Instances within the blanket assumptions, with a generator; betas in units of the threshold unless `absolute`."""
    rng = default_rng(seed)
    for kind, (n, p), condition, beta in islice(cycle(product(kinds, shapes, conditions, betas)), count):
        if condition < np.inf:
            M = definite(rng, n, condition)
        else:  # singular, of rank n - 1
            M = sym(scale_spectrum(np.concatenate([[0.0], rng.uniform(0.5, 2, n - 1)]), orthogonal(rng, n)))
        problem, M = objective(kind, rng, M, p)
        unit = 1.0 if absolute else Penalty(problem, M, 1.0).threshold(p)
        yield Instance(Penalty(problem, M, beta * unit), p, kind), rng


def with_spectrum(M: Array, spectrum: Array, rng: Generator) -> Array:
    """A random X with these eigenvalues of ``X'MX``, for definite M."""
    n, p = len(M), len(spectrum)
    left = orthogonal(rng, n)[:, :p] * np.sqrt(spectrum)
    return inv_sqrt(M) @ left @ orthogonal(rng, p).T


def feasible(M: Array, p: int, rng: Generator) -> Array:
    return with_spectrum(M, np.ones(p), rng)


def somewhere(M: Array, p: int, rng: Generator) -> Array:
    """A random X for any M, of moderate ``X'MX``."""
    scale = norm(M, 2) or 1.0
    return rng.standard_normal((len(M), p)) * rng.uniform(0.1, 1.5) / np.sqrt(scale * p)


def in_omega(M: Array, p: int, rng: Generator) -> Array:
    """A random X of Omega (eq:omega), often with eigenvalues 0 and 1 of ``X'MX``."""
    return with_spectrum(M, np.clip(rng.uniform(-0.3, 1.3, p), 0, 1), rng)


def near_feasible(M: Array, p: int, rng: Generator) -> Array:
    """A random X of Omega_{1/6} (eq:omegar), on the boundary as often as inside."""
    shift = rng.standard_normal(p)
    radius = REACH * min(1.0, 2 * rng.random())
    return with_spectrum(M, 1 + radius * shift / np.linalg.norm(shift), rng)


def points(
    place: Callable[..., Array], seed: int, count: int = COUNT, **options: Any
) -> Iterator[tuple[Instance, Penalty, Array, Any]]:
    """Each of some `instances` with its h, a point of the given kind, and the generator."""
    for case, rng in instances(count, seed, **options):
        yield case, case.h, place(case.h.M, case.p, rng), rng


def parts_of(M: Array, X: Array, D: Array) -> tuple[Array, Array]:
    """The tangent part of D at a feasible X, and the S of its normal part XS."""
    S = sym(X.T @ M @ D)
    return D - X @ S, S
