"""The lane engine: many independent runs of one solver over one minibatch stream, in lock-step.

A lane is one run with its own initial point and step sizes.  The lanes of a block see the same minibatches, so
each product with the data is one matrix-matrix product for all of them.  A single run is a block of one lane.
A lane that diverges is taken out of the block and reported; its neighbours never notice.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

import numpy as np

from cdfsg.checks import require_flag, require_seeds, require_whole
from cdfsg.datasets.views import Views
from cdfsg.linalg import Array
from cdfsg.problems import SampledProblem
from cdfsg.solvers.draws import Draw, Draws

ESCAPED = 100.0
"""Entry of the minibatch X'MX beyond which a lane is stopped.  It is 1 at a feasible point, and h and its gradient
grow like the fifth power of X beyond; of the paper's runs that ended with Fea <= 10, none ever exceeded 5.
Whether a lane that was *not* stopped counts as diverged is decided on exact values at the end, not here."""


ROWS_AT_ONCE = 200
"""Rows of data made ready for a solver at a time, unless a step needs more; measured, see benchmarks/README.md."""


class Refusal(ValueError):
    """A solver cannot treat this problem; the message says why and what would be possible."""


def lane_axis(axis: int) -> Any:
    """Dataclass field of a `State` whose lanes lie along `axis`."""
    return field(metadata={"lane_axis": axis})


@dataclass
class State:
    """What a solver carries from step to step; each field says where its lane axis is.

    ``X`` (n, lanes, p) is the iterate and ``C`` (lanes, p, p) the latest minibatch value of ``X'MX``.
    """

    X: Array = lane_axis(1)
    C: Array = lane_axis(0)

    def keep(self, lanes: Array) -> None:
        """Drop every lane for which the boolean array `lanes` is false."""
        for entry in fields(self):
            value = getattr(self, entry.name)
            setattr(self, entry.name, np.compress(lanes, value, axis=entry.metadata["lane_axis"]))


S = TypeVar("S", bound=State)


class Solver(Protocol[S]):
    """What the engine needs of a solver.

    Attributes
    ----------
    name : str
        As printed in the tables.
    settings : tuple of str
        Names of the hyper-parameters that each lane has of its own.
    streams : int
        Minibatches per step: 2 (theta and xi) or 1.
    passes : int
        Passes over the data; the paper's solvers make one.
    start_from : {"normal", "uniform"}
        Distribution behind the initial points, see `initial_points`.
    joint : bool
        Whether its constraint is the paper's joint ``X'MX = I``; only then its Fea means anything.
    """

    name: ClassVar[str]
    settings: ClassVar[tuple[str, ...]]
    streams: ClassVar[int]
    passes: ClassVar[int]
    start_from: ClassVar[str]
    joint: ClassVar[bool]

    def check(self, problem: SampledProblem, views: Views, batch_size: int, p: int) -> None:
        """Raise `Refusal` for what this solver cannot do."""

    def start(self, problem: SampledProblem, X0: Array, settings: Mapping[str, Array], first: Array) -> S:
        """State at k = 0 from X0 (n, lanes, p), the settings per lane and one extra minibatch (l, n)."""

    def step(self, problem: SampledProblem, state: S, draw: Draw, number: int) -> None:
        """Advance the state by one step of pass `number`."""


@runtime_checkable
class SolverOfMany(Protocol):
    """A solver that makes several steps at once faster than one by one, with the same numbers up to rounding."""

    def steps(self, problem: SampledProblem, state: Any, draws: Draws) -> Array:
        """Advance the state by every step of `draws`; return C after each, shape (s, lanes, p, p)."""


@dataclass(frozen=True)
class Outcome:
    """What a block of lanes gives.

    Attributes
    ----------
    X : array (n, lanes, p)
        Last iterates; NaN in the lanes that were stopped.
    tracker : array (lanes, p, p) or None
        The tracked value Y of ``X'MX``, for the solvers that have one.
    stopped_at : int array (lanes,)
        Step at which a lane was stopped, -1 for the others.
    steps : int
        Steps per pass.
    seconds : float
        Wall time of the whole block with its minibatches, without evaluation.
    trace : list of (int, array)
        Samples seen (of the stream that drives the steps) and the iterates (n, lanes, p) there.
    """

    X: Array
    tracker: Array | None
    stopped_at: Array
    steps: int
    seconds: float
    trace: list[tuple[int, Array]]


def run(
    solver: Solver[Any],
    problem: SampledProblem,
    views: Views,
    X0: Array,
    settings: Mapping[str, Array],
    batch_size: int,
    order: int | None,
    *,
    shared: bool = False,
    dtype: type = np.float32,
    trace_at: Sequence[int] = (),
) -> Outcome:
    """Run a block of lanes.

    Parameters
    ----------
    solver, problem, views
        What to run; the problem's view sizes are those of `views`.
    X0 : array (n, lanes, p)
        Initial points.
    settings : mapping of str to array (lanes,)
        A value per lane of each of the solver's settings.
    batch_size : int
        Rows l of a minibatch; one pass has floor(N / l) steps.
    order : int or None
        Seed of the data order; theta and xi have an order of their own each.  None takes the rows at a stride
        through the file, for solvers with a single stream.
    shared : bool
        Use one minibatch for theta and xi instead of two independent ones.
    dtype : numpy float type
    trace_at : sequence of int
        Step counts of the last pass (1 to `steps`, 0 for the start) at which the iterates are recorded.

    Raises
    ------
    Refusal
        If the solver cannot treat the problem.
    ValueError
        If shapes or settings do not fit.
    """
    _require_arguments(solver, problem, views, X0, settings, shared, dtype)
    X0 = np.asarray(X0)
    if X0.ndim != 3 or X0.dtype.kind != "f" or min(X0.shape) < 1 or not np.isfinite(X0).all():
        raise ValueError(
            f"X0 must be a finite real array of shape (n, lanes, p), got shape {X0.shape} and type {X0.dtype}; "
            "initial_points makes one"
        )
    n, lanes, p = X0.shape
    if n != problem.n or p > n:
        raise ValueError(f"X0 has {n} rows and p = {p}, but X of this problem has {problem.n} rows and at most that p")
    values = _check_settings(solver, settings, lanes, dtype)
    solver.check(problem, views, batch_size, p)
    if tuple(problem.sizes) != views.sizes:
        raise ValueError(
            f"the problem has views of sizes {problem.sizes}, {views.name} of {views.sizes}; make it with views.sizes"
        )
    if order is not None:
        require_whole("order", order, 0, what="or None")
    if not np.iterable(trace_at) or not all(isinstance(at, int | np.integer) for at in trace_at):
        raise ValueError(f"trace_at must be whole numbers, the steps at which iterates are recorded, got {trace_at!r}")
    first = next(views.batches(batch_size, None if order is None else [order, 2], dtype))
    in_all = views.n_samples // batch_size
    if any(not 0 <= at <= in_all for at in trace_at):
        raise ValueError(f"trace_at must lie in 0..{in_all}, the steps of a pass, got {sorted(trace_at)}")
    began = time.perf_counter()
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        state = solver.start(problem, X0.astype(dtype, order="C"), values, first)
        recorder = _Recorder(X0.shape, set(trace_at), batch_size)
        recorder.record(0, state)
        many = _of_many(solver)
        for number in range(solver.passes):
            last = number == solver.passes - 1
            done = 0
            for draws in _draws(solver, views, batch_size, order, shared, dtype, trace_at):
                if many is None:
                    C = step_by_step(solver, problem, state, draws, number)
                else:
                    C = many.steps(problem, state, draws)
                recorder.drop_escaped(state, C, number * in_all + done)
                done += len(draws)
                if last:
                    recorder.record(done, state)
                if not recorder.alive.any():
                    break
        recorder.finish(in_all)
    seconds = time.perf_counter() - began - recorder.seconds
    tracker = getattr(state, "Y", None)
    return Outcome(
        X=recorder.spread(state.X, 1),
        tracker=None if tracker is None else recorder.spread(tracker, 0),
        stopped_at=recorder.stopped_at,
        steps=in_all,
        seconds=seconds,
        trace=recorder.trace,
    )


def initial_points(solver: Solver[Any], n: int, p: int, seeds: Sequence[int]) -> Array:
    """Initial points of a solver, one per seed, shape (n, len(seeds), p).

    Solvers that start from "normal" all get the same Q factors of Gaussian matrices; "uniform" gives the
    uniform entries that RSG+ orthonormalises itself.

    Raises
    ------
    ValueError
        If p is not in 1..n or there is no seed.
    """
    if not hasattr(solver, "start_from"):
        raise ValueError(f"solver must be a solver, got {solver!r}; make one of cdfsg.solvers.SOLVERS, as by CDFSG()")
    require_whole("n", n, 1, what="the number of features")
    require_whole("p", p, 1, n, "the number of features")
    require_seeds(seeds)
    generators = [np.random.default_rng(seed) for seed in seeds]
    if solver.start_from == "uniform":
        points = [generator.uniform(size=(n, p)) for generator in generators]
    else:
        points = [np.linalg.qr(generator.standard_normal((n, p)))[0] for generator in generators]
    return np.stack(points, axis=1)


def step_by_step(solver: Solver[S], problem: SampledProblem, state: S, draws: Draws, number: int) -> Array:
    """Advance the state by every step of `draws`; C after each, shape (s, lanes, p, p)."""
    values = []
    for draw in draws:
        solver.step(problem, state, draw, number)
        values.append(state.C)
    return np.stack(values)


def _of_many(solver: Solver[Any]) -> SolverOfMany | None:
    """The solver, if its `steps` makes the steps of its `step`: not so where a class overrides `step` alone."""
    if not isinstance(solver, SolverOfMany):
        return None
    latest = next(kind for kind in type(solver).__mro__ if {"step", "steps"} & vars(kind).keys())
    return solver if "steps" in vars(latest) else None


def _draws(
    solver: Solver[Any],
    views: Views,
    batch_size: int,
    order: int | None,
    shared: bool,
    dtype: type,
    trace_at: Sequence[int],
) -> Iterator[Draws]:
    """The minibatches of one pass, those of some steps together but never across a step of `trace_at`."""
    theta = views.batch_indices(batch_size, None if order is None else [order, 0])
    if solver.streams == 1 or shared:
        both, parts = theta, (slice(None), slice(None))
    else:
        if order is None:
            raise ValueError(f"{solver.name} draws theta and xi independently, so it needs a seed for the order")
        both = np.concatenate([theta, views.batch_indices(batch_size, [order, 1])], axis=1)
        parts = (slice(0, batch_size), slice(batch_size, None))
    steps, size = both.shape
    together = max(1, ROWS_AT_ONCE // size)
    cuts = sorted({*range(0, steps, together), steps, *(end for end in trace_at if 0 < end < steps)})
    return (
        Draws(views.rows(both[begin:end].ravel(), dtype), size, *parts)
        for begin, end in zip(cuts, cuts[1:], strict=False)
    )


def _require_arguments(
    solver: object, problem: object, views: object, X0: object, settings: object, shared: bool, dtype: type
) -> None:
    if isinstance(solver, type | str) or not (hasattr(solver, "settings") and hasattr(solver, "start")):
        raise ValueError(f"solver must be a solver, got {solver!r}; make one of cdfsg.solvers.SOLVERS, as by CDFSG()")
    if not isinstance(views, Views):
        raise ValueError(f"views must be a Views, got {type(views).__name__}; make one of the table, see Views")
    if isinstance(problem, type | str) or not hasattr(problem, "gradient_factor"):
        raise ValueError(
            f"problem must be a sampled problem, got {type(problem).__name__}; make one, as by "
            "SampledGCCA(views.sizes, Identity())"
        )
    if not isinstance(settings, Mapping):
        raise ValueError(
            "settings must be a mapping of the solver's settings, each an array with a value per lane, got "
            f"{settings!r}"
        )
    require_flag(shared=shared)
    if dtype is None or np.dtype(dtype).kind != "f":
        raise ValueError(f"dtype must be a floating-point type such as float32 or float64, got {np.dtype(dtype)}")
    if np.ma.is_masked(X0):
        raise ValueError("X0 has masked values, but must be finite in all entries; initial_points makes one")


def _check_settings(
    solver: Solver[Any], settings: Mapping[str, Array], lanes: int, dtype: type
) -> dict[str, Array]:
    if set(settings) != set(solver.settings):
        raise ValueError(
            f"{solver.name} has the settings {sorted(solver.settings)}, got {sorted(settings)}"
        )
    for name, value in settings.items():
        if np.asarray(value).dtype.kind not in "iuf":
            raise ValueError(f"setting {name} needs {lanes} positive values, one per lane, got {value}")
    values: dict[str, Array] = {name: np.asarray(value, dtype=dtype) for name, value in settings.items()}
    for name, value in values.items():
        if value.shape != (lanes,) or not (np.isfinite(value) & (value > 0)).all():
            raise ValueError(f"setting {name} needs {lanes} positive values, one per lane, got {value}")
    return values


class _Recorder:
    """Keeps book of which lanes are still in the block, and of the trace."""

    def __init__(self, shape: tuple[int, ...], trace_at: set[int], batch_size: int) -> None:
        self._shape = shape
        self.stopped_at = np.full(shape[1], -1)
        self.trace: list[tuple[int, Array]] = []
        self.seconds = 0.0
        self._trace_at = trace_at
        self._batch_size = batch_size

    @property
    def alive(self) -> Array:
        alive: Array = self.stopped_at < 0
        return alive

    def drop_escaped(self, state: State, C: Array, steps: int) -> None:
        """Drop the lanes that escaped in one of the steps after `steps`; C of each has shape (s, lanes, p, p)."""
        inside = np.abs(C).max(axis=(2, 3)) <= ESCAPED  # false for NaN as well
        kept = inside.all(axis=0)
        if not kept.all():
            first = inside.argmin(axis=0)
            self.stopped_at[np.flatnonzero(self.alive)[~kept]] = steps + 1 + first[~kept]
            state.keep(kept)

    def record(self, step: int, state: State) -> None:
        if step in self._trace_at:
            began = time.perf_counter()
            self.trace.append((step * self._batch_size, self.spread(state.X, 1)))
            self.seconds += time.perf_counter() - began

    def finish(self, steps: int) -> None:
        """Record the points that a block whose lanes were all stopped did not reach: NaN."""
        nothing = np.full(self._shape, np.nan)
        reached = {samples for samples, _ in self.trace}
        for step in sorted(self._trace_at):
            if step <= steps and step * self._batch_size not in reached:
                self.trace.append((step * self._batch_size, nothing))

    def spread(self, a: Array, axis: int) -> Array:
        """Lanes still alive at their place among all lanes, NaN at the others."""
        shape = list(a.shape)
        shape[axis] = len(self.stopped_at)
        out = np.full(shape, np.nan, dtype=a.dtype)
        out[(slice(None),) * axis + (self.alive,)] = a
        return out
