"""Default settings against the exact solution."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from cdfsg import StochasticGCCA
from cdfsg.datasets.synthetic import make_views
from cdfsg.merits import Huber
from tests.estimator.data import CORRELATIONS, digits, exact, moments, online, stacked, synthetic

PROMISED = 0.95  # of the exact solution, by the defaults; other seeds stay two per cent above it


@pytest.mark.filterwarnings("ignore:not converged")  # at 0.98
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("p", [2, 5])
def test_digits_reach_the_promise_in_five_passes(p, seed):
    views = digits()
    model = online(p, random_state=seed).fit(views)
    assert model.n_epochs_ <= 5 and model.captured_ == pytest.approx(model.score(views) / exact(views, p), abs=1e-6)
    assert PROMISED * exact(views, p) <= model.score(views) <= exact(views, p) * (1 + 1e-9)


@pytest.mark.parametrize("spread", [0, 3])
def test_columns_up_to_a_million_apart_in_scale_reach_the_promise(spread):
    rng = np.random.default_rng(5)
    views = [view * 10 ** rng.uniform(-spread, spread, view.shape[1]) for view in synthetic()]
    model = online(4, random_state=0).fit(views)
    assert model.score(views) >= PROMISED * sum(CORRELATIONS)
    # At this sample size the span is a little off, and correlations fall by its square.
    np.testing.assert_allclose(model.canonical_correlations_, CORRELATIONS, atol=0.02)


def test_near_copies_and_constant_columns_are_no_obstacle():
    rng = np.random.default_rng(2)
    left, right = synthetic()
    left = np.hstack([left, left @ rng.standard_normal((8, 5)) + 1e-5 * rng.standard_normal((len(left), 5))])
    right = np.hstack([right, np.full((len(right), 1), 7.0), right[:, :2]])
    model = online(4, random_state=0).fit([left, right])
    assert np.isfinite(stacked(model)).all()
    assert model.score([left, right]) >= PROMISED * sum(CORRELATIONS)


def test_three_views_reach_the_promise():
    views = synthetic(sizes=(8, 6, 7))
    model = online(3, random_state=0).fit(views)
    K = moments(model, views)
    captured = sum(np.trace(K[i, j]) for i in range(3) for j in range(3) if i != j)
    assert captured >= PROMISED * exact(views, 3)
    # Three views that share their variables: each pair has the same correlations.
    np.testing.assert_allclose(model.canonical_correlations_, CORRELATIONS[:3], atol=0.03)
    assert model.score(views) == pytest.approx(model.canonical_correlations_.sum(), abs=1e-6)


def test_plain_cdfsg_reaches_the_promise_or_warns():
    views = synthetic()
    model = StochasticGCCA(4, algorithm="cdfsg", n_epochs=20, random_state=0).fit(views)
    assert model.score(views) >= PROMISED * sum(CORRELATIONS)
    with pytest.warns(match=r"not converged after 80 steps: the weights capture [\d.]+%.* Raise n_epochs=2, or take"):
        early = StochasticGCCA(4, algorithm="cdfsg", n_epochs=2, random_state=0).fit(views)
    with pytest.warns(match=r"not converged after .*%.* Go on with partial_fit, or take algorithm='exact'"):
        StochasticGCCA(4, algorithm="cdfsg", random_state=0).partial_fit(views)
    assert not early.converged_ and early.score(views) < PROMISED * sum(CORRELATIONS)


def test_correlation_in_directions_of_little_variance_is_found_exactly_or_known_to_be_missed():
    views = synthetic(sizes=(30, 25), condition=300.0)
    model = StochasticGCCA(4, random_state=0).fit(views)
    np.testing.assert_allclose(model.canonical_correlations_, CORRELATIONS, rtol=1e-8)
    with pytest.warns(match="not converged after 200 steps"):
        model = online(4, random_state=0).fit(views)
    assert model.score(views) < PROMISED * sum(CORRELATIONS)
    assert model.captured_ == pytest.approx(model.score(views) / sum(CORRELATIONS), rel=1e-6)


def test_huber_reaches_the_value_of_as_many_different_pairs():
    views = synthetic()
    with pytest.warns(ConvergenceWarning, match="not converged after 200 steps"):  # the optimum is known to be higher
        model = online(4, merit="huber", random_state=0).fit(views)
    value = Huber(0.05).value(np.diagonal(moments(model, views)[0, 1])).sum()
    # Columns (a, b) / sqrt(2) of each pair are stationary; the optimum has (a, -b) / sqrt(2) of the first two besides.
    different, best = (Huber(0.05).value(np.array(rho) / 2).sum() for rho in (CORRELATIONS, (0.9, 0.9, 0.8, 0.8)))
    assert PROMISED * different <= value <= best * (1 + 1e-9)


@pytest.mark.filterwarnings("ignore:not converged")  # at 0.98
def test_single_precision_agrees_with_double():
    views = digits()
    double = online(3, random_state=0).fit(views)
    single = online(3, random_state=0).fit([view.astype(np.float32) for view in views])
    assert single.transform([view.astype(np.float32) for view in views])[0].dtype == np.float32
    # The runs part by rounding, which 200 steps amplify, but far less than the distance from the optimum.
    np.testing.assert_allclose(single.canonical_correlations_, double.canonical_correlations_, atol=2e-3)


@pytest.mark.parametrize("rows", [30, 60, 100])
def test_a_fit_of_few_steps_warns_and_does_what_it_is_told_to_in_a_longer_one(rows):
    for seed in range(3):
        drawn = make_views(rows, (10, 10), (0.9, 0.7, 0.5), seed=seed)
        views = [drawn.data[:, view] for view in drawn.slices]
        with pytest.warns(ConvergenceWarning, match=r"not converged after \d+ steps: .* Raise n_epochs=5"):
            model = online(2, random_state=0).fit(views)
        assert not model.converged_
    longer = online(2, n_epochs=400, random_state=0).fit(views)
    assert longer.converged_ and longer.score(views) > 0.99 * exact(views, 2)
