"""The paper's algorithms on a stream of minibatches: scaling, step sizes, averaging, and what happens on divergence.

The state is n-by-p (the iterate, its average, the direction, Adam's two moments), p-by-p (the tracker, the moments of
the projections) and a few vectors of n; none of it grows with the number of rows.
"""

from dataclasses import dataclass, field

import numpy as np

from cdfsg import metrics
from cdfsg.estimator import steps
from cdfsg.estimator.convention import Settled, moments_of, settle
from cdfsg.estimator.inputs import Block
from cdfsg.estimator.moments import Moments
from cdfsg.estimator.problem import Batch, StreamedGCCA, make_batch
from cdfsg.linalg import Array, lane_product, view_slices
from cdfsg.merits import Merit
from cdfsg.solvers.cdfsg import CDFSG, AdaptiveState, CDFSGAda, TrackingState
from cdfsg.solvers.draws import Draw

ALGORITHMS: dict[str, type[CDFSG]] = {"cdfsg-ada": CDFSGAda, "cdfsg": CDFSG}

WARM_UP = 10
"""Minibatches that the top eigenvalue of each view's covariance is estimated from."""
POWER_STEPS = 20
"""Power iterations per estimate; what is needed is the eigenvalue to some ten per cent."""
GROWTH = 1.1
"""Factor by which a column's largest deviation, or a view's top eigenvalue, must change for new coordinates."""
AVERAGING = 3
"""Degree of the average of the iterates: weights grow like its power of the row count, so that the start fades."""
WINDOW = 10_000
"""Rows that the moments of the projections are averaged over."""
ESCAPED = 10.0
"""Eigenvalue of the tracked X'MX, 1 at a feasible point, beyond which a run counts as diverged."""
RANK_RTOL = 1e-13
"""Relative eigenvalue below which the projections of the start count as linearly dependent."""
HALVINGS = 20
"""Restarts after which the fit gives up."""


class Diverged(ValueError):
    """The fit diverged however short its steps were."""


@dataclass(frozen=True)
class Plan:
    """What the estimator's parameters come to.

    Attributes
    ----------
    sizes : tuple of int
        Widths of the views.
    p : int
        Columns.
    merit : Merit
    algorithm : {"cdfsg-ada", "cdfsg"}
    batch_size : int
        Nominal rows of a minibatch.
    beta, step_size, tracking : float
        Penalty parameter; multiple of the default step; step b of the tracker.
    centred : bool
        Whether the running mean is subtracted.
    dtype : dtype
    seed : int
        Of the initial point.
    """

    sizes: tuple[int, ...]
    p: int
    merit: Merit
    algorithm: str
    batch_size: int
    beta: float
    step_size: float
    tracking: float
    centred: bool
    dtype: np.dtype[np.floating]
    seed: int


@dataclass
class Restart:
    """A divergence and what was done about it."""

    rows: int
    why: str
    step_size: float


@dataclass
class Learner:
    """A fit in progress; pickled and read again it goes on with the same numbers."""

    plan: Plan
    moments: Moments = field(init=False)
    deviation: Array = field(init=False)
    top: Array = field(init=False)
    state: TrackingState | None = None
    average: Array | None = None
    averaged: float = 0.0
    steps_made: float = 0.0
    K: Array | None = None
    measured: float = 0.0
    restarts: list[Restart] = field(default_factory=list)
    _shares: list[Array] = field(default_factory=list)
    _weight: float = 1.0

    def __post_init__(self) -> None:
        n = sum(self.plan.sizes)
        self.moments = Moments.of_nothing(n)
        self.deviation = np.zeros(n)
        self.top = np.ones(len(self.plan.sizes))
        self.slices = view_slices(self.plan.sizes)
        self.problem = StreamedGCCA(self.plan.sizes, self.plan.merit)
        self.solver = ALGORITHMS[self.plan.algorithm](beta=self.plan.beta)
        self.rng = np.random.default_rng(self.plan.seed)

    # --- one minibatch -----------------------------------------------------------------------------------

    def advance(self, blocks: list[Block]) -> None:
        """Take in one minibatch, one block (l, n_i) per view.

        Raises
        ------
        ValueError
            If the first minibatch cannot start a fit.
        Diverged
            If every restart diverged.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            self.moments.update(blocks)
        self._require_squares(blocks[0].dtype)
        self._follow_deviations()
        batch = self.batch_of(blocks)
        if len(self._shares) < WARM_UP:
            self._estimate_top(batch)
            batch = self.batch_of(blocks)
        if self.state is None:
            self._start(batch)
        self._measure(batch)
        self._step(batch)

    def _require_squares(self, dtype: np.dtype[np.floating]) -> None:
        """Refuse columns whose deviations are too large or too small for their squares to be numbers of the type."""
        seen = np.maximum(self.moments.high - self.moments.mean, self.moments.mean - self.moments.low)
        least = float(np.finfo(dtype).tiny) ** 0.5
        for i, view in enumerate(self.slices):
            largest = float(seen[view].max())
            if not np.isfinite(self.moments.squares[view]).all() or 0 < largest < least:
                raise ValueError(
                    f"view {i} has deviations from the mean of up to {largest:.3g}, whose squares {dtype} cannot hold: "
                    "expected values nearer to 1; divide the view by a number, such as its largest deviation"
                )

    def batch_of(self, blocks: list[Block]) -> Batch:
        """The rows in the coordinates of the iterate."""
        return make_batch(blocks, self.mean, self.scale)

    @property
    def mean(self) -> Array:
        """What is subtracted from a row, shape (n,)."""
        return self.moments.mean if self.plan.centred else np.zeros_like(self.moments.mean)

    @property
    def scale(self) -> Array:
        """What a column is divided by, shape (n,): its largest deviation times its view's root of the top eigenvalue.

        The largest deviation, and not the standard deviation: a column that is nearly always zero would be blown up
        by the latter, and its few other rows would throw the iterate away.
        """
        roots = np.repeat(np.sqrt(self.top), self.plan.sizes)
        scale: Array = np.where(self.deviation > 0, self.deviation, 1.0) * roots
        return scale

    @property
    def weights(self) -> Array:
        """The averaged iterate in the units of the data, shape (n, p), float64."""
        assert self.average is not None
        weights: Array = self.average[:, 0].astype(np.float64) / self.scale[:, None]
        return weights

    def project(self, blocks: list[Block]) -> Array:
        """Projections (l, m, p) of rows on the averaged iterate."""
        assert self.average is not None
        return self.problem.project(self.batch_of(blocks), self.average)[:, :, 0]

    def settled(self, K: Array | None = None) -> Settled:
        """The weights in the stated convention, by the given moments of their projections or by the running ones."""
        K = self.K if K is None else K
        assert K is not None
        return settle(self.weights, self.slices, K, self.plan.merit)

    # --- coordinates -------------------------------------------------------------------------------------

    def _follow_deviations(self) -> None:
        """Let a column's scale grow with the largest deviation from the mean that was seen in it."""
        moments, mean = self.moments, self.mean
        seen = np.maximum(moments.high - mean, mean - moments.low)
        grown = seen > GROWTH * self.deviation
        if grown.any():
            self._change(np.where(grown, seen, self.deviation), self.top)
        self._change(self.deviation, self._tops())

    def _tops(self) -> Array:
        """Top eigenvalue of each view, whose columns have deviation 1: its share of the trace times the trace."""
        if not self._shares:
            return self.top
        tops = np.mean(self._shares, axis=0) * self._traces(np.ones_like(self.top))
        changed = np.maximum(tops / self.top, self.top / tops) > GROWTH
        return np.where(changed, tops, self.top)

    def _traces(self, tops: Array) -> Array:
        """Trace of every view's second moment with the given top eigenvalues in the coordinates, shape (m,)."""
        second = self.moments.variance + (0 if self.plan.centred else self.moments.mean**2)
        shares = second / np.where(self.deviation > 0, self.deviation, 1.0) ** 2
        return np.array([shares[view].sum() for view in self.slices]) / tops

    def _change(self, deviation: Array, top: Array) -> None:
        """Go over to other coordinates; iterate and average stay the same weights of the data."""
        before = self.scale
        self.deviation, self.top = deviation, top
        ratio: Array = (self.scale / before)[:, None, None].astype(self.plan.dtype)
        if self.state is None or (ratio == 1).all():
            return
        assert self.average is not None
        self.average *= ratio
        self.state.X *= ratio
        self.state.D /= ratio
        if isinstance(self.state, AdaptiveState):
            self.state.B /= ratio
            self.state.V /= ratio**2

    def _estimate_top(self, batch: Batch) -> None:
        """Take a minibatch into the estimate of each view's top eigenvalue as a share of its trace."""
        traces = self._traces(self.top)
        if not traces.min() > 0:
            raise ValueError(
                f"view {int(traces.argmin())} is constant in the first {self.moments.rows} rows, so there is nothing "
                "to correlate; give more rows in the first call, shuffle them, or drop the view"
            )
        v: Array = self.rng.uniform(0.5, 1.5, size=(sum(self.plan.sizes), 1, 1)).astype(self.plan.dtype)
        values = np.zeros(len(self.slices))
        for _ in range(POWER_STEPS):
            v = self.problem.lift(batch, self.problem.project(batch, v) / len(batch))
            for i, view in enumerate(self.slices):
                values[i] = np.linalg.norm(v[view])
                v[view] /= max(values[i], np.finfo(v.dtype).tiny)
        self._shares.append(np.clip(values / traces, 1e-12, 1.0))
        self._change(self.deviation, self._tops())

    # --- steps -------------------------------------------------------------------------------------------

    def _start(self, batch: Batch) -> None:
        """Begin in a random combination of the rows: it has no part where they have none, as in constant columns."""
        p, m = self.plan.p, len(self.slices)
        if len(batch) <= p:
            raise ValueError(
                f"the first minibatch has {len(batch)} row{'s' * (len(batch) != 1)} (n_samples = {len(batch)}): "
                f"expected more than n_components = {p} to start from; give more rows in the first call, or raise "
                "batch_size"
            )
        # In double precision: the combinations lean towards the leading directions, hence towards each other.
        R = self.rng.standard_normal((len(batch), 1, 1, p))
        X = self.problem.lift(batch, np.repeat(R, m, axis=1))
        C = self.problem.constraint(self.problem.project(batch, X))
        values = np.linalg.eigvalsh(C[0])
        if not values[0] > RANK_RTOL * values[-1]:
            raise ValueError(
                f"the first {len(batch)} rows span fewer than n_components = {p} directions, so no orthonormal start "
                "exists; ask for fewer components, or give more rows in the first call"
            )
        self._begin(batch, lane_product(X, metrics.orthogonalise(C)[0]).astype(self.plan.dtype))

    def _begin(self, batch: Batch, X: Array) -> None:
        """Start the algorithm in X, which is feasible; what is known of its moments is kept."""
        one = np.ones(1, dtype=self.plan.dtype)
        state = self.solver.start(self.problem, X, {"s2": one, "s1": one / self.plan.tracking}, batch)  # type: ignore[arg-type]
        state.C = np.eye(self.plan.p, dtype=self.plan.dtype)[None]
        state.Y = state.C.copy()
        self.state, self.average, self.averaged = state, X.copy(), 0.0

    def _step(self, batch: Batch) -> None:
        """One iteration of the algorithm, both of its samples the same minibatch."""
        assert self.state is not None
        self.state.alpha[:] = self._alpha()
        draw = Draw(batch, slice(None), slice(None))  # type: ignore[arg-type]
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            self.solver.step(self.problem, self.state, draw, 0)
        weight = min(1.0, len(batch) / self.plan.batch_size)
        self._weight = weight  # of the direction that the next step goes along
        self.steps_made += weight
        why = self._what_is_wrong()
        if why:
            self._restart(batch, why)
            return
        self.averaged += len(batch)
        assert self.average is not None
        self.average += _share(len(batch), self.averaged) * (self.state.X - self.average)

    def _alpha(self) -> float:
        plan = self.plan
        if plan.algorithm == "cdfsg":
            first = steps.gradient_step(plan.merit, len(plan.sizes), plan.beta)
        else:
            first = steps.adaptive_step(float(self._traces(self.top).sum()), int((self.deviation > 0).sum()))
        return plan.step_size * 0.5 ** len(self.restarts) * first * steps.decay(self.steps_made) * self._weight

    def _what_is_wrong(self) -> str:
        """In words why the iterate is useless; empty if it is not."""
        assert self.state is not None
        Y = self.state.Y[0]
        if not (np.isfinite(Y).all() and np.isfinite(self.state.C).all() and np.isfinite(self.state.D).all()):
            return "the iterate is not finite any more"
        values = np.linalg.eigvalsh(Y.astype(np.float64))
        if values[0] <= 0:
            return f"the tracked X'MX lost positive definiteness (smallest eigenvalue {values[0]:.2g})"
        if values[-1] > ESCAPED:
            return f"the iterate left the neighbourhood of X'MX = I (largest eigenvalue {values[-1]:.2g})"
        return ""

    def _restart(self, batch: Batch, why: str) -> None:
        """Go on from the average of the iterates, made feasible, with half the step size."""
        step_size = self.plan.step_size * 0.5 ** (len(self.restarts) + 1)
        self.restarts.append(Restart(self.moments.rows, why, step_size))
        if len(self.restarts) > HALVINGS:
            raise Diverged(
                f"{why}, after {HALVINGS} restarts, each with half the step size of the one before; the data may hold "
                "rows that are larger than the others by orders of magnitude: look at their largest values, or raise "
                f"batch_size={self.plan.batch_size}"
            )
        assert self.average is not None and self.K is not None
        N, defined = metrics.orthogonalise(metrics.constraint(self.K[:, :, None]))
        if defined[0] and np.isfinite(self.average).all():
            self._begin(batch, lane_product(self.average, N.astype(self.plan.dtype)))
            self.K = metrics.transform(self.K[:, :, None], N)[:, :, 0]
        elif len(batch) > self.plan.p:
            self.K, self.measured = None, 0.0
            self._start(batch)

    def _measure(self, batch: Batch) -> None:
        """Take the projections of a minibatch, before it moves the iterate, into their running moments."""
        assert self.average is not None
        K = moments_of(self.problem.project(batch, self.average)[:, :, 0])
        self.measured += len(batch)
        share = max(_share(len(batch), self.measured), len(batch) / max(WINDOW, len(batch)))
        self.K = K if self.K is None else self.K + share * (K - self.K)


def _share(rows: int, total: float) -> float:
    """Share of the latest `rows` of `total` in an average with weights like the power `AVERAGING` of the count."""
    return (AVERAGING + 1) * rows / (total + AVERAGING * rows)
