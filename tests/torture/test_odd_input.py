"""What looks like bad input and is none gives the right numbers."""

import direct
import numpy as np
import pytest
from scipy import sparse

from cdfsg import metrics
from cdfsg.datasets import Views, make_views
from cdfsg.solvers import SOLVERS
from cdfsg.solvers.engine import initial_points
from tests.solvers.data import GOOD
from tests.torture.refusals import MADE, go, small, views
from tests.torture.refusals_estimator import fit, noise

pytestmark = pytest.mark.case("bad input: looks like it, and gives the right numbers")


def by_hand(name, data, X, batch_size, order, settings):
    """One pass of CDFSG, CDFSG-Ada or Landing with n-by-n matrices."""
    if name != "Landing":
        s1, s2, steps = settings["s1"], settings["s2"], data.n_samples // batch_size
        return direct.dense_run(SOLVERS[name](), data, X, s1, s2, batch_size, order, np.float64, steps)[0]
    blocks = np.zeros((data.n_features,) * 2)
    for view in data.slices:
        blocks[view, view] = 1
    for rows in data.batches(batch_size, [order, 0], np.float64):
        S = rows.T @ rows / batch_size
        U, G = S * blocks @ X, -(S * (1 - blocks)) @ X
        relative = 0.5 * (G @ U.T @ U - U @ G.T @ U)
        X = X - settings["eta"] * (relative + settings["omega"] * U @ (X.T @ U - np.eye(X.shape[1])))
    return X


JOINT = ["CDFSG", "CDFSG-Ada", "Landing"]


def agrees(name, data, p, batch_size=10, **settings):
    """Whether the engine's lane is the one computed by hand; 1e-9: rounding of some ten steps, with a margin."""
    X0 = initial_points(SOLVERS[name](), data.n_features, p, [3])
    settings = GOOD[name] | settings
    lane = go(name, data, X0=X0, batch_size=batch_size, settings={key: [value] for key, value in settings.items()})
    expected = by_hand(name, data, X0[0], batch_size, 5, settings)
    # Algorithms 1 and 2 start with D = 0: their first step stands still.
    assert np.isfinite(expected).all() and (np.abs(expected - X0[0]).max() > 1e-4 or lane.steps == 1)
    np.testing.assert_allclose(lane.X[0], expected, rtol=0, atol=1e-9)
    return lane


SIZES = {"p = n": ((4, 3), 7), "p above n_i": ((4, 3), 5), "one column per view": ((1, 1), 1),
         "one column per view, p = n": ((1, 1), 2), "a view of one column": ((1, 6), 1),
         "p = n, three views": ((3, 2, 4), 9)}  # fmt: skip


@pytest.mark.parametrize("name", JOINT)
@pytest.mark.parametrize("case", SIZES)
def test_extreme_widths_give_the_numbers_of_the_plain_formulas(name, case):
    sizes, p = SIZES[case]
    agrees(name, make_views(60, sizes, (0.7,), seed=2), p)


@pytest.mark.parametrize("name", JOINT)
@pytest.mark.parametrize("batch_size", [1, 59, 60], ids=["one row", "all but one", "all rows"])
def test_batches_of_one_row_and_of_all_give_those_of_the_plain_formulas(name, batch_size):
    step = {"CDFSG": {"s2": 0.01}, "Landing": {"eta": 0.002}}.get(name, {})
    assert agrees(name, small(), 2, batch_size, **step).steps == 60 // batch_size


@pytest.mark.parametrize("b", [1.0, 1.5])
def test_b_of_one_and_above_gives_the_numbers_of_the_plain_formulas(b):
    agrees("CDFSG", small(), 2, s1=0.05 / b, s2=0.05)


@pytest.mark.parametrize("name", JOINT)
def test_constant_columns_keep_their_start_and_do_not_touch_the_others(name):
    data = small()
    wide = np.insert(data.data, [0, 2, 7], [3.0, -1e6, 0.0], axis=1)
    kept = np.array([1, 2, 4, 5, 6, 7, 8])
    constant = Views("constant", wide, (6, 4), 1.0, True, MADE)
    X0 = initial_points(SOLVERS[name](), 10, 2, [3])
    X = go(name, constant, X0=X0).X
    np.testing.assert_allclose(X[:, [0, 3, 9]], X0[:, [0, 3, 9]], atol=1e-7)  # -1e6 is centred to some 1e-10
    np.testing.assert_allclose(X[:, kept], go(name, data, X0=X0[:, kept]).X, atol=1e-7)
    correlations = [metrics.canonical_correlations(some.covariance, some.sizes) for some in (data, constant)]
    np.testing.assert_allclose(correlations[1][:3], correlations[0], atol=1e-9)
    K = [metrics.cross_moments(Y, some.covariance, some.sizes) for Y, some in ((X[:, kept], data), (X, constant))]
    np.testing.assert_allclose(metrics.tcc(K[1]), metrics.tcc(K[0]), atol=1e-9)


@pytest.mark.parametrize("name", JOINT)
def test_data_that_are_constant_altogether_move_nothing_and_have_no_correlation(name):
    data = views(np.full((60, 4), 7.0))
    X0 = initial_points(SOLVERS[name](), 4, 2, [3])
    X = go(name, data, X0=X0).X
    np.testing.assert_array_equal(X, X0)
    K = metrics.cross_moments(X, data.covariance, data.sizes)
    assert metrics.tcc(K) == 0 == metrics.paired_correlations(K)
    np.testing.assert_array_equal(metrics.canonical_correlations(data.covariance, data.sizes), 0)


KINDS = ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", ">f8", ">u2"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_type_gives_the_numbers_of_its_copy_in_double_precision(kind):
    kind = np.dtype(kind)
    rng = np.random.default_rng(0)
    if kind.kind == "f":
        stored = (rng.normal(size=(600, 4)) * 1000).astype(kind)
    else:  # the ends of the range, whose sums and squares do not fit
        ends = np.iinfo(kind)
        stored = np.array([ends.min, 0, ends.max // 2, ends.max], dtype=kind)[rng.integers(0, 4, (600, 4))]
        stored[:, 3] = ends.max
    scale = 1 / float(np.abs(stored.astype(float)).max())
    short, long = (Views("x", values, (2, 2), scale, True, MADE) for values in (stored, stored.astype(np.float64)))
    exact = scale * stored.astype(np.float64)
    # 1e-12: sums of 600 numbers of size 1 in double precision.
    np.testing.assert_allclose(short.mean, exact.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(short.covariance, np.cov(exact.T, bias=True), atol=1e-12)
    np.testing.assert_allclose(short.rows([0, 599], np.float64), exact[[0, 599]] - exact.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(short.rows([5]), long.rows([5]), atol=1e-6)
    for name in SOLVERS:
        np.testing.assert_array_equal(go(name, short).X, go(name, long).X)


@pytest.mark.parametrize("layout", ["by columns", "every other row", "reversed"])
def test_any_layout_in_memory_gives_the_numbers_of_a_plain_copy(layout):
    data = small()
    twice = np.repeat(data.data, 2, axis=0)
    table = {
        "by columns": np.asfortranarray(data.data), "every other row": twice[::2],
        "reversed": np.ascontiguousarray(data.data[:, ::-1])[:, ::-1],
    }[layout]  # fmt: skip
    np.testing.assert_array_equal(go(data=views(table, data.sizes)).X, go(data=views(data.data, data.sizes)).X)


@pytest.mark.parametrize("name", JOINT)
def test_finite_numbers_whose_squares_are_not_have_diverged_without_a_warning(name):
    data = views(np.random.default_rng(0).normal(size=(60, 4)) * 1e200)
    lane = go(name, data)
    assert lane.stopped_at[0] > 0 and np.isnan(lane.X).all()


def test_a_score_far_from_the_mean_loses_no_digits_and_constant_rows_have_none():
    left, right = noise(4), noise(4)[:, :3] + noise(3)
    model = fit([left, right], n_components=2)
    # 1e-6: the mean of 1e9 leaves seven digits of the data.
    np.testing.assert_allclose(model.score([left + 1e9, right]), model.score([left, right]), atol=1e-6)
    assert model.score([np.full((60, 4), 0.1), np.full((60, 3), 0.3)]) == 0
    assert model.score([np.full((60, 4), 0.1), right]) == 0


@pytest.mark.filterwarnings("ignore:not converged")  # three passes are nine steps
@pytest.mark.parametrize("third", [0, 1], ids=["a copy", "a constant"])
def test_components_beyond_the_rank_of_a_view_have_no_correlation(third):
    left, two = noise(4), noise(4)[:, :2] + noise(2)
    right = np.column_stack([two, [two[:, 0], np.ones(60)][third]])
    model = fit([left, right], n_components=3, n_epochs=3)
    views_and_weights = zip((left, right), model.weights_, strict=True)
    constraint = sum(w.T @ np.cov(view.T, bias=True) @ w for view, w in views_and_weights)
    np.testing.assert_allclose(constraint, np.eye(3), atol=1e-9)
    assert (np.abs(model.canonical_correlations_[:2]) > 0.1).all() and abs(model.canonical_correlations_[2]) < 1e-6


def test_chunks_that_turn_from_dense_to_sparse_give_the_numbers_of_dense_ones():
    left, right = noise(4), noise(3)
    as_they_are = [[left[:30], right[:30]], [sparse.csr_array(left[30:]), right[30:]]]
    dense = fit(iter([[left[:30], right[:30]], [left[30:], right[30:]]]))
    np.testing.assert_allclose(fit(iter(as_they_are)).weights_[0], dense.weights_[0], atol=1e-9)


def test_a_fit_that_fails_leaves_no_mixture_with_the_one_before():
    model = fit()
    with pytest.raises(ValueError, match="NaN"):
        model.fit([np.full((60, 2), np.nan), noise(3)])
    with pytest.raises(ValueError, match="not fitted"):
        model.transform([noise(4), noise(3)])
