"""Each solver's step written out by hand, lane by lane, with other constants in every lane."""

import numpy as np
import pytest

from cdfsg.datasets import Provenance, Views, load
from cdfsg.linalg import normalise_columns, normalise_tall_columns, qf, side_by_side, small_qf
from cdfsg.merits import Huber, Identity
from cdfsg.problems import SampledGCCA
from cdfsg.solvers import SOLVERS
from cdfsg.solvers.cdfsg import CDFSG, CDFSGAda
from cdfsg.solvers.engine import Unsupported, initial_points, run
from cdfsg.solvers.landing import Landing
from cdfsg.solvers.rsg_plus import INVERSES, RSGPlus

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
    X0 = side_by_side(rng.standard_normal((LANES, N, P)).astype(dtype) / 3)
    settings = {name: np.repeat(np.array(STEPS[name], dtype=dtype), P).reshape(LANES, 1, P) for name in solver.settings}
    first = rng.standard_normal((ROWS, N)).astype(dtype)
    return X0, first, solver.start(PROBLEM, X0.copy(order="K"), settings, first[None])


def minibatches(rng, count=3, dtype=np.float64):
    """Independent minibatches theta and xi of some steps."""
    for _ in range(count):
        yield rng.standard_normal((2, ROWS, N)).astype(dtype)


def moments(rows):
    """M and the cross moments between the views of a minibatch."""
    S = rows.T @ rows / len(rows)
    M = np.zeros_like(S)
    M[LEFT, LEFT], M[RIGHT, RIGHT] = S[LEFT, LEFT], S[RIGHT, RIGHT]
    return M, S - M


@pytest.mark.parametrize("solver", [CDFSG(beta=0.3), CDFSGAda(beta=0.3, eta1=0.8, eta2=0.6, epsilon=1e-2)])
def test_steps_of_algorithms_1_and_2_by_hand_give_the_same_iterates_and_trackers(rng, solver):
    X0, first, state = start_of(solver, rng)
    X = list(X0)
    Y = [x.T @ moments(first)[0] @ x for x in X]
    D, B, V = ([np.zeros((N, P))] * LANES for _ in range(3))
    for samples in minibatches(rng, 4):
        solver.step(PROBLEM, state, samples)
        M, cross = moments(samples[0])[0], moments(samples[1])[1]
        for k in range(LANES):
            alpha, b = STEPS["s2"][k], STEPS["s2"][k] / STEPS["s1"][k]
            before = X[k].T @ M @ X[k]
            X[k] = X[k] - alpha * (B[k] / np.sqrt(V[k] + 1e-2) if isinstance(solver, CDFSGAda) else D[k])
            after = X[k].T @ M @ X[k]
            Y[k] = Y[k] - b * (Y[k] - before) + after - before
            Q = 1.5 * np.eye(P) - 0.5 * Y[k]
            G = -2 * cross @ X[k] @ Q
            D[k] = G @ Q.T + M @ X[k] @ (0.3 * (Y[k] @ Y[k] - np.eye(P)) - (X[k].T @ G + G.T @ X[k]) / 2)
            V[k] = np.maximum(0.6 * V[k] + 0.4 * D[k] ** 2, V[k])
            B[k] = 0.8 * B[k] + 0.2 * D[k]
            np.testing.assert_allclose(state.C[k], after, atol=1e-10)
    np.testing.assert_allclose(state.X, X, atol=1e-10)
    np.testing.assert_allclose(state.Y, Y, atol=1e-10)


@pytest.mark.parametrize("chunk", [1, 20])
def test_elementwise_passes_in_blocks_of_rows_change_nothing(rng, monkeypatch, chunk):
    found = []
    for entries in (chunk, 10**6):
        monkeypatch.setattr("cdfsg.solvers.cdfsg._IN_CACHE", entries)
        solver, rng = CDFSGAda(), np.random.default_rng(1)
        _, _, state = start_of(solver, rng)
        for samples in minibatches(rng):
            solver.step(PROBLEM, state, samples)
        found.append(state.X)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-14)


def test_landing_steps_written_out_by_hand_give_the_same_iterates(rng):
    solver = Landing()
    X0, _, state = start_of(solver, rng)
    X = list(X0)
    for samples in minibatches(rng):
        solver.step(PROBLEM, state, samples[:1])
        M, cross = moments(samples[0])
        for k in range(LANES):
            U, G = M @ X[k], -cross @ X[k]
            C = X[k].T @ U
            np.testing.assert_allclose(state.C[k], C, atol=1e-10)
            field = (G @ U.T @ U - U @ G.T @ U) / 2 + STEPS["omega"][k] * U @ (C - np.eye(P))
            X[k] = X[k] - STEPS["eta"][k] * field
    np.testing.assert_allclose(state.X, X, rtol=1e-9, atol=1e-10)


def q_factor(A):
    Q, R = np.linalg.qr(A)
    return Q * np.sign(np.diag(R))


def unit_columns(A):
    return A / np.linalg.norm(A, axis=0)


def test_both_passes_of_rsg_plus_written_out_by_hand_give_the_same_factors(rng):
    gamma, w = 0.03, 0.7
    solver = RSGPlus(gamma=gamma, weight=w)
    X0, _, state = start_of(solver, rng)
    views = (LEFT, RIGHT)
    Q = {(k, i): q_factor(X0[k, view]) for k in range(LANES) for i, view in enumerate(views)}
    T = dict.fromkeys(Q, np.eye(P))
    for (k, i), q in Q.items():
        np.testing.assert_allclose(state.X[k, views[i]], q, atol=1e-10)
    for number, samples in enumerate(minibatches(rng, 4)):
        (solver.step if number else solver.power_step)(PROBLEM, state, samples[:1])
        A = [samples[0][:, view] for view in views]
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
        np.testing.assert_allclose(state.Q[k, views[i]], Q[k, i], atol=1e-9)
        np.testing.assert_allclose(state.T[k, i], T[k, i], atol=1e-9)
        np.testing.assert_allclose(state.X[k, views[i]], Q[k, i] @ T[k, i], atol=1e-9)


@pytest.mark.parametrize("kind", [CDFSG, CDFSGAda, Landing])
def test_the_first_value_of_the_constraint_is_that_of_a_minibatch_of_its_own(kind, rng):
    X0, first, state = start_of(kind(), rng)
    for k in range(LANES):
        np.testing.assert_allclose(state.C[k], X0[k].T @ moments(first)[0] @ X0[k], atol=1e-12)


@pytest.mark.parametrize("name", SOLVERS)
def test_every_array_of_a_solver_stays_in_single_precision_and_side_by_side(name, rng):
    solver = SOLVERS[name]()
    _, _, state = start_of(solver, rng, np.float32)
    for number, samples in enumerate(minibatches(rng, 3, np.float32)):
        advance = getattr(solver, solver.epochs[min(number, len(solver.epochs) - 1)])
        advance(PROBLEM, state, samples[: solver.samples_per_step])
        kinds = {entry: value.dtype for entry, value in vars(state).items()}
        assert set(kinds.values()) == {np.dtype(np.float32)}, kinds
    tall = [value for value in vars(state).values() if value.shape == (LANES, N, P)]
    assert tall and all(value.transpose(1, 0, 2).flags.c_contiguous for value in tall)
    state.lanes = np.arange(LANES)
    state.keep(np.array([False, True]))
    assert len(state.X) == 1 and state.X.transpose(1, 0, 2).flags.c_contiguous


def test_columns_are_normalised_in_every_lane_and_zero_columns_stay_zero(rng):
    A = rng.standard_normal((LANES, N, P))
    A[0, :, 1] = 0
    expected = np.ones((LANES, P))
    expected[0, 1] = 0
    for scaled in (normalise_columns(A), normalise_tall_columns(A)):
        np.testing.assert_allclose(np.linalg.norm(scaled, axis=1), expected)
        np.testing.assert_allclose(scaled * np.linalg.norm(A, axis=1, keepdims=True), A, atol=1e-14)


def test_columns_of_length_one_are_left_as_they_are():
    A = np.broadcast_to(np.eye(3)[:, :2], (LANES, 3, 2)).copy()
    np.testing.assert_array_equal(normalise_columns(A), A)
    np.testing.assert_array_equal(normalise_tall_columns(A), A)


def test_a_lane_that_is_not_finite_or_singular_has_nan_as_q_factor(rng, numpy_raises):
    A = rng.standard_normal((4, N, P))
    A[0, 0, 0] = np.nan
    A[1, :2, :2] = [[np.inf, np.inf], [np.inf, -np.inf]]  # inf - inf in A'A, so that every processor has to say so
    A[2, :, 1] = A[2, :, 0] = 0
    far = 1e200 * A[3:]  # its square is beyond the largest number
    Q = qf(np.concatenate([A, far]))
    assert np.isnan(Q[:3]).all() and np.isnan(Q[4]).all()
    assert np.linalg.cond(A[3]) < 5  # qf loses the square of it times the rounding, 1e-15
    np.testing.assert_allclose(Q[3], q_factor(A[3]), atol=1e-10)


def test_a_small_upper_triangle_has_the_identity_as_q_factor():
    np.testing.assert_array_equal(small_qf(0.5 * np.eye(2)[None]), np.eye(2)[None])


REGULAR = np.array([[[2.0, 1.0], [0.0, 1.0]], [[1.0, -1.0], [1.0, 2.0]]])  # condition numbers 2.6 and 2.6
SINGULAR = np.array([[3.0, 4.0], [3.0, 4.0]])  # as from two rows with equal labels


def inverses(singular, middle, dtype=np.float64):
    """What stands for the inverse of three blocks of one lane, the middle one of them given."""
    return INVERSES[singular](np.stack([REGULAR[0], middle, REGULAR[1]]).astype(dtype))


@pytest.mark.parametrize("singular", ["stop", "pseudo-inverse"])
@pytest.mark.parametrize("middle", [SINGULAR, np.full((2, 2), np.nan), np.full((2, 2), np.inf)])
def test_a_regular_block_has_its_inverse_beside_any_other_block(singular, middle, numpy_raises):
    np.testing.assert_allclose(inverses(singular, middle)[[0, 2]], np.linalg.inv(REGULAR), rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("noise", [0.0, 1e-8])  # below single precision
def test_a_block_that_is_singular_to_working_precision_has_a_pseudo_inverse(noise, scale):
    found = inverses("pseudo-inverse", scale * (SINGULAR + noise * np.eye(2)), np.float32)[1]
    np.testing.assert_allclose(found * scale, SINGULAR.T / 50, rtol=1e-6)  # of rank one: P' / |P|^2


def test_a_regular_block_of_a_lane_that_is_far_off_has_its_inverse(numpy_raises):
    found = inverses("pseudo-inverse", 1e200 * REGULAR[0])[1]  # no norm of it is finite
    np.testing.assert_allclose(found * 1e200, np.linalg.inv(REGULAR[0]), rtol=1e-14, atol=1e-15)


def test_a_singular_block_has_no_inverse_as_published():
    assert np.isnan(inverses("stop", SINGULAR)[1]).all()


@pytest.mark.parametrize("singular", ["stop", "pseudo-inverse"])
def test_a_block_that_is_not_finite_has_no_inverse(singular, numpy_raises):
    assert np.isnan(inverses(singular, np.full((2, 2), np.nan))[1]).all()


def test_rsg_plus_passes_equal_rows_by_a_pseudo_inverse_and_not_by_an_inverse():
    rows = np.tile(np.random.default_rng(0).standard_normal((50, 8)), (2, 1))  # at a stride, each minibatch is a pair
    views = Views("pairs", rows, (4, 4), 1.0, centred=True, provenance=Provenance("here", "none:", "synthetic"))
    X0 = initial_points(RSGPlus(), 8, 2, (1,))
    settings = {"eta_q": np.array([0.1]), "eta_t": np.array([0.01])}
    problem = SampledGCCA(views.sizes, Identity())
    stopped = {
        singular: run(RSGPlus(singular=singular), problem, views, X0, settings, 2, None, dtype=np.float64).stopped_at[0]
        for singular in ("stop", "pseudo-inverse")
    }
    assert stopped == {"stop": 51, "pseudo-inverse": -1}  # with the first step of the second pass


@pytest.mark.parametrize("constant", ["eta1", "eta2"])
def test_the_decay_of_a_moment_lies_in_the_half_open_unit_interval(constant):
    assert getattr(CDFSGAda(**{constant: 0.0}), constant) == 0
    for value in (1.0, -1e-9):
        with pytest.raises(ValueError, match=rf"^{constant} must lie in \[0, 1\)"):
            CDFSGAda(**{constant: value})


def test_rsg_plus_takes_as_many_columns_as_its_narrowest_view_and_the_identity_merit():
    problem, views = SampledGCCA((60, 4), Identity()), load("digits")
    RSGPlus().check(problem, views, 20, 4)
    with pytest.raises(Unsupported, match="p <= 4, got p = 5"):
        RSGPlus().check(problem, views, 20, 5)
    with pytest.raises(Unsupported, match="identity merit"):
        RSGPlus().check(SampledGCCA((60, 4), Huber(0.1)), views, 20, 4)
