"""Exact solutions of GCCA from streamed covariances, where these are small enough to be kept."""

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import blas, eigh

from cdfsg import metrics
from cdfsg.linalg import Array, view_slices
from cdfsg.merits import Identity, Merit, largest_slope
from cdfsg.streamed import LEVEL, Moments, ViewRows, dense, squares_fit
from cdfsg.structure import Structure, structure_of

WIDEST = 4000  # columns in all up to which covariances are kept: 128 MB
RESOLVED = 1e-10  # relative variance down to which one pass in double precision gives a direction to six digits
SINGLE = 1e-4  # the same in single precision, to three digits
SAMPLE = 100  # rows that are kept to see what one pass leaves to rounding
ROUNDED = 100  # units of rounding that a deviation must exceed to be more than rounding
FAR = 100  # standard deviations from zero from which a sparse column is centred before it is squared
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
        self.single = False  # whether float32 rows are multiplied in single precision, twice as fast
        self.basis: list[Array] = []  # per view the directions that the second pass takes moments of
        self.sample: list[tuple[Array, float]] = []  # rows of each view and their relative precision

    @property
    def weights(self) -> Array:
        """The best weights for the rows so far, shape (n, p)."""
        return self.best[0]

    @property
    def mean(self) -> Array:
        """What is subtracted from a row, shape (n,)."""
        return self.moments.mean if self.center else np.zeros_like(self.shift)

    @cached_property
    def covariance(self) -> Array:
        """Second moments S of the columns, central ones if `center`, shape (n, n)."""
        gap, mean = self.moments.mean - self.shift, self.moments.mean - self.mean
        return self._mean_products() - np.outer(gap, gap) + np.outer(mean, mean)

    @cached_property
    def spectra(self) -> tuple[Array, list[tuple[Array, Array]]]:
        """Units of the columns (n,); in them eigenvalues and eigenvectors of each view's covariance with its ridge."""
        S, units = self._in_units()
        S = self._with_ridge(S, units)
        return units, [np.linalg.eigh(S[view, view]) for view in self.slices]

    def advance(self, blocks: list[ViewRows]) -> None:
        """Take in rows, one block (l, n_i) per view."""
        if self.basis:  # the moments in its coordinates are of the rows before alone
            gap, self.shift, self.basis = self.moments.mean - self.mean, self.moments.mean.copy(), []
            self.products = np.asfortranarray((self.covariance - np.outer(gap, gap)) * self.moments.rows)
        with np.errstate(over="ignore", invalid="ignore"):
            self.moments.update(blocks)
        self.moments.require_squares(self.slices, np.dtype(np.float64))
        self._sample(blocks)
        self._forget()
        is_first = self.moments.rows == blocks[0].shape[0]
        if all(map(sparse.issparse, blocks)):
            if is_first:
                far = np.abs(self.moments.mean) > FAR * np.sqrt(self.moments.variance)
                self.shift = np.where(far, self.moments.mean, 0)
            self._add_sparse(sparse.hstack(blocks, format="csr").astype(np.float64))
            return
        single = self.single and all(block.dtype == np.float32 for block in blocks)
        single = single and squares_fit(self.moments.largest_deviation(self.moments.mean))
        if is_first:
            self.shift = self.moments.mean.astype(np.float32 if single else np.float64).astype(np.float64)
        gap = np.empty((blocks[0].shape[0], len(self.shift)), np.float32 if single else np.float64)
        for block, view in zip(blocks, self.slices, strict=True):
            np.subtract(dense(block), self.shift[view].astype(gap.dtype), out=gap[:, view])
        if single:
            self.products += blas.ssyrk(1.0, gap.T)
        else:
            self._add(gap)

    def restart(self) -> None:
        """Forget all rows, and take in others in double precision."""
        self.moments, self.single = Moments(len(self.shift)), False
        self.products[:] = 0
        self._forget()

    def is_resolved(self, least: float | None = None) -> bool:
        """Whether some rows show no direction whose relative variance is below `least`, beyond their own rounding.

        Evaluated on rows, a direction is known to their precision; in sums of squares, to the root of that.  Without
        `least` single precision is taken for exact, since rows can be read again; with it, for rounded.
        """
        strict = least is None
        units, spectra = self.spectra
        least = least or (SINGLE if self.single else RESOLVED)
        for view, (values, vectors), (rows, precision) in zip(self.slices, spectra, self.sample, strict=True):
            eps, directions = ROUNDED * np.finfo(float).eps, vectors[:, values <= least * values[-1]]
            of_rows = max(eps, 0.0 if strict else precision * len(units[view]) ** 0.5 / 2)
            centred = (rows - self.mean[view]) / units[view]
            gaps, terms = np.abs(centred @ directions), np.abs(rows / units[view]) @ np.abs(directions)
            rounding = of_rows * terms + eps * np.abs(centred).max()
            if ((gaps > rounding) & (gaps < 10 * least**0.5 * terms)).any():  # else the direction itself is rounded
                return False
        return True

    def resolve(self, blocks: list[ViewRows]) -> None:
        """Take in rows of the first pass again, about their mean and in whitened coordinates."""
        if not self.basis:
            units, spectra = self.spectra
            for view, (values, vectors) in zip(self.slices, spectra, strict=True):
                self.basis.append(vectors / _roots(values) / units[view, None])
            self.products[:] = 0
            vars(self).pop("best", None)
        gaps = zip(blocks, self.slices, self.basis, strict=True)
        self._add(np.hstack([(dense(block) - self.mean[view]) @ B for block, view, B in gaps]))

    @property
    def noise(self) -> float:
        """Relative variance below which one pass cannot tell a direction from rounding."""
        return SINGLE / 10 if self.single else 10 * len(self.shift) * float(np.finfo(float).eps)

    @cached_property
    def best(self) -> tuple[Array, Array]:
        """The best weights X (n, p) under ``X'MX = I`` for the rows so far, and ``K_ij = X_i' S_ij X_j`` (m, m, p, p).

        With another merit than identity they are a local optimum, the better of two.  ValueError if the rows span too
        few directions.
        """
        S, units, least = self._mean_products(), np.ones(len(self.shift)), RESOLVED
        if not self.basis:
            S, units = self._in_units()
            least = self.noise
        T, roots = metrics.whitened(self._with_ridge(S, units), self.sizes, rtol=least)
        ranks, p = [root.shape[1] for root in roots], self.n_components
        if p > max(ranks):
            raise ValueError(f"n_components={p}: expected at most {max(ranks)}, the rank of these rows")
        if self.merit.name == "identity":
            Y = eigh(T, subset_by_index=(len(T) - p, len(T) - 1))[1][:, ::-1]
        else:
            Y = _best_ascent(T, p, np.cumsum(ranks)[:-1], self.merit)
        X = metrics.unwhitened(Y, roots)
        for view in self.slices:  # what has no variance but by rounding is no component: a ridge would let it in
            empty = np.einsum("np,np->p", X[view], S[view, view] @ X[view]) <= least * (X[view] ** 2).sum(axis=0)
            X[view, empty] = 0
        K = metrics.cross_moments(X[None], S, self.sizes)[:, :, 0]
        if self.basis:
            X = np.concatenate([B @ X[view] for B, view in zip(self.basis, self.slices, strict=True)])
        return X / units[:, None], K

    def structure(self, weights: Array) -> Structure:
        """Moments of the columns with the projections on weights (n, p)."""
        if not self.basis:
            return structure_of(self.covariance, weights, self.slices)
        units, spectra = self.spectra
        units = np.where(np.isinf(units), 0, units)
        views = list(zip(self.slices, spectra, strict=True))
        inverses = [(view, (vectors * _roots(values)).T * units[view]) for view, (values, vectors) in views]
        Y = np.concatenate([B @ weights[view] for view, B in inverses])  # in the basis, where nothing cancels
        found = structure_of(self._mean_products(), Y, self.slices)
        mixed = np.concatenate([np.einsum("nk,kjp->njp", B.T, found.mixed[view]) for view, B in inverses])
        return replace(found, columns=np.diag(self.covariance), mixed=mixed)

    def _sample(self, blocks: list[ViewRows]) -> None:
        """Keep some rows of each block, and fewer and fewer of those before."""
        at = np.unique(np.linspace(0, blocks[0].shape[0] - 1, SAMPLE).astype(int))
        new = [(dense(block[at]).astype(np.float64), np.finfo(block.dtype).eps) for block in blocks]
        old = [(rows[::2], precision) for rows, precision in self.sample] or [(rows[:0], eps) for rows, eps in new]
        both = zip(old, new, strict=True)
        self.sample = [(np.concatenate([kept, rows]), max(before, eps)) for (kept, before), (rows, eps) in both]

    def _add_sparse(self, Z: Any) -> None:
        """Add the products of CSR rows; columns with a shift are centred, since theirs would cancel."""
        far = np.flatnonzero(self.shift)
        near = Z.multiply(self.shift == 0).tocsr()
        centred = Z[:, far].toarray() - self.shift[far]
        products = (near.T @ near).toarray()
        products[:, far] = near.T @ centred
        products[far] = products[:, far].T
        products[np.ix_(far, far)] = centred.T @ centred
        self.products += products

    def _forget(self) -> None:
        """Forget what follows from the moments."""
        for name in ("covariance", "spectra", "best"):
            vars(self).pop(name, None)

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

    def _in_units(self) -> tuple[Array, Array]:
        """The covariance in columns of size 1 with the ridge, and these units (n,), infinite for constant ones."""
        variance = np.maximum(np.diag(self.covariance), 0)
        is_constant = np.sqrt(variance) <= LEVEL * np.abs(self.moments.mean)
        units = np.where(is_constant, np.inf, np.sqrt(variance + self.ridge))
        return self.covariance / np.outer(units, units), units


def _roots(values: Array) -> Array:
    """Deviations along eigenvectors, at least what a second pass can tell from rounding."""
    return np.sqrt(np.maximum(values, LEAST * values[-1]))


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


def _best_ascent(T: Array, p: int, cuts: Array, merit: Merit) -> Array:
    """The better maximum of two ascents: from the largest eigenvalues of T, and from those of largest magnitude.

    An even merit takes a pair (a; b) once more as (a; -b), with the negative eigenvalue.
    """
    values, vectors = np.linalg.eigh(T)
    starts = (vectors[:, np.argsort(-size, kind="stable")[:p]] for size in (values, np.abs(values)))
    found = [_ascend(T, Y, cuts, merit) for Y in starts]
    return max(found, key=lambda pair: pair[1])[0]


def _ascend(T: Array, Y: Array, cuts: Array, merit: Merit) -> tuple[Array, float]:
    """Climb from Y to a maximum of ``sum_r sum_{i != j} g(y_r^[i]' T_ij y_r^[j])`` over ``Y'Y = I``, and its value.

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
    return Y, float(value)
