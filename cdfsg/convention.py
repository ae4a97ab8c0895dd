"""The scaling, order and sign of canonical weights.

The columns satisfy ``sum_i w_i' (S_ii + r_i I) w_i = I`` (the paper's constraint, and a ridge), stand in descending
magnitude of their correlation, and the entry of largest magnitude in the first view is positive.  An even merit, such
as Huber's, leaves the relative signs of the views open: they are those with which most pairs agree, as far as the
constraint allows, since ``(a; b)`` and ``(a; -b)`` may both be columns.
"""

from typing import NamedTuple

import numpy as np

from cdfsg import metrics
from cdfsg.linalg import Array, sym
from cdfsg.merits import Merit


class Solution(NamedTuple):
    """Weights (n, p) in the convention, with their moments, `pairwise_correlations`, and the sum of `magnitudes`."""

    weights: Array
    K: Array
    correlations: Array
    captured: float


def moments_of(P: Array) -> Array:
    """``K_ij = P_i' P_j / l`` of projections (l, m, p): shape (m, m, p, p), float64."""
    P = P.astype(np.float64)
    return np.einsum("lip,ljq->ijpq", P, P, optimize=True) / len(P)


def with_ridge(K: Array, weights: Array, slices: tuple[slice, ...], ridge: Array) -> Array:
    """Moments K of the projections, those of a view with itself by ``S_ii + diag(ridge)``, ridge of shape (n,)."""
    K = K.copy()
    for i, view in enumerate(slices):
        K[i, i] += (weights[view].T * ridge[view]) @ weights[view]
    return K


def normalise(weights: Array, slices: tuple[slice, ...], K: Array, merit: Merit, ridge: Array) -> Solution:
    """Bring weights (n, p) with the moments ``K_ij = w_i' S_ij w_j``, shape (m, m, p, p), into the convention.

    With the identity merit each view gets a factor of its own: the best weights in the spans solve the exact problem
    of the projections, of size m p.  With another merit all get the same, which keeps the span of X.
    """
    p = weights.shape[1]
    M = with_ridge(K, weights, slices, ridge)
    if merit.name == "identity":
        N = _free_factors(M)
    else:
        signs = _agreeing_signs(M)
        N = signs[:, :, None] * _joint_factor(np.einsum("ia,ijab,jb->ijab", signs, M, signs))
    K = np.einsum("iab,ijac,jcd->ijbd", N, K, N, optimize=True)
    order = np.argsort(-magnitudes(K, merit), kind="stable")
    W = np.concatenate([weights[view] @ factor[:, order] for view, factor in zip(slices, N, strict=True)])
    first = W[slices[0]]
    flips = np.where(first[np.abs(first).argmax(axis=0), np.arange(p)] < 0, -1.0, 1.0)
    K = K[:, :, order][:, :, :, order] * np.outer(flips, flips)
    return Solution(W * flips, K, pairwise_correlations(K), float(magnitudes(K, merit).sum()))


def pairwise_correlations(K: Array) -> Array:
    """Mean correlation of two views' projections, shape (p,); 0 where one is constant."""
    return _mean_over_pairs(K)


def magnitudes(K: Array, merit: Merit) -> Array:
    """Magnitude of `pairwise_correlations`; with an even merit the mean magnitude of two views' correlation."""
    if merit.name == "identity":
        return np.abs(pairwise_correlations(K))
    return _mean_over_pairs(np.abs(K))


def covariances_along_unit_weights(K: Array, weights: list[Array]) -> Array:
    """Mean covariance of two views' projections along weights of unit length, shape (p,)."""
    return _mean_over_pairs(K, np.array([np.linalg.norm(part, axis=0) for part in weights]))


def total_correlation(K: Array, merit: Merit) -> float:
    """For two views the paper's TCC, for more that of `pairwise_correlations`; with an even merit of `magnitudes`."""
    if len(K) == 2:
        return float(metrics.tcc(K[:, :, None])[0])
    return float((pairwise_correlations(K) if merit.name == "identity" else magnitudes(K, merit)).sum())


def _mean_over_pairs(K: Array, units: Array | None = None) -> Array:
    """Mean over the pairs of views of ``diag(K_ij)`` in `units` (m, p), by default the projections' deviations."""
    if units is None:
        units = np.sqrt(np.maximum(np.einsum("iipp->ip", K), 0))
    i, j = np.triu_indices(len(K), 1)
    t, unit = np.einsum("ijpp->ijp", K)[i, j], units[i] * units[j]
    return np.divide(t, unit, out=np.zeros_like(unit), where=unit > 0).mean(axis=0)


def _free_factors(K: Array) -> Array:
    """Factors (m, p, p) of the best weights in the spans, with ``X'MX = I``.

    Columns beyond the largest rank of a view are zero: the next ones would be the pairs found, with a negative sign.
    """
    m, p = K.shape[0], K.shape[2]
    S = sym(K.transpose(0, 2, 1, 3).reshape(m * p, m * p))
    np.fill_diagonal(S, np.maximum(np.diag(S), 0))  # which rounding may leave below
    T, roots = metrics.whitened(S, (p,) * m)
    leading = np.linalg.eigh(T)[1][:, ::-1][:, : max(root.shape[1] for root in roots)]
    factors = np.zeros((m, p, p))
    factors[:, :, : leading.shape[1]] = metrics.unwhitened(leading, roots).reshape(m, p, -1)
    return factors


def _agreeing_signs(K: Array) -> Array:
    """Signs (m, p) of the views' columns with which the pairs of views agree, as far as X'MX stays regular."""
    own = np.einsum("iiab->iab", K)

    def least(signs: Array) -> float:
        return float(np.linalg.eigvalsh(np.einsum("ia,iab,ib->ab", signs, own, signs))[0])

    signs = np.ones(own.shape[:2])
    for r in range(own.shape[1]):
        T = K[:, :, r, r] * (1 - np.eye(len(K)))
        s = np.where(np.linalg.eigh(sym(T))[1][:, -1] < 0, -1.0, 1.0)
        while (gains := -s * (T @ s)).max() > 1e-12 * np.abs(T).sum():
            s[gains.argmax()] *= -1
        turned = signs.copy()
        turned[:, r] = s * s[0]
        if least(turned) >= least(signs) / 2:
            signs = turned
    return signs


def _joint_factor(K: Array) -> Array:
    """One factor (p, p) that makes ``X'MX = I`` and the sum of the cross moments diagonal."""
    own = K.trace()
    N, defined = metrics.orthogonalise(sym(own)[None])
    if not defined[0]:
        raise ValueError(f"the {len(own)} projections are linearly dependent on these rows; give more of them")
    cross = sym(K.sum(axis=(0, 1)) - own)
    return N[0] @ np.linalg.eigh(sym(N[0] @ cross @ N[0]))[1]
