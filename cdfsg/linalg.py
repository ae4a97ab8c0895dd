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
    return (a + np.swapaxes(a, -1, -2)) / 2


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
    return (vectors * values[..., None, :]) @ np.swapaxes(vectors, -1, -2)


def side_by_side(a: Array) -> Array:
    """A copy of matrices (lanes, n, p) in a memory block (n, lanes, p), where a tall matrix of every lane is one."""
    return np.ascontiguousarray(a.transpose(1, 0, 2)).transpose(1, 0, 2)


def view_slices(sizes: tuple[int, ...]) -> tuple[slice, ...]:
    """Row slices of the stacked variable, one per view."""
    ends = np.cumsum(sizes)
    return tuple(slice(int(end - size), int(end)) for end, size in zip(ends, sizes, strict=True))
