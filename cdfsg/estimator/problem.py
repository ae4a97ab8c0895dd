"""GCCA on minibatches whose rows are centred and scaled without being changed, and may be sparse."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from cdfsg.estimator.inputs import Block
from cdfsg.linalg import Array
from cdfsg.problems import SampledGCCA


@dataclass(frozen=True)
class Dense:
    """Rows of one view, centred and scaled beforehand: they are few and about to be read four times."""

    values: Array

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: slice) -> "Dense":
        return Dense(self.values[rows])

    def times(self, W: Array) -> Array:
        """``Z W``, shape (l, p)."""
        product: Array = self.values @ W
        return product

    def adjoint(self, R: Array) -> Array:
        """``Z' R``, shape (n_i, p)."""
        product: Array = self.values.T @ R
        return product


@dataclass(frozen=True)
class Sparse:
    """Rows of one view in CSR form; the mean (n_i,) and the scale (n_i,) enter the products alone.

    ``Z = (rows - 1 mean') / scale`` would be dense, but ``Z W = rows V - 1 (mean'V)`` with ``V = W / scale`` and
    ``Z'R = (rows'R - mean (1'R)) / scale`` are products with the sparse rows.
    """

    rows: Any
    mean: Array
    scale: Array

    def __len__(self) -> int:
        return int(self.rows.shape[0])

    def __getitem__(self, rows: slice) -> "Sparse":
        return Sparse(self.rows[rows], self.mean, self.scale)

    def times(self, W: Array) -> Array:
        """``Z W``, shape (l, p)."""
        V = W / self.scale[:, None]
        product: Array = self.rows @ V - self.mean @ V
        return product

    def adjoint(self, R: Array) -> Array:
        """``Z' R``, shape (n_i, p)."""
        product: Array = (self.rows.T @ R - np.outer(self.mean, R.sum(axis=0))) / self.scale[:, None]
        return product


@dataclass(frozen=True)
class Batch:
    """A minibatch of every view."""

    views: tuple[Dense | Sparse, ...]

    def __len__(self) -> int:
        return len(self.views[0])

    def __getitem__(self, rows: slice) -> "Batch":
        if rows == slice(None):
            return self
        return Batch(tuple(view[rows] for view in self.views))


def make_batch(blocks: list[Block], mean: Array, scale: Array) -> Batch:
    """Rows ``(x - mean) / scale`` of every view; mean and scale have shape (n,)."""
    views: list[Dense | Sparse] = []
    begin = 0
    for block in blocks:
        view = slice(begin, begin + block.shape[1])
        begin = view.stop
        m, s = mean[view].astype(block.dtype), scale[view].astype(block.dtype)
        views.append(Sparse(block, m, s) if sparse.issparse(block) else Dense((block - m) / s))
    return Batch(tuple(views))


class StreamedGCCA(SampledGCCA):
    """`SampledGCCA` on minibatches of the type `Batch`; all but the two products with the data is inherited."""

    def project(self, Z: Any, X: Array) -> Array:
        """``P_i = Z_i X_i`` of every view, shape (l, m, lanes, p)."""
        _, lanes, p = X.shape
        P = np.empty((len(Z), len(self.sizes), lanes * p), dtype=X.dtype)
        flat = X.reshape(len(X), lanes * p)
        for i, (rows, view) in enumerate(zip(Z.views, self.slices, strict=True)):
            P[:, i] = rows.times(flat[view])
        return P.reshape(len(Z), len(self.sizes), lanes, p)

    def lift(self, Z: Any, R: Array, out: Array | None = None) -> Array:
        """Stack ``Z_i' R_i`` over the views, shape (n, lanes, p); `out` is overwritten when given."""
        lanes, p = R.shape[2:]
        if out is None:
            out = np.empty((sum(self.sizes), lanes, p), dtype=R.dtype)
        flat = out.reshape(len(out), lanes * p)
        factor = R.reshape(len(Z), len(self.sizes), lanes * p)
        for i, (rows, view) in enumerate(zip(Z.views, self.slices, strict=True)):
            flat[view] = rows.adjoint(factor[:, i])
        return out
