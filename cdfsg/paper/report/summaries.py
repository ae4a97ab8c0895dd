"""Results in words: titles, summaries, parts of the README; and the check of a table."""

import pandas as pd

from cdfsg.files import ROOT, write_atomically
from cdfsg.paper import archive
from cdfsg.paper.experiments import Experiment
from cdfsg.paper.protocols import ADOPTED, OURS
from cdfsg.paper.report.pages import HEADINGS, NAMES, caption_of, render, render_all
from cdfsg.paper.results import conclusions
from cdfsg.paper.results.multiverse import adoption, criterion, describe
from cdfsg.paper.results.reported import load_table, table_name
from cdfsg.paper.results.verdicts import VERDICTS, attainability, chance, counted
from cdfsg.theory import statements


def title(experiment: Experiment, runs: pd.DataFrame, note: str = "") -> str:
    """Where the numbers are from, for the head of a figure, and a line on what it shows of them."""
    provenance = ", ".join(sorted(set(runs["provenance"])))
    table = f"the paper's {table_name(experiment.table)}" if experiment.table else "no table of the paper"
    name = NAMES.get(experiment.dataset, experiment.dataset)
    return f"{name} ({provenance}), {experiment.merit} merit: {table}" + (note and f"\n{note}")


def summary(experiment: Experiment, judged: pd.DataFrame, runs: pd.DataFrame) -> str:
    """A few lines on what was reproduced, beside what permuted rows give."""
    if judged.empty:
        return f"{experiment.name}: {len(runs)} records; the paper has no table to judge them by"
    ours, rows = counted(judged[judged["solver"].isin(OURS)]), attainability(experiment, runs)
    mean, most = chance(ours)
    words = ", ".join(f"{count} {word}" for word, count in ours["verdict"].value_counts().items())
    counts = pd.crosstab(judged["solver"], judged["verdict"]).rename_axis(columns=None)
    return (
        f"{table_name(experiment.table)}: {len(ours)} independent numbers of CDFSG and CDFSG-Ada: {words}\n"
        f"  of permuted rows {mean:.1f} match on average, at most {most:.0f} in 95 % of the permutations\n"
        f"  rows that one point of the grid gives: {rows['attainable'].sum()} of {len(rows)}; "
        f"of permuted rows {rows['by_chance'].sum():.1f}\n"
        f"{counts[[word for word in VERDICTS if word in counts]].to_string()}"
    )


def texts(judged: pd.DataFrame, asserted: pd.DataFrame) -> dict[str, str]:
    """The generated parts of the README by their marks, and the "report" in ReScience C's form."""
    numbers, folds = conclusions.by_dataset(judged), conclusions.folds()
    tried, means = conclusions.specifications(), folds[folds["left_out"] == "mean"].set_index(["by", "runs"])
    runs = pd.concat([archive.runs_of(e) for e in archive.published()])
    timed = runs.drop_duplicates(["key", "order", "start"])
    ours, rivals = (counted(judged[judged["solver"].isin(OURS) == mine]) for mine in (True, False))
    metric = ours["quantity"].map(HEADINGS).replace({HEADINGS[name]: "PCC or Fval" for name in ("pcc", "fval")})
    metrics = ours.groupby(metric.str.replace("*", r"\*"), sort=False)
    names = numbers["dataset"].map(NAMES)
    context = {
        "metrics": [{"name": name, "label": name, **conclusions.counts(part)} for name, part in metrics],
        "rivals": {name: conclusions.counts(part) for name, part in rivals.groupby("solver", sort=False)},
        "numbers": numbers.assign(
            name=names, label=(names + " (" + numbers["provenance"] + ")").fillna("all")
        ).to_dict("records"),
        "ends": conclusions.endpoints(judged, numbers),
        "claims": asserted.assign(share=asserted["holds"] / asserted["of"]).to_dict("records"),
        "theory": list(statements.recorded().values()), "alt": caption_of("identity-line"), "tried": tried,
        "folds": folds.to_dict("records"), "mean": means.loc["table", "screening"],
        "by_dataset": means.loc[("dataset", "screening"), "level"], "used": conclusions.adopted_row(tried),
        "wanted": criterion(), "adoption": adoption(folds), "adopted": describe(ADOPTED),
        "rule": ADOPTED.rule, "open": questions(), "minutes": timed["seconds"].sum() / 60, "runs": len(runs),
    }  # fmt: skip
    return {**render_all("readme", **context), "report": render("report.md", **context)}


def questions(level: int = 3) -> str:
    """The open choices with what each answer would change, as Markdown."""
    rows = list(conclusions.questions().itertuples())
    asked = {name: text for name, text in conclusions.CHOICES.items() if any(row.choice == name for row in rows)}
    return render("questions.md", rows=rows, questions=asked, level=level, draws=criterion()["permutations"])


def marks(name: str) -> tuple[str, str]:
    """The lines of the README between which a text is written."""
    return f"<!-- {name}, written by python -m cdfsg verdict -->", f"<!-- end of {name} -->"


def readme_part(name: str) -> tuple[str, str, str]:
    """The README up to the text between the marks of a name, that text, and the rest."""
    path, (begin, end) = ROOT / "README.md", marks(name)
    before, has_begin, rest = path.read_text(encoding="utf-8").partition(begin)
    text, has_end, after = rest.partition(end)
    if not has_begin or not has_end:
        raise ValueError(f"{path} needs the lines {begin} and {end}; put them back")
    return f"{before}{begin}\n", text.strip("\n"), f"\n{end}{after}"


def write(judged: pd.DataFrame, asserted: pd.DataFrame) -> None:
    """Write ``REPORT.md``, and the generated parts of the README."""
    found = texts(judged, asserted)
    write_atomically(ROOT / "REPORT.md", found.pop("report") + "\n")
    for name, text in found.items():
        before, _, after = readme_part(name)
        write_atomically(ROOT / "README.md", f"{before}{text}{after}")


def check(experiment: Experiment, judged: pd.DataFrame, runs: pd.DataFrame) -> None:
    """Raise AssertionError unless the records are complete and sound."""
    final = runs[(runs["role"] == "reported") & (runs["status"] == "done")]
    lowest, worst = (final["fval_orth"] - final["bound"]).min(), final["fea_orth"].max()
    assert len(final), "no reported run ended"
    assert final["pcc"].dropna().between(0, 1 + 1e-9).all(), "a PCC lies outside [0, 1]"
    assert not lowest < -1e-6, f"a feasible point lies {-lowest:.1e} below the bound of Fval"
    assert worst < 1e-8, f"exact post-processing leaves a feasibility violation of {worst:.1e}"
    assert len(judged) == len(load_table(experiment.table)), "not every printed number has a verdict"
    assert judged["verdict"].isin(VERDICTS).all(), "a verdict is not one of the known words"
