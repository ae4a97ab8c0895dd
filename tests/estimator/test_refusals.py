"""What is refused, beyond the cases of `tests.torture.refusals_estimator`."""

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


@pytest.mark.parametrize("view", [spoilt(np.nan, np.float32)[1], sparse.csr_array(spoilt(np.nan)[1])])
def test_missing_values_are_refused_in_single_precision_and_in_sparse_views(view):
    with pytest.raises(ValueError, match="view 1 contains NaN: drop those rows in all views"):
        StochasticGCCA().fit([spoilt(0)[0], view])


@pytest.mark.parametrize(
    "parameters, words",
    [
        ({"n_components": 2.0}, "n_components=2.0: expected a whole number"),
        ({"batch_size": 3, "n_components": 4}, "first minibatch has 3 row.* n_components = 4"),
        ({"merit": ["huber"]}, r"merit=\['huber'\]: expected one of"),
        ({"callbacks": "print"}, "callbacks='print': expected callables"),
        ({"view_sizes": (7.0, 7.0)}, "expected two or more widths"),
    ],
)
def test_invalid_parameters_are_refused_by_name_and_value(parameters, words):
    with pytest.raises(ValueError, match=words):
        StochasticGCCA(**parameters).fit(synthetic(300))


def test_rows_without_two_different_directions_are_refused():
    left, _ = synthetic(300)
    with pytest.raises(ValueError, match="span fewer than n_components=2 directions"):
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


@pytest.mark.parametrize("method", ["transform", "score", "calibrate", "get_feature_names_out"])
def test_a_model_must_be_fitted(method):
    with pytest.raises(NotFittedError):
        getattr(StochasticGCCA(), method)(synthetic(300))


def test_a_fit_in_progress_follows_no_change_of_its_problem():
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
    with pytest.raises(ValueError, match=r"view 0: a Dask array of shape \(nan, 8\).* compute_chunk_sizes"):
        StochasticGCCA().fit([left[left[:, 0] > 0], right])
