"""What a fit says of itself, held against the exact solution; rows that are absurd; data of other natures."""

import warnings

import battery
import numpy as np
import pytest
from natures import KINDS
from scipy import sparse

from cdfsg import StochasticGCCA, exact
from cdfsg.streamed import Moments, absurd_rows
from tests.estimator.data import chunks, digits, online, synthetic
from tests.estimator.data import exact as optimum

QUICK = ("near copy", "felt temperature", "spectra", "counts", "absurd cell", "linnerud", "all dummies", "iris")


@pytest.mark.parametrize("way", battery.WAYS)
@pytest.mark.parametrize("name", QUICK)
def test_no_fit_is_wrong_in_silence_and_the_default_is_exact(name, way):
    draw = KINDS[name](np.random.default_rng(7))
    found = battery.ours(way, draw, 7, battery.total(draw.clean, draw.p))
    assert found.share >= battery.GOAL or found.warned
    assert found.said == pytest.approx(found.share, abs=1e-6)
    if way == "default":
        assert found.share > 0.999 and not found.warned and found.reported == len(draw.planted)


def copies(gap, dtype):
    """Views of a column and nearly a copy of it, whose difference the other view knows."""
    a, h, e, w = np.random.default_rng(0).normal(size=(4, 4000))
    return [np.c_[a, a + gap * h].astype(dtype), np.c_[h + 0.3 * e, 0.5 * a + w].astype(dtype)]


@pytest.mark.parametrize(
    "gap, dtype, rtol", [(0.03, np.float64, 1e-9), (1e-4, np.float32, 1e-3), (1e-6, np.float32, 1e-3)]
)
def test_a_column_that_is_nearly_a_copy_of_another_hides_no_correlation(gap, dtype, rtol):
    views = copies(gap, dtype)
    model, right = StochasticGCCA().fit(views), battery.total(views, 1)
    assert model.algorithm_ == "exact" and model.converged_ and model.captured_ == 1
    assert right > 0.94 and model.canonical_correlations_[0] == pytest.approx(right, rel=rtol)


def test_a_second_pass_finds_what_the_rounding_of_one_hides_and_a_single_one_says_that_it_cannot_know():
    views = KINDS["monomials up to the twelfth"](np.random.default_rng(0)).views
    model = StochasticGCCA(2).fit(views)
    assert model.score(views) == pytest.approx(battery.total(views, 2), rel=1e-6)
    model = StochasticGCCA(2)
    for chunk in chunks(views, 500):
        model.partial_fit(chunk)
    with pytest.warns(match="one pass leaves directions of very little variance to rounding. Call fit"):
        assert not model.converged_
    assert np.isnan(model.captured_)


def test_rows_in_single_precision_are_read_again_where_that_hides_a_direction():
    for views, single in ((synthetic(), True), (copies(1e-3, np.float32), False)):
        short = [view.astype(np.float32) for view in views]
        model = StochasticGCCA().fit(short)
        assert model._fit.exact.single == single
        assert model.canonical_correlations_[0] == pytest.approx(battery.total(short, 1), rel=1e-5)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype, rtol", [(np.float64, 1e-9), (np.float32, 1e-5)])
def test_dependent_columns_are_no_directions_of_little_variance(dtype, rtol):
    full = left, right = synthetic()[0], synthetic()[1][:, :5]
    views = [np.c_[left, left.sum(axis=1)].astype(dtype), np.c_[right, right.mean(axis=1)].astype(dtype)]
    model = StochasticGCCA(2)
    for chunk in chunks(views, 300):
        model.partial_fit(chunk)
    assert model.converged_ and model.captured_ == 1
    assert model.score(views) == pytest.approx(optimum(full, 2), rel=rtol)


@pytest.mark.parametrize("algorithm", ["auto", "cdfsg-ada"])
def test_the_certificate_of_wide_views_is_near_the_truth_and_the_default_goes_on_until_it_is_good(
    algorithm, monkeypatch
):
    monkeypatch.setattr("cdfsg.estimator.fitting.WIDEST", 20)
    views = synthetic(sizes=(30, 25), condition=30.0)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = StochasticGCCA(4, algorithm=algorithm, n_epochs=1, random_state=0).fit(views)
    share = model.score(views) / optimum(views, 4)
    assert model.algorithm_ == "cdfsg-ada" and model.captured_ == pytest.approx(share, abs=0.005)
    if algorithm == "auto":
        assert share > 0.99 and not said
    else:
        assert share < 0.95 and not model.converged_ and "Raise n_epochs=1" in str(said[-1].message)


def test_wide_views_that_are_read_once_are_not_known_to_have_converged_until_they_are_calibrated(monkeypatch):
    monkeypatch.setattr("cdfsg.estimator.fitting.WIDEST", 10)
    views = synthetic()
    model = StochasticGCCA(2, random_state=0)
    with pytest.warns(match="not known to have converged: data so wide"):
        model.partial_fit(views)
    assert np.isnan(model.captured_) and not model.converged_
    model.set_params(tol=0.5).calibrate(views)
    assert model.captured_ == pytest.approx(model.score(views) / optimum(views, 2), abs=0.005) and model.converged_


def test_a_residual_of_zero_at_the_wrong_pair_does_not_deceive_the_certificate(monkeypatch):
    monkeypatch.setattr("cdfsg.estimator.fitting.WIDEST", 10)
    views = synthetic(6000)
    model = online(1, random_state=0).fit(views)
    S = np.cov(np.hstack(views).T, bias=True)
    left = np.arange(14) < 8
    M = S * (left[:, None] == left)
    second = np.linalg.eig(np.linalg.solve(M, S - M))
    x = second[1][:, np.argsort(-second[0].real)[1]].real
    model._fit.solver.average[0] = (x * model._fit.solver.scale)[:, None]
    with pytest.warns(match="the weights capture 88.9%"):
        model.calibrate(views)


@pytest.mark.parametrize("algorithm", ["exact", "cdfsg-ada", "cdfsg"])
@pytest.mark.parametrize("size", [1e3, 1e6])
def test_a_row_that_outweighs_all_others_is_reported_and_leaves_no_trace(algorithm, size):
    views = synthetic(5000)
    clean = StochasticGCCA(2, algorithm=algorithm, shuffle=False, random_state=0).fit(views)
    spoilt = [np.insert(view, 3000, size * view[0], axis=0) for view in views]
    model = StochasticGCCA(2, algorithm=algorithm, random_state=0)
    with pytest.warns(match=r"rows that outweigh all others together were left out, 1 so far; one has the value "):
        model.fit(spoilt)
    assert model.n_outliers_ == 1
    np.testing.assert_allclose(model.canonical_correlations_, clean.canonical_correlations_, atol=0.01)
    assert model.score(views) >= 0.98 * optimum(views, 2)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_rare_large_counts_and_heavy_tails_are_data(form):
    rng = np.random.default_rng(0)
    rare = np.where(rng.uniform(size=(4000, 5)) < 1e-3, rng.integers(1, 256, size=(4000, 5)), 0)
    tails = np.exp(1.5 * rng.normal(size=(4000, 5))) * (rng.uniform(size=(4000, 5)) < 0.5)
    moments = Moments(10)
    for blocks in chunks([rare, tails], 200):
        thin = [form(block.astype(float)) for block in blocks]
        assert not absurd_rows(thin, moments).any()
        moments.update(thin)


def test_a_score_over_many_batches_is_the_correlation_of_all_rows():
    views = synthetic(5000, offset=3.0)
    model = StochasticGCCA(1).fit([view[:2000] for view in views])
    scores = [part[:, 0] for part in model.transform(views)]
    assert model.score(views) == pytest.approx(np.corrcoef(scores)[0, 1], rel=1e-10)


@pytest.mark.filterwarnings("ignore:not converged")
@pytest.mark.parametrize("algorithm", ["exact", "cdfsg-ada"])
def test_with_an_even_merit_the_views_agree_whatever_the_seed(algorithm):
    views = KINDS["five views of one variable"](np.random.default_rng(0)).views
    for seed in range(4):
        model = StochasticGCCA(merit="huber", algorithm=algorithm, random_state=seed).fit(views)
        assert model.canonical_correlations_[0] == pytest.approx(0.5, abs=0.03)
        assert model.score(views) == pytest.approx(model.canonical_correlations_[0], abs=1e-8)


def test_the_default_minibatch_grows_with_the_width():
    from cdfsg.estimator.steps import minibatch_size

    assert minibatch_size("auto", None, 1000, 2) == 100
    assert minibatch_size("auto", None, 2**20, 2) == 2**20 // 500
    assert minibatch_size("auto", 20_000, 2**20, 2) == 500  # forty in a pass
    assert minibatch_size("auto", 100, 10, 2) == 20
    assert minibatch_size("auto", 100, 10, 30) == 60


def test_the_ascent_for_the_huber_merit_raises_its_value_and_stays_feasible():
    views = digits()
    solver = exact.ExactSolver((32, 32), StochasticGCCA(merit="huber").fit(views)._fit.merit, 3, True)
    solver.advance(views)
    K = solver.best[1]
    np.testing.assert_allclose(K.trace(), np.eye(3), atol=1e-9)
    started = StochasticGCCA(3).fit(views)._fit.exact.best[1]
    value = solver.merit.value
    assert value(np.diagonal(K[0, 1])).sum() >= value(np.diagonal(started[0, 1])).sum() - 1e-12


@pytest.mark.filterwarnings("ignore:rows that outweigh all others")
@pytest.mark.parametrize("chunk", [None, 50, 1], ids=["fit", "chunks", "single rows"])
@pytest.mark.parametrize("planted", [[0], [1500, 1501], [2000, 2999]], ids=["first", "neighbours", "last"])
@pytest.mark.parametrize("value", [1e6, 1e30])
def test_absurd_rows_are_left_out_however_large_they_are_and_wherever_they_lie(planted, chunk, value):
    clean = synthetic(3000)
    views = [view.copy() for view in clean]
    for k, row in enumerate(planted):
        views[0][row] *= value * 1e6**k
    model = StochasticGCCA(2)
    if chunk is None:
        model.fit(views)
    else:
        for part in chunks(views, chunk):
            model.partial_fit(part)
    kept = [np.delete(view, planted, axis=0) for view in clean]
    assert model.n_outliers_ == len(planted)
    assert model.score(kept) == pytest.approx(optimum(kept, 2), rel=1e-3)


def test_none_of_very_few_rows_is_absurd():
    rows = np.random.default_rng(0).normal(size=(3, 4200))  # two of them agree in some column by chance
    assert not absurd_rows([rows], Moments(4200)).any()


@pytest.mark.filterwarnings("ignore:rows that outweigh all others")
def test_single_rows_in_new_units_become_data_once_they_are_many():
    views = [view * np.where(np.arange(600) < 200, 1, 1e3)[:, None] for view in synthetic(600)]
    model = StochasticGCCA(2)
    for row in chunks(views, 1):
        model.partial_fit(row)
    assert model.n_outliers_ < 10 and model.n_samples_seen_ > 590


def test_rows_that_come_after_a_second_pass_join_the_moments_of_the_first():
    views = [np.c_[view, view.sum(axis=1)].astype(np.float32) for view in synthetic(2000)]
    for center in (True, False):
        model = StochasticGCCA(2, center=center).fit([view[:1200] for view in views])
        assert model._fit.exact.basis
        found = model.partial_fit([view[1200:] for view in views]).canonical_correlations_
        assert found == pytest.approx(StochasticGCCA(2, center=center).fit(views).canonical_correlations_, abs=1e-3)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_certificate_of_a_stream_is_of_all_its_rows_when_asked():
    before, after = synthetic(2400), synthetic(1600, seed=1)
    model = online(2, random_state=0)
    for chunk in [*chunks(before, 100), *chunks(after, 100)]:
        model.partial_fit(chunk)
    said = model.captured_
    views = [np.concatenate(pair) for pair in zip(before, after, strict=True)]
    assert said == pytest.approx(model.calibrate(views).captured_, abs=1e-6)
    assert model.converged_ == (said >= 0.99)
