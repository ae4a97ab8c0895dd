"""GCCA on minibatches whose rows are centred and scaled without being changed, and may be sparse."""

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from cdfsg.estimator.inputs import ViewRows, slices_of
from cdfsg.linalg import Array
from cdfsg.problems import SampledGCCA


class CentredRows(LinearOperator):  # type: ignore[misc]
    """``(rows - 1 mean') / scale`` for CSR rows, as an operator: mean and scale enter the products alone.

    ``Z W = rows V - 1 (mean'V)`` with ``V = W / scale``, and ``Z'R = (rows'R - mean (1'R)) / scale``.
    """

    def __init__(self, rows: Any, mean: Array, scale: Array) -> None:
        super().__init__(rows.dtype, rows.shape)
        self.rows, self.mean, self.scale = rows, mean, scale

    def _matmat(self, W: Array) -> Array:
        V = W / self.scale[:, None]
        return self.rows @ V - self.mean @ V

    def _rmatmat(self, R: Array) -> Array:
        return (self.rows.T @ R - np.outer(self.mean, R.sum(axis=0))) / self.scale[:, None]


class Batch(tuple[Any, ...]):
    """A minibatch: the centred and scaled rows of every view, an array or `CentredRows` each."""

    def __len__(self) -> int:
        return int(super().__getitem__(0).shape[0])

    def __getitem__(self, rows: Any) -> Any:
        return self


def centre_and_scale(blocks: list[ViewRows], mean: Array, scale: Array) -> Batch:
    """Rows ``(x - mean) / scale`` of every view; mean and scale have shape (n,)."""
    batch = []
    for block, view in zip(blocks, slices_of(blocks), strict=True):
        m, s = mean[view].astype(block.dtype), scale[view].astype(block.dtype)
        batch.append(CentredRows(block, m, s) if sparse.issparse(block) else (block - m) / s)
    return Batch(batch)


class StreamedGCCA(SampledGCCA):
    """`SampledGCCA` on minibatches of the type `Batch`; all but the two products with the data is inherited."""

    def project(self, Z: Any, X: Array) -> Array:
        _, lanes, p = X.shape
        P = np.empty((len(Z), len(self.sizes), lanes * p), dtype=X.dtype)
        flat = X.reshape(len(X), lanes * p)
        for i, (rows, view) in enumerate(zip(iter(Z), self.slices, strict=True)):
            P[:, i] = rows @ flat[view]
        return P.reshape(len(Z), len(self.sizes), lanes, p)

    def lift(self, Z: Any, R: Array, out: Array | None = None) -> Array:
        lanes, p = R.shape[2:]
        if out is None:
            out = np.empty((sum(self.sizes), lanes, p), dtype=R.dtype)
        flat = out.reshape(len(out), lanes * p)
        factor = R.reshape(len(Z), len(self.sizes), lanes * p)
        for i, (rows, view) in enumerate(zip(iter(Z), self.slices, strict=True)):
            flat[view] = rows.T @ factor[:, i]
        return out
