"""Views that the estimator takes, and the words for those that it does not."""

from collections.abc import Sequence
from itertools import combinations
from numbers import Number
from os import PathLike
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array, validate_data

from cdfsg.estimator.inputs import Source, is_dask
from cdfsg.linalg import Array, view_slices

EXPECTED = "expected real numbers in an array of shape (N, n_i)"
FORMS = "give view_sizes for one array, list(views.values()) for a dict, fit(lambda: views) for a loader of chunks"
PAIRED = (
    "take the inner join of unique labels, rows = X.index.intersection(Y.index) and [X.loc[rows], Y.loc[rows]], "
    "or, if row k of all is one sample, reset_index(drop=True) in every view"
)
CONVERSIONS = ("to_dask_array(lengths=True)", "collect()", "to_frame()")  # of Dask frames, lazy frames, Series


def read_chunk(estimator: Any, views: Any, *, reset: bool) -> Source:
    """Read rows of a fit; where the views of earlier rows had the same labels, those of these rows must, too."""
    source = read_features(estimator, views, at_least=1, reset=reset)
    if estimator._same_labels and source.same_labels is False:
        raise ValueError(f"the views have different row labels, but had the same ones in earlier rows: {PAIRED}")
    estimator._same_labels = estimator._same_labels or source.same_labels
    return source


def read_features(estimator: Any, views: Any, *, at_least: int, reset: bool = False, some: bool = False) -> Source:
    """Read views; with `reset` for a new fit, else with the columns of the last; with `some`, a few may be None."""
    listed = isinstance(views, list | tuple)
    table = not listed and _dimensions(views) == 2
    if table and not reset:
        validate_data(estimator, views, reset=False, skip_check_array=True)  # number and names of the columns
    source = read_views(views, estimator.view_sizes, at_least=at_least, some=some)
    names = _column_names([views[i] for i in source.views]) if listed else None
    if not reset:
        _require_features(estimator, source, names)
        return source
    if table:
        validate_data(estimator, views, skip_check_array=True)
    else:
        vars(estimator).pop("feature_names_in_", None)
    if names is not None:
        estimator.feature_names_in_ = names
    estimator.n_features_per_view_, estimator.n_features_in_ = source.sizes, sum(source.sizes)
    estimator._same_labels = source.same_labels
    return source


def read_views(X: Any, view_sizes: Any, *, at_least: int = 1, some: bool = False) -> Source:
    """Make a source of a list of views, with `some` perhaps not all, or of one array and `view_sizes`."""
    listed = isinstance(X, list | tuple) and bool(X) and all(view is None or _dimensions(view) == 2 for view in X)
    if view_sizes is None or listed:
        return _read_list(X, view_sizes, at_least, some)
    table = _read_table(X, at_least, "views")
    return Source([table], _widths_in(view_sizes, int(table.shape[1])))


def _read_list(views: Any, view_sizes: Any, at_least: int, some: bool) -> Source:
    if not isinstance(views, list | tuple):
        raise ValueError(f"views of type {type(views).__name__}: expected a list of arrays, one per view; {FORMS}")
    if len(views) < 2:
        raise ValueError(f"views has {len(views)} view(s): expected at least two, [X1, X2, ...]; {FORMS}")
    given = [i for i, view in enumerate(views) if view is not None]
    if not given or (len(given) < len(views) and not some):
        raise ValueError(f"only views {given} are given: expected all; transform and predict_views need one of them")
    tables = {i: _read_table(views[i], at_least, f"view {i}") for i in given}
    same_labels = _have_same_labels(views)
    rows = tuple(int(table.shape[0]) for table in tables.values())
    sizes = tuple(int(tables[i].shape[1]) if i in tables else 0 for i in range(len(views)))
    if len(set(rows)) > 1:
        raise ValueError(f"views with {rows} rows: expected as many in each, since row k of all is one sample")
    if not (some or view_sizes is None or isinstance(view_sizes, str) or sizes == tuple(view_sizes)):
        raise ValueError(f"view_sizes={view_sizes!r} for views of widths {sizes}: expected the same, or None")
    return Source(list(tables.values()), sizes, same_labels)


def _require_features(estimator: Any, source: Source, names: Array | None) -> None:
    name, fitted, sizes = type(estimator).__name__, estimator.n_features_per_view_, source.sizes
    if len(sizes) != len(fitted):
        raise ValueError(f"views has {len(sizes)} views, but {name} was fitted with {len(fitted)}; give as many")
    for i in source.views:
        if sizes[i] != fitted[i]:
            raise ValueError(f"view {i} has {sizes[i]} features, but {name} was fitted with {fitted[i]}; give as many")
    known = getattr(estimator, "feature_names_in_", None)
    if known is not None:
        known = np.concatenate([known[view_slices(fitted)[i]] for i in source.views])
    if names is not None and known is not None and not np.array_equal(names, known):
        some = ", ".join(known[:5]) + ", ..." * (len(known) > 5)
        raise ValueError(f"the names of the columns, or their order, are new since the fit: expected {some}")


def _dimensions(X: Any) -> int:
    """Number of dimensions, without reading the data where they say so themselves."""
    known = getattr(X, "ndim", None)
    if isinstance(known, int):
        return known
    try:
        return np.asarray(X).ndim
    except ValueError:  # rows of unequal lengths, which make an array of lists at most
        return 1


def _column_names(views: Sequence[Any]) -> Array | None:
    """Names of the columns of all views, if these are DataFrames and the names strings."""
    names = [getattr(view, "columns", None) for view in views]
    if any(part is None or not all(isinstance(name, str) for name in part) for part in names):
        return None
    return np.concatenate([np.asarray(part, dtype=object) for part in names])


def _read_table(table: Any, at_least: int, name: str) -> Any:
    """A table from which rows can be taken, checked without a pass over the data."""
    if isinstance(table, str | bytes | PathLike):
        raise ValueError(f"{name} is {table!r}: {EXPECTED}; read the file first, as by numpy.load")
    if isinstance(table, np.ma.MaskedArray) and np.ma.is_masked(table):
        raise ValueError(f"{name} has masked values: drop those rows in all views together, or fill them in")
    conversion = next((method for method in CONVERSIONS if hasattr(table, method.partition("(")[0])), None)
    if conversion:
        raise ValueError(f"{name} of type {type(table).__name__}: {EXPECTED}; give its {conversion}")
    if _is_frame(table) or hasattr(table, "get_columns"):  # of pandas; of polars
        _require_numbers(table, name)
    if isinstance(table, np.matrix):
        table = np.asarray(table)
    if isinstance(table, np.ndarray) and table.dtype.names:
        remedy = "numpy.lib.recfunctions.structured_to_unstructured(view)"
        raise ValueError(f"{name} has fields {table.dtype.names}: {EXPECTED}; give {remedy}")
    if isinstance(table, np.ndarray) and table.dtype.kind == "O" and any(isinstance(x, str) for x in table.flat):
        raise ValueError(f"{name} has strings: {EXPECTED}, as by astype(float)")
    try:
        if sparse.issparse(table) and table.format in ("csr", "csc", "bsr"):
            table.check_format()  # else an index beyond the end reads foreign memory
        rules = {"accept_sparse": "csr", "ensure_all_finite": False, "ensure_min_samples": at_least}
        checked = check_array(_stand_in(table, at_least) if is_dask(table) else table, input_name=name, **rules)
    except (ValueError, TypeError, OverflowError) as error:
        first, *rest = str(error).splitlines()  # the values are printed between them
        reason = " ".join([first, *(line for line in rest if line.startswith("Reshape"))]).rstrip(".")
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{name}: {reason}; {EXPECTED}") from error
    numbers = isinstance(table, np.ndarray) and table.dtype.kind in "iufb"
    read = table if numbers or is_dask(table) else checked
    if read.dtype.kind == "O":  # decimals of polars
        read = read.astype(float)
    if read.dtype.kind not in "iufb":
        raise ValueError(f"{name} of type {read.dtype}: {EXPECTED}")
    return read


def _stand_in(table: Any, most: int) -> Array:
    """An array of the type of a Dask array, with so many of its rows and columns."""
    if not all(isinstance(length, int | np.integer) for length in table.shape):
        raise ValueError(f"a Dask array of shape {table.shape} has unknown length. Call compute_chunk_sizes() first")
    return np.zeros([min(length, most) for length in table.shape], table.dtype)


def _have_same_labels(views: Sequence[Any]) -> bool | None:
    """Whether all DataFrames have the same row labels; None for fewer than two.

    ValueError if two of them have some labels in common, but not the same ones in the same order.
    """
    frames = [(i, view.index) for i, view in enumerate(views) if _is_frame(view)]
    found = []
    for (i, first), (j, second) in combinations(frames, 2):
        found.append(first.equals(second))
        if found[-1]:
            continue
        plain = [list(map(_plain, labels)) for labels in (first, second)]
        found[-1] = plain[0] == plain[1]
        common = len(set(plain[0]) & set(plain[1]))
        if common and not found[-1]:
            order = f"views {i} and {j} have {common} row labels in common, but not the same ones in the same order"
            kinds = f"; make {first[0]!r} and {second[0]!r} of one kind, and" * first.intersection(second).empty
            raise ValueError(f"{order}{kinds or ':'} {PAIRED}")
    return all(found) if found else None


def _plain(label: Any) -> str | float:
    """A row label as people compare it: 7, "7" and "007" are one, as are a date and its text."""
    text = str(label).strip().casefold().removesuffix(" 00:00:00")
    return float(text) if text.replace(".", "", 1).isdecimal() else text


def _widths_in(view_sizes: Any, total: int) -> tuple[int, ...]:
    """Widths of the views in an array of `total` columns."""
    if isinstance(view_sizes, str):
        if total < 2:
            raise ValueError(f"view_sizes='halves' needs at least two columns, but n_features = {total}")
        return total // 2, total - total // 2
    sizes = tuple(map(int, view_sizes))
    if sum(sizes) != total:
        raise ValueError(f"X has {total} features, but view_sizes={sizes} sum to {sum(sizes)}: expected {total}")
    return sizes


def _is_frame(table: Any) -> bool:
    return hasattr(table, "iloc") and hasattr(table, "columns")


def _require_numbers(frame: Any, name: str) -> None:
    if _is_frame(frame) and not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise ValueError(f"{name} has several columns {twice!r}: expected unique names")
    for column in frame.columns:
        values, kind = np.asarray(frame[column]), frame[column].dtype
        nullable = getattr(kind, "kind", "O") in "iufb"
        if values.dtype.kind not in "iufbO" or kind == "category" or not (nullable or _are_numbers(values)):
            remedy = "as by astype(float), or get_dummies for categories"
            raise ValueError(f"{name} has the column {column!r} of type {kind}: expected numbers, {remedy}")


def _are_numbers(values: Array) -> bool:
    """Whether objects are numbers or missing; scikit-learn would read strings as numbers where it can."""
    return values.dtype.kind != "O" or all(isinstance(x, Number | np.bool_ | None) for x in values.flat)
