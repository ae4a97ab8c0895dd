"""From one job to its record: run its lanes and evaluate them exactly; `cdfsg.paper.run` carries jobs out."""

import hashlib
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from cdfsg import metrics
from cdfsg.datasets import Views, load
from cdfsg.files import KEPT, kept_array
from cdfsg.linalg import Array
from cdfsg.merits import make_merit
from cdfsg.paper import records
from cdfsg.paper.experiments import Job
from cdfsg.paper.protocols import DIVERGED_FEA
from cdfsg.problems import SampledGCCA
from cdfsg.solvers import SOLVERS, Solver
from cdfsg.solvers.engine import State, every_lane, initial_points, run

NUMERICS = 1
"""Version of the numbers that the engine, the problems, the metrics and this module give.  Raise it when they change
beyond rounding: every record is then computed anew.  Numbers of one solver have its own `Solver.version`."""


@lru_cache(maxsize=4)
def views_of(dataset: str, centred: bool = True) -> Views:
    """The data set, loaded once per process."""
    return load(dataset) if centred else views_of(dataset).with_centring(False)


@lru_cache(maxsize=4)
def covariance_of(dataset: str, centred: bool = True) -> Array:
    """The exact second moment of a data set, kept on disk: with thousands of columns it takes half a minute."""
    return _kept("covariance", views_of(dataset, centred), lambda views: views.covariance)


@lru_cache(maxsize=4)
def eigenvalues_of(dataset: str, centred: bool = True) -> Array:
    """Generalised eigenvalues of a data set, kept on disk: with two views they are its canonical correlations."""
    return _kept(
        "eigenvalues",
        views_of(dataset, centred),
        lambda views: metrics.generalised_eigenvalues(covariance_of(dataset, centred), views.sizes),
    )


def solver_of(job: Job) -> Solver:
    """The solver of a job with its fixed parameters."""
    return make_solver(job.solver, job.protocol.beta, dict(job.protocol.constants))


def make_solver(name: str, beta: float, constants: Mapping[str, Any] = MappingProxyType({})) -> Solver:
    """Solver by name; `beta` goes to those that have a penalty parameter."""
    kind = SOLVERS[name]
    return kind(**({"beta": beta} if hasattr(kind, "beta") else {}), **constants)


def compute(job: Job) -> pd.DataFrame:
    """Run a job and evaluate each of its runs exactly (in float64, on the full data); the result is its record."""
    views = views_of(job.dataset, job.protocol.centred)
    solver = solver_of(job)
    problem = _problem(job, views)
    settings = np.array([setting for _ in job.starts for setting in job.settings])
    curve = _Curve(job, len(solver.epochs), views.n_samples // job.batch_size) if job.trace_points else None
    result = run(
        solver,
        problem,
        views,
        np.repeat(initial_points(solver, views.n_features, job.p, job.starts), len(job.settings), axis=0),
        dict(zip(solver.settings, settings.T, strict=True)),
        job.batch_size,
        job.order,
        shared=job.protocol.shared,
        callback=curve,
    )
    if curve:
        parts = [evaluate(job, solver, views, X, ended=False).assign(samples=at) for at, X in curve.points()]
    else:
        last = evaluate(job, solver, views, result.X, result.tracker)
        parts = [last.assign(samples=result.steps * job.batch_size)]
    lanes = pd.DataFrame(settings, columns=list(solver.settings)).assign(
        start=np.repeat(job.starts, len(job.settings)), stopped_at=result.stopped_at
    )
    frame = pd.concat([pd.concat([lanes, part], axis=1) for part in parts], ignore_index=True)
    return _complete(frame, job, views, result.seconds)


class _Curve:
    """A callback that keeps the iterates at evenly spaced steps of the last pass, and at the start."""

    def __init__(self, job: Job, passes: int, steps: int) -> None:
        points = sorted({round(k * steps / job.trace_points) for k in range(job.trace_points + 1)})
        self._step_of = {at * job.batch_size: at and at + (passes - 1) * steps for at in points}
        self._kept: dict[int, Array] = {}
        self._wanted = set(self._step_of.values())
        self._lanes = job.lanes

    def __call__(self, step: int, state: State) -> None:
        """Keep the iterates of all lanes, NaN in those that were stopped."""
        if step in self._wanted:
            self._kept[step] = every_lane(state.X, state.lanes, self._lanes)

    def points(self) -> list[tuple[int, Array]]:
        """(samples seen, iterates); a step that the lanes did not reach has NaN."""
        nothing = np.full_like(self._kept[0], np.nan)
        return [(samples, self._kept.get(step, nothing)) for samples, step in self._step_of.items()]


def evaluate(
    job: Job, solver: Solver, views: Views, X: Array, tracker: Array | None = None, *, ended: bool = True
) -> pd.DataFrame:
    """Metrics of every lane and its status; where a run has `ended`, also after both post-processings.

    ``quality`` is what the rule for step sizes weighs against Fea: PCC in classical CCA, else Fval as a share of
    its ``bound``.

    A metric that does not exist is NaN: feasibility for solvers of another constraint, and the paper's
    post-processing where its p-by-p matrix is not positive definite.  Correlations are of centred variables, so
    PCC is that of the centred data also where the solver saw them raw; Fea and Fval are those of its own problem.
    """
    merit = make_merit(job.merit, job.protocol.mu)
    K = metrics.cross_moments(X, covariance_of(job.dataset, job.protocol.centred), views.sizes)
    fea = metrics.feasibility(K)
    finite = np.isfinite(fea) & ((fea <= DIVERGED_FEA) | (not solver.joint_constraint))
    K[:, :, ~finite] = np.nan
    columns: dict[str, Array] = {"status": np.where(finite, "done", "diverged")}
    factors = {"": np.broadcast_to(np.eye(job.p), metrics.constraint(K).shape)}
    if ended and solver.joint_constraint:
        approximate = tracker if tracker is not None else _minibatch_constraint(job, views, X)
        factors["_post"] = metrics.orthogonalise(approximate)[0]
        factors["_orth"] = metrics.orthogonalise(metrics.constraint(K))[0]
    for suffix, factor in factors.items():
        form = metrics.congruence(K, factor)
        columns["fval" + suffix] = metrics.objective(form, merit)
        if solver.joint_constraint:
            columns["fea" + suffix] = metrics.feasibility(form)
            if ended and suffix != "_orth":  # there both are rounding
                columns["fea_spectral" + suffix] = metrics.spectral_feasibility(form)
    if views.n_views == 2:
        attainable = eigenvalues_of(job.dataset)[: job.p].sum()  # the denominator of PCC
        centred = K if job.protocol.centred else metrics.cross_moments(X, covariance_of(job.dataset), views.sizes)
        centred[:, :, ~finite] = np.nan
        for suffix, factor in factors.items():
            columns["pcc" + suffix] = metrics.tcc(metrics.congruence(centred, factor)) / attainable
        if ended:
            columns["pcc_paired"] = metrics.paired_correlations(centred) / attainable
    eigenvalues = eigenvalues_of(job.dataset, job.protocol.centred)
    bound = metrics.objective_bound(eigenvalues, job.p, views.n_views, merit)
    classical = views.n_views == 2 and merit.name == "identity"
    columns["quality"] = columns["pcc"] if classical else columns["fval"] / bound
    return pd.DataFrame(columns).assign(bound=bound)


def key_of(job: Job) -> str:
    """Content key of a job on the data as they are on this machine, sixteen hex digits."""
    return records.content_key(job, *origin(job))


def origin(job: Job) -> tuple[str, str]:
    """What a job's numbers come from besides its settings, in words that two machines can compare: code and data."""
    code = f"numerics {NUMERICS}, {job.solver} {SOLVERS[job.solver].version}"
    return code, data_key(views_of(job.dataset, job.protocol.centred))


def data_key(views: Views) -> str:
    """Words that tell any two data sets apart."""
    return repr((views.provenance.checksum, views.sizes, views.scale, views.centred))


def _kept(what: str, views: Views, make: Callable[[Views], Array]) -> Array:
    key = hashlib.sha256(f"{data_key(views)} {NUMERICS}".encode()).hexdigest()[:16]
    return kept_array(KEPT / f"{views.name}-{what}-{key}.npy", lambda: make(views))


def _problem(job: Job, views: Views) -> SampledGCCA:
    return SampledGCCA(views.sizes, make_merit(job.merit, job.protocol.mu))


def _minibatch_constraint(job: Job, views: Views, X: Array) -> Array:
    """``X' M^ X`` on one random minibatch, for the solvers that track nothing."""
    seed = None if job.order is None else [job.order, 3]
    Z = next(views.batches(job.batch_size, seed, np.float64))
    problem = _problem(job, views)
    with np.errstate(over="ignore", invalid="ignore"):  # a lane may have diverged
        return problem.constraint(problem.scores(Z[None], X.astype(np.float64))[0])


def _complete(frame: pd.DataFrame, job: Job, views: Views, seconds: float) -> pd.DataFrame:
    numbers = frame.select_dtypes("float").columns
    frame = frame.assign(**{name: records.rounded(frame[name]) for name in numbers})
    constant = {
        **{name: getattr(job, name) for name in ("dataset", "merit", "batch_size", "p", "solver", "role", "variant")},
        "beta": job.protocol.beta, "order": np.nan if job.order is None else job.order, "lanes": job.lanes,
        "seconds": seconds, "provenance": views.provenance.kind, "key": key_of(job),
    }  # fmt: skip
    frame = frame.assign(**constant)
    unknown = sorted(set(frame) - set(records.COLUMNS))
    if unknown:
        raise ValueError(f"{unknown} are no columns of a record; add them to COLUMNS (and SETTINGS) in records.py")
    return frame.reindex(columns=list(records.COLUMNS))
