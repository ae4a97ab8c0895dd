"""Rows that come in blocks, a list with one array or sparse CSR matrix (l, n_i) per view: moments, and GCCA on them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from cdfsg.linalg import Array, view_slices
from cdfsg.problems import SampledGCCA

ViewRows = Any
"""Rows of one view: a float array or a sparse CSR matrix, shape (l, n_i)."""

LEVEL = 2e-15  # deviation, relative to the mean, that is none
SQUARED = 1e15  # largest float32 number, and the inverse of the least, that is squared in float32


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

    def require_squares(self, slices: tuple[slice, ...], dtype: np.dtype[Any]) -> None:
        """Raise ValueError if a column's values are too large or too small to be squared in `dtype`."""
        seen, kind = self.largest_deviation(self.mean), np.finfo(dtype)
        fits = (seen == 0) | ((seen >= kind.tiny**0.5) & (seen <= kind.max**0.5)) & np.isfinite(self.squares)
        for i, view in enumerate(slices):
            if not fits[view].all():
                odd = seen[view][~fits[view]].max()
                raise ValueError(f"view {i} has values of {odd:.3g}: {dtype} needs other units to square them")

    def require_varied(self, slices: tuple[slice, ...], centre: Array) -> None:
        """Raise ValueError if a view has deviated from a vector in no row."""
        varied = self.largest_deviation(centre) > LEVEL * np.abs(self.mean)
        for i, view in enumerate(slices):
            if not varied[view].any():
                raise ValueError(f"view {i} is constant in all {self.rows} rows: drop the view")

    def update(self, blocks: list[ViewRows]) -> None:
        """Merge the moments of a batch, one block (l, n_i) per view (Chan, Golub, LeVeque 1983).

        Sums are of deviations from the mean so far: a mean far from zero costs no digits.
        """
        size = blocks[0].shape[0]
        total = self.rows + size
        for block, view in with_columns(blocks):
            shift = self.mean[view] if self.rows else dense(block[:1]).ravel()  # near the mean of the first batch
            shift = shift.astype(block.dtype).astype(np.float64)  # it can be subtracted without rounding
            low, high = (dense(extreme).ravel() for extreme in (block.min(axis=0), block.max(axis=0)))
            sums, squares = _sums(block, shift, np.maximum(high - shift, shift - low))
            delta = sums / size  # the batch's mean minus shift
            inner = np.maximum(squares - size * delta**2, 0)
            move = delta + shift - self.mean[view]
            self.squares[view] += inner + move**2 * (self.rows * size / total)
            self.mean[view] += move * (size / total)
            self.low[view], self.high[view] = np.minimum(self.low[view], low), np.maximum(self.high[view], high)
        self.rows = total


def with_columns(blocks: list[ViewRows]) -> Iterator[tuple[ViewRows, slice]]:
    """Each view's block with its columns where the views lie side by side."""
    return zip(blocks, view_slices(tuple(int(block.shape[1]) for block in blocks)), strict=True)


def dense(block: ViewRows) -> Array:
    return block.toarray() if sparse.issparse(block) else block


def absurd_rows(blocks: list[ViewRows], moments: Moments, most: int | None = None) -> Array:
    """Mark the rows of a batch that outweigh all others together, those in `moments` included, shape (l,).

    The square of such a row's deviation is five times the sum of all others' in most of the columns, or a hundred times
    in one; 1e8 times, if the view is sparse or few rows deviate in that column at all.  At most `most` rows are
    marked, by default `most_absurd` ones.
    """
    l = blocks[0].shape[0]  # noqa: E741
    most = most or most_absurd(moments.rows + l, l)
    score, squares, marked = np.zeros(l), [], np.zeros(l, dtype=bool)
    with np.errstate(over="ignore", invalid="ignore"):
        if not most or not any(_may_stand_out(block, moments, view) for block, view in with_columns(blocks)):
            return marked
        for block, view in with_columns(blocks):
            middle = moments.mean[view]
            if sparse.issparse(block):
                square = block.multiply(block).tocsr()
            else:
                middle = middle if moments.rows else np.median(block, axis=0)
                square = (block - middle.astype(block.dtype)) ** 2
            total = moments.squares[view] + np.asarray(square.sum(axis=0)).ravel()
            if block.dtype == np.float32 and not np.isfinite(total).all():
                return absurd_rows([part.astype(np.float64) for part in blocks], moments, most)
            share = np.divide(1, total, out=np.zeros_like(total), where=total > 0)
            score += square @ share.astype(square.dtype)
            squares.append((square, total, middle))
        top = np.argsort(-score)[:most]
        D = np.hstack([dense(square[top]) for square, _, _ in squares])
        total, level = (np.concatenate(parts) for parts in list(zip(*squares, strict=True))[1:])
        count, others = max(moments.rows + l - len(top), 1), np.delete(np.arange(l), top)
        if (max(5, 1e4 / count) * (total - D.sum(axis=0)) >= D).all():
            return marked
        # A difference would have the rounding of the largest square.
        base = moments.squares + np.hstack([np.asarray(q[others].sum(axis=0)).ravel() for q, _, _ in squares])
        varies = base > count * (LEVEL * level) ** 2
        ratio = D[:, varies] / base[varies]
    middle = np.concatenate([np.zeros(len(t)) if sparse.issparse(q) else np.median(q, axis=0) for q, t, _ in squares])
    usual = middle[varies] > base[varies] / count / 100
    many = (ratio[:, usual] > max(5, 1e4 / count)).sum(axis=1) > usual.sum() / 2
    marked[top] = many | (ratio > np.where(usual, max(100, 1e6 / count), 1e8)).any(axis=1)
    rest, left = ~marked, most - int(marked.sum())
    if 0 < left < min(most, l):  # the largest may have hidden others
        marked[rest] = absurd_rows([block[rest] for block in blocks], moments, left)
    return marked


def most_absurd(rows: int, among: int) -> int:
    """How many absurd rows may lie among so many of all `rows`: three or one in fifty.  More are data.

    Of fewer than ten rows none can be told: in some of many columns the others agree by chance.
    """
    return max(among // 50, min(3, rows // 10))


def _may_stand_out(block: ViewRows, moments: Moments, view: slice) -> bool:
    """Whether some value outweighs the rows in `moments`, which the range of the columns tells quickly."""
    if sparse.issparse(block):
        return True
    mean = moments.mean[view]
    largest = np.maximum(block.max(axis=0) - mean, mean - block.min(axis=0))
    return bool((largest**2 > 5 * moments.squares[view]).any())


def squares_fit(reach: Array) -> bool:
    """Whether numbers up to `reach`, a magnitude per column, can be squared in float32."""
    return bool(((reach == 0) | ((reach > 1 / SQUARED) & (reach < SQUARED))).all())


def _sums(block: ViewRows, shift: Array, reach: Array) -> tuple[Array, Array]:
    """Column sums of ``x - shift``, which is at most `reach`, and of its square."""
    if sparse.issparse(block):
        size, n = block.shape
        gap = block.data.astype(np.float64) - shift[block.indices]
        absent = size - np.bincount(block.indices, minlength=n)  # each of them deviates by -shift
        sums = np.bincount(block.indices, gap, minlength=n) - absent * shift
        return sums, np.bincount(block.indices, gap**2, minlength=n) + absent * shift**2
    gap = block - shift.astype(block.dtype if squares_fit(reach) else np.float64)
    return gap.sum(axis=0, dtype=np.float64), np.einsum("lj,lj->j", gap, gap).astype(np.float64)


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
    for block, view in with_columns(blocks):
        m, s = mean[view].astype(block.dtype), scale[view].astype(block.dtype)
        batch.append(CentredRows(block, m, s) if sparse.issparse(block) else (block - m) / s)
    return [batch]


class StreamedGCCA(SampledGCCA):
    """`SampledGCCA` in one lane on `Samples`; only the two products with the data differ.

    A ridge r (n,) on the diagonal of M acts as n rows more, ``sqrt(l r_k) e_k``, where the other views are zero.
    """

    ridge: Array | None = None

    def scores(self, samples: Samples, X: Array) -> Array:
        """``P_i = Z_i X_i`` of every view, shape (1, 1, l m, p), or (1, 1, (l + n) m, p) with a ridge."""
        P = np.stack([rows @ X[0, view] for rows, view in zip(samples[0], self.slices, strict=True)], axis=1)
        if self.ridge is not None:
            more = np.zeros((self.n, *P.shape[1:]), dtype=P.dtype)
            root = np.sqrt(len(P) * self.ridge)[:, None]
            for i, view in enumerate(self.slices):
                more[view, i] = root[view] * X[0, view]
            P = np.concatenate([P, more])
        return P.reshape(1, 1, -1, P.shape[-1])

    def adjoint(self, samples: Samples, R: Array) -> Array:
        m, l = len(self.sizes), samples[0][0].shape[0]  # noqa: E741
        R = R.reshape(-1, m, R.shape[-1])
        G = np.concatenate([rows.T @ R[:l, i] for i, rows in enumerate(samples[0])])
        if self.ridge is not None and len(R) > l:
            root = np.sqrt(l * self.ridge)[:, None]
            for i, view in enumerate(self.slices):
                G[view] += root[view] * R[l:][view, i]
        return G[None]

    def _rows(self, P: Array) -> int:
        return super()._rows(P) - (0 if self.ridge is None else self.n)
