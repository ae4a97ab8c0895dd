"""Tables of numbers that the estimator takes, and the words for those that it does not."""

from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array

from cdfsg.checks import is_whole
from cdfsg.linalg import Array

EXPECTED = "expected real numbers in an array of shape (N, n_i)"


def dimensions(X: Any) -> int:
    """Number of dimensions of anything like an array, without reading it where it says so itself."""
    known = getattr(X, "ndim", None)
    if isinstance(known, int):
        return known
    try:
        return np.asarray(X).ndim
    except ValueError:  # rows of unequal lengths, which make an array of lists at most
        return 1


def column_names(views: Sequence[Any]) -> Array | None:
    """Names of all columns, view after view, if every view is a DataFrame with names that are strings."""
    names = [getattr(view, "columns", None) for view in views]
    if any(part is None or not all(isinstance(name, str) for name in part) for part in names):
        return None
    return np.concatenate([np.asarray(part, dtype=object) for part in names])


def is_dask(table: Any) -> bool:
    return hasattr(table, "dask") and hasattr(table, "compute")


def read_table(table: Any, at_least: int, name: str) -> Any:
    """A table that rows can be taken of, checked as far as that needs no pass over the data."""
    if is_dask(table):
        _require_dask(table, at_least, name)
        return table
    if isinstance(table, np.ma.MaskedArray) and np.ma.is_masked(table):
        raise ValueError(f"{name} has masked values: expected none missing; drop those rows or fill them in first")
    if isinstance(table, np.matrix):
        table = np.asarray(table)
    if _is_frame(table):
        _require_numbers(table, name)
    elif not (sparse.issparse(table) and table.ndim == 2):
        _require_table(table, name)
    try:
        if sparse.issparse(table) and table.format in ("csr", "csc", "bsr"):
            table.check_format()  # an index beyond the end would be read from anywhere in memory
        rules = {"accept_sparse": "csr", "ensure_all_finite": False, "ensure_min_samples": at_least}
        checked = check_array(table, input_name=name, **rules)
    except (ValueError, TypeError, OverflowError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{name}: {reason}; {EXPECTED}") from error
    if checked.dtype.kind not in "iufb":
        raise ValueError(f"{name} of type {checked.dtype}: expected real numbers")
    return table if isinstance(table, np.ndarray) and table.dtype.kind in "iufb" else checked


def require_one_order(views: Sequence[Any]) -> None:
    """Raise ValueError if DataFrames have the same row labels in another order."""
    frames = [(i, view.index) for i, view in enumerate(views) if _is_frame(view)]
    for i, index in frames[1:]:
        first = frames[0][1]
        if len(index) == len(first) and not index.equals(first) and not len(index.symmetric_difference(first)):
            raise ValueError(
                f"view {i} has the row labels of view {frames[0][0]} in another order: expected the same order, since "
                f"row k of all views is one sample; give view {i} as .loc[first.index], or drop the labels by "
                "reset_index(drop=True)"
            )


def require_view_sizes(view_sizes: Any) -> None:
    """Raise ValueError unless the parameter is None, "halves" or two or more widths."""
    if view_sizes is None or (isinstance(view_sizes, str) and view_sizes == "halves"):
        return
    if isinstance(view_sizes, str):
        raise ValueError(f"view_sizes={view_sizes!r}: expected widths such as (392, 392), 'halves' or None")
    sizes = tuple(view_sizes) if isinstance(view_sizes, Sequence | np.ndarray) and np.ndim(view_sizes) else ()
    if len(sizes) < 2 or not all(is_whole(size, 1) for size in sizes):
        raise ValueError(f"view_sizes={view_sizes!r}: expected two or more positive whole numbers, one per view")


def widths_in(view_sizes: Any, total: int) -> tuple[int, ...]:
    """Widths of the views in an array of `total` columns."""
    if isinstance(view_sizes, str):
        if total < 2:
            raise ValueError(f"view_sizes='halves' needs at least two columns, but n_features = {total}")
        return total // 2, total - total // 2
    sizes = tuple(view_sizes)
    if sum(sizes) != total:
        raise ValueError(f"X has {total} features, but view_sizes={sizes} sum to {sum(sizes)}: expected {total}")
    return tuple(int(size) for size in sizes)


def _is_frame(table: Any) -> bool:
    return hasattr(table, "iloc") and hasattr(table, "columns")


def _require_dask(table: Any, at_least: int, name: str) -> None:
    if table.ndim != 2 or not all(isinstance(length, int | np.integer) for length in table.shape):
        raise ValueError(
            f"{name} is a Dask array of shape {table.shape}: expected two dimensions of known length; call "
            "compute_chunk_sizes() first"
        )
    if table.dtype.kind not in "iufb":
        raise ValueError(f"{name} is a Dask array of type {table.dtype}: expected real numbers")
    if table.shape[0] < at_least or table.shape[1] < 1:
        shape, rows = tuple(map(int, table.shape)), f"{at_least} row{'s' * (at_least > 1)}"
        raise ValueError(f"{name} of shape {shape}: expected at least {rows} and a column")


def _require_table(table: Any, name: str) -> None:
    if isinstance(table, str | bytes | PathLike):
        raise ValueError(f"{name} is {table!r}: {EXPECTED}; read the file first, as by numpy.load or pandas.read_csv")
    try:
        kind = getattr(table, "dtype", None) or np.asarray(table).dtype
    except ValueError as error:
        raise ValueError(f"{name} has rows of unequal lengths: {EXPECTED}") from error
    if dimensions(table) != 2:
        raise ValueError(
            f"{name} of type {type(table).__name__} and shape {np.shape(table)}: {EXPECTED}. Reshape your data, a "
            "single column by .reshape(-1, 1), a single row by .reshape(1, -1)"
        )
    if np.dtype(kind).kind in "SU":
        raise ValueError(f"{name} holds strings, type {kind}: {EXPECTED}; convert them by astype(float)")


def _require_numbers(frame: Any, name: str) -> None:
    from pandas.api import types  # whoever gives a DataFrame has pandas; the estimator does not need it

    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise ValueError(f"{name} has several columns {twice!r}: expected unique names; rename them, or drop copies")
    for column, kind in frame.dtypes.items():
        values = kind.categories.dtype if isinstance(kind, types.CategoricalDtype) else kind
        if not (types.is_numeric_dtype(values) or types.is_object_dtype(values)):
            raise ValueError(
                f"{name} has the column {column!r} of type {kind}: expected real numbers; drop it, convert it by "
                "astype(float), or encode it by pandas.get_dummies"
            )
