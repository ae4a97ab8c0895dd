"""Each solver's step written out by hand, lane by lane, with other constants in every lane."""

import dataclasses

import numpy as np
import pytest

from cdfsg.datasets import Provenance, Views, load
from cdfsg.merits import Huber, Identity
from cdfsg.problems import SampledGCCA
from cdfsg.solvers import SOLVERS
from cdfsg.solvers.cdfsg import CDFSG, CDFSGAda
from cdfsg.solvers.draws import Draw, Draws
from cdfsg.solvers.landing import Landing
from cdfsg.solvers.lanes import Refusal, initial_points, run, step_by_step
from cdfsg.solvers.rsg_plus import RSGPlus, block_inverses, normalise_columns, normalise_columns_tall, qf
from cdfsg.solvers.spans import Span, apply_kernel

SIZES, LANES, P, ROWS = (5, 4), 2, 3, 6
N = sum(SIZES)
LEFT, RIGHT = slice(0, 5), slice(5, 9)
PROBLEM = SampledGCCA(SIZES, Identity())
STEPS = {"s1": [0.5, 0.25], "s2": [0.1, 0.03], "eta": [0.3, 0.2], "omega": [0.5, 0.9], "eta_q": [0.1, 0.4]}
STEPS |= {"eta_t": [0.3, 0.7]}


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def start_of(solver, rng, dtype=np.float64):
    X0 = rng.standard_normal((N, LANES, P)).astype(dtype) / 3
    settings = {name: np.array(STEPS[name], dtype=dtype) for name in solver.settings}
    first = rng.standard_normal((ROWS, N)).astype(dtype)
    return X0, first, solver.start(PROBLEM, X0.copy(), settings, first)


def draws(rng, count=3, dtype=np.float64):
    """Draws with independent theta and xi, and the two minibatches of each."""
    for _ in range(count):
        theta, xi = rng.standard_normal((2, ROWS, N)).astype(dtype)
        yield Draw(np.concatenate([theta, xi]), slice(0, ROWS), slice(ROWS, None)), theta, xi


def moments(rows):
    """M and the cross moments between the views of a minibatch."""
    S = rows.T @ rows / len(rows)
    M = np.zeros_like(S)
    M[LEFT, LEFT], M[RIGHT, RIGHT] = S[LEFT, LEFT], S[RIGHT, RIGHT]
    return M, S - M


def test_steps_of_algorithm_2_written_out_by_hand_give_the_same_iterates_and_trackers(rng):
    solver = CDFSGAda(beta=0.3, eta1=0.8, eta2=0.6, epsilon=1e-2)
    X0, first, state = start_of(solver, rng)
    X = list(X0.transpose(1, 0, 2))
    Y = [x.T @ moments(first)[0] @ x for x in X]
    B, V = [np.zeros((N, P))] * LANES, [np.zeros((N, P))] * LANES
    for draw, theta, xi in draws(rng, 4):
        solver.step(PROBLEM, state, draw, 0)
        M, cross = moments(theta)[0], moments(xi)[1]
        for k in range(LANES):
            alpha, b = STEPS["s2"][k], STEPS["s2"][k] / STEPS["s1"][k]
            before = X[k].T @ M @ X[k]
            X[k] = X[k] - alpha * B[k] / np.sqrt(V[k] + 1e-2)
            after = X[k].T @ M @ X[k]
            Y[k] = Y[k] - b * (Y[k] - before) + after - before
            Q = 1.5 * np.eye(P) - 0.5 * Y[k]
            G = -2 * cross @ X[k] @ Q
            D = G @ Q.T + M @ X[k] @ (0.3 * (Y[k] @ Y[k] - np.eye(P)) - (X[k].T @ G + G.T @ X[k]) / 2)
            V[k] = np.maximum(0.6 * V[k] + 0.4 * D**2, V[k])
            B[k] = 0.8 * B[k] + 0.2 * D
            np.testing.assert_allclose(state.C[k], after, atol=1e-10)
    np.testing.assert_allclose(state.X.transpose(1, 0, 2), X, atol=1e-10)
    np.testing.assert_allclose(state.Y, Y, atol=1e-10)


@pytest.mark.parametrize("chunk", [1, 20])
def test_elementwise_passes_in_blocks_of_rows_change_nothing(rng, monkeypatch, chunk):
    found = []
    for entries in (chunk, 10**6):
        monkeypatch.setattr("cdfsg.solvers.cdfsg._CHUNK", entries)
        solver, rng = CDFSGAda(), np.random.default_rng(1)
        _, _, state = start_of(solver, rng)
        for draw, *_ in draws(rng):
            solver.step(PROBLEM, state, draw, 0)
        found.append(state.X)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-14)


def test_landing_steps_written_out_by_hand_give_the_same_iterates(rng):
    solver = Landing()
    X0, _, state = start_of(solver, rng)
    X = list(X0.transpose(1, 0, 2))
    whole = slice(None)
    for _, rows, _ in draws(rng):
        solver.step(PROBLEM, state, Draw(rows, whole, whole), 0)
        M, cross = moments(rows)
        for k in range(LANES):
            U, G = M @ X[k], -cross @ X[k]
            C = X[k].T @ U
            np.testing.assert_allclose(state.C[k], C, atol=1e-10)
            field = (G @ U.T @ U - U @ G.T @ U) / 2 + STEPS["omega"][k] * U @ (C - np.eye(P))
            X[k] = X[k] - STEPS["eta"][k] * field
    np.testing.assert_allclose(state.X.transpose(1, 0, 2), X, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("columns", [1, 10**6])
@pytest.mark.parametrize("kind", [CDFSG, CDFSGAda, Landing])
def test_several_steps_at_once_give_what_one_after_the_other_give(rng, monkeypatch, kind, columns, shared):
    monkeypatch.setattr("cdfsg.solvers.landing.COLUMNS", columns)
    solver, problem = kind(), SampledGCCA(SIZES, Huber(0.4))
    X0, first, one = start_of(solver, rng)
    settings = {name: np.array(STEPS[name]) for name in solver.settings}
    many = solver.start(problem, X0.copy(), settings, first)
    whole, halves = (slice(None), slice(None)), (slice(0, ROWS // 2), slice(ROWS // 2, None))
    draws = Draws(rng.standard_normal((5 * ROWS, N)), ROWS, *(whole if shared else halves))
    C = solver.steps(problem, many, draws)
    for number, draw in enumerate(draws):
        solver.step(problem, one, draw, 0)
        np.testing.assert_allclose(C[number], one.C, rtol=1e-9, atol=1e-12)
    for entry in dataclasses.fields(one):
        np.testing.assert_allclose(getattr(many, entry.name), getattr(one, entry.name), rtol=1e-9, atol=1e-12)


def test_a_move_within_a_span_is_seen_by_the_rows_behind_it_and_kept_for_x(rng):
    rows, X = rng.standard_normal((9, N)), rng.standard_normal((N, LANES, P))
    factor = rng.standard_normal((3, 2, LANES, P))
    span, part = Span(PROBLEM, rows, X), slice(3, 6)
    span.move(part, factor)
    moved = X - PROBLEM.lift(rows[part], factor)
    np.testing.assert_allclose(span.values[6:], PROBLEM.project(rows[6:], moved), atol=1e-12)
    np.testing.assert_allclose(X - PROBLEM.lift(rows, span.moves), moved, atol=1e-12)


def q_factor(A):
    Q, R = np.linalg.qr(A)
    return Q * np.sign(np.diag(R))


def unit_columns(A):
    return A / np.linalg.norm(A, axis=0)


def test_both_passes_of_rsg_plus_written_out_by_hand_give_the_same_factors(rng):
    gamma, w = 0.03, 0.7
    solver = RSGPlus(gamma=gamma, weight=w)
    X0, _, state = start_of(solver, rng)
    views, whole = (LEFT, RIGHT), slice(None)
    Q = {(k, i): q_factor(X0[view, k]) for k in range(LANES) for i, view in enumerate(views)}
    T = dict.fromkeys(Q, np.eye(P))
    for (k, i), q in Q.items():
        np.testing.assert_allclose(state.X[views[i], k], q, atol=1e-10)
    for number, (_, rows, _) in enumerate(draws(rng, 4)):
        solver.step(PROBLEM, state, Draw(rows, whole, whole), min(number, 1))
        A = [rows[:, view] for view in views]
        old_q, old_t = dict(Q), dict(T)
        for k, i in old_q:
            q, t = old_q[k, i], old_t[k, i]
            if number == 0:
                Q[k, i] = q_factor(q + gamma * A[i].T @ A[i] @ q)
                continue
            G = -A[i].T @ A[1 - i] @ old_q[k, 1 - i] @ old_t[k, 1 - i]
            blocks = [A[i][r : r + P].T for r in range(0, ROWS, P)]
            H = -sum(E @ np.linalg.inv(q.T @ E) - q for E in blocks) / len(blocks)
            V = G @ t.T + w * H
            R = unit_columns(q.T @ G - G.T @ q) / 2
            Q[k, i] = q_factor(q - STEPS["eta_q"][k] * unit_columns(V - q @ V.T @ q))
            T[k, i] = t @ q_factor(np.eye(P) - STEPS["eta_t"][k] * R)
    for k, i in Q:
        np.testing.assert_allclose(state.Q[views[i], k], Q[k, i], atol=1e-9)
        np.testing.assert_allclose(state.T[i, k], T[k, i], atol=1e-9)
        np.testing.assert_allclose(state.X[views[i], k], Q[k, i] @ T[k, i], atol=1e-9)


@pytest.mark.parametrize("kind", [CDFSG, CDFSGAda, Landing])
def test_the_first_value_of_the_constraint_is_that_of_a_minibatch_of_its_own(kind, rng):
    X0, first, state = start_of(kind(), rng)
    for k in range(LANES):
        np.testing.assert_allclose(state.C[k], X0[:, k].T @ moments(first)[0] @ X0[:, k], atol=1e-12)


@pytest.mark.parametrize("name", SOLVERS)
def test_every_array_of_a_solver_stays_in_single_precision(name, rng, monkeypatch):
    monkeypatch.setattr("cdfsg.solvers.landing.COLUMNS", 1)
    solver = SOLVERS[name]()
    _, _, state = start_of(solver, rng, np.float32)
    for number, (draw, rows, _) in enumerate(draws(rng, 3, np.float32)):
        whole = Draw(rows, slice(None), slice(None))
        solver.step(PROBLEM, state, draw if solver.streams == 2 else whole, min(number, solver.passes - 1))
        kinds = {entry.name: getattr(state, entry.name).dtype for entry in dataclasses.fields(state)}
        assert set(kinds.values()) == {np.dtype(np.float32)}, kinds
    if hasattr(solver, "steps"):
        rows = rng.standard_normal((2 * ROWS, N)).astype(np.float32)
        C = solver.steps(PROBLEM, state, Draws(rows, ROWS, slice(None), slice(None)))
        assert {C.dtype, state.X.dtype} == {np.dtype(np.float32)}
    R = np.ones((2, 2, LANES, P), dtype=np.float32)
    assert apply_kernel(np.ones((2, 3, 2), dtype=np.float32), R).dtype == np.float32


def test_columns_are_normalised_in_every_lane_and_zero_columns_stay_zero(rng):
    A = rng.standard_normal((LANES, N, P))
    A[0, :, 1] = 0
    expected = np.ones((LANES, P))
    expected[0, 1] = 0
    for scaled in (normalise_columns(A), normalise_columns_tall(A.transpose(1, 0, 2)).transpose(1, 0, 2)):
        np.testing.assert_allclose(np.linalg.norm(scaled, axis=1), expected)
        np.testing.assert_allclose(scaled * np.linalg.norm(A, axis=1, keepdims=True), A, atol=1e-14)


def test_columns_of_length_one_are_left_as_they_are():
    A = np.broadcast_to(np.eye(3)[:, :2], (LANES, 3, 2)).copy()
    np.testing.assert_array_equal(normalise_columns(A), A)
    np.testing.assert_array_equal(normalise_columns_tall(A.transpose(1, 0, 2)), A.transpose(1, 0, 2))


def test_a_lane_that_is_not_finite_or_singular_gives_nan_in_qf_and_the_others_their_factor(rng, numpy_raises):
    A = rng.standard_normal((N, 4, P))
    A[0, 0, 0] = np.nan
    A[:2, 1, :2] = [[np.inf, np.inf], [np.inf, -np.inf]]  # inf - inf in A'A, so that every processor has to say so
    A[:, 2, 1] = A[:, 2, 0] = 0
    Q = qf(A, (LEFT, RIGHT))
    assert np.isnan(Q[LEFT, :3]).all()
    assert np.isnan(Q[RIGHT, 2]).all()
    for lane, view in ((3, LEFT), (3, RIGHT), (0, RIGHT), (1, RIGHT)):
        assert np.linalg.cond(A[view, lane]) < 5  # qf loses the square of it times the rounding, 1e-15
        np.testing.assert_allclose(Q[view, lane], q_factor(A[view, lane]), atol=1e-10)


REGULAR = np.array([[[2.0, 1.0], [0.0, 1.0]], [[1.0, -1.0], [1.0, 2.0]]])  # condition numbers 2.6 and 2.6
SINGULAR = np.array([[3.0, 4.0], [3.0, 4.0]])  # as from two rows with equal labels


def inverses(singular, middle, dtype=np.float64):
    """What stands for the inverse of three blocks of one lane, the middle one of them given."""
    rows = np.concatenate([REGULAR[0], middle, REGULAR[1]]).astype(dtype)[:, None]
    return block_inverses(rows, singular)[:, 0].reshape(3, 2, 2).swapaxes(1, 2)


@pytest.mark.parametrize("singular", ["stop", "pseudo-inverse"])
@pytest.mark.parametrize("middle", [SINGULAR, np.full((2, 2), np.nan), np.full((2, 2), np.inf)])
def test_a_regular_block_has_its_inverse_beside_any_other_block(singular, middle, numpy_raises):
    np.testing.assert_allclose(inverses(singular, middle)[[0, 2]], np.linalg.inv(REGULAR), rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("noise", [0.0, 1e-8])  # below single precision
def test_a_block_that_is_singular_to_working_precision_has_a_pseudo_inverse(noise):
    found = inverses("pseudo-inverse", SINGULAR + noise * np.eye(2), np.float32)[1]
    np.testing.assert_allclose(found, SINGULAR.T / 50, rtol=1e-6)  # of rank one: P' / |P|^2


def test_a_singular_block_has_no_inverse_as_published():
    assert np.isnan(inverses("stop", SINGULAR)[1]).all()


@pytest.mark.parametrize("singular", ["stop", "pseudo-inverse", "ridge"])
def test_a_block_that_is_not_finite_has_no_inverse(singular, numpy_raises):
    assert np.isnan(inverses(singular, np.full((2, 2), np.nan))[1]).all()


def test_a_ridge_regularises_every_block_by_a_thousandth_of_its_mean_squared_singular_value():
    for block, found in zip((REGULAR[0], SINGULAR, REGULAR[1]), inverses("ridge", SINGULAR), strict=True):
        left, values, right = np.linalg.svd(block)
        expected = right.T @ np.diag(values / (values**2 + 1e-3 * (values**2).mean())) @ left.T
        np.testing.assert_allclose(found, expected, rtol=1e-11)


def test_rsg_plus_passes_equal_rows_by_a_pseudo_inverse_and_stops_there_by_an_inverse():
    rows = np.tile(np.random.default_rng(0).standard_normal((50, 8)), (2, 1))  # at a stride, each minibatch is a pair
    views = Views("pairs", rows, (4, 4), 1.0, centred=True, provenance=Provenance("here", "none:", "synthetic"))
    X0 = initial_points(RSGPlus(), 8, 2, (1,))
    settings = {"eta_q": np.array([0.1]), "eta_t": np.array([0.01])}
    problem = SampledGCCA(views.sizes, Identity())
    stopped = {
        singular: run(RSGPlus(singular=singular), problem, views, X0, settings, 2, None, dtype=np.float64).stopped_at[0]
        for singular in ("stop", "pseudo-inverse", "ridge")
    }
    assert stopped == {"stop": 51, "pseudo-inverse": -1, "ridge": -1}  # with the first step of the second pass


def test_an_unknown_treatment_of_singular_blocks_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="singular='skip': expected one of 'stop', 'pseudo-inverse', 'ridge'"):
        RSGPlus(singular="skip")


@pytest.mark.parametrize("constant", ["eta1", "eta2"])
def test_the_decay_of_a_moment_lies_in_the_half_open_unit_interval(constant):
    assert getattr(CDFSGAda(**{constant: 0.0}), constant) == 0
    for value in (1.0, -1e-9):
        with pytest.raises(ValueError, match=rf"^{constant} must lie in \[0, 1\)"):
            CDFSGAda(**{constant: value})


@pytest.mark.parametrize(
    "make, name",
    [
        (lambda: CDFSG(beta=-1.0), "beta"),
        (lambda: CDFSGAda(beta=-1.0), "beta"),
        (lambda: CDFSGAda(epsilon=0.0), "epsilon"),
        (lambda: RSGPlus(gamma=0.0), "gamma"),
        (lambda: RSGPlus(weight=0.0), "weight"),
    ],
)
def test_a_constant_that_is_not_positive_is_refused_by_its_name(make, name):
    with pytest.raises(ValueError, match=f"^{name} must be a positive finite number"):
        make()


def test_rsg_plus_takes_as_many_columns_as_its_narrowest_view_has_and_no_more():
    problem, views = SampledGCCA((60, 4), Identity()), load("digits")
    RSGPlus().check(problem, views, 20, 4)
    with pytest.raises(Refusal, match="p <= 4, got p = 5"):
        RSGPlus().check(problem, views, 20, 5)


def test_a_class_that_overrides_step_alone_is_heard_though_it_inherits_steps():
    class Frozen(CDFSG):
        def step(self, problem, state, draw, number):
            state.C = np.zeros_like(state.C)

    class Both(Frozen):
        def steps(self, problem, state, draws):
            state.X += 1
            return step_by_step(self, problem, state, draws, 0)

    views = load("digits")
    X0 = initial_points(CDFSG(), views.n_features, 2, [0])
    problem, settings = SampledGCCA(views.sizes, Identity()), {"s1": [0.5], "s2": [0.1]}
    arguments = (problem, views, X0, settings, 100, 5)
    np.testing.assert_array_equal(run(Frozen(), *arguments, dtype=np.float64).X, X0)
    assert (run(Both(), *arguments, dtype=np.float64).X > X0 + 1).all()
