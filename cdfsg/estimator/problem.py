"""GCCA on minibatches of centred and scaled rows."""

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from cdfsg.linalg import Array
from cdfsg.problems import SampledGCCA
from cdfsg.streamed import ViewRows, with_columns

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
    """`SampledGCCA` in one lane on `Samples`; only the two products with the data differ."""

    def scores(self, samples: Samples, X: Array) -> Array:
        """``P_i = Z_i X_i`` of every view, shape (1, 1, l m, p)."""
        P = np.stack([rows @ X[0, view] for rows, view in zip(samples[0], self.slices, strict=True)], axis=1)
        return P.reshape(1, 1, -1, P.shape[-1])

    def adjoint(self, samples: Samples, R: Array) -> Array:
        m = len(self.sizes)
        return np.concatenate([rows.T @ R[0, 0, i::m] for i, rows in enumerate(samples[0])])[None]
