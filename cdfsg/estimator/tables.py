"""Views that the estimator takes, and the words for those that it does not."""

import sys
import unicodedata
from collections.abc import Sequence
from itertools import combinations
from numbers import Number
from os import PathLike
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array, validate_data

from cdfsg.estimator.inputs import MASKED, Source, is_dask
from cdfsg.linalg import view_slices

EXPECTED = "expected real numbers in an array of shape (N, n_i)"
FORMS = "give view_sizes for one array, list(views.values()) for a dict, fit(lambda: views) for a loader of chunks"
PAIRED = (
    "take the inner join of unique labels, rows = X.index.intersection(Y.index) and [X.loc[rows], Y.loc[rows]], "
    "or, if row k of all is one sample, reset_index(drop=True) in every view"
)
CONVERSIONS = ("to_dask_array(lengths=True)", "collect()", "to_frame()")  # of Dask frames, lazy frames, Series


def read_chunk(estimator: Any, views: Any, *, reset: bool, at_least: int = 1) -> Source:
    """Read rows of a fit; where the views of earlier rows had the same labels, those of these rows must, too."""
    source = read_features(estimator, views, at_least=at_least, reset=reset)
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
    if not reset:
        _require_features(estimator, source)
        return source
    if table:
        validate_data(estimator, views, skip_check_array=True)
    else:
        vars(estimator).pop("feature_names_in_", None)
        names = [name for part in source.names for name in part or [None]]
        if all(isinstance(name, str) for name in names):
            estimator.feature_names_in_ = np.array(names, dtype=object)
    estimator._names, estimator._same_labels = source.names, source.same_labels
    estimator.n_features_per_view_, estimator.n_features_in_ = source.sizes, sum(source.sizes)
    return source


def read_views(X: Any, view_sizes: Any, *, at_least: int = 1, some: bool = False) -> Source:
    """Make a source of a list of views, with `some` perhaps not all, or of one array and `view_sizes`."""
    listed = isinstance(X, list | tuple) and bool(X) and all(view is None or _dimensions(view) == 2 for view in X)
    if view_sizes is None or listed:
        return _read_list(X, view_sizes, at_least, some)
    table = _read_table(X, at_least, "views")
    sizes = _widths_in(view_sizes, int(table.shape[1]))
    return Source([table], sizes, [_names(X, view) for view in view_slices(sizes)])


def _read_list(views: Any, view_sizes: Any, at_least: int, some: bool) -> Source:
    if not isinstance(views, list | tuple):
        raise ValueError(f"views of type {type(views).__name__}: expected a list of arrays, one per view; {FORMS}")
    if len(views) < 2:
        raise ValueError(f"views has {len(views)} view(s): expected at least two, [X1, X2, ...]; {FORMS}")
    given = [i for i, view in enumerate(views) if view is not None]
    if not given or (len(given) < len(views) and not some):
        need = "at least one" if some else "all; transform and predict_views need one of them"
        raise ValueError(f"only views {given} are given: expected {need}")
    tables = {i: _read_table(views[i], at_least, f"view {i}") for i in given}
    same_labels = _have_same_labels(views)
    rows = tuple(int(table.shape[0]) for table in tables.values())
    sizes = tuple(int(tables[i].shape[1]) if i in tables else 0 for i in range(len(views)))
    if len(set(rows)) > 1:
        raise ValueError(f"views with {rows} rows: expected as many in each, since row k of all is one sample")
    if not (some or view_sizes is None or isinstance(view_sizes, str) or sizes == tuple(view_sizes)):
        raise ValueError(f"view_sizes={view_sizes!r} for views of widths {sizes}: expected the same, or None")
    return Source(list(tables.values()), sizes, list(map(_names, views)), same_labels)


def _require_features(estimator: Any, source: Source) -> None:
    name, fitted, sizes = type(estimator).__name__, estimator.n_features_per_view_, source.sizes
    if len(sizes) != len(fitted):
        raise ValueError(f"views has {len(sizes)} views, but {name} was fitted with {len(fitted)}; give as many")
    for i in source.views:
        if sizes[i] != fitted[i]:
            raise ValueError(f"view {i} has {sizes[i]} features, but {name} was fitted with {fitted[i]}; give as many")
        known, now = estimator._names[i], source.names[i]
        changed = [pair for pair in zip(now or [], known or [], strict=False) if pair[0] != pair[1]]
        numbered = any(isinstance(label, int) for pair in changed for label in pair)  # as columns without names are
        if changed and (not numbered or set(known) == set(now)):
            new = f"view {i} has the column {changed[0][0]!r}, where {name} was fitted with {changed[0][1]!r}"
            raise ValueError(f"{new}; give columns of the same names in the same order")


def _dimensions(X: Any) -> int:
    """Number of dimensions, without reading the data where they say so themselves."""
    known = getattr(X, "ndim", None)
    if isinstance(known, int):
        return known
    try:
        return np.asarray(X).ndim
    except ValueError:  # rows of unequal lengths, which make an array of lists at most
        return 1


def _names(table: Any, view: slice = slice(None)) -> list[Any] | None:
    """Names of the columns of a DataFrame."""
    return list(table.columns[view]) if _is_frame(table) or hasattr(table, "get_columns") else None


def _read_table(table: Any, at_least: int, name: str) -> Any:
    """A table from which rows can be taken, checked without a pass over the data."""
    if isinstance(table, str | bytes | PathLike):
        raise ValueError(f"{name} is {table!r}: {EXPECTED}; read the file first, as by numpy.load")
    if isinstance(table, np.ma.MaskedArray) and np.ma.is_masked(table):
        raise ValueError(f"{name} {MASKED}")
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
    some = table
    if is_dask(table):
        if not all(isinstance(length, int | np.integer) for length in table.shape):
            raise ValueError(f"{name}: a Dask array of shape {table.shape}: call compute_chunk_sizes() first")
        some = np.zeros([min(length, max(at_least, 1)) for length in table.shape], table.dtype)
    try:
        if sparse.issparse(table) and table.format in ("csr", "csc", "bsr"):
            table.check_format()  # else an index beyond the end reads foreign memory
        rules = {"accept_sparse": "csr", "ensure_all_finite": False, "ensure_min_samples": at_least}
        checked = check_array(some, input_name=name, **rules)
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


def _have_same_labels(views: Sequence[Any]) -> bool | None:
    """Whether all DataFrames have the same row labels, None for fewer than two; ValueError if the order differs."""
    frames = [(i, view.index) for i, view in enumerate(views) if _is_frame(view) and len(view)]
    found = []
    for (i, first), (j, second) in combinations(frames, 2):
        found.append(first.equals(second))
        if found[-1]:
            continue
        plain = [list(map(_plain, index)) for index in (first, second)]
        readings = [plain]
        if any(index.inferred_type.startswith(("date", "period")) for index in (first, second)):
            for local in (False, True):
                readings.append([_dates(first, plain[0], local), _dates(second, plain[1], local)])
        found[-1] = any(left == right for left, right in readings)
        common = max(len(set(left) & set(right)) for left, right in readings)
        if common and not found[-1]:
            order = f"views {i} and {j} have {common} row labels in common, but not the same ones in the same order"
            kinds = f"; make {first[0]!r} and {second[0]!r} of one kind, and" * first.intersection(second).empty
            raise ValueError(f"{order}{kinds or ':'} {PAIRED}")
    return all(found) if found else None


def _plain(label: Any) -> Any:
    """A row label as people compare it: 7, "7", "007" and 7.0 are one, as are a day and its text."""
    if isinstance(label, tuple):
        return tuple(map(_plain, label))
    text = label.decode(errors="replace") if isinstance(label, bytes) else str(label)
    text = unicodedata.normalize("NFC", text).strip().casefold().removesuffix(" 00:00:00")
    try:
        number = int(text) if text.lstrip("+-").isdecimal() else float(text.replace("_", "x"))  # 1_0 is not 10
    except ValueError:
        return text
    return text if number != number else number


def _dates(index: Any, plain: list[Any], local: bool) -> list[Any]:
    """Row labels that are dates as such, in UTC and of the first day of a period, or `local` and of the last."""
    if hasattr(index, "to_timestamp"):
        index = index.to_timestamp(how="end").normalize() if local else index.to_timestamp()
    texts = index.map(str)
    texts = texts.str.replace(r"[+-]\d\d:\d\d$", "", regex=True) if local else texts
    texts = texts.where(texts.str.match(r"\d{4}(?:[-/.]\d\d|\d{4})"))  # all others are slow to parse
    dates = sys.modules["pandas"].to_datetime(texts, errors="coerce", utc=True, format="mixed")
    return [date if known else label for date, known, label in zip(dates, dates.notna(), plain, strict=True)]


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
        if getattr(kind, "fill_value", 0) != 0:
            dense = "expected a fill value of 0; give view.sparse.to_dense()"
            raise ValueError(f"{name} has the column {column!r} of type {kind}: {dense}")
        nullable = getattr(kind, "kind", "O") in "iufb"
        numbers = nullable or values.dtype.kind != "O" or all(isinstance(x, Number | np.bool_ | None) for x in values)
        if values.dtype.kind not in "iufbO" or kind == "category" or not numbers:  # sklearn reads "1" as 1
            remedy = "as by astype(float), or get_dummies for categories"
            raise ValueError(f"{name} has the column {column!r} of type {kind}: expected numbers, {remedy}")
