"""The engine: many independent runs of one solver over one stream of minibatches, in lock-step.

A *lane* is one run with its own initial point and step sizes.  The lanes of a call see the same minibatches, so
each product with the data is one matrix-matrix product for all of them.  Arrays have the lane axis first; the tall
ones, (lanes, n, p), are views of one block of memory (n, lanes, p) in which the lanes lie side by side.
A lane that diverges is taken out and reported; the others go on.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np

from cdfsg.checks import require_flag, require_seeds, require_whole
from cdfsg.datasets.views import Views
from cdfsg.linalg import Array, side_by_side
from cdfsg.problems import SampledProblem

ESCAPED = 100.0
"""Entry of the minibatch X'MX beyond which a lane is stopped.  It is 1 at a feasible point, and h and its gradient
grow like the fifth power of X beyond; of the paper's runs that ended with Fea <= 10, none ever exceeded 5.
Whether a lane that was *not* stopped counts as diverged is decided on exact values at the end, not here."""

ROWS_AT_ONCE = 200
"""Rows of data made ready for a solver at a time, unless a step needs more; measured, see benchmarks/README.md."""


class Unsupported(ValueError):
    """A solver cannot treat this problem; the message says why and what would be possible."""


@dataclass
class State:
    """Arrays that a solver carries from step to step, each with the lane axis first.

    Attributes
    ----------
    X : array (lanes, n, p)
        The iterate.
    C : array (lanes, p, p)
        The latest minibatch value of ``X'MX``.
    lanes : int array
        Numbers of the lanes that are still running; the engine sets them.
    """

    X: Array
    C: Array
    lanes: Array = field(init=False, repr=False)

    def keep(self, kept: Array) -> None:
        """Drop every lane for which the boolean array `kept` is false, in the same memory layout."""
        for entry in fields(self):
            old = getattr(self, entry.name)
            new = np.empty_like(old, shape=(np.count_nonzero(kept), *old.shape[1:]))
            setattr(self, entry.name, np.compress(kept, old, axis=0, out=new))


class Solver:
    """A method that the engine can run: subclasses define `start` and `step`.

    Attributes
    ----------
    name : str
        As printed in the tables.
    settings : tuple of str
        Names of the hyper-parameters of which each lane has its own value.
    samples_per_step : int
        Minibatches per step: 2 (theta and xi) or 1.
    epochs : tuple of str
        The method that makes the steps of each pass over the data.
    initial : {"normal", "uniform"}
        Distribution behind the initial points, see `initial_points`.
    joint_constraint : bool
        Whether its constraint is the paper's joint ``X'MX = I``; only then its Fea means anything.
    version : int
        Raised when the solver's numbers change, so that its records are computed anew.
    """

    name: ClassVar[str]
    settings: ClassVar[tuple[str, ...]]
    samples_per_step: ClassVar[int] = 1
    epochs: ClassVar[tuple[str, ...]] = ("step",)
    initial: ClassVar[str] = "normal"
    joint_constraint: ClassVar[bool] = True
    version: ClassVar[int] = 1

    def check(self, problem: SampledProblem, views: Views, batch_size: int, p: int) -> None:
        """Raise `Unsupported` for a problem that this solver cannot treat; by default there is none."""

    def start(self, problem: SampledProblem, X0: Array, settings: Mapping[str, Array], first: Array) -> Any:
        """State at k = 0.

        Parameters
        ----------
        problem : SampledProblem
        X0 : array (lanes, n, p)
        settings : mapping of str to array (lanes, 1, p)
            A value per lane, repeated along p, so that it multiplies tall and p-by-p matrices.
        first : array (1, l, n)
            A minibatch that no step uses.
        """
        raise NotImplementedError

    def step(self, problem: SampledProblem, state: Any, samples: Array) -> None:
        """Advance the state by one step on the minibatches `samples`, shape (samples_per_step, l, n)."""
        raise NotImplementedError


@dataclass(frozen=True)
class RunResult:
    """Result of a run of lanes.

    Attributes
    ----------
    X : array (lanes, n, p)
        Last iterates; NaN in the lanes that were stopped.
    tracker : array (lanes, p, p) or None
        The tracked value Y of ``X'MX``, for the solvers that have one.
    stopped_at : int array (lanes,)
        Step at which a lane was stopped, -1 for the others.
    steps : int
        Steps per pass.
    seconds : float
        Wall time of the whole run with its minibatches.
    """

    X: Array
    tracker: Array | None
    stopped_at: Array
    steps: int
    seconds: float


def run(
    solver: Solver,
    problem: SampledProblem,
    views: Views,
    X0: Array,
    settings: Mapping[str, Array],
    batch_size: int,
    order: int | None,
    *,
    shared: bool = False,
    dtype: type = np.float32,
    callback: Callable[[int, State], None] | None = None,
) -> RunResult:
    """Run lanes of a solver over its passes of the data.

    Parameters
    ----------
    solver, problem, views
        What to run; the problem's view sizes are those of `views`.
    X0 : array (lanes, n, p)
        Initial points.
    settings : mapping of str to array (lanes,)
        A value per lane of each of the solver's settings.
    batch_size : int
        Rows l of a minibatch; one pass has floor(N / l) steps.
    order : int or None
        Seed of the data order; theta and xi have an order of their own each.  None takes the rows at a stride
        through the file, for solvers with a single minibatch per step.
    shared : bool
        Use one minibatch for theta and xi instead of two independent ones.
    dtype : numpy float type
    callback : function, optional
        Called as ``callback(step, state)`` before the first step (with 0) and after each; it must not change the
        state, and copies what it keeps.

    Raises
    ------
    Unsupported
        If the solver cannot treat the problem.
    ValueError
        If shapes or settings do not fit.
    """
    _require_arguments(solver, problem, views, X0, settings, shared, dtype)
    lanes, _, p = np.shape(X0)
    values = _check_settings(solver, settings, lanes, p, dtype)
    solver.check(problem, views, batch_size, p)
    if tuple(problem.sizes) != views.sizes:
        raise ValueError(
            f"the problem has views of sizes {problem.sizes}, {views.name} of {views.sizes}; make it with views.sizes"
        )
    if order is not None:
        require_whole("order", order, 0, what="or None")
    first = next(views.batches(batch_size, None if order is None else [order, 2], dtype))
    began = time.perf_counter()
    stopped_at, number = np.full(lanes, -1), 0
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        state = solver.start(problem, side_by_side(np.asarray(X0).astype(dtype)), values, first[None])
        state.lanes = np.arange(lanes)
        if callback:
            callback(0, state)
        for epoch in solver.epochs:
            advance = getattr(solver, epoch)
            for samples in _minibatches(solver, views, batch_size, order, shared, dtype):
                advance(problem, state, samples)
                number += 1
                if not np.abs(state.C).max() <= ESCAPED:  # true for NaN as well
                    kept = np.abs(state.C).max(axis=(1, 2)) <= ESCAPED
                    stopped_at[state.lanes[~kept]] = number
                    state.keep(kept)
                if callback:
                    callback(number, state)
                if not len(state.lanes):
                    break
            if not len(state.lanes):
                break
    tracker = getattr(state, "Y", None)
    return RunResult(
        X=every_lane(state.X, state.lanes, lanes),
        tracker=None if tracker is None else every_lane(tracker, state.lanes, lanes),
        stopped_at=stopped_at,
        steps=views.n_samples // batch_size,
        seconds=time.perf_counter() - began,
    )


def every_lane(values: Array, running: Array, lanes: int) -> Array:
    """A copy of an array of the running lanes, at their places among all; NaN at the others."""
    out = np.full_like(values, np.nan, shape=(lanes, *values.shape[1:]))
    out[running] = values
    return out


def initial_points(solver: Solver, n: int, p: int, seeds: Sequence[int]) -> Array:
    """Initial points of a solver, one per seed, shape (len(seeds), n, p).

    Solvers that start from "normal" all get the same Q factors of Gaussian matrices; "uniform" gives the
    uniform entries that RSG+ orthonormalises itself.

    Raises
    ------
    ValueError
        If p is not in 1..n or there is no seed.
    """
    _require_solver(solver)
    require_whole("n", n, 1, what="the number of features")
    require_whole("p", p, 1, n, "the number of features")
    require_seeds(seeds)
    generators = [np.random.default_rng(seed) for seed in seeds]
    if solver.initial == "uniform":
        return np.stack([generator.uniform(size=(n, p)) for generator in generators])
    return np.stack([np.linalg.qr(generator.standard_normal((n, p)))[0] for generator in generators])


def _minibatches(
    solver: Solver, views: Views, batch_size: int, order: int | None, shared: bool, dtype: type
) -> Iterator[Array]:
    """The minibatches (s, l, n) of each step of one pass."""
    streams = 1 if shared else solver.samples_per_step
    if order is None and streams > 1:
        raise ValueError(f"{solver.name} draws theta and xi independently, so it needs a seed for the order")
    seeds = [None if order is None else [order, stream] for stream in range(streams)]
    rows = np.stack([views.batch_indices(batch_size, seed) for seed in seeds], axis=1)
    together = max(1, ROWS_AT_ONCE // (streams * batch_size))
    for begin in range(0, len(rows), together):
        some = rows[begin : begin + together]
        yield from views.rows(some.ravel(), dtype).reshape(*some.shape, -1)


def _require_solver(solver: object) -> None:
    if not isinstance(solver, Solver):
        raise ValueError(f"solver must be a solver, got {solver!r}; make one of cdfsg.solvers.SOLVERS, as by CDFSG()")


def _require_arguments(
    solver: object, problem: Any, views: object, X0: Any, settings: object, shared: bool, dtype: type
) -> None:
    _require_solver(solver)
    if not isinstance(views, Views):
        raise ValueError(f"views must be a Views, got {type(views).__name__}; make one of the table, see Views")
    if isinstance(problem, type | str) or not hasattr(problem, "raw_gradient"):
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
    X0 = np.asarray(X0)
    if X0.ndim != 3 or X0.dtype.kind != "f" or min(X0.shape) < 1 or not np.isfinite(X0).all():
        raise ValueError(
            f"X0 must be a finite real array of shape (lanes, n, p), got shape {X0.shape} and type {X0.dtype}; "
            "initial_points makes one"
        )
    _, n, p = X0.shape
    if n != problem.n or p > n:
        raise ValueError(f"X0 has {n} rows and p = {p}, but X of this problem has {problem.n} rows and at most that p")


def _check_settings(
    solver: Solver, settings: Mapping[str, Array], lanes: int, p: int, dtype: type
) -> dict[str, Array]:
    if set(settings) != set(solver.settings):
        raise ValueError(f"{solver.name} has the settings {sorted(solver.settings)}, got {sorted(settings)}")
    values: dict[str, Array] = {}
    for name, given in settings.items():
        value = np.asarray(given)
        if value.dtype.kind not in "iuf" or value.shape != (lanes,) or not (np.isfinite(value) & (value > 0)).all():
            raise ValueError(f"setting {name} needs {lanes} positive values, one per lane, got {given}")
        # Repeated along p, a product with a tall matrix runs over lanes and columns in one loop.
        values[name] = np.repeat(value.astype(dtype), p).reshape(lanes, 1, p)
    return values
