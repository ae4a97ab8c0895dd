"""A fifth solver in one file: CDFSG with a penalty of fourth order in X.

(CDFCP) adds ``beta/6 tr(C (C^2 - 3I))`` to f(A(X)), of sixth order, where ``C = X'MX``.  Here it is of fourth order,
``beta/4 ||C - I||^2`` with the gradient ``beta M X (C - I)``.  To have it in every table, copy this file to
``cdfsg/solvers/fourth_order.py``, import it in ``cdfsg/solvers/__init__.py`` and register it there:

    "Fourth-order": FourthOrder,
"""

from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import numpy as np

from cdfsg.linalg import Array, eye_like, lane_gram, lane_product, sym
from cdfsg.penalty import dissolving_factor
from cdfsg.problems import SampledProblem, stack_views
from cdfsg.solvers.cdfsg import CDFSG, TrackingState
from cdfsg.solvers.draws import Draw


@dataclass(frozen=True)
class FourthOrder(CDFSG):
    """Algorithm 1 with ``W(X, Y) = G Q(Y)' + M X (beta (Y - I) - Psi(X'G))``.

    Attributes
    ----------
    grid : tuple of (s1, s2)
        The settings to choose among, those of CDFSG.
    """

    name: ClassVar = "Fourth-order"
    grid: ClassVar = tuple(product((1 / 2, 1 / 4, 1 / 8), (0.1, 0.01, 0.001, 0.5, 0.05, 0.005)))

    def _direct(self, problem: SampledProblem, state: TrackingState, draw: Draw, P: Array) -> None:
        P_theta, P_xi = P[draw.theta], P[draw.xi]
        Q = dissolving_factor(state.Y)
        R = problem.gradient_factor(times(P_xi, Q))  # G = grad f_xi(X Q) = lift(xi, R)
        XtG = lane_gram(stack_views(P_xi), stack_views(R))
        T = self.beta * (sym(state.Y) - eye_like(state.Y)) - sym(XtG)
        of_xi = times(R, np.swapaxes(Q, -1, -2))
        of_theta = times(problem.constraint_factor(P_theta), T)
        factor = of_theta + of_xi if draw.theta == draw.xi else np.concatenate([of_theta, of_xi])
        state.D = problem.lift(draw.rows, factor, out=state.D)


def times(P: Array, small: Array) -> Array:
    """Projections (l, m, lanes, p) times a p-by-p matrix per lane."""
    return lane_product(stack_views(P), small).reshape(P.shape)
