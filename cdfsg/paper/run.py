"""From a specification to its records: run the blocks that are missing, in parallel and resumably."""

import hashlib
import io
import platform
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from cdfsg import metrics
from cdfsg.datasets import DownloadError, Views, load
from cdfsg.files import KEPT, write_atomically
from cdfsg.linalg import Array
from cdfsg.paper import distribute, records
from cdfsg.paper.experiments import DIVERGED_FEA, Block, Experiment
from cdfsg.paper.select import select
from cdfsg.problems import SampledGCCA, make_merit
from cdfsg.solvers import SOLVERS, Solver
from cdfsg.solvers.lanes import Outcome, initial_points, run


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


def solver_of(block: Block) -> Solver[Any]:
    """The solver of a block with its fixed parameters."""
    kind = SOLVERS[block.solver]
    beta = {"beta": block.beta} if hasattr(kind, "beta") else {}
    return kind(**beta, **dict(block.constants))


def compute(block: Block) -> pd.DataFrame:
    """Run a block and evaluate each of its runs exactly (in float64, on the full data)."""
    views = views_of(block.dataset, block.centred)
    solver = solver_of(block)
    problem = SampledGCCA(views.sizes, make_merit(block.merit, block.mu))
    starts = np.repeat(block.starts, len(block.settings))
    settings = np.array([setting for _ in block.starts for setting in block.settings])
    outcome = run(
        solver,
        problem,
        views,
        np.repeat(initial_points(solver, views.n_features, block.p, block.starts), len(block.settings), axis=1),
        dict(zip(solver.settings, settings.T, strict=True)),
        block.batch_size,
        block.order,
        shared=block.shared,
        trace_at=_trace_steps(block, views),
    )
    points = outcome.trace or [(outcome.steps * block.batch_size, outcome.X)]
    frames = [
        evaluate(block, solver, views, X, outcome.tracker if X is outcome.X else None).assign(samples=samples)
        for samples, X in points
    ]
    lanes = pd.DataFrame(settings, columns=list(solver.settings)).assign(
        start=starts, stopped_at=outcome.stopped_at
    )
    frame = pd.concat([pd.concat([lanes, part], axis=1) for part in frames], ignore_index=True)
    return _complete(frame, block, views, outcome)


def evaluate(block: Block, solver: Solver[Any], views: Views, X: Array, tracker: Array | None) -> pd.DataFrame:
    """Metrics of every lane before and after both post-processings, and its status.

    ``quality`` is what the rule for step sizes weighs against Fea: PCC in classical CCA, else Fval as a share of
    its ``bound``.

    A metric that does not exist is NaN: feasibility for solvers of another constraint, and the paper's
    post-processing where its p-by-p matrix is not positive definite.  Correlations are of centred variables, so
    PCC is that of the centred data also where the solver saw them raw; Fea and Fval are those of its own problem.
    """
    merit = make_merit(block.merit, block.mu)
    K = metrics.compress(X, covariance_of(block.dataset, block.centred), views.sizes)
    fea = metrics.feasibility(K)
    finite = np.isfinite(fea) & ((fea <= DIVERGED_FEA) | (not solver.joint))
    K[:, :, ~finite] = np.nan
    columns: dict[str, Array] = {"status": np.where(finite, "done", "diverged")}
    factors = {"": np.broadcast_to(np.eye(block.p), metrics.constraint(K).shape)}
    if solver.joint:
        approximate = tracker if tracker is not None else _minibatch_constraint(block, views, X)
        factors["_post"] = metrics.orthogonalise(approximate)[0]
        factors["_orth"] = metrics.orthogonalise(metrics.constraint(K))[0]
    for suffix, factor in factors.items():
        form = metrics.transform(K, factor)
        columns["fval" + suffix] = metrics.objective(form, merit)
        if solver.joint:
            columns["fea" + suffix] = metrics.feasibility(form)
            if suffix != "_orth":  # there both are rounding
                columns["fea_spectral" + suffix] = metrics.spectral_feasibility(form)
    if views.n_views == 2:
        attainable = eigenvalues_of(block.dataset)[: block.p].sum()  # the denominator of PCC
        centred = K if block.centred else metrics.compress(X, covariance_of(block.dataset), views.sizes)
        centred[:, :, ~finite] = np.nan
        for suffix, factor in factors.items():
            columns["pcc" + suffix] = metrics.tcc(metrics.transform(centred, factor)) / attainable
        columns["pcc_paired"] = metrics.paired_correlations(centred) / attainable
    eigenvalues = eigenvalues_of(block.dataset, block.centred)
    bound = metrics.objective_bound(eigenvalues, block.p, views.n_views, merit)
    classical = views.n_views == 2 and merit.name == "identity"
    columns["quality"] = columns["pcc"] if classical else columns["fval"] / bound
    return pd.DataFrame(columns).assign(bound=bound)


def run_blocks(blocks: Sequence[Block], folder: Path, jobs: int) -> pd.DataFrame:
    """Run what is missing of `blocks`, report progress on standard error, and return all their records.

    Each record is written as soon as it arrives: a run that is killed loses only the blocks that were under way.
    """
    keyed = {block: folder / f"{key_of(block)}.csv" for block in blocks}
    missing = sorted((b for b in blocks if not keyed[b].exists()), key=lambda b: -b.cost)
    progress = distribute.Progress(missing, len(blocks))
    tasks = [(block, _origin(block)) for block in missing]
    for block, frame, seconds in distribute.each(compute_alone, tasks, jobs):
        records.write(frame, keyed[block])
        progress.report(block, seconds)
    return records.read(keyed.values())


def compute_alone(block: Block, origin: str) -> tuple[Block, pd.DataFrame, float]:
    """Compute a block in a process that does nothing else, maybe on another machine; with its seconds in all.

    Raises
    ------
    ValueError
        If the block fails, or code and data are not those of `origin`; the message names the block.
    """
    began = time.perf_counter()
    # Independent blocks on one BLAS thread each beat threads inside small products.
    with threadpool_limits(1):
        try:
            if _origin(block) != origin:
                raise ValueError(
                    f"the worker {platform.node()} has {_origin(block)}, but the process that asked has {origin}; "
                    "give both the same version of cdfsg and the same data files, and start the worker anew"
                )
            frame = compute(block)
        except (ValueError, OSError, DownloadError) as error:
            raise ValueError(f"{block.describe()}: {error}") from error
    return block, frame, time.perf_counter() - began


def _origin(block: Block) -> str:
    """What a record's key is made of, in words that two machines can compare."""
    data = data_key(views_of(block.dataset, block.centred))
    return f"code {records.code_digest()[:8]}, data {data}, key {key_of(block)}"


def run_experiment(experiment: Experiment, folder: Path, jobs: int) -> pd.DataFrame:
    """Both stages of an experiment: runs at given settings, then runs at the selected ones."""
    first = run_blocks(experiment.first_stage(), folder, jobs)
    chosen = select(first)
    second = experiment.second_stage(chosen)
    # Timing runs come last, so that nothing else competes with them than another timing run.
    others = run_blocks([block for block in second if block.role != "timing"], folder, jobs)
    timing = run_blocks([block for block in second if block.role == "timing"], folder, jobs)
    return pd.concat([first, others, timing], ignore_index=True)


def run_betas(experiment: Experiment, runs: pd.DataFrame, folder: Path, jobs: int) -> pd.DataFrame:
    """The curves under other penalty parameters, at the settings that `runs` of the experiment select."""
    return run_blocks(experiment.beta_stage(select(runs)), folder, jobs)


def run_ablations(experiment: Experiment, runs: pd.DataFrame, folder: Path, jobs: int) -> pd.DataFrame:
    """Every treatment of an experiment: its own selection of step sizes, then the reported runs at them.

    `runs` of the experiment select the settings for the runs in other data orders.
    """
    tuning = run_blocks(experiment.ablation_tuning(), folder, jobs)
    treated = {str(name): select(group) for name, group in tuning.groupby("variant")}
    final = run_blocks(experiment.ablation_runs(select(runs), treated), folder, jobs)
    return pd.concat([tuning, final], ignore_index=True)


def key_of(block: Block) -> str:
    """Content key of a block on the data as they are on this machine."""
    return records.content_key(block, data_key(views_of(block.dataset, block.centred)))


def data_key(views: Views) -> str:
    """Words that tell any two data sets apart."""
    return repr((views.provenance.checksum, views.sizes, views.scale, views.centred))


def _kept(what: str, views: Views, make: Callable[[Views], Array]) -> Array:
    key = hashlib.sha256(f"{data_key(views)} {records.code_digest()}".encode()).hexdigest()[:16]
    path = KEPT / f"{views.name}-{what}-{key}.npy"
    if not path.exists():
        buffer = io.BytesIO()
        np.save(buffer, make(views))
        write_atomically(path, buffer.getvalue())
    array: Array = np.load(path)
    return array


def _minibatch_constraint(block: Block, views: Views, X: Array) -> Array:
    """``X' M^ X`` on one random minibatch, for the solvers that track nothing."""
    seed = None if block.order is None else [block.order, 3]
    Z = next(views.batches(block.batch_size, seed, np.float64))
    problem = SampledGCCA(views.sizes, make_merit(block.merit, block.mu))
    return problem.constraint(problem.project(Z, X.astype(np.float64)))


def _trace_steps(block: Block, views: Views) -> list[int]:
    if not block.trace_points:
        return []
    steps = views.n_samples // block.batch_size
    return sorted({round(k * steps / block.trace_points) for k in range(block.trace_points + 1)})


def _complete(frame: pd.DataFrame, block: Block, views: Views, outcome: Outcome) -> pd.DataFrame:
    constant = {
        "dataset": block.dataset,
        "merit": block.merit,
        "batch_size": block.batch_size,
        "p": block.p,
        "solver": block.solver,
        "role": block.role,
        "variant": block.variant,
        "beta": block.beta,
        "order": np.nan if block.order is None else block.order,
        "lanes": block.lanes,
        "block_seconds": outcome.seconds,
        "provenance": views.provenance.kind,
        "key": key_of(block),
    }
    frame = frame.assign(**constant)
    unknown = sorted(set(frame) - set(records.COLUMNS))
    if unknown:
        raise ValueError(f"{unknown} are no columns of a record; add them to COLUMNS (and SETTINGS) in records.py")
    return frame.reindex(columns=list(records.COLUMNS))
