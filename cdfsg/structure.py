"""What components mean: loadings, variance explained, and the prediction of a view from others."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from cdfsg.linalg import Array
from cdfsg.streamed import Moments, ViewRows

RANK_RTOL = 1e-10  # relative eigenvalue below which a combination of projections counts as empty


@dataclass(frozen=True)
class Structure:
    """Second moments of the columns (n,), of columns with projections (n, m, p), and of projections (m, m, p, p)."""

    columns: Array  # diag(S)
    mixed: Array  # S_ij w_j
    K: Array  # w_i' S_ij w_j
    slices: tuple[slice, ...]

    def loadings(self) -> list[Array]:
        """Correlations ``diag(S_ii)^(-1/2) S_ii w_i (w_i' S_ii w_i)^(-1/2)`` of columns with projections, (n_i, p)."""
        return [self._own(i) / _root(self.columns[view])[:, None] for i, view in enumerate(self.slices)]

    def explained_variance_ratio(self, scale: Array) -> Array:
        """Share ``|S_ii w_i|^2 / (w_i' S_ii w_i tr S_ii)`` of a view's variance, columns in units of `scale` (n,).

        Shape (m, p).
        """
        own = [(self._own(i) / scale[view][:, None]) ** 2 for i, view in enumerate(self.slices)]
        totals = [_root((self.columns[view] / scale[view] ** 2).sum()) ** 2 for view in self.slices]
        return np.array([squares.sum(axis=0) / total for squares, total in zip(own, totals, strict=True)])

    def predict(self, scores: dict[int, Array], view: int) -> Array | None:
        """Least squares of the view's columns on the projections (N, p) of others, shape (N, n_i); None without any."""
        others = [j for j in scores if j != view]
        if not others:
            return None
        mixed = self.mixed[self.slices[view]][:, others]
        K = self.K[np.ix_(others, others)].transpose(0, 2, 1, 3).reshape((mixed[0].size,) * 2)
        inverse = np.linalg.pinv(K, rcond=RANK_RTOL, hermitian=True)
        return np.hstack([scores[j] for j in others]) @ inverse @ mixed.reshape(len(mixed), -1).T

    def _own(self, i: int) -> Array:
        """Covariances of a view's columns with its projections of variance 1, (n_i, p)."""
        return self.mixed[self.slices[i], i] / _root(np.diagonal(self.K[i, i]))


def structure_of(S: Array, weights: Array, slices: tuple[slice, ...]) -> Structure:
    """From second moments S (n, n) and weights (n, p)."""
    mixed = np.stack([S[:, view] @ weights[view] for view in slices], axis=1)
    return Structure(np.diag(S), mixed, _projected(mixed, weights, slices), slices)


def streamed_structure(
    batches: Iterable[list[ViewRows]], mean: Array, weights: Array, slices: tuple[slice, ...]
) -> Structure:
    """From rows in blocks (l, n_i) per view, about a vector (n,)."""
    moments = Moments(len(mean))
    mixed = np.zeros((len(mean), len(slices) * weights.shape[1]))
    for blocks in batches:
        moments.update(blocks)
        views = zip(blocks, slices, strict=True)
        P = np.hstack([Z @ weights[view] - mean[view] @ weights[view] for Z, view in views])
        mixed += np.concatenate([Z.T @ P for Z in blocks]) - np.outer(mean, P.sum(axis=0))
    mixed = mixed.reshape(len(mean), len(slices), -1) / moments.rows
    columns = moments.variance + (moments.mean - mean) ** 2
    return Structure(columns, mixed, _projected(mixed, weights, slices), slices)


def _projected(mixed: Array, weights: Array, slices: tuple[slice, ...]) -> Array:
    return np.stack([np.einsum("na,njb->jab", weights[view], mixed[view]) for view in slices])


def _root(values: Array) -> Array:
    """Square roots; infinite where a value is not positive, so that a quotient is 0."""
    return np.sqrt(np.where(values > 0, values, np.inf))
