"""Fits in pieces: by calls, by iterators, interrupted and resumed."""

import copy
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest

from cdfsg import StochasticGCCA
from tests.estimator.data import chunks, exact, online, stacked, synthetic

pytestmark = pytest.mark.filterwarnings("ignore:not converged")


def streamed(views, size, model=None, **settings):
    """Calls of `partial_fit` on chunks of so many rows."""
    model = model or online(2, random_state=0, **settings)
    for chunk in chunks(views, size):
        model.partial_fit(chunk)
    return model


@pytest.mark.parametrize("algorithm", ["cdfsg-ada", "cdfsg"])
@pytest.mark.parametrize("batch_size, call", [(50, 50), (50, 150), (40, 64)])
def test_calls_of_partial_fit_equal_a_fit_in_the_same_order(algorithm, batch_size, call):
    views = synthetic()
    settings = {"algorithm": algorithm, "batch_size": batch_size}
    whole = online(2, n_epochs=2, shuffle=False, tol=0, random_state=0, **settings).fit(views)
    parts = streamed(views, call, **settings)
    parts = streamed(views, call, parts).calibrate(views)
    # The iterates are the same to the last bit; the covariances were summed in other pieces.
    np.testing.assert_array_equal(parts._fit.solver.average, whole._fit.solver.average)
    np.testing.assert_allclose(stacked(parts), stacked(whole), atol=1e-12)
    assert parts.n_samples_seen_ == whole.n_samples_seen_ == 4000


def test_calibration_keeps_the_spans_and_changes_the_rest_little():
    views = synthetic()
    model = streamed(views, 100)
    before, running = model.score(views), model.canonical_correlations_
    model.calibrate(views)
    assert model.score(views) == pytest.approx(before, abs=1e-9)
    # Estimated on 2,000 rows, by weights that were still on their way.
    np.testing.assert_allclose(running, model.canonical_correlations_, atol=0.1)


@pytest.mark.parametrize("algorithm", ["cdfsg-ada", "cdfsg"])
def test_a_stored_model_goes_on_with_the_same_numbers(tmp_path, algorithm):
    views = synthetic()
    half = [view[:1000] for view in views], [view[1000:] for view in views]
    model = streamed(half[0], 100, algorithm=algorithm, scale=True)
    joblib.dump(model, tmp_path / "model")
    again = joblib.load(tmp_path / "model")
    for one in (model, again):
        streamed(half[1], 100, one)
    np.testing.assert_array_equal(stacked(again), stacked(model))
    np.testing.assert_array_equal(again.transform(views)[1], model.transform(views)[1])
    for name in ("means_", "scales_"):
        for a, b in zip(getattr(again, name), getattr(model, name), strict=True):
            np.testing.assert_array_equal(a, b)


def test_partial_fit_continues_a_fit_and_a_second_fit_forgets_the_first():
    views = synthetic()
    model = online(2, n_epochs=1, random_state=0).fit(views)
    first = stacked(model)
    model.partial_fit([view[:100] for view in views])
    assert model.n_samples_seen_ == 2100 and not np.array_equal(stacked(model), first)
    np.testing.assert_array_equal(stacked(model.fit(views)), first)
    assert model.n_samples_seen_ == 2000


@pytest.mark.parametrize("size", [30, 100, 333, 5000])
def test_an_iterator_equals_an_array_in_the_same_order(size):
    views = synthetic()
    settings = {"shuffle": False, "batch_size": 100, "random_state": 0, "n_epochs": 2}
    array = online(2, **settings).fit(views)
    made = online(2, **settings).fit(lambda: chunks(views, size))
    np.testing.assert_allclose(stacked(made), stacked(array), rtol=1e-9, atol=1e-12)


def test_an_iterator_read_once_equals_calls_of_partial_fit():
    views = synthetic()
    calls = streamed(views, 100)._fit.solver.average
    once = online(2, n_epochs=7, random_state=0).fit(chunks(views, 100))
    assert once.n_epochs_ == 1 and once.n_samples_seen_ == 2000
    np.testing.assert_array_equal(once._fit.solver.average, calls)
    model = online(2, view_sizes=(8, 6), random_state=0).fit(np.hstack(chunk) for chunk in chunks(views, 100))
    np.testing.assert_array_equal(model._fit.solver.average, calls)


@pytest.mark.parametrize("form", [np.asarray, pd.DataFrame])
def test_an_iterator_may_have_chunks_without_rows(form):
    views = [form(view) for view in synthetic(300)]
    none = [form(view[:0]) for view in views]
    views[1] = pd.DataFrame(views[1]).set_axis(range(1000, 1300)) if form is pd.DataFrame else views[1]
    model = StochasticGCCA(2).fit(iter([none, views, none]))
    np.testing.assert_array_equal(stacked(model), stacked(StochasticGCCA(2).fit(iter([views]))))
    with pytest.raises(ValueError, match="the iterator gave no rows"):
        StochasticGCCA().fit(iter([none, none]))


@pytest.mark.parametrize("later", [100, 0, 400])
def test_a_callable_must_give_as_many_rows_in_every_pass(later):
    views, lengths = synthetic(400), iter([300, later])
    words = f"gave {later} rows, but 300 in the first pass: views must return a new iterator over the same rows"
    with pytest.raises(ValueError, match=words):
        online(tol=0).fit(lambda: chunks([view[:rows] for view in views], 100) if (rows := next(lengths)) else iter([]))


def test_parameters_that_are_set_after_a_fit_count_from_the_next_call():
    views = synthetic()
    model = StochasticGCCA(2).partial_fit(views)
    far = [view + 10 for view in views]
    score = model.score(far)
    model.set_params(center=False, scale=True, tol="x")
    assert model.score(far) == score and all((scale == 1).all() for scale in model.scales_)
    for call in (model.partial_fit, model.calibrate):
        with pytest.raises(ValueError, match="tol must be a finite number of at least 0, got 'x'"):
            call(views)
    model.set_params(center=True, tol=0.1).calibrate(views)
    np.testing.assert_allclose(model.scales_[0], views[0].std(axis=0))


@pytest.mark.parametrize("algorithm", ["exact", "cdfsg"])
def test_a_copy_goes_on_by_itself_and_shares_the_parameters(algorithm):
    views, told = synthetic(), []
    model = StochasticGCCA(2, algorithm=algorithm, callbacks=lambda *_: told.append(0), random_state=0).fit(views)
    before = pickle.dumps([model.loadings_, model.weights_, model.captured_])
    twin = copy.copy(model).partial_fit([views[0], views[1][::-1]])
    assert pickle.dumps([model.loadings_, model.weights_, model.captured_]) == before
    assert twin.callbacks is model.callbacks and twin.n_samples_seen_ == model.n_samples_seen_ + 2000


def test_ridges_may_be_an_array():
    views = synthetic(300)
    model, listed = (StochasticGCCA(ridge=r).fit(views).partial_fit(views) for r in (np.array([1.0, 2.0]), [1, 2]))
    np.testing.assert_array_equal(stacked(model), stacked(listed))


@pytest.mark.parametrize("size", [1, 7, 100, 150])
def test_rows_wait_until_a_minibatch_is_full_so_that_their_number_per_call_does_not_matter(size):
    views = synthetic(500)
    np.testing.assert_array_equal(stacked(streamed(views, size)), stacked(streamed(views, 500)))


@pytest.mark.parametrize("use", [lambda model, views: model.transform(views), pickle.dumps])
def test_rows_that_wait_are_used_where_the_model_is_if_they_are_worth_a_step(use):
    views = synthetic(1000)
    for rows, used in ((30, 130), (10, 100)):
        model = streamed([view[: 100 + rows] for view in views], 10)
        assert model.n_samples_seen_ == 100
        use(model, views) if use is not pickle.dumps else use(model)
        assert model.n_samples_seen_ == used
    assert online(2).partial_fit([view[:5] for view in views]).transform(views)[0].shape == (1000, 2)


def test_calls_of_partial_fit_give_the_exact_solution_of_all_rows_so_far_at_its_first_use():
    views = synthetic()
    model = StochasticGCCA(2)
    for chunk in chunks(views, 9):
        model.partial_fit(chunk)
    assert "weights_" not in vars(model) and model.algorithm_ == "exact"
    np.testing.assert_allclose(stacked(model), stacked(StochasticGCCA(2).fit(views)), atol=1e-10)


def test_refused_first_rows_leave_nothing_behind():
    views = synthetic()
    model = online(2, random_state=0).partial_fit([view[:2] for view in views])
    with pytest.raises(ValueError, match=r"the first minibatch has 2 row\(s\): expected more than n_components = 2"):
        model.transform(views)
    np.testing.assert_array_equal(stacked(streamed(views, 100, model)), stacked(streamed(views, 100)))


def test_a_refused_call_leaves_the_fit_as_it_was():
    views = synthetic()
    model = streamed([view[:1000] for view in views], 100)
    kept = pickle.dumps(model)
    bad = [view[1000:1300].copy() for view in views]
    bad[1][250, 3] = np.nan  # in its third minibatch
    with pytest.raises(ValueError, match="view 1 contains NaN"):
        model.partial_fit(bad)
    again = streamed(views, 100, pickle.loads(kept))
    np.testing.assert_array_equal(stacked(streamed(views, 100, model)), stacked(again))


def test_a_column_that_begins_to_vary_late_gets_its_weight():
    rng = np.random.default_rng(0)
    left, right = synthetic(n_samples=6000)
    late = rng.standard_normal((len(left), 1))
    left, right = np.hstack([left, 1e3 * late]), np.hstack([right, late + 0.1 * rng.standard_normal(late.shape)])
    left[:300, -1] = 5.0
    model = online(1, shuffle=False, random_state=0).fit([left, right])
    assert model.canonical_correlations_[0] > 0.95  # 0.97 of the late pair; without it 0.9


@pytest.mark.filterwarnings("ignore:.*goes on from the average")
@pytest.mark.parametrize("algorithm", ["auto", "cdfsg-ada", "cdfsg"])
@pytest.mark.parametrize("rare", [[0], [0, 1]])
def test_a_view_that_is_constant_in_most_rows_is_fitted(algorithm, rare):
    rng = np.random.default_rng(0)
    views = [rng.standard_normal((20_000, 1)), rng.standard_normal((20_000, 2))]
    events = np.zeros(20_000)
    events[rng.permutation(20_000)[:40]] = 1
    for i in rare:
        views[i][:, 0] = events
    views[1][:, 1] += 10 * events
    for seed in range(4):
        model = StochasticGCCA(1, algorithm=algorithm, random_state=seed).fit(views)
        assert model.canonical_correlations_[0] > 0.1 or not model.converged_
    if algorithm == "auto":
        assert model.score(views) == pytest.approx(exact(views, 1), rel=1e-6)


def test_a_view_may_begin_to_vary_after_many_chunks():
    views = synthetic(4000)
    views[0][:1000] = views[0][0]
    late = streamed(views, 50, StochasticGCCA(1, algorithm="cdfsg-ada", random_state=0))
    short = streamed([v[1000:] for v in views], 50, StochasticGCCA(1, algorithm="cdfsg-ada", random_state=0))
    rows = [view[1000:] for view in views]
    assert late.score(rows) > 0.9 * short.score(rows)  # of a stream of the other rows alone


@pytest.mark.parametrize("algorithm", ["auto", "cdfsg"])
def test_a_view_that_is_constant_in_all_rows_is_refused_by_fit(algorithm):
    views = [synthetic(300)[0], np.ones((300, 2))]
    for data in (views, iter([views]), lambda: iter([views])):
        with pytest.raises(ValueError, match="view 1 is constant in all 300 rows: drop the view"):
            StochasticGCCA(algorithm=algorithm).fit(data)


def test_a_change_of_coordinates_changes_nothing_in_units_of_the_data():
    solver = streamed(synthetic(), 100)._fit.solver

    def in_units():
        state, scale = solver.state, solver.scale[:, None]
        return [state.X / scale, solver.average / scale, state.D * scale, state.B * scale, state.V * scale**2]

    before = in_units()
    solver._change(solver.deviation * np.arange(1, 15), solver.top * [0.3, 7])
    for a, b in zip(in_units(), before, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
