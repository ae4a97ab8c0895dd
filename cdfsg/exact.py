"""Exact solutions of GCCA from streamed covariances, where these are small enough to be kept."""

from collections.abc import Iterable

import numpy as np
from scipy import sparse
from scipy.linalg import blas, eigh

from cdfsg import metrics
from cdfsg.linalg import Array, view_slices
from cdfsg.merits import Identity, Merit, largest_slope
from cdfsg.streamed import LEVEL, Moments, ViewRows, dense

WIDEST = 4000  # columns in all up to which covariances are kept: 128 MB
RESOLVED = 1e-10  # relative variance down to which one pass in double precision gives a direction to six digits
LEAST = 1e-15  # relative variance that a second pass blows up to one
CONSTANT = 1e-13  # deviation of a projection, relative to its largest value, that is none
NO_ROWS = "the iterator gave no rows; if it was read before, make a new one"
SETTLED = 1e-9  # relative gain of a step at which an ascent ends
ASCENT_STEPS = 1000


class ExactSolver:
    """Second moments of all columns, streamed in float64 about the mean of the first rows, and their best weights.

    Where a view has directions of very little variance, `resolve` takes the moments again in coordinates that the
    first pass whitened: what its rounding hid is then known down to a relative deviation of about 1e-12.
    """

    def __init__(
        self, sizes: tuple[int, ...], merit: Merit, n_components: int, center: bool, ridge: Array | None = None
    ) -> None:
        self.sizes, self.merit, self.n_components, self.center = sizes, merit, n_components, center
        self.slices, n = view_slices(sizes), sum(sizes)
        self.ridge = np.zeros(n) if ridge is None else ridge  # added to the diagonal of M
        self.moments, self.shift, self.products = Moments(n), np.zeros(n), np.zeros((n, n), order="F")
        self.basis: list[Array] = []  # per view the directions that the second pass takes moments of
        self._covariance: Array | None = None
        self._best: tuple[Array, Array] | None = None

    @property
    def weights(self) -> Array:
        """The best weights for the rows so far, shape (n, p)."""
        return self.best()[0]

    @property
    def mean(self) -> Array:
        """What is subtracted from a row, shape (n,)."""
        return self.moments.mean if self.center else np.zeros_like(self.shift)

    @property
    def covariance(self) -> Array:
        """Second moments S of the columns, central ones if `center`, shape (n, n)."""
        if self._covariance is None:
            gap, mean = self.moments.mean - self.shift, self.moments.mean - self.mean
            self._covariance = self._mean_products() - np.outer(gap, gap) + np.outer(mean, mean)
        return self._covariance

    def advance(self, blocks: list[ViewRows]) -> None:
        """Take in rows, one block (l, n_i) per view."""
        with np.errstate(over="ignore", invalid="ignore"):
            self.moments.update(blocks)
        self.moments.require_squares(self.slices, np.dtype(np.float64))
        self._covariance = self._best = None
        if all(map(sparse.issparse, blocks)):
            Z = sparse.hstack(blocks, format="csr").astype(np.float64)
            self.products += (Z.T @ Z).toarray()
            return
        if self.moments.rows == blocks[0].shape[0]:
            self.shift = self.moments.mean.copy()
        self._add(np.hstack([dense(block) for block in blocks]) - self.shift)

    def is_resolved(self) -> bool:
        """Whether no view has directions of so little variance that a second pass is needed."""
        correlation = self._with_ridge(*self._correlation())
        spectra = (np.linalg.eigvalsh(correlation[view, view]) for view in self.slices)
        return all(values[0] > RESOLVED * values[-1] for values in spectra)

    def resolve(self, blocks: list[ViewRows]) -> None:
        """Take in rows of the first pass again, about their mean and in whitened coordinates."""
        if not self.basis:
            correlation, units = self._correlation()
            correlation = self._with_ridge(correlation, units)
            for view in self.slices:
                values, vectors = np.linalg.eigh(correlation[view, view])
                self.basis.append(vectors / np.maximum(values, LEAST * values[-1]) ** 0.5 / units[view, None])
            self.products[:], self._best = 0, None
        gaps = zip(blocks, self.slices, self.basis, strict=True)
        self._add(np.hstack([(dense(block) - self.mean[view]) @ B for block, view, B in gaps]))

    def moments_of(self, weights: Array) -> Array:
        """``K_ij = w_i' S_ij w_j`` of weights (n, p), shape (m, m, p, p)."""
        return metrics.cross_moments(weights[None], self.covariance, self.sizes)[:, :, 0]

    def best(self) -> tuple[Array, Array]:
        """The best weights X (n, p) under ``X'MX = I`` for the rows so far, and ``K_ij = X_i' S_ij X_j`` (m, m, p, p).

        With another merit than identity they are a local optimum, found from that for identity.  ValueError if the
        rows span too few directions.
        """
        if self._best is None:
            S, units, least = self._mean_products(), np.ones(len(self.shift)), RESOLVED
            if not self.basis:
                S, units = self._correlation()
                least = 10 * len(S) * np.finfo(float).eps
            T, roots = metrics.whitened(self._with_ridge(S, units), self.sizes, rtol=least)
            ranks, p = [root.shape[1] for root in roots], self.n_components
            if p > max(ranks):
                raise ValueError(f"n_components={p}: expected at most {max(ranks)}, the rank of these rows")
            Y = eigh(T, subset_by_index=(len(T) - p, len(T) - 1))[1][:, ::-1]
            if self.merit.name != "identity":
                Y = _ascend(T, Y, np.cumsum(ranks)[:-1], self.merit)
            X = metrics.unwhitened(Y, roots)
            K = metrics.cross_moments(X[None], S, self.sizes)[:, :, 0]
            if self.basis:
                X = np.concatenate([B @ X[view] for B, view in zip(self.basis, self.slices, strict=True)])
            self._best = X / units[:, None], K
        return self._best

    def _with_ridge(self, S: Array, units: Array) -> Array:
        """S with the ridge on its diagonal blocks, in the coordinates of S."""
        if not self.ridge.any():
            return S
        S = S + np.diag(self.ridge / units**2 * (not self.basis))
        for view, B in zip(self.slices, self.basis, strict=False):
            S[view, view] += (B.T * self.ridge[view]) @ B
        return S

    def _add(self, Z: Array) -> None:
        """Add ``Z'Z`` to the upper triangle of the products, in place."""
        self.products = blas.dsyrk(1.0, Z.T, beta=1.0, c=self.products, overwrite_c=1)

    def _mean_products(self) -> Array:
        upper = np.triu(self.products) / self.moments.rows
        return upper + np.triu(upper, 1).T

    def _correlation(self) -> tuple[Array, Array]:
        """The covariance in columns of unit size, and these units (n,), infinite where a column is constant."""
        units = np.sqrt(np.maximum(np.diag(self.covariance), 0))
        units[units <= LEVEL * np.abs(self.moments.mean)] = np.inf
        return self.covariance / np.outer(units, units), units


def streamed_moments(projections: Iterable[list[Array]], center: bool) -> Array:
    """``K_ij = P_i' P_j / N`` (m, m, p, p) of projections in blocks (l, p) per view; 0 where one is constant."""
    found = None
    for blocks in projections:
        found = found or ExactSolver(tuple(block.shape[1] for block in blocks), Identity(), 1, center)
        found.advance(blocks)
    if found is None:
        raise ValueError(NO_ROWS)
    S, largest = found.covariance, np.maximum(np.abs(found.moments.low), np.abs(found.moments.high))
    varies = np.sqrt(np.maximum(np.diag(S), 0)) > CONSTANT * largest
    m = len(found.sizes)
    return (S * np.outer(varies, varies)).reshape(m, -1, m, len(S) // m).transpose(0, 2, 1, 3)


def _ascend(T: Array, Y: Array, cuts: Array, merit: Merit) -> Array:
    """Climb from Y to a maximum of ``sum_r sum_{i != j} g(y_r^[i]' T_ij y_r^[j])`` over ``Y'Y = I``.

    The merit g is convex, so each step maximises a linear function below the objective, up to a constant.
    """
    m, value = len(cuts) + 1, -np.inf
    reach = (m - 1) * largest_slope(merit)
    for _ in range(ASCENT_STEPS):
        parts, columns = np.split(Y, cuts), np.split(T, cuts, axis=1)
        products = [np.split(columns[j] @ parts[j], cuts) for j in range(m)]
        t = np.array([[np.sum(parts[i] * products[j][i], axis=0) for j in range(m)] for i in range(m)])
        before, value = value, merit.value(t).sum()
        if value - before <= SETTLED * abs(value):
            break
        G = [sum(products[j][i] * merit.slope(t[i, j]) for j in range(m)) for i in range(m)]
        U, _, Vt = np.linalg.svd(np.concatenate(G) + reach * Y, full_matrices=False)
        Y = U @ Vt
    return Y
