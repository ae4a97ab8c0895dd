"""The data of the estimator as minibatches: from arrays, sparse matrices, mapped files, Dask arrays, iterators."""

import mmap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise, repeat
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.utils.validation import validate_data

from cdfsg.estimator.tables import (
    column_names,
    dimensions,
    is_dask,
    read_table,
    require_one_order,
    require_view_sizes,
    widths_in,
)
from cdfsg.linalg import Array, view_slices

ViewRows = Any
"""Rows of one view: a float array or a sparse CSR matrix, shape (l, n_i)."""

RUN_BYTES = 2**20  # read in one go from a mapped file: a disk gives them as fast as a few, and they fit in the cache
RUNS_AT_ONCE = 16  # that are shuffled among each other; together with the rows of one batch they bound the memory
MEASURED_ROWS = 2048  # of a batch where only products with p columns are asked for


@dataclass(frozen=True)
class Source:
    """Views that can be read again and again, as columns of one or several tables."""

    tables: list[Any]  # arrays, CSR matrices or Dask arrays with one row per sample
    columns: list[tuple[int, slice]]  # for each view the number of its table, and its columns there
    again: ClassVar[bool] = True  # whether the rows can be read more than once

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(part.stop - part.start for _, part in self.columns)

    @property
    def n_samples(self) -> int:
        return int(self.tables[0].shape[0])

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 if every table is float32, half precision, or bytes and shorts, which float32 holds; else float64."""
        short = all(table.dtype.itemsize <= (4 if table.dtype.kind == "f" else 2) for table in self.tables)
        return np.dtype(np.float32 if short else np.float64)

    @property
    def in_memory(self) -> bool:
        """Whether single rows can be read in any order without reading others."""
        return not any(is_dask(table) or _file_behind(table) is not None for table in self.tables)

    def take(self, rows: Array | slice) -> list[ViewRows]:
        """The named rows of every view, converted; ValueError if one is missing or infinite."""
        parts = [_rows_of(table, rows, number) for number, table in enumerate(self.tables)]
        blocks = [_convert(parts[table][:, columns], self.dtype) for table, columns in self.columns]
        for table in self.tables:
            _release(table)
        for i, block in enumerate(blocks):
            _require_finite(block, i)
        return blocks

    def batches(self, size: int, rng: np.random.Generator | None = None) -> Iterator[list[ViewRows]]:
        """One pass in batches of `size` rows, of which the last may be smaller; a generator shuffles them.

        On a disk or behind Dask, runs of consecutive rows come in random order, `RUNS_AT_ONCE` of them shuffled.
        """
        if rng is None or not self.in_memory:
            yield from rebatch(self._runs(size, rng), size)
            return
        order = rng.permutation(self.n_samples)
        for begin in range(0, self.n_samples, size):
            yield self.take(order[begin : begin + size])

    def _runs(self, size: int, rng: np.random.Generator | None) -> Iterator[list[ViewRows]]:
        """Blocks of consecutive rows: a chunk where Dask has the data, else about `RUN_BYTES`."""
        chunked = next((table for table in self.tables if is_dask(table)), None)
        length = max(size, RUN_BYTES // (8 * sum(self.sizes)))
        lengths = repeat(length, -(-self.n_samples // length)) if chunked is None else chunked.chunks[0]
        runs = [slice(int(begin), int(end)) for begin, end in pairwise(accumulate(lengths, initial=0))]
        if rng is None:
            yield from map(self.take, runs)
            return
        order = rng.permutation(len(runs))
        for k in range(0, len(runs), RUNS_AT_ONCE):
            together = [self.take(runs[j]) for j in np.sort(order[k : k + RUNS_AT_ONCE])]
            blocks = [_stack(parts) for parts in zip(*together, strict=True)]
            mixed = rng.permutation(blocks[0].shape[0])
            yield [block[mixed] for block in blocks]


@dataclass(frozen=True)
class Stream:
    """Chunks of rows that are made or received while the fit goes on."""

    make: Any  # an iterator of chunks, or a callable that returns one; a chunk is a list of views, or one array
    read: Callable[[Any], Source]
    n_samples: ClassVar[None] = None

    @property
    def again(self) -> bool:
        return not hasattr(self.make, "__next__")

    def batches(self, size: int, rng: np.random.Generator | None = None) -> Iterator[list[ViewRows]]:
        """One pass in batches of `size` rows across chunks, in the order in which they come."""
        chunks = self.make() if self.again else self.make
        if not isinstance(chunks, Iterable):
            raise ValueError(
                f"views is a function that returned {type(chunks).__name__}: expected one that returns an iterator of "
                "chunks whenever it is called"
            )
        return rebatch((self.read(chunk).take(slice(None)) for chunk in chunks), size)


def read_views(X: Any, view_sizes: Any, *, at_least: int = 1) -> Source:
    """Make a source of a list of views, or of one array and `view_sizes`."""
    require_view_sizes(view_sizes)
    listed = isinstance(X, list | tuple) and bool(X) and all(dimensions(view) == 2 for view in X)
    if view_sizes is None or listed:
        return _read_list(X, view_sizes, at_least)
    table = read_table(X, at_least, "views")
    return Source([table], [(0, part) for part in view_slices(widths_in(view_sizes, int(table.shape[1])))])


def read_features(estimator: Any, views: Any, *, at_least: int, reset: bool) -> Source:
    """Read views; with `reset` remember their columns in the estimator, else compare them with those of its fit."""
    listed = isinstance(views, list | tuple)
    table = not listed and dimensions(views) == 2
    if table and not reset:
        validate_data(estimator, views, reset=False, skip_check_array=True)  # number and names of the columns
    source = read_views(views, estimator.view_sizes, at_least=at_least)
    if table and reset:
        validate_data(estimator, views, reset=True, skip_check_array=True)
    names = column_names(views) if listed else None
    if not reset:
        _require_features(estimator, source.sizes, names)
        return source
    estimator.n_features_per_view_, estimator.n_features_in_ = source.sizes, sum(source.sizes)
    if listed:
        vars(estimator).pop("feature_names_in_", None)
    if names is not None:
        estimator.feature_names_in_ = names
    return source


def is_stream(X: Any) -> bool:
    """Whether X gives chunks one after another: an iterator, or a callable that returns one."""
    return hasattr(X, "__next__") or (callable(X) and not hasattr(X, "__array__"))


def slices_of(blocks: list[ViewRows]) -> tuple[slice, ...]:
    """Columns of each view's block where the views lie side by side."""
    return view_slices(tuple(int(block.shape[1]) for block in blocks))


def rebatch(chunks: Iterable[list[ViewRows]], size: int) -> Iterator[list[ViewRows]]:
    """The same rows in batches of `size`; the last one may be smaller."""
    left: list[ViewRows] | None = None
    for chunk in chunks:
        blocks = chunk if left is None else [_stack(pair) for pair in zip(left, chunk, strict=True)]
        rows = blocks[0].shape[0]
        whole = rows - rows % size
        for begin in range(0, whole, size):
            yield [block[begin : begin + size] for block in blocks]
        left = [block[whole:] for block in blocks] if whole < rows else None
    if left is not None:
        yield left


def _read_list(views: Any, view_sizes: Any, at_least: int) -> Source:
    beside = "for one array with the views side by side, give their widths as view_sizes"
    if not isinstance(views, list | tuple):
        raise ValueError(f"views of type {type(views).__name__}: expected a list of arrays, one per view; {beside}")
    if len(views) < 2:
        count = f"{len(views)} view{'s' * (len(views) != 1)}"
        raise ValueError(f"views has {count}: expected at least two, [X1, X2, ...]; {beside}")
    tables = [read_table(view, at_least, f"view {i}") for i, view in enumerate(views)]
    require_one_order(views)
    rows = [int(table.shape[0]) for table in tables]
    if len(set(rows)) > 1:
        raise ValueError(
            f"views with {', '.join(map(str, rows))} rows: expected the same number in each view, since row k of all "
            "views is one sample"
        )
    source = Source(tables, [(i, slice(0, int(table.shape[1]))) for i, table in enumerate(tables)])
    if view_sizes is not None and not isinstance(view_sizes, str) and list(source.sizes) != list(view_sizes):
        raise ValueError(
            f"view_sizes={view_sizes!r}, but the views given have the widths {source.sizes}: expected the same, or "
            "view_sizes=None"
        )
    return source


def _require_features(estimator: Any, sizes: tuple[int, ...], names: Any) -> None:
    name, fitted = type(estimator).__name__, estimator.n_features_per_view_
    if len(sizes) != len(fitted):
        raise ValueError(
            f"views has {len(sizes)} views, but {name} was fitted with {len(fitted)}; give {len(fitted)}"
        )
    for i, (got, expected) in enumerate(zip(sizes, fitted, strict=True)):
        if got != expected:
            raise ValueError(f"view {i} has {got} features, but {name} was fitted with {expected}; give {expected}")
    known = getattr(estimator, "feature_names_in_", None)
    if names is not None and known is not None and not np.array_equal(names, known):
        raise ValueError(
            f"the names of the columns, or their order, are not those that {name} was fitted with: expected "
            f"{', '.join(known[:5])}{', ...' * (len(known) > 5)}"
        )


def _rows_of(table: Any, rows: Array | slice, number: int) -> Any:
    part = table[rows]
    if is_dask(part):
        stated, part = part.shape, part.compute()
        if part.shape != stated:
            raise ValueError(
                f"a chunk of view {number} has shape {part.shape}: expected {tuple(map(int, stated))}, as its Dask "
                "array states; call compute_chunk_sizes() on what Dask was not told the size of"
            )
    return part.tocsr() if sparse.issparse(part) else np.asarray(part)


def _convert(block: Any, dtype: np.dtype[Any]) -> ViewRows:
    if sparse.issparse(block):
        return block.astype(dtype, copy=False)
    return np.array(block, dtype=dtype, order="C", copy=None if _file_behind(block) is None else True)


def _stack(blocks: Sequence[ViewRows]) -> ViewRows:
    return sparse.vstack(blocks, format="csr") if any(map(sparse.issparse, blocks)) else np.concatenate(blocks)


def _require_finite(block: ViewRows, view: int) -> None:
    values = block.data if sparse.issparse(block) else block
    if np.isfinite(values.sum(dtype=np.float64)) or np.isfinite(values).all():
        return
    word = "NaN" if np.isnan(values).any() else "infinity"
    raise ValueError(
        f"view {view} contains {word}: expected finite numbers; drop the rows with missing values, or fill them in "
        "first, e.g. with sklearn.impute.SimpleImputer"
    )


def _file_behind(table: Any) -> mmap.mmap | None:
    while isinstance(table, np.ndarray):
        table = table.base
    return table if isinstance(table, mmap.mmap) else None


def _release(table: Any) -> None:
    """Let go of the pages read of a mapped file, which else count as memory of this process until it ends.

    Only where the file itself holds what was written: in a copy-on-write mapping the changes would be lost.
    """
    file = _file_behind(table)
    if file is not None and getattr(table, "mode", "") in ("r", "r+", "w+") and hasattr(file, "madvise"):
        file.madvise(mmap.MADV_DONTNEED)
