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
