"""Several steps at once for the methods that move by lifts of their minibatches.

Such a method changes the iterate by ``X <- X - lift(rows, F)`` and looks at it through projections alone.  Over a
few coming minibatches the projections can then be kept up to date among themselves,

    ``project(later, X - lift(rows, F)) = project(later, X) - K F``   with   ``K = kernel(later, rows)``,

and the tall X, which does not fit in the cache, is read and written once for all of them.  The numbers are those of
single steps up to rounding.
"""

import numpy as np

from cdfsg.linalg import Array
from cdfsg.problems import SpannedProblem

COLUMNS = 100
"""Columns of all lanes from which on spans pay: below, the kernel costs more than the products that it saves."""


class Span:
    """The iterate seen from stacked minibatches while it moves by lifts of them.

    Attributes
    ----------
    values : array (s r, m, lanes, p)
        Projections of the iterate; after a move by some rows, right for the rows behind them.
    moves : array (s r, m, lanes, p)
        What was lifted: the iterate has gone from X to ``X - lift(rows, moves)``.
    """

    def __init__(self, problem: SpannedProblem, rows: Array, X: Array) -> None:
        self._problem = problem
        self._rows = rows
        self.values = problem.project(rows, X)
        self.moves = np.zeros_like(self.values)

    def move(self, part: slice, factor: Array) -> None:
        """``X <- X - lift(rows[part], factor)``; a part comes after those before it."""
        self.moves[part] = factor
        behind = self._rows[part.stop :]
        if len(behind):
            kernel = self._problem.kernel(behind, self._rows[part])
            self.values[part.stop :] -= apply_kernel(kernel, factor)


def apply_kernel(kernel: Array, R: Array) -> Array:
    """``project(Z, lift(W, R))`` from ``kernel(Z, W)``: (m, len(Z), len(W)) and (len(W), m, lanes, p)."""
    rows, m, lanes, p = R.shape
    out = np.empty((kernel.shape[1], m, lanes * p), dtype=R.dtype)
    flat = R.reshape(rows, m, lanes * p)
    for i, K in enumerate(kernel):
        np.matmul(K, flat[:, i], out=out[:, i])
    return out.reshape(-1, m, lanes, p)
