"""The landing algorithm (Vary, Ablin, Gao, Absil, ICML 2024), with its preconditioned relative gradient."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cdfsg.datasets.views import Views
from cdfsg.linalg import Array, eye_like, lane_gram, lane_product
from cdfsg.problems import SampledProblem, SpannedProblem, stack_views
from cdfsg.solvers.draws import Draw, Draws
from cdfsg.solvers.lanes import State, lane_axis, step_by_step
from cdfsg.solvers.spans import COLUMNS, Span, apply_kernel


@dataclass
class LandingState(State):
    """State of the landing algorithm: nothing but the iterate and its constants."""

    eta: Array = lane_axis(0)
    omega: Array = lane_axis(0)


@dataclass(frozen=True)
class Landing:
    """``X <- X - eta (1/2 [G (U'U) - U (G'U)] + omega U (S - I))`` with ``U = M_theta X``, ``S = X'U``.

    One minibatch serves objective and constraint, as published.  G is the gradient at the published scale,
    half of the paper's f (whose sum over ordered pairs counts each pair twice).  The constraint is the joint
    ``X'MX = I`` of the paper.
    """

    name: ClassVar = "Landing"
    settings: ClassVar[tuple[str, ...]] = ("eta", "omega")
    streams: ClassVar = 1
    passes: ClassVar = 1
    start_from: ClassVar = "normal"
    joint: ClassVar = True

    def check(self, problem: SampledProblem, views: Views, batch_size: int, p: int) -> None:
        """Any sampled problem will do."""

    def start(
        self, problem: SampledProblem, X0: Array, settings: Mapping[str, Array], first: Array
    ) -> LandingState:
        """Start at X0; the extra minibatch only gives a first value of X'MX."""
        C = problem.constraint(problem.project(first, X0))
        return LandingState(X=X0, C=C, eta=settings["eta"], omega=settings["omega"])

    def step(self, problem: SampledProblem, state: LandingState, draw: Draw, number: int) -> None:
        """One step on one minibatch."""
        P = problem.project(draw.rows, state.X)
        state.C = problem.constraint(P)
        U = problem.lift(draw.rows, problem.constraint_factor(P))
        state.X -= problem.lift(draw.rows, self._factor(problem, state, P, problem.project(draw.rows, U)))

    def steps(self, problem: SampledProblem, state: LandingState, draws: Draws) -> Array:
        """Steps on consecutive minibatches at once, see `cdfsg.solvers.spans`.

        Returns
        -------
        array (s, lanes, p, p)
            ``state.C`` after each.
        """
        if not (isinstance(problem, SpannedProblem) and state.X[0].size >= COLUMNS):
            return step_by_step(self, problem, state, draws, 0)
        span = Span(problem, draws.rows, state.X)
        values = []
        for part in draws.parts():
            P = span.values[part]
            state.C = problem.constraint(P)
            ZU = apply_kernel(problem.kernel(draws.rows[part], draws.rows[part]), problem.constraint_factor(P))
            span.move(part, self._factor(problem, state, P, ZU))
            values.append(state.C)
        state.X -= problem.lift(draws.rows, span.moves)
        return np.stack(values)

    def _factor(self, problem: SampledProblem, state: LandingState, P: Array, ZU: Array) -> Array:
        """The factor F with ``X <- X - lift(rows, F)``, from the projections of X and of U.

        U and G are lifts, ``U = Z'u`` and ``G = Z'g``, so the p-by-p products need only the short projections,
        ``U'U = u'(Z U)`` and ``G'U = g'(Z U)``.
        """
        u = problem.constraint_factor(P)
        g = problem.gradient_factor(P) / 2  # the published scale
        UtU, GtU = (lane_gram(stack_views(factor), stack_views(ZU)) for factor in (u, g))
        # G (U'U) / 2 - U (G'U / 2 - omega (S - I))
        omega = state.omega[:, None, None]
        step = lane_product(stack_views(g), UtU / 2)
        step -= lane_product(stack_views(u), GtU / 2 - omega * (state.C - eye_like(state.C)))
        step *= state.eta[:, None]
        return step.reshape(P.shape)
