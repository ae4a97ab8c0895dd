r"""Problems over the generalized Stiefel manifold, exact and sampled.

The paper's problem (SOEGS) is ``min f(X) = E f_xi(X)`` subject to ``X' E[M_theta] X = I_p``.  It comes here in
two forms that share their definition:

* an **exact** problem knows f, its gradient and its Hessian (`Problem`), and feeds the deterministic
  mathematics of `cdfsg.penalty`;
* a **sampled** problem knows them on a minibatch (`SampledProblem`), for many lanes at once, and feeds the
  solvers.  No n-by-n matrix is formed.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from cdfsg.checks import (
    require_covariance,
    require_finite,
    require_floats,
    require_merit,
    require_real,
    require_shape,
    require_sizes,
    require_symmetric,
)
from cdfsg.linalg import Array, lane_gram, view_slices
from cdfsg.merits import Merit


class Problem(Protocol):
    """An exact objective on n-by-p matrices."""

    @property
    def lipschitz(self) -> float:
        """A global Lipschitz constant L_g of the gradient (Assumption 1.1), in the Frobenius norm."""

    def value(self, X: Array) -> float:
        """f(X) for X of shape (n, p)."""

    def gradient(self, X: Array) -> Array:
        """Gradient of f at X, shape (n, p)."""

    def hessian(self, X: Array, D: Array) -> Array:
        """Hessian of f at X applied to D, shape (n, p)."""


class SampledProblem(Protocol):
    """A problem seen through minibatches, in lanes.

    A minibatch is an array Z of l rows.  Everything that a solver needs factors through projections
    ``P = project(Z, X)``, which cost one matrix product for all lanes; ``lift`` is the adjoint product.

    Attributes
    ----------
    sizes : tuple of int
        Widths of the blocks of columns that make up a row of data, the views.
    n : int
        Rows of X; in GCCA as many as a row of data has columns.
    """

    sizes: tuple[int, ...]
    n: int

    def project(self, Z: Array, X: Array) -> Array:
        """Projections P of the minibatch: X of shape (n, lanes, p) gives (l, m, lanes, p)."""

    def lift(self, Z: Array, R: Array, out: Array | None = None) -> Array:
        """Adjoint of `project`: R of shape (l, m, lanes, p) gives (n, lanes, p)."""

    def constraint(self, P: Array) -> Array:
        """``C_theta(X) = X' M_theta X`` (eq:c) from its projections, shape (lanes, p, p)."""

    def constraint_factor(self, P: Array) -> Array:
        """The factor S with ``M_theta X = lift(Z, S)``, shape of P."""

    def gradient_factor(self, P: Array) -> Array:
        """The factor R with ``grad f_xi(X) = lift(Z, R)``, shape of P."""


@runtime_checkable
class SpannedProblem(SampledProblem, Protocol):
    """A sampled problem whose products among minibatches are cheap, so that several steps go together."""

    def kernel(self, Z: Array, W: Array) -> Array:
        """The matrices K_i with ``project(Z, lift(W, R))[:, i] = K_i R[:, i]``, shape (m, len(Z), len(W))."""


# --- exact problems --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Quadratic:
    """f(X) = tr(X' A X) / 2 with A symmetric, shape (n, n)."""

    A: Array

    def __post_init__(self) -> None:
        """Refuse what is no finite symmetric matrix."""
        object.__setattr__(self, "A", np.asarray(self.A))
        require_symmetric("A", self.A)

    @property
    def lipschitz(self) -> float:
        """The spectral norm of A."""
        return float(np.linalg.norm(self.A, 2))

    def value(self, X: Array) -> float:
        """f(X)."""
        require_shape("X", X, (len(self.A), "p"), "the height of A")
        return float(np.vdot(X, self.A @ X)) / 2

    def gradient(self, X: Array) -> Array:
        """A X."""
        require_shape("X", X, (len(self.A), "p"), "the height of A")
        product: Array = self.A @ X
        return product

    def hessian(self, X: Array, D: Array) -> Array:
        """A D."""
        require_shape("D", D, (len(self.A), "p"), "the height of A")
        product: Array = self.A @ D
        return product


@dataclass(frozen=True)
class Linear:
    """f(X) = <B, X> with B of shape (n, p)."""

    B: Array

    def __post_init__(self) -> None:
        """Refuse what holds no finite real numbers."""
        require_finite("B", np.asarray(self.B))

    @property
    def lipschitz(self) -> float:
        """Zero: the gradient is constant."""
        return 0.0

    def value(self, X: Array) -> float:
        """f(X)."""
        require_shape("X", X, np.shape(self.B), "that of B")
        return float(np.vdot(self.B, X))

    def gradient(self, X: Array) -> Array:
        """B."""
        require_shape("X", X, np.shape(self.B), "that of B")
        return np.broadcast_to(self.B, X.shape).copy()

    def hessian(self, X: Array, D: Array) -> Array:
        """Zero."""
        return np.zeros_like(D)


class GCCA:
    r"""Generalised canonical correlation analysis from covariances (p:GCCA).

    ``f(X) = - sum_r sum_{i != j} c_ij g(x_r^[i]' S_ij x_r^[j])`` over ordered pairs of views, with the
    constraint matrix ``M = blockdiag(S_11, ..., S_mm)``.

    Parameters
    ----------
    covariance : array (n, n)
        Second moments S of the stacked views, symmetric.
    sizes : tuple of int
        Widths n_1, ..., n_m of the views; they sum to n.
    merit : Merit
    weights : array (m, m), optional
        Symmetric c_ij; the diagonal is ignored.  Ones by default.

    Raises
    ------
    ValueError
        If shapes do not fit, or covariance or weights are not finite and symmetric.
    """

    def __init__(
        self, covariance: Array, sizes: tuple[int, ...], merit: Merit, weights: Array | None = None
    ) -> None:
        covariance = np.asarray(covariance)
        require_covariance("covariance", covariance)
        require_sizes(sizes, len(covariance))
        _require_gcca(sizes, merit)
        self.covariance = covariance
        self.sizes = tuple(sizes)
        self.merit = merit
        self.weights = pair_weights(len(sizes), weights)
        self.slices = view_slices(self.sizes)

    @property
    def M(self) -> Array:
        """The constraint matrix, shape (n, n)."""
        M = np.zeros_like(self.covariance)
        for view in self.slices:
            M[view, view] = self.covariance[view, view]
        return M

    @property
    def lipschitz(self) -> float:
        """``c || c_ij S_ij ||_2``, with ``c = 2`` for the identity merit.

        Raises
        ------
        ValueError
            For merits with which the gradient is not globally Lipschitz, such as Huber's.
        """
        if self.merit.lipschitz is None:
            raise ValueError(
                f"the gradient of GCCA with the {self.merit.name} merit is not globally Lipschitz (the paper's "
                "Assumption 1.1 fails), so no L_g and no threshold exist; use the identity merit"
            )
        cross = np.zeros_like(self.covariance)
        for i, j in self._pairs():
            cross[self.slices[i], self.slices[j]] = self.weights[i, j] * self._block(i, j)
        return self.merit.lipschitz * float(np.linalg.norm(cross, 2))

    def value(self, X: Array) -> float:
        """f(X)."""
        require_shape("X", X, (len(self.covariance), "p"), "the height of the covariance")
        t = {pair: self._inner(*pair, X, X) for pair in self._pairs()}
        return -sum(float(self.weights[pair] * self.merit.value(t[pair]).sum()) for pair in t)

    def gradient(self, X: Array) -> Array:
        """Gradient of f: block i is ``-2 sum_j c_ij S_ij X_j diag(g'(t_ij))``."""
        require_floats("X", X)
        require_shape("X", X, (len(self.covariance), "p"), "the height of the covariance")
        G = np.zeros_like(X)
        for i, j in self._pairs():
            slope = self.merit.slope(self._inner(i, j, X, X))
            G[self.slices[i]] -= 2 * self.weights[i, j] * self._block(i, j) @ X[self.slices[j]] * slope
        return G

    def hessian(self, X: Array, D: Array) -> Array:
        """Hessian of f at X applied to D (where |t_ij| = mu in no column)."""
        require_floats("X", X)
        require_shape("X", X, (len(self.covariance), "p"), "the height of the covariance")
        require_shape("D", D, (len(self.covariance), "p"), "the height of the covariance")
        H = np.zeros_like(X)
        for i, j in self._pairs():
            t = self._inner(i, j, X, X)
            dt = self._inner(i, j, D, X) + self._inner(i, j, X, D)
            change = D[self.slices[j]] * self.merit.slope(t) + X[self.slices[j]] * self.merit.curvature(t) * dt
            H[self.slices[i]] -= 2 * self.weights[i, j] * self._block(i, j) @ change
        return H

    def _pairs(self) -> list[tuple[int, int]]:
        m = len(self.sizes)
        return [(i, j) for i in range(m) for j in range(m) if i != j]

    def _block(self, i: int, j: int) -> Array:
        return self.covariance[self.slices[i], self.slices[j]]

    def _inner(self, i: int, j: int, X: Array, Y: Array) -> Array:
        """Per column ``x_r^[i]' S_ij y_r^[j]``, shape (p,)."""
        inner: Array = np.sum(X[self.slices[i]] * (self._block(i, j) @ Y[self.slices[j]]), axis=0)
        return inner


# --- the sampled form of GCCA ----------------------------------------------------------------------------


class SampledGCCA:
    r"""GCCA on minibatches, in lanes: the sampled form of `GCCA`.

    With the projections ``P_i = Z_i X_i`` of a minibatch of l rows, ``t_ij`` is the column sum of
    ``P_i * P_j`` over l; the gradient's block i is ``-(2/l) Z_i' sum_j c_ij P_j diag(g'(t_ij))`` and
    ``X' M_theta X = (1/l) sum_i P_i' P_i``.  For the Huber merit the minibatch gradient is biased, since g is
    applied to a sampled t (the bias decays like 1/l).

    Parameters
    ----------
    sizes, merit, weights
        As in `GCCA`.

    Raises
    ------
    ValueError
        If there are fewer than two views, or one without a column, or `merit` is none.
    """

    def __init__(self, sizes: tuple[int, ...], merit: Merit, weights: Array | None = None) -> None:
        require_sizes(sizes)
        _require_gcca(sizes, merit)
        self.sizes = tuple(sizes)
        self.n = sum(sizes)
        self.merit = merit
        self.weights = pair_weights(len(sizes), weights)
        self.slices = view_slices(self.sizes)

    def project(self, Z: Array, X: Array) -> Array:
        """``P_i = Z_i X_i`` of every view, shape (l, m, lanes, p)."""
        _, lanes, p = X.shape
        P = np.empty((len(Z), len(self.sizes), lanes * p), dtype=X.dtype)
        flat = X.reshape(len(X), lanes * p)
        for i, view in enumerate(self.slices):
            np.matmul(Z[:, view], flat[view], out=P[:, i])
        return P.reshape(len(Z), len(self.sizes), lanes, p)

    def lift(self, Z: Array, R: Array, out: Array | None = None) -> Array:
        """Stack ``Z_i' R_i`` over the views, shape (n, lanes, p); `out` is overwritten when given."""
        lanes, p = R.shape[2:]
        if out is None:
            out = np.empty((Z.shape[1], lanes, p), dtype=R.dtype)
        flat = out.reshape(Z.shape[1], lanes * p)
        factor = R.reshape(len(Z), len(self.sizes), lanes * p)
        for i, view in enumerate(self.slices):
            np.matmul(Z[:, view].T, factor[:, i], out=flat[view])
        return out

    def kernel(self, Z: Array, W: Array) -> Array:
        """``K_i = Z_i W_i'`` of every view, shape (m, len(Z), len(W))."""
        return np.stack([Z[:, view] @ W[:, view].T for view in self.slices])

    def constraint(self, P: Array) -> Array:
        """``X' M_theta X = (1/l) sum_i P_i' P_i``, shape (lanes, p, p)."""
        rows = stack_views(P)
        return lane_gram(rows, rows) / len(P)

    def constraint_factor(self, P: Array) -> Array:
        """``P / l``: its lift is ``M_theta X``."""
        factor: Array = P / len(P)
        return factor

    def gradient_factor(self, P: Array) -> Array:
        """``R_i = -(2/l) sum_{j != i} c_ij P_j diag(g'(t_ij))``: its lift is ``grad f_xi(X)``."""
        size, m, lanes, p = P.shape
        flat = P.reshape(size, m, lanes * p)
        R = np.zeros_like(flat)
        for i in range(m):
            for j in range(m):
                if i != j:
                    scale = 2 / size * float(self.weights[i, j])
                    R[:, i] -= (scale * self._slope(flat, i, j)) * flat[:, j]
        return R.reshape(P.shape)

    def gradient(self, Z: Array, X: Array) -> Array:
        """``grad f_xi(X)`` on the minibatch Z, shape (n, lanes, p)."""
        return self.lift(Z, self.gradient_factor(self.project(Z, X)))

    def constraint_gradient(self, Z: Array, X: Array) -> Array:
        """``M_theta X`` on the minibatch Z (half the gradient of tr C_theta), shape (n, lanes, p)."""
        return self.lift(Z, self.constraint_factor(self.project(Z, X)))

    def _slope(self, flat: Array, i: int, j: int) -> Array:
        """g'(t_ij) per column, shape (lanes * p,)."""
        t = np.einsum("rc,rc->c", flat[:, i], flat[:, j]) / len(flat) if self.merit.name != "identity" else 0
        return self.merit.slope(np.asarray(t, dtype=flat.dtype))


def stack_views(P: Array) -> Array:
    """Projections (l, m, lanes, p) with the views as further rows: (l * m, lanes, p), no copy if contiguous."""
    size, m, lanes, p = P.shape
    return P.reshape(size * m, lanes, p)


def pair_weights(m: int, weights: Array | None) -> Array:
    """Validated c_ij of shape (m, m); ones where none are given.

    Raises
    ------
    ValueError
        If the shape is not (m, m) or the weights are not finite and symmetric.
    """
    if weights is None:
        return np.ones((m, m))
    weights = np.asarray(weights)
    require_real("weights", weights)
    weights = weights.astype(float)
    if weights.shape != (m, m):
        raise ValueError(f"weights must have shape {(m, m)}, one c_ij per pair of views, got {weights.shape}")
    require_symmetric("weights", weights)
    return weights


def _require_gcca(sizes: tuple[int, ...], merit: Merit) -> None:
    if len(sizes) < 2:
        raise ValueError(f"GCCA needs at least two views, got the sizes {tuple(sizes)}")
    require_merit(merit, "slope")
