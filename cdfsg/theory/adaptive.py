"""Section 4.2, the moment estimates of Algorithm 2, driven by prescribed directions."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cdfsg.linalg import Array
from cdfsg.solvers.cdfsg import AdaptiveState, CDFSGAda
from cdfsg.solvers.draws import Draw
from cdfsg.theory import algorithm_counterexamples as counterexamples
from cdfsg.theory.check import Check, Statement, Tally, at_most, concluded

DECAYS = ((0.9, 0.999), (0.9, 0.82), (0.0, 0.0), (0.0, 0.999), (0.5, 0.3), (0.99, 0.999), (0.9, 0.5), (0.99, 0.0))
"""(eta1, eta2); the last two violate ``eta1 < sqrt(eta2)``."""


class PrescribedDirections:
    """A sampled problem that answers every question about the gradient with the direction in its minibatch.

    A minibatch is ``D[None]`` with D of shape (n, lanes, p); the solver's own step then makes the moments of it.
    """

    def __init__(self, n: int) -> None:
        self.sizes: tuple[int, ...] = (n,)
        self.n = n

    def project(self, Z: Array, X: Array) -> Array:
        """Zero, shape (1, 1, lanes, p)."""
        return np.zeros((len(Z), 1, *X.shape[1:]))

    def lift(self, Z: Array, R: Array, out: Array | None = None) -> Array:
        """The direction."""
        return np.array(Z[0])

    def constraint(self, P: Array) -> Array:
        """Zero, shape (lanes, p, p)."""
        return np.zeros((*P.shape[2:], P.shape[3]))

    def constraint_factor(self, P: Array) -> Array:
        """Zero."""
        return np.zeros_like(P)

    def gradient_factor(self, P: Array) -> Array:
        """Zero."""
        return np.zeros_like(P)


@dataclass(frozen=True)
class Course:
    """A course of Algorithm 2 under prescribed directions, all arrays (steps, n, lanes, p) or one longer.

    Attributes
    ----------
    D : array
        ``D_1, D_2, ...``.
    B, V : array
        ``B_0, B_1, ...`` and ``V^_0, V^_1, ...``.
    moves : array
        ``X_{k+1} - X_k``.
    """

    D: Array
    B: Array
    V: Array
    moves: Array


def steps_are_bounded() -> Check:
    """pr:xkdist: ``||X_{k+1} - X_k||^2 <= alpha^2 n p / (1 - eta2)`` if ``V_0 >= (1 - eta2) B_0^2``.

    The printed factor ``1 / (1 - gamma)`` and its condition ``eta1 < sqrt(eta2)`` are not needed: B_k is an average of
    B_0 and the directions so far, and the maximum in eq:updateav keeps ``V_k >= (1 - eta2) D_l^2`` for each of them.
    """
    tally, alpha = Tally(), 0.3
    for solver, course in _courses(alpha, covered=True):
        n, _, p = course.moves.shape[1:]
        bound = alpha**2 * n * p / (1 - solver.eta2)
        for step in (course.moves**2).sum(axis=(1, 3)).max(axis=0):
            tally.add(at_most(float(step), bound))
    tested = "|X_{k+1} - X_k|^2 <= alpha^2 n p / (1 - eta2), without gamma, if V_0 >= (1 - eta2) B_0^2 (so for B_0 = 0)"
    return concluded("pr:xkdist", tested, tally, counterexamples.step_with_momentum())


def second_moment_dominates_the_printed_sum() -> Check:
    """The proof of pr:xkdist with eta2 for gamma in its sums: ``V_k >= (1 - eta2) sum eta2^(k-l) D_l^2``."""
    tally = Tally()
    for solver, course in _courses(alpha=0.3, covered=True):
        total = np.zeros_like(course.D[0])
        worst = np.full(total.shape[1], np.inf)
        for D, V in zip(course.D, course.V[1:], strict=True):
            total = solver.eta2 * total + (1 - solver.eta2) * D**2
            worst = np.minimum(worst, ((V - total) / np.maximum(V, 1e-300)).min(axis=(0, 2)))
        for margin in worst:
            tally.add(float(margin))
    tested = "V_k >= (1 - eta2) sum eta2^(k-l) D_l^2, where gamma is printed for eta2"
    return concluded("pr:xkdist, proof", tested, tally, counterexamples.second_moment_recursion())


def moments_are_bounded() -> Check:
    """pro:bvbound: ``||B_k|| <= tau_d`` and ``V_k <= tau_d^2`` entrywise, if B_0 and V_0 satisfy it."""
    tally = Tally()
    for _, course in _courses(alpha=0.3, covered=False):
        tau_d = np.sqrt((course.D**2).sum(axis=(1, 3))).max(axis=0)
        first = np.sqrt((course.B[0] ** 2).sum(axis=(0, 2)))
        tau_d = np.maximum(tau_d, first)  # tau_d bounds B_0 as well; V_0 = 0
        for lane, tau in enumerate(tau_d):
            B = np.sqrt((course.B[:, :, lane] ** 2).sum(axis=(1, 2))).max()
            tally.add(min(at_most(float(B), float(tau)), at_most(float(course.V[:, :, lane].max()), float(tau) ** 2)))
    tested = "|B_k| <= tau_d and V_k(i,j) <= tau_d^2 if |B_0| <= tau_d and V_0 <= tau_d^2, for instance B_0 = V_0 = 0"
    return concluded("pro:bvbound", tested, tally, counterexamples.suggested_first_moment())


def run_moments(solver: CDFSGAda, D: Array, B0: Array, V0: Array, alpha: float) -> Course:
    """Algorithm 2 under the directions D (steps, n, lanes, p), from B_0 and V_0 (n, lanes, p)."""
    _, n, lanes, p = D.shape
    problem = PrescribedDirections(n)
    zero, small = np.zeros((n, lanes, p)), np.zeros((lanes, p, p))
    state = AdaptiveState(zero.copy(), small, zero.copy(), small, np.full(lanes, alpha), np.zeros((lanes, 1, 1)),
                          B0.copy(), V0.copy())  # fmt: skip
    B, V, moves = [B0], [V0], []
    for direction in D:
        before = state.X.copy()
        solver.step(problem, state, Draw(direction[None], slice(None), slice(None)), 0)
        moves.append(state.X - before)
        B.append(state.B.copy())
        V.append(state.V.copy())
    before = state.X.copy()
    solver.step(problem, state, Draw(D[-1][None], slice(None), slice(None)), 0)  # for the last move alone
    return Course(D, np.stack(B), np.stack(V), np.stack([*moves, state.X - before]))


def _courses(alpha: float, covered: bool) -> Iterator[tuple[CDFSGAda, Course]]:
    """Courses under random and extreme directions; `covered` makes ``V_0 >= (1 - eta2) B_0^2``, otherwise V_0 = 0."""
    rng = np.random.default_rng(8)
    for eta1, eta2 in DECAYS:
        for epsilon, (n, p) in ((1e-8, (1, 1)), (1e-300, (3, 3)), (1.0, (4, 2))):
            solver = CDFSGAda(eta1=eta1, eta2=eta2, epsilon=epsilon)
            D = _directions(rng, steps=25, shape=(n, 48, p))
            B0 = rng.standard_normal((n, 48, p)) * rng.choice([0, 1, 1e3], (48, 1))
            V0 = (1 - eta2) * B0**2 if covered else np.zeros_like(B0)
            yield solver, run_moments(solver, D, B0, V0, alpha)


def _directions(rng: np.random.Generator, steps: int, shape: tuple[int, int, int]) -> Array:
    """Random, constant, alternating, growing and decaying directions, and one among zeros; by lane modulo 6."""
    D = rng.standard_normal((steps, *shape))
    k, kind = np.arange(steps)[:, None, None, None], np.arange(shape[1]) % 6
    one = np.broadcast_to(D[:1], D.shape)
    for number, form in enumerate([one, one * (-1.0) ** k, one * 1.5**k, one * 0.3**k, one * (k == 0)], start=1):
        D[:, :, kind == number] = form[:, :, kind == number]
    return D


CHECKS: tuple[Statement, ...] = (steps_are_bounded, second_moment_dominates_the_printed_sum, moments_are_bounded)
