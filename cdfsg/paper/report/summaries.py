"""Results in words: titles, summaries, parts of the README; and the check of a table."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from cdfsg.files import ROOT, write_atomically
from cdfsg.paper import archive
from cdfsg.paper.experiments import EXPERIMENTS, Experiment
from cdfsg.paper.protocols import ADOPTED, OURS
from cdfsg.paper.report.pages import NAMES, WORDS, caption_of, render
from cdfsg.paper.results import conclusions
from cdfsg.paper.results.multiverse import criterion, describe
from cdfsg.paper.results.reported import load_table, table_name
from cdfsg.paper.results.verdicts import VERDICTS, attainability, chance, counted
from cdfsg.theory.statement import OURS as OURS_OF_THEORY
from cdfsg.theory.statement import PRINTED
from cdfsg.theory.statement import VERDICTS as VERDICTS_OF_THEORY
from cdfsg.theory.statements import Recorded


def title(experiment: Experiment, runs: pd.DataFrame, note: str = "") -> str:
    """Where the numbers are from, for the head of a figure, and a line on what it shows of them."""
    provenance = ", ".join(sorted(set(runs["provenance"])))
    table = f"the paper's {table_name(experiment.table)}" if experiment.table else "no table of the paper"
    name = NAMES.get(experiment.dataset, experiment.dataset)
    return f"{name} ({provenance}), {experiment.merit} merit: {table}" + (note and f"\n{note}")


def count_verdicts(table: pd.DataFrame) -> pd.DataFrame:
    """Number of verdicts of each kind per solver."""
    counts = pd.crosstab(table["solver"], table["verdict"])
    return counts.reindex(columns=[word for word in VERDICTS if word in counts]).rename_axis(columns=None)


def summary(experiment: Experiment, judged: pd.DataFrame, runs: pd.DataFrame) -> str:
    """A few lines on what was reproduced, beside what permuted rows give."""
    if judged.empty:
        return f"{experiment.name}: {len(runs)} records; the paper has no table to judge them by"
    ours, rows = counted(judged[judged["solver"].isin(OURS)]), attainability(experiment, runs)
    mean, most = chance(ours)
    words = ", ".join(f"{count} {word}" for word, count in ours["verdict"].value_counts().items())
    return (
        f"{table_name(experiment.table)}: {len(ours)} independent numbers of CDFSG and CDFSG-Ada: {words}\n"
        f"  of permuted rows {mean:.1f} match on average, at most {most:.0f} in 95 % of the permutations\n"
        f"  rows that one point of the grid gives: {rows['attainable'].sum()} of {len(rows)}; "
        f"of permuted rows {rows['by_chance'].sum():.1f}\n"
        f"{count_verdicts(judged).to_string()}"
    )


def overview(numbers: pd.DataFrame) -> str:
    """`conclusions.by_dataset` as Markdown."""
    rows = [
        {
            "data": f"{NAMES[row['dataset']]} ({row['provenance']})" if row["dataset"] else "all",
            "numbers": row["numbers"], "match": row["match"],
            "chance gives (95 %)": f"{row['chance']:.0f} ({row['chance_95']:.0f})",
            "better": row["better"], "worse": row["worse"],
            "no result": row["no result"],
            "rows from one grid point": f"{row['attained']} of {row['rows']}",
            "chance gives": f"{row['attained_by_chance']:.1f}",
        }
        for _, row in numbers.iterrows()
    ]  # fmt: skip
    return render("table.md", table=pd.DataFrame(rows))


def verdicts_by_solver(verdicts_table: pd.DataFrame) -> str:
    """Number of verdicts of each kind per table and solver, as Markdown."""
    rows = []
    for (table, solver), part in counted(verdicts_table).groupby(["table", "solver"], sort=False):
        kind = part["provenance"].iloc[0]
        name = table_name(table) + ("" if kind == "original" else f" ({kind} data)")
        found = part["verdict"].value_counts().reindex(VERDICTS, fill_value=0)
        rows.append({"table": name, "solver": solver, "numbers": len(part), **found.rename(WORDS)})
    return render("table.md", table=pd.DataFrame(rows))


def claims_table(asserted: pd.DataFrame, who: str) -> str:
    """The ledger of the paper's claims, or of our questions, as Markdown."""
    rows = []
    for claim in asserted[asserted["who"] == who].itertuples():
        beyond = f"{claim.clearly} for, {claim.clearly_not} against" if claim.interval else ""
        rows.append(
            {
                "the paper says" if who == "paper" else "we ask": claim.says,
                "in its numbers": f"{claim.paper_holds} of {claim.paper_of}" if claim.paper_of else "",
                "in ours": f"{claim.holds} of {claim.of}", "beyond the 95 % interval": beyond,
                "no result": claim.no_result,
            }
        )  # fmt: skip
    table = pd.DataFrame(rows)
    return render("table.md", table=table if who == "paper" else table.drop(columns="in its numbers"))


def answer(
    asserted: pd.DataFrame, numbers: pd.DataFrame, ends: dict[str, dict[str, Any]], rows: Iterable[Recorded]
) -> str:
    """The answer in three sentences, three numbers and a picture, and how sure it is."""
    parts = numbers[numbers["dataset"] != ""].assign(name=numbers["dataset"].map(NAMES))
    return render(
        "answer.md", total=numbers.iloc[-1], parts=parts.to_dict("records"),
        accurate=asserted.set_index("claim").loc["accuracy"],
        theory=[row.verdict for row in rows if row.source == PRINTED], alt=caption_of("identity-line"),
        tried=conclusions.specifications()["protocol"].nunique(), adoption=conclusions.beats_first(),
        wanted=criterion(), **_named(ends),
    )  # fmt: skip


def endpoints(ends: dict[str, dict[str, Any]]) -> str:
    """The primary endpoints as Markdown."""
    words = {
        "replication": (
            "numbers of CDFSG and CDFSG-Ada that match",
            "chance alone gives {chance:.0f}, in 95 % of the shuffles at most {chance_95:.0f}",
        ),
        "accuracy": (
            "places where CDFSG-Ada is clearly more accurate than Landing at its printed step",
            "{against} the other way",
        ),
        "post-processing": (
            "rows of CDFSG and CDFSG-Ada where Fea* is below Fea", "{with_result} with a result; {paper} in the paper"
        ),
    }
    rows = [
        {"endpoint": what, "count": "{count} of {of}".format(**ends[name]),
         "for comparison": beside.format(**ends[name])}
        for name, (what, beside) in words.items()
    ]  # fmt: skip
    return render("table.md", table=pd.DataFrame(rows))


def _named(ends: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The endpoints by names that a template can have."""
    return {name.partition("-")[0]: found for name, found in ends.items()}


def report(asserted: pd.DataFrame, numbers: pd.DataFrame, ends: dict[str, dict[str, Any]]) -> str:
    """The report in ReScience C's form, every figure of it from the records."""
    folds, table = conclusions.folds(), conclusions.specifications()
    means = folds[folds["left_out"] == "mean"]
    mean, by_dataset = means[means["by"] == "table"].set_index("runs"), means[means["by"] == "dataset"]
    runs = pd.concat([archive.runs_of(e) for e in EXPERIMENTS.values() if archive.exists(e)])
    timed = runs.drop_duplicates(["key", "order", "start"])
    columns = {"by": "left out by", "runs": "runs", "left_out": "left out", "chosen": "chosen", "rule": "rule",
               "norm": "norm", "pcc": "PCC", "misfit": "misfit",
               "first": "first protocol", "null_median": "permuted (median)", "level": "level",
               "matches": "matches"}  # fmt: skip
    shown = folds[list(columns)].rename(columns=columns).map(_short)
    shown["left out"] = [table_name(name) if name in EXPERIMENTS else name for name in shown["left out"]]
    said = asserted[asserted["who"] == "paper"].to_dict("records")
    return render(
        "report.md", total=numbers.iloc[-1], table=overview(numbers), **_named(ends),
        failing=[claim for claim in said if claim["holds"] < claim["of"] / 2],
        partly=[claim for claim in said if claim["of"] / 2 <= claim["holds"] < claim["of"]],
        holding=[claim for claim in said if claim["holds"] == claim["of"]],
        used=float(conclusions.adopted_row(table)["misfit"]), best=float(table["misfit"].min()), variants=len(table),
        chosen=float(mean.loc["screening", "misfit"]), null=float(mean.loc["screening", "null_median"]),
        by_dataset=float(by_dataset["level"].iloc[0]), wanted=criterion(), cap=criterion()["cap"],
        permutations=criterion()["permutations"], tried=table["protocol"].nunique(),
        confirmed=int(table["misfit_of_ten"].notna().sum()), adoption=conclusions.beats_first(),
        adopted=describe(ADOPTED), rule=ADOPTED.rule, folds=render("table.md", table=shown),
        questions=questions(), minutes=timed["seconds"].sum() / 60, runs=len(runs),
    )  # fmt: skip


def _short(value: Any) -> Any:
    """A number to three digits; nothing for a missing one."""
    if isinstance(value, float):
        return "" if np.isnan(value) else f"{value:.3g}"
    return value


def questions(level: int = 3) -> str:
    """The open choices with what each answer would change, as Markdown."""
    rows = list(conclusions.questions().itertuples())
    asked = {name: text for name, text in conclusions.CHOICES.items() if any(row.choice == name for row in rows)}
    return render("questions.md", rows=rows, questions=asked, level=level, draws=criterion()["permutations"])


def theory(rows: Iterable[Recorded]) -> str:
    """Number of statements per verdict as Markdown, the printed ones apart from our readings."""
    rows, found = list(rows), []
    whose_of = {PRINTED: "printed in Sections 2 to 4", OURS_OF_THEORY: "ours: on Section 5, and two theorems"}
    for source, whose in whose_of.items():
        words = [row.verdict for row in rows if row.source == source]
        found.append({"statements": whose, "number": len(words), **{v: words.count(v) for v in VERDICTS_OF_THEORY}})
    return render("table.md", table=pd.DataFrame(found))


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
