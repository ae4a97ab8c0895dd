"""The scaling, order and sign of canonical weights.

The columns satisfy ``sum_i w_i' S_ii w_i = I`` (the paper's constraint), stand in descending magnitude of their
correlation, and the entry of largest magnitude in the first view is positive.  A sign is turned for all views at once:
an even merit, such as Huber's, may have both ``(a; b)`` and ``(a; -b)``.
"""

from dataclasses import dataclass

import numpy as np

from cdfsg import metrics
from cdfsg.linalg import Array, sym
from cdfsg.merits import Merit


@dataclass(frozen=True)
class Solution:
    """Weights (n, p) in the convention, with their moments and `pairwise_correlations`."""

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
        raise ValueError("views has values whose squares overflow: expected values as in the fit")


def normalise(weights: Array, slices: tuple[slice, ...], K: Array, merit: Merit) -> Solution:
    """Bring weights (n, p) with the moments ``K_ij = w_i' S_ij w_j``, shape (m, m, p, p), into the convention.

    With the identity merit each view gets a factor of its own: the best weights in the spans solve the exact problem
    of the projections, of size m p.  With another merit all get the same, which keeps the span of X.
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


def variances(K: Array) -> Array:
    """Variances of the projections, shape (m, p)."""
    return np.maximum(np.einsum("iipp->ip", K), 0)


def pairwise_correlations(K: Array) -> Array:
    """Mean correlation of two views' projections, shape (p,); 0 where one is constant."""
    return _mean_over_pairs(K, np.sqrt(variances(K)))


def covariances_along_unit_weights(K: Array, weights: list[Array]) -> Array:
    """Mean covariance of two views' projections along weights of unit length, shape (p,)."""
    return _mean_over_pairs(K, np.array([np.linalg.norm(part, axis=0) for part in weights]))


def total_correlation(K: Array) -> float:
    """For two views the paper's TCC, for more the sum of `pairwise_correlations`."""
    return float(metrics.tcc(K[:, :, None])[0] if len(K) == 2 else pairwise_correlations(K).sum())


def _mean_over_pairs(K: Array, units: Array) -> Array:
    """Mean over the pairs of views of ``diag(K_ij)`` in `units` (m, p)."""
    i, j = np.triu_indices(len(K), 1)
    t, unit = np.einsum("ijpp->ijp", K)[i, j], units[i] * units[j]
    return np.divide(t, unit, out=np.zeros_like(unit), where=unit > 0).mean(axis=0)


def _free_factors(K: Array) -> Array:
    """Factors (m, p, p) of the best weights in the spans, with ``X'MX = I``.

    Columns beyond the largest rank of a view are zero: the next ones would be the pairs found, with a negative sign.
    """
    m, p = K.shape[0], K.shape[2]
    roots = []
    for i in range(m):
        values, vectors = np.linalg.eigh(sym(K[i, i]))
        kept = values > metrics.SPECTRUM_RTOL * values.max(initial=0.0)
        roots.append(vectors[:, kept] * values[kept] ** -0.5)
    ranks = [root.shape[1] for root in roots]
    blocks = [[(roots[i].T @ K[i, j] @ roots[j]) * (i != j) for j in range(m)] for i in range(m)]
    leading = np.linalg.eigh(sym(np.block(blocks)))[1][:, ::-1][:, : max(ranks)]
    factors = np.zeros((m, p, p))
    for factor, root, part in zip(factors, roots, np.split(leading, np.cumsum(ranks)[:-1]), strict=True):
        factor[:, : part.shape[1]] = root @ part
    return factors


def _joint_factor(K: Array) -> Array:
    """One factor (p, p) that makes ``X'MX = I`` and the sum of the cross moments diagonal."""
    own = K.trace()
    N, defined = metrics.orthogonalise(sym(own)[None])
    if not defined[0]:
        raise ValueError(f"the {len(own)} projections are linearly dependent on these rows; give more of them")
    cross = sym(K.sum(axis=(0, 1)) - own)
    return N[0] @ np.linalg.eigh(sym(N[0] @ cross @ N[0]))[1]
