"""The parts of the report's pages: templates of ``docs/templates``, filled."""

import re
import tomllib
from collections.abc import Iterable, Sequence
from functools import cache
from inspect import cleandoc
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import pandas as pd

from cdfsg import checksums
from cdfsg.files import FIGURES, RECORDS, ROOT
from cdfsg.paper.protocols import OURS
from cdfsg.paper.results import claims
from cdfsg.paper.results.reported import QUANTITIES, tolerances
from cdfsg.paper.results.verdicts import VERDICTS, counted

DOCS = ROOT / "docs"
CAPTIONS = FIGURES / "captions.toml"
NAMES = {"mnist": "MNIST", "nmnist": "n-MNIST", "mediamill": "Mediamill", "huber": "Huber", "identity": "identity"}
"""Data sets and merits as the paper writes them."""
SIGNS = dict.fromkeys(VERDICTS, "") | {
    "match": "✓", "better": "▲", "worse": "▼", "higher": "↑", "lower": "↓", "beyond-the-optimum": "!"
}  # fmt: skip
"""A verdict is told by more than its colour."""
SHORT = 60  # rows up to which a file of records is shown as a table
LIGHT = 300_000  # bytes up to which one is copied into the site
WITH_PAGES = ("claims.csv", "verdicts.csv")


def render(template: str, **context: Any) -> str:
    """Fill ``docs/templates/<template>.j2``."""
    return _environment().get_template(f"{template}.j2").render(**context).rstrip("\n")


@cache
def _environment() -> jinja2.Environment:
    escaped = jinja2.select_autoescape(enabled_extensions=("html.j2",))
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(DOCS / "templates"), autoescape=escaped, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["number"] = number
    environment.globals |= {
        "QUANTITIES": QUANTITIES, "SHORT": SHORT, "SIGNS": SIGNS, "VERDICTS": VERDICTS,
        "anchor": anchor, "counted": counted, "nan": np.nan,
    }  # fmt: skip
    return environment


def number(value: float, digits: int = 2, missing: str = "–") -> str:
    """Two decimals as in the paper, or `digits` significant ones."""
    return missing if np.isnan(value) else f"{value:.2f}" if digits == 2 else f"{value:.{digits}g}"


def name_of(rows: pd.DataFrame) -> str:
    """The experiment of some verdicts in words, with a provenance other than original."""
    dataset, merit, provenance = rows[["dataset", "merit", "provenance"]].iloc[0]
    note = "" if provenance == "original" else f" ({provenance})"
    return f"{NAMES.get(dataset, dataset)}{note}, {NAMES.get(merit, merit)} merit"


def table_pages(judged: pd.DataFrame) -> dict[str, str]:
    """Page of each of the paper's tables, such as ``tables/02-mnist-identity``."""
    rows = judged.drop_duplicates("table").itertuples()
    return {row.table: f"tables/{number:02d}-{row.dataset}-{row.merit}" for number, row in enumerate(rows, start=1)}


def anchor(claim: str) -> str:
    """Target of a claim on the page of the claims.

    Examples
    --------
    >>> anchor("time, RSG+")
    'claim-time-rsg'
    """
    return "claim-" + re.sub(r"[^a-z0-9]+", "-", claim.lower()).strip("-")


def counts(judged: pd.DataFrame) -> str:
    """Bars of the verdicts per table, for the paper's algorithms and for others."""
    judged = counted(judged)
    ours = judged["solver"].isin(OURS)
    groups = [(" and ".join(OURS), judged[ours]), ("Competitors", judged[~ours])]
    return render("counts.html", judged=judged, groups=groups, pages=table_pages(judged), name_of=name_of)


def claims_page(asserted: pd.DataFrame, judged: pd.DataFrame) -> str:
    """One section per claim: where it stands, how it is tested, where it fails."""
    pages = table_pages(judged)
    links = {page.partition("-")[2]: f"[{name_of(judged[judged['table'] == table])}]({page}.md)"
             for table, page in pages.items()}  # fmt: skip
    tests = dict.fromkeys(asserted["claim"], "") | {claim["id"]: _test_of(claim) for claim in claims.load_claims()}
    heads = {"paper": "What the paper says", "ours": "What we ask"}
    firsts = {claim: heads[who] for claim, who in zip(asserted["claim"], asserted["who"], strict=True)
              if claim in asserted.drop_duplicates("who")["claim"].tolist()}  # fmt: skip
    return render("claims.md", claims=list(asserted.itertuples()), tests=tests, failures=_failures, links=links,
                  firsts=firsts)  # fmt: skip


def _test_of(claim: dict[str, Any]) -> str:
    said = ("id", "who", "place", "says", "shown_by", "unprinted")
    settings = {key: value for key, value in claim.items() if key not in said}
    words = "; ".join(f"{key} = {', '.join(map(str, v)) if isinstance(v, list) else v}" for key, v in settings.items())
    return cleandoc(claims.TESTS[claim["shown_by"]].__doc__ or "") + (f" ({words})" if words else "")


def _failures(where_not: str) -> list[tuple[str, list[str]]]:
    """Places such as ``mnist-identity, l = 20; ...`` by their experiment."""
    places = pd.Series(where_not.split("; ")).str.partition(", ")
    return [(str(name), list(rows[2])) for name, rows in places.groupby(0, sort=False)]


def table_page(part: pd.DataFrame, bounds: dict[int, float], shown: Sequence[str]) -> str:
    """One of the paper's tables with our numbers, and links to where it is `shown`."""
    cells = {(row.batch_size, row.solver, row.p, row.quantity): row for row in part.itertuples()}
    kinds = {quantity.split("_")[0] for quantity in part["quantity"]}
    return render("paper_table.md", title=name_of(part), part=part, bounds=bounds, shown=shown, cells=cells,
                  kinds=kinds, tolerances=tolerance_table(part["quantity"]))  # fmt: skip


def tolerance_table(quantities: Iterable[str]) -> str:
    """The written tolerances of the quantities, with their reasons."""
    kept = {quantity if quantity in tolerances() else quantity.split("_")[0] for quantity in quantities}
    return render("tolerances.md", tolerances={name: entry for name, entry in tolerances().items() if name in kept})


def caption_of(name: str, captions: dict[str, str]) -> str:
    """Caption of a figure: the longest key that is its name or, after a hyphen, its end."""
    fitting = [key for key in captions if name == key or name.endswith(f"-{key}")]
    if not fitting:
        raise ValueError(f"the figure {name!r} has no caption; add one to {CAPTIONS}")
    return captions[max(fitting, key=len)]


def figure_names(folder: Path = FIGURES) -> list[str]:
    """Names of the figures, without suffix."""
    return sorted(path.stem for path in folder.glob("*.svg"))


def gallery(names: Sequence[str], stems: dict[str, str]) -> str:
    """All figures with captions, in sections: `stems` has heads by beginnings of names."""
    captions = tomllib.loads(CAPTIONS.read_text(encoding="utf-8"))
    groups: dict[str, list[tuple[str, str]]] = {stem: [] for stem in ("", *stems)}
    for name in names:
        stem = next((stem for stem in stems if name.startswith(f"{stem}-")), "")
        groups[stem].append((name, caption_of(name, captions)))
    headings = {"": "Across the tables", **stems}
    return render("figures.md", sections=[(stem, headings[stem], group) for stem, group in groups.items() if group])


def records_page(folder: Path = RECORDS) -> str:
    """The files of records: links to the light ones, and the short ones as tables."""
    paths = sorted(folder.glob("*.csv"))
    files = [(path.name, is_light(path), checksums.read_csv(path, low_memory=False)) for path in paths]
    return render("records.md", files=files, with_pages=WITH_PAGES)


def is_light(path: Path) -> bool:
    """Whether a file of records is small enough to lie in the site itself."""
    return path.stat().st_size <= LIGHT


def torture_table() -> str:
    """What was tried to break the project, and what survived."""
    path = RECORDS / "torture.csv"
    if not path.exists():
        return "*Nothing is on record: `make torture` has not been run.*"
    table = checksums.read_csv(path, "make it anew with: make torture")
    table[["group", "case"]] = table["case"].str.split(": ", n=1, expand=True)
    return render("torture.html", cases=table)
