"""GCCA on minibatches of centred and scaled rows, and the moments for that."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from cdfsg.estimator.inputs import ViewRows
from cdfsg.linalg import Array, view_slices
from cdfsg.problems import SampledGCCA

Samples = Any
"""A list of one minibatch: per view the centred and scaled rows, an array or `CentredRows`."""


class CentredRows(LinearOperator):  # type: ignore[misc]
    """``(rows - 1 mean') / scale`` for CSR rows, through products alone."""

    def __init__(self, rows: Any, mean: Array, scale: Array) -> None:
        super().__init__(rows.dtype, rows.shape)
        self.rows, self.mean, self.scale = rows, mean, scale

    def _matmat(self, W: Array) -> Array:
        V = W / self.scale[:, None]
        return self.rows @ V - self.mean @ V

    def _rmatmat(self, R: Array) -> Array:
        return (self.rows.T @ R - np.outer(self.mean, R.sum(axis=0))) / self.scale[:, None]


def centre_and_scale(blocks: list[ViewRows], mean: Array, scale: Array) -> Samples:
    """Rows ``(x - mean) / scale`` of every view; mean and scale have shape (n,)."""
    batch = []
    for block, view in _with_columns(blocks):
        m, s = mean[view].astype(block.dtype), scale[view].astype(block.dtype)
        batch.append(CentredRows(block, m, s) if sparse.issparse(block) else (block - m) / s)
    return [batch]


class StreamedGCCA(SampledGCCA):
    """`SampledGCCA` in one lane on `Samples`; only the two products with the data differ."""

    def scores(self, samples: Samples, X: Array) -> Array:
        """``P_i = Z_i X_i`` of every view, shape (1, 1, l m, p)."""
        P = np.stack([rows @ X[0, view] for rows, view in zip(samples[0], self.slices, strict=True)], axis=1)
        return P.reshape(1, 1, -1, P.shape[-1])

    def adjoint(self, samples: Samples, R: Array) -> Array:
        m = len(self.sizes)
        return np.concatenate([rows.T @ R[0, 0, i::m] for i, rows in enumerate(samples[0])])[None]


class Moments:
    """Count, mean, variance and range of n columns over the rows seen, repeats included."""

    def __init__(self, n: int) -> None:
        self.rows = 0
        self.mean, self.squares = np.zeros(n), np.zeros(n)  # squares of deviations from the mean, summed
        self.low, self.high = np.full(n, np.inf), np.full(n, -np.inf)

    @property
    def variance(self) -> Array:
        return self.squares / max(self.rows, 1)

    def largest_deviation(self, centre: Array) -> Array:
        """Largest absolute deviation from a vector, shape (n,)."""
        return np.maximum(self.high - centre, centre - self.low)

    def update(self, blocks: list[ViewRows]) -> None:
        """Merge the moments of a batch, one block (l, n_i) per view (Chan, Golub, LeVeque 1983).

        Sums are of deviations from the mean so far: a mean far from zero costs no digits.
        """
        size = blocks[0].shape[0]
        total = self.rows + size
        for block, view in _with_columns(blocks):
            shift = self.mean[view] if self.rows else _dense(block[:1])  # near the mean of the first batch
            shift = shift.astype(block.dtype).astype(np.float64)  # it can be subtracted without rounding
            sums, squares = _sums(block, shift)
            delta = sums / size  # the batch's mean minus shift
            inner = np.maximum(squares - size * delta**2, 0)
            move = delta + shift - self.mean[view]
            self.squares[view] += inner + move**2 * (self.rows * size / total)
            self.mean[view] += move * (size / total)
            self.low[view] = np.minimum(self.low[view], _dense(block.min(axis=0)))
            self.high[view] = np.maximum(self.high[view], _dense(block.max(axis=0)))
        self.rows = total


def _with_columns(blocks: list[ViewRows]) -> Iterator[tuple[ViewRows, slice]]:
    """Each view's block with its columns where the views lie side by side."""
    return zip(blocks, view_slices(tuple(int(block.shape[1]) for block in blocks)), strict=True)


def _dense(row: ViewRows) -> Array:
    return row.toarray().ravel() if sparse.issparse(row) else row.ravel()


def _sums(block: ViewRows, shift: Array) -> tuple[Array, Array]:
    """Column sums of ``x - shift`` and of its square."""
    if sparse.issparse(block):
        size, n = block.shape
        gap = block.data.astype(np.float64) - shift[block.indices]
        absent = size - np.bincount(block.indices, minlength=n)  # each of them deviates by -shift
        sums = np.bincount(block.indices, gap, minlength=n) - absent * shift
        return sums, np.bincount(block.indices, gap**2, minlength=n) + absent * shift**2
    gap = block - shift.astype(block.dtype)
    return gap.sum(axis=0, dtype=np.float64), np.einsum("lj,lj->j", gap, gap).astype(np.float64)
