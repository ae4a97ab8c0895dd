"""What is refused, beyond the cases of `tests.torture.refusals_estimator`."""

import re
import unicodedata
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from cdfsg import StochasticGCCA
from tests.estimator.data import chunks, exact, online, synthetic

pytestmark = pytest.mark.filterwarnings("ignore:not converged")


def spoilt(value, dtype=float):
    left, right = (view.astype(dtype) for view in synthetic(300))
    right[7, 3] = value
    return [left, right]


@pytest.mark.parametrize("view", [spoilt(np.nan, np.float32)[1], sparse.csr_array(spoilt(np.nan)[1])])
def test_missing_values_are_refused_in_single_precision_and_in_sparse_views(view):
    with pytest.raises(ValueError, match="view 1 contains NaN: drop those rows in all views together"):
        StochasticGCCA().fit([spoilt(0)[0], view])


def test_fewer_rows_in_a_minibatch_than_components_are_refused():
    with pytest.raises(ValueError, match="first minibatch has 3 row.* n_components = 4"):
        StochasticGCCA(batch_size=3, n_components=4, algorithm="cdfsg").fit(synthetic(300))


def test_rows_that_do_not_fit_the_fit_are_refused():
    views = synthetic(300)
    model = StochasticGCCA(2, random_state=0).partial_fit(views)
    in_chunks = lambda later: StochasticGCCA().fit(iter([views, later]))  # noqa: E731
    for call in (model.partial_fit, model.transform, model.score, model.calibrate, in_chunks):
        with pytest.raises(ValueError, match="view 1 has 5 features, but StochasticGCCA was fitted with 6"):
            call([views[0], views[1][:, :5]])
        with pytest.raises(ValueError, match="views has 3 views, but StochasticGCCA was fitted with 2"):
            call([*views, views[1]])


@pytest.mark.parametrize("method", ["transform", "score", "calibrate", "get_feature_names_out"])
def test_a_model_must_be_fitted(method):
    with pytest.raises(NotFittedError):
        getattr(StochasticGCCA(), method)(synthetic(300))


def test_a_fit_in_progress_follows_no_change_of_its_problem():
    views = synthetic(300)
    model = StochasticGCCA(2, random_state=0).partial_fit(views)
    begun = model.get_params()
    for name, value in {"n_components": 3, "merit": "huber", "algorithm": "cdfsg", "center": False, "mu": 1.0}.items():
        model.set_params(**{name: value})
        for call in (model.partial_fit, model.calibrate):
            with pytest.raises(ValueError, match=f"^{name}={value!r}, but the fit began with {begun[name]!r}"):
                call(views)
        model.set_params(**{name: begun[name]})
    assert model.set_params(tol=0.5, scale=True).partial_fit(views).n_samples_seen_ == 600


def test_a_dask_array_of_unknown_length_is_refused():
    da = pytest.importorskip("dask.array")
    left, right = (da.from_array(view, chunks=(100, -1)) for view in synthetic(300))
    with pytest.raises(ValueError, match=r"view 0: a Dask array of shape \(nan, 8\).* compute_chunk_sizes"):
        StochasticGCCA().fit([left[left[:, 0] > 0], right])


def labelled(rows, columns, seed=0):
    rows = pd.Index(rows)
    return pd.DataFrame(np.random.default_rng(seed).normal(size=(len(rows), len(columns))), rows, list(columns))


DAYS = pd.date_range("2026-01-01", periods=60)
HOURS = pd.date_range("2026-01-01", periods=60, freq="h")
MONTHS = pd.date_range("2026-01-01", periods=60, freq="MS")
PAIRS = pd.MultiIndex.from_product([range(20), list("xyz")])


@pytest.mark.parametrize(
    "left, right, common",
    [
        (range(60), range(1, 61), 59),  # rows dropped in each table by itself
        (range(60), [*range(59), 999], 59),
        (range(60), range(70), 60),  # tables of different lengths
        (range(60), range(59, -1, -1), 60),
        ([*range(30)] * 2, [*range(1, 31)] * 2, 29),
        (DAYS, DAYS + pd.Timedelta(days=1), 59),
        (PAIRS, PAIRS[::-1], 60),
        ([f"s{i}" for i in range(60)], [f"s{i}" for i in range(5, 65)], 55),
        (range(60), [f"{i:03}" for i in range(60)][::-1], 60),  # text in one table
        (DAYS, DAYS.strftime("%Y-%m-%d")[::-1], 60),
        ([f"S{i} " for i in range(60)], [f"s{i}" for i in range(60)][::-1], 60),
    ],
)
def test_rows_whose_labels_pair_them_otherwise_are_refused_with_the_inner_join(left, right, common):
    views = [labelled(left, "ab"), labelled(right, "cd")]
    model = StochasticGCCA(random_state=0, n_epochs=1)
    fitted = clone(model).fit([labelled(range(60), "ab"), labelled(range(60), "cd", seed=1)])
    for call in (model.fit, model.partial_fit, fitted.transform, fitted.score, fitted.calibrate, fitted.partial_fit):
        with pytest.raises(ValueError, match=f"views 0 and 1 have {common} row labels in common.* inner join"):
            call(views)
    with pytest.raises(ValueError, match="views 1 and 2 have"):
        model.fit([np.ones((60, 1)), *views])


@pytest.mark.parametrize(
    "left, right",
    [
        (range(60), range(60)),
        (range(60), range(100, 160)),
        (range(60), [f"s{i}" for i in range(60)]),
        (range(60), [f"{i}" for i in range(60)]),
        (range(60), pd.Index(range(60), dtype="Int64")),
        ([0] * 60, [0] * 60),
        (DAYS.tz_localize("UTC"), DAYS.tz_localize("UTC").tz_convert("Asia/Tokyo")),
        (PAIRS, range(60)),
    ],
)
def test_equal_labels_and_wholly_different_ones_follow_the_position(left, right):
    views = [labelled(left, "ab"), labelled(right, "cd", seed=1)]
    by_position = StochasticGCCA(random_state=0, n_epochs=1).fit([view.to_numpy() for view in views])
    fitted = StochasticGCCA(random_state=0, n_epochs=1).fit(views)
    np.testing.assert_array_equal(fitted.canonical_correlations_, by_position.canonical_correlations_)


ACCENTS = [f"\u00e9{k}" for k in range(60)]


@pytest.mark.parametrize(
    "left, right",
    [
        (range(-60, 0), [f"{k}.0" for k in range(-60, 0)]),
        (range(60), [f"+{k}" for k in range(60)]),
        (range(10**16, 10**16 + 120, 2), [str(float(k)) for k in range(10**16, 10**16 + 120, 2)]),
        (range(60), [f"{k}.".encode() for k in range(60)]),
        (ACCENTS, [unicodedata.normalize("NFD", label) for label in ACCENTS]),
        (PAIRS, [(str(k), label.encode()) for k, label in PAIRS]),
        (HOURS, HOURS.strftime("%Y-%m-%dT%H:%M:%S")),
        (DAYS, DAYS.strftime("%Y/%m/%d")),
        (DAYS, DAYS.strftime("%Y%m%d")),
        (DAYS, DAYS.strftime("%Y%m%d").astype(int)),
        (HOURS, HOURS.tz_localize("UTC")),
        (DAYS, DAYS.tz_localize("Asia/Tokyo")),  # whose clocks they show
        (HOURS.tz_localize("UTC"), HOURS.tz_localize("UTC").tz_convert("Asia/Tokyo")),
        (DAYS.tz_localize("Asia/Tokyo"), [day.isoformat() for day in DAYS.tz_localize("Asia/Tokyo")]),
        (DAYS, [day.isoformat() for day in DAYS.tz_localize("Asia/Tokyo")]),
        (MONTHS, MONTHS.to_period("M")),
        (MONTHS.to_period("M"), MONTHS + pd.offsets.MonthEnd()),
        (pd.period_range("1950", periods=60, freq="Y"), range(1950, 2010)),
    ],
)
def test_labels_of_two_kinds_are_the_same_where_people_read_them_so_and_are_not_paired_by_position(left, right):
    views = [labelled(left, "ab"), labelled(right, "cd", seed=1)]
    model = StochasticGCCA().fit(views)
    assert model._same_labels
    shuffled = views[1].sample(frac=1, random_state=0)
    for call in (StochasticGCCA().fit, model.transform, model.score):
        with pytest.raises(ValueError, match="views 0 and 1 have 60 row labels in common"):
            call([views[0], shuffled])


@pytest.mark.parametrize(
    "left, right",
    [
        (["1_0", "10", "x"], ["10", "1_0", "x"]),
        ([2**53, 2**53 + 1, 0], [str(2**53 + 1), str(2**53), "0"]),  # one number in double precision
    ],
)
def test_labels_that_differ_are_never_read_as_one(left, right):
    with pytest.raises(ValueError, match="views 0 and 1 have 3 row labels in common"):
        StochasticGCCA().fit([labelled(left, "ab"), labelled(right, "cd")])


NAMED = labelled(range(60), "ab"), labelled(range(60), "cd", seed=1)


@pytest.mark.parametrize(
    "fitted, given",
    [
        ([NAMED[0], NAMED[1].to_numpy()], [NAMED[0][["b", "a"]], NAMED[1].to_numpy()]),
        ([NAMED[0], NAMED[1].to_numpy()], [NAMED[0].set_axis(["a", "x"], axis=1), NAMED[1]]),
        ([NAMED[0], NAMED[1].set_axis([0, 1], axis=1)], [NAMED[0][["b", "a"]], NAMED[1]]),
        ([pd.DataFrame(view.to_numpy()) for view in NAMED], [pd.DataFrame(NAMED[0].to_numpy())[[1, 0]], NAMED[1]]),
    ],
)
def test_columns_in_another_order_are_refused_view_by_view(fitted, given):
    words = "view 0 has the column .*, where StochasticGCCA was fitted with .*; give columns of the same names"
    model = StochasticGCCA().fit(fitted)
    for call in (model.transform, model.score, model.calibrate, model.partial_fit):
        with pytest.raises(ValueError, match=words):
            call(given)
    with pytest.raises(ValueError, match=words):
        StochasticGCCA().fit(iter([fitted, given]))
    with pytest.raises(ValueError, match=words):
        StochasticGCCA().partial_fit(fitted).partial_fit(given)


def test_views_without_names_and_columns_that_are_only_numbered_are_known_by_their_position():
    arrays = [view.to_numpy() for view in NAMED]
    numbered = [pd.DataFrame(view) for view in arrays]
    for fitted, given in [(NAMED, arrays), (arrays, NAMED), (NAMED, numbered), (numbered, NAMED)]:
        model = StochasticGCCA().fit(fitted)
        assert model.score(given) == model.score(fitted)
    one = StochasticGCCA(view_sizes=(2, 2)).fit(pd.concat(NAMED, axis=1))
    assert one.score(NAMED) == one.score(pd.concat(NAMED, axis=1))
    with pytest.raises(ValueError, match="view 1 has the column 'd', where StochasticGCCA was fitted with 'c'"):
        one.transform([None, NAMED[1][["d", "c"]]])


def test_the_join_that_a_refusal_advises_pairs_the_rows():
    left, right = (pd.DataFrame(view) for view in synthetic(600))
    right = right.add_prefix("r")
    whole = exact([left.to_numpy(), right.to_numpy()], 1)
    left, right = left.sample(frac=0.9, random_state=0), right.sample(frac=0.9, random_state=1)
    with pytest.raises(ValueError, match="X.loc"):
        StochasticGCCA().fit([left, right])
    rows = left.index.intersection(right.index)
    model = StochasticGCCA(random_state=0, n_epochs=20).fit([left.loc[rows], right.loc[rows]])
    assert model.canonical_correlations_[0] > 0.95 * whole


def test_chunks_of_different_labels_after_chunks_of_equal_ones_are_refused():
    first, later = labelled(range(60), "ab"), labelled(range(60, 120), "ab")
    chunks = [[first, first], [later, labelled(range(61, 121), "ab")], [later, labelled(range(200, 260), "ab")]]
    for bad, words in ((1, "59 row labels in common"), (2, "had the same ones in earlier rows")):
        for begin in (StochasticGCCA().partial_fit, StochasticGCCA(n_epochs=1).fit):
            model = begin(chunks[0])
            with pytest.raises(ValueError, match=words):
                model.partial_fit(chunks[bad])
            assert model.partial_fit([later, later]).n_samples_seen_ == 120
        with pytest.raises(ValueError, match=words):
            StochasticGCCA().fit(iter([chunks[0], chunks[bad]]))
    other = StochasticGCCA().partial_fit(chunks[2])  # these may be meant
    other.partial_fit([first, labelled(range(300, 360), "ab")])


def digits_of(kind):
    return pd.Series([str(k % 3) for k in range(60)]).astype(kind)


@pytest.mark.parametrize(
    "column",
    [
        digits_of("category"),
        digits_of(int).astype("category"),
        digits_of(int).astype(pd.CategoricalDtype([0, 1, 2], ordered=True)),
        digits_of(object),
        digits_of("string"),
        pd.Series(DAYS),
        pd.Series(DAYS.to_period("D")),
        pd.Series([[k] for k in range(60)]),
    ],
)
def test_columns_of_categories_and_of_strings_are_not_taken_as_numbers(column):
    with pytest.raises(ValueError, match="view 0 has the column 'q' of type .*expected numbers.*get_dummies"):
        StochasticGCCA().fit([labelled(range(60), "ab").assign(q=column), labelled(range(60), "c")])


@pytest.mark.parametrize(
    "view, words",
    [
        (digits_of(object).to_numpy()[:, None], "view 0 has strings"),
        (np.zeros(60, dtype=[("a", float)]), r"view 0 has fields \('a',\).* give .*structured_to_unstructured\(view\)"),
    ],
)
def test_arrays_of_strings_or_with_fields_are_refused(view, words):
    with pytest.raises(ValueError, match=words):
        StochasticGCCA().fit([view, np.ones((60, 2))])


def test_decimals_in_tables_and_categories_that_were_converted_are_numbers():
    views = [labelled(range(60), "ab").round(3), labelled(range(60), "c", seed=1)]
    plain = StochasticGCCA().fit([views[0].assign(q=digits_of(int)), views[1]])
    exact_numbers = views[0].map(lambda value: Decimal(f"{value:.3f}")).assign(q=digits_of(int))
    np.testing.assert_allclose(StochasticGCCA().fit([exact_numbers, views[1]]).weights_[0], plain.weights_[0])


class Loader:
    """What can be iterated again, as a torch.utils.data.DataLoader."""

    def __init__(self, views):
        self.views = views

    def __iter__(self):
        return chunks(self.views, 100)


@pytest.mark.parametrize("views", [Loader(synthetic(300)), dict(enumerate(synthetic(300))), np.ones((2, 60, 3))])
def test_what_is_no_list_of_views_is_refused_with_the_ways_to_give_it(views):
    with pytest.raises(ValueError, match=r"view_sizes.* list\(views.values\(\)\).* fit\(lambda: views\)"):
        StochasticGCCA().fit(views)


def test_a_loader_gives_chunks_through_a_function_and_an_iterator_through_fit():
    views = synthetic(300)
    loader = Loader(views)
    assert online(n_epochs=2, tol=0).fit(lambda: loader).n_samples_seen_ == 600
    with pytest.raises(ValueError, match="views of type generator: expected a list of arrays"):
        StochasticGCCA().partial_fit(chunks(views, 100))


@pytest.mark.parametrize("method", ["to_frame()", "collect()", "to_dask_array(lengths=True)"])
def test_series_and_lazy_frames_are_refused_with_the_method_that_makes_them_a_table(method):
    class Lazy:
        def __getattr__(self, name):
            if name + "(" != method[: len(name) + 1]:
                raise AttributeError(name)

    for view in [Lazy(), *([pd.Series(range(60))] * (method == "to_frame()"))]:
        with pytest.raises(ValueError, match=re.escape(f"give its {method}")):
            StochasticGCCA().fit([np.ones((60, 2)), view])
