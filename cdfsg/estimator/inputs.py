"""The data of the estimator, in minibatches."""

import mmap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise, repeat
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from cdfsg.exact import NO_ROWS
from cdfsg.linalg import Array, view_slices
from cdfsg.streamed import ViewRows

RowCount = int | Callable[[], int]  # of a batch, perhaps known once the first rows are read

RUN_BYTES = 2**20  # read in one go from a mapped file: a disk gives them as fast as a few
RUNS_AT_ONCE = 16  # that are shuffled among each other; they bound the memory
MEASURED_ROWS = 2048  # in a batch from which only products with p columns are taken
MASKED = "has masked values: drop those rows in all views together, or fill them in"


@dataclass(frozen=True)
class Source:
    """Views that can be read again: a table each, or one with all of them side by side."""

    tables: list[Any]  # arrays, CSR matrices or Dask arrays, with a row per sample
    sizes: tuple[int, ...]  # widths of the views; 0 for one that is missing
    names: list[Any]  # of the columns of each view, if it is a DataFrame
    same_labels: bool | None = None  # whether all DataFrames have the same row labels; None for fewer than two
    again: ClassVar[bool] = True  # whether the rows can be read more than once

    @property
    def views(self) -> list[int]:
        """Numbers of the views that are there."""
        return [i for i, size in enumerate(self.sizes) if size]

    @property
    def n_samples(self) -> int:
        return int(self.tables[0].shape[0])

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 if it holds the numbers of every table exactly, else float64."""
        short = all(table.dtype.itemsize <= (4 if table.dtype.kind == "f" else 2) for table in self.tables)
        return np.dtype(np.float32 if short else np.float64)

    def take(self, rows: Array | slice) -> list[ViewRows]:
        """The named rows of every view, converted; ValueError if one is missing or infinite."""
        parts = [_rows_of(table, rows, i) for i, table in zip(self.views, self.tables, strict=False)]
        if len(parts) < len(self.views):
            parts = [parts[0][:, view] for view in view_slices(self.sizes)]
        blocks = [_convert(part, self.dtype) for part in parts]
        for table in self.tables:
            _release(table)
        for i, block in zip(self.views, blocks, strict=True):
            _require_finite(block, i)
        return blocks

    def batches(self, size: RowCount, rng: np.random.Generator | None = None) -> Iterator[list[ViewRows]]:
        """One pass in batches of `size` rows, the last perhaps smaller, in random order if there is a generator.

        On a disk or behind Dask, runs of rows come in random order, and `RUNS_AT_ONCE` of them are shuffled.
        """
        size = size() if callable(size) else size
        if rng is None or any(is_dask(table) or _file_behind(table) for table in self.tables):
            yield from rebatch(self._runs(size, rng), size)
            return
        order = rng.permutation(self.n_samples)
        for begin in range(0, self.n_samples, size):
            yield self.take(order[begin : begin + size])

    def _runs(self, size: int, rng: np.random.Generator | None) -> Iterator[list[ViewRows]]:
        """Blocks of consecutive rows: the chunks of Dask, else about `RUN_BYTES`."""
        chunked = next(filter(is_dask, self.tables), None)
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


@dataclass
class Stream:
    """Chunks of rows that are made or received during the fit."""

    make: Any  # an iterator of chunks, or a callable that returns one
    read: Callable[[Any], Source]
    rows: int | None = None  # of a whole pass, once one was made
    n_samples: ClassVar[None] = None

    @property
    def again(self) -> bool:
        return not hasattr(self.make, "__next__")

    def batches(self, size: RowCount, rng: np.random.Generator | None = None) -> Iterator[list[ViewRows]]:
        """One pass in batches of `size` rows across chunks, in their order; ValueError for fewer rows or more."""
        chunks = self.make() if self.again else self.make
        if not isinstance(chunks, Iterable):
            raise ValueError(f"views() returned {type(chunks).__name__}: expected an iterator of chunks")
        return rebatch(self._read_each(chunks), size)

    def _read_each(self, chunks: Iterable[Any]) -> Iterator[list[ViewRows]]:
        rows = 0
        for source in map(self.read, chunks):
            rows += source.n_samples
            if source.n_samples:
                yield source.take(slice(None))
        if not rows and self.rows is None:
            raise ValueError(NO_ROWS)
        if rows != (self.rows or rows):
            again = "views must return a new iterator over the same rows each time"
            raise ValueError(f"views() gave {rows} rows, but {self.rows} in the first pass: {again}")
        self.rows = rows


def is_stream(X: Any) -> bool:
    """Whether X is an iterator, or a callable that returns one."""
    return hasattr(X, "__next__") or (callable(X) and not hasattr(X, "__array__"))


def is_dask(table: Any) -> bool:
    return hasattr(table, "dask") and hasattr(table, "compute")


def rebatch(chunks: Iterable[list[ViewRows]], size: RowCount) -> Iterator[list[ViewRows]]:
    """The same rows in batches of `size`; the last one may be smaller."""
    left: list[ViewRows] | None = None
    for chunk in chunks:
        size = size() if callable(size) else size
        blocks = chunk if left is None else [_stack(pair) for pair in zip(left, chunk, strict=True)]
        rows = blocks[0].shape[0]
        whole = rows - rows % size
        for begin in range(0, whole, size):
            yield [block[begin : begin + size] for block in blocks]
        left = [block[whole:] for block in blocks] if whole < rows else None
        if left and blocks is chunk:  # whose arrays may be filled anew with the next rows
            left = [block.copy() for block in left]
    if left is not None:
        yield left


def _rows_of(table: Any, rows: Array | slice, number: int) -> Any:
    part = table[rows]
    if is_dask(part):
        stated, part = part.shape, part.compute()
        if part.shape != stated:
            raise ValueError(f"a chunk of view {number} has shape {part.shape}, not {stated}: compute_chunk_sizes()")
        if np.ma.is_masked(part):
            raise ValueError(f"view {number} {MASKED}")
    return part.tocsr() if sparse.issparse(part) else np.asarray(part)


def _convert(block: Any, dtype: np.dtype[Any]) -> ViewRows:
    if sparse.issparse(block):
        block = block.astype(dtype)  # a copy
        block.sum_duplicates()  # entries in parts would be squared by their parts
        return block
    return np.array(block, dtype=dtype, order="C", copy=True if _file_behind(block) else None)


def _stack(blocks: Sequence[ViewRows]) -> ViewRows:
    return sparse.vstack(blocks, format="csr") if any(map(sparse.issparse, blocks)) else np.concatenate(blocks)


def _require_finite(block: ViewRows, view: int) -> None:
    values = block.data if sparse.issparse(block) else block
    if np.isfinite(values).all():
        return
    word = "NaN" if np.isnan(values).any() else "infinity"
    raise ValueError(f"view {view} contains {word}: drop those rows in all views together, or use a SimpleImputer")


def _file_behind(table: Any) -> mmap.mmap | None:
    while isinstance(table, np.ndarray):
        table = table.base
    return table if isinstance(table, mmap.mmap) else None


def _release(table: Any) -> None:
    """Let go of the pages read of a mapped file, which else count as memory of this process."""
    file = _file_behind(table)
    if file and getattr(table, "mode", "") in ("r", "r+", "w+") and hasattr(file, "madvise"):  # "c" loses changes
        file.madvise(mmap.MADV_DONTNEED)
