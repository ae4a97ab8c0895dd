"""Tables for people, from an experiment's records: what was selected, what was traded, what it cost."""

import numpy as np
import pandas as pd

from cdfsg.paper.compute import eigenvalues_of
from cdfsg.paper.experiments import Experiment
from cdfsg.paper.protocols import headline_variant
from cdfsg.paper.records import SETTINGS
from cdfsg.paper.results.reported import load_table
from cdfsg.paper.results.verdicts import final_cells
from cdfsg.paper.select import ROW, grid_cells, select, stands, summarise

EXACT = "exact solver"
"""The batch eigensolver in a table of times."""


def selected(experiment: Experiment, runs: pd.DataFrame) -> pd.DataFrame:
    """Settings that the rule selects: one row per (batch size, p, solver); NaN for what a solver does not have."""
    cells = summarise(runs[runs["role"] == "tuning"])
    chosen = cells[stands(cells, select(runs, experiment.protocol.rule))]
    return chosen[[*ROW, *SETTINGS]].sort_values(ROW, ignore_index=True)


def trade_off(experiment: Experiment, runs: pd.DataFrame) -> pd.DataFrame:
    """Quality and Fea of every grid cell of CDFSG and CDFSG-Ada beside the paper's."""
    cells = grid_cells(runs)
    cells["selected"] = stands(cells, select(runs, experiment.protocol.rule))
    return _beside_the_paper(experiment, runs, cells[[*ROW, "s1", "s2", "quality", "fea", "n_diverged", "selected"]])


def landing_ways(experiment: Experiment, runs: pd.DataFrame) -> pd.DataFrame:
    """Means for Landing at every given setting, and tuned like CDFSG."""
    cells = summarise(runs[(runs["role"] == "reported") & (runs["solver"] == "Landing")])
    table = cells[[*ROW, "variant", "eta", "omega", "quality", "fea", "n_diverged", "runs"]]
    return _beside_the_paper(experiment, runs, table.sort_values([*ROW, "variant"], ignore_index=True))


def tuned(experiment: Experiment, runs: pd.DataFrame) -> pd.DataFrame:
    """Means of our algorithms at their selected settings, and of the others at given and at tuned ones."""
    cells = summarise(runs[runs["role"] == "reported"])
    shown = cells["variant"].isin(["grid", "tuned"]) | (cells["variant"] == cells["solver"].map(headline_variant))
    kept = cells[stands(cells, select(runs, experiment.protocol.rule)) & shown]
    return kept[[*ROW, "variant", "quality", "fea", "n_diverged"]].reset_index(drop=True)


def bounds(runs: pd.DataFrame) -> dict[int, float]:
    """The lowest Fval that a feasible point can have, by p; for the identity merit it is the optimum."""
    return {int(p): float(bound) for p, bound in runs.groupby("p")["bound"].first().items()}


def solver_times(experiment: Experiment, runs: pd.DataFrame, exact: pd.DataFrame | None = None) -> pd.DataFrame:
    """Seconds of a run, the mean of ten alone on their core, and as a ratio to CDFSG's, beside the paper's.

    `low` and `high` bound the ratio of the means with 95 %, by the delta method.
    """
    table = final_cells(experiment, runs)[[*ROW, "seconds", "seconds_std", "runs"]]
    if exact is not None and experiment.merit == "identity":
        places = table[["batch_size", "p"]].drop_duplicates()
        solved = places.merge(exact[["p", "seconds"]], on="p").assign(solver=EXACT)
        table = pd.concat([table, solved], ignore_index=True)
    table["ratio"] = table["seconds"] / _of_cdfsg(table, "seconds")
    spread = table["seconds_std"] / table["seconds"] / np.sqrt(table["runs"])
    reach = 1.96 * np.sqrt(spread**2 + _of_cdfsg(table.assign(spread=spread), "spread") ** 2)
    table["low"], table["high"] = table["ratio"] * (1 - reach), table["ratio"] * (1 + reach)
    cells = load_table(experiment.table)
    target = cells[cells["quantity"] == "time_s"].set_index(ROW)["reported"].rename("reported_seconds")
    table = table.join(target, on=ROW)
    table["reported_ratio"] = table["reported_seconds"] / _of_cdfsg(table, "reported_seconds")
    return table


def printed_ends(experiment: Experiment) -> pd.DataFrame:
    """The measure and Fea that the paper prints at the batch size of its panels, by p and solver."""
    cells = load_table(experiment.table).query(f"batch_size == {experiment.trace_batch_size}")
    ends = cells.pivot(index=["p", "solver"], columns="quantity", values="reported").reset_index()
    return ends.reindex(columns=["p", "solver", experiment.measure, "fea"])


def beta_medians(experiment: Experiment, runs: pd.DataFrame) -> pd.DataFrame:
    """Median over the runs of the table's measure and of Fea along the pass, by (solver, beta, samples), and counts."""
    groups = runs.assign(diverged=runs["fea"].isna()).groupby(["solver", "beta", "samples"])
    return groups[[experiment.measure, "fea"]].median().assign(
        runs=groups.size(), diverged=groups["diverged"].sum()).reset_index()  # fmt: skip


def beta_ends(runs: pd.DataFrame) -> pd.DataFrame:
    """Where the runs under each penalty parameter end: means over those that did not diverge, and counts."""
    last = runs[runs["samples"] == runs["samples"].max()]
    groups = last.assign(diverged=last["status"] == "diverged").groupby(["solver", "beta"])
    counts = {"runs": groups.size(), "n_diverged": groups["diverged"].sum()}
    return groups[["quality", "fea"]].mean().assign(**counts).reset_index()


def unbounded_below(experiment: Experiment) -> float:
    """The penalty parameter below which h is unbounded below on two views: ``3/2 rho_1``, times mu for Huber.

    Here rho_1 is the largest canonical correlation.  Along ``X = s [a; b] / 2^(1/2)`` with its directions a and b,
    ``f(A(X))`` falls like ``- rho_1 (s^3 / 2)^2`` and the barrier grows like ``beta s^6 / 6``; with the Huber merit f
    grows only linearly in that covariance, with slope mu.
    """
    slope = experiment.protocol.mu if experiment.merit == "huber" else 1.0
    slope *= experiment.protocol.pair_weight(experiment.merit)
    return 1.5 * slope * float(eigenvalues_of(experiment.dataset)[0])


def _beside_the_paper(experiment: Experiment, runs: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """Add the printed ``reported_quality`` (Fval as a share of its bound) and ``reported_fea``."""
    target = load_table(experiment.table).pivot(index=ROW, columns="quantity", values="reported")
    printed = target.reindex(columns=[experiment.measure, "fea"])
    found = table.join(printed.add_prefix("reported_"), on=ROW)
    scale = found["p"].map(runs.groupby("p")["bound"].first()) if experiment.measure == "fval" else 1.0
    found["reported_quality"] = found[f"reported_{experiment.measure}"] / scale
    return found.drop(columns=f"reported_{experiment.measure}", errors="ignore")


def _of_cdfsg(table: pd.DataFrame, column: str) -> pd.Series:
    reference = table[table["solver"] == "CDFSG"].set_index(ROW[:2])[column]
    return table[ROW[:2]].join(reference.rename("reference"), on=ROW[:2])["reference"]
