"""The paper's algorithms on a stream of minibatches: scaling, step sizes, averaging, and restarts on divergence."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from cdfsg import metrics
from cdfsg.estimator import steps
from cdfsg.estimator.convention import Solution, moments_of, normalise, require_finite_moments
from cdfsg.estimator.inputs import MEASURED_ROWS, Source, Stream, ViewRows
from cdfsg.estimator.moments import Moments
from cdfsg.estimator.problem import Samples, StreamedGCCA, centre_and_scale
from cdfsg.linalg import Array, view_slices
from cdfsg.merits import Merit
from cdfsg.solvers.cdfsg import CDFSG, AdaptiveState, CDFSGAda, TrackingState

ALGORITHMS: dict[str, type[CDFSG]] = {"cdfsg-ada": CDFSGAda, "cdfsg": CDFSG}

WARM_UP = 10  # minibatches that the top eigenvalue of each view's covariance is estimated from
POWER_STEPS = 20  # power iterations per estimate; the eigenvalue is needed to some ten per cent
GROWTH = 1.1  # by which a column's largest deviation, or a view's top eigenvalue, must change for new coordinates
AVERAGING = 3  # the weights of the averaged iterates grow like this power of the row count, so that the start fades
WINDOW = 10_000  # rows that the moments of the projections are averaged over
ESCAPED = 10.0  # eigenvalue of the tracked X'MX, 1 at a feasible point, beyond which a run counts as diverged
RANK_RTOL = 1e-13  # relative eigenvalue below which the projections of the start count as linearly dependent
HALVINGS = 20  # restarts after which the fit gives up
NO_ROWS = "the iterator gave no rows; if it was read before, make a new one"


@dataclass(frozen=True)
class Config:
    """The estimator's parameters, with the defaults filled in."""

    sizes: tuple[int, ...]
    n_components: int
    merit: Merit
    algorithm: str
    batch_size: int
    beta: float
    step_size: float
    tracking: float
    center: bool
    dtype: np.dtype[np.floating]
    seed: int


@dataclass
class Restart:
    """A divergence: after how many rows, why, and the multiple of the default step from there."""

    rows: int
    why: str
    step_size: float


class OnlineSolver:
    """A fit in progress; pickled and read again it goes on with the same numbers.

    It computes in coordinates in which a column is divided by its largest `deviation` from the mean, and by the root of
    `top`, the largest eigenvalue of its view's covariance after that.  The standard deviation would blow up a column
    that is nearly always zero, and its few other rows would throw the iterate away.
    """

    state: TrackingState
    average: Array
    K: Array

    def __init__(self, config: Config) -> None:
        self.config, n = config, sum(config.sizes)
        self.problem = StreamedGCCA(config.sizes, config.merit)
        self.solver = ALGORITHMS[config.algorithm](beta=config.beta)
        self.rng = np.random.default_rng(config.seed)
        self.slices = view_slices(config.sizes)
        self.moments, self.deviation, self.top = Moments(n), np.zeros(n), np.ones(len(config.sizes))
        self.restarts: list[Restart] = []
        self._shares: list[Array] = []
        self._averaged = self._steps_made = self._measured = 0.0
        self._weight = 1.0

    def advance(self, blocks: list[ViewRows]) -> None:
        """Take in one minibatch, one block (l, n_i) per view; ValueError if every restart diverged."""
        with np.errstate(over="ignore", invalid="ignore"):
            self.moments.update(blocks)
        self._require_squares(blocks[0].dtype)
        self._follow_deviations()
        if len(self._shares) < WARM_UP:
            self._estimate_top(self._samples(blocks))
        samples = self._samples(blocks)
        if not hasattr(self, "state"):
            self._start(samples)
        self._measure(samples)
        self._step(samples)

    @property
    def step_size(self) -> float:
        return self.config.step_size * 0.5 ** len(self.restarts)

    @property
    def mean(self) -> Array:
        """What is subtracted from a row, shape (n,)."""
        return self.moments.mean if self.config.center else np.zeros_like(self.moments.mean)

    @property
    def scale(self) -> Array:
        """What columns are divided by, shape (n,)."""
        return np.where(self.deviation > 0, self.deviation, 1.0) * np.repeat(np.sqrt(self.top), self.config.sizes)

    def solution(self, K: Array | None = None) -> Solution:
        """The averaged iterate in the convention, by the given moments of its projections or the running ones."""
        weights = self.average[0].astype(np.float64) / self.scale[:, None]
        return normalise(weights, self.slices, self.K if K is None else K, self.config.merit)

    def solution_on(self, data: Source | Stream) -> Solution:
        """The averaged iterate in the convention that holds over all rows of the data."""
        rows, K = 0, np.zeros(())
        for blocks in data.batches(MEASURED_ROWS):
            size = blocks[0].shape[0]
            rows, K = rows + size, K + self._moments(self._samples(blocks)) * size
        if not rows:
            raise ValueError(NO_ROWS)
        require_finite_moments(K)
        solution = self.solution(K / rows)
        spanned, p = int((np.einsum("iipp->p", solution.K) > 0.5).sum()), self.config.n_components
        if spanned < p:
            raise ValueError(
                f"the rows of every view span at most {spanned} directions, so that n_components={p} projections "
                f"cannot be made orthonormal: expected at most {spanned}; ask for fewer, or give more rows"
            )
        return solution

    def require_unchanged(self, parameters: Mapping[str, Any]) -> None:
        """Raise ValueError if the estimator has other parameters now that a fit in progress cannot follow."""
        config = self.config
        begun = {"n_components": config.n_components, "merit": config.merit.name, "algorithm": config.algorithm}
        for name, value in begun.items():
            if parameters[name] != value:
                raise ValueError(
                    f"{name}={parameters[name]!r}, but the fit began with {value!r}: expected no change; begin a new "
                    "fit with fit, or with partial_fit of a clone"
                )

    def _samples(self, blocks: list[ViewRows]) -> Samples:
        return centre_and_scale(blocks, self.mean, self.scale)

    def _require_squares(self, dtype: np.dtype[np.floating]) -> None:
        seen = self.moments.largest_deviation(self.moments.mean)
        least = float(np.finfo(dtype).tiny) ** 0.5
        for i, view in enumerate(self.slices):
            largest = float(seen[view].max())
            if not np.isfinite(self.moments.squares[view]).all() or 0 < largest < least:
                raise ValueError(
                    f"view {i} has deviations from the mean of up to {largest:.3g}, whose squares {dtype} cannot hold: "
                    "expected values nearer to 1; divide the view by a number, such as its largest deviation"
                )

    def _follow_deviations(self) -> None:
        """Let a column's scale grow with the largest deviation from the mean that was seen in it."""
        seen = self.moments.largest_deviation(self.mean)
        grown = seen > GROWTH * self.deviation
        if grown.any():
            self._change(np.where(grown, seen, self.deviation), self.top)
        self._change(self.deviation, self._tops())

    def _tops(self) -> Array:
        """Top eigenvalue of each view when its columns have deviation 1: its share of the trace times the trace."""
        if not self._shares:
            return self.top
        tops = np.mean(self._shares, axis=0) * self._traces(np.ones_like(self.top))
        changed = np.maximum(tops / self.top, self.top / tops) > GROWTH
        return np.where(changed, tops, self.top)

    def _traces(self, tops: Array) -> Array:
        """Trace of every view's second moment with the given top eigenvalues in the coordinates, shape (m,)."""
        second = self.moments.variance + (0 if self.config.center else self.moments.mean**2)
        shares = second / np.where(self.deviation > 0, self.deviation, 1.0) ** 2
        return np.array([shares[view].sum() for view in self.slices]) / tops

    def _change(self, deviation: Array, top: Array) -> None:
        """Change the coordinates; iterate and average stay the same weights of the data."""
        before = self.scale
        self.deviation, self.top = deviation, top
        ratio = (self.scale / before)[:, None].astype(self.config.dtype)
        if hasattr(self, "state") and (ratio != 1).any():
            self.average *= ratio
            self.state.X *= ratio
            self.state.D /= ratio
            if isinstance(self.state, AdaptiveState):
                self.state.B /= ratio
                self.state.V /= ratio**2

    def _estimate_top(self, samples: Samples) -> None:
        """Take a minibatch into the estimate of each view's top eigenvalue as a share of its trace."""
        traces = self._traces(self.top)
        if not traces.min() > 0:
            raise ValueError(
                f"view {int(traces.argmin())} is constant in the first {self.moments.rows} rows, so there is nothing "
                "to correlate; give more rows in the first call, shuffle them, or drop the view"
            )
        v = self.rng.uniform(0.5, 1.5, size=(1, sum(self.config.sizes), 1)).astype(self.config.dtype)
        values = np.zeros(len(self.slices))
        for _ in range(POWER_STEPS):
            v = self.problem.adjoint(samples, self.problem.scores(samples, v) / samples[0][0].shape[0])
            for i, view in enumerate(self.slices):
                values[i] = np.linalg.norm(v[:, view])
                v[:, view] /= max(values[i], np.finfo(v.dtype).tiny)
        self._shares.append(np.clip(values / traces, 1e-12, 1.0))
        self._change(self.deviation, self._tops())

    def _start(self, samples: Samples) -> None:
        """Begin in a random combination of the rows: it has no part where they have none, as in constant columns."""
        p, size = self.config.n_components, samples[0][0].shape[0]
        if size <= p:
            raise ValueError(
                f"the first minibatch has {size} row{'s' * (size != 1)} (n_samples = {size}): expected more than "
                f"n_components = {p} to start from; give more rows in the first call, or raise batch_size"
            )
        # In double precision: the combinations lean towards the leading directions, hence towards each other.
        R = np.repeat(self.rng.standard_normal((1, 1, size, p)), len(self.slices), axis=2)
        X = self.problem.adjoint(samples, R)
        C = self.problem.constraint(self.problem.scores(samples, X)[0])
        values = np.linalg.eigvalsh(C[0])
        if not values[0] > RANK_RTOL * values[-1]:
            raise ValueError(
                f"the first {size} rows span fewer than n_components = {p} directions, so no orthonormal start "
                "exists; ask for fewer components, or give more rows in the first call"
            )
        self._begin(samples, X @ metrics.orthogonalise(C)[0])

    def _begin(self, samples: Samples, X: Array) -> None:
        """Start the algorithm in a feasible X; what is known of its moments is kept."""
        X = X.astype(self.config.dtype)
        one = np.ones((1, 1, X.shape[2]), dtype=X.dtype)
        self.state = self.solver.start(self.problem, X, {"s2": one, "s1": one / self.config.tracking}, samples)
        self.state.C = self.state.Y = np.eye(X.shape[2], dtype=X.dtype)[None]
        self.average, self._averaged = X.copy(), 0.0

    def _step(self, samples: Samples) -> None:
        size = samples[0][0].shape[0]
        self.state.alpha[:] = self._alpha()
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            self.solver.step(self.problem, self.state, samples)
        self._weight = min(1.0, size / self.config.batch_size)  # of the direction that the next step goes along
        self._steps_made += self._weight
        why = self._reason_to_restart()
        if why:
            self._restart(samples, why)
            return
        self._averaged += size
        self.average += _share(size, self._averaged) * (self.state.X - self.average)

    def _alpha(self) -> float:
        config = self.config
        if config.algorithm == "cdfsg":
            first = steps.gradient_step(config.merit, len(config.sizes), config.beta)
        else:
            first = steps.adaptive_step(float(self._traces(self.top).sum()), int((self.deviation > 0).sum()))
        return self.step_size * first * steps.decay(self._steps_made) * self._weight

    def _reason_to_restart(self) -> str:
        Y = self.state.Y[0]
        if not all(np.isfinite(values).all() for values in (Y, self.state.C, self.state.D)):
            return "the iterate is not finite any more"
        values = np.linalg.eigvalsh(Y.astype(np.float64))
        if values[0] <= 0:
            return f"the tracked X'MX lost positive definiteness (smallest eigenvalue {values[0]:.2g})"
        if values[-1] > ESCAPED:
            return f"the iterate left the neighbourhood of X'MX = I (largest eigenvalue {values[-1]:.2g})"
        return ""

    def _restart(self, samples: Samples, why: str) -> None:
        """Go on from the average of the iterates, made feasible, with half the step size."""
        rows = self.moments.rows
        self.restarts.append(Restart(rows, why, self.step_size * 0.5))
        if len(self.restarts) > HALVINGS:
            raise ValueError(
                f"{why}, after {HALVINGS} restarts, each with half the step size of the one before; the data may hold "
                "rows that are larger than the others by orders of magnitude: look at their largest values, or raise "
                f"batch_size={self.config.batch_size}"
            )
        N, defined = metrics.orthogonalise(metrics.constraint(self.K[:, :, None]))
        if defined[0] and np.isfinite(self.average).all():
            self._begin(samples, self.average @ N.astype(self.config.dtype))
            self.K = metrics.congruence(self.K[:, :, None], N)[:, :, 0]
        elif samples[0][0].shape[0] > self.config.n_components:
            self._start(samples)
            self.K, self._measured = self._moments(samples), 0.0  # those of the next minibatch replace them
        warnings.warn(
            f"{why} after {rows:,} rows; the fit goes on from the average of its iterates with "
            f"step_size={self.step_size:g}. If this comes again and again, raise batch_size "
            f"(now {self.config.batch_size}) or begin with that step_size",
            ConvergenceWarning,
            stacklevel=7,  # the call of fit
        )

    def _measure(self, samples: Samples) -> None:
        """Take the projections of a minibatch, before it moves the iterate, into their running moments."""
        K, first, size = self._moments(samples), not self._measured, samples[0][0].shape[0]
        self._measured += size
        share = max(_share(size, self._measured), size / max(WINDOW, size))
        self.K = K if first else self.K + share * (K - self.K)

    def _moments(self, samples: Samples) -> Array:
        P = self.problem.scores(samples, self.average)
        return moments_of(P.reshape(-1, len(self.slices), P.shape[-1]))


def _share(rows: int, total: float) -> float:
    """Share of the latest `rows` in the average of `total`."""
    return (AVERAGING + 1) * rows / (total + AVERAGING * rows)
