"""What the pages of the report say: Markdown (MyST) from records, the paper's numbers and figures.

Nothing here judges anything: verdicts come from ``data/records``, colours from the figures.
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Sequence
from html import escape
from inspect import cleandoc
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cdfsg import checksums
from cdfsg.files import FIGURES, RECORDS
from cdfsg.paper.experiments import OURS
from cdfsg.paper.results import claims
from cdfsg.paper.results.reasons import UNEXPLAINED
from cdfsg.paper.results.reported import QUANTITIES, tolerances
from cdfsg.paper.results.verdicts import VERDICTS, counted
from cdfsg.paper.show import defaults_figures
from cdfsg.paper.show.figures import VERDICT_COLOURS

CAPTIONS = FIGURES / "captions.toml"
NAMES = {"mnist": "MNIST", "nmnist": "n-MNIST", "mediamill": "Mediamill", "huber": "Huber", "identity": "identity"}
"""Data sets and merits as the paper writes them; others are shown as they are registered."""
PLACE = ["dataset", "merit", "provenance"]
"""Columns of the verdicts that `experiment_name` puts into words."""
SIGNS = {"match": "✓", "better": "▲", "worse": "▼"}
"""A verdict must not be told by its colour alone; the other verdicts show by a dash or their absence."""
SHORT = 60
"""Rows up to which a file of records is shown as a table."""
LIGHT = 300_000
"""Bytes up to which a file of records is copied into the site."""
WITH_PAGES = ("claims", "verdicts")
"""Files of records that have pages of their own."""


# --- places ----------------------------------------------------------------------------------------------


def experiment_name(dataset: str, merit: str, provenance: str = "original") -> str:
    """Data set and merit in words; data that are not the original are called what they are."""
    note = "" if provenance == "original" else f" ({provenance})"
    return f"{NAMES.get(dataset, dataset)}{note}, {NAMES.get(merit, merit)} merit"


def table_pages(judged: pd.DataFrame) -> dict[str, str]:
    """Page of each of the paper's tables such as ``tables/02-mnist-identity``, in the paper's order."""
    places = judged[["table", "dataset", "merit"]].drop_duplicates("table")
    return {
        row.table: f"tables/{number:02d}-{row.dataset}-{row.merit}" for number, row in enumerate(places.itertuples(), 1)
    }


def anchor(claim: str) -> str:
    """Target of a claim on the page of the claims.

    Examples
    --------
    >>> anchor("time, RSG+")
    'claim-time-rsg'
    """
    return "claim-" + re.sub(r"[^a-z0-9]+", "-", claim.lower()).strip("-")


# --- the front page --------------------------------------------------------------------------------------


def counts(judged: pd.DataFrame) -> str:
    """The share of each verdict per table, for the paper's algorithms and for their competitors, as bars."""
    judged = counted(judged)
    pages = table_pages(judged)
    rows = []
    ours = judged["solver"].isin(OURS)
    for words, kept in ((" and ".join(OURS), ours), ("Competitors", ~ours)):
        rows.append(f'<div class="head">{words}</div>')
        for table, part in judged[kept].groupby("table", sort=False):
            name = experiment_name(*part[PLACE].iloc[0])
            rows.append(f'<a href="{pages[table]}.html">{escape(name)}</a>{_bar(part["verdict"])}')
    shown = [word for word in VERDICTS if word in set(judged["verdict"])]
    legend = '<div class="legend">' + " ".join(_verdict(word) for word in shown) + "</div>"
    return f'<div class="bars">\n{chr(10).join(rows)}\n</div>\n{legend}\n'


def ledger(asserted: pd.DataFrame) -> str:
    """Each claim with its verdict; the claim leads to where it is shown."""
    rows = [
        f'<div class="head"><a href="claims.html#{anchor(row.claim)}">{escape(row.says)}</a> '
        f"<small>{escape(row.place)}</small></div>" + _claim_bar(row)
        for row in asserted.itertuples()
    ]
    return f'<div class="bars claims">\n{chr(10).join(rows)}\n</div>\n'


# --- the claims ------------------------------------------------------------------------------------------


def claims_page(asserted: pd.DataFrame, judged: pd.DataFrame) -> str:
    """One section per claim: where the paper says it, how it is tested, where it does not hold."""
    written = {claim["id"]: claim for claim in claims.written()}
    parts = [
        "# The paper's claims",
        "Each claim is tested on the records of every data set; the verdict counts the instances in which it holds. "
        "The test, with a number for words such as *comparable*, was written down before.",
    ]
    links = _links_to_tables(judged)
    for row in asserted.itertuples():
        title = row.claim[0].upper() + row.claim[1:]
        parts += [f"({anchor(row.claim)})=", f"## {title}", f"> {row.says}", f"*{row.place}*"]
        parts.append(f'<div class="bars">{_claim_bar(row)}</div>')
        parts.append(_test_of(written.get(row.claim, {})))
        if row.where_not:
            parts.append(_failures(row.where_not.split("; "), links))
    return "\n\n".join(parts) + "\n"


def _claim_bar(row: Any) -> str:
    derived = f" <small>({row.derived} on derived data)</small>" if row.derived else ""
    return f"<span>{escape(row.verdict)}{derived}</span>{_shares(int(row.holds), int(row.of))}"


def _shares(holds: int, of: int) -> str:
    """A bar of what holds and, in red, what does not."""
    segments = [("match", holds), ("worse", of - holds)]
    bar = "".join(
        f'<span class="verdict v-{word}" style="flex:{count}">{count}</span>' for word, count in segments if count
    )
    return f'<div class="bar">{bar}</div>'


def _test_of(claim: dict[str, Any]) -> str:
    tests: dict[str, Callable[..., Any]] = {**claims.SHOWN_BY, **claims.SHOWN_BY_COST}
    test = tests.get(claim.get("shown_by", ""))
    if test is None:
        return ""
    settings = {key: value for key, value in claim.items() if key not in ("id", "place", "says", "shown_by")}
    words = "; ".join(f"{key} = {', '.join(map(str, v)) if isinstance(v, list) else v}" for key, v in settings.items())
    return f"**Test:** {cleandoc(test.__doc__ or '')}" + (f" ({words})" if words else "")


def _failures(places: Sequence[str], links: dict[str, str]) -> str:
    found: dict[str, list[str]] = {}
    for place in places:
        name, _, rest = place.partition(", ")
        found.setdefault(name, []).append(rest)
    lines = [f"* {links.get(name, name)}: {'; '.join(rest)}" for name, rest in found.items()]
    return f"<details><summary>where it does not hold</summary>\n\n{chr(10).join(lines)}\n\n</details>"


def _links_to_tables(judged: pd.DataFrame) -> dict[str, str]:
    pages = table_pages(judged)
    places = judged[["table", *PLACE]].drop_duplicates("table")
    return {
        f"{dataset}-{merit}": f"[{experiment_name(dataset, merit, kind)}]({pages[table]}.md)"
        for table, dataset, merit, kind in places.itertuples(index=False)
    }


# --- the paper's tables ----------------------------------------------------------------------------------


def table_page(part: pd.DataFrame, bounds: dict[int, float], shown: Sequence[str], why: pd.DataFrame) -> str:
    """One of the paper's tables, every printed number beside ours.

    Parameters
    ----------
    part : DataFrame
        The verdicts of the table.
    bounds : dict
        For each p what no feasible point's Fval is below.
    shown : sequence of str
        Links to what else shows the table.
    why : DataFrame
        The reasons of its numbers that differ.
    """
    first = part.iloc[0]
    parts = [f"# {experiment_name(*first[PLACE])}", f"The paper's table `{first['table']}`."]
    parts.append(
        f"Data: **{first['provenance']}**. Means over {part['runs'].max()} runs from different initial points. In each "
        "cell our number stands above the paper's; hover over it for its deviation and tolerance. A dash is a run that "
        "diverged, or a place where no point of the grid is eligible. {doc}`/pages/reading` says what the words mean."
    )
    parts += [f'<div class="bars"><span>verdicts</span>{_bar(counted(part)["verdict"])}</div>']
    parts += [_legend(part), _matrix(part)]
    parts += ["## Tolerances and optima", tolerance_table(part["quantity"]), _optima(part, bounds)]
    parts += ["## What differs, and why", _reasons(why)] if len(why) else []
    parts += ["## Where this is shown", *(f"* {link}" for link in shown)]
    parts += ["## Every number", _every_number(part, bounds)]
    return "\n\n".join(parts) + "\n"


def _reasons(why: pd.DataFrame) -> str:
    """Each number that is worse, or diverged on one side only, with the reasons that a test over the records found."""
    heads = ("l", "p", "solver", "quantity", "paper", "ours", "verdict", "reasons")
    lines = []
    for row in why.itertuples():
        words = escape(row.evidence or row.reason).replace(" | ", "<br>")
        lines.append(
            f"<tr><td>{row.batch_size}</td><td>{row.p}</td><td>{row.solver}</td><td>{QUANTITIES[row.quantity]}</td>"
            f"<td>{number(row.reported)}</td><td>{number(row.reproduced)}</td>"
            f'<td class="verdict v-{row.verdict}">{row.verdict}</td><td class="words">{words}</td></tr>'
        )
    found = why["reason"].eq(UNEXPLAINED).sum()
    return (
        f"{len(why)} numbers, of which {found} are unexplained.\n\n"
        f"<details><summary>{len(why)} numbers with their reasons</summary>\n{html_table(heads, lines)}\n</details>"
    )


def tolerance_table(quantities: Iterable[str]) -> str:
    """The written tolerances of the quantities, with their reasons."""
    kept = {quantity if quantity in tolerances() else quantity.split("_")[0] for quantity in quantities}
    lines = ["| quantity | tolerance | why |", "|---|---|---|"]
    for name, entry in tolerances().items():
        if name in kept:
            size = f"{entry.tolerance:.0%} of the printed number" if entry.relative else f"{entry.tolerance:g}"
            size = size if entry.comparable else "none"
            lines.append(f"| {QUANTITIES[name]} | {size} | {' '.join(entry.reason.split())} |")
    return "\n".join(lines) + "\n"


def _optima(part: pd.DataFrame, bounds: dict[int, float]) -> str:
    """In words what the best possible values are."""
    kinds = {quantity.split("_")[0] for quantity in part["quantity"]}
    words = ["Fea is at best 0."]
    if "pcc" in kinds:
        words.append("PCC is at best 1.")
    if "fval" in kinds:
        values = ", ".join(f"{value:.4g} for p = {p}" for p, value in sorted(bounds.items()))
        attained = part["merit"].iloc[0] == "identity"
        name = "The optimum of Fval over feasible points is" if attained else "No feasible point has an Fval below"
        words.append(f"{name} {values}; a point that is not feasible can lie lower.")
    return " ".join(words)


def _optimum(row: Any, bounds: dict[int, float]) -> float:
    known = {"pcc": 1.0, "fea": 0.0, "fval": bounds.get(row.p, np.nan)}
    return known.get(row.quantity.split("_")[0], np.nan)


def _matrix(part: pd.DataFrame) -> str:
    """The table in the paper's own arrangement."""
    ps, quantities = sorted(part["p"].unique()), list(dict.fromkeys(part["quantity"]))
    cells = {(row.batch_size, row.solver, row.p, row.quantity): row for row in part.itertuples()}
    head = "".join(f'<th class="group" colspan="{len(quantities)}">p = {p}</th>' for p in ps)
    heads = "".join(f"<th>{QUANTITIES[quantity]}</th>" for _ in ps for quantity in quantities)
    lines = [
        '<div class="wide"><table class="numbers">',
        f'<thead><tr><th scope="row"></th>{head}</tr><tr><th scope="row">l, solver</th>{heads}</tr></thead><tbody>',
    ]
    for size, solver in dict.fromkeys(zip(part["batch_size"], part["solver"], strict=True)):
        numbers = "".join(_cell(cells.get((size, solver, p, quantity))) for p in ps for quantity in quantities)
        lines.append(f'<tr><th scope="row">{size} {solver}</th>{numbers}</tr>')
    return "\n".join([*lines, "</tbody></table></div>"])


def _cell(row: Any) -> str:
    if row is None:
        return "<td></td>"
    sign = SIGNS.get(row.verdict, "")
    title = f"{row.verdict}; ours {number(row.reproduced, 4)}, paper {number(row.reported, 4)}"
    title += "" if np.isnan(row.std) else f", std {number(row.std, 4)} over {row.runs} runs"
    title += f", tolerance {row.tolerance:.3g}" if row.tolerance else ""
    title += f"; {row.flag}" if row.flag else ""
    return (
        f'<td class="verdict v-{row.verdict}" title="{escape(title)}"><b>{number(row.reproduced)}</b>'
        f"<small>{number(row.reported)} {sign}</small></td>"
    )


def _every_number(part: pd.DataFrame, bounds: dict[int, float]) -> str:
    """A row per printed number, with all that is known of it."""
    heads = (
        "l", "p", "solver", "quantity", "paper", "ours", "std", "difference", "tolerance", "optimum", "verdict", "note",
    )  # fmt: skip
    lines = []
    for row in part.itertuples():
        difference = row.reproduced - row.reported
        values = (row.reported, row.reproduced, row.std, difference, row.tolerance or np.nan, _optimum(row, bounds))
        numbers = "".join(f"<td>{number(value, 4, missing='')}</td>" for value in values[2:])
        numbers = f"<td>{number(values[0])}</td><td>{number(values[1], 4)}</td>{numbers}"
        place = f"<td>{row.batch_size}</td><td>{row.p}</td><td>{row.solver}</td><td>{QUANTITIES[row.quantity]}</td>"
        verdict = f'<td class="verdict v-{row.verdict}">{row.verdict}</td><td class="words">{escape(row.flag)}</td>'
        lines.append(f"<tr>{place}{numbers}{verdict}</tr>")
    return (
        f'<details class="every"><summary>{len(part)} numbers, with deviation, tolerance and optimum</summary>\n'
        f"{html_table(heads, lines)}\n</details>"
    )


# --- figures and records ---------------------------------------------------------------------------------


def caption_of(name: str, captions: dict[str, str]) -> str:
    """Caption of a figure: the longest key that is its name or, after a hyphen, the end of it.

    Raises
    ------
    ValueError
        If no key fits; the message says where to add one.
    """
    fitting = [key for key in captions if name == key or name.endswith(f"-{key}")]
    if not fitting:
        raise ValueError(f"the figure {name!r} has no caption; add one to {CAPTIONS}")
    return captions[max(fitting, key=len)]


def figure_names(folder: Path = FIGURES) -> list[str]:
    """Names of the figures, without suffix."""
    return sorted(path.stem for path in folder.glob("*.svg"))


def gallery(names: Sequence[str], captions: dict[str, str], stems: dict[str, str]) -> str:
    """All figures with their captions and the numbers behind them.

    Parameters
    ----------
    names : sequence of str
    captions : dict
    stems : dict
        Beginnings of names, such as ``mnist-identity``, with the heading of their section.
    """
    groups: dict[str, list[str]] = {stem: [] for stem in ("", *stems)}
    for name in names:
        groups[next((stem for stem in stems if name.startswith(f"{stem}-")), "")].append(name)
    parts = ["# Figures", "Each is drawn from the numbers in the file under it. Open a picture to see it large."]
    for stem, group in groups.items():
        parts += [f"(figures-{stem})=", f"## {stems.get(stem, 'Across the tables')}"] if group else []
        for name in group:
            options = f":width: 100%\n:alt: {name}\n:loading: lazy"
            text = f"{caption_of(name, captions)} [numbers](figures/{name}.csv)"
            parts.append(f"```{{figure}} figures/{name}.svg\n{options}\n\n{text}\n```")
    return "\n\n".join(parts) + "\n"


def read_captions(path: Path = CAPTIONS) -> dict[str, str]:
    """Captions by figure or kind of figure."""
    with open(path, "rb") as file:
        captions: dict[str, str] = tomllib.load(file)
    return captions


def records_page(folder: Path = RECORDS) -> str:
    """The files of records: a link to the light ones, and what the short ones contain."""
    parts = ["# Records", "Every run and every judged number is a row of a file in `data/records`."]
    lines, tables = ["| file | rows |", "|---|--:|"], []
    for path in sorted(folder.glob("*.csv")):
        frame = checksums.read_csv(path, low_memory=False)
        name = f"[{path.name}](records/{path.name})" if is_light(path) else f"`{path.name}`"
        lines.append(f"| {name} | {len(frame)} |")
        if len(frame) <= SHORT and path.stem not in WITH_PAGES:
            tables += [f"## {path.stem}", frame_table(frame)]
    return "\n\n".join([*parts, "\n".join(lines), *tables]) + "\n"


def defaults_table() -> str:
    """What the estimator captures at its default settings: a line per data set, merit and method."""
    heads = ("data", "n", "N", "p", "merit", "method", "passes", "share", "seconds", "what it said")
    lines = []
    for row in defaults_figures.published().itertuples():
        data = f'<td title="{escape(row.description)}">{escape(row.dataset)} ({row.provenance})</td>'
        cells = (row.n, f"{row.N:,}", row.p, row.merit, escape(row.algorithm), row.epochs)
        numbers = f"<td>{number(row.share, 3)}</td><td>{number(row.seconds)}</td>"
        plain = "".join(f"<td>{cell}</td>" for cell in cells)
        lines.append(f'<tr>{data}{plain}{numbers}<td class="words">{escape(row.warned)}</td></tr>')
    return html_table(heads, lines, words=("what it said",)) + "\n"


def torture_table() -> str:
    """What was tried to break the project and what survived: a bar per case, by groups."""
    path = RECORDS / "torture.csv"
    if not path.exists():
        return "*Nothing is on record: `make torture` has not been run.*\n"
    table = checksums.read_csv(path, "make it anew with: make torture")
    table[["group", "case"]] = table["case"].str.split(": ", n=1, expand=True)
    rows = []
    for group, part in table.groupby("group", sort=False):
        rows.append(f'<div class="head">{escape(group.capitalize())}</div>')
        for row in part.itertuples():
            words = f"{row.survived:,} of {row.tried:,}" if row.tried else "could not be tried on that machine"
            rows.append(f"<span>{escape(row.case)}</span><div>{words} {_shares(row.survived, row.tried)}</div>")
    return f'<div class="bars torture">\n{chr(10).join(rows)}\n</div>\n'


def is_light(path: Path) -> bool:
    """Whether a file of records is small enough to lie in the site itself."""
    return path.stat().st_size <= LIGHT


def html_table(heads: Iterable[str], rows: Iterable[str], words: Sequence[str] = ()) -> str:
    """A table that scrolls in its own box; `rows` are ready, heads that stand in `words` are set as words."""
    cells = "".join(f'<th class="words">{head}</th>' if head in words else f"<th>{head}</th>" for head in heads)
    body = "\n".join([f"<tr>{cells}</tr></thead><tbody>", *rows])
    return f'<div class="wide"><table class="numbers"><thead>{body}</tbody></table></div>'


def frame_table(frame: pd.DataFrame) -> str:
    """A table for people, four significant digits."""
    text = frame.to_html(
        index=False, border=0, classes="numbers", na_rep="", float_format=lambda value: f"{value:.4g}", justify="unset"
    )
    return f'<div class="wide">\n{text}\n</div>'


# --- words and colours -----------------------------------------------------------------------------------


def stylesheet() -> str:
    """The verdicts' colours, those of the figures."""
    return "".join(f".v-{word} {{ --verdict: {colour}; }}\n" for word, colour in VERDICT_COLOURS.items())


def number(value: float, digits: int = 2, missing: str = "–") -> str:
    """Two decimals as in the paper, or `digits` significant ones."""
    if np.isnan(value):
        return missing
    return f"{value:.2f}" if digits == 2 else f"{value:.{digits}g}"


def _bar(verdicts: pd.Series) -> str:
    found = verdicts.value_counts()
    segments = "".join(
        f'<span class="verdict v-{word}" style="flex:{found[word]}" title="{word}: {found[word]}">{found[word]}</span>'
        for word in VERDICTS
        if word in found
    )
    return f'<div class="bar">{segments}</div>'


def _verdict(word: str) -> str:
    return f'<span class="verdict v-{word}">{word} {SIGNS.get(word, "")}</span>'


def _legend(part: pd.DataFrame) -> str:
    shown = [word for word in VERDICTS if word in set(part["verdict"])]
    return '<div class="legend">' + " ".join(_verdict(word) for word in shown) + "</div>"
