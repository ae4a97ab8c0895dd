"""The paper's algorithms on a stream: scaling, step sizes, averaging, restarts."""

import warnings
from dataclasses import InitVar, dataclass, field

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from cdfsg import metrics
from cdfsg.convention import Solution, moments_of, normalise, with_ridge
from cdfsg.estimator import steps
from cdfsg.linalg import Array
from cdfsg.merits import Merit
from cdfsg.solvers.cdfsg import CDFSG, AdaptiveState, CDFSGAda, TrackingState
from cdfsg.streamed import Moments, Samples, StreamedGCCA, ViewRows, centre_and_scale

ALGORITHMS: dict[str, type[CDFSG]] = {"cdfsg-ada": CDFSGAda, "cdfsg": CDFSG}

WARM_UP = 10  # minibatches from which each view's top eigenvalue is estimated
POWER_STEPS = 20  # power iterations per estimate, which is needed to some ten per cent
CLIP = 30.0  # standard deviations that the unit of a column is at most
GROWTH = 1.1  # change of a largest deviation or a top eigenvalue that asks for new coordinates
AVERAGING = 3  # the weights of averaged iterates grow like this power of the row count
WINDOW = 10_000  # rows over which the moments of the projections are averaged
ESCAPED = 10.0  # eigenvalue of the tracked X'MX, 1 at a feasible point, at which a run has diverged
RANK_RTOL = 1e-13  # relative eigenvalue at which the projections of the start are linearly dependent
HALVINGS = 20  # restarts after which the fit gives up


@dataclass
class Restart:
    """A divergence, with the multiple of the default step from there."""

    rows: int
    why: str
    step_size: float


@dataclass(eq=False)
class OnlineSolver:
    """A fit in progress; a pickled one goes on with the same numbers.

    In its coordinates a column is divided by its `deviation`, the largest from the mean, but at most `CLIP` standard
    deviations, and by the root of `top`, the largest eigenvalue of its view's covariance after that.  The standard
    deviation would blow up a column that is nearly always zero, and its few other rows would throw the iterate away.
    """

    sizes: tuple[int, ...]
    dtype: np.dtype[np.floating]
    merit: Merit
    ridge: Array  # added to the diagonal of M, shape (n,)
    penalty: float
    batch_size: int
    seed: InitVar[int]
    algorithm: str
    n_components: int
    tracking: float
    center: bool
    step_size: float  # multiple of the default step, halved by each restart
    state: TrackingState = field(init=False)  # from the first minibatch on
    average: Array = field(init=False)

    def __post_init__(self, seed: int) -> None:
        self.problem = StreamedGCCA(self.sizes, self.merit)
        self.solver = ALGORITHMS[self.algorithm](beta=self.penalty)
        self.rng = np.random.default_rng(seed)
        n, m, p = sum(self.sizes), len(self.sizes), self.n_components
        self.moments, self.deviation, self.top = Moments(n), np.zeros(n), np.ones(m)
        self.K = np.zeros((m, m, p, p))  # of the projections
        self.restarts: list[Restart] = []
        self._shares: list[Array] = []
        self._averaged = self._steps_made = self._measured = 0.0
        self._weight = 1.0

    @property
    def slices(self) -> tuple[slice, ...]:
        return self.problem.slices

    @property
    def mean(self) -> Array:
        """What is subtracted from a row, shape (n,)."""
        return self.moments.mean if self.center else np.zeros_like(self.moments.mean)

    @property
    def scale(self) -> Array:
        """What columns are divided by, shape (n,)."""
        return np.where(self.deviation > 0, self.deviation, 1.0) * np.repeat(np.sqrt(self.top), self.sizes)

    def advance(self, blocks: list[ViewRows]) -> None:
        """Take in a minibatch, one block (l, n_i) per view; ValueError after the last restart."""
        with np.errstate(over="ignore", invalid="ignore"):
            self.moments.update(blocks)
        self.moments.require_squares(self.slices, blocks[0].dtype)
        self._follow_deviations()
        if len(self._shares) < WARM_UP:
            self._estimate_top(self.samples(blocks))
        samples = self.samples(blocks)
        if hasattr(self, "state") or self._start(samples):
            self._measure(samples)
            self._step(samples)

    @property
    def weights(self) -> Array:
        """The averaged iterate in the units of the data, shape (n, p)."""
        return self.average[0].astype(np.float64) / self.scale[:, None]

    def solution(self) -> Solution:
        """The averaged iterate in the convention, by the running moments of its projections."""
        return normalise(self.weights, self.slices, self.K, self.merit, self.ridge)

    def samples(self, blocks: list[ViewRows]) -> Samples:
        if self.ridge.any():
            self.problem.ridge = (self.ridge / self.scale**2).astype(self.dtype)
        return centre_and_scale(blocks, self.mean, self.scale)

    def _follow_deviations(self) -> None:
        """Let a column's scale grow with its largest deviation from the mean."""
        spread = np.sqrt(self.moments.variance + (self.moments.mean - self.mean) ** 2)
        seen = np.minimum(self.moments.largest_deviation(self.mean), CLIP * spread)
        grown = seen > GROWTH * self.deviation
        if grown.any():
            self._change(np.where(grown, seen, self.deviation), self.top)
        self._change(self.deviation, self._tops())

    def _tops(self) -> Array:
        """Top eigenvalue of each view in columns of deviation 1: a share of the trace, times it."""
        if not self._shares:
            return self.top
        tops = np.mean(self._shares, axis=0) * self._traces()
        tops = np.where(tops > 0, tops, self.top)  # a view may be constant so far
        changed = np.maximum(tops / self.top, self.top / tops) > GROWTH
        return np.where(changed, tops, self.top)

    def _traces(self) -> Array:
        """Trace of each view's second moment in columns of deviation 1, shape (m,)."""
        second = self.moments.variance + (0 if self.center else self.moments.mean**2) + self.ridge
        shares = second / np.where(self.deviation > 0, self.deviation, 1.0) ** 2
        return np.array([shares[view].sum() for view in self.slices])

    def _change(self, deviation: Array, top: Array) -> None:
        """Change the coordinates, but not the weights of the data."""
        before = self.scale
        self.deviation, self.top = deviation, top
        ratio = (self.scale / before)[:, None].astype(self.dtype)
        if hasattr(self, "state") and (ratio != 1).any():
            self.average *= ratio
            self.state.X *= ratio
            self.state.D /= ratio
            if isinstance(self.state, AdaptiveState):
                self.state.B /= ratio
                self.state.V /= ratio**2

    def _estimate_top(self, samples: Samples) -> None:
        """Take a minibatch into the estimate of each view's top eigenvalue."""
        traces = self._traces() / self.top
        v = self.rng.uniform(0.5, 1.5, size=(1, sum(self.sizes), 1)).astype(self.dtype)
        values = np.zeros(len(self.slices))
        for _ in range(POWER_STEPS):
            v = self.problem.adjoint(samples, self.problem.scores(samples, v) / samples[0][0].shape[0])
            for i, part in enumerate(self.slices):
                values[i] = np.linalg.norm(v[:, part])
                v[:, part] /= max(values[i], np.finfo(v.dtype).tiny)
        shares = np.divide(values, traces, out=np.ones_like(traces), where=traces > 0)
        self._shares.append(np.clip(shares, 1 / np.array(self.sizes), 1.0))
        self._change(self.deviation, self._tops())

    def require_begun(self) -> None:
        """Raise ValueError unless some minibatch was enough for a start."""
        if not hasattr(self, "state"):
            rows, p = self.batch_size, self.n_components
            raise ValueError(f"no minibatch of {rows} rows spans n_components={p} directions: raise batch_size")

    def _start(self, samples: Samples) -> bool:
        """Begin in a random combination of the rows, which has no part in constant columns, if they span enough."""
        p, size = self.n_components, samples[0][0].shape[0]
        if size <= p:
            raise ValueError(f"the first minibatch has {size} row(s): expected more than n_components = {p}")
        # In double precision: the combinations lean towards the leading directions, and each other.
        R = np.repeat(self.rng.standard_normal((1, 1, size, p)), len(self.slices), axis=2)
        X = self.problem.adjoint(samples, R)
        C = self.problem.constraint(self.problem.scores(samples, X)[0])
        values = np.linalg.eigvalsh(C[0])
        if not values[0] > RANK_RTOL * values[-1]:
            return False
        self._begin(samples, X @ metrics.orthogonalise(C)[0])
        return True

    def _begin(self, samples: Samples, X: Array) -> None:
        """Start the algorithm in a feasible X."""
        X = X.astype(self.dtype)
        one = np.ones((1, 1, X.shape[2]), dtype=X.dtype)
        self.state = self.solver.start(self.problem, X, {"s2": one, "s1": one / self.tracking}, samples)
        self.state.C = self.state.Y = np.eye(X.shape[2], dtype=X.dtype)[None]
        self.average, self._averaged = X.copy(), 0.0

    def _step(self, samples: Samples) -> None:
        size = samples[0][0].shape[0]
        self.state.alpha[:] = self._alpha()
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            self.solver.step(self.problem, self.state, samples)
        self._weight = min(1.0, size / self.batch_size)  # of the direction that the next step goes along
        self._steps_made += self._weight
        if why := _reason_to_restart(self.state):
            self._restart(samples, why)
            return
        self._averaged += size
        self.average += _share(size, self._averaged) * (self.state.X - self.average)

    def _alpha(self) -> float:
        if self.algorithm == "cdfsg":
            first = steps.gradient_step(self.merit, len(self.sizes), self.penalty)
        else:
            first = steps.adaptive_step((self._traces() / self.top).sum(), (self.deviation > 0).sum())
        decay = (1 + self._steps_made / steps.DECAY_STEPS) ** -0.5
        return self.step_size * first * decay * self._weight

    def _restart(self, samples: Samples, why: str) -> None:
        """Go on from the average of the iterates, made feasible, with half the step size."""
        rows = self.moments.rows
        self.step_size /= 2
        self.restarts.append(Restart(rows, why, self.step_size))
        if len(self.restarts) > HALVINGS:
            raise ValueError(f"{why}, after {HALVINGS} restarts, each with half the step: look for huge values")
        K = with_ridge(self.K, self.weights, self.slices, self.ridge)
        N, defined = metrics.orthogonalise(metrics.constraint(K[:, :, None]))
        if defined[0] and np.isfinite(self.average).all():
            self._begin(samples, self.average @ N.astype(self.dtype))
            self.K = metrics.congruence(self.K[:, :, None], N)[:, :, 0]
        elif samples[0][0].shape[0] > self.n_components:
            self._start(samples)
            self.K, self._measured = self._moments(samples), 0.0  # those of the next minibatch replace them
        how = f"the fit goes on from the average of its iterates with step_size={self.step_size:g}"
        remedy = f"If this repeats, begin with that, or raise batch_size={self.batch_size}"
        warnings.warn(f"{why} after {rows:,} rows; {how}. {remedy}", ConvergenceWarning, stacklevel=7)  # of fit

    def _measure(self, samples: Samples) -> None:
        """Take a minibatch into the running moments of the projections, before it moves the iterate."""
        size = samples[0][0].shape[0]
        self._measured += size
        share = max(_share(size, self._measured), size / max(WINDOW, size))
        self.K = self.K + share * (self._moments(samples) - self.K)

    def _moments(self, samples: Samples) -> Array:
        P = self.problem.scores(samples, self.average)
        return moments_of(P.reshape(-1, len(self.slices), P.shape[-1])[: samples[0][0].shape[0]])


def _reason_to_restart(state: TrackingState) -> str:
    if not all(np.isfinite(values).all() for values in (state.Y, state.C, state.D)):
        return "the iterate is not finite any more"
    values = np.linalg.eigvalsh(state.Y[0].astype(np.float64))
    if values[0] <= 0:
        return f"the tracked X'MX lost positive definiteness (smallest eigenvalue {values[0]:.2g})"
    if values[-1] > ESCAPED:
        return f"the iterate left the neighbourhood of X'MX = I (largest eigenvalue {values[-1]:.2g})"
    return ""


def _share(rows: int, total: float) -> float:
    """Share of the latest `rows` in the average of `total`."""
    return (AVERAGING + 1) * rows / (total + AVERAGING * rows)
