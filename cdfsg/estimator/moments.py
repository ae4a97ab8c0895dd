"""Running moments of the columns of a stream: count, mean, deviation, smallest and largest value."""

import numpy as np
from scipy import sparse

from cdfsg.estimator.inputs import ViewRows, slices_of
from cdfsg.linalg import Array


class Moments:
    """Moments of n columns, all views side by side, over the rows seen so far; a row seen twice counts twice."""

    def __init__(self, n: int) -> None:
        self.rows = 0
        self.mean, self.squares = np.zeros(n), np.zeros(n)  # the sums of squared deviations from the mean
        self.low, self.high = np.full(n, np.inf), np.full(n, -np.inf)

    @property
    def variance(self) -> Array:
        return self.squares / max(self.rows, 1)

    def largest_deviation(self, centre: Array) -> Array:
        """Largest absolute deviation from a vector, shape (n,)."""
        return np.maximum(self.high - centre, centre - self.low)

    def update(self, blocks: list[ViewRows]) -> None:
        """Take in a batch, one block (l, n_i) per view, and merge its moments (Chan, Golub, LeVeque 1983).

        Sums are taken of deviations from the mean so far, so that a mean far from zero costs no digits.
        """
        size = blocks[0].shape[0]
        total = self.rows + size
        for block, view in zip(blocks, slices_of(blocks), strict=True):
            first = block[:1].toarray() if sparse.issparse(block) else block[:1]  # near the mean of the first batch
            shift = self.mean[view] if self.rows else first[0]
            shift = shift.astype(block.dtype).astype(np.float64)  # a number that can be subtracted without rounding
            sums, squares = _sums(block, shift)
            delta = sums / size  # the batch's mean minus shift
            inner = np.maximum(squares - size * delta**2, 0)
            move = delta + shift - self.mean[view]
            self.squares[view] += inner + move**2 * (self.rows * size / total)
            self.mean[view] += move * (size / total)
            low, high = block.min(axis=0), block.max(axis=0)
            if sparse.issparse(block):
                low, high = low.toarray().ravel(), high.toarray().ravel()
            self.low[view] = np.minimum(self.low[view], low)
            self.high[view] = np.maximum(self.high[view], high)
        self.rows = total


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
