"""Loadings, variance explained, and the prediction of a view from others."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from cdfsg import StochasticGCCA
from tests.estimator.data import synthetic

pytestmark = pytest.mark.filterwarnings("ignore:not converged", "ignore:not known to have converged")
FORMS = [{}, {"algorithm": "cdfsg-ada", "n_epochs": 1}, {"scale": True}, {"merit": "huber"}, {"ridge": 0.5}]


def fitted(sizes=(8, 6, 7), **settings):
    views = synthetic(sizes=sizes)
    return views, StochasticGCCA(3, random_state=0, **settings).fit(views)


@pytest.mark.parametrize("settings", FORMS)
def test_loadings_are_the_correlations_of_columns_with_projections(settings):
    views, model = fitted(**settings)
    for view, scores, loadings in zip(views, model.transform(views), model.loadings_, strict=True):
        expected = np.corrcoef(view.T, scores.T)[: view.shape[1], view.shape[1] :]
        np.testing.assert_allclose(loadings, expected, atol=1e-9)


def test_variance_explained_is_that_of_least_squares_on_the_projection_and_adds_up_in_two_views():
    views, model = fitted(sizes=(8, 6))
    for view, scores, ratios in zip(views, model.transform(views), model.explained_variance_ratio_, strict=True):
        Z = view - view.mean(axis=0)
        for r in range(3):
            rest = Z - np.outer(scores[:, r], scores[:, r] @ Z) / (scores[:, r] @ scores[:, r])
            assert ratios[r] == pytest.approx(1 - (rest**2).sum() / (Z**2).sum(), abs=1e-9)
        rest = Z - scores @ np.linalg.lstsq(scores, Z)[0]
        assert ratios.sum() == pytest.approx(1 - (rest**2).sum() / (Z**2).sum(), abs=1e-9)
    scaled = StochasticGCCA(3, scale=True).fit(views)
    shares = [(loadings**2).mean(axis=0) for loadings in scaled.loadings_]
    np.testing.assert_allclose(scaled.explained_variance_ratio_, shares, atol=1e-9)


@pytest.mark.parametrize("settings", FORMS)
def test_a_view_is_predicted_by_least_squares_on_the_projections_of_the_others(settings):
    views, model = fitted(**settings)
    scores = model.transform(views)
    for i, predicted in enumerate(model.predict_views(views)):
        others = np.hstack([np.ones((2000, 1)), *(scores[j] for j in range(3) if j != i)])
        np.testing.assert_allclose(predicted, others @ np.linalg.lstsq(others, views[i])[0], atol=1e-8)


def test_a_missing_view_is_predicted_from_those_that_are_given():
    views, model = fitted()
    whole = model.predict_views(views)
    np.testing.assert_array_equal(model.predict_views([views[0], None, views[2]])[1], whole[1])
    none, second, third = model.predict_views([views[0], None, None])
    assert none is None and second.shape == (2000, 6) and third.shape == (2000, 7)
    thin = model.predict_views([sparse.csr_array(views[0]), None, views[2].astype(np.float32)])[1]
    np.testing.assert_allclose(thin, whole[1], atol=1e-5)


def test_wide_views_are_interpreted_by_a_pass_over_all_rows(monkeypatch):
    monkeypatch.setattr("cdfsg.estimator.fitting.WIDEST", 10)
    views = synthetic(sizes=(8, 6, 7))
    model = StochasticGCCA(3, random_state=0, scale=True).fit(views)
    scores = model.transform(views)
    expected = np.corrcoef(views[1].T, scores[1].T)[:6, 6:]
    np.testing.assert_allclose(model.loadings_[1], expected, atol=1e-6)
    others = np.hstack([np.ones((2000, 1)), scores[0], scores[2]])
    fitted_values = others @ np.linalg.lstsq(others, views[1])[0]
    np.testing.assert_allclose(model.predict_views(views)[1], fitted_values, atol=1e-6)
    model.partial_fit(views)
    with pytest.raises(ValueError, match="call calibrate on all rows"):
        _ = model.loadings_
    expected = np.corrcoef(views[1].T, model.calibrate(views).transform(views)[1].T)[:6, 6:]
    np.testing.assert_allclose(model.loadings_[1], expected, atol=1e-6)


def test_constant_columns_have_no_loading_and_are_predicted_as_they_are():
    left, right = synthetic()
    left = np.hstack([left, np.full((2000, 1), 7.0)])
    model = StochasticGCCA(2).fit([left, right])
    assert (model.loadings_[0][-1] == 0).all()
    np.testing.assert_allclose(model.predict_views([None, right])[0][:, -1], 7.0)


def test_only_a_fitted_model_can_be_interpreted():
    assert not hasattr(StochasticGCCA(), "loadings_")
    with pytest.raises(NotFittedError):
        StochasticGCCA().predict_views(synthetic())
