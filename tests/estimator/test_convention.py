"""Scaling, order and sign of the weights; what a change of units does to a fit."""

import numpy as np
import pytest

from cdfsg import StochasticGCCA
from cdfsg.metrics import cross_moments, feasibility
from tests.estimator.data import digits, moments, stacked, synthetic

pytestmark = pytest.mark.filterwarnings("ignore:not converged")
TWO = {"n_epochs": 2, "random_state": 0}  # passes, enough to see a convention


@pytest.mark.parametrize("merit", ["identity", "huber"])
@pytest.mark.parametrize("algorithm", ["cdfsg-ada", "cdfsg"])
@pytest.mark.parametrize("sizes", [(8, 6), (8, 6, 7)])
def test_the_columns_are_orthonormal_ordered_and_signed(merit, algorithm, sizes):
    views = synthetic(sizes=sizes)
    model = StochasticGCCA(3, merit=merit, algorithm=algorithm, **TWO).fit(views)
    K = moments(model, views)
    assert feasibility(K[:, :, None])[0] < 1e-8  # rounding, for 2,000 rows of order one
    magnitudes = np.array([np.abs(np.corrcoef([P[:, r] for P in model.transform(views)])).mean() for r in range(3)])
    assert (np.diff(magnitudes) <= 1e-12).all()  # of the pairs' correlations, which Huber's merit sees without a sign
    first = model.weights_[0]
    assert (first[np.abs(first).argmax(axis=0), range(3)] > 0).all()


@pytest.mark.parametrize("sizes", [(8, 6), (8, 6, 7)])
def test_correlations_covariances_and_score_are_of_the_projections(sizes):
    views = synthetic(sizes=sizes)
    model = StochasticGCCA(2, **TWO).fit(views)
    pairs = np.triu_indices(len(views), 1)
    scores = np.array(model.transform(views))  # (m, N, p)
    correlations = [np.corrcoef(scores[:, :, r])[pairs].mean() for r in range(2)]
    np.testing.assert_allclose(model.canonical_correlations_, correlations, atol=1e-10)
    assert model.score(views) == pytest.approx(model.canonical_correlations_.sum(), abs=1e-9)
    lengths = np.array([np.linalg.norm(weights, axis=0) for weights in model.weights_])
    covariances = [np.cov(scores[:, :, r] / lengths[:, r, None], bias=True)[pairs].mean() for r in range(2)]
    np.testing.assert_allclose(model.explained_covariance_, covariances, rtol=1e-9)


@pytest.mark.parametrize("algorithm", ["cdfsg-ada", "cdfsg"])
@pytest.mark.parametrize("merit", ["identity", "huber"])
def test_units_of_columns_change_nothing_but_rounding(merit, algorithm):
    views = synthetic()
    # Powers of two keep the digits; the steps then differ by rounding alone.
    factors = [2.0 ** np.random.default_rng(i).integers(-10, 11, view.shape[1]) for i, view in enumerate(views)]
    settings = {"merit": merit, "algorithm": algorithm, **TWO}
    plain = StochasticGCCA(3, **settings).fit(views)
    scaled = StochasticGCCA(3, **settings).fit([view * f for view, f in zip(views, factors, strict=True)])
    np.testing.assert_allclose(scaled.canonical_correlations_, plain.canonical_correlations_, rtol=1e-9)
    # The sign is a matter of units, as it goes by the largest entry.
    for w, v, f in zip(scaled.weights_, plain.weights_, factors, strict=True):
        np.testing.assert_allclose(np.abs(w * f[:, None]), np.abs(v), rtol=1e-7, atol=1e-9)


def test_an_offset_of_centred_data_changes_nothing_but_rounding():
    views = synthetic()
    plain = StochasticGCCA(2, **TWO).fit(views)
    moved = StochasticGCCA(2, **TWO).fit([view + 1024 for view in views])
    np.testing.assert_allclose(moved.canonical_correlations_, plain.canonical_correlations_, rtol=1e-8)
    np.testing.assert_allclose(stacked(moved), stacked(plain), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("ridge", [0.0, 0.5])
def test_scaling_gives_weights_of_standardised_columns_and_the_same_projections(ridge):
    views = [view * 3 for view in synthetic()]
    plain, scaled = (StochasticGCCA(2, ridge=ridge, scale=scale).fit(views) for scale in (False, True))
    for w, v, view in zip(scaled.weights_, plain.weights_, views, strict=True):
        np.testing.assert_allclose(w, v * view.std(axis=0)[:, None], rtol=1e-9)
    for z, u in zip(scaled.transform(views), plain.transform(views), strict=True):
        np.testing.assert_allclose(z, u, atol=1e-9)


def test_without_centring_second_moments_count_and_nothing_is_subtracted():
    views = [view + 0.5 for view in synthetic(offset=0.0)]
    model = StochasticGCCA(2, center=False, n_epochs=3, random_state=0).fit(views)
    raw = np.hstack(views)
    K = cross_moments(stacked(model)[None], raw.T @ raw / len(raw), (8, 6))
    assert feasibility(K)[0] < 1e-8
    assert all((mean == 0).all() for mean in model.means_)
    np.testing.assert_allclose(model.transform(views)[0], views[0] @ model.weights_[0])
    assert model.score(views) == pytest.approx(np.abs(model.canonical_correlations_).sum(), abs=1e-8)


def test_the_means_and_deviations_are_those_of_the_rows():
    views = digits()
    model = StochasticGCCA(1, scale=True, **TWO).fit(views)
    streamed = StochasticGCCA(1, scale=True).partial_fit(views)
    for fitted in (model, streamed):
        for mean, scale, view in zip(fitted.means_, fitted.scales_, views, strict=True):
            np.testing.assert_allclose(mean, view.mean(axis=0), atol=1e-12)
            deviation = view.std(axis=0)
            np.testing.assert_allclose(scale, np.where(deviation > 0, deviation, 1), atol=1e-12)


def test_a_score_on_other_rows_is_centred_on_them():
    views = synthetic()
    model = StochasticGCCA(2, **TWO).fit(views)
    part = [view[:500] for view in views]
    assert model.score([view + 10 for view in part]) == pytest.approx(model.score(part), abs=1e-7)
