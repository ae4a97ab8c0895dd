"""RSG+ (Meng, Chakraborty, Singh, NeurIPS 2021): Riemannian stochastic gradient for two-view CCA."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cdfsg.checks import require_positive
from cdfsg.datasets.views import Views
from cdfsg.linalg import Array, eye_like, lane_gram, lane_product
from cdfsg.problems import SampledGCCA, SampledProblem
from cdfsg.solvers.draws import Draw
from cdfsg.solvers.lanes import Refusal, State, lane_axis


@dataclass
class FactoredState(State):
    """State of RSG+: ``X_i = Q_i T_i`` with Q the stacked orthonormal factors and T of shape (2, lanes, p, p)."""

    Q: Array = lane_axis(1)
    T: Array = lane_axis(1)
    eta_q: Array = lane_axis(0)
    eta_t: Array = lane_axis(0)


@dataclass(frozen=True)
class RSGPlus:
    """Riemannian stochastic gradient on ``X_i = Q_i T_i``; the published constants are the defaults.

    The published scheme makes two passes: the first turns Q towards the principal components of each view
    (stochastic power iteration on sums over the batch), the second is the method itself.  The published code
    times only the second; here the time is of both.  The published start is an orthonormalised matrix of
    uniform entries.  The settings of a lane are the steps ``eta_q`` of the orthonormal and ``eta_t`` of the
    p-by-p factors; the published ones are 0.1 and 0.01.

    The whitening term inverts a p-by-p matrix for every block of p rows. Rows with equal labels make such a matrix
    singular, and the published formula then has no value.

    Attributes
    ----------
    gamma : float
        Step of the first pass.
    weight : float
        Weight w of the whitening term.
    singular : {"pseudo-inverse", "ridge", "stop"}
        How a singular block is treated, see `INVERSES`.
    """

    gamma: float = 0.01
    weight: float = 0.1
    singular: str = "pseudo-inverse"
    name: ClassVar = "RSG+"
    settings: ClassVar[tuple[str, ...]] = ("eta_q", "eta_t")
    streams: ClassVar = 1
    passes: ClassVar = 2
    start_from: ClassVar = "uniform"
    joint: ClassVar = False

    def __post_init__(self) -> None:
        """Refuse constants that are not positive, and an unknown treatment of singular blocks."""
        require_positive(gamma=self.gamma, weight=self.weight)
        if self.singular not in INVERSES:
            raise ValueError(f"singular={self.singular!r}: expected one of {', '.join(map(repr, INVERSES))}")

    def check(self, problem: SampledProblem, views: Views, batch_size: int, p: int) -> None:
        """Refuse more than two views, other merits, views that are not centred, and p that does not divide l."""
        if len(problem.sizes) != 2:
            raise Refusal(f"RSG+ is a method for two views, this problem has {len(problem.sizes)}")
        if not (isinstance(problem, SampledGCCA) and problem.merit.name == "identity"):
            raise Refusal("RSG+ is a method for the identity merit (classical CCA) alone")
        if p > min(problem.sizes):
            raise Refusal(f"RSG+ needs p orthonormal columns in each view, so p <= {min(problem.sizes)}, got p = {p}")
        if batch_size % p:
            raise Refusal(
                f"RSG+ cuts a batch into blocks of p rows, so p must divide the batch size: {batch_size} % {p}"
                f" = {batch_size % p}; take a batch size that is a multiple of {p}"
            )
        if not views.centred:
            raise Refusal(f"RSG+ needs centred views; use {views.name} with centring")

    def start(
        self, problem: SampledProblem, X0: Array, settings: Mapping[str, Array], first: Array
    ) -> FactoredState:
        """``Q_i = qf(X0_i)``, ``T_i = I``."""
        assert isinstance(problem, SampledGCCA)
        _, lanes, p = X0.shape
        Q = qf(X0, problem.slices)
        T = np.broadcast_to(np.eye(p, dtype=X0.dtype), (2, lanes, p, p)).copy()
        return FactoredState(X=Q.copy(), C=T[0], Q=Q, T=T, eta_q=settings["eta_q"], eta_t=settings["eta_t"])

    def step(self, problem: SampledProblem, state: FactoredState, draw: Draw, number: int) -> None:
        """One batch of the power iteration (pass 0) or of the method (pass 1)."""
        assert isinstance(problem, SampledGCCA)
        if number == 0:
            self._power_step(problem, state, draw.rows)
        else:
            self._riemannian_step(problem, state, draw.rows)

    def _power_step(self, problem: SampledGCCA, state: FactoredState, rows: Array) -> None:
        """``Q_i <- qf(Q_i + gamma A_i' A_i Q_i)``."""
        AAQ = problem.lift(rows, problem.project(rows, state.Q))
        state.Q = qf(state.Q + self.gamma * AAQ, problem.slices)

    def _riemannian_step(self, problem: SampledGCCA, state: FactoredState, rows: Array) -> None:
        """``Q_i <- qf(Q_i - eta_q nc(V_i - Q_i V_i'Q_i))``, ``T_i <- T_i qf(I - eta_t R_i)``, both from the old Q, T.

        Here ``V_i = G_i T_i' + w H_i`` with ``G_i = -A_i' A_j Q_j T_j`` for the other view j, ``H_i = -(1/J) sum_b
        [E_b (Q_i' E_b)^(-1) - Q_i]`` over the J blocks of p rows, and ``R_i`` is half of Q_i'G_i's skew part with
        columns normalised.  All p-by-p algebra is done for the lanes of both views at once.
        """
        P = problem.project(rows, state.Q)  # A_i Q_i
        l, m, lanes, p = P.shape  # noqa: E741
        T, AQ = state.T.reshape(m * lanes, p, p), P.reshape(l, m * lanes, p)
        AQT = lane_product(AQ, T).reshape(P.shape)
        other = AQT[:, ::-1].reshape(AQ.shape)  # A_j Q_j T_j
        # V_i = lift(factor) + w Q_i, whose last term drops out of V_i - Q_i V_i'Q_i
        inverses = block_inverses(AQ, self.singular)
        factor = -lane_product(other, np.swapaxes(T, -1, -2)) - self.weight / (l // p) * inverses
        V = problem.lift(rows, factor.reshape(P.shape))
        R = -lane_gram(AQ, other)  # Q_i' G_i
        R = normalise_columns(R - np.swapaxes(R, -1, -2)) / 2
        state.T = (T @ _qf_small(eye_like(R) - np.tile(state.eta_t, m)[:, None, None] * R)).reshape(state.T.shape)
        for view in problem.slices:
            Q = state.Q[view]
            V[view] -= lane_product(Q, lane_gram(V[view], Q))
            V[view] = Q - state.eta_q[:, None] * normalise_columns_tall(V[view])
        state.Q = qf(V, problem.slices)
        state.X = np.concatenate([lane_product(state.Q[view], state.T[i]) for i, view in enumerate(problem.slices)])
        state.C = lane_gram(state.X[:p], state.X[:p])  # bounded; a lane that failed is NaN in every row


def block_inverses(P: Array, singular: str) -> Array:
    """Rows N of ``sum_j E_j (Q'E_j)^(-1) = A'N``, where E_j' are blocks of p consecutive rows of A.

    Since ``Q'E_j`` is the transpose of the block ``P_j = E_j'Q`` of projections, N stacks ``(P_j^(-1))'``.
    P and N have shape (l, lanes, p); `singular` names an entry of `INVERSES`.
    """
    size, lanes, p = P.shape
    blocks = P.reshape(size // p, p, lanes, p).transpose(0, 2, 1, 3)
    inverse = np.swapaxes(INVERSES[singular](blocks), -1, -2)
    return np.ascontiguousarray(inverse.transpose(0, 2, 1, 3)).reshape(size, lanes, p)


def _inverse(blocks: Array) -> Array:
    """The inverse of each trailing matrix; NaN for those that have a pivot of exactly zero."""
    try:
        return np.linalg.inv(blocks)
    except np.linalg.LinAlgError:  # one of them makes `inv` refuse them all
        with np.errstate(invalid="ignore"):  # a lane may have diverged
            regular = np.linalg.slogdet(blocks).sign != 0
        inverse = np.full_like(blocks, np.nan)
        inverse[regular] = np.linalg.inv(blocks[regular])
        return inverse


def _pseudo_inverse(blocks: Array) -> Array:
    """The inverse; for blocks that are singular to working precision, the Moore-Penrose inverse."""
    p = blocks.shape[-1]
    rtol = p * np.finfo(blocks.dtype).eps  # below it, singular values are rounding
    inverse = _inverse(blocks)
    if p**2 * np.abs(blocks).max() * np.abs(inverse).max() * rtol < 1:  # no condition number is larger, and none NaN
        return inverse
    with np.errstate(over="ignore", invalid="ignore"):  # a lane may have diverged
        norms = _norms(blocks)
        singular = np.isfinite(norms) & ~(norms * _norms(inverse) * rtol < 1)  # NaN where there is no inverse
    inverse[singular] = np.linalg.pinv(blocks[singular], rtol=rtol)
    return inverse


def _ridge_inverse(blocks: Array) -> Array:
    """``(P'P + r I)^(-1) P'`` with r a thousandth of the mean squared singular value of P."""
    transposed = np.swapaxes(blocks, -1, -2)
    gram = transposed @ blocks
    ridge = 1e-3 * np.trace(gram, axis1=-2, axis2=-1)[..., None, None] / blocks.shape[-1]
    return _inverse(gram + ridge * eye_like(gram)) @ transposed


def _norms(matrices: Array) -> Array:
    """Frobenius norm of each trailing matrix."""
    norms: Array = np.linalg.norm(matrices, axis=(-2, -1))
    return norms


INVERSES: dict[str, Callable[[Array], Array]] = {
    "stop": _inverse,
    "pseudo-inverse": _pseudo_inverse,
    "ridge": _ridge_inverse,
}
"""Replacements for the inverse of a block that is singular: none, so that its lane stops, as published; the
pseudo-inverse, which equals the inverse unless the block is singular to working precision; a regularised inverse."""


def qf(A: Array, views: Sequence[slice] = (slice(None),)) -> Array:
    """Q factor of the thin QR with positive diagonal of R, of every view's rows in every lane: (n, lanes, p).

    By the Cholesky factor of A'A: the matrices here are orthonormal up to a bounded step, so it is as accurate
    as Householder's and much faster in lanes.  Lanes with a non-finite entry give NaN.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        gram = np.stack([lane_gram(A[view], A[view]) for view in views])
        finite = np.asarray(np.isfinite(gram).all(axis=(2, 3)))
        safe = np.where(finite[..., None, None], gram, eye_like(gram))
        inverse = np.linalg.inv(np.swapaxes(_each(np.linalg.cholesky, safe), -1, -2))
        inverse[~finite] = np.nan
        return np.concatenate([lane_product(A[view], inverse[i]) for i, view in enumerate(views)])


def _each(function: Callable[[Array], Array], matrices: Array) -> Array:
    """A function of each trailing matrix; NaN for those that it refuses, so that one lane does not stop the others."""
    try:
        return function(matrices)
    except np.linalg.LinAlgError:
        out = np.full_like(matrices, np.nan)
        for index in np.ndindex(matrices.shape[:-2]):
            with contextlib.suppress(np.linalg.LinAlgError):
                out[index] = function(matrices[index])
        return out


def _qf_small(A: Array) -> Array:
    """Q factor with positive diagonal of R of each trailing p-by-p matrix."""
    Q, R = np.linalg.qr(A)
    signs = np.where(np.diagonal(R, axis1=-2, axis2=-1) < 0, -1, 1).astype(A.dtype)
    product: Array = Q * signs[..., None, :]
    return product


def normalise_columns(A: Array) -> Array:
    """Each column of the trailing matrices divided by its 2-norm; zero columns stay zero."""
    norms = np.linalg.norm(A, axis=-2, keepdims=True)
    scaled: Array = np.divide(A, norms, out=np.zeros_like(A), where=norms != 0)  # NaN stays NaN
    return scaled


def normalise_columns_tall(A: Array) -> Array:
    """The same for a tall array (n, lanes, p)."""
    norms = np.sqrt(np.einsum("nlp,nlp->lp", A, A))
    scaled: Array = A * np.divide(1, norms, out=np.zeros_like(norms), where=norms != 0)
    return scaled

