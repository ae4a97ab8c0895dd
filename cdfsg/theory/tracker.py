"""Section 4.1, the tracker: ``Y_k`` of eq:updatey follows ``C(X_k) = X_k' M X_k``."""

from collections.abc import Iterator

import numpy as np

from cdfsg.linalg import Array, lane_gram, sym
from cdfsg.solvers.cdfsg import CDFSG, TrackingState, track
from cdfsg.theory import algorithm_counterexamples as counterexamples
from cdfsg.theory.check import Check, Statement, Tally, at_most, concluded, error
from cdfsg.theory.finite import FinitePencil, branched, random_pencil, require, started

PRINTED, INDEFINITE, SEMIDEFINITE = 4, 8, 2
"""Constants of pr:yktrack before ``tau_x^2 tau_m^2 ||X_{k+1} - X_k||^2``: the printed one, the one that holds for every
symmetric M_theta (and for no less, see `sharpest`), and the one that holds for positive semidefinite M_theta."""


def tracker_is_bounded() -> Check:
    """pro:boundy: ``||Y_k|| <= tau_y`` where b_k lies in [0, 1] and ``||Y_0|| <= tau_y``."""
    tally = Tally()
    for seed, (n, p) in enumerate([(1, 1), (2, 1), (3, 3), (5, 2), (8, 4)]):
        for worst in (False, True):
            X, M, b, a = _path(np.random.default_rng(seed), n, p, lanes=120, steps=25, worst=worst)
            bound = tracker_bound(X, M, a)
            sizes = np.stack([_norms(Y) for Y in tracked(X, M, b)])
            for lane in range(sizes.shape[1]):
                tally.add(at_most(float(sizes[:, lane].max()), float(bound[lane])))
    tested = "||Y_k|| <= tau_y if 0 <= b_k <= 1 and Y_0 = C_theta0(X_0); the grid of Section 5 has b = 2 and 4 as well"
    return concluded("pro:boundy", tested, tally, counterexamples.tracking_above_one())


def tracker_follows_the_constraint() -> Check:
    """pr:yktrack with 8 for 4, sharp; with positive semidefinite M_theta 2 will do."""
    rng, tally = np.random.default_rng(2), Tally()
    for number in range(1500):
        n = int(rng.integers(1, 7))
        p = [1, n, int(rng.integers(1, n + 1))][number % 3]
        semidefinite = bool(number % 2)
        M = _matrices(rng, int(rng.integers(1, 5)), n, semidefinite)
        X = rng.standard_normal((n, p)) * 10.0 ** rng.uniform(-2, 1)
        step = rng.standard_normal((n, p)) if number % 5 else X  # along X the constraint changes most
        X_new = X + step * 10.0 ** rng.uniform(-4, 0.5)
        if number % 7 == 0:
            X[:, -1] = X_new[:, -1] = 0  # rank deficient
        Y = X.T @ M.mean(axis=0) @ X + sym(rng.standard_normal((p, p))) * rng.choice([0, 1e-3, 1])
        b = float(rng.choice([0, 1, rng.uniform(0, 1), 10.0 ** rng.uniform(-4, 0), 2, 4]))
        tally.add(recursion_margin(M, X, X_new, Y, b, SEMIDEFINITE if semidefinite else INDEFINITE))
    for move in (1e-1, 1e-3, 1e-5):
        tally.add(sharpest(move, INDEFINITE))
    tested = "the recursion with 8 in place of 4 (8 is sharp), and with 2 if every M_theta is positive semidefinite"
    return concluded("pr:yktrack", tested, tally, counterexamples.tracking_constant())


def first_step_moves() -> Check:
    """Algorithm 1 with D_0 = 0: X_1 = X_0, so that the first of K iterations does not move; false that D_0 descends."""
    rng, tally = np.random.default_rng(4), Tally()
    for number in range(1000):
        n = int(rng.integers(1, 5))
        toy = random_pencil(rng, n, 2)
        X0 = rng.standard_normal((n, 1 + number % n))
        state = started(CDFSG(1.0), toy, X0, {"s1": 1.0, "s2": 0.3})
        state = branched(state, 4)
        CDFSG(1.0).step(toy, state, toy.every_draw(2), 0)
        stayed = float(np.abs(state.X - X0[:, None]).max()) == 0.0
        slope = float(np.linalg.norm(toy.penalty(1.0).gradient(X0)))
        tally.add(-slope if stayed else 0.0)
    tested = "E D_0 = E W(X_0, Y_0), which the proof uses at k = 0; D_0 = 0 gives X_1 = X_0 on every path"
    return concluded("Algorithm 1, D_0", tested, tally, counterexamples.first_move())


def direction_is_unbiased_given_the_past() -> Check:
    """The step ``E[D_k | F_{k-1}] = E[W(X_k, Y_k) | F_{k-1}]`` of the theorem's proof: false, by O(b_k)."""
    rng, tally, order = np.random.default_rng(6), Tally(), Tally()
    for _ in range(1000):
        n = int(rng.integers(1, 4))
        toy = random_pencil(rng, n, int(rng.integers(2, 4)))
        X = rng.standard_normal((n, 1)) / n
        whole, half, quarter = (conditional_bias(toy, X, b) for b in (1.0, 0.5, 0.25))
        tally.add(-float(np.linalg.norm(whole)))
        predicted = (4 * half - whole) / 4 + (2 * whole - 4 * half) / 16  # a b + c b^2 through the other two
        scale = max(float(np.linalg.norm(whole)), 1e-5 * float(np.linalg.norm(X)))  # of D, whose rounding remains
        order.add(error(float(np.linalg.norm(quarter - predicted)), scale))
    require(order, "the bias is a b + c b^2")
    tested = "E[D_k | F_{k-1}] = E[W(X_k, Y_k) | F_{k-1}]; the same theta_k makes both, and the bias is O(b_k)"
    return concluded("theorem on Algorithm 1, proof", tested, tally, counterexamples.conditional_expectation())


# --- what the checks compute ---------------------------------------------------------------------------------


def tracked(X: Array, M: Array, b: Array) -> Iterator[Array]:
    """The trackers Y_0, Y_1, ... of prescribed iterates, by the solver's own update.

    Parameters
    ----------
    X : array (steps + 1, n, lanes, p)
        Iterates.
    M : array (steps + 1, lanes, n, n)
        ``M_theta_k``; the first makes ``Y_0 = C_theta0(X_0)``.
    b : array (steps, lanes)
    """
    nothing = np.zeros_like(X[0])
    Y = _constraint(M[0], X[0])
    yield Y
    state = TrackingState(X=X[0], C=Y, D=nothing, Y=Y, alpha=np.zeros(X.shape[2]), b=b[0])
    for k in range(len(b)):
        state.b = b[k][:, None, None]
        state.C = _constraint(M[k + 1], X[k + 1])
        track(state, _constraint(M[k + 1], X[k]))
        yield state.Y


def tracker_bound(X: Array, M: Array, a: Array) -> Array:
    """``tau_y = tau_x tau_m (tau_x + 2 a tau_d)`` with ``a tau_d = a`` (directions of norm 1), per lane."""
    tau_x = np.sqrt((X**2).sum(axis=(1, 3))).max(axis=0)
    tau_m = np.linalg.norm(M, axis=(2, 3)).max(axis=0)
    bound: Array = tau_x * tau_m * (tau_x + 2 * a)
    return bound


def recursion_margin(M: Array, X: Array, X_new: Array, Y: Array, b: float, constant: float) -> float:
    """Relative margin of pr:yktrack with `constant`, the expectation being a sum over M (outcomes, n, n)."""
    lanes = len(M)
    path = np.repeat(np.stack([X, X_new])[:, :, None], lanes, axis=2)
    state = TrackingState(path[1], _constraint(M, path[1]), path[0], np.repeat(Y[None], lanes, axis=0),
                          np.zeros(lanes), np.full((lanes, 1, 1), b))  # fmt: skip
    track(state, _constraint(M, path[0]))
    mean = M.mean(axis=0)
    gap = float(np.mean(_norms(X_new.T @ mean @ X_new - state.Y) ** 2))
    tau_x = float(max(np.linalg.norm(X), np.linalg.norm(X_new)))
    tau_m = float(np.linalg.norm(M, axis=(1, 2)).max())
    variance = np.mean(np.linalg.norm(M - mean, axis=(1, 2)) ** 2)
    bound = (
        (1 - b) ** 2 * np.linalg.norm(X.T @ mean @ X - Y) ** 2
        + 2 * b**2 * tau_x**4 * variance
        + constant * (tau_x * tau_m * np.linalg.norm(X_new - X)) ** 2
    )
    rounding = 1e-13 * (tau_x**2 * tau_m + float(np.linalg.norm(Y))) ** 2  # of the squared differences on both sides
    return at_most(gap, float(bound) + rounding)


def sharpest(move: float, constant: float) -> float:
    """The margin for ``n = p = 1``, ``M_theta = +-1`` (M = 0 in the limit), ``x = 1 - move -> 1`` and ``b = 2 move``.

    There ``E|C - Y|^2 = (2 move + b)^2`` to first order, against ``2 b^2 + constant move^2``: equal for 8.
    """
    M = np.array([[[1.0]], [[-1.0]]])
    return recursion_margin(M, np.array([[1 - move]]), np.array([[1.0]]), np.zeros((1, 1)), 2 * move, constant)


def conditional_bias(toy: FinitePencil, X: Array, b: float, beta: float = 1.0) -> Array:
    """``E[D_1 - W(X_1, Y_1)]`` where X does not move and ``Y_0 = C(X)``, by enumeration, shape (n, p)."""
    solver, exact = CDFSG(beta), toy.penalty(beta)
    state = branched(_standing(toy, X, exact.constraint(X), b), toy.outcomes**2)
    draw = toy.every_draw(1)
    solver.step(toy, state, draw, 0)
    W = np.stack([exact.direction(X, Y) for Y in state.Y], axis=1)
    bias: Array = (state.D - W).mean(axis=1)
    return bias


def tracking_error(b: float, steps: int) -> Array:
    """``E||Y_k - C||^2`` relative to that of a minibatch, where X stands still and Y_0 is one: shape (steps + 1,).

    ``e_{k+1} = (1 - b)^2 e_k + b^2``, whose limit is ``b / (2 - b)`` for b < 2; there is none for b >= 2.
    """
    errors = [1.0]
    for _ in range(steps):
        errors.append((1 - b) ** 2 * errors[-1] + b**2)
    return np.array(errors)


def _standing(toy: FinitePencil, X: Array, Y: Array, b: float) -> TrackingState:
    one = X[:, None]
    return TrackingState(one, Y[None], np.zeros_like(one), Y[None], np.zeros(1), np.full((1, 1, 1), b))


def _path(
    rng: np.random.Generator, n: int, p: int, lanes: int, steps: int, worst: bool
) -> tuple[Array, Array, Array, Array]:
    """Iterates with directions of norm 1, any M_theta, b in [0, 1] and ``alpha <= a b``; at worst X grows straight."""
    b = rng.choice([0.0, 1.0, 0.5], (steps, lanes)) if worst else rng.uniform(0, 1, (steps, lanes))
    a = 10.0 ** rng.uniform(-2, 1, lanes)
    D = rng.standard_normal((steps, n, lanes, p))
    X = [rng.standard_normal((n, lanes, p)) * 10.0 ** rng.uniform(-2, 1, (lanes, 1))]
    for k in range(steps):
        d = X[0] if worst else D[k]
        X.append(X[-1] + (a * b[k])[:, None] * d / np.sqrt((d**2).sum(axis=(0, 2)))[:, None])
    M = _matrices(rng, (steps + 1) * lanes, n, semidefinite=worst).reshape(steps + 1, lanes, n, n)
    return np.stack(X), M, b, a


def _matrices(rng: np.random.Generator, count: int, n: int, semidefinite: bool) -> Array:
    """Symmetric matrices of many sizes and conditions; semidefinite ones include rank one."""
    R = rng.standard_normal((count, n, n)) * 10.0 ** rng.uniform(-2, 0, n)
    if not semidefinite:
        return sym(R)
    R[::2, 1:] = 0
    product: Array = np.swapaxes(R, 1, 2) @ R
    return product


def _constraint(M: Array, X: Array) -> Array:
    """``X'MX`` with a matrix per lane: M (lanes, n, n), X (n, lanes, p), shape (lanes, p, p)."""
    return lane_gram(X, np.einsum("kmn,nkp->mkp", M, X))


def _norms(a: Array) -> Array:
    norms: Array = np.linalg.norm(a, axis=(-2, -1))
    return norms


CHECKS: tuple[Statement, ...] = (
    tracker_is_bounded,
    tracker_follows_the_constraint,
    first_step_moves,
    direction_is_unbiased_given_the_past,
)
