"""Summaries of the runs of a grid cell, the selection rule, and which points of the grid are near the paper."""

from collections.abc import Callable, Iterable, Mapping

import numpy as np
import pandas as pd

from cdfsg.linalg import Array
from cdfsg.paper.experiments import Experiment, Place, Plan
from cdfsg.paper.protocols import ADOPTED, ELIGIBLE_FEA, OURS, Setting, headline_variant
from cdfsg.paper.records import METRICS, SAME_RUN, SETTINGS
from cdfsg.paper.results.reported import distances, printed_rows

ROW = ["batch_size", "p", "solver"]
"""Columns that name a row of a table."""

NEAR = 3.0
"""Tolerances within which the tuning runs of a point must be of a printed row, for its ten runs to be wanted.  Within
two, one of the fifteen rows that some point attains would be lost: three runs scatter more than ten."""

NUMBERS = [*METRICS, "seconds"]
"""Columns of which a cell has the mean and the deviation."""


def summarise(runs: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard deviation over the runs of each cell; no average exists where one of them diverged."""
    groups = runs.assign(diverged=runs["status"] == "diverged").groupby(SAME_RUN, dropna=False, sort=False)
    mean = groups[NUMBERS].mean()
    std = groups[NUMBERS].std(ddof=1).add_suffix("_std")
    counts = groups.agg(runs=("status", "size"), n_diverged=("diverged", "sum"), fea_worst=("fea", "max"))
    table = pd.concat([mean, std, counts], axis=1).reset_index()
    table.loc[table["n_diverged"] > 0, NUMBERS] = np.nan
    return table


def _less_fea(cells: pd.DataFrame) -> pd.Series:
    return cells["quality"] - cells["fea"].fillna(0)


def _least_fea_near_the_best(cells: pd.DataFrame) -> pd.Series:
    near = cells["quality"] >= 0.95 * cells.groupby(ROW)["quality"].transform("max")
    return -cells["fea"].fillna(0) - 100.0 * ~near


RULES: dict[str, tuple[Callable[[pd.DataFrame], pd.Series], list[str]]] = {
    "quality - fea": (_less_fea, ROW),
    "quality": (lambda cells: cells["quality"], ROW),
    "quality - fea_post": (lambda cells: cells["quality"] - cells["fea_post"].fillna(0), ROW),
    "lowest fval": (lambda cells: -cells["fval"].fillna(-cells["quality"]), ROW),
    "lowest fea near the best quality": (_least_fea_near_the_best, ROW),
    "one point per p": (_less_fea, ["p", "solver"]),
    "one point per table": (_less_fea, ["solver"]),
}
"""Rules for the step sizes: what is maximised over the grid, and over which places together.

Solvers of another constraint have no Fea: for them the quality decides alone.  Near the best means within 5 %.
"""


def select(runs: pd.DataFrame, rule: str = ADOPTED.rule) -> dict[Place, Setting]:
    """Settings of each (batch size, p, solver) that a rule selects by the mean of the tuning runs.

    Cells with a diverged run or with Fea > 1 in any run are out; a key is missing where no cell is left.  Where one
    point serves several places, such a cell counts as -1 at its place.
    """
    score, together = RULES[rule]
    cells = summarise(runs[runs["role"] == "tuning"])
    out = (cells["n_diverged"] > 0) | (cells["fea_worst"] > ELIGIBLE_FEA)
    cells.loc[out, NUMBERS] = np.nan
    cells["score"] = score(cells).where(~out, -1.0 if together != ROW else np.nan)
    if together != ROW:
        cells["score"] = cells.groupby([*together, *SETTINGS], dropna=False)["score"].transform("mean")
        best = cells.groupby(together)["score"].transform("max")
        cells["score"] = cells["score"].where(~out & (cells["score"] == best))
    scored = cells.dropna(subset=["score"])
    best = scored.loc[scored.groupby(ROW)["score"].idxmax()]
    return {(cell.batch_size, cell.p, cell.solver): settings_of(cell) for cell in best.itertuples()}


def plan(experiment: Experiment, runs: pd.DataFrame) -> Plan:
    """What the tuning runs among `runs` decide: the selections, and the points near a printed row."""
    tuning = runs[runs["role"] == "tuning"]
    cells, near = summarise(tuning), {}
    for place, row in printed_rows([experiment.table], OURS).groupby(ROW):
        mine = rows_at(cells, place)
        close = mine[distances(mine[[experiment.measure, "fea", "fea_post"]].to_numpy(), row) <= NEAR]
        near[place] = tuple(settings_of(cell) for cell in close.itertuples())
    return Plan(select(tuning, experiment.protocol.rule), near)


def grid_cells(runs: pd.DataFrame) -> pd.DataFrame:
    """Summaries of every point of the grids that stand for a solver: of the reported runs, else of the tuning runs."""
    of_grid = runs[(runs["variant"] == "grid") & (runs["solver"].map(headline_variant) == "grid")]
    parts = [summarise(of_grid[of_grid["role"] == role]) for role in ("reported", "tuning")]
    return pd.concat(parts, ignore_index=True).drop_duplicates(SAME_RUN, ignore_index=True)


def rows_at(table: pd.DataFrame, place: Iterable[object]) -> pd.DataFrame:
    """The rows of a table at a (batch size, p, solver)."""
    return table[(table[ROW] == list(place)).all(axis=1)]


def stands(cells: pd.DataFrame, selected: Mapping[Place, Setting]) -> Array:
    """Whether each cell is at given settings, or the selected one of its grid."""
    of_grid = [selected.get((cell.batch_size, cell.p, cell.solver)) == settings_of(cell) for cell in cells.itertuples()]
    return np.array(of_grid, dtype=bool) | (cells["variant"] != "grid").to_numpy()


def settings_of(cell: object) -> Setting:
    """The settings of a cell (a row with the columns `SETTINGS`), without those that its solver does not have."""
    values = (float(getattr(cell, name)) for name in SETTINGS)
    return tuple(value for value in values if not np.isnan(value))
