"""What is refused, and in which words."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from cdfsg import StochasticGCCA
from tests.estimator.data import synthetic

pytestmark = pytest.mark.filterwarnings("ignore:not converged")


def spoilt(value, dtype=float):
    left, right = (view.astype(dtype) for view in synthetic(300))
    right[7, 3] = value
    return [left, right]


@pytest.mark.parametrize(
    "views, words",
    [
        ([], "views has 0 views: expected at least two"),
        ([np.ones((9, 2))], "views has 1 view: expected at least two"),
        (np.ones((9, 4)), "views of type ndarray: expected a list of arrays, one per view; .* view_sizes"),
        ([np.ones((9, 2)), np.ones((8, 2))], "views with 9, 8 rows: expected the same number"),
        ([np.ones(9), np.ones((9, 2))], r"view 0 of type ndarray and shape \(9,\)"),
        ([np.ones((9, 2, 1)), np.ones((9, 2))], r"view 0 of type ndarray and shape \(9, 2, 1\)"),
        ([np.ones((9, 2)), np.ones((9, 0))], r"view 1: Found array with 0 feature\(s\)"),
        ([np.ones((1, 2)), np.ones((1, 2))], r"view 0: Found array with 1 sample\(s\)"),
        ([np.ones((9, 2)), np.ones((9, 2), complex)], "view 1: Complex data not supported"),
        ([np.ones((9, 2)), np.array([["a", "b"]] * 9)], "view 1 holds strings"),
        (spoilt("one", object), "view 1: could not convert string to float"),
        (spoilt(np.nan), "view 1 contains NaN: expected finite numbers; drop the rows with missing values, or fill"),
        (spoilt(np.nan, np.float32), "view 1 contains NaN"),
        (spoilt(np.inf), "view 1 contains infinity"),
        ([sparse.csr_array(view) for view in spoilt(np.nan)], "view 1 contains NaN"),
        ([np.ma.masked_greater(view, 1) for view in synthetic(300)], "view 0 has masked values: expected none missing"),
    ],
)
def test_views_that_are_none_are_refused_in_words(views, words):
    with pytest.raises(ValueError, match=words):
        StochasticGCCA().fit(views)


@pytest.mark.parametrize(
    "parameters, words",
    [
        ({"n_components": 7}, r"n_components=7 with views of \(8, 6\) columns: expected at most 6"),
        ({"n_components": 0}, "n_components=0: expected a whole number of at least 1"),
        ({"n_components": 2.0}, "n_components=2.0: expected a whole number"),
        ({"batch_size": 301}, "batch_size=301, but there are 300 rows: expected at most that"),
        ({"batch_size": 1}, "batch_size=1: expected a whole number of at least 2 or 'auto'"),
        ({"batch_size": "all"}, "batch_size='all': expected a whole number"),
        ({"batch_size": 3, "n_components": 4}, "first minibatch has 3 rows .* or raise batch_size"),
        ({"n_epochs": 0}, "n_epochs=0: expected a whole number of at least 1"),
        ({"merit": "square"}, "merit='square': expected one of 'identity', 'huber'"),
        ({"merit": ["huber"]}, r"merit=\['huber'\]: expected one of"),
        ({"algorithm": "sgd"}, "algorithm='sgd': expected one of 'cdfsg-ada', 'cdfsg'"),
        ({"mu": 0.0}, "mu must be a positive finite number, got 0.0"),
        ({"penalty": -1.0}, "penalty must be a positive finite number, got -1.0"),
        ({"step_size": np.inf}, "step_size must be a positive finite number, got inf"),
        ({"tracking": 1.5}, "tracking=1.5: expected at most 1"),
        ({"tol": -1e-3}, "tol=-0.001: expected a number that is not negative"),
        ({"callbacks": "print"}, "callbacks='print': expected callables"),
        ({"view_sizes": (8, 7)}, r"view_sizes=\(8, 7\), but the views given have the widths \(8, 6\)"),
    ],
)
def test_parameters_that_cannot_be_are_refused_by_name_and_value(parameters, words):
    with pytest.raises(ValueError, match=words):
        StochasticGCCA(**parameters).fit(synthetic(300))


@pytest.mark.parametrize(
    "view_sizes, words",
    [
        ((8, 7), r"X has 14 features, but view_sizes=\(8, 7\) sum to 15"),
        ((14,), r"view_sizes=\(14,\): expected two or more positive whole numbers"),
        ((7.0, 7.0), "expected two or more positive whole numbers"),
        ((14, 0), "expected two or more positive whole numbers"),
        ("thirds", "view_sizes='thirds': expected widths such as"),
    ],
)
def test_widths_that_do_not_fit_the_array_are_refused(view_sizes, words):
    with pytest.raises(ValueError, match=words):
        StochasticGCCA(view_sizes=view_sizes).fit(np.hstack(synthetic(300)))


def test_rows_without_two_different_directions_are_refused():
    left, right = synthetic(300)
    with pytest.raises(ValueError, match="view 0 is constant in the first 20 rows"):
        StochasticGCCA().fit([np.ones_like(left), right])
    with pytest.raises(ValueError, match="span fewer than n_components = 2 directions"):
        StochasticGCCA(2).fit([left[:, :1] * np.ones((1, 2)), left[:, :1] * np.ones((1, 2))])


def test_rows_that_do_not_fit_the_fit_are_refused():
    views = synthetic(300)
    model = StochasticGCCA(2, random_state=0).partial_fit(views)
    for call in (model.partial_fit, model.transform, model.score, model.calibrate):
        with pytest.raises(ValueError, match="view 1 has 5 features, but StochasticGCCA was fitted with 6"):
            call([views[0], views[1][:, :5]])
        with pytest.raises(ValueError, match="views has 3 views, but StochasticGCCA was fitted with 2"):
            call([*views, views[1]])


def test_chunks_of_different_widths_are_refused():
    views = synthetic(300)
    later = [views[0], views[1][:, :5]]
    with pytest.raises(ValueError, match="view 1 has 5 features, but StochasticGCCA was fitted with 6"):
        StochasticGCCA().fit(iter([views, later]))


def test_an_iterator_that_is_used_up_is_refused():
    with pytest.raises(ValueError, match="the iterator gave no rows; if it was read before, make a new one"):
        StochasticGCCA().fit(iter([]))


@pytest.mark.parametrize("method", ["transform", "score", "calibrate", "get_feature_names_out"])
def test_nothing_comes_of_a_model_that_is_not_fitted(method):
    with pytest.raises(NotFittedError):
        getattr(StochasticGCCA(), method)(synthetic(300))


def test_a_fit_in_progress_follows_no_change_of_what_it_looks_for():
    views = synthetic(300)
    model = StochasticGCCA(2, random_state=0).partial_fit(views)
    begun = {"n_components": 2, "merit": "identity", "algorithm": "cdfsg-ada"}
    for name, value in {"n_components": 3, "merit": "huber", "algorithm": "cdfsg"}.items():
        with pytest.raises(ValueError, match=f"^{name}={value!r}, but the fit began with {begun[name]!r}"):
            model.set_params(**{name: value}).partial_fit(views)
        model.set_params(**{name: begun[name]})
    assert model.partial_fit(views).n_samples_seen_ == 600


def test_a_dask_array_of_unknown_length_is_refused():
    da = pytest.importorskip("dask.array")
    left, right = (da.from_array(view, chunks=(100, -1)) for view in synthetic(300))
    with pytest.raises(ValueError, match=r"view 0 is a Dask array of shape \(nan, 8\).* compute_chunk_sizes"):
        StochasticGCCA().fit([left[left[:, 0] > 0], right])
