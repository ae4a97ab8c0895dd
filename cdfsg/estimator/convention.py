"""The stated scaling, order and sign of canonical weights, from p-by-p moments of the projections.

The columns of the stacked weights satisfy ``sum_i w_i' S_ii w_i = I`` (the paper's constraint), are ordered by
descending magnitude of their correlation, and the entry of the largest magnitude in the first view is positive.
Signs are turned for all views of a column together: an even merit, such as Huber's, may have both ``(a; b)`` and
``(a; -b)``.
"""

from dataclasses import dataclass

import numpy as np

from cdfsg import metrics
from cdfsg.linalg import Array, sym
from cdfsg.merits import Merit


@dataclass(frozen=True)
class Solution:
    """Weights (n, p) in the stated convention, their moments ``w_i' S_ij w_j``, and `pairwise_correlations` (p,)."""

    weights: Array
    K: Array
    correlations: Array

    @property
    def captured(self) -> float:
        return float(np.abs(self.correlations).sum())


def moments_of(P: Array) -> Array:
    """``K_ij = P_i' P_j / l`` of projections (l, m, p): shape (m, m, p, p), float64."""
    P = P.astype(np.float64)
    return np.einsum("lip,ljq->ijpq", P, P, optimize=True) / len(P)


def require_finite_moments(K: Array) -> None:
    if not np.isfinite(K).all():
        raise ValueError(
            "views has values so large that the squares of their projections overflow: expected values of the size of "
            "those of the fit; look at the largest ones"
        )


def normalise(weights: Array, slices: tuple[slice, ...], K: Array, merit: Merit) -> Solution:
    """Bring weights (n, p) with the moments ``K_ij = w_i' S_ij w_j``, shape (m, m, p, p), into the convention.

    With the identity merit the views are free: the best weights in the spans found solve the exact problem of the
    projections, of size m p.  With another merit, all views get one factor that keeps the span of X.
    """
    m, p = len(slices), weights.shape[1]
    N = _free_factors(K) if merit.name == "identity" else np.broadcast_to(_joint_factor(K), (m, p, p))
    K = np.einsum("iab,ijac,jcd->ijbd", N, K, N, optimize=True)
    order = np.argsort(-np.abs(pairwise_correlations(K)), kind="stable")
    W = np.concatenate([weights[view] @ factor[:, order] for view, factor in zip(slices, N, strict=True)])
    first = W[slices[0]]
    flips = np.where(first[np.abs(first).argmax(axis=0), np.arange(p)] < 0, -1.0, 1.0)
    K = K[:, :, order][:, :, :, order] * np.outer(flips, flips)
    return Solution(W * flips, K, pairwise_correlations(K))


def pairwise_correlations(K: Array) -> Array:
    """Correlation of two views' projections, 0 for one without variance, averaged over the pairs of views: (p,)."""
    t = np.diagonal(K, axis1=-2, axis2=-1)
    i, j = np.triu_indices(len(K), 1)
    scale = np.sqrt(np.maximum(t[i, i] * t[j, j], 0))
    return np.divide(t[i, j], scale, out=np.zeros_like(scale), where=scale > 0).mean(axis=0)


def covariances_along_unit_weights(K: Array, weights: list[Array]) -> Array:
    """Covariances of the projections along weights of unit length, averaged over the pairs of views, shape (p,)."""
    t = np.diagonal(K, axis1=-2, axis2=-1)
    lengths = np.array([np.linalg.norm(part, axis=0) for part in weights])
    lengths[lengths == 0] = np.inf
    i, j = np.triu_indices(len(K), 1)
    return (t[i, j] / (lengths[i] * lengths[j])).mean(axis=0)


def total_correlation(K: Array) -> float:
    """For two views the paper's TCC, for more the sum of `pairwise_correlations`."""
    if len(K) == 2:
        return float(metrics.tcc(K[:, :, None])[0])
    return float(pairwise_correlations(K).sum())


def _free_factors(K: Array) -> Array:
    """Factors (m, p, p) of the best weights in the spans, with ``X'MX = I``: the exact problem of the projections.

    It is solved in the range of the projections.  Columns beyond the largest rank of a view are zero: the next ones
    would be the pairs found, with a negative sign.
    """
    m, p = K.shape[0], K.shape[2]
    spectra = [np.linalg.eigh(sym(K[i, i])) for i in range(m)]
    kept = [values > metrics.SPECTRUM_RTOL * values.max(initial=0.0) for values, _ in spectra]
    roots = [vectors[:, some] * values[some] ** -0.5 for (values, vectors), some in zip(spectra, kept, strict=True)]
    ends = np.cumsum([root.shape[1] for root in roots])
    blocks = [[(roots[i].T @ K[i, j] @ roots[j]) * (i != j) for j in range(m)] for i in range(m)]
    leading = np.linalg.eigh(sym(np.block(blocks)))[1][:, ::-1][:, : max(map(np.sum, kept))]
    factors = np.zeros((m, p, p))
    for factor, root, part in zip(factors, roots, np.split(leading, ends[:-1]), strict=True):
        factor[:, : part.shape[1]] = root @ part
    return factors


def _joint_factor(K: Array) -> Array:
    """One factor (p, p) that makes ``X'MX = I`` and the sum of the cross moments diagonal."""
    own = np.einsum("iiab->ab", K)
    N, defined = metrics.orthogonalise(sym(own)[None])
    if not defined[0]:
        raise ValueError(
            f"the {len(own)} projections are linearly dependent on these rows, so they cannot be made orthonormal; ask "
            "for fewer n_components, or give more rows"
        )
    cross = sym(K.sum(axis=(0, 1)) - own)
    return N[0] @ np.linalg.eigh(sym(N[0] @ cross @ N[0]))[1]
