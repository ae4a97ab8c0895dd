"""Verdicts: each printed number beside ours; what chance gives; attainability."""

from collections import Counter

import numpy as np
import pandas as pd
from scipy import stats

from cdfsg import checksums
from cdfsg.files import RECORDS
from cdfsg.paper import archive
from cdfsg.paper.experiments import Experiment
from cdfsg.paper.protocols import OTHERS, OURS, headline_variant
from cdfsg.paper.results import reported as paper
from cdfsg.paper.select import ROW, grid_cells, plan, rows_at, select, stands, summarise

COLUMNS = (
    "table", "dataset", "merit", "batch_size", "p", "solver", "quantity", "reported", "flag", "reproduced", "std",
    "low", "high", "runs", "provenance", "tolerance", "verdict", "equivalence",
)  # fmt: skip
COUNTED = (
    "match", "better", "worse", "higher", "lower", "beyond-the-optimum", "diverged-both", "diverged-ours",
    "diverged-paper",
)  # fmt: skip
"""Verdicts on independent numbers: better and worse are said of our algorithms, higher and lower of competitors."""
VERDICTS = (*COUNTED, "derived", "n/a", "not-comparable")
PERMUTATIONS = 999


def judge(
    reported: float, reproduced: float, quantity: str, flag: str = "", *, ours: bool = True, optimum: float = -np.inf
) -> str:
    """Verdict on one number; NaN stands for a run that diverged, a flag for a printed number that is no target.

    An Fval below the `optimum` is an infeasible point's, so that it is neither a match nor better.
    """
    if flag == paper.INAPPLICABLE:
        return "n/a"
    if flag or not paper.tolerance_of(quantity).comparable:
        return "not-comparable"
    if quantity in paper.DERIVED:
        return "derived"
    if np.isnan(reported):
        return "diverged-both" if np.isnan(reproduced) else "diverged-paper"
    if np.isnan(reproduced):
        return "diverged-ours"
    if quantity == "fval" and reproduced < optimum * (1 + 1e-9):
        return "beyond-the-optimum"
    # The bound itself is inside.
    if abs(reproduced - reported) <= paper.tolerance_of(quantity).around(reported) + 1e-12:
        return "match"
    if not ours:
        return "higher" if reproduced > reported else "lower"
    return "better" if (reproduced > reported) == higher_is_better(quantity) else "worse"


def equivalence(reported: float, reproduced: float, std: float, runs: int, tolerance: float) -> str:
    """Whether two averages of as many runs differ by less than the tolerance: two one-sided tests at 5 %.

    The printed average is taken to scatter like ours.  "equivalent": the 90 % interval of the difference lies within
    the tolerance; "different": it lies outside; else "undecided".
    """
    if np.isnan([reported, reproduced, std]).any() or runs < 2:
        return ""
    reach = stats.t.ppf(0.95, 2 * runs - 2) * std * np.sqrt(2 / runs)
    apart = abs(reproduced - reported)
    if apart + reach <= tolerance:
        return "equivalent"
    return "different" if apart - reach > tolerance else "undecided"


def higher_is_better(quantity: str) -> bool:
    """Whether a larger value is the better one: PCC, not Fea and Fval."""
    return quantity.startswith("pcc")


def counted(judged: pd.DataFrame) -> pd.DataFrame:
    """The verdicts that are counted: on independent numbers that can be compared."""
    return judged[judged["verdict"].isin(COUNTED)]


def verdicts(experiment: Experiment, runs: pd.DataFrame) -> pd.DataFrame:
    """A row per number of the paper's table, and of each registered solver that it lacks."""
    if not experiment.table:
        return pd.DataFrame(columns=list(COLUMNS))
    _require_runs(experiment, runs)
    more = (paper.unprinted(experiment.table, solver) for solver in OTHERS)
    cells = pd.concat([paper.load_table(experiment.table), *more])
    cells = cells.sort_values("batch_size", kind="stable", ignore_index=True)
    ours, rows = final_cells(experiment, runs).set_index(ROW).to_dict("index"), []
    optimum = runs.groupby("p")["bound"].first()
    for cell in cells.to_dict("records"):
        row = ours.get((cell["batch_size"], cell["p"], cell["solver"]), {"runs": 0})
        quantity, reported = cell["quantity"], cell["reported"]
        name = column_of(quantity, experiment)
        value, std, count = row.get(name, np.nan), row.get(f"{name}_std", np.nan), int(row["runs"])
        reach = stats.t.ppf(0.975, count - 1) * std / np.sqrt(count) if count > 1 else np.nan
        tolerance, is_ours = paper.tolerance_of(quantity).around(reported), cell["solver"] in OURS
        verdict = judge(reported, value, quantity, cell["flag"], ours=is_ours, optimum=float(optimum[cell["p"]]))
        same = equivalence(reported, value, std, count, tolerance) if verdict in COUNTED else ""
        rows.append(
            {**cell, "reproduced": value, "std": std, "low": value - reach, "high": value + reach, "runs": count,
             "tolerance": tolerance, "verdict": verdict, "equivalence": same}
        )  # fmt: skip
    return pd.DataFrame(rows).assign(provenance=runs["provenance"].iloc[0])[list(COLUMNS)]


def column_of(quantity: str, experiment: Experiment) -> str:
    """Column of a record that stands for a printed quantity under the experiment's protocol."""
    norm, pcc = experiment.protocol.norm, experiment.protocol.pcc
    return {"time_s": "seconds", "fea": norm, "fea_post": f"{norm}_post", "pcc": pcc}.get(quantity, quantity)


def chance(judged: pd.DataFrame) -> tuple[float, float]:
    """How many numbers match when the printed rows are permuted within each table, p and kind of solver.

    Mean and 95 % quantile over `PERMUTATIONS`: levels survive a permutation, so this is what levels alone give.
    """
    counts, rng = np.zeros(PERMUTATIONS), np.random.default_rng(1)
    independent = counted(judged)
    for _, block in independent.groupby(["table", "p", independent["solver"].isin(OURS)]):
        wide = block.pivot(
            index=["batch_size", "solver"], columns="quantity", values=["reported", "reproduced", "tolerance"]
        )
        apart = np.abs(wide["reproduced"].to_numpy()[:, None] - wide["reported"].to_numpy())
        within = (apart <= wide["tolerance"].to_numpy() + 1e-12).sum(axis=2)  # of each of our rows and printed row
        for n in range(PERMUTATIONS):
            order = rng.permutation(len(within))
            counts[n] += within[np.arange(len(within)), order].sum()
    return float(counts.mean()), float(np.quantile(counts, 0.95))


def _require_runs(experiment: Experiment, runs: pd.DataFrame) -> None:
    """Raise ValueError if whole jobs are missing: a run that is not there has not diverged."""
    columns = [*ROW, "role", "variant"]
    jobs = experiment.jobs(plan(experiment, runs))
    places = [tuple(getattr(job, name) for name in columns) for job in jobs]
    found = Counter(runs.drop_duplicates("key")[columns].itertuples(index=False, name=None))
    if missing := Counter(places) - found:
        first = jobs[places.index(next(iter(missing)))].describe()
        raise ValueError(
            f"the records of {experiment.name} lack {missing.total()} jobs, the first is {first}; make reproduce"
        )


def final_cells(experiment: Experiment, runs: pd.DataFrame) -> pd.DataFrame:
    """The cell that stands for each (batch size, p, solver): the selected one, or the fixed setting."""
    cells = summarise(runs[runs["role"] == "reported"])
    cells = cells[cells["variant"] == cells["solver"].map(headline_variant)]
    return cells[stands(cells, select(runs, experiment.protocol.rule))].reset_index(drop=True)


def attainability(experiment: Experiment, runs: pd.DataFrame) -> pd.DataFrame:
    """The grid cell nearest to each of the paper's rows for CDFSG and CDFSG-Ada.

    The distance is the largest of a row's differences in tolerances, and `farthest` names its number.  A row is
    attainable if a cell is within 1: the paper's own choice in the grid is unknown, so this asks whether *some* choice
    gives its numbers.  `by_chance` is the share of the printed rows of the same p that the cells of this place attain.
    """
    columns = [*ROW, "s1", "s2", "distance", "farthest", "farthest_is", "attainable", "by_chance"]
    cells, rows, printed = grid_cells(runs), [], paper.printed_rows([experiment.table], OURS)
    names = [experiment.measure, "fea", "fea_post"]
    for place, row in printed.groupby(ROW):
        candidates = rows_at(cells, place)
        if candidates.empty:
            continue
        values = candidates[names].to_numpy()
        reach = paper.distances(values, row)
        best = int(reach.argmin())
        (apart,) = paper.gaps(values[best], row)
        farthest = int(np.abs(apart).argmax())
        better = (apart[farthest] > 0) == higher_is_better(names[farthest])
        others = paper.distances(values[:, None], printed[printed["p"] == place[1]]).min(axis=0) <= 1 + 1e-9
        rows.append(
            [*place, candidates["s1"].iloc[best], candidates["s2"].iloc[best], reach[best],
             paper.QUANTITIES[names[farthest]], "better" if better else "worse", bool(reach[best] <= 1 + 1e-9),
             others.mean()]
        )  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


def write() -> pd.DataFrame:
    """Judge every experiment with published records and write ``data/records/verdicts.csv``."""
    frames = [verdicts(e, archive.runs_of(e)) for e in archive.published()]
    if not frames:
        raise FileNotFoundError(f"there are no records in {RECORDS}; make them with: make reproduce")
    table = pd.concat(frames, ignore_index=True)
    checksums.write(RECORDS / "verdicts.csv", table.to_csv(index=False, lineterminator="\n", float_format="%.8g"))
    return table


def read() -> pd.DataFrame:
    """The published ``data/records/verdicts.csv``."""
    # An empty flag or test is text, not a missing value.
    missing = dict.fromkeys(("reported", "reproduced", "std", "low", "high", "tolerance"), "")
    path, command = RECORDS / "verdicts.csv", "python -m cdfsg verdict"
    return checksums.read_record(path, command, keep_default_na=False, na_values=missing)
