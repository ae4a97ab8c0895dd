"""RSG+ (Meng, Chakraborty, Singh, NeurIPS 2021): Riemannian stochastic gradient for two-view CCA."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cdfsg.checks import require_positive
from cdfsg.datasets.views import Views
from cdfsg.linalg import (
    Array,
    eye_like,
    inverse,
    normalise_columns,
    normalise_tall_columns,
    pseudo_inverse,
    qf,
    small_qf,
)
from cdfsg.problems import SampledGCCA, SampledProblem
from cdfsg.solvers.engine import Settings, Solver, State, Unsupported


@dataclass
class FactoredState(State):
    """State of RSG+: ``X_i = Q_i T_i`` with orthonormal Q_i, stacked, and T of shape (lanes, 2, p, p)."""

    Q: Array
    T: Array
    eta_q: Array
    eta_t: Array


@dataclass(frozen=True)
class RSGPlus(Solver):
    """Riemannian stochastic gradient on ``X_i = Q_i T_i``; the published constants are the defaults.

    The first pass turns Q towards the principal components of each view (a stochastic power iteration), the second is
    the method; the published code times it alone.  The settings are the steps ``eta_q`` of Q and ``eta_t`` of T, 0.1
    and 0.01 as published.

    Attributes
    ----------
    gamma : float
        Step of the first pass.
    weight : float
        Weight w of the whitening term, which inverts a matrix for every p rows.
    singular : {"pseudo-inverse", "stop"}
        Treatment of a singular block, as rows with equal labels make it, see `INVERSES`.
    """

    gamma: float = 0.01
    weight: float = 0.1
    singular: str = "pseudo-inverse"
    name: ClassVar = "RSG+"
    settings: ClassVar = ("eta_q", "eta_t")
    epochs: ClassVar = ("power_step", "step")
    initial: ClassVar = "uniform"
    joint_constraint: ClassVar = False

    def __post_init__(self) -> None:
        require_positive(gamma=self.gamma, weight=self.weight)
        if self.singular not in INVERSES:
            raise ValueError(f"singular={self.singular!r}: expected one of {', '.join(map(repr, INVERSES))}")

    def check(self, problem: SampledProblem, views: Views, batch_size: int, p: int) -> None:
        """Raise `Unsupported` unless there are two centred views, the identity merit and p that divides l."""
        most, rest = min(problem.sizes), batch_size % p
        if len(problem.sizes) != 2:
            raise Unsupported(f"RSG+ is a method for two views, this problem has {len(problem.sizes)}")
        if not (isinstance(problem, SampledGCCA) and problem.merit.name == "identity"):
            raise Unsupported("RSG+ is a method for the identity merit (classical CCA) alone")
        if p > most:
            raise Unsupported(f"RSG+ needs p orthonormal columns in each view, so p <= {most}, got p = {p}")
        if rest:
            raise Unsupported(f"for RSG+ p must divide the batch size; {batch_size} % {p} = {rest}")
        if not views.centred:
            raise Unsupported(f"RSG+ needs centred views; use {views.name} with centring")

    def start(self, problem: Any, X0: Array, settings: Settings, first: Array) -> FactoredState:
        """``Q_i = qf(X0_i)``, ``T_i = I``."""
        lanes, _, p = X0.shape
        for view in problem.slices:
            X0[:, view] = qf(X0[:, view])
        T = np.broadcast_to(eye_like(X0), (lanes, 2, p, p)).copy()
        return FactoredState(X=np.copy(X0), C=T[:, 0], Q=X0, T=T, **settings)

    def power_step(self, problem: Any, state: FactoredState, samples: Array) -> None:
        """``Q_i <- qf(Q_i + gamma A_i' A_i Q_i)``, the first pass."""
        state.Q += self.gamma * problem.adjoint(samples, problem.scores(samples, state.Q))
        for view in problem.slices:
            state.Q[:, view] = qf(state.Q[:, view])

    def step(self, problem: Any, state: FactoredState, samples: Array) -> None:
        """``Q_i <- qf(Q_i - eta_q nc(V_i - Q_i V_i'Q_i))``, ``T_i <- T_i qf(I - eta_t R_i)``, both from the old Q, T.

        Here ``V_i = G_i T_i' + w H_i`` with ``G_i = -A_i' A_j Q_j T_j`` for the other view j, ``H_i = -(1/J) sum_b
        [E_b (Q_i' E_b)^(-1) - Q_i]`` over the J blocks of p rows, ``R_i = nc(Q_i'G_i - G_i'Q_i) / 2``, and nc
        normalises columns.
        """
        _, l, _ = samples.shape  # noqa: E741
        T, (lanes, _, p) = state.T, state.Q.shape
        [P] = problem.scores(samples, state.Q)
        AQ = P.reshape(lanes, l, 2, p).swapaxes(1, 2)  # A_i Q_i, shape (lanes, 2, l, p)
        other = (AQ @ T)[:, ::-1]  # A_j Q_j T_j
        # V_i = A_i' factor_i + w Q_i, whose last term drops out of V_i - Q_i V_i'Q_i
        # The sum in H_i is A_i' N, where N stacks the transposed inverses of the blocks E_b' Q_i of A_i Q_i.
        inverses = INVERSES[self.singular](AQ.reshape(-1, p, p))
        factor = -(other @ T.mT) - self.weight / (l // p) * inverses.mT.reshape(AQ.shape)
        V = problem.adjoint(samples, factor.swapaxes(1, 2).reshape(1, lanes, 2 * l, p))
        R = -(AQ.mT @ other)  # Q_i' G_i
        R = normalise_columns(R - R.mT) / 2
        state.T = T @ small_qf(eye_like(R) - state.eta_t[:, None] * R)
        for i, view in enumerate(problem.slices):
            Q, V_i = state.Q[:, view], V[:, view]
            V_i -= Q @ (V_i.mT @ Q)
            Q[...] = qf(Q - state.eta_q * normalise_tall_columns(V_i))
            state.X[:, view] = Q @ state.T[:, i]
        top = state.X[:, :p]
        state.C = top.mT @ top  # bounded; a lane that failed is NaN in every row


INVERSES: dict[str, Callable[[Array], Array]] = {
    "stop": inverse,
    "pseudo-inverse": pseudo_inverse,
}
"""Inverses of a block: NaN where it is singular, so that its lane stops, as published; or the pseudo-inverse where it
is singular to working precision."""
