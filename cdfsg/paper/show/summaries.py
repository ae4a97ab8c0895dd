"""Results in words: titles, summaries, explanations, the parts of the README, and the checks of the conclusions."""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from cdfsg.files import ROOT, write_atomically
from cdfsg.paper.experiments import ORDERS, OURS, Experiment
from cdfsg.paper.results.reasons import UNEXPLAINED, counts
from cdfsg.paper.results.reported import printed
from cdfsg.paper.results.verdicts import VERDICTS, attainability, counted, judged_ours
from cdfsg.paper.show.pages import PLACE, experiment_name, render
from cdfsg.theory.statement import VERDICTS as VERDICTS_OF_THEORY
from cdfsg.theory.statements import Recorded

ALIKE = 0.02
"""Relative difference of quality up to which two penalty parameters count as alike: less than the tolerance of PCC."""
_IN_SHORT = {
    "match or better": ("match", "better", "diverged-both"),
    "worse, or no result of ours": ("worse", "diverged-ours"),
    "the paper has a dash, our run ends": ("diverged-paper",),
}
"""Comparable verdicts by what a reader in a hurry wants to tell apart."""


# --- sentences of the notebooks --------------------------------------------------------------------------


def title(experiment: Experiment, runs: pd.DataFrame) -> str:
    """Say where the numbers are from, for the head of a figure."""
    provenance = ", ".join(sorted(set(runs["provenance"])))
    table = f"the paper's {experiment.table}" if experiment.table else "no table of the paper"
    return f"{experiment.dataset} ({provenance}), merit {experiment.merit}: {table}"


def count_verdicts(table: pd.DataFrame) -> pd.DataFrame:
    """Number of verdicts of each kind per solver."""
    counts = pd.crosstab(table["solver"], table["verdict"])
    return counts.reindex(columns=[word for word in VERDICTS if word in counts]).rename_axis(columns=None)


def summary(experiment: Experiment, judged: pd.DataFrame, runs: pd.DataFrame) -> str:
    """A few lines on what was reproduced."""
    if judged.empty:
        return f"{experiment.name}: {len(runs)} records; the paper has no table to judge them by"
    ours = judged_ours(judged)
    rows = attainability(experiment, runs)
    return (
        f"{experiment.table}: {judged['reported'].notna().sum()} printed numbers, "
        f"{judged['reported'].isna().sum()} dashes\n"
        f"  CDFSG and CDFSG-Ada at our rule's settings: {int(ours['good'].sum())} of {len(ours)} match or better\n"
        f"  rows whose printed numbers a grid point attains: {int(rows['attainable'].sum())} of {len(rows)}\n"
        f"{count_verdicts(judged).to_string()}"
    )


def explain_distance(nearest: pd.DataFrame) -> str:
    """Say what the rows that no grid point attains have in common."""
    if nearest.empty:
        return "There is nothing to compare: the paper has no such table."
    missed = nearest[~nearest["attainable"]]
    text = f"{len(nearest) - len(missed)} of {len(nearest)} rows are attained."
    if missed.empty:
        return text
    better = int((missed["farthest_is"] == "better").sum())
    return (
        f"{text} The other {len(missed)} miss by {missed['distance'].min():.2f} to {missed['distance'].max():.2f} "
        f"tolerances,\nand in {better} of them the number farthest off is better than the paper's."
    )


def explain_landing(landing: pd.DataFrame) -> str:
    """At which batch sizes each treatment of Landing diverges, beside the paper's dashes."""

    def sizes(rows: pd.DataFrame) -> str:
        found = [f"l = {size}, p = {p}" for size, p in zip(rows["batch_size"], rows["p"], strict=True)]
        return "; ".join(found) or "none"

    lines = []
    if landing["reported_quality"].notna().any():
        dashes = landing[landing["reported_quality"].isna()].drop_duplicates(["batch_size", "p"])
        lines.append(f"the paper's dashes: {sizes(dashes)}")
    for variant, rows in landing.groupby("variant"):
        lines.append(f"{variant}, diverged: {sizes(rows[rows['n_diverged'] > 0])}")
    return "\n".join(lines)


def explain_betas(ends: pd.DataFrame) -> str:
    """Over which penalty parameters the runs end alike, and where they do not."""
    lines = []
    for solver, rows in ends.groupby("solver", sort=False):
        good = rows[(rows["n_diverged"] == 0) & (rows["quality"] >= (1 - ALIKE) * rows["quality"].max())]
        alike, lost = (
            ", ".join(f"{beta:g}" for beta in part["beta"]) for part in (good, rows[rows["n_diverged"] > 0])
        )
        lines.append(
            f"{solver}: quality within {ALIKE:.0%} of its best for beta in {{{alike}}}, with Fea from "
            f"{good['fea'].min():.2f} to {good['fea'].max():.2f}; runs diverged for beta in {{{lost or 'none'}}}"
        )
    return "\n".join(lines)


# --- parts of the README and of pages --------------------------------------------------------------------


def overview(verdicts_table: pd.DataFrame) -> str:
    """How the comparable numbers of each table come out, for the paper's algorithms and for their competitors.

    Returns
    -------
    str
        A Markdown table; the last three columns add up to the one before them.
    """
    judged, rows = counted(verdicts_table), []
    whose = np.where(judged["solver"].isin(OURS), " and ".join(OURS), "competitors")
    for (_, who), part in judged.groupby(["table", whose], sort=False):
        found = {head: int(part["verdict"].isin(words).sum()) for head, words in _IN_SHORT.items()}
        name = experiment_name(*part[PLACE].iloc[0])
        rows.append({"data, merit": name, "whose": who, "compared": sum(found.values()), **found})
    return render("table.md", table=pd.DataFrame(rows))


def ledger(verdicts_table: pd.DataFrame) -> str:
    """How many verdicts of each kind there are per table and solver, as a Markdown table."""
    rows = []
    for (table, solver), part in counted(verdicts_table).groupby(["table", "solver"], sort=False):
        kind = part["provenance"].iloc[0]
        name = table if kind == "original" else f"{table} ({kind} data)"
        found = part["verdict"].value_counts().reindex(VERDICTS, fill_value=0)
        rows.append({"table": name, "solver": solver, "numbers": len(part), **found})
    return render("table.md", table=pd.DataFrame(rows))


def reasons_in_words(table: pd.DataFrame) -> str:
    """How many numbers of each solver differ for which first reason, as a Markdown table."""
    found = counts(table)
    found.insert(0, "numbers", found.sum(axis=1))
    return render("table.md", table=found.reset_index())


def reasons_in_short(table: pd.DataFrame, judged: pd.DataFrame) -> str:
    """How many of the numbers that differ have a reason, in a sentence of two lines."""
    without = int(table["reason"].eq(UNEXPLAINED).sum())
    derived = int(table["table"].isin(judged.loc[judged["provenance"] == "derived", "table"]).sum())
    return (
        f"Of the {len(table)} numbers that are worse, or have a result on one side only ({derived} on derived data),\n"
        f"{len(table) - without} may differ by something that the paper leaves unsaid; {without} are unexplained."
    )


def theory(rows: Iterable[Recorded]) -> str:
    """How many statements of the paper have which verdict, as a Markdown list."""
    words = [row.verdict for row in rows]
    return "\n".join(f"* {words.count(verdict)} of {len(words)}: {verdict}" for verdict in VERDICTS_OF_THEORY)


def marks(name: str) -> tuple[str, str]:
    """The lines of the README between which a text is written."""
    return f"<!-- {name}, written by python -m cdfsg verdict -->", f"<!-- end of {name} -->"


def write_into_readme(name: str, text: str) -> None:
    """Put a text into the README between the marks of that name.

    Raises
    ------
    ValueError
        If the README lacks a mark.
    """
    path = ROOT / "README.md"
    readme = path.read_text(encoding="utf-8")
    begin, end = marks(name)
    if begin not in readme or end not in readme:
        raise ValueError(f"{path} needs the lines {begin} and {end}; put them back")
    before, rest = readme.split(begin)
    write_atomically(path, f"{before}{begin}\n{text}\n{end}{rest.split(end)[1]}")


# --- checks of the conclusions ---------------------------------------------------------------------------


def check(experiment: Experiment, judged: pd.DataFrame, runs: pd.DataFrame) -> None:
    """Raise AssertionError unless the records are complete and sound; the message names what fails."""
    final = runs[(runs["role"] == "reported") & (runs["status"] == "done")]
    _require(len(final) > 0, "no reported run ended")
    _require(bool(final["pcc"].dropna().between(0, 1 + 1e-9).all()), "a PCC lies outside [0, 1]")
    lowest = (final["fval_orth"] - final["bound"]).min()
    _require(not lowest < -1e-6, f"a feasible point lies {-lowest:.1e} below the bound of Fval")
    worst = final["fea_orth"].max()
    _require(worst < 1e-8, f"exact post-processing leaves a feasibility violation of {worst:.1e}")
    if experiment.table:
        _require(len(judged) == len(printed(experiment.table)), "not every printed number has a verdict")
        _require(bool(judged["verdict"].isin(VERDICTS).all()), "a verdict is not one of the known words")


def check_betas(experiment: Experiment, ends: pd.DataFrame) -> None:
    """Raise AssertionError unless every solver ran under every penalty parameter."""
    for solver, rows in ends.groupby("solver"):
        _require(list(rows["beta"]) == sorted(experiment.betas), f"{solver} did not run under every beta")


def check_ablations(experiment: Experiment, table: pd.DataFrame, orders: pd.DataFrame) -> None:
    """Raise AssertionError unless every treatment of ours ran at every batch size, and untreated runs in every order."""
    for name in experiment.own_treatments:
        sizes = set(table.loc[table["treatment"] == name, "batch_size"])
        _require(sizes == set(experiment.batch_sizes), f"{name} did not run at every batch size")
    if "orders" in experiment.treatments:
        _require(bool((orders["runs"] == len(ORDERS)).all()), "a data order is missing")


def _require(holds: bool, words: str) -> None:
    if not holds:
        raise AssertionError(words)
