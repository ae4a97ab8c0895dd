"""Small dense linear algebra without any meaning from the paper."""

import numpy as np


def sym(a: np.ndarray) -> np.ndarray:
    """Symmetric part ``(A + A') / 2`` of each trailing square matrix, the paper's Psi."""
    return (a + np.swapaxes(a, -1, -2)) / 2


def inv_sqrt(a: np.ndarray) -> np.ndarray:
    """Inverse square root of each trailing symmetric positive definite matrix.

    Raises
    ------
    ValueError
        If an eigenvalue is not positive; the message names the smallest one.
    """
    values, vectors = np.linalg.eigh(sym(a))
    if not values.min() > 0:
        raise ValueError(f"a positive definite matrix is needed; smallest eigenvalue {values.min():.3g}")
    return (vectors / np.sqrt(values)[..., None, :]) @ np.swapaxes(vectors, -1, -2)
