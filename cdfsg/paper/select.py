"""Summaries of the runs of a grid cell, the selection rule, and which points of the grid are near the paper."""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from cdfsg.linalg import Array
from cdfsg.paper.experiments import Experiment, Plan
from cdfsg.paper.protocols import ELIGIBLE_FEA, Setting, headline_variant
from cdfsg.paper.records import SAME_RUN, SETTINGS
from cdfsg.paper.results.reported import distances, load_rows

ROW = ["batch_size", "p", "solver"]
"""Columns that name a row of a table."""

NEAR = 3.0
"""Tolerances within which the tuning runs of a point must be of a printed row, for its ten runs to be wanted.  Within
two, one of the fifteen rows that some point attains would be lost: three runs scatter more than ten."""

METRICS = (
    "quality", "pcc", "pcc_paired", "fval", "fea", "fea_spectral",
    "pcc_post", "fea_post", "fea_spectral_post", "fval_post", "pcc_orth", "fea_orth", "fval_orth",
)  # fmt: skip


def summarise(runs: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard deviation over the runs of each cell; no average exists where one of them diverged."""
    groups = runs.assign(diverged=runs["status"] == "diverged").groupby(SAME_RUN, dropna=False, sort=False)
    mean = groups[list(METRICS)].mean()
    std = groups[list(METRICS)].std(ddof=1).add_suffix("_std")
    counts = groups.agg(runs=("status", "size"), n_diverged=("diverged", "sum"), fea_worst=("fea", "max"))
    table = pd.concat([mean, std, counts], axis=1).reset_index()
    table.loc[table["n_diverged"] > 0, list(METRICS)] = np.nan
    return table


def select(runs: pd.DataFrame) -> dict[tuple[int, int, str], tuple[float, ...]]:
    """Settings of each (batch size, p, solver) that maximise quality - Fea, averaged over the tuning runs.

    Cells with a diverged run or with Fea > 1 in any run are out; a key is missing where no cell is left.  Solvers
    of another constraint have no Fea: for them quality decides alone.
    """
    cells = summarise(runs[runs["role"] == "tuning"])
    cells = cells[(cells["n_diverged"] == 0) & ~(cells["fea_worst"] > ELIGIBLE_FEA)]
    chosen = {}
    for (batch_size, p, solver), group in cells.groupby(["batch_size", "p", "solver"]):
        best = group.loc[(group["quality"] - group["fea"].fillna(0)).idxmax()]
        chosen[int(batch_size), int(p), str(solver)] = settings_of(best)
    return chosen


def plan(experiment: Experiment, runs: pd.DataFrame) -> Plan:
    """What the tuning runs among `runs` decide: selections under every treatment, and points near a printed row."""
    tuning = runs[runs["role"] == "tuning"]
    selected = {
        ("" if variant == "grid" else str(variant), *place): setting
        for variant, part in tuning.groupby("variant")
        for place, setting in select(part).items()
    }
    near: dict[tuple[int, int, str], tuple[Setting, ...]] = {}
    cells = summarise(tuning[tuning["variant"] == "grid"])
    for place, targets in load_rows(experiment.table).items() if experiment.table else ():
        mine = rows_at(cells, place)
        close = mine[distances(mine, targets) <= NEAR]
        near[place] = tuple(settings_of(cell) for cell in close.itertuples())
    return Plan(selected, near)


def grid_cells(runs: pd.DataFrame) -> pd.DataFrame:
    """Summaries of every point of the grids that stand for a solver: of the reported runs, else of the tuning runs."""
    of_grid = runs[(runs["variant"] == "grid") & (runs["solver"].map(headline_variant) == "grid")]
    parts = [summarise(of_grid[of_grid["role"] == role]) for role in ("reported", "tuning")]
    return pd.concat(parts, ignore_index=True).drop_duplicates(SAME_RUN, ignore_index=True)


def rows_at(table: pd.DataFrame, place: Iterable[object]) -> pd.DataFrame:
    """The rows of a table at a (batch size, p, solver)."""
    return table[(table[ROW] == list(place)).all(axis=1)]


def stands(cells: pd.DataFrame, runs: pd.DataFrame) -> Array:
    """Whether each cell is at given settings, or the one of its grid that `select` takes from the runs."""
    chosen = select(runs)
    return np.array(
        [
            cell.variant != "grid" or chosen.get((cell.batch_size, cell.p, cell.solver)) == settings_of(cell)
            for cell in cells.itertuples()
        ],
        dtype=bool,
    )


def settings_of(cell: object) -> tuple[float, ...]:
    """The settings of a cell (a row with the columns `SETTINGS`), without those that its solver does not have."""
    values = (float(getattr(cell, name)) for name in SETTINGS)
    return tuple(value for value in values if not np.isnan(value))
