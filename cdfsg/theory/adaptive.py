"""Section 4.2, the moment estimates of Algorithm 2, driven by prescribed directions."""
# fmt: off: in a statement's decorator a line is one part of the words

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cdfsg.linalg import Array
from cdfsg.solvers.cdfsg import AdaptiveState, CDFSGAda
from cdfsg.theory import counterexamples
from cdfsg.theory.statement import Erratum, Margin, at_most, statement

DECAYS = ((0.9, 0.999), (0.9, 0.82), (0.0, 0.0), (0.0, 0.999), (0.5, 0.3), (0.99, 0.999), (0.9, 0.5), (0.99, 0.0))
"""(eta1, eta2); the last two violate ``eta1 < sqrt(eta2)``."""
ALPHA = 0.3


class PrescribedDirections:
    """A sampled problem whose every gradient is the direction D (lanes, n, p) in its minibatch ``D[None]``."""

    def __init__(self, n: int) -> None:
        self.sizes: tuple[int, ...] = (n,)
        self.n = n

    def scores(self, Z: Array, X: Array) -> Array:
        return np.zeros((1, len(X), 1, X.shape[2]))

    def adjoint(self, Z: Array, R: Array) -> Array:
        return Z[0]

    def constraint(self, P: Array) -> Array:
        return P.mT @ P

    def constraint_factor(self, P: Array) -> Array:
        return P

    raw_gradient = constraint_factor


@dataclass(frozen=True)
class Course:
    """``D_1, ...``, ``B_0, ...``, ``V^_0, ...`` and ``X_{k+1} - X_k`` of Algorithm 2, each (steps, lanes, n, p)."""

    D: Array
    B: Array
    V: Array
    moves: Array


@statement("pr:xkdist", place="Section 4.2, pr:xkdist", assumes="V_0 >= (1 - eta2) B_0^2, every eta1 < 1",
           says="||X_{k+1} - X_k||^2 <= alpha_k^2 n p / ((1 - eta2) (1 - gamma)).",
           printed="no condition on B_0 and V_0",
           corrected="V_0 >= (1 - eta2) B_0^2 entrywise, for instance B_0 = 0; then alpha_k^2 n p / (1 - eta2) is a "
                     "bound already, without gamma and for every eta1 < 1",
           severity="wrong formula", counterexample=counterexamples.step_with_momentum,
           slips=(Erratum("Section 4.2, proof of pr:xkdist, indices",
                          "D_k in B_{k+1}, V_{k+1} and B_{k+1} in X_{k+1} - X_k, and a power 1/2 in the bound of "
                          "|B_{k+1}|^2",
                          "D_{k+1} in B_{k+1} (eq:updateb), V_k and B_k (eq:updatex), and no power; the proposition is "
                          "on Algorithm 2, not 1", "typo"),))
def steps_are_bounded() -> Iterator[Margin]:
    # B_k is an average of B_0 and the directions so far, and the maximum in eq:updateav keeps V_k >= (1 - eta2) D_l^2.
    for solver, course in courses(covered=True):
        bound = ALPHA**2 * course.moves[0, 0].size / (1 - solver.eta2)
        yield at_most((course.moves**2).sum(axis=(2, 3)).max(axis=0), bound)


@statement("pr:xkdist, proof", place="Section 4.2, proof of pr:xkdist", assumes="V_0 >= (1 - eta2) B_0^2",
           says="V_{k+1} >= (1 - eta2) sum gamma^(k-l) D_l^2 entrywise.",
           printed="sum gamma^(k-l) D_l^2, for D and for V",
           corrected="sum eta2^(k-l) D_l^2; with gamma > eta2, which is eta1 > eta2, the induction is false",
           severity="wrong formula", counterexample=counterexamples.second_moment_recursion)
def second_moment() -> Iterator[Margin]:
    for solver, course in courses(covered=True):
        total, worst = np.zeros_like(course.D[0]), np.inf
        for D, V in zip(course.D, course.V[1:], strict=True):
            total = solver.eta2 * total + (1 - solver.eta2) * D**2
            worst = np.minimum(worst, ((V - total) / np.maximum(V, 1e-300)).min(axis=(1, 2)))
        yield worst


@statement("pro:bvbound", place="Section 4.2, pro:bvbound", assumes="||B_0|| <= tau_d, V_0 <= tau_d^2 entrywise",
           says="||B_k|| <= tau_d and V_k <= tau_d^2 entrywise, for instance with B_0 = X_0' M_theta0 X_0.",
           printed="B_0 = X_0' M_theta0 X_0, and i <= m, j <= n",
           corrected="B_0 = 0 or another n-by-p matrix with ||B_0|| <= tau_d, V_0 <= tau_d^2 entrywise, and i <= n, "
                     "j <= p; the printed matrix is p by p",
           severity="wrong formula", counterexample=counterexamples.suggested_first_moment)
def moments_are_bounded() -> Iterator[Margin]:
    for _, course in courses(covered=False):
        B = np.sqrt((course.B**2).sum(axis=(2, 3)))
        tau_d = np.maximum(np.sqrt((course.D**2).sum(axis=(2, 3))).max(axis=0), B[0])
        yield np.minimum(at_most(B.max(axis=0), tau_d), at_most(course.V.max(axis=(0, 2, 3)), tau_d**2))


def run_moments(solver: CDFSGAda, D: Array, B0: Array, V0: Array, alpha: float) -> Course:
    """Algorithm 2 under the directions D (steps, lanes, n, p), from B_0 and V_0 (lanes, n, p)."""
    _, lanes, n, p = D.shape
    problem, small = PrescribedDirections(n), np.zeros((lanes, p, p))
    state = AdaptiveState(np.zeros(B0.shape), small, D[0], small, np.full((lanes, 1, 1), alpha),
                          np.zeros((lanes, 1, 1)), B0.copy(), V0.copy())
    B, V, X = [B0], [V0], [np.zeros(B0.shape)]
    for direction in (*D, D[-1]):  # once more, for the last move alone
        solver.step(problem, state, direction[None])
        X.append(state.X.copy())
        B.append(state.B.copy())
        V.append(state.V.copy())
    return Course(D, np.stack(B[:-1]), np.stack(V[:-1]), np.diff(X, axis=0))


def courses(covered: bool) -> Iterator[tuple[CDFSGAda, Course]]:
    """Courses under random and extreme directions; `covered` makes ``V_0 >= (1 - eta2) B_0^2``, otherwise V_0 = 0."""
    rng = np.random.default_rng(8)
    for eta1, eta2 in DECAYS:
        for epsilon, (n, p) in ((1e-8, (1, 1)), (1e-300, (3, 3)), (1.0, (4, 2))):
            solver = CDFSGAda(eta1=eta1, eta2=eta2, epsilon=epsilon)
            D = directions(rng, 25, (n, 48, p))
            B0 = (rng.standard_normal((n, 48, p)) * rng.choice([0, 1, 1e3], (48, 1))).swapaxes(0, 1)
            V0 = (1 - eta2) * B0**2 if covered else np.zeros_like(B0)
            yield solver, run_moments(solver, D, B0, V0, ALPHA)


def directions(rng: np.random.Generator, steps: int, shape: tuple[int, int, int]) -> Array:
    """Random, constant, alternating, growing and decaying directions, and one among zeros; by lane modulo 6."""
    D = rng.standard_normal((steps, *shape)).swapaxes(1, 2)
    k, kind = np.arange(steps)[:, None, None, None], np.arange(shape[1]) % 6
    one = np.broadcast_to(D[:1], D.shape)
    for number, form in enumerate([one, one * (-1.0) ** k, one * 1.5**k, one * 0.3**k, one * (k == 0)], start=1):
        D[:, kind == number] = form[:, kind == number]
    return D
