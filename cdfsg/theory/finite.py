"""A stochastic problem with finitely many outcomes: expectations over all paths are sums.

The solvers' own `step` drives it.  To enumerate the draws of an iteration, each lane is repeated once per outcome.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.linalg import eigh

from cdfsg.linalg import Array, sym
from cdfsg.penalty import Penalty
from cdfsg.problems import Quadratic
from cdfsg.solvers.cdfsg import CDFSG, TrackingState


@dataclass(eq=False)
class FinitePencil:
    """``min E tr(X'A_xi X) / 2`` subject to ``X' E[M_theta] X = I`` over equally likely outcomes.

    U and V (outcomes, r, n) make ``A_xi = sign U_xi'U_xi / r`` and ``M_theta = V_theta'V_theta / r``.
    Samples (s, lanes, 2 r, n) have the rows of U, then those of V.
    """

    U: Array
    V: Array
    sign: int = -1

    def __post_init__(self) -> None:
        self.outcomes, self.r, self.n = self.U.shape
        self.sizes: tuple[int, ...] = (self.n,)

    @cached_property
    def A_xi(self) -> Array:
        return self.sign * self.U.mT @ self.U / self.r

    @cached_property
    def M_theta(self) -> Array:
        return self.V.mT @ self.V / self.r

    @cached_property
    def A(self) -> Array:
        return sym(self.A_xi.mean(axis=0))

    @cached_property
    def M(self) -> Array:
        return sym(self.M_theta.mean(axis=0))

    def penalty(self, beta: float) -> Penalty:
        return Penalty(Quadratic(self.A), self.M, beta)

    def scores(self, Z: Array, X: Array) -> Array:
        """``Z X`` in every lane, shape (s, lanes, 2 r, p)."""
        return Z @ X

    def adjoint(self, Z: Array, R: Array) -> Array:
        """``Z' R``, summed over the s minibatches, shape (lanes, n, p)."""
        return (Z.mT @ R).sum(axis=0)

    def constraint(self, P: Array) -> Array:
        """``X' M_theta X``, shape (lanes, p, p)."""
        return P.mT @ self.constraint_factor(P)

    def constraint_factor(self, P: Array) -> Array:
        """``V X / r``, and zero for the rows of U."""
        r = P.shape[1] // 2
        return P * (np.arange(2 * r) >= r)[:, None] / r

    def raw_gradient(self, P: Array) -> Array:
        """``sign U X / r``, and zero for the rows of V."""
        r = P.shape[1] // 2
        return P * (np.arange(2 * r) < r)[:, None] * (self.sign / r)

    def draw(self, theta: Array, xi: Array) -> Array:
        """The minibatches of these outcomes, one per lane, shape (2, lanes, 2 r, n)."""
        return np.stack([self.rows(theta), self.rows(xi)])

    @property
    def pairs(self) -> Array:
        """All outcomes of (theta, xi), shape (2, outcomes^2)."""
        return np.indices((self.outcomes, self.outcomes)).reshape(2, -1)

    def every_draw(self, lanes: int) -> Array:
        """All outcomes for each of `lanes` states; `branched` repeats these."""
        return self.draw(*np.tile(self.pairs, lanes))

    def rows(self, outcome: Array) -> Array:
        return np.concatenate([self.U[outcome], self.V[outcome]], axis=1)

    def gradient_of_h(self, X: Array, beta: float) -> Array:
        """Exact gradient of h in every lane, as W on a minibatch with A and M."""
        P = self.scores(self._mean_rows, X)
        return CDFSG(beta).direction(self, self._mean_rows, P, sym(self.constraint(P[0])))

    @cached_property
    def _mean_rows(self) -> Array:
        """Roots of ``n |A|`` and ``n M``, shape (1, 1, 2 n, n)."""
        roots = []
        for matrix in (self.sign * self.A, self.M):
            values, vectors = np.linalg.eigh(matrix * self.n)
            roots.append(np.sqrt(np.maximum(values, 0))[:, None] * vectors.T)
        return np.concatenate(roots)[None, None]


def branched(state: TrackingState, count: int) -> Any:
    """The state with every lane repeated `count` times, neighbours being copies."""
    values = (getattr(state, entry.name) for entry in fields(state) if entry.init)
    return type(state)(*(np.repeat(value, count, axis=0) for value in values))


def started(
    solver: CDFSG, toy: FinitePencil, X0: Array, settings: Mapping[str, float], null_direction: bool = True
) -> Any:
    """The state at k = 0 over all outcomes: ``D_0 = 0`` as in Algorithm 1, or by eq:updated."""
    theta, xi = toy.pairs
    if null_direction:
        theta = np.arange(toy.outcomes)
    X = np.repeat(X0[None], len(theta), axis=0)
    values = {name: np.full((len(theta), 1, 1), value) for name, value in settings.items()}
    state = solver.start(toy, X, values, toy.rows(theta)[None])
    if not null_direction:
        samples = toy.draw(theta, xi)
        state.D = solver.direction(toy, samples, toy.scores(samples, X), state.Y)
    return state


def every_path(solver: CDFSG, toy: FinitePencil, state: TrackingState, steps: int) -> Iterator[Any]:
    """The states at k = 0, ..., steps over all paths, which are equally likely."""
    yield state
    for _ in range(steps):
        samples = toy.every_draw(len(state.X))
        state = branched(state, toy.outcomes**2)
        solver.step(toy, state, samples)
        yield state


def squared_norms(a: Array) -> Array:
    return np.sum(a * a, axis=(-2, -1))


def random_pencil(
    rng: Generator, n: int, outcomes: int, rows: int | None = None, condition: float = 1.0
) -> FinitePencil:
    """Gaussian outcomes; M has about the square of `condition` as its condition number."""
    rows = rows or -(-n // outcomes)
    scale = np.geomspace(1, 1 / condition, n)
    U, V = rng.standard_normal((2, outcomes, rows, n))
    return FinitePencil(U * scale, V * scale, int(rng.choice([1, -1])))


def least_penalty(toy: FinitePencil, beta: float, p: int) -> float:
    """The global minimum of h, ``h(X_*)``; ValueError where h is unbounded below.

    By von Neumann's trace inequality h is a sum over eigenvalues c of ``X'MX``, each paired with one of
    the pencil, lam: ``phi(c) = lam/8 c (3 - c)^2 + beta/6 (c^3 - 3c)``, which turns at 1 and `turning`.
    """
    lam = eigh(toy.A, toy.M, eigvals_only=True)
    if beta <= -0.75 * lam.min():
        raise ValueError(f"h is unbounded below: beta = {beta:.4g}, needed is more than {-0.75 * lam.min():.4g}")
    turning = (9 * lam - 4 * beta) / (4 * beta + 3 * lam)
    c = np.stack([np.zeros_like(lam), np.ones_like(lam), np.maximum(turning, 0)])
    phi = lam / 8 * c * (3 - c) ** 2 + beta / 6 * (c**3 - 3 * c)
    return float(np.sort(phi.min(axis=0))[:p].sum())
