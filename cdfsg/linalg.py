"""Small dense linear algebra without any meaning from the paper.

*Lanes*: many independent runs advance in lock-step.  The lane axis comes first, so that ``@`` and ``.mT`` go over
lanes: tall matrices have shape (lanes, n, p), small ones (lanes, p, p).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdfsg.checks import require_finite, require_square

Array = NDArray[Any]


class NotPositiveDefiniteError(ValueError):
    """A matrix has no inverse square root; what to do instead decides about numbers."""


def sym(a: Array) -> Array:
    """Symmetric part ``(A + A') / 2`` of each trailing square matrix (the paper's Psi)."""
    return (a + a.mT) / 2


def eye_like(a: Array) -> Array:
    """Identity of the size and type of the trailing square matrix of `a`, shape (p, p)."""
    return np.eye(a.shape[-1], dtype=a.dtype)


def inv_sqrt(a: Array) -> Array:
    """Inverse square root of each trailing symmetric positive definite matrix.

    Parameters
    ----------
    a : array (..., p, p)
        Symmetric; only the symmetric part is used.

    Raises
    ------
    NotPositiveDefiniteError
        If `a` holds a non-finite entry or an eigenvalue that is not positive; the message names it.
    """
    require_square("a", a)
    if not np.isfinite(a).all():
        raise NotPositiveDefiniteError("inv_sqrt needs finite entries, but the matrix holds NaN or infinity")
    values, vectors = np.linalg.eigh(sym(a))
    if not values.min() > 0:
        raise NotPositiveDefiniteError(
            f"inv_sqrt needs a positive definite matrix, but the smallest eigenvalue is {values.min():.3g}; "
            "add a ridge or use truncated_inv_sqrt"
        )
    return scale_spectrum(values**-0.5, vectors)


def truncated_inv_sqrt(a: Array, rtol: float) -> Array:
    """Inverse square root of one positive semidefinite matrix on its numerical range.

    Parameters
    ----------
    a : array (n, n)
        Symmetric positive semidefinite.
    rtol : float
        Eigenvalues at or below ``rtol`` times the largest count as zero, and so does their inverse root.
    """
    require_square("a", a)
    require_finite("a", a)
    values, vectors = np.linalg.eigh(sym(a))
    kept = values > rtol * values.max(initial=0.0)
    roots = np.zeros_like(values)
    roots[kept] = values[kept] ** -0.5
    return scale_spectrum(roots, vectors)


def scale_spectrum(values: Array, vectors: Array) -> Array:
    """``V diag(values) V'`` for each trailing matrix: values (..., p), vectors (..., p, p)."""
    return (vectors * values[..., None, :]) @ vectors.mT


def side_by_side(a: Array) -> Array:
    """A copy of matrices (lanes, n, p) in a memory block (n, lanes, p), where a tall matrix of every lane is one."""
    return np.ascontiguousarray(a.transpose(1, 0, 2)).transpose(1, 0, 2)


def times(a: Array, b: Array) -> Array:
    """``a @ b`` for square b in the memory layout of `a`, so that lanes that lie side by side stay so."""
    return np.matmul(a, b, out=np.empty_like(a))


def inverse(a: Array) -> Array:
    """The inverse of each trailing matrix; NaN for those that have a pivot of exactly zero."""
    try:
        return np.linalg.inv(a)
    except np.linalg.LinAlgError:  # one of them makes `inv` refuse them all
        with np.errstate(all="ignore"):  # a lane may have diverged
            regular = np.linalg.slogdet(a).sign != 0
        found = np.full_like(a, np.nan)
        found[regular] = np.linalg.inv(a[regular])
        return found


def pseudo_inverse(a: Array) -> Array:
    """The inverse of each trailing matrix; the Moore-Penrose inverse of those singular to working precision."""
    p = a.shape[-1]
    rtol = p * np.finfo(a.dtype).eps  # below it, singular values are rounding
    found = inverse(a)
    with np.errstate(all="ignore"):  # a lane may have diverged
        norms, inverse_norms = (np.linalg.norm(b, axis=(-2, -1)) for b in (a, found))
        singular = np.isfinite(norms) & ~(norms * inverse_norms * rtol < 1)  # NaN where there is no inverse
    found[singular] = np.linalg.pinv(a[singular], rtol=rtol)
    return found


def ridge_inverse(a: Array) -> Array:
    """``(A'A + r I)^(-1) A'`` with r a thousandth of the mean squared singular value of A."""
    gram = a.mT @ a
    ridge = 1e-3 * np.trace(gram, axis1=-2, axis2=-1)[..., None, None] / a.shape[-1]
    return inverse(gram + ridge * eye_like(gram)) @ a.mT


def qf(A: Array) -> Array:
    """Q factor of the thin QR with positive diagonal of R, of every lane's matrix: (lanes, n, p).

    By the Cholesky factor of A'A: the matrices here are orthonormal up to a bounded step, so it is as accurate
    as Householder's and much faster in lanes.  Lanes that are not finite or singular give NaN.
    """
    with np.errstate(all="ignore"):
        gram = A.mT @ A
        finite = np.isfinite(gram).all(axis=(-2, -1))
        gram[~finite] = eye_like(gram)
        inverse = np.linalg.inv(_cholesky(gram).mT)
        inverse[~finite] = np.nan
        return A @ inverse


def _cholesky(matrices: Array) -> Array:
    """Cholesky factor of each matrix; NaN for those that are not positive definite."""
    try:
        return np.linalg.cholesky(matrices)
    except np.linalg.LinAlgError:  # one of them makes `cholesky` refuse them all
        if len(matrices) == 1:
            return np.full_like(matrices, np.nan)
        return np.concatenate([_cholesky(matrix[None]) for matrix in matrices])


def small_qf(A: Array) -> Array:
    """Q factor with positive diagonal of R of each trailing p-by-p matrix."""
    Q, R = np.linalg.qr(A)
    signs = np.where(np.diagonal(R, axis1=-2, axis2=-1) < 0, -1, 1).astype(A.dtype)
    return Q * signs[..., None, :]


def normalise_columns(A: Array) -> Array:
    """Each column of the trailing matrices divided by its 2-norm; zero columns stay zero."""
    norms = np.linalg.norm(A, axis=-2, keepdims=True)
    return np.divide(A, norms, out=np.zeros_like(A), where=norms != 0)  # NaN stays NaN


def normalise_tall_columns(A: Array) -> Array:
    """The same for tall matrices (lanes, n, p), with one division per column."""
    norms = np.sqrt(np.einsum("knp,knp->kp", A, A))[:, None]
    return A * np.divide(1, norms, out=np.zeros_like(norms), where=norms != 0)


def view_slices(sizes: tuple[int, ...]) -> tuple[slice, ...]:
    """Row slices of the stacked variable, one per view."""
    ends = np.cumsum(sizes)
    return tuple(slice(int(end - size), int(end)) for end, size in zip(ends, sizes, strict=True))
