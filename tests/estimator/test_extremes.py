"""Correlations that rounding, units or offsets hide, against those of the same data without them."""

import numpy as np
import pytest
from scipy import sparse

from cdfsg import StochasticGCCA

RNG = np.random.default_rng(0)
N = 3000
A, B, C, D, H = RNG.standard_normal((5, N))
X, Y = np.c_[A, B], np.c_[A + C, D]
OF_THE_GAP = np.c_[H + 0.3 * C, D]  # correlates with H, which near copies of A alone show
EARLY, BASIS = np.zeros(N), np.linalg.qr(np.c_[np.ones(N - 150), A[:-150]])[0]
EARLY[:-150] = H[:-150] - BASIS @ (BASIS.T @ H[:-150])  # and 0 in the last rows, so that these show no gap
STAMPS = np.round(1.7e18 + 1e4 * X).astype(np.int64)


def correlations(views, **parameters):
    return StochasticGCCA(random_state=0, **parameters).fit(views).canonical_correlations_


@pytest.mark.parametrize("views, plain, parameters", [
    ([np.c_[X, (A + B) - A - B], Y], [X, Y], {"ridge": 1.0}),
    ([np.c_[X, 1e-16 * H], Y], [X, Y], {"ridge": 1e-3}),
    ([sparse.csr_array(X + 1e8), sparse.csr_array(Y + 1e7)], [X, Y], {}),
    ([sparse.csr_array(np.c_[X, np.full(N, 0.1)]), sparse.csr_array(np.c_[Y, np.full(N, 0.1)])], [X, Y], {}),
    ([(X * [1e-23, 1]).astype("f4"), Y.astype("f4")], [X, Y], {}),
    ([(X * 1e-25).astype("f4"), (Y * 1e18).astype("f4")], [X, Y], {}),
    ([np.c_[A, A + 1e-8 * H, 1.7e9 + 300 * B], OF_THE_GAP], [np.c_[A, H, B], OF_THE_GAP], {}),
    ([1e6 + np.c_[A, A + 3e-8 * H], OF_THE_GAP], [np.c_[A, H], OF_THE_GAP], {}),
    ([np.c_[A, A + 1e-8 * EARLY], np.c_[EARLY + C, D]], [np.c_[A, EARLY], np.c_[EARLY + C, D]], {}),
    ([STAMPS, Y], [STAMPS - STAMPS[0], Y], {}),
], ids=["ridge and rounding", "ridge and a tiny unit", "sparse and far from zero", "sparse and constant",
        "tiny float32", "float32 in odd units", "a copy beside a time stamp", "a copy far from zero",
        "a copy that parts early", "nanoseconds"])  # fmt: skip
def test_the_correlation_is_that_of_the_same_data_in_plain_units(views, plain, parameters):
    np.testing.assert_allclose(correlations(views, **parameters), correlations(plain, **parameters), atol=2e-3)


def test_values_that_cannot_be_squared_are_refused():
    with pytest.raises(ValueError, match="view 0 has values of 3.*e-165: float64 needs other units to square them"):
        StochasticGCCA().fit([X * [1e-165, 1], Y])


@pytest.mark.parametrize("gap", [1e-4, 1e-7, 1e-9])
def test_loadings_and_predictions_of_near_copies_are_those_of_their_difference(gap):
    views = [np.c_[A, A + gap * H], OF_THE_GAP]
    model = StochasticGCCA().fit(views)
    predicted, known = model.predict_views([views[0], None])[1][:, 0], OF_THE_GAP[:, 0]
    assert 1 - ((known - predicted) ** 2).mean() / known.var() == pytest.approx(0.9155, abs=1e-3)
    scores = model.transform(views)[0][:, 0]
    own = [np.corrcoef(column, scores)[0, 1] for column in views[0].T]
    np.testing.assert_allclose(model.loadings_[0][:, 0], own, atol=1e-4)
    assert model.explained_variance_ratio_[0, 0] == pytest.approx(np.mean(np.square(own)), rel=1e-2)


@pytest.mark.parametrize("mu", [0.01, 0.05, 0.5])
def test_the_exact_solution_of_an_even_merit_has_the_leading_pair_twice_where_that_is_better(mu):
    rho = np.abs(correlations([X, Y], n_components=2, merit="huber", mu=mu))
    np.testing.assert_allclose(rho, correlations([X, Y])[0], rtol=1e-3)


def test_rows_that_calibrate_leaves_out_are_counted_and_told():
    model, harmed = StochasticGCCA().fit([X, Y]), X.copy()
    harmed[5, 0] = 1e9
    with pytest.warns(UserWarning, match="rows that outweigh all others together were left out, 1 so far"):
        model.calibrate([harmed, Y])
    assert model.n_outliers_ == 1


def test_a_correlation_in_little_variance_is_found_in_wide_views():
    rng = np.random.default_rng(0)
    a, h, w = rng.standard_normal((3, 6000))
    views = [np.c_[a, a + 0.03 * h, rng.standard_normal((6000, 4000))], np.c_[h + 0.3 * rng.standard_normal(6000), w]]
    model = StochasticGCCA(random_state=0).fit(views)  # the noise columns alone reach 0.82 in the sample
    assert model.canonical_correlations_[0] == pytest.approx(0.9863, abs=1e-3)


def best_with_ridge_one(views):
    """The largest canonical correlation with a ridge of 1, from products of rows."""
    rows = len(views[0])
    grams = [Z @ Z.T / rows for Z in (view - view.mean(axis=0) for view in views)]
    one, two = (np.linalg.solve(G + np.eye(rows), G) for G in grams)
    return np.linalg.eigvals(one @ two).real.max() ** 0.5


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_wide_views_find_a_pair_of_columns_in_either_form(form):
    rng = np.random.default_rng(0)
    left, right = (np.where(rng.random((300, n)) < 0.02, 1.0, 0.0) for n in (4100, 40))
    left[:, 0] = 9 * rng.standard_normal(300)
    right[:, 0] += left[:, 0]
    model = StochasticGCCA(ridge=1.0, random_state=0).fit([left, form(right)])
    assert covariance_found(model, [left, right]) == pytest.approx(best_with_ridge_one([left, right]), rel=1e-2)


def covariance_found(model, views):
    left, right = ((view - view.mean(axis=0)) @ w[:, 0] for view, w in zip(views, model.weights_, strict=True))
    return 2 * left @ right / len(left)


@pytest.mark.parametrize("kind", ["f4", "f8"])
def test_wide_views_of_low_rank_have_no_component_of_rounding(kind):
    rng = np.random.default_rng(0)
    a, w, z = rng.standard_normal((3, 1500))
    left, right = np.outer(a, rng.standard_normal(2100)), np.outer(a + w, rng.standard_normal(2100))
    views = [left.astype(kind), (right + np.outer(z, rng.standard_normal(2100))).astype(kind)]
    rho = StochasticGCCA(2, random_state=0).fit(views).canonical_correlations_
    assert rho[0] == pytest.approx(np.corrcoef(a, a + w)[0, 1], abs=2e-2) and abs(rho[1]) < 1e-6


@pytest.mark.parametrize("rows, seed", [(200, 0), (400, 1)])
def test_the_share_of_wide_noise_under_a_ridge_is_not_above_the_true_one(rows, seed):
    rng = np.random.default_rng(seed)
    views = [rng.standard_normal((rows, n)) for n in (3000, 1500)]
    model = StochasticGCCA(ridge=1.0, random_state=0).fit(views)
    found, best = covariance_found(model, views), best_with_ridge_one(views)
    assert model.captured_ <= found / best + 1e-3 and found > 0.99 * best
