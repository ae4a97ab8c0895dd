"""Verdicts: each number that the paper prints beside ours, judged by the tolerances; and attainability."""

import numpy as np
import pandas as pd

from cdfsg.paper.experiments import Experiment
from cdfsg.paper.records import SETTINGS
from cdfsg.paper.reported import QUANTITIES, printed, tolerance_of
from cdfsg.paper.select import select, summarise

COLUMNS = (
    "table", "dataset", "merit", "batch_size", "p", "solver", "quantity", "reported", "flag", "reproduced", "std",
    "runs", "provenance", "tolerance", "verdict",
)  # fmt: skip
VERDICTS = (
    "match", "better", "worse", "diverged-both", "diverged-ours", "diverged-paper", "not-comparable",
)  # fmt: skip

JUDGED_VARIANT = {"CDFSG": "grid", "CDFSG-Ada": "grid", "Landing": "fixed", "RSG+": "permuted"}
"""Which treatment of a solver stands for it in the verdicts; the others are shown beside it."""

ROW = ["batch_size", "p", "solver"]


def judge(reported: float, reproduced: float, quantity: str, provenance: str, flag: str) -> str:
    """Verdict on one number.

    Parameters
    ----------
    reported, reproduced : float
        NaN stands for a run that diverged.
    quantity : str
    provenance : str
        A surrogate is never compared with the paper.
    flag : str
        Not empty if the printed number is impossible or doubtful: then it is no target.
    """
    tolerance = tolerance_of(quantity)
    if flag or provenance == "surrogate" or not tolerance.comparable:
        return "not-comparable"
    if np.isnan(reported):
        return "diverged-both" if np.isnan(reproduced) else "diverged-paper"
    if np.isnan(reproduced):
        return "diverged-ours"
    if abs(reproduced - reported) <= tolerance.around(reported) + 1e-12:  # the bound itself is inside
        return "match"
    higher_is_better = quantity.startswith("pcc")
    return "better" if (reproduced > reported) == higher_is_better else "worse"


def verdicts(experiment: Experiment, runs: pd.DataFrame) -> pd.DataFrame:
    """One row per number that the paper prints in the experiment's table, columns `COLUMNS`."""
    cells = printed(experiment.table)
    ours = final_cells(runs).set_index(ROW)
    seconds = timing(runs)
    rows = []
    for cell in cells.itertuples():
        key = (cell.batch_size, cell.p, cell.solver)
        row = ours.loc[key] if key in ours.index else None
        if cell.quantity == "time_s":
            reproduced, std = seconds.get((*key, JUDGED_VARIANT[cell.solver]), np.nan), np.nan
        elif row is None:
            reproduced, std = np.nan, np.nan
        else:
            reproduced, std = row[cell.quantity], row[cell.quantity + "_std"]
        provenance = str(runs["provenance"].iloc[0])
        rows.append(
            (
                cell.table, cell.dataset, cell.merit, cell.batch_size, cell.p, cell.solver, cell.quantity,
                cell.reported, cell.flag, reproduced, std, 0 if row is None else int(row["runs"]), provenance,
                tolerance_of(cell.quantity).around(cell.reported),
                judge(cell.reported, reproduced, cell.quantity, provenance, cell.flag),
            )
        )  # fmt: skip
    return pd.DataFrame(rows, columns=list(COLUMNS))


def final_cells(runs: pd.DataFrame) -> pd.DataFrame:
    """The cell that stands for each (batch size, p, solver): the selected one, or the fixed setting."""
    cells = summarise(runs[runs["role"] == "reported"])
    cells = cells[cells["variant"] == cells["solver"].map(JUDGED_VARIANT)]
    chosen = select(runs)
    wanted = [
        row.variant != "grid" or chosen.get((row.batch_size, row.p, row.solver)) == _settings(row)
        for row in cells.itertuples()
    ]
    return cells[np.array(wanted, dtype=bool)].reset_index(drop=True)


def timing(runs: pd.DataFrame) -> dict[tuple[int, int, str, str], float]:
    """Median seconds of one lane alone, by (batch size, p, solver, variant)."""
    alone = runs[runs["role"] == "timing"].groupby([*ROW, "variant"])["block_seconds"].median()
    return {key: float(value) for key, value in alone.items()}


def attainability(experiment: Experiment, runs: pd.DataFrame) -> pd.DataFrame:
    """The grid cell nearest to each of the paper's rows for CDFSG and CDFSG-Ada.

    The distance of a cell is the largest difference to a printed number in units of its tolerance, over the
    row's comparable numbers.  A row is attainable if a cell is within 1: the paper's own choice in the grid is
    unknown, so this asks whether *some* choice gives its numbers.

    Returns
    -------
    DataFrame
        One row per printed row: ``batch_size, p, solver, s1, s2, distance, farthest, attainable``.
    """
    cells = summarise(runs[(runs["role"] == "reported") & (runs["variant"] == "grid")])
    rows = []
    for key, targets in printed(experiment.table).groupby(ROW):
        candidates = cells[(cells[ROW] == pd.Series(key, index=ROW)).all(axis=1)]
        targets = targets[[tolerance_of(q).comparable for q in targets["quantity"]]]
        if candidates.empty or targets["reported"].isna().any():
            continue
        gaps = np.abs(candidates[list(targets["quantity"])].to_numpy() - targets["reported"].to_numpy())
        gaps = gaps / [tolerance_of(t.quantity).around(t.reported) for t in targets.itertuples()]
        distances = np.where(np.isnan(gaps).any(axis=1), np.inf, gaps.max(axis=1))
        best = int(distances.argmin())
        rows.append(
            {
                **dict(zip(ROW, key, strict=True)),
                "s1": candidates["s1"].iloc[best],
                "s2": candidates["s2"].iloc[best],
                "distance": distances[best],
                "farthest": QUANTITIES[targets["quantity"].iloc[int(gaps[best].argmax())]],
                "attainable": bool(distances[best] <= 1 + 1e-9),
            }
        )
    return pd.DataFrame(rows)


def landing_three_ways(runs: pd.DataFrame) -> pd.DataFrame:
    """Landing with the first fixed setting, the authors' own in our units, and tuned like CDFSG.

    Returns
    -------
    DataFrame
        One row per (batch size, p, variant) with means, and the number of diverged runs.
    """
    cells = summarise(runs[(runs["role"] == "reported") & (runs["solver"] == "Landing")])
    return cells[
        ["batch_size", "p", "variant", "eta", "omega", "pcc", "fea", "pcc_post", "fea_post", "n_diverged", "runs"]
    ].sort_values(["batch_size", "p", "variant"], ignore_index=True)


def _settings(row: object) -> tuple[float, ...]:
    values = (float(getattr(row, name)) for name in SETTINGS)
    return tuple(value for value in values if not np.isnan(value))
