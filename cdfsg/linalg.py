"""Small dense linear algebra without any meaning from the paper.

*Lanes* are independent runs that advance in lock-step.  The lane axis comes first, so that ``@`` and ``.mT`` go
over lanes: tall matrices have shape (lanes, n, p), small ones (lanes, p, p).
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdfsg.checks import require_finite, require_square

Array = NDArray[Any]


class NotPositiveDefiniteError(ValueError):
    """A matrix has no inverse square root."""


def sym(a: Array) -> Array:
    """Symmetric part ``(A + A') / 2`` of each trailing square matrix (the paper's Psi)."""
    return (a + a.mT) / 2


def eye_like(a: Array) -> Array:
    """Identity (p, p) of the size and type of the trailing matrices of `a`."""
    return np.eye(a.shape[-1], dtype=a.dtype)


def inv_sqrt(a: Array) -> Array:
    """Inverse square root of the symmetric part of each trailing matrix; `NotPositiveDefiniteError` if it has none."""
    require_square("a", a)
    if not np.isfinite(a).all():
        raise NotPositiveDefiniteError("inv_sqrt needs finite entries, got NaN or infinity")
    values, vectors = np.linalg.eigh(sym(a))
    if not values.min() > 0:
        found = f"got the eigenvalue {values.min():.3g}; add a ridge or use truncated_inv_sqrt"
        raise NotPositiveDefiniteError(f"inv_sqrt needs a positive definite matrix, {found}")
    return scale_spectrum(values**-0.5, vectors)


def truncated_inv_sqrt(a: Array, rtol: float) -> Array:
    """Inverse square root of one positive semidefinite matrix on its numerical range.

    Eigenvalues at or below `rtol` times the largest count as zero, and so does their inverse root.
    """
    require_square("a", a)
    require_finite("a", a)
    values, vectors = np.linalg.eigh(sym(a))
    kept = values > rtol * values.max(initial=0.0)
    roots = np.zeros_like(values)
    roots[kept] = values[kept] ** -0.5
    return scale_spectrum(roots, vectors)


def scale_spectrum(values: Array, vectors: Array) -> Array:
    """``V diag(values) V'`` of each trailing matrix: values (..., p), vectors (..., p, p)."""
    return (vectors * values[..., None, :]) @ vectors.mT


def side_by_side(a: Array) -> Array:
    """A copy of (lanes, n, p) whose memory has the order (n, lanes, p), one tall matrix of all lanes."""
    return np.ascontiguousarray(a.transpose(1, 0, 2)).transpose(1, 0, 2)


def times(a: Array, b: Array) -> Array:
    """``a @ b`` for square b, in the memory layout of `a`."""
    return np.matmul(a, b, out=np.empty_like(a))


def inverse(a: Array) -> Array:
    """Inverse of each of the matrices (k, p, p); NaN for those that have a pivot of exactly zero."""
    return _each(np.linalg.inv, a)


def _each(function: Callable[[Array], Array], matrices: Array) -> Array:
    """``function(matrices)``, NaN for those that numpy refuses."""
    try:
        return function(matrices)
    except np.linalg.LinAlgError:  # one makes numpy refuse all; halving finds it
        if len(matrices) == 1:
            return np.full_like(matrices, np.nan)
        return np.concatenate([_each(function, half) for half in np.array_split(matrices, 2)])


def pseudo_inverse(a: Array) -> Array:
    """Inverse of each of the matrices (k, p, p), Moore-Penrose where singular to working precision."""
    p = a.shape[-1]
    rtol = p * np.finfo(a.dtype).eps  # below it, singular values are rounding
    found = inverse(a)
    with np.errstate(all="ignore"):  # a lane may have diverged
        norms, inverse_norms = (np.linalg.norm(b, axis=(-2, -1)) for b in (a, found))
        singular = np.isfinite(norms) & ~(norms * inverse_norms * rtol < 1)  # NaN where there is no inverse
    found[singular] = np.linalg.pinv(a[singular], rtol=rtol)
    return found


def qf(A: Array) -> Array:
    """Q factor of the thin QR with positive diagonal of R, of each matrix (lanes, n, p); NaN where there is none.

    By the Cholesky factor of A'A: the matrices here are orthonormal up to a bounded step, so it is as accurate as
    Householder's, and faster in lanes.
    """
    with np.errstate(all="ignore"):
        gram = A.mT @ A
        finite = np.isfinite(gram).all(axis=(-2, -1))
        gram[~finite] = eye_like(gram)
        inverse = np.linalg.inv(_each(np.linalg.cholesky, gram).mT)
        inverse[~finite] = np.nan
        return A @ inverse


def small_qf(A: Array) -> Array:
    """Q factor with positive diagonal of R of each trailing p-by-p matrix."""
    Q, R = np.linalg.qr(A)
    signs = np.where(np.diagonal(R, axis1=-2, axis2=-1) < 0, -1, 1).astype(A.dtype)
    return Q * signs[..., None, :]


def normalise_columns(A: Array) -> Array:
    """Columns of the trailing matrices divided by their 2-norms; zero columns stay zero."""
    norms = np.linalg.norm(A, axis=-2, keepdims=True)
    return A / np.where(norms == 0, 1, norms)


def normalise_tall_columns(A: Array) -> Array:
    """The same for tall matrices (lanes, n, p), with one division per column."""
    norms = np.sqrt(np.einsum("knp,knp->kp", A, A))[:, None]
    return A * (1 / np.where(norms == 0, 1, norms))


def view_slices(sizes: tuple[int, ...]) -> tuple[slice, ...]:
    """Row slices of the stacked variable, one per view."""
    ends = np.cumsum(sizes)
    return tuple(slice(int(end - size), int(end)) for end, size in zip(ends, sizes, strict=True))
