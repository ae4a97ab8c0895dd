r"""TCC, PCC, Fval, feasibility and the post-processings: the only place where a metric is defined.

Metrics depend on X only through the p-by-p matrices ``K_ij = X_i' S_ij X_j`` with the covariance S of the data.  They
are computed once (`cross_moments`); multiplying X by N turns each into ``N' K_ij N`` (`congruence`).  All of it runs
in float64 and in lanes.
"""

from contextlib import suppress
from itertools import combinations

import numpy as np
from scipy.linalg import eigh

from cdfsg import checks
from cdfsg.linalg import Array, NotPositiveDefiniteError, eye_like, inv_sqrt, sym, truncated_inv_sqrt, view_slices
from cdfsg.merits import Merit
from cdfsg.problems import pair_weights

SPECTRUM_RTOL = 1e-10
"""Relative eigenvalue up to which a direction of a covariance counts as empty (constant pixels)."""


def cross_moments(X: Array, covariance: Array, sizes: tuple[int, ...]) -> Array:
    """All ``K_ij = X_i' S_ij X_j``, float64 of shape (m, m, lanes, p, p).

    X is (lanes, n, p), the covariance S (n, n); `sizes` are the widths of the m views.
    """
    checks.require_floats("covariance", covariance)
    checks.require_square("covariance", covariance)
    checks.require_shape("X", X, ("lanes", len(covariance), "p"), "the height of the covariance")
    checks.require_real("X", X)
    lanes, n, p = X.shape
    checks.require_sizes(sizes, len(covariance))
    X = X.astype(np.float64)
    tall = X.transpose(1, 0, 2).reshape(n, lanes * p)
    views = view_slices(sizes)
    K = np.empty((len(views), len(views), lanes, p, p))
    with np.errstate(all="ignore"):  # a lane may have diverged
        for j, right in enumerate(views):
            SX = (covariance[:, right] @ tall[right]).reshape(n, lanes, p).transpose(1, 0, 2)
            for i, left in enumerate(views):
                K[i, j] = X[:, left].mT @ SX[:, left]
    return K


def congruence(K: Array, N: Array) -> Array:
    """The cross moments of ``X N``: ``N' K_ij N`` with N of shape (lanes, p, p)."""
    checks.require_compressed(K)
    checks.require_shape("N", N, K.shape[2:], "a factor per lane of K")
    with np.errstate(all="ignore"):  # a lane may have diverged
        return N.mT @ K @ N


def constraint(K: Array) -> Array:
    """``X'MX = sum_i K_ii``, shape (lanes, p, p)."""
    checks.require_compressed(K)
    return K.trace()


def feasibility(K: Array) -> Array:
    """Fea: ``|| X'MX - I ||_F`` per lane, shape (lanes,)."""
    C = constraint(K)
    with np.errstate(all="ignore"):  # a lane may have diverged
        return np.linalg.norm(C - eye_like(C), axis=(-2, -1))


def spectral_feasibility(K: Array) -> Array:
    """``|| X'MX - I ||_2`` per lane, shape (lanes,): the paper does not say which norm Fea has."""
    C = constraint(K)
    finite = np.isfinite(C).all(axis=(-2, -1))
    norms = np.full(len(C), np.nan)
    norms[finite] = np.abs(np.linalg.eigvalsh(sym(C[finite]) - eye_like(C))).max(axis=-1)
    return norms


def objective(K: Array, merit: Merit, weights: Array | None = None) -> Array:
    """Fval: ``- sum_r sum_{i != j} c_ij g(t_ij,r)`` (p:GCCA) per lane, shape (lanes,)."""
    checks.require_compressed(K)
    checks.require_merit(merit, "value")
    t = np.diagonal(K, axis1=-2, axis2=-1)
    c = pair_weights(len(K), weights) * (1 - np.eye(len(K)))
    return -np.einsum("ij,ijlr->l", c, merit.value(t))


def tcc(K: Array) -> Array:
    """Total correlations captured: the sum of the canonical correlations of the two projected views.

    No post-processing changes it, since ``X_i -> X_i N`` with N regular does not.
    """
    checks.require_compressed(K)
    _require_two_views(len(K))
    return np.array([_singular_sum(K[0, 0, k], K[1, 1, k], K[0, 1, k]) for k in range(K.shape[2])])


def paired_correlations(K: Array) -> Array:
    """Sum over the columns of |correlation of Z_1 x_r^[1] and Z_2 x_r^[2]| per lane, shape (lanes,).

    Unlike `tcc` it changes under ``X -> X N``, as it asks for columns in pairs.
    """
    checks.require_compressed(K)
    _require_two_views(len(K))
    t = np.diagonal(K, axis1=-2, axis2=-1)
    scale = np.sqrt(np.maximum(t[0, 0] * t[1, 1], 0))
    ratio = np.divide(np.abs(t[0, 1]), scale, out=np.zeros_like(scale), where=scale != 0)  # NaN stays NaN
    return ratio.sum(axis=-1)


def canonical_correlations(covariance: Array, sizes: tuple[int, ...], rtol: float = SPECTRUM_RTOL) -> Array:
    """Exact canonical correlations of two views, in descending order: the ground truth of PCC."""
    checks.require_sizes(sizes)
    _require_two_views(len(sizes))
    return generalised_eigenvalues(covariance, sizes, rtol=rtol)[: min(sizes)]


def ridged(covariance: Array, sizes: tuple[int, ...], ridge: float) -> Array:
    """The covariance plus `ridge` times each view's mean variance on its diagonal."""
    checks.require_covariance("covariance", covariance)
    checks.require_sizes(sizes, len(covariance))
    checks.require_not_negative(ridge=ridge)
    means = [np.diag(covariance)[view].mean() for view in view_slices(sizes)]
    return covariance + np.diag(ridge * np.repeat(means, sizes))


def generalised_eigenvalues(
    covariance: Array, sizes: tuple[int, ...], weights: Array | None = None, rtol: float = SPECTRUM_RTOL
) -> Array:
    """Eigenvalues of the pencil (S_off, M) of cross-covariances and covariances of views, in descending order.

    With the identity merit minus the sum of the p largest is the optimum of ``f(X) = - tr(X' S_off X)`` over
    ``X'MX = I``; with two views they are the canonical correlations.  `weights` are the c_ij (ones by default), and
    `rtol` truncates each view's spectrum.
    """
    T, _ = whitened(covariance, sizes, weights, rtol)
    empty = np.zeros(len(covariance) - len(T))
    values: Array = np.sort(np.concatenate([np.linalg.eigvalsh(T), empty]))[::-1]
    most = len(sizes) - 1
    if weights is None and values[0] > most + 1e-3:
        found = f"got a correlation of {values[0]:.3g} above {most}"
        raise ValueError(f"the covariance must be positive semidefinite, {found}; use Views.covariance or np.cov")
    return values


def minimiser(
    covariance: Array, sizes: tuple[int, ...], p: int, weights: Array | None = None, rtol: float = SPECTRUM_RTOL
) -> Array:
    """An exact minimiser of ``f(X) = - tr(X' S_off X)`` over ``X'MX = I`` (identity merit), shape (n, p).

    Its columns are leading eigenvectors of the pencil of `generalised_eigenvalues`.
    """
    checks.require_whole("p", p, 1, len(covariance), "the number of features")
    T, roots = whitened(covariance, sizes, weights, rtol)
    X, r = np.zeros((len(covariance), p)), len(T)
    if r:
        leading = eigh(T, subset_by_index=(max(r - p, 0), r - 1))[1][:, ::-1]
        X[:, : leading.shape[1]] = unwhitened(leading, roots)
    return X


def objective_bound(eigenvalues: Array, p: int, m: int, merit: Merit) -> float:
    """A lower bound of Fval over ``X'MX = I`` with weights c_ij = 1, for p columns and m views.

    For the identity merit it is attained: minus the sum of the p largest `generalised_eigenvalues`.  For the Huber
    merit it is ``- p m (m-1) g(1/m)``: at best a column's shares of ``x'Mx = 1`` in the views are equal and perfectly
    correlated, so that ``t_ij = 1/m`` (for mu below 1/m).
    """
    checks.require_whole("p", p, 1, len(eigenvalues), "the number of eigenvalues")
    checks.require_whole("m", m, 2, what="the number of views")
    if merit.name == "identity":
        return -float(eigenvalues[:p].sum())
    return -p * m * (m - 1) * float(merit.value(np.array(1 / m)))


def orthogonalise(C: Array) -> tuple[Array, Array]:
    """Post-processing factor ``N = C^(-1/2)`` per lane, for ``X -> X N``, and where it is defined.

    It is the exact orthogonalisation if C is the exact ``X'MX``, the paper's approximate one if C is the tracked Y or
    that of a minibatch.  Where C is not positive definite, N is NaN.
    """
    checks.require_shape("C", C, ("lanes", "p", "p"), "a matrix per lane")
    checks.require_square("C", C)
    C = C.astype(np.float64)
    N = np.full_like(C, np.nan)
    for k, matrix in enumerate(C):
        with suppress(NotPositiveDefiniteError):
            N[k] = inv_sqrt(matrix)
    return N, ~np.isnan(N[:, 0, 0])


def whitened(
    covariance: Array, sizes: tuple[int, ...], weights: Array | None = None, rtol: float = SPECTRUM_RTOL
) -> tuple[Array, list[Array]]:
    """``T = R' S_off R`` (r, r) with roots ``R_i R_i' = S_ii^(-1)`` (n_i, r_i) of each view, whose rank is r_i."""
    checks.require_covariance("covariance", covariance, rtol=1e-6)
    checks.require_share(rtol=rtol)
    checks.require_sizes(sizes, len(covariance))
    views, roots = view_slices(sizes), []
    for view in views:
        values, vectors = np.linalg.eigh(sym(covariance[view, view]))
        kept = values > rtol * values.max(initial=0.0)
        roots.append(vectors[:, kept] * values[kept] ** -0.5)
    c, parts = pair_weights(len(sizes), weights), view_slices(tuple(root.shape[1] for root in roots))
    T = np.zeros((parts[-1].stop, parts[-1].stop))
    for i, j in combinations(range(len(views)), 2):
        T[parts[i], parts[j]] = c[i, j] * roots[i].T @ covariance[views[i], views[j]] @ roots[j]
    return T + T.T, roots


def unwhitened(Y: Array, roots: list[Array]) -> Array:
    """Weights ``X_i = R_i Y_i`` (n, p) of the columns for coordinates Y (r, p) in `whitened` ones.

    A view's part of a column of Y that is rounding is 0, on every processor.
    """
    cuts, rounding = np.cumsum([root.shape[1] for root in roots])[:-1], 10 * len(Y) * np.finfo(float).eps
    least = rounding * np.linalg.norm(Y, axis=0)
    parts = [part * (np.linalg.norm(part, axis=0) > least) for part in np.split(Y, cuts)]
    return np.concatenate([root @ part for root, part in zip(roots, parts, strict=True)])


def _singular_sum(S1: Array, S2: Array, S12: Array) -> float:
    if not all(np.isfinite(S).all() for S in (S1, S2, S12)):
        return np.nan
    whitened = truncated_inv_sqrt(S1, SPECTRUM_RTOL) @ S12 @ truncated_inv_sqrt(S2, SPECTRUM_RTOL)
    return float(np.linalg.svd(whitened, compute_uv=False).sum())


def _require_two_views(m: int) -> None:
    if m != 2:
        raise ValueError(f"canonical correlations are those of two views, got {m}; use Fval instead")
