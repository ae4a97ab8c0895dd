"""What an estimator is given, read as minibatches: arrays, sparse matrices, mapped files, Dask arrays, iterators.

A `Source` knows the widths of the views and gives their rows batch by batch, one block per view, in the type that the
fit computes in.  What lies on a disk or behind Dask is read in runs of consecutive rows and never as a whole.
"""

import mmap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.utils.validation import check_array

from cdfsg.checks import is_whole
from cdfsg.linalg import Array, view_slices

Block = Any
"""Rows of one view: a float array or a sparse CSR matrix, shape (l, n_i)."""

RUN_BYTES = 2**20
"""Bytes read in one go from a mapped file: a disk gives them as fast as a few, and they fit in the cache."""
RUNS_AT_ONCE = 16
"""Runs that are shuffled among each other; together with what one batch needs they bound the memory."""
MEASURED_ROWS = 2048
"""Rows of a batch where only products with p columns are asked for."""


@dataclass(frozen=True)
class Source:
    """Views that can be read again and again.

    Attributes
    ----------
    tables : list
        Arrays, CSR matrices or Dask arrays with one row per sample.
    columns : list of (int, slice)
        For each view its table and the columns there.
    dtype : dtype
        float32 or float64.
    """

    tables: list[Any]
    columns: list[tuple[int, slice]]
    dtype: np.dtype[Any]
    sizes: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", tuple(part.stop - part.start for _, part in self.columns))

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return int(self.tables[0].shape[0])

    @property
    def in_memory(self) -> bool:
        """Whether single rows can be had at random without reading others."""
        return not any(_is_dask(table) or _mapped(table) is not None for table in self.tables)

    def take(self, rows: Array | slice) -> list[Block]:
        """The named rows of every view, converted and checked.

        Raises
        ------
        ValueError
            If a value is missing or infinite.
        """
        parts = [_rows_of(table, rows) for table in self.tables]
        wanted = len(range(*rows.indices(self.n_samples))) if isinstance(rows, slice) else len(rows)
        for number, (table, part) in enumerate(zip(self.tables, parts, strict=True)):
            if part.shape != (wanted, table.shape[1]):
                raise ValueError(
                    f"a chunk of view {number} has shape {part.shape}: expected {(wanted, table.shape[1])}, as its "
                    "Dask array states; call compute_chunk_sizes() on what Dask was not told the size of"
                )
        blocks = [_converted(parts[table][:, columns], self.dtype) for table, columns in self.columns]
        for table in self.tables:
            _release(table)
        for i, block in enumerate(blocks):
            _require_finite(block, i)
        return blocks

    def batches(self, size: int, rng: np.random.Generator | None = None) -> Iterator[list[Block]]:
        """One pass in batches of `size` rows, of which the last may be smaller.

        Parameters
        ----------
        size : int
        rng : Generator or None
            Order of the rows: None is the order of the data.  In memory the order is a permutation; on a disk or
            behind Dask, runs of consecutive rows come in random order, and `RUNS_AT_ONCE` of them are shuffled.
        """
        if rng is None or not self.in_memory:
            yield from rebatched(self._runs(size, rng), size)
            return
        order = rng.permutation(self.n_samples)
        for begin in range(0, self.n_samples, size):
            yield self.take(order[begin : begin + size])

    def _runs(self, size: int, rng: np.random.Generator | None) -> Iterator[list[Block]]:
        runs = self._bounds(size)
        if rng is None:
            for begin, end in runs:
                yield self.take(slice(begin, end))
            return
        order = rng.permutation(len(runs))
        for k in range(0, len(runs), RUNS_AT_ONCE):
            together = [self.take(slice(*runs[j])) for j in np.sort(order[k : k + RUNS_AT_ONCE])]
            blocks = [_stacked([run[i] for run in together]) for i in range(len(self.sizes))]
            mixed = rng.permutation(blocks[0].shape[0])
            yield [block[mixed] for block in blocks]

    def _bounds(self, size: int) -> list[tuple[int, int]]:
        """First row and end of each run: a chunk where Dask has the data, else about `RUN_BYTES`."""
        for table in self.tables:
            if _is_dask(table):
                ends = np.cumsum(table.chunks[0]).tolist()
                return list(zip([0, *ends[:-1]], ends, strict=True))
        length = max(size, RUN_BYTES // (8 * sum(self.sizes)))
        return [(begin, min(begin + length, self.n_samples)) for begin in range(0, self.n_samples, length)]


@dataclass(frozen=True)
class Stream:
    """Chunks of rows that are made or received while the fit goes on.

    Attributes
    ----------
    make : callable
        Returns an iterator of chunks, each what `fit` takes: a list of views, or one array.
    again : bool
        Whether it can be called more than once.
    read : callable
        Makes a `Source` of a chunk.
    """

    make: Callable[[], Iterator[Any]]
    again: bool
    read: Callable[[Any], Source]

    def batches(self, size: int, rng: np.random.Generator | None = None) -> Iterator[list[Block]]:
        """One pass in batches of `size` rows across chunks, in the order in which they come."""
        return rebatched((chunk.take(slice(None)) for chunk in map(self.read, self.make())), size)


def read_views(X: Any, view_sizes: Any, *, at_least: int = 1, name: str = "views") -> Source:
    """Make a source of a list of views, or of one array and the widths of its views.

    Parameters
    ----------
    X : list of array_like, or array_like
    view_sizes : sequence of int, "halves" or None
        Widths of the views in one array; None: X is a list of views.
    at_least : int
        Rows needed.
    name : str
        Of the argument, for messages.

    Raises
    ------
    ValueError
        If X is not what it should be; the message says what is expected.
    """
    _require_view_sizes(view_sizes)
    listed = isinstance(X, list | tuple) and bool(X) and all(dimensions(v) == 2 for v in X)
    if view_sizes is None or listed:
        return _listed(X, view_sizes, at_least, name)
    table = _table(X, at_least, name)
    sizes = _resolved(view_sizes, int(table.shape[1]))
    return Source([table], [(0, part) for part in view_slices(sizes)], _common_type([table]))


def dimensions(X: Any) -> int:
    """Number of dimensions of anything like an array, without reading it where it says so itself."""
    known = getattr(X, "ndim", None)
    if isinstance(known, int):
        return known
    try:
        return np.asarray(X).ndim
    except ValueError:  # rows of unequal lengths, which make an array of lists at most
        return 1


def is_stream(X: Any) -> bool:
    """Whether X gives chunks one after another: an iterator, or a callable that returns one."""
    return hasattr(X, "__next__") or (callable(X) and not hasattr(X, "__array__"))


def rebatched(chunks: Iterator[list[Block]], size: int) -> Iterator[list[Block]]:
    """The same rows in batches of `size`, whatever the chunks; the last batch may be smaller."""
    left: list[Block] | None = None
    for chunk in chunks:
        blocks = chunk if left is None else [_stacked(list(pair)) for pair in zip(left, chunk, strict=True)]
        rows = blocks[0].shape[0]
        whole = rows - rows % size
        for begin in range(0, whole, size):
            yield [block[begin : begin + size] for block in blocks]
        left = [block[whole:] for block in blocks] if whole < rows else None
    if left is not None:
        yield left


# --- tables ----------------------------------------------------------------------------------------------


def _listed(views: Any, view_sizes: Any, at_least: int, name: str) -> Source:
    if not isinstance(views, list | tuple):
        raise ValueError(
            f"{name} of type {type(views).__name__}: expected a list of arrays, one per view; for one array with the "
            "views side by side, give their widths as view_sizes"
        )
    if len(views) < 2:
        raise ValueError(
            f"{name} has {len(views)} view{'s' * (len(views) != 1)}: expected at least two, [X1, X2, ...]; for one "
            "array with the views side by side, give their widths as view_sizes"
        )
    tables = [_table(view, at_least, f"view {i}") for i, view in enumerate(views)]
    _require_one_order(views)
    rows = [int(table.shape[0]) for table in tables]
    if len(set(rows)) > 1:
        raise ValueError(
            f"{name} with {', '.join(map(str, rows))} rows: expected the same number in each view, since row k of all "
            "views is one sample"
        )
    source = Source(
        tables, [(i, slice(0, int(table.shape[1]))) for i, table in enumerate(tables)], _common_type(tables)
    )
    if view_sizes is not None and not isinstance(view_sizes, str) and list(source.sizes) != list(view_sizes):
        raise ValueError(
            f"view_sizes={view_sizes!r}, but the views given have the widths {source.sizes}: expected the same, or "
            "view_sizes=None"
        )
    return source


def _table(table: Any, at_least: int, name: str) -> Any:
    """A table that rows can be taken of, checked as far as that needs no pass over the data."""
    if _is_dask(table):
        if table.ndim != 2 or not all(isinstance(length, int | np.integer) for length in table.shape):
            raise ValueError(
                f"{name} is a Dask array of shape {table.shape}: expected two dimensions of known length; call "
                "compute_chunk_sizes() first"
            )
        if table.dtype.kind not in "iufb":
            raise ValueError(f"{name} is a Dask array of type {table.dtype}: expected real numbers")
        _require_size(table.shape, at_least, name)
        return table
    if isinstance(table, np.ma.MaskedArray) and np.ma.is_masked(table):
        raise ValueError(f"{name} has masked values: expected none missing; drop those rows or fill them in first")
    if isinstance(table, np.matrix):
        table = np.asarray(table)
    if isinstance(table, pd.DataFrame):
        _require_numbers(table, name)
    elif not (sparse.issparse(table) and table.ndim == 2):
        _require_table(table, name)
    try:
        if sparse.issparse(table) and table.format in ("csr", "csc", "bsr"):
            table.check_format()  # an index beyond the end would be read from anywhere in memory
        checked = check_array(
            table, accept_sparse="csr", dtype="numeric", ensure_all_finite=False, ensure_min_samples=at_least,
            input_name=name,
        )  # fmt: skip
    except (ValueError, TypeError, OverflowError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{name}: {reason}; expected real numbers in an array of shape (N, n_i)") from error
    if checked.dtype.kind not in "iufb":
        raise ValueError(f"{name} of type {checked.dtype}: expected real numbers")
    return table if isinstance(table, np.ndarray) and table.dtype.kind in "iufb" else checked


def _require_table(table: Any, name: str) -> None:
    """Refuse what is no table of numbers by its shape or type, of anything but a DataFrame or a sparse matrix."""
    if isinstance(table, str | bytes | PathLike):
        raise ValueError(
            f"{name} is {table!r}: expected real numbers in an array of shape (N, n_i); read the file first, as by "
            "numpy.load or pandas.read_csv"
        )
    try:
        kind = getattr(table, "dtype", None) or np.asarray(table).dtype
    except ValueError as error:
        raise ValueError(
            f"{name} has rows of unequal lengths: expected real numbers in an array of shape (N, n_i)"
        ) from error
    if dimensions(table) != 2:
        raise ValueError(
            f"{name} of type {type(table).__name__} and shape {np.shape(table)}: expected real numbers in an array of "
            "shape (N, n_i). Reshape your data, a single column by .reshape(-1, 1), a single row by .reshape(1, -1)"
        )
    if np.dtype(kind).kind in "SU":
        raise ValueError(
            f"{name} holds strings, type {kind}: expected real numbers in an array of shape (N, n_i); convert them by "
            "astype(float)"
        )


def _require_numbers(table: pd.DataFrame, name: str) -> None:
    """Refuse columns of words, dates and the like, and those that cannot be told apart, by their names."""
    if not table.columns.is_unique:
        twice = table.columns[table.columns.duplicated()][0]
        raise ValueError(f"{name} has several columns {twice!r}: expected unique names; rename them, or drop copies")
    for column, kind in table.dtypes.items():
        values = kind.categories.dtype if isinstance(kind, pd.CategoricalDtype) else kind
        if not (pd.api.types.is_numeric_dtype(values) or pd.api.types.is_object_dtype(values)):
            raise ValueError(
                f"{name} has the column {column!r} of type {kind}: expected real numbers; drop it, convert it by "
                "astype(float), or encode it by pandas.get_dummies"
            )


def _require_size(shape: tuple[int, ...], at_least: int, name: str) -> None:
    if shape[0] < at_least or shape[1] < 1:
        raise ValueError(
            f"{name} of shape {tuple(map(int, shape))}: expected at least {at_least} row{'s' * (at_least > 1)} and a "
            "column"
        )


def _require_one_order(views: Sequence[Any]) -> None:
    """Refuse DataFrames whose rows have the same labels in another order: row k of all views is one sample."""
    frames = [(i, view.index) for i, view in enumerate(views) if isinstance(view, pd.DataFrame)]
    for i, index in frames[1:]:
        first = frames[0][1]
        if len(index) == len(first) and not index.equals(first) and not len(index.symmetric_difference(first)):
            raise ValueError(
                f"view {i} has the row labels of view {frames[0][0]} in another order: expected the same order, since "
                f"row k of all views is one sample; give view {i} as .loc[first.index], or drop the labels by "
                "reset_index(drop=True)"
            )


def _require_view_sizes(view_sizes: Any) -> None:
    if view_sizes is None or (isinstance(view_sizes, str) and view_sizes == "halves"):
        return
    if isinstance(view_sizes, str):
        raise ValueError(f"view_sizes={view_sizes!r}: expected widths such as (392, 392), 'halves' or None")
    sizes = tuple(view_sizes) if isinstance(view_sizes, Sequence | np.ndarray) and np.ndim(view_sizes) else ()
    whole = all(is_whole(size, 1) for size in sizes)
    if len(sizes) < 2 or not whole:
        raise ValueError(f"view_sizes={view_sizes!r}: expected two or more positive whole numbers, one per view")


def _resolved(view_sizes: Any, total: int) -> tuple[int, ...]:
    """Widths of the views in an array of `total` columns, of `view_sizes` that were checked."""
    if isinstance(view_sizes, str):
        if total < 2:
            raise ValueError(f"view_sizes='halves' needs at least two columns, but n_features = {total}")
        return total // 2, total - total // 2
    sizes = tuple(view_sizes)
    if sum(sizes) != total:
        raise ValueError(f"X has {total} features, but view_sizes={sizes} sum to {sum(sizes)}: expected {total}")
    return tuple(int(size) for size in sizes)


def _common_type(tables: Sequence[Any]) -> np.dtype[Any]:
    """float32 where every table is float32, half precision, or bytes and shorts, which float32 holds exactly."""
    short = all(table.dtype.itemsize <= (4 if table.dtype.kind == "f" else 2) for table in tables)
    return np.dtype(np.float32 if short else np.float64)


def _is_dask(table: Any) -> bool:
    return hasattr(table, "dask") and hasattr(table, "compute")


def _rows_of(table: Any, rows: Array | slice) -> Any:
    part = table[rows]
    part = part.compute() if _is_dask(part) else part
    return part.tocsr() if sparse.issparse(part) else np.asarray(part)


def _converted(block: Any, dtype: np.dtype[Any]) -> Block:
    """A copy where one is needed: of another type, or of a mapped file."""
    if sparse.issparse(block):
        return block.astype(dtype, copy=False)
    return np.array(block, dtype=dtype, order="C", copy=None if _mapped(block) is None else True)


def _stacked(blocks: list[Block]) -> Block:
    return sparse.vstack(blocks, format="csr") if any(map(sparse.issparse, blocks)) else np.concatenate(blocks)


def _require_finite(block: Block, view: int) -> None:
    values = block.data if sparse.issparse(block) else block
    if np.isfinite(values.sum(dtype=np.float64)) or np.isfinite(values).all():
        return
    word = "NaN" if np.isnan(values).any() else "infinity"
    raise ValueError(
        f"view {view} contains {word}: expected finite numbers; drop the rows with missing values, or fill them in "
        "first, e.g. with sklearn.impute.SimpleImputer"
    )


def _mapped(table: Any) -> mmap.mmap | None:
    """The mapped file behind an array."""
    base = table
    while isinstance(base, np.ndarray):
        base = base.base
    return base if isinstance(base, mmap.mmap) else None


def _release(table: Any) -> None:
    """Let go of the pages read of a mapped file, which else count as memory of this process until it ends.

    Only where the file itself holds what was written: in a copy-on-write mapping the changes would be lost.
    """
    file = _mapped(table)
    if file is not None and getattr(table, "mode", "") in ("r", "r+", "w+") and hasattr(file, "madvise"):
        file.madvise(mmap.MADV_DONTNEED)
