"""Section 4.2: the moment estimates of Algorithm 2, under prescribed directions."""

from collections.abc import Iterator
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.random import default_rng

from cdfsg.linalg import Array
from cdfsg.solvers.cdfsg import AdaptiveState, CDFSGAda
from cdfsg.theory import counterexamples
from cdfsg.theory.statement import Margins, at_most, norm, statement

DECAYS = ((0.9, 0.999), (0.9, 0.82), (0.0, 0.0), (0.0, 0.999), (0.5, 0.3), (0.99, 0.999), (0.9, 0.5), (0.99, 0.0))
"""(eta1, eta2); the last two violate ``eta1 < sqrt(eta2)``."""
ALPHA = 0.3

PRESCRIBED: Any = SimpleNamespace(
    scores=lambda Z, X: np.zeros((1, len(X), 1, X.shape[2])),
    adjoint=lambda Z, R: Z[0],
    constraint=lambda P: P.mT @ P,
    constraint_factor=lambda P: P,
    raw_gradient=lambda P: P,
)
"""A sampled problem whose gradient is D (lanes, n, p) on the minibatch ``D[None]``."""


@statement("pr:xkdist", "Section 4.2, Proposition 4.9", assumes="V_0 >= (1 - eta2) B_0^2, every eta1 < 1",
    says="||X_{k+1} - X_k||^2 <= alpha_k^2 n p / ((1 - eta2) (1 - gamma)).",
    printed="no condition on B_0 and V_0",
    corrected="V_0 >= (1 - eta2) B_0^2 entrywise, as for B_0 = 0; then "
              "alpha_k^2 n p / (1 - eta2) is a bound for every eta1 < 1",
    severity="wrong formula", counterexample=counterexamples.step_with_momentum)
def steps_are_bounded() -> Margins:
    """B_k averages B_0 and the directions so far; the maximum in eq:updateav keeps ``V_k >= (1 - eta2) D_l^2``."""
    for solver, _, _, _, moves in courses(covered=True):
        bound = ALPHA**2 * moves[0, 0].size / (1 - solver.eta2)
        yield f"eta = {solver.eta1, solver.eta2}", at_most(norm(moves).max(axis=0) ** 2, bound)


@statement("pr:xkdist, proof", "Section 4.2, Proposition 4.9, proof", assumes="V_0 >= (1 - eta2) B_0^2",
    says="V_{k+1} >= (1 - eta2) sum gamma^(k-l) D_l^2 entrywise.",
    printed="sum gamma^(k-l) D_l^2, for D and for V",
    corrected="sum eta2^(k-l) D_l^2; with gamma > eta2, which is eta1 > eta2, the induction is false",
    severity="wrong formula", counterexample=counterexamples.second_moment_recursion)
def second_moment() -> Margins:
    """By induction, as ``V_{k+1} >= eta2 V_k + (1 - eta2) D_{k+1}^2`` (eq:updatev)."""
    for solver, D, _, V, _ in courses(covered=True):
        total = np.zeros_like(D[0])
        for d, v in zip(D, V[1:], strict=True):
            total = solver.eta2 * total + (1 - solver.eta2) * d**2
            yield f"eta = {solver.eta1, solver.eta2}", at_most(total, v)


@statement("pro:bvbound", "Section 4.2, Proposition 4.10", assumes="||B_0|| <= tau_d, V_0 <= tau_d^2 entrywise",
    says="||B_k|| <= tau_d and V_k <= tau_d^2 entrywise, for instance with B_0 = X_0' M_theta0 X_0.",
    printed="B_0 = X_0' M_theta0 X_0, and i <= m, j <= n",
    corrected="B_0 = 0 or another n-by-p matrix with ||B_0|| <= tau_d, V_0 <= tau_d^2 entrywise, "
              "i <= n, j <= p; the printed matrix is p by p",
    severity="wrong formula", counterexample=counterexamples.suggested_first_moment)
def moments_are_bounded() -> Margins:
    """Both are averages of what is bounded, or the maximum of two such."""
    for _, D, B, V, _ in courses(covered=False):
        size = norm(B)
        tau_d = np.maximum(norm(D).max(axis=0), size[0])
        yield at_most(size.max(axis=0), tau_d), at_most(V.max(axis=(0, 2, 3)), tau_d**2)


def run_moments(solver: CDFSGAda, D: Array, B0: Array, V0: Array, alpha: float) -> tuple[Array, Array, Array]:
    """B and V^ from k = 0 and ``X_{k+1} - X_k`` under the directions D, each (steps, lanes, n, p)."""
    X, (_, lanes, _, p) = np.zeros(B0.shape), D.shape
    small, scalar = np.zeros((lanes, p, p)), np.zeros((lanes, 1, 1))
    state = AdaptiveState(X.copy(), small, D[0], small, scalar + alpha, scalar, B0.copy(), V0.copy())
    states = [(B0, V0, X)]
    for direction in (*D, D[-1]):  # once more, for the last move alone
        solver.step(PRESCRIBED, state, direction[None])
        states.append((state.B.copy(), state.V.copy(), state.X.copy()))
    B, V, Xs = map(np.stack, zip(*states, strict=True))
    return B[:-1], V[:-1], np.diff(Xs, axis=0)


def courses(covered: bool) -> Iterator[tuple[CDFSGAda, Array, Array, Array, Array]]:
    """Solver, D, and what `run_moments` gives; V_0 is ``(1 - eta2) B_0^2`` if `covered`, else 0.

    D is random, constant, alternating, growing, decaying, or one matrix before zeros; by lane modulo 6.
    """
    rng, k = default_rng(8), np.arange(25)[:, None, None, None]
    for (eta1, eta2), (epsilon, n, p) in product(DECAYS, ((1e-8, 1, 1), (1e-300, 3, 3), (1.0, 4, 2))):
        D = rng.standard_normal((25, n, 48, p)).swapaxes(1, 2)
        one = np.broadcast_to(D[:1], D.shape)
        for number, form in enumerate((one, one * (-1.0) ** k, one * 1.5**k, one * 0.3**k, one * (k == 0)), start=1):
            D[:, number::6] = form[:, number::6]
        B0 = (rng.standard_normal((n, 48, p)) * rng.choice([0, 1, 1e3], (48, 1))).swapaxes(0, 1)
        V0 = (1 - eta2) * B0**2 if covered else np.zeros_like(B0)
        solver = CDFSGAda(eta1=eta1, eta2=eta2, epsilon=epsilon)
        yield solver, D, *run_moments(solver, D, B0, V0, ALPHA)
