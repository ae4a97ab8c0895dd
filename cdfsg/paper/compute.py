"""From one job to its record; `cdfsg.paper.run` carries jobs out."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import lru_cache

import numpy as np
import pandas as pd

from cdfsg import metrics
from cdfsg.datasets import Views, load
from cdfsg.files import KEPT, kept_array
from cdfsg.linalg import Array
from cdfsg.merits import make_merit
from cdfsg.paper import records
from cdfsg.paper.experiments import Job
from cdfsg.paper.protocols import DIVERGED_FEA, OURS, Protocol
from cdfsg.problems import SampledGCCA
from cdfsg.solvers import SOLVERS, Solver
from cdfsg.solvers.engine import State, every_lane, initial_points, run

NUMERICS = 1
"""Version of the numbers that the engine, the problems, the metrics and this module give.  Raise it when they change
beyond rounding: every record is then computed anew.  Numbers of one solver have its own `Solver.version`."""


@lru_cache(maxsize=8)
def views_of(dataset: str, centred: bool = True, scale: float = 1.0) -> Views:
    """The data set, loaded once per process, with its values multiplied by `scale`."""
    if centred and scale == 1:
        return load(dataset)
    views = views_of(dataset)
    return replace(views, scale=views.scale * scale, centred=centred)


@lru_cache(maxsize=4)
def covariance_of(dataset: str, centred: bool = True) -> Array:
    """The exact second moment, kept on disk: with thousands of columns it takes half a minute."""
    views = views_of(dataset, centred)
    return _kept("covariance", views, lambda: views.covariance)


@lru_cache(maxsize=4)
def eigenvalues_of(dataset: str, centred: bool = True) -> Array:
    """Generalised eigenvalues, kept on disk: with two views they are the canonical correlations."""
    views = views_of(dataset, centred)
    return _kept(
        "eigenvalues", views, lambda: metrics.generalised_eigenvalues(covariance_of(dataset, centred), views.sizes)
    )


def make_solver(name: str, protocol: Protocol) -> Solver:
    """Solver by name, with the protocol's `beta` where it has a penalty parameter, and its constants."""
    kind = SOLVERS[name]
    beta = {"beta": protocol.beta} if hasattr(kind, "beta") else {}
    return kind(**beta, **dict(protocol.constants))


def compute(job: Job) -> pd.DataFrame:
    """Carry out the runs of a job and evaluate them exactly, in float64 on the full data."""
    protocol, solver, problem = job.protocol, make_solver(job.solver, job.protocol), problem_of(job)
    views = views_of(job.dataset, protocol.centred, protocol.scale)
    together = solver.samples_per_step if protocol.minibatches == "consecutive" else 1
    steps = max(1, round(protocol.share * (views.n_samples // job.batch_size // together)))
    settings = pd.DataFrame(np.array(job.settings), columns=list(solver.settings))
    given, lanes = step_sizes(settings, protocol.tracking), len(settings)
    runs, ends = [], []
    for order, start in job.seeds:
        X0 = np.repeat(initial_point(job, solver, start), lanes, axis=0)
        curve = Curve(job.trace_points, steps, len(solver.epochs), lanes) if job.trace_points else None
        result = run(
            solver, problem, views, X0, given, job.batch_size, order, minibatches=protocol.minibatches,
            share=protocol.share, callback=curve,
        )  # fmt: skip
        tracker = result.tracker
        if tracker is None and not curve:
            tracker = minibatch_constraint(problem, views, job.batch_size, order, result.X)
        ends.append(curve.points() if curve else [(steps, result.X, tracker)])
        seed = np.nan if order is None else float(order)
        runs.append(settings.assign(order=seed, start=start, stopped_at=result.stopped_at, seconds=result.seconds))
    starts, frames = pd.concat(runs, ignore_index=True), []
    for at, X, Y in (zip(*point, strict=True) for point in zip(*ends, strict=True)):
        numbers = evaluate(job, solver, np.concatenate(X), None if job.trace_points else np.concatenate(Y))
        frames.append(pd.concat([starts, numbers], axis=1).assign(samples=at[0] * job.batch_size))
    frame = pd.concat(frames, ignore_index=True)
    floats = frame.select_dtypes("float").columns
    frame[floats] = frame[floats].map("{:.8g}".format).astype(float)  # beyond is rounding of single precision
    frame = frame.assign(
        **{name: value for name, value in vars(job).items() if name in records.JOB},
        beta=protocol.beta, lanes=job.lanes, provenance=views.provenance.kind, key=key_of(job),
    )  # fmt: skip
    # A column that a record does not know comes last, and is refused when the record is written.
    return frame.reindex(columns=list(dict.fromkeys([*records.COLUMNS, *frame])))


def problem_of(job: Job) -> SampledGCCA:
    """The problem of a job; a competitor keeps the scale of f that its published code has."""
    sizes = views_of(job.dataset).sizes
    weight = job.protocol.pair_weight(job.merit) if job.solver in OURS else 1.0
    return SampledGCCA(sizes, make_merit(job.merit, job.protocol.mu), np.full((len(sizes), len(sizes)), weight))


def initial_point(job: Job, solver: Solver, seed: int) -> Array:
    """X_0 of the protocol, shape (1, n, p); a solver with a start of its own keeps that."""
    views = views_of(job.dataset)
    X = initial_points(solver, views.n_features, job.p, (seed,))
    if job.protocol.start == "gaussian" or solver.initial != "normal":
        return X
    K = _moments(job, X)
    if job.protocol.start == "joint":
        return X @ metrics.orthogonalise(metrics.constraint(K))[0]
    for i, view in enumerate(views.slices):  # each view's share of X'MX is I / m
        X[:, view] @= metrics.orthogonalise(K[i, i])[0] / np.sqrt(views.n_views)
    return X


def step_sizes(settings: pd.DataFrame, tracking: str) -> dict[str, Array]:
    """The settings that give the solver the (alpha, b) of a reading in `cdfsg.paper.protocols.TRACKING`."""
    given = {name: column.to_numpy() for name, column in settings.items()}
    if tracking == "clipped":
        given["s1"] = np.maximum(given["s1"], given["s2"])
    elif tracking == "s1":
        given["s1"] = given["s2"] / given["s1"]
    elif tracking == "s2":
        given["s2"] = given["s1"] * given["s2"]
    return given


def _moments(job: Job, X: Array) -> Array:
    """The matrices ``K_ij`` of X on all of the job's data."""
    sizes = views_of(job.dataset).sizes
    return job.protocol.scale**2 * metrics.cross_moments(X, covariance_of(job.dataset, job.protocol.centred), sizes)


class Curve:
    """A callback that keeps the start, and evenly spaced steps of the last pass, up to step `end` of it if given.

    Of each it keeps the iterates, and the trackers or else the minibatches' ``X'MX``.
    """

    def __init__(self, points: int, steps: int, passes: int, lanes: int, end: int = 0) -> None:
        self._earlier, self._lanes = (passes - 1) * steps, lanes
        at = sorted({round(k * (end or steps) / points) for k in range(points + 1)})
        self._kept: dict[int, tuple[Array, Array] | None] = dict.fromkeys(at)

    def __call__(self, step: int, state: State) -> None:
        """Keep the arrays of all lanes, NaN in those that were stopped."""
        at = step and step - self._earlier
        if at in self._kept and self._kept[at] is None:
            X, Y = (every_lane(a, state.lanes, self._lanes) for a in (state.X, getattr(state, "Y", state.C)))
            self._kept[at] = X, Y

    def points(self) -> list[tuple[int, Array, Array]]:
        """(step of the pass, iterates, estimates); NaN at a step that the lanes did not reach."""
        X, Y = (np.full_like(array, np.nan) for array in self._kept[0] or ())
        return [(at, *(kept or (X, Y))) for at, kept in self._kept.items()]


def evaluate(job: Job, solver: Solver, X: Array, tracker: Array | None = None) -> pd.DataFrame:
    """Metrics of every lane and its status; with the tracked ``X'MX``, also after both post-processings.

    ``quality`` is what the rule for step sizes weighs against Fea: PCC in classical CCA, else Fval as a share of
    its ``bound``.  A metric that does not exist is NaN: feasibility for solvers of another constraint, and the paper's
    post-processing where its p-by-p matrix is not positive definite.  PCC is that of the centred data also where the
    solver saw them raw; Fea and Fval are those of its own problem.
    """
    merit, pairs = make_merit(job.merit, job.protocol.mu), job.protocol.pair_weight(job.merit)
    K = _moments(job, X)
    fea, m = metrics.feasibility(K), len(K)
    finite = np.isfinite(fea) & ((fea <= DIVERGED_FEA) | (not solver.joint_constraint))
    K[:, :, ~finite] = np.nan
    columns: dict[str, Array] = {"status": np.where(finite, "done", "diverged")}
    factors = {"": np.broadcast_to(np.eye(job.p), metrics.constraint(K).shape)}
    if tracker is not None and solver.joint_constraint:
        factors["_post"] = metrics.orthogonalise(tracker)[0]
        factors["_orth"] = metrics.orthogonalise(metrics.constraint(K))[0]
    for suffix, factor in factors.items():
        form = metrics.congruence(K, factor)
        columns["fval" + suffix] = pairs * metrics.objective(form, merit)
        if solver.joint_constraint:
            columns["fea" + suffix] = metrics.feasibility(form)
            if tracker is not None and suffix != "_orth":  # there both are rounding
                columns["fea_spectral" + suffix] = metrics.spectral_feasibility(form)
    if m == 2:
        attainable = eigenvalues_of(job.dataset)[: job.p].sum()  # the denominator of PCC
        centred = K if job.protocol.centred else _moments(replace(job, protocol=Protocol()), X)
        centred[:, :, ~finite] = np.nan
        for suffix, factor in factors.items():
            columns["pcc" + suffix] = metrics.tcc(metrics.congruence(centred, factor)) / attainable
        if tracker is not None:
            columns["pcc_paired"] = metrics.paired_correlations(centred) / attainable
    bound = pairs * metrics.objective_bound(eigenvalues_of(job.dataset, job.protocol.centred), job.p, m, merit)
    classical = m == 2 and merit.name == "identity"
    columns["quality"] = columns["pcc"] if classical else columns["fval"] / bound
    return pd.DataFrame(columns).assign(bound=bound)


def minibatch_constraint(problem: SampledGCCA, views: Views, batch_size: int, order: int | None, X: Array) -> Array:
    """``X' M^ X`` in float64 on one random minibatch, for solvers that track nothing."""
    Z = next(views.batches(batch_size, None if order is None else [order, 3], np.float64))
    with np.errstate(over="ignore", invalid="ignore"):  # a lane may have diverged
        return problem.constraint(problem.scores(Z[None], X.astype(np.float64))[0])


def key_of(job: Job) -> str:
    """Key of a job's content and `origin`, sixteen hex digits."""
    settings = asdict(job)
    changed = {name: value for name, value in settings.pop("protocol").items() if value != getattr(Protocol(), name)}
    # A choice that is added to the protocol later leaves the keys of the others as they are.
    content = json.dumps([settings, changed, DIVERGED_FEA, *origin(job)], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def origin(job: Job) -> tuple[str, str]:
    """The code and the data of a job's numbers, in words that two machines can compare."""
    code = f"numerics {NUMERICS}, {job.solver} {SOLVERS[job.solver].version}"
    return code, data_key(views_of(job.dataset))


def data_key(views: Views) -> str:
    """Words that tell any two data sets apart."""
    return repr((views.provenance.checksum, views.sizes, views.scale, views.centred))


def _kept(what: str, views: Views, make: Callable[[], Array]) -> Array:
    key = hashlib.sha256(f"{data_key(views)} {NUMERICS}".encode()).hexdigest()[:16]
    return kept_array(KEPT / f"{views.name}-{what}-{key}.npy", make)
