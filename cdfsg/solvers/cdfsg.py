"""The paper's Algorithm 1 (CDFSG) and Algorithm 2 (CDFSG-Ada) on sampled problems."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cdfsg.checks import require_positive, require_share
from cdfsg.linalg import Array, times
from cdfsg.penalty import dissolving_factor, multiplier
from cdfsg.problems import SampledProblem
from cdfsg.solvers.engine import Settings, Solver, State

_IN_CACHE = 32768  # entries of a tall array whose elementwise passes stay in the cache


@dataclass
class TrackingState(State):
    """State of Algorithm 1: direction D, tracker Y of X'MX, step sizes alpha and b."""

    D: Array
    Y: Array
    alpha: Array
    b: Array


@dataclass
class AdaptiveState(TrackingState):
    """State of Algorithm 2: besides, the moment estimates B and V^ of D."""

    B: Array
    V: Array


@dataclass(frozen=True)
class CDFSG(Solver):
    """Algorithm 1: stochastic gradient method on (CDFCP) with a tracked p-by-p constraint value.

    The step sizes are constant, ``alpha = s2`` and ``b = s2 / s1`` (Section 5.1); `beta` is the penalty parameter.
    """

    beta: float = 0.1
    name: ClassVar = "CDFSG"
    settings: ClassVar = ("s1", "s2")
    samples_per_step: ClassVar = 2

    def __post_init__(self) -> None:
        require_positive(beta=self.beta)

    def start(self, problem: SampledProblem, X0: Array, settings: Settings, first: Array) -> TrackingState:
        """``D_0 = 0`` and ``Y_0 = C_theta0(X_0)`` on a minibatch of its own."""
        C = problem.constraint(problem.scores(first, X0)[0])
        alpha, b = settings["s2"], settings["s2"] / settings["s1"]
        return TrackingState(X=X0, C=C, D=np.zeros_like(X0), Y=C, alpha=alpha, b=b)

    def step(self, problem: SampledProblem, state: TrackingState, samples: Array) -> None:
        """One iteration, from k to k + 1, on theta_{k+1} = samples[0] and xi_{k+1} = samples[-1]."""
        C_old = problem.constraint(problem.scores(samples[:1], state.X)[0])
        self.move(state)  # X_{k+1}                                     (eq:updatexoa), (eq:updatex)
        P = problem.scores(samples, state.X)
        state.C = problem.constraint(P[0])
        track(state, C_old)  # Y_{k+1}                                                 (eq:updatey)
        state.D = self.direction(problem, samples, P, state.Y)  # W(X_{k+1}, Y_{k+1})  (eq:updated)

    def move(self, state: TrackingState) -> None:
        """``X_{k+1} = X_k - alpha_k D_k`` (eq:updatexoa)."""
        for X, D in _in_blocks(state.X, state.D):
            X -= state.alpha * D

    def direction(self, problem: SampledProblem, samples: Array, P: Array, Y: Array) -> Array:
        """``W_{xi,theta}(X, Y) = G_xi Q(Y)' + M_theta X T`` (eq:updated), shape (lanes, n, p).

        `samples` are theta and xi, or one minibatch for both, P the scores of X on them, and Y is (lanes, p, p).
        """
        theta, xi = P[0], P[-1]
        Q = dissolving_factor(Y)
        R = problem.raw_gradient(times(xi, Q))  # G_xi = grad f_xi(X Q) = adjoint(xi, R)
        T = self.multiplier(xi.mT @ R, Y)  # X' G_xi = P_xi' R
        factors = np.zeros_like(P)
        factors[-1] = times(R, Q.mT)
        factors[0] += times(problem.constraint_factor(theta), T)
        return problem.adjoint(samples, factors)

    def multiplier(self, XtG: Array, Y: Array) -> Array:
        """The matrix T, see `cdfsg.penalty.multiplier`."""
        return multiplier(XtG, Y, self.beta)


@dataclass(frozen=True)
class CDFSGAda(CDFSG):
    """Algorithm 2: Algorithm 1 with Adam-type step sizes (AMSGrad's maximum, no bias correction).

    The decays `eta1` and `eta2` of the moment estimates lie in [0, 1); `epsilon`, which is positive, is added to the
    second moment under the root.
    """

    eta1: float = 0.9
    eta2: float = 0.999
    epsilon: float = 1e-8
    name: ClassVar = "CDFSG-Ada"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(epsilon=self.epsilon)
        require_share(eta1=self.eta1, eta2=self.eta2)

    def start(self, problem: SampledProblem, X0: Array, settings: Settings, first: Array) -> AdaptiveState:
        """As Algorithm 1, with ``B_0 = 0`` and ``V^_0 = 0``."""
        base = super().start(problem, X0, settings, first)
        return AdaptiveState(**vars(base), B=np.zeros_like(X0), V=np.zeros_like(X0))

    def step(self, problem: SampledProblem, state: Any, samples: Array) -> None:
        """One iteration of Algorithm 1; its direction then enters the moment estimates."""
        super().step(problem, state, samples)
        for D, B, V in _in_blocks(state.D, state.B, state.V):
            np.maximum(self.eta2 * V + (1 - self.eta2) * D**2, V, out=V)  # (eq:updatev), (eq:updateav)
            B *= self.eta1  # (eq:updateb), with the next line
            B += (1 - self.eta1) * D  # (eq:updateb)

    def move(self, state: Any) -> None:
        """``X_{k+1} = X_k - alpha_k (eps + V^_k)^(-1/2) * B_k`` entrywise (eq:updatex)."""
        for X, B, V in _in_blocks(state.X, state.B, state.V):
            X -= state.alpha * (B / np.sqrt(V + self.epsilon))


def track(state: TrackingState, C_old: Array) -> None:
    """``Y_{k+1} = Y_k - b_k (Y_k - C_theta(X_k)) + C_theta(X_{k+1}) - C_theta(X_k)`` (eq:updatey)."""
    state.Y = state.Y - state.b * (state.Y - C_old) + (state.C - C_old)


def _in_blocks(*tall: Array) -> Iterator[tuple[Array, ...]]:
    """The same few rows of several tall arrays at a time."""
    lanes, n, p = tall[0].shape
    rows = max(1, _IN_CACHE // (lanes * p))
    for begin in range(0, n, rows):
        yield tuple(a[:, begin : begin + rows] for a in tall)
