"""A fifth solver in one file: CDFSG with the penalty ``beta/4 ||X'MX - I||^2``, of fourth order in X.

(CDFCP) adds a penalty of sixth order to f(A(X)); this one has the gradient ``beta M X (X'MX - I)``.  To have it in
every table, copy this file to ``cdfsg/solvers/``, import it in ``cdfsg/solvers/__init__.py`` and register it there:

    "Fourth-order": FourthOrder,
"""

from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import numpy as np

from cdfsg.solvers.cdfsg import CDFSG, TrackingState


@dataclass(frozen=True)
class FourthOrder(CDFSG):
    """Algorithm 1 with ``W(X, Y) = G Q' + M X T``, ``Q = (3I - Y)/2`` and ``T = beta (Y - I) - sym(X'G)``."""

    name: ClassVar = "Fourth-order"
    grid: ClassVar = tuple(product((1 / 2, 1 / 4, 1 / 8), (0.1, 0.01, 0.001, 0.5, 0.05, 0.005)))  # pairs (s1, s2)

    def step(self, problem: Any, state: TrackingState, samples: Any) -> None:
        """One iteration on the minibatches theta = samples[0] and xi = samples[-1]."""
        C_old = problem.constraint(problem.scores(samples[:1], state.X)[0])
        state.X -= state.alpha * state.D
        P = problem.scores(samples, state.X)
        state.C = problem.constraint(P[0])
        state.Y = state.Y - state.b * (state.Y - C_old) + state.C - C_old
        eye = np.eye(state.Y.shape[-1], dtype=state.Y.dtype)
        Q = (3 * eye - state.Y) / 2
        R = problem.raw_gradient(P[-1] @ Q)  # G = grad f_xi(X Q) = adjoint(xi, R)
        XtG = P[-1].mT @ R
        T = self.beta * ((state.Y + state.Y.mT) / 2 - eye) - (XtG + XtG.mT) / 2
        parts = np.stack([problem.constraint_factor(P[0]) @ T, R @ Q.mT])  # those of theta and of xi
        state.D = problem.adjoint(samples, parts if len(samples) == 2 else parts.sum(axis=0, keepdims=True))
