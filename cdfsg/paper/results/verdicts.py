"""Verdicts: each number that the paper prints beside ours, judged by the tolerances; and attainability."""

import numpy as np
import pandas as pd

from cdfsg import checksums
from cdfsg.files import RECORDS
from cdfsg.paper import archive
from cdfsg.paper.experiments import EXPERIMENTS, Experiment
from cdfsg.paper.protocols import OTHERS, OURS, headline_variant
from cdfsg.paper.results.reported import (
    INAPPLICABLE,
    QUANTITIES,
    distances,
    gaps,
    load_rows,
    load_table,
    tolerance_of,
    unprinted,
)
from cdfsg.paper.select import ROW, grid_cells, plan, rows_at, stands, summarise

COLUMNS = (
    "table", "dataset", "merit", "batch_size", "p", "solver", "quantity", "reported", "flag", "reproduced", "std",
    "runs", "provenance", "tolerance", "verdict",
)  # fmt: skip
VERDICTS = ("match", "better", "worse", "diverged-both", "diverged-ours", "diverged-paper", "not-comparable")


def judge(reported: float, reproduced: float, quantity: str, flag: str = "") -> str:
    """Verdict on one number; NaN stands for a run that diverged, a flag for a printed number that is no target."""
    tolerance = tolerance_of(quantity)
    if flag or not tolerance.comparable:
        return "not-comparable"
    if np.isnan(reported):
        return "diverged-both" if np.isnan(reproduced) else "diverged-paper"
    if np.isnan(reproduced):
        return "diverged-ours"
    if abs(reproduced - reported) <= tolerance.around(reported) + 1e-12:  # the bound itself is inside
        return "match"
    return "better" if (reproduced > reported) == higher_is_better(quantity) else "worse"


def higher_is_better(quantity: str) -> bool:
    """Whether a larger value is the better one: of PCC it is, not of Fea and Fval, which is minimised."""
    return quantity.startswith("pcc")


def judged_ours(judged: pd.DataFrame) -> pd.DataFrame:
    """The comparable numbers of CDFSG and CDFSG-Ada, with a column ``good``: match or better."""
    ours = judged[judged["solver"].isin(OURS) & (judged["verdict"] != "not-comparable")]
    return ours.assign(good=ours["verdict"].isin(["match", "better", "diverged-both"]))


def counted(judged: pd.DataFrame) -> pd.DataFrame:
    """The verdicts that are counted: without times, which are never judged, and quantities that a solver lacks."""
    return judged[(judged["quantity"] != "time_s") & (judged["flag"] != INAPPLICABLE)]


def verdicts(experiment: Experiment, runs: pd.DataFrame) -> pd.DataFrame:
    """One row per number that the paper prints in the experiment's table, and of a registered solver that it lacks."""
    if not experiment.table:
        return pd.DataFrame(columns=list(COLUMNS))
    _require_runs(experiment, runs)
    cells = pd.concat([load_table(experiment.table), *(unprinted(experiment.table, solver) for solver in OTHERS)])
    cells = cells.sort_values("batch_size", kind="stable", ignore_index=True)
    ours, seconds = final_cells(runs).set_index(ROW), timing(runs)
    found = []
    for cell in cells.itertuples():
        key = (cell.batch_size, cell.p, cell.solver)
        row = ours.loc[key] if key in ours.index else {"runs": 0}
        value, std = row.get(cell.quantity, np.nan), row.get(f"{cell.quantity}_std", np.nan)
        if cell.quantity == "time_s":
            value = seconds.get((*key, headline_variant(cell.solver)), np.nan)
        tolerance = tolerance_of(cell.quantity).around(cell.reported)
        verdict = judge(cell.reported, value, cell.quantity, cell.flag)
        found.append((value, std, int(row["runs"]), tolerance, verdict))
    added = pd.DataFrame(found, columns=["reproduced", "std", "runs", "tolerance", "verdict"])
    return cells.join(added).assign(provenance=runs["provenance"].iloc[0])[list(COLUMNS)]


def _require_runs(experiment: Experiment, runs: pd.DataFrame) -> None:
    """Raise ValueError if whole jobs are missing: a run that is not there has not diverged."""
    found = runs.groupby(["batch_size", "p", "solver", "role", "variant"])["key"].nunique().to_dict()
    missing = []
    for job in experiment.jobs(plan(experiment, runs)):
        place = (job.batch_size, job.p, job.solver, job.role, job.variant)
        found[place] = found.get(place, 0) - 1
        if found[place] < 0:
            missing.append(job.describe())
    if missing:
        raise ValueError(
            f"the records of {experiment.name} lack {len(missing)} jobs, the first is {missing[0]}; make reproduce"
        )


def final_cells(runs: pd.DataFrame) -> pd.DataFrame:
    """The cell that stands for each (batch size, p, solver): the selected one, or the fixed setting."""
    cells = summarise(runs[runs["role"] == "reported"])
    cells = cells[cells["variant"] == cells["solver"].map(headline_variant)]
    return cells[stands(cells, runs)].reset_index(drop=True)


def timing(runs: pd.DataFrame) -> dict[tuple[int, int, str, str], float]:
    """Median seconds of one lane alone, by (batch size, p, solver, variant)."""
    return runs[runs["role"] == "timing"].groupby([*ROW, "variant"])["seconds"].median().to_dict()


def attainability(experiment: Experiment, runs: pd.DataFrame) -> pd.DataFrame:
    """The grid cell nearest to each of the paper's rows for CDFSG and CDFSG-Ada.

    The distance of a cell is the largest difference to a printed number in units of its tolerance, over the row's
    comparable numbers; `farthest` names that number.  A row is attainable if a cell is within 1: the paper's own
    choice in the grid is unknown, so this asks whether *some* choice gives its numbers.
    """
    columns = [*ROW, "s1", "s2", "distance", "farthest", "farthest_is", "attainable"]
    if not experiment.table:
        return pd.DataFrame(columns=columns)
    cells, rows = grid_cells(runs), []
    for place, targets in load_rows(experiment.table).items():
        candidates = rows_at(cells, place)
        if candidates.empty:
            continue
        reach = distances(candidates, targets)
        best = int(reach.argmin())
        distance, differences = reach[best], gaps(candidates, targets)[best]
        farthest = int(np.abs(differences).argmax())
        quantity = str(targets.index[farthest])
        found = [candidates["s1"].iloc[best], candidates["s2"].iloc[best], distance, QUANTITIES[quantity]]
        better = (differences[farthest] > 0) == higher_is_better(quantity)
        rows.append([*place, *found, "better" if better else "worse", bool(distance <= 1 + 1e-9)])
    return pd.DataFrame(rows, columns=columns)


def write() -> pd.DataFrame:
    """Judge every experiment with published records and write ``data/records/verdicts.csv``."""
    frames = [verdicts(e, archive.runs_of(e)) for e in EXPERIMENTS.values() if archive.exists(e)]
    if not frames:
        raise FileNotFoundError(f"there are no records in {RECORDS}; make them with: make reproduce")
    table = pd.concat(frames, ignore_index=True)
    checksums.write(RECORDS / "verdicts.csv", table.to_csv(index=False, lineterminator="\n"))
    return table


def read() -> pd.DataFrame:
    """The published ``data/records/verdicts.csv``."""
    # An empty flag is text, not a missing value.
    missing = dict.fromkeys(("reported", "reproduced", "std", "tolerance"), "")
    remedy = "make it anew with: python -m cdfsg verdict"
    return checksums.read_csv(RECORDS / "verdicts.csv", remedy, keep_default_na=False, na_values=missing)
