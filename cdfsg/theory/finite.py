"""A stochastic problem with finitely many outcomes, on which expectations over all paths are sums.

The solvers' own `step` drives it: every lane gets minibatches of its own, so that enumerating the draws of one
iteration means repeating each lane once per outcome.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import eigh

from cdfsg.linalg import Array, sym
from cdfsg.penalty import Penalty
from cdfsg.problems import Quadratic
from cdfsg.solvers.cdfsg import CDFSG, TrackingState


@dataclass(eq=False)
class FinitePencil:
    """``min E tr(X'A_xi X) / 2`` subject to ``X' E[M_theta] X = I`` over equally likely outcomes.

    The arrays U, V (outcomes, r, n) make ``A_xi = sign U_xi'U_xi / r`` and ``M_theta = V_theta'V_theta / r``.  The
    samples have the shape (s, lanes, 2 r, n), for each lane the rows of U, then those of V.
    """

    U: Array
    V: Array
    sign: int = -1

    def __post_init__(self) -> None:
        self.outcomes, _, self.n = self.U.shape
        self.sizes: tuple[int, ...] = (self.n,)

    @cached_property
    def A_xi(self) -> Array:
        return self.sign * self.U.mT @ self.U / self.U.shape[1]

    @cached_property
    def M_theta(self) -> Array:
        return self.V.mT @ self.V / self.V.shape[1]

    @cached_property
    def A(self) -> Array:
        return sym(self.A_xi.mean(axis=0))

    @cached_property
    def M(self) -> Array:
        return sym(self.M_theta.mean(axis=0))

    def penalty(self, beta: float) -> Penalty:
        return Penalty(Quadratic(self.A), self.M, beta)

    def scores(self, Z: Array, X: Array) -> Array:
        """``Z X`` in every lane, shape (s, lanes, 2 r, p): the rows of U X, then those of V X."""
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
        """The minibatches of the outcomes named, one per lane, shape (2, lanes, 2 r, n)."""
        return np.stack([self.rows(theta), self.rows(xi)])

    def every_draw(self, lanes: int) -> Array:
        """All outcomes of (theta, xi) for each of `lanes` states, which must have been repeated by `branched`."""
        theta, xi = np.divmod(np.arange(self.outcomes**2), self.outcomes)
        return self.draw(np.tile(theta, lanes), np.tile(xi, lanes))

    def rows(self, outcome: Array) -> Array:
        return np.concatenate([self.U[outcome], self.V[outcome]], axis=1)

    def gradient_of_h(self, X: Array, beta: float) -> Array:
        """Exact gradient of h in every lane, ``W(X, C(X))`` on a minibatch with A and M for its A_xi and M_theta."""
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
    return type(state)(*(np.repeat(getattr(state, entry.name), count, axis=0) for entry in fields(state) if entry.init))


def started(
    solver: CDFSG, toy: FinitePencil, X0: Array, settings: Mapping[str, float], null_direction: bool = True
) -> Any:
    """The state at k = 0 over all outcomes: ``D_0 = 0`` as in Algorithm 1, or W of theta_0, xi_0 as in eq:updated."""
    theta, xi = np.divmod(np.arange(toy.outcomes**2), toy.outcomes)
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
    """The states at k = 0, ..., steps over all paths; at each k all lanes are equally likely."""
    yield state
    for _ in range(steps):
        samples = toy.every_draw(len(state.X))
        state = branched(state, toy.outcomes**2)
        solver.step(toy, state, samples)
        yield state


def squared_norms(a: Array) -> Array:
    return np.sum(a * a, axis=(-2, -1))


def random_pencil(
    rng: np.random.Generator, n: int, outcomes: int, rows: int | None = None, condition: float = 1.0
) -> FinitePencil:
    """Gaussian outcomes; M has about the square of `condition` as its condition number."""
    rows = rows or -(-n // outcomes)
    scale = np.geomspace(1, 1 / condition, n)
    U, V = rng.standard_normal((2, outcomes, rows, n))
    return FinitePencil(U * scale, V * scale, int(rng.choice([1, -1])))


def least_penalty(toy: FinitePencil, beta: float, p: int) -> float:
    """The global minimum of h, ``h(X_*)``; ValueError where h is unbounded below.

    h is a sum over the eigenvalues c of ``X'MX``, by von Neumann's trace inequality each paired with an eigenvalue lam
    of the pencil: ``phi(c) = lam/8 c (3 - c)^2 + beta/6 (c^3 - 3c)``, which turns at 1 and ``turning``.
    """
    lam = eigh(toy.A, toy.M, eigvals_only=True)
    if beta <= -0.75 * lam.min():
        raise ValueError(f"h is unbounded below: beta = {beta:.4g}, needed is more than {-0.75 * lam.min():.4g}")
    turning = (9 * lam - 4 * beta) / (4 * beta + 3 * lam)
    c = np.stack([np.zeros_like(lam), np.ones_like(lam), np.maximum(turning, 0)])
    phi = lam / 8 * c * (3 - c) ** 2 + beta / 6 * (c**3 - 3 * c)
    return float(np.sort(phi.min(axis=0))[:p].sum())
