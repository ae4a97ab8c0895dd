"""The landing algorithm (Vary, Ablin, Gao, Absil, ICML 2024), with its preconditioned relative gradient."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from cdfsg.datasets.views import Views
from cdfsg.linalg import Array, eye_like, lane_gram, lane_product
from cdfsg.problems import SampledProblem
from cdfsg.solvers.lanes import Draw, State, lane_axis


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
        state.C = S = problem.constraint(P)
        U = problem.lift(draw.rows, problem.constraint_factor(P))
        G = problem.lift(draw.rows, problem.gradient_factor(P))
        G /= 2  # the published scale
        # G (U'U) / 2 - U (G'U / 2 - omega (S - I)), all times eta
        eta, omega = state.eta[:, None, None], state.omega[:, None, None]
        toward = eta / 2 * lane_gram(U, U)
        back = eta * (lane_gram(G, U) / 2 - omega * (S - eye_like(S)))
        state.X -= lane_product(G, toward)
        state.X += lane_product(U, back)


