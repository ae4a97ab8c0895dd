"""The engine: many runs of one solver, its lanes, over one stream of minibatches, in lock-step.

A lane has its own initial point and step sizes.  Arrays have the lane axis first; in memory the tall ones,
(lanes, n, p), have the order (n, lanes, p), so that a product with the data is one for all lanes.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np

from cdfsg.checks import require_run, require_seeds, require_solver, require_whole
from cdfsg.datasets.views import Views
from cdfsg.linalg import Array, side_by_side
from cdfsg.problems import SampledProblem

ESCAPED = 100.0
"""Entry of the minibatch X'MX, 1 at a feasible point, beyond which a lane is stopped.  Of the paper's runs that ended
with Fea <= 10, none ever exceeded 5."""

ROWS_AT_ONCE = 200
"""Rows of data made ready at a time, unless a step needs more; see benchmarks/README.md."""

MINIBATCHES = ("independent", "shared", "consecutive", "replacement")
"""How theta and xi are drawn: from a permutation of the rows each; one minibatch for both; one after the other from one
permutation, so that a pass has half as many steps; or every row at random, with replacement."""

Settings = Mapping[str, Array]
"""A value per lane of each hyper-parameter."""


class Unsupported(ValueError):
    """A solver cannot treat a problem."""


@dataclass
class State:
    """Arrays that a solver carries from step to step, each with the lane axis first.

    X (lanes, n, p) is the iterate and C (lanes, p, p) the latest minibatch value of ``X'MX``; `lanes` are the numbers
    of the lanes that still run, which the engine sets.
    """

    X: Array
    C: Array
    lanes: Array = field(init=False, repr=False)

    def keep(self, kept: Array) -> None:
        """Drop the lanes for which the boolean array `kept` is false; the memory layout stays."""
        for entry in fields(self):
            old = getattr(self, entry.name)
            new = np.empty_like(old, shape=(np.count_nonzero(kept), *old.shape[1:]))
            setattr(self, entry.name, np.compress(kept, old, axis=0, out=new))


class Solver:
    """A method that the engine can run: subclasses define `start` and `step`.

    The tables print `name`, and `settings` are the names of the hyper-parameters.  A step takes `samples_per_step`
    minibatches: 2, theta and xi, or 1.  For each pass over the data `epochs` names the method that makes its steps.
    The distribution of `initial_points` is `initial`, "normal" or "uniform".  Only with the `joint_constraint`
    ``X'MX = I`` there is a Fea.  Raise `version` when the numbers change, so that records are computed anew.
    """

    name: ClassVar[str]
    settings: ClassVar[tuple[str, ...]]
    samples_per_step: ClassVar[int] = 1
    epochs: ClassVar[tuple[str, ...]] = ("step",)
    initial: ClassVar[str] = "normal"
    joint_constraint: ClassVar[bool] = True
    version: ClassVar[int] = 1

    def check(self, problem: SampledProblem, views: Views, batch_size: int, p: int) -> None:
        """Raise `Unsupported` for what this solver cannot treat; by default nothing."""

    def start(self, problem: SampledProblem, X0: Array, settings: Settings, first: Array) -> Any:
        """State at k = 0, from X0 (lanes, n, p) and a minibatch `first` (1, l, n) that no step uses.

        A setting is an array (lanes, 1, p), constant along p: it multiplies tall and p-by-p matrices.
        """
        raise NotImplementedError

    def step(self, problem: SampledProblem, state: Any, samples: Array) -> None:
        """Advance the state by one step on `samples`, shape (samples_per_step, l, n)."""
        raise NotImplementedError


@dataclass(frozen=True)
class RunResult:
    """Result of `run`.

    X (lanes, n, p) are the last iterates, NaN in stopped lanes; `tracker` (lanes, p, p) is the tracked value Y of
    ``X'MX``, if the solver has one; `stopped_at` (lanes,) is the step at which a lane was stopped, else -1; `steps`
    counts those of a pass, and `seconds` is wall time, minibatches included.
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
    settings: Settings,
    batch_size: int,
    order: int | None,
    *,
    minibatches: str = "independent",
    share: float = 1.0,
    dtype: type = np.float32,
    callback: Callable[[int, State], None] | None = None,
) -> RunResult:
    """Run lanes of a solver over its passes of the data.

    Raises `Unsupported` if the solver cannot treat the problem, ValueError if the arguments do not fit.

    Parameters
    ----------
    solver, problem, views
    X0 : array (lanes, n, p)
        Initial points.
    settings : mapping of str to array (lanes,)
    batch_size : int
        Rows l of a minibatch; a pass has floor(N / l) steps.
    order : int or None
        Seed of the orders of theta and of xi; None takes the rows at a stride, for one minibatch per step.
    minibatches : str
        How theta and xi are drawn, one of `MINIBATCHES`.
    share : float
        Share of a pass that is run, in (0, 1].
    dtype : numpy float type
    callback : function, optional
        Called as ``callback(step, state)`` at step 0 and after each; it copies what it keeps.
    """
    require_run(solver, problem, views, X0, settings, order, dtype)
    if minibatches not in MINIBATCHES or not 0 < share <= 1:
        expected = f"minibatches must be one of {', '.join(MINIBATCHES)} and share lie in (0, 1]"
        raise ValueError(f"{expected}, got {minibatches!r} and {share!r}")
    lanes, _, p = np.shape(X0)
    solver.check(problem, views, batch_size, p)
    if tuple(problem.sizes) != views.sizes:
        found = f"views of sizes {problem.sizes}, {views.name} of {views.sizes}"
        raise ValueError(f"the problem has {found}; make it with views.sizes")
    # Constant along p, so that a product with a tall matrix runs over lanes and columns in one loop.
    values: Settings = {name: np.repeat(np.asarray(v, dtype), p).reshape(lanes, 1, p) for name, v in settings.items()}
    first = next(views.batches(batch_size, None if order is None else [order, 2], dtype))
    began, number, stopped_at = time.perf_counter(), 0, np.full(lanes, -1)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        state = solver.start(problem, side_by_side(np.asarray(X0).astype(dtype)), values, first[None])
        state.lanes = np.arange(lanes)
        if callback:
            callback(0, state)
        rows = _rows(solver, views, batch_size, order, minibatches)  # the draws for k = 0, ..., K - 1
        rows = rows[: max(1, round(share * len(rows)))]
        for advance, samples in _steps(solver, views, rows, dtype):  # k = 0, ..., K - 1: theta_{k+1}, xi_{k+1}
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
    X = every_lane(state.X, state.lanes, lanes)  # X_K
    tracker = every_lane(state.Y, state.lanes, lanes) if hasattr(state, "Y") else None
    return RunResult(X, tracker, stopped_at, len(rows), time.perf_counter() - began)


def every_lane(values: Array, running: Array, lanes: int) -> Array:
    """A copy of the values of the running lanes, at their places among all; NaN elsewhere."""
    out = np.full_like(values, np.nan, shape=(lanes, *values.shape[1:]))
    out[running] = values
    return out


def initial_points(solver: Solver, n: int, p: int, seeds: Sequence[int]) -> Array:
    """Initial points, one per seed, shape (len(seeds), n, p).

    They are Q factors of Gaussian matrices, or the uniform entries that RSG+ orthonormalises itself.
    """
    require_solver(solver)
    require_whole("n", n, 1, what="the number of features")
    require_whole("p", p, 1, n, "the number of features")
    require_seeds(seeds)
    generators = [np.random.default_rng(seed) for seed in seeds]
    if solver.initial == "uniform":
        return np.stack([rng.uniform(size=(n, p)) for rng in generators])
    return np.linalg.qr(np.stack([rng.standard_normal((n, p)) for rng in generators]))[0]


def _rows(solver: Solver, views: Views, batch_size: int, order: int | None, minibatches: str) -> Array:
    """Row numbers of the minibatches of a pass, shape (steps, streams, l)."""
    streams = 1 if minibatches == "shared" else solver.samples_per_step
    if order is None and streams > 1:
        raise ValueError(f"{solver.name} draws theta and xi independently, so it needs an order, got None")
    if minibatches == "replacement":
        shape = (views.n_samples // batch_size, streams, batch_size)
        return np.random.default_rng(order).integers(views.n_samples, size=shape)
    if minibatches == "consecutive":
        rows = views.batch_indices(batch_size, None if order is None else [order, 0])
        return rows[: len(rows) // streams * streams].reshape(-1, streams, batch_size)
    seeds = [None if order is None else [order, stream] for stream in range(streams)]
    return np.stack([views.batch_indices(batch_size, seed) for seed in seeds], axis=1)


def _steps(solver: Solver, views: Views, rows: Array, dtype: type) -> Iterator[tuple[Callable[..., None], Array]]:
    """The method that makes each step, with its minibatches (s, l, n)."""
    together = max(1, ROWS_AT_ONCE // (rows.shape[1] * rows.shape[2]))
    for advance in (getattr(solver, epoch) for epoch in solver.epochs):
        for begin in range(0, len(rows), together):
            some = rows[begin : begin + together]
            for samples in views.rows(some.ravel(), dtype).reshape(*some.shape, -1):
                yield advance, samples
