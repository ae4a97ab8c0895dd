"""A ridge on the constraint."""

import numpy as np
import pytest
from scipy.linalg import block_diag, eigh
from sklearn.model_selection import ShuffleSplit

from cdfsg import StochasticGCCA
from cdfsg.estimator import permutation_test
from tests.estimator.data import covariance, stacked, synthetic

RIDGE = [0.3, 0.5, 0.2]


def pencil(views, ridge):
    """``S_off`` and ``M + ridge I``."""
    S, cuts = covariance(views), np.cumsum([view.shape[1] for view in views])[:-1]
    blocks = [np.cov(view.T, bias=True) for view in views]
    M = block_diag(*(block + r * np.eye(len(block)) for block, r in zip(blocks, ridge, strict=True)))
    return S - block_diag(*(S[part[:, None], part] for part in np.split(np.arange(len(S)), cuts))), M


@pytest.mark.filterwarnings("ignore:not converged")
@pytest.mark.parametrize("merit", ["identity", "huber"])
@pytest.mark.parametrize("algorithm", ["exact", "cdfsg-ada", "cdfsg"])
@pytest.mark.parametrize("sizes", [(8, 6), (8, 6, 7)])
def test_the_weights_satisfy_the_constraint_with_the_ridge(sizes, algorithm, merit):
    views = synthetic(sizes=sizes)
    ridge = RIDGE[: len(sizes)]
    model = StochasticGCCA(3, ridge=ridge, algorithm=algorithm, merit=merit, random_state=0).fit(views)
    np.testing.assert_allclose(stacked(model).T @ pencil(views, ridge)[1] @ stacked(model), np.eye(3), atol=1e-8)
    scores = np.array(model.transform(views))
    means = [np.corrcoef(scores[:, :, r])[np.triu_indices(len(views), 1)].mean() for r in range(3)]
    np.testing.assert_allclose(model.canonical_correlations_, means, atol=1e-8)


@pytest.mark.parametrize("settings", [{}, {"algorithm": "cdfsg-ada"}, {"algorithm": "cdfsg"}])
@pytest.mark.parametrize("sizes", [(8, 6), (8, 6, 7)])
def test_every_algorithm_finds_the_leading_eigenvectors_of_the_pencil(sizes, settings):
    views = synthetic(sizes=sizes)
    ridge = RIDGE[: len(sizes)]
    S, M = pencil(views, ridge)
    best = eigh(S, M, eigvals_only=True)[::-1][:3].sum()
    X = stacked(StochasticGCCA(3, ridge=ridge, random_state=0, tol=1e-3, n_epochs=40, **settings).fit(views))
    assert 0.995 * best < np.trace(X.T @ S @ X) < best * (1 + 1e-9)
    plain = stacked(StochasticGCCA(3).fit(views))
    plain = plain @ np.linalg.inv(np.linalg.cholesky(plain.T @ M @ plain)).T
    assert np.trace(plain.T @ S @ plain) < 0.995 * best  # the ridge asks for other weights


@pytest.mark.parametrize("algorithm", ["auto", "cdfsg-ada"])
def test_the_certificate_of_wide_views_counts_the_ridge(algorithm, monkeypatch):
    monkeypatch.setattr("cdfsg.estimator.fitting.WIDEST", 3)
    views = synthetic(sizes=(8, 6, 7))
    S, M = pencil(views, RIDGE)
    model = StochasticGCCA(3, ridge=RIDGE, algorithm=algorithm, random_state=0).fit(views)
    X = stacked(model)
    share = np.trace(X.T @ S @ X) / eigh(S, M, eigvals_only=True)[::-1][:3].sum()
    np.testing.assert_allclose(X.T @ M @ X, np.eye(3), atol=1e-8)
    assert share > 0.99 and model.captured_ == pytest.approx(share, abs=5e-3)


def test_more_columns_than_rows_need_a_ridge_and_then_tell_of_other_rows():
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(120, 1))
    views = [latent * (np.arange(n) < n / 10) + rng.normal(size=(120, n)) for n in (300, 200)]
    half = ShuffleSplit(4, test_size=0.5, random_state=0)
    held_out = [
        permutation_test(StochasticGCCA(ridge=ridge), views, cv=half, n_permutations=1, random_state=0).correlations[0]
        for ridge in (0.0, 10.0)
    ]
    assert held_out[1] > held_out[0] + 0.2 and held_out[1] > 0.7


@pytest.mark.parametrize("ridge", [1e-9, 1.0, 1e3])
def test_a_component_beyond_the_rank_of_a_view_has_no_weight_there_and_no_correlation(ridge):
    left, right = synthetic()
    for views in ([left, right[:, :1] * [1.0, 2.0, 3.0]], [left[:2], right[:2]]):
        model = StochasticGCCA(3, ridge=ridge).fit(views)
        np.testing.assert_allclose(model.canonical_correlations_[1:], 0, atol=1e-9)
        assert 0.3 < model.canonical_correlations_[0] <= 1 + 1e-9 and not model.weights_[1][:, 1:].any()


@pytest.mark.parametrize("ridge", [1e-9, 1.0])
def test_copies_of_columns_share_what_a_ridge_gives_one(ridge):
    left, right = synthetic()
    one = StochasticGCCA(3, ridge=[ridge, 0]).fit([left, right])
    two = StochasticGCCA(3, ridge=[2 * ridge, 0]).fit([np.hstack([left, left]), right])
    np.testing.assert_allclose(two.weights_[0][:8] + two.weights_[0][8:], one.weights_[0], atol=1e-5)
    np.testing.assert_allclose(two.weights_[0][:8], two.weights_[0][8:], atol=1e-5)


@pytest.mark.parametrize("ridge, value", [(-1.0, "-1.0"), ([1.0, np.inf], "inf"), ("1", "'1'")])
def test_a_ridge_is_a_number_of_at_least_zero_or_one_per_view(ridge, value):
    with pytest.raises(ValueError, match=f"ridge must be a finite number of at least 0, got {value}"):
        StochasticGCCA(ridge=ridge).fit(synthetic(300))


def test_a_fit_in_progress_keeps_its_ridge():
    views = synthetic(300)
    model = StochasticGCCA(ridge=1).partial_fit(views)
    with pytest.raises(ValueError, match="ridge=2, but the fit began with 1"):
        model.set_params(ridge=2).partial_fit(views)
