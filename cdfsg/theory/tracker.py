"""Section 4.1, the tracker: ``Y_k`` of eq:updatey follows ``C(X_k) = X_k' M X_k``."""

from collections.abc import Iterator
from itertools import accumulate, product

import numpy as np
from numpy.random import Generator, default_rng

from cdfsg.linalg import Array, sym
from cdfsg.solvers.cdfsg import CDFSG, TrackingState, track
from cdfsg.theory import counterexamples
from cdfsg.theory.finite import Run, random_pencil
from cdfsg.theory.instances import draws
from cdfsg.theory.statement import BLANKET, Margins, Relation, at_most, equal, norm, statement

PRINTED, INDEFINITE, SEMIDEFINITE = 4, 8, 2
"""The constant 4 of pr:yktrack as printed, and for M_theta of two kinds."""


@statement("pro:boundy", "Section 4.1, Proposition 4.4", assumes="||Y_0|| <= tau_y, 0 <= b_k <= 1",
    says="||Y_k|| <= tau_y.",
    printed="no condition on b_k; the proof uses ||(1 - b_k) Y_k|| <= (1 - b_k) ||Y_k||",
    corrected="0 <= b_k <= 1; the step sizes b = s2/s1 of Section 5 go up to 4, where the tracker diverges",
    severity="outside the assumptions", counterexample=counterexamples.tracking_above_one)
def tracker_is_bounded() -> Margins:
    """``||Y_{k+1}|| <= (1 - b) ||Y_k|| + b tau_x^2 tau_m + 2 alpha tau_x tau_m tau_d``, and ``alpha <= a b``."""
    sizes, steps, lanes = [(1, 1), (2, 1), (3, 3), (5, 2), (8, 4)], 25, 120
    for (seed, (n, p)), worst in product(enumerate(sizes), (False, True)):
        rng = default_rng(seed)
        b = rng.choice([0.0, 1.0, 0.5], (steps, lanes)) if worst else rng.uniform(0, 1, (steps, lanes))
        a = 10.0 ** rng.uniform(-4, 1, lanes)
        D = rng.standard_normal((steps, n, lanes, p)).swapaxes(1, 2)
        X0 = rng.standard_normal((n, lanes, p)).swapaxes(0, 1) * 10.0 ** rng.uniform(-2, 1, (lanes, 1, 1))
        D = np.broadcast_to(X0, D.shape) if worst else D  # at worst X grows straight
        moves = (a * b / norm(D))[..., None, None] * D
        X = X0 + np.concatenate([0 * X0[None], moves.cumsum(axis=0)])
        M = _matrices(rng, (steps + 1) * lanes, n, semidefinite=worst).reshape(steps + 1, lanes, n, n)
        tau_x, tau_m = norm(X).max(axis=0), norm(M).max(axis=0)
        largest = np.max([norm(Y) for Y in tracked(X, M, b)], axis=0)
        yield f"n = {n}, p = {p}", at_most(largest, tau_x * tau_m * (tau_x + 2 * a))  # directions have norm 1


@statement("remark on v_m", "Section 4.1, Remark 4.3", assumes="M_theta bounded",
    says="E||M_theta - M||^2 <= 2 (tau_m^2 + ||M||^2).")
def variance_of_samples() -> Margins:
    """``E||M_theta - M||^2 = E||M_theta||^2 - ||M||^2``."""
    yield "Even tau_m^2 - ||M||^2 serves"
    for number, rng in draws(1000, 7):
        M = _matrices(rng, int(rng.integers(1, 5)), int(rng.integers(1, 7)), semidefinite=bool(number % 2))
        mean, tau_m = M.mean(axis=0), norm(M).max()
        variance, size = (norm(M - mean) ** 2).mean(), norm(mean) ** 2
        yield f"{len(M)} outcomes, n = {M.shape[1]}", at_most(variance, 2 * (tau_m**2 + size))
        yield at_most(variance, tau_m**2 - size, tau_m**2, claim="the sharper bound holds")


@statement("pr:yktrack", "Section 4.1, Proposition 4.5", assumes="M_theta symmetric, every b_k",
    says="E||C(X_{k+1}) - Y_{k+1}||^2 <= (1-b_k)^2 ||C(X_k) - Y_k||^2 + 2 b_k^2 tau_x^4 v_m^2 "
         "+ 4 tau_x^2 tau_m^2 ||X_{k+1} - X_k||^2.",
    printed="4 tau_x^2 tau_m^2 ||X_{k+1} - X_k||^2",
    corrected="8 tau_x^2 tau_m^2 ||X_{k+1} - X_k||^2, which is sharp; 2 if every M_theta is positive semidefinite",
    severity="wrong constant", counterexample=counterexamples.tracking_constant)
def recursion() -> Margins:
    """The error is ``(1 - b) (C - Y) + b I_1 - (I_2 - E I_2)``, so 2 ``E||I_2 - E I_2||^2`` is to be bounded.

    As ``||I_2|| <= 2 tau_x tau_m ||X_{k+1} - X_k||``: by 8.  A constant taken from M_theta takes one from I_2, and for
    semidefinite M_theta ``||M_theta - tau_m/2 I|| <= tau_m/2`` in the spectral norm: by 2.
    """
    for number, rng in draws(1500, 2):
        n = int(rng.integers(1, 7))
        p = [1, n, int(rng.integers(1, n + 1))][number % 3]
        semidefinite = bool(number % 2)
        M = _matrices(rng, int(rng.integers(1, 5)), n, semidefinite)
        X = rng.standard_normal((n, p)) * 10.0 ** rng.uniform(-2, 1)
        step = rng.standard_normal((n, p)) if number % 5 else X  # C changes most along X
        X_new = X + step * 10.0 ** rng.uniform(-4, 0.5)
        if number % 7 == 0:
            X[:, -1] = X_new[:, -1] = 0  # rank deficient
        Y = X.T @ M.mean(axis=0) @ X + sym(rng.standard_normal((p, p))) * rng.choice([0, 1e-3, 1])
        b = float(rng.choice([0, 1, rng.uniform(0, 1), 10.0 ** rng.uniform(-4, 0), 2, 4]))
        relation = recursion_at(M, X, X_new, Y, b, SEMIDEFINITE if semidefinite else INDEFINITE)
        yield f"n = {n}, p = {p}, {'semidefinite' if semidefinite else 'indefinite'} M_theta, b = {b:.2g}", relation
    for move in (1e-1, 1e-3, 1e-5):
        yield f"M_theta = 1 or -1, a move by {move:g}", sharpest(move, INDEFINITE)


@statement("Algorithm 1, D_0", "Section 4.1, Algorithm 1, D_0", assumes="D_0 = 0",
    known_by="counterexample", says="E D_0 = E W(X_0, Y_0).",
    printed="D_0 = 0, while the proof of the theorem takes E D_0 = W(X_0, Y_0) at k = 0",
    corrected="D_0 = W_{xi_0,theta_0}(X_0, Y_0), or the mean over k = 1, ..., K: with D_0 = 0 the first step "
              "does not move",
    severity="gap in proof", counterexample=counterexamples.first_move)
def first_step() -> Margins:
    for number, rng in draws(1000, 4):
        n = int(rng.integers(1, 5))
        toy = random_pencil(rng, n, 2)
        X0 = rng.standard_normal((n, 1 + number % n))
        run = Run(CDFSG(1.0), toy, 1, 1.0, 0.3)
        printed, meant = (run.start_everywhere(X0, null).D.mean(axis=0) for null in (True, False))
        yield equal(printed, meant, 1.0)


@statement("theorem on Algorithm 1, proof", "Section 4.1, Theorem 4.6, proof, the direction", assumes=BLANKET,
    known_by="counterexample", says="E[D_k | F_{k-1}] = E[W(X_k, Y_k) | F_{k-1}].",
    printed="E[D_k | F_{k-1}] = W(X_k, Y_k)",
    corrected="a theta of its own for D_k, or the almost sure Lipschitz constant of Assumption 4.7 (2) for L_W: "
              "the theta_k that makes D_k is also in Y_k, and F_{k-1} does not know Y_k",
    severity="gap in proof", counterexample=counterexamples.conditional_expectation)
def direction_given_the_past() -> Margins:
    yield "The same theta_k makes D_k and Y_k, and the bias is O(b_k)"
    for _, rng in draws(1000, 6):
        n = int(rng.integers(1, 4))
        toy = random_pencil(rng, n, int(rng.integers(2, 4)))
        X, h, zero, biases = rng.standard_normal((n, 1)) / n, toy.penalty(1.0), np.zeros((1, 1, 1)), []
        C = h.constraint(X)[None]
        for b in (1.0, 0.5, 0.25):
            first = TrackingState(X[None], C, 0 * X[None], C, zero, zero + b)  # X does not move
            *_, state = Run(CDFSG(h.beta), toy, 1, 1.0, b).every_path(first)
            biases.append((state.D - [h.direction(X, Y) for Y in state.Y]).mean(axis=0))
        whole, half, quarter = biases
        yield equal(whole, 0.0, 1.0)
        predicted = (4 * half - whole) / 4 + (2 * whole - 4 * half) / 16  # a b + c b^2
        scale = max(norm(whole), 1e-5 * norm(X))  # rounding of D
        yield equal(quarter, predicted, scale, claim="the bias is a b + c b^2")


def tracked(X: Array, M: Array, b: Array) -> Iterator[Array]:
    """The trackers Y_0, Y_1, ... of iterates X (steps + 1, lanes, n, p)."""
    Y = _constraint(M[0], X[0])
    state = TrackingState(X[0], Y, np.zeros_like(X[0]), Y, np.zeros(1), b[0])
    yield Y
    for k in range(len(b)):
        state.b, state.C = b[k][:, None, None], _constraint(M[k + 1], X[k + 1])
        track(state, _constraint(M[k + 1], X[k]))
        yield state.Y


def recursion_at(M: Array, X: Array, X_new: Array, Y: Array, b: float, constant: float) -> Relation:
    """pr:yktrack with `constant`, over the outcomes M (outcomes, n, n)."""
    state = TrackingState(X_new, _constraint(M, X_new), X, Y, np.zeros(1), np.full((1, 1, 1), b))
    track(state, _constraint(M, X))
    mean = M.mean(axis=0)
    gap = (norm(X_new.T @ mean @ X_new - state.Y) ** 2).mean()
    tau_x, tau_m = max(norm(X), norm(X_new)), norm(M).max()
    bound = (
        (1 - b) ** 2 * norm(X.T @ mean @ X - Y) ** 2
        + 2 * b**2 * tau_x**4 * (norm(M - mean) ** 2).mean()
        + constant * (tau_x * tau_m * norm(X_new - X)) ** 2
    )
    rounding = 1e-13 * (tau_x**2 * tau_m + norm(Y)) ** 2  # of the differences on both sides
    return at_most(gap, bound + rounding)


def sharpest(move: float, constant: float) -> Relation:
    """For n = p = 1, ``M_theta = +-1`` (M = 0), ``x = 1 - move -> 1`` and ``b = 2 move``.

    To first order ``E|C - Y|^2 = (2 move + b)^2`` against ``2 b^2 + constant move^2``: equal for 8.
    """
    one = np.ones((1, 1))
    return recursion_at(np.stack([one, -one]), (1 - move) * one, one, 0 * one, 2 * move, constant)


def tracking_error(b: float, steps: int) -> Array:
    """``E||Y_k - C||^2`` relative to that of a minibatch, where X stands still, for k = 0, ..., steps."""
    return np.array([*accumulate(range(steps), lambda error, _: (1 - b) ** 2 * error + b**2, initial=1.0)])


def _matrices(rng: Generator, count: int, n: int, semidefinite: bool) -> Array:
    """Symmetric matrices of many conditions; semidefinite ones include rank one."""
    R = rng.standard_normal((count, n, n)) * 10.0 ** rng.uniform(-2, 0, n)
    if not semidefinite:
        return sym(R)
    R[::2, 1:] = 0
    return R.mT @ R


def _constraint(M: Array, X: Array) -> Array:
    return X.mT @ M @ X
