"""The paper's Algorithm 1 (CDFSG) and Algorithm 2 (CDFSG-Ada) on sampled problems."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cdfsg.checks import require_positive, require_share
from cdfsg.datasets.views import Views
from cdfsg.linalg import Array, lane_gram, lane_product
from cdfsg.penalty import dissolving_factor, multiplier
from cdfsg.problems import SampledProblem, stack_views
from cdfsg.solvers.draws import Draw, Draws
from cdfsg.solvers.lanes import State, lane_axis

_CHUNK = 32768  # entries of an elementwise pass over X: its operands fit in the second-level cache


@dataclass
class TrackingState(State):
    """State of Algorithm 1: direction D, tracker Y of X'MX, step sizes alpha and b."""

    D: Array = lane_axis(1)
    Y: Array = lane_axis(0)
    alpha: Array = lane_axis(0)
    b: Array = lane_axis(0)


@dataclass
class AdaptiveState(TrackingState):
    """State of Algorithm 2: besides, the moment estimates B and V^ of D."""

    B: Array = lane_axis(1)
    V: Array = lane_axis(1)


@dataclass(frozen=True)
class CDFSG:
    """Algorithm 1: stochastic gradient method on (CDFCP) with a tracked p-by-p constraint value.

    The step sizes of a lane are constant, ``alpha = s2`` and ``b = s2 / s1`` (Section 5.1 of the paper).

    Attributes
    ----------
    beta : float
        Penalty parameter.
    """

    beta: float = 0.1
    name: ClassVar = "CDFSG"
    settings: ClassVar[tuple[str, ...]] = ("s1", "s2")
    streams: ClassVar = 2
    passes: ClassVar = 1
    start_from: ClassVar = "normal"
    joint: ClassVar = True

    def __post_init__(self) -> None:
        """Refuse a penalty parameter that is not positive."""
        require_positive(beta=self.beta)

    def check(self, problem: SampledProblem, views: Views, batch_size: int, p: int) -> None:
        """Any sampled problem will do."""

    def start(
        self, problem: SampledProblem, X0: Array, settings: Mapping[str, Array], first: Array
    ) -> TrackingState:
        """``D_0 = 0`` and ``Y_0 = C_theta0(X_0)`` on a minibatch of its own."""
        C = problem.constraint(problem.project(first, X0))
        alpha = settings["s2"]
        return TrackingState(
            X=X0, C=C, D=np.zeros_like(X0), Y=C.copy(), alpha=alpha, b=(alpha / settings["s1"])[:, None, None]
        )

    def step(self, problem: SampledProblem, state: TrackingState, draw: Draw, number: int) -> None:
        """One iteration of Algorithm 1, from k to k + 1; the minibatches are theta_{k+1} and xi_{k+1}."""
        before = problem.project(draw.rows[draw.theta], state.X)
        self._move(state)  # X_{k+1} = X_k - alpha_k D_k                                    (eq:updatexoa)
        P = problem.project(draw.rows, state.X)
        state.C = problem.constraint(P[draw.theta])
        track(state, problem.constraint(before))  # Y_{k+1}                                   (eq:updatey)
        self._direct(problem, state, draw, P)  # D_{k+1} = W(X_{k+1}, Y_{k+1})                (eq:updated)

    def steps(self, problem: SampledProblem, state: TrackingState, draws: Draws) -> Array:
        """The same iterations for consecutive minibatches, whose data serve one product the more at each point.

        The projections of X_{k+1} on theta_{k+2}, which the next iteration asks for, come with those on its own
        minibatches: a product with X costs little more for more rows.

        Returns
        -------
        array (s, lanes, p, p)
            ``state.C`` after each.
        """
        first = draws.rows[: draws.size][draws.theta]
        before, ahead = problem.project(first, state.X), len(first)
        values = []
        for part, draw in zip(draws.parts(), draws, strict=True):
            self._move(state)
            P = problem.project(draws.rows[part.start : part.stop + ahead], state.X)
            state.C = problem.constraint(P[: draws.size][draw.theta])
            track(state, problem.constraint(before))
            self._direct(problem, state, draw, P[: draws.size])
            before = P[draws.size :]
            values.append(state.C)
        return np.stack(values)

    def _move(self, state: TrackingState) -> None:
        flat, direction = _flat(state.X), _flat(state.D)
        direction *= _per_column(state.alpha, state.X)
        flat -= direction

    def _direct(self, problem: SampledProblem, state: TrackingState, draw: Draw, P: Array) -> None:
        state.D = sampled_direction(problem, draw, P, state.Y, self.beta, out=state.D)


@dataclass(frozen=True)
class CDFSGAda(CDFSG):
    """Algorithm 2: Algorithm 1 with Adam-type step sizes (with the maximum of AMSGrad, no bias correction).

    Attributes
    ----------
    eta1, eta2 : float
        Decay of the first and second moment estimates, in [0, 1).
    epsilon : float
        Added to the second moment under the root, positive.
    """

    eta1: float = 0.9
    eta2: float = 0.999
    epsilon: float = 1e-8
    name: ClassVar = "CDFSG-Ada"

    def __post_init__(self) -> None:
        """Refuse constants outside their ranges."""
        super().__post_init__()
        require_positive(epsilon=self.epsilon)
        require_share(eta1=self.eta1, eta2=self.eta2)

    def start(
        self, problem: SampledProblem, X0: Array, settings: Mapping[str, Array], first: Array
    ) -> AdaptiveState:
        """As Algorithm 1, with ``B_0 = 0`` and ``V^_0 = 0``."""
        base = super().start(problem, X0, settings, first)
        return AdaptiveState(**vars(base), B=np.zeros_like(X0), V=np.zeros_like(X0))

    def _move(self, state: TrackingState) -> None:
        """``X_{k+1} = X_k - alpha_k (eps + V^_k)^(-1/2) * B_k`` entrywise (eq:updatex)."""
        assert isinstance(state, AdaptiveState)
        alpha = _per_column(state.alpha, state.X)
        for X, B, V in _chunks(state.X, state.B, state.V):
            move = np.sqrt(V + self.epsilon)
            np.divide(B, move, out=move)
            move *= alpha
            X -= move

    def _direct(self, problem: SampledProblem, state: TrackingState, draw: Draw, P: Array) -> None:
        assert isinstance(state, AdaptiveState)
        super()._direct(problem, state, draw, P)
        for D, B, V in _chunks(state.D, state.B, state.V):
            square = D * D
            square *= 1 - self.eta2
            candidate = V * self.eta2
            candidate += square  # V_{k+1} = eta2 V^_k + (1 - eta2) D^2                        (eq:updatev)
            np.maximum(candidate, V, out=V)  # V^_{k+1} = max(V_{k+1}, V^_k)                  (eq:updateav)
            B *= self.eta1
            D *= 1 - self.eta1
            B += D  # B_{k+1} = eta1 B_k + (1 - eta1) D_{k+1}                                  (eq:updateb)


def track(state: TrackingState, C_before: Array) -> None:
    """``Y_{k+1} = Y_k - b_k (Y_k - C_theta(X_k)) + C_theta(X_{k+1}) - C_theta(X_k)`` (eq:updatey)."""
    state.Y = state.Y - state.b * (state.Y - C_before) + (state.C - C_before)


def sampled_direction(
    problem: SampledProblem, draw: Draw, P: Array, Y: Array, beta: float, out: Array | None = None
) -> Array:
    """``W_{xi,theta}(X, Y) = G_xi Q(Y)' + M_theta X T`` (eq:updated), shape (n, lanes, p).

    Parameters
    ----------
    problem : SampledProblem
    draw : Draw
    P : array (r, m, lanes, p)
        Projections of X on the rows of `draw`.
    Y : array (lanes, p, p)
        Tracked value of X'MX.
    beta : float
        Penalty parameter.
    out : array (n, lanes, p), optional
        Overwritten with the result.
    """
    P_theta, P_xi = P[draw.theta], P[draw.xi]
    Q = dissolving_factor(Y)
    R = problem.gradient_factor(_times(P_xi, Q))  # G_xi = grad f_xi(X Q) = lift(xi, R)
    XtG = lane_gram(stack_views(P_xi), stack_views(R))
    T = multiplier(XtG, Y, beta)
    of_xi = _times(R, np.swapaxes(Q, -1, -2))
    of_theta = _times(problem.constraint_factor(P_theta), T)
    factor = of_theta + of_xi if draw.theta == draw.xi else np.concatenate([of_theta, of_xi])
    return problem.lift(draw.rows, factor, out=out)


def _times(P: Array, small: Array) -> Array:
    """Projections (l, m, lanes, p) times a p-by-p matrix per lane."""
    return lane_product(stack_views(P), small).reshape(P.shape)


def _flat(a: Array) -> Array:
    return a.reshape(len(a), -1)


def _per_column(per_lane: Array, X: Array) -> Array:
    """A value per lane, repeated for each of its columns: shape (lanes * p,)."""
    return np.repeat(per_lane, X.shape[2])


def _chunks(*tall: Array) -> "zip[tuple[Array, ...]]":
    """The same blocks of rows of several tall arrays, small enough for the cache."""
    flats = [_flat(a) for a in tall]
    rows = max(1, _CHUNK // flats[0].shape[1])
    return zip(
        *([flat[k : k + rows] for k in range(0, len(flat), rows)] for flat in flats), strict=True
    )
