"""Algorithms 1 and 2 as the paper's pseudocode reads: with n-by-n matrices, to time the engine against.

Every step forms M_theta and the cross-covariance of xi between the views as dense n-by-n arrays and multiplies X by
them.  Apart from that nothing is wasted: the products are BLAS's, M_theta X_{k+1} serves both the tracker and the
direction, each cross-covariance is computed once and mirrored, and both arrays are reused from step to step.
"""

import time
from dataclasses import dataclass

import numpy as np

from cdfsg.datasets.views import Views
from cdfsg.linalg import Array
from cdfsg.penalty import dissolving_factor, multiplier
from cdfsg.solvers.cdfsg import CDFSG, CDFSGAda


@dataclass(frozen=True)
class Outcome:
    """What a direct run gives.

    Attributes
    ----------
    X : array (n, p)
        Last iterate.
    steps : int
    seconds : float
        From the first minibatch on, drawing them included, as the engine counts.
    """

    X: Array
    steps: int
    seconds: float


class DenseMoments:
    """M_theta and the cross-covariance of a minibatch, each in a dense n-by-n array that is written over."""

    def __init__(self, views: Views, dtype: type) -> None:
        self._slices = views.slices
        self._M: Array = np.zeros((views.n_features, views.n_features), dtype)
        self._S: Array = np.zeros_like(self._M)

    def constraint_matrix(self, Z: Array) -> Array:
        """``M_theta``: the block diagonal of ``Z'Z / l``."""
        Z = _scaled(Z)
        for view in self._slices:
            self._M[view, view] = Z[:, view].T @ Z[:, view]
        return self._M

    def cross_covariance(self, Z: Array) -> Array:
        """``Z'Z / l`` without the block diagonal."""
        Z = _scaled(Z)
        for i, left in enumerate(self._slices):
            for right in self._slices[i + 1 :]:
                block = Z[:, left].T @ Z[:, right]
                self._S[left, right] = block
                self._S[right, left] = block.T
        return self._S


class Steps:
    """The update of X by a direction: Algorithm 1's, or Algorithm 2's with its moment estimates."""

    def __init__(self, solver: CDFSG, alpha: float, X0: Array) -> None:
        self._solver, self._alpha = solver, alpha
        self._B, self._V = np.zeros_like(X0), np.zeros_like(X0)

    def move(self, X: Array, D: Array) -> Array:
        """``X - alpha D``, or with the step sizes of Algorithm 2."""
        if not isinstance(self._solver, CDFSGAda):
            return np.asarray(X - self._alpha * D)
        eta1, eta2, epsilon = self._solver.eta1, self._solver.eta2, self._solver.epsilon
        self._B = eta1 * self._B + (1 - eta1) * D
        self._V = np.maximum(eta2 * self._V + (1 - eta2) * D**2, self._V)
        return np.asarray(X - self._alpha * self._B / np.sqrt(self._V + epsilon))


def run(
    solver: CDFSG, views: Views, X0: Array, s1: float, s2: float, batch_size: int, order: int, dtype: type, steps: int
) -> Outcome:
    """Run the first steps of a pass on GCCA with the identity merit, on the minibatches that the engine draws.

    Parameters
    ----------
    solver : CDFSG or CDFSGAda
        Its constants.
    views : Views
    X0 : array (n, p)
    s1, s2 : float
        Step sizes, ``alpha = s2`` and ``b = s2 / s1``.
    batch_size, order
        As in `cdfsg.solvers.lanes.run`.
    dtype : numpy float type
    steps : int
        At least one, at most those of a pass.

    Raises
    ------
    ValueError
        If `steps` is not in that range.
    """
    theta, xi = (views.batch_indices(batch_size, [order, stream]) for stream in (0, 1))
    if not 1 <= steps <= len(theta):
        raise ValueError(f"steps={steps}: expected 1..{len(theta)}, the steps of a pass at l = {batch_size}")
    X: Array = X0.astype(dtype)
    first = next(views.batches(batch_size, [order, 2], dtype))
    began = time.perf_counter()
    moments, update = DenseMoments(views, dtype), Steps(solver, s2, X)
    Y = X.T @ moments.constraint_matrix(first) @ X
    D = np.zeros_like(X)
    for k in range(steps):
        M = moments.constraint_matrix(views.rows(theta[k], dtype))
        before = X.T @ (M @ X)
        X = update.move(X, D)
        MX = M @ X
        C = X.T @ MX
        Y = Y - s2 / s1 * (Y - before) + C - before
        Q = dissolving_factor(Y)
        G = -2 * (moments.cross_covariance(views.rows(xi[k], dtype)) @ (X @ Q))
        D = G @ Q.T + MX @ multiplier(X.T @ G, Y, solver.beta)
    return Outcome(X, steps, time.perf_counter() - began)


def _scaled(Z: Array) -> Array:
    """``Z / sqrt(l)``, cheaper than dividing an n-by-n product by l."""
    scaled: Array = Z * Z.dtype.type(len(Z) ** -0.5)
    return scaled
