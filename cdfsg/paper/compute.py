"""From one block to its record: run its lanes and evaluate them exactly.

The numbers of every record come from here; how blocks are carried out is `cdfsg.paper.run`'s matter.
"""

import hashlib
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from cdfsg import metrics
from cdfsg.datasets import Views, load
from cdfsg.files import KEPT, kept_array
from cdfsg.linalg import Array
from cdfsg.merits import MERITS, make_merit
from cdfsg.paper import records
from cdfsg.paper.experiments import DIVERGED_FEA, Block
from cdfsg.paper.fingerprint import code_digest
from cdfsg.problems import SampledGCCA
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
        trace_at=trace_steps(views.n_samples // block.batch_size, block.trace_points),
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


def key_of(block: Block) -> str:
    """Content key of a block on the data as they are on this machine."""
    return records.content_key(block, data_key(views_of(block.dataset, block.centred)), code_of_block(block))


def code_of_block(block: Block) -> str:
    """Digest of the code that the numbers of a block come from."""
    return code_digest(SOLVERS[block.solver].__module__, MERITS[block.merit].__module__)


def trace_steps(steps: int, points: int) -> list[int]:
    """Numbers of the steps at which a pass of `steps` is looked at: its start and `points` more, or none."""
    return sorted({round(k * steps / points) for k in range(points + 1)}) if points else []


def data_key(views: Views) -> str:
    """Words that tell any two data sets apart."""
    return repr((views.provenance.checksum, views.sizes, views.scale, views.centred))


def _kept(what: str, views: Views, make: Callable[[Views], Array]) -> Array:
    key = hashlib.sha256(f"{data_key(views)} {code_digest()}".encode()).hexdigest()[:16]
    path = KEPT / f"{views.name}-{what}-{key}.npy"
    return kept_array(path, lambda: make(views))


def _minibatch_constraint(block: Block, views: Views, X: Array) -> Array:
    """``X' M^ X`` on one random minibatch, for the solvers that track nothing."""
    seed = None if block.order is None else [block.order, 3]
    Z = next(views.batches(block.batch_size, seed, np.float64))
    problem = SampledGCCA(views.sizes, make_merit(block.merit, block.mu))
    with np.errstate(over="ignore", invalid="ignore"):  # a lane may have diverged
        return problem.constraint(problem.project(Z, X.astype(np.float64)))


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
