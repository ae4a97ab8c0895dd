"""A stochastic problem with finitely many outcomes: expectations over all paths are sums.

The solvers' own `step` drives it.  To enumerate the draws of an iteration, each lane is repeated once per outcome.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.linalg import eigh

from cdfsg.linalg import Array, sym
from cdfsg.penalty import Penalty
from cdfsg.problems import Quadratic
from cdfsg.solvers.cdfsg import CDFSG, TrackingState
from cdfsg.theory.stationary import quadratic_lengths


@dataclass(eq=False)
class FinitePencil:
    """``min E tr(X'A_xi X) / 2 + <B, X>`` subject to ``X' E[M_theta] X = I`` over equally likely outcomes.

    A_xi and M_theta (outcomes, n, n) are symmetric, and may be indefinite.
    Samples (s, lanes, 2 n, n) have the rows of I, and of M_theta or A_xi.
    """

    A_xi: Array
    M_theta: Array
    B: float = 0.0

    def __post_init__(self) -> None:
        self.outcomes, self.n, _ = self.M_theta.shape
        self.sizes: tuple[int, ...] = (self.n,)
        self.A, self.M = sym(self.A_xi.mean(axis=0)), sym(self.M_theta.mean(axis=0))
        S = np.stack([self.M_theta, self.A_xi])
        self.rows = np.concatenate([np.broadcast_to(np.eye(self.n), S.shape), S], axis=-2)

    def __str__(self) -> str:
        return f"n = {self.n}, outcomes: {self.outcomes}"

    def penalty(self, beta: float) -> Penalty:
        return Penalty(Quadratic(self.A), self.M, beta)

    def scores(self, Z: Array, X: Array) -> Array:
        return Z @ X

    def adjoint(self, Z: Array, R: Array) -> Array:
        return (Z.mT @ R).sum(axis=0)

    def constraint(self, P: Array) -> Array:
        return P.mT @ self.constraint_factor(P)

    def constraint_factor(self, P: Array, added: float = 0.0) -> Array:
        """``M_theta X`` in the rows of I, and zeros."""
        image = P[:, self.n :] + added
        return np.concatenate([image, np.zeros_like(image)], axis=1)

    def raw_gradient(self, P: Array) -> Array:
        """``A_xi X + B`` in the rows of I, and zeros."""
        return self.constraint_factor(P, self.B)

    def draw(self, theta: Array, xi: Array) -> Array:
        """The minibatches of outcomes theta and xi, one per lane."""
        return np.stack([self.rows[0, theta], self.rows[1, xi]])

    @property
    def pairs(self) -> Array:
        """All outcomes of (theta, xi), shape (2, outcomes^2)."""
        return np.indices((self.outcomes, self.outcomes)).reshape(2, -1)

    def gradient_of_h(self, X: Array, beta: float) -> Array:
        """Exact gradient of h in every lane, as W on samples with M and A."""
        Z = self.rows.mean(axis=1, keepdims=True)
        P = self.scores(Z, X)
        return CDFSG(beta).direction(self, Z, P, sym(self.constraint(P[0])))


@dataclass(frozen=True)
class Run:
    """A solver on a problem with the theorems' step sizes ``alpha = s1 b = s2 / sqrt(K)``."""

    solver: CDFSG
    toy: FinitePencil
    K: int
    s1: float
    s2: float

    @property
    def alpha(self) -> float:
        return float(self.s2 / self.K**0.5)

    def start(self, X: Array, samples: Array, null_direction: bool = True) -> Any:
        """The state at k = 0 in lanes on minibatches: ``D_0 = 0`` as in Algorithm 1, or by eq:updated."""
        one = np.ones((len(X), 1, 1))
        state = self.solver.start(self.toy, X, {"s1": self.s1 * one, "s2": self.alpha * one}, samples)
        if not null_direction:
            state.D = self.solver.direction(self.toy, samples, self.toy.scores(samples, X), state.Y)
        return state

    def start_everywhere(self, X: Array, null_direction: bool = True) -> Any:
        """The state at k = 0 over all outcomes."""
        samples = self.toy.draw(*self.toy.pairs)
        return self.start(np.repeat(X[None], samples.shape[1], axis=0), samples, null_direction)

    def every_path(self, state: TrackingState) -> Iterator[Any]:
        """The states at k = 0, ..., K over all paths, which are equally likely; copies of a lane are neighbours."""
        yield state
        for _ in range(self.K):
            samples = self.toy.draw(*np.tile(self.toy.pairs, len(state.X)))
            copies = {name: np.repeat(value, self.toy.outcomes**2, axis=0) for name, value in vars(state).items()}
            state = type(state)(**copies)
            self.solver.step(self.toy, state, samples)
            yield state

    def random_path(self, X: Array, rng: Generator) -> Iterator[Any]:
        """The state at k = 0, ..., K in lanes with draws of their own, always in the same arrays."""
        theta = rng.integers(self.toy.outcomes, size=len(X))
        state = self.start(X.copy(), self.toy.draw(theta, theta))
        yield state
        for _ in range(self.K):
            self.solver.step(self.toy, state, self.toy.draw(*rng.integers(self.toy.outcomes, size=(2, len(X)))))
            yield state


def random_pencil(rng: Generator, n: int, outcomes: int, rows: int = 0, condition: float = 1.0) -> FinitePencil:
    """Gaussian outcomes; M has about the square of `condition` as its condition number."""
    rows = rows or -(-n // outcomes)
    scale = np.geomspace(1, 1 / condition, n)
    U, V = rng.standard_normal((2, outcomes, rows, n)) * scale / rows**0.5
    return FinitePencil(rng.choice([1, -1]) * U.mT @ U, V.mT @ V)


def least_penalty(toy: FinitePencil, beta: float, p: int) -> float:
    """The global minimum of h, ``h(X_*)``, for ``beta > -3/4 lam``; below, h is unbounded.

    By von Neumann's trace inequality h is a sum over eigenvalues c of ``X'MX``, each paired with one of
    the pencil, lam: ``phi(c) = lam/8 c (3 - c)^2 + beta/6 (c^3 - 3c)``, least at a `quadratic_lengths`.
    """
    pencil = eigh(toy.A, toy.M, eigvals_only=True)
    phi = [
        min(lam / 8 * c * (3 - c) ** 2 + beta / 6 * (c**3 - 3 * c) for c in quadratic_lengths(lam, beta))
        for lam in pencil
    ]
    return float(sum(sorted(phi)[:p]))
