r"""Problems over the generalized Stiefel manifold, exact and sampled.

The problem (SOEGS) is ``min f(X) = E f_xi(X)`` subject to ``X' E[M_theta] X = I_p``.  An **exact** one (`Problem`)
feeds `cdfsg.penalty`; a **sampled** one (`SampledProblem`), seen through minibatches and in lanes, feeds the solvers,
and never forms an n-by-n matrix.
"""

from dataclasses import dataclass
from itertools import permutations
from typing import Protocol

import numpy as np

from cdfsg import checks
from cdfsg.linalg import Array, view_slices
from cdfsg.merits import Merit


class Problem(Protocol):
    """An exact objective on n-by-p matrices."""

    @property
    def lipschitz(self) -> float:
        """A Lipschitz constant L_g of the gradient (Assumption 1.1), in the Frobenius norm."""

    def value(self, X: Array) -> float:
        """f(X) for X of shape (n, p)."""

    def gradient(self, X: Array) -> Array:
        """Gradient of f at X, shape (n, p)."""

    def hessian(self, X: Array, D: Array) -> Array:
        """Hessian of f at X applied to D, shape (n, p)."""


class SampledProblem(Protocol):
    """A problem seen through minibatches, in lanes.

    All that a solver needs factors through the scores ``Z X`` of the rows Z of a minibatch, one product for all lanes
    and minibatches of a step.  The minibatches, of l rows each, are an array ``samples`` of shape (s, l, n).  `sizes`
    are the widths of the m views, the blocks of columns of the data; X has n rows, in GCCA their sum.
    """

    sizes: tuple[int, ...]
    n: int

    def scores(self, samples: Array, X: Array) -> Array:
        """Scores P on each minibatch: X (lanes, n, p) gives (s, lanes, l m, p)."""

    def adjoint(self, samples: Array, R: Array) -> Array:
        """Adjoint of `scores`, summed over the minibatches: (s, lanes, l m, p) to (lanes, n, p)."""

    def constraint(self, P: Array) -> Array:
        """``C_theta(X) = X' M_theta X`` (eq:c), (lanes, p, p), from the scores on theta (lanes, l m, p)."""

    def constraint_factor(self, P: Array) -> Array:
        """The factor S with ``M_theta X = adjoint(theta, S)``, shape of P."""

    def raw_gradient(self, P: Array) -> Array:
        """The factor R with ``grad f_xi(X) = adjoint(xi, R)``, shape of P."""


@dataclass(frozen=True)
class Quadratic:
    """f(X) = tr(X' A X) / 2 with A symmetric, shape (n, n)."""

    A: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "A", np.asarray(self.A))
        checks.require_symmetric("A", self.A)

    @property
    def lipschitz(self) -> float:
        """The spectral norm of A."""
        return float(np.linalg.norm(self.A, 2))

    def value(self, X: Array) -> float:
        return float(np.vdot(X, self.gradient(X))) / 2

    def gradient(self, X: Array) -> Array:
        checks.require_shape("X", X, (len(self.A), "p"))
        return self.A @ X

    def hessian(self, X: Array, D: Array) -> Array:
        checks.require_shape("D", D, (len(self.A), "p"))
        return self.A @ D


@dataclass(frozen=True)
class Linear:
    """f(X) = <B, X> with B of shape (n, p)."""

    B: Array

    def __post_init__(self) -> None:
        checks.require_finite("B", np.asarray(self.B))

    @property
    def lipschitz(self) -> float:
        """Zero: the gradient is constant."""
        return 0.0

    def value(self, X: Array) -> float:
        checks.require_shape("X", X, np.shape(self.B))
        return float(np.vdot(self.B, X))

    def gradient(self, X: Array) -> Array:
        checks.require_shape("X", X, np.shape(self.B))
        return np.broadcast_to(self.B, X.shape).copy()

    def hessian(self, X: Array, D: Array) -> Array:
        return np.zeros_like(D)


class _GCCA:
    """The sizes, merit and weights of an exact or sampled GCCA problem, and the slices of its views."""

    def __init__(self, sizes: tuple[int, ...], merit: Merit, weights: Array | None) -> None:
        checks.require_sizes(sizes)
        if len(sizes) < 2:
            raise ValueError(f"GCCA needs at least two views, got the sizes {tuple(sizes)}")
        checks.require_merit(merit, "slope")
        self.sizes = tuple(sizes)
        self.merit = merit
        self.weights = pair_weights(len(sizes), weights)
        self.slices = view_slices(self.sizes)
        self.pairs = list(permutations(range(len(sizes)), 2))


class GCCA(_GCCA):
    r"""Generalised canonical correlation analysis from covariances (p:GCCA).

    ``f(X) = - sum_r sum_{i != j} c_ij g(x_r^[i]' S_ij x_r^[j])`` over ordered pairs of views, with the
    constraint matrix ``M = blockdiag(S_11, ..., S_mm)``.

    Parameters
    ----------
    covariance : array (n, n)
        Second moments S of the stacked views, symmetric.
    sizes : tuple of int
        Widths n_1, ..., n_m of the views.
    merit : Merit
    weights : array (m, m), optional
        Symmetric c_ij, ones by default; the diagonal is ignored.
    """

    def __init__(
        self, covariance: Array, sizes: tuple[int, ...], merit: Merit, weights: Array | None = None
    ) -> None:
        covariance = np.asarray(covariance)
        checks.require_covariance("covariance", covariance)
        checks.require_sizes(sizes, len(covariance))
        super().__init__(sizes, merit, weights)
        self.covariance = covariance

    @property
    def M(self) -> Array:
        """The constraint matrix, shape (n, n)."""
        M = np.zeros_like(self.covariance)
        for view in self.slices:
            M[view, view] = self.covariance[view, view]
        return M

    @property
    def lipschitz(self) -> float:
        """``c || c_ij S_ij ||_2`` with the merit's c; ValueError for Huber's, which has none."""
        if self.merit.lipschitz is None:
            reason = "is not globally Lipschitz (against Assumption 1.1)"
            raise ValueError(f"the gradient with the {self.merit.name} merit {reason}; use the identity merit")
        cross = np.zeros_like(self.covariance)
        for i, j in self.pairs:
            cross[self.slices[i], self.slices[j]] = self.weights[i, j] * self._block(i, j)
        return self.merit.lipschitz * float(np.linalg.norm(cross, 2))

    def value(self, X: Array) -> float:
        checks.require_shape("X", X, (len(self.covariance), "p"))
        t = {pair: self._inner(*pair, X, X) for pair in self.pairs}
        return -sum(float(self.weights[pair] * self.merit.value(t[pair]).sum()) for pair in t)

    def gradient(self, X: Array) -> Array:
        """Gradient of f: block i is ``-2 sum_j c_ij S_ij X_j diag(g'(t_ij))``."""
        checks.require_floats("X", X)
        checks.require_shape("X", X, (len(self.covariance), "p"))
        G = np.zeros_like(X)
        for i, j in self.pairs:
            slope = self.merit.slope(self._inner(i, j, X, X))
            G[self.slices[i]] -= 2 * self.weights[i, j] * self._block(i, j) @ X[self.slices[j]] * slope
        return G

    def hessian(self, X: Array, D: Array) -> Array:
        """Hessian of f at X applied to D (where |t_ij| = mu in no column)."""
        checks.require_floats("X", X)
        checks.require_shape("X", X, (len(self.covariance), "p"))
        checks.require_shape("D", D, (len(self.covariance), "p"))
        H = np.zeros_like(X)
        for i, j in self.pairs:
            t = self._inner(i, j, X, X)
            dt = self._inner(i, j, D, X) + self._inner(i, j, X, D)
            change = D[self.slices[j]] * self.merit.slope(t) + X[self.slices[j]] * self.merit.curvature(t) * dt
            H[self.slices[i]] -= 2 * self.weights[i, j] * self._block(i, j) @ change
        return H

    def _block(self, i: int, j: int) -> Array:
        return self.covariance[self.slices[i], self.slices[j]]

    def _inner(self, i: int, j: int, X: Array, Y: Array) -> Array:
        """Per column ``x_r^[i]' S_ij y_r^[j]``, shape (p,)."""
        return np.sum(X[self.slices[i]] * (self._block(i, j) @ Y[self.slices[j]]), axis=0)


class SampledGCCA(_GCCA):
    r"""GCCA on minibatches, in lanes: the sampled form of `GCCA`.

    With the scores ``P_i = Z_i X_i`` of a minibatch of l rows, ``t_ij`` is the column sum of ``P_i * P_j`` over l.
    The gradient of the Huber merit is biased by about 1/l, since g is applied to a sampled t.
    """

    def __init__(self, sizes: tuple[int, ...], merit: Merit, weights: Array | None = None) -> None:
        super().__init__(sizes, merit, weights)
        self.n = sum(sizes)

    def scores(self, samples: Array, X: Array) -> Array:
        """``P_i = Z_i X_i`` of each minibatch, shape (s, lanes, l m, p): row k m + i is of sample k, view i."""
        s, l, n = samples.shape  # noqa: E741
        lanes, _, p = X.shape
        Z, tall = samples.reshape(s * l, n), X.transpose(1, 0, 2).reshape(n, lanes * p)
        P = np.empty((s * l, len(self.sizes), lanes * p), dtype=X.dtype)
        for i, view in enumerate(self.slices):
            np.matmul(Z[:, view], tall[view], out=P[:, i])
        return P.reshape(s, -1, lanes, p).transpose(0, 2, 1, 3)

    def adjoint(self, samples: Array, R: Array) -> Array:
        """Stack ``Z_i' R_i`` over the views, summed over the minibatches, shape (lanes, n, p)."""
        s, l, n = samples.shape  # noqa: E741
        lanes, p = R.shape[1], R.shape[3]
        Z, factor = samples.reshape(s * l, n), R.transpose(0, 2, 1, 3).reshape(s * l, -1, lanes * p)
        tall = np.empty((n, lanes * p), dtype=R.dtype)
        for i, view in enumerate(self.slices):
            np.matmul(Z[:, view].T, factor[:, i], out=tall[view])
        return tall.reshape(n, lanes, p).transpose(1, 0, 2)

    def constraint(self, P: Array) -> Array:
        """``X' M_theta X = (1/l) sum_i P_i' P_i``, shape (lanes, p, p)."""
        return P.mT @ P / self._rows(P)

    def constraint_factor(self, P: Array) -> Array:
        """``P / l``: its adjoint is ``M_theta X``."""
        return P / self._rows(P)

    def raw_gradient(self, P: Array) -> Array:
        """``R_i = -(2/l) sum_{j != i} c_ij P_j diag(g'(t_ij))``: its adjoint is ``grad f_xi(X)``."""
        m, l = len(self.sizes), self._rows(P)  # noqa: E741
        P_of = [P[:, i::m] for i in range(m)]
        R = np.zeros_like(P)
        for i, j in self.pairs:
            R[:, i::m] -= 2 / l * float(self.weights[i, j]) * self._slope(P_of[i], P_of[j], l) * P_of[j]
        return R

    def _rows(self, P: Array) -> int:
        return P.shape[1] // len(self.sizes)

    def _slope(self, P_i: Array, P_j: Array, l: int) -> Array:  # noqa: E741
        """g'(t_ij) per lane and column, shape (lanes, 1, p)."""
        if self.merit.name == "identity":
            return np.ones((len(P_i), 1, P_i.shape[2]), dtype=P_i.dtype)
        return self.merit.slope(np.einsum("klp,klp->kp", P_i, P_j)[:, None] / l)


def pair_weights(m: int, weights: Array | None) -> Array:
    """Validated c_ij of shape (m, m); ones where none are given."""
    if weights is None:
        return np.ones((m, m))
    checks.require_real("weights", weights)
    checks.require_shape("weights", weights, (m, m), "one c_ij per pair of views")
    checks.require_symmetric("weights", weights)
    return np.asarray(weights, dtype=float)
