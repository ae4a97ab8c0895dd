"""The landing algorithm (Vary, Ablin, Gao, Absil, ICML 2024)."""

from dataclasses import dataclass
from typing import ClassVar

from cdfsg.linalg import Array, eye_like
from cdfsg.problems import SampledProblem
from cdfsg.solvers.engine import Settings, Solver, State


@dataclass
class LandingState(State):
    """State of the landing algorithm: the iterate and its constants."""

    eta: Array
    omega: Array


@dataclass(frozen=True)
class Landing(Solver):
    """``X <- X - eta (1/2 [G (U'U) - U (G'U)] + omega U (S - I))`` with ``U = M_theta X``, ``S = X'U``.

    One minibatch serves objective and constraint, as published.  G is half the gradient of the paper's f, whose sum
    over ordered pairs counts each pair twice.
    """

    name: ClassVar = "Landing"
    settings: ClassVar = ("eta", "omega")

    def start(self, problem: SampledProblem, X0: Array, settings: Settings, first: Array) -> LandingState:
        """Start at X0, with X'MX on the extra minibatch."""
        return LandingState(X=X0, C=problem.constraint(problem.scores(first, X0)[0]), **settings)

    def step(self, problem: SampledProblem, state: LandingState, samples: Array) -> None:
        """One step: as ``U = Z'u`` and ``G = Z'g``, only scores enter ``U'U = u'(Z U)`` and ``G'U = g'(Z U)``."""
        [P] = problem.scores(samples, state.X)
        state.C = problem.constraint(P)  # S
        u = problem.constraint_factor(P)
        g = problem.raw_gradient(P) / 2  # the published scale
        [ZU] = problem.scores(samples, problem.adjoint(samples, u[None]))
        landing = g.mT @ ZU / 2 - state.omega * (state.C - eye_like(state.C))
        move = g @ (u.mT @ ZU / 2) - u @ landing
        state.X -= problem.adjoint(samples, state.eta * move[None])
