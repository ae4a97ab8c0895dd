"""Results in words: titles, summaries, parts of the README; and the check of a table."""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from cdfsg.files import ROOT, write_atomically
from cdfsg.paper.experiments import Experiment
from cdfsg.paper.protocols import OURS
from cdfsg.paper.report.pages import name_of, render
from cdfsg.paper.results.reasons import UNEXPLAINED, counts
from cdfsg.paper.results.reported import load_table
from cdfsg.paper.results.verdicts import VERDICTS, attainability, counted, judged_ours
from cdfsg.theory.statement import VERDICTS as VERDICTS_OF_THEORY
from cdfsg.theory.statements import Recorded

_IN_SHORT = {
    "match or better": ("match", "better", "diverged-both"),
    "worse, or no result of ours": ("worse", "diverged-ours"),
    "the paper has a dash, our run ends": ("diverged-paper",),
}
"""Comparable verdicts, for a reader in a hurry."""


def title(experiment: Experiment, runs: pd.DataFrame) -> str:
    """Where the numbers are from, for the head of a figure."""
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
    ours, rows, dashes = judged_ours(judged), attainability(experiment, runs), judged["reported"].isna()
    return (
        f"{experiment.table}: {(~dashes).sum()} printed numbers, {dashes.sum()} dashes\n"
        f"  CDFSG and CDFSG-Ada at our rule's settings: {ours['good'].sum()} of {len(ours)} match or better\n"
        f"  rows whose printed numbers a grid point attains: {rows['attainable'].sum()} of {len(rows)}\n"
        f"{count_verdicts(judged).to_string()}"
    )


def overview(verdicts_table: pd.DataFrame) -> str:
    """How the numbers of each table come out, for the paper's algorithms and for others."""
    judged, rows = counted(verdicts_table), []
    whose = np.where(judged["solver"].isin(OURS), " and ".join(OURS), "competitors")
    for (_, who), part in judged.groupby(["table", whose], sort=False):
        found = {head: int(part["verdict"].isin(words).sum()) for head, words in _IN_SHORT.items()}
        rows.append({"data, merit": name_of(part), "whose": who, "compared": sum(found.values()), **found})
    return render("table.md", table=pd.DataFrame(rows))


def verdicts_by_solver(verdicts_table: pd.DataFrame) -> str:
    """Number of verdicts of each kind per table and solver, as Markdown."""
    rows = []
    for (table, solver), part in counted(verdicts_table).groupby(["table", "solver"], sort=False):
        kind = part["provenance"].iloc[0]
        name = table if kind == "original" else f"{table} ({kind} data)"
        found = part["verdict"].value_counts().reindex(VERDICTS, fill_value=0)
        rows.append({"table": name, "solver": solver, "numbers": len(part), **found})
    return render("table.md", table=pd.DataFrame(rows))


def claims_table(asserted: pd.DataFrame) -> str:
    """The ledger of the claims as Markdown."""
    heads = {"says": "the paper says", "verdict": "verdict", "derived": "cases on derived data (n-MNIST)"}
    return render("table.md", table=asserted[list(heads)].rename(columns=heads))


def reasons_in_words(table: pd.DataFrame) -> str:
    """Number of differences by solver and first reason, as Markdown."""
    found = counts(table)
    found.insert(0, "numbers", found.sum(axis=1))
    return render("table.md", table=found.reset_index())


def reasons_in_short(table: pd.DataFrame, judged: pd.DataFrame) -> str:
    """How many of the numbers that differ have a reason."""
    without = int(table["reason"].eq(UNEXPLAINED).sum())
    derived = int(table["table"].isin(judged.loc[judged["provenance"] == "derived", "table"]).sum())
    return (
        f"Of the {len(table)} numbers that are worse, or have a result on one side only ({derived} on derived data),\n"
        f"{len(table) - without} may differ by something that the paper leaves unsaid; {without} are unexplained."
    )


def theory(rows: Iterable[Recorded]) -> str:
    """Number of statements per verdict, as Markdown."""
    words = [row.verdict for row in rows]
    return "\n".join(f"* {words.count(verdict)} of {len(words)}: {verdict}" for verdict in VERDICTS_OF_THEORY)


def marks(name: str) -> tuple[str, str]:
    """The lines of the README between which a text is written."""
    return f"<!-- {name}, written by python -m cdfsg verdict -->", f"<!-- end of {name} -->"


def write_into_readme(name: str, text: str) -> None:
    """Put a text into the README between the marks of that name."""
    path, (begin, end) = ROOT / "README.md", marks(name)
    before, has_begin, rest = path.read_text(encoding="utf-8").partition(begin)
    _, has_end, after = rest.partition(end)
    if not has_begin or not has_end:
        raise ValueError(f"{path} needs the lines {begin} and {end}; put them back")
    write_atomically(path, f"{before}{begin}\n{text}\n{end}{after}")


def check(experiment: Experiment, judged: pd.DataFrame, runs: pd.DataFrame) -> None:
    """Raise AssertionError unless the records are complete and sound."""
    final = runs[(runs["role"] == "reported") & (runs["status"] == "done")]
    lowest, worst = (final["fval_orth"] - final["bound"]).min(), final["fea_orth"].max()
    printed = len(load_table(experiment.table)) if experiment.table else len(judged)
    conditions = {
        "no reported run ended": len(final) > 0,
        "a PCC lies outside [0, 1]": final["pcc"].dropna().between(0, 1 + 1e-9).all(),
        f"a feasible point lies {-lowest:.1e} below the bound of Fval": not lowest < -1e-6,
        f"exact post-processing leaves a feasibility violation of {worst:.1e}": worst < 1e-8,
        "not every printed number has a verdict": len(judged) == printed,
        "a verdict is not one of the known words": judged["verdict"].isin(VERDICTS).all(),
    }
    for words, holds in conditions.items():
        if not holds:
            raise AssertionError(words)
