"""The parts of the report's pages: templates of ``docs/templates``, filled."""

import ast
import inspect
import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from textwrap import dedent
from typing import Any

import jinja2
import numpy as np
import pandas as pd

import cdfsg.solvers
from cdfsg import checksums
from cdfsg.files import FIGURES, RECORDS, ROOT
from cdfsg.paper import archive
from cdfsg.paper.experiments import EXPERIMENTS, Experiment
from cdfsg.paper.protocols import ADOPTED, OURS
from cdfsg.paper.records import SAME_RUN, SETTINGS
from cdfsg.paper.report import notebooks
from cdfsg.paper.results import conclusions, tables
from cdfsg.paper.results.multiverse import describe
from cdfsg.paper.results.reported import DERIVED, QUANTITIES, TABLES, table_name, tolerance_of, tolerances
from cdfsg.paper.results.verdicts import VERDICTS, column_of, counted, final_cells
from cdfsg.paper.select import ROW, rows_at

DOCS = ROOT / "docs"
CAPTIONS = FIGURES / "captions.toml"
NAMES = {"mnist": "MNIST", "nmnist": "n-MNIST", "mediamill": "Mediamill", "huber": "Huber", "identity": "identity"}
"""Data sets and merits as the paper writes them."""
PAPER = "https://arxiv.org/abs/2412.20008"
SIGNS = dict.fromkeys(VERDICTS, "") | {
    "match": "✓", "better": "▲", "worse": "▼", "higher": "↑", "lower": "↓", "beyond-the-optimum": "!",
    "diverged-both": "∅", "diverged-ours": "○", "diverged-paper": "–",
}  # fmt: skip
"""A verdict is told by more than its colour."""
WORDS = {word: word for word in VERDICTS} | {
    "beyond-the-optimum": "beyond the optimum", "diverged-both": "no result on either side",
    "diverged-ours": "no result here", "diverged-paper": "a dash in the paper", "not-comparable": "not compared",
}  # fmt: skip
"""Verdicts as people read them."""
HEADINGS = {name: text.replace("⋆", "⋆ (exact)") for name, text in QUANTITIES.items()}
"""Columns, with a word where two stars look alike."""
SHORT = 60  # rows up to which a file of records is shown as a table
LIGHT = 300_000  # bytes up to which one is copied into the site
WITH_PAGES = ("claims.csv", "verdicts.csv")


def render(template: str, **context: Any) -> str:
    """Fill ``docs/templates/<template>.j2``."""
    return _environment().get_template(f"{template}.j2").render(**context).rstrip("\n")


def render_all(folder: str, **context: Any) -> dict[str, str]:
    """Fill every template of a folder in ``docs/templates``; the texts by their names there."""
    paths = (DOCS / "templates" / folder).rglob("*.j2")
    names = [path.relative_to(DOCS / "templates" / folder).as_posix() for path in paths]
    return {name.partition(".")[0]: render(f"{folder}/{name.removesuffix('.j2')}", **context) for name in names}


@cache
def _environment() -> jinja2.Environment:
    escaped = jinja2.select_autoescape(enabled_extensions=("html.j2",))
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(DOCS / "templates"), autoescape=escaped, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {"number": number, "heading": HEADINGS.get}
    environment.globals |= {
        "PAPER": PAPER, "QUANTITIES": HEADINGS, "SHORT": SHORT, "SIGNS": SIGNS, "VERDICTS": VERDICTS, "WORDS": WORDS,
        "anchor": anchor, "caption_of": caption_of, "code_of": code_of, "counted": counted, "failures": failures,
        "getdoc": inspect.getdoc, "nan": np.nan, "NAMES": NAMES, "TABLES": TABLES, "WITH_PAGES": WITH_PAGES,
        "sides": sides, "table_name": table_name, "tolerance_of": tolerance_of, "with_interval": with_interval,
    }  # fmt: skip
    return environment


def number(value: float, digits: int = 2, missing: str = "–") -> str:
    """Two decimals as in the paper, or `digits` significant ones."""
    return missing if np.isnan(value) else f"{value:.2f}" if digits == 2 else f"{value:.{digits}g}"


def with_interval(row: Any) -> tuple[str, str]:
    """Our number and half its interval, with two decimals, or as many as show the interval and the verdict."""
    half, values = (row.high - row.low) / 2, [round(row.reproduced, digits) for digits in (2, 3, 4)]
    near = [abs(value - row.reported) <= row.tolerance + 1e-9 for value in (*values, row.reproduced)]
    digits = next((k for k, same in zip((2, 3), near, strict=False) if same == near[-1] and round(half, k)), 4)
    return f"{row.reproduced:.{digits}f}", f"{half:.{digits}f}"


def tables_of(judged: pd.DataFrame) -> pd.DataFrame:
    """The paper's tables by their labels: ``name`` of the experiment, ``title``, and ``page`` by the printed number.

    The title has a provenance other than original.
    """
    rows = {}
    for row in judged.drop_duplicates("table").itertuples():
        name, printed = f"{row.dataset}-{row.merit}", table_name(row.table)
        note = "" if row.provenance == "original" else f" ({row.provenance})"
        title = f"{printed}: {NAMES[row.dataset]}{note}, {NAMES[row.merit]} merit"
        rows[row.table] = {"name": name, "title": title, "page": f"tables/{printed[6:]}-{name}"}
    return pd.DataFrame.from_dict(rows, orient="index")


def anchor(*parts: object) -> str:
    """Target of a link, such as "runs-20-5-cdfsg-ada"."""
    return re.sub(r"[^a-z0-9]+", "-", "-".join(map(str, parts)).lower()).strip("-")


def sides(judged: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """The counted numbers of the paper's algorithms and of its competitors, each with what their verdicts compare."""
    judged = counted(judged)
    ours = judged["solver"].isin(OURS)
    return [("better or worse than printed", judged[ours]), ("higher or lower than printed", judged[~ours])]


def failures(where_not: str) -> list[tuple[str, list[str]]]:
    """Places such as ``mnist-identity, l = 20; ...`` by their experiment."""
    places = pd.Series(where_not.split("; ")).str.partition(", ")
    return [(str(name), list(rows[2])) for name, rows in places.groupby(0, sort=False)]


def table_page(part: pd.DataFrame, title: str) -> str:
    """One of the paper's tables with our numbers, the runs behind them, and links to where it is shown."""
    experiment = EXPERIMENTS[part["table"].iloc[0]]
    runs = archive.runs_of(experiment)
    cells = {(row.batch_size, row.solver, row.p, row.quantity): row for row in part.itertuples()}
    quantities = list(dict.fromkeys(part["quantity"]))
    rest = [name for name in quantities if name in DERIVED or name == "time_s"]
    main = [name for name in quantities if name not in rest]
    kinds = {name.split("_")[0] for name in quantities}
    written = {name: entry for name, entry in tolerances().items() if name.split("_")[0] in kinds}
    return render("paper_table.md", title=title, name=table_name(experiment.table), part=part,
                  shown=_shown(experiment), bounds=tables.bounds(runs), cells=cells, main=main, rest=rest,
                  total=conclusions.counts(counted(part[part["solver"].isin(OURS)])), kinds=kinds, tolerances=written,
                  experiment=experiment.name, curve=_curve(experiment.table),
                  behind=_behind(part, experiment, runs))  # fmt: skip


def _shown(experiment: Experiment) -> list[str]:
    """Links to the notebooks and figures of an experiment."""
    names = notebooks.of_experiment(experiment)
    if experiment.name != notebooks.EXAMPLE:
        names = [f"instances/{name}-{experiment.name}" for name in names]
    return [*(f"{{doc}}`/notebooks/{name}`" for name in names), f"[Its figures](#figures-{experiment.name})"]


def _behind(part: pd.DataFrame, experiment: Experiment, runs: pd.DataFrame) -> dict[Any, tuple[str, str, pd.DataFrame]]:
    """By (batch size, p, solver) the settings, the key and the runs that the numbers of a table are the means of."""
    reported = runs[runs["role"] == "reported"].merge(final_cells(experiment, runs)[SAME_RUN], on=SAME_RUN)
    names = {"start": "start", "order": "order"} | {
        column_of(quantity, experiment): HEADINGS[quantity] for quantity in dict.fromkeys(part["quantity"])
    }
    found = {}
    for place in part[ROW].drop_duplicates().itertuples(index=False, name=None):
        mine = rows_at(reported, place)
        settings = [f"{name} = {value:g}" for name, value in mine[list(SETTINGS)].max().dropna().items()]
        words = ", ".join(settings) or "no eligible point"
        found[place] = (words, "".join(mine["key"].head(1)), mine[list(names)].rename(columns=names))
    return found


def _curve(table: str) -> dict[str, Any]:
    """The protocols by their misfit to a table, each by its best variant, and the place of the one in use."""
    tried, folds = conclusions.specifications(), conclusions.folds()
    misfits, mine = tried.groupby("protocol")[table].min(), describe(ADOPTED)
    misfits[mine] = conclusions.adopted_row(tried)[table]
    misfits = misfits.sort_values()
    left_out = folds[(folds["left_out"] == table) & (folds["runs"] == "screening")].iloc[0]
    return {"misfits": list(misfits), "rank": misfits.index.get_loc(mine) + 1, "of": len(misfits),
            "used": misfits[mine], "best": misfits.iloc[0], "chosen": left_out["misfit"],
            "null": left_out["null_median"], "null_5": left_out["null_5"]}  # fmt: skip


def code_of(mark: str) -> list[tuple[str, int, str]]:
    """The code of a line of the paper's algorithms: names of functions, numbers of lines, and the lines.

    A function whose docstring has the `mark`, such as "(eq:updatey)", is shown whole; of another, the lines with it.
    """
    found = []
    for module in (cdfsg.solvers.cdfsg, cdfsg.solvers.engine):
        owners = [module, *filter(inspect.isclass, vars(module).values())]
        for function in (thing for owner in owners for thing in vars(owner).values() if inspect.isfunction(thing)):
            if function.__code__.co_filename == module.__file__:  # and is not made by a decorator
                lines, start = inspect.getsourcelines(function)
                body = ast.parse(dedent("".join(lines))).body[0].body  # type: ignore[attr-defined]
                rest = range(body[0].end_lineno, len(lines))
                parts = [rest] if mark in (function.__doc__ or "") else [[k] for k in rest if mark in lines[k]]
                name = f"{module.__name__}.{function.__qualname__}"
                found += [(name, start + part[0], dedent("".join(lines[k] for k in part)).rstrip()) for part in parts]
    return sorted(found, key=lambda part: part[1])


def caption_of(name: str, captions: Mapping[str, Any] | None = None) -> Any:
    """Caption of a figure: the longest key that is its name or, after a hyphen, its end."""
    captions = load_captions() if captions is None else captions
    fitting = [key for key in captions if name == key or name.endswith(f"-{key}")]
    if not fitting:
        raise ValueError(f"the figure {name!r} has no caption; add one to {CAPTIONS}")
    return captions[max(fitting, key=len)]


def load_captions() -> dict[str, str]:
    """The captions in ``figures/captions.toml``."""
    return tomllib.loads(CAPTIONS.read_text(encoding="utf-8"))


def figure_names() -> list[str]:
    """Names of the figures, without suffix, in the order of their captions."""
    places = {key: place for place, key in enumerate(load_captions())}
    return sorted((path.stem for path in FIGURES.glob("*.svg")), key=lambda name: (caption_of(name, places), name))


def sections(headings: dict[str, str]) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """All figures with captions by beginnings of their names, each with its heading; the others come first."""
    groups: dict[str, list[tuple[str, str]]] = {stem: [] for stem in ("", *headings)}
    for name in figure_names():
        stem = next((stem for stem in headings if name.startswith(f"{stem}-")), "")
        groups[stem].append((name, caption_of(name)))
    return [(stem, headings.get(stem, "Across the tables"), group) for stem, group in groups.items() if group]


def files(folder: Path = RECORDS) -> list[tuple[str, bool, pd.DataFrame]]:
    """The files of records, whether each is light, and their rows."""
    paths = sorted(folder.glob("*.csv"))
    return [(path.name, is_light(path), checksums.read_csv(path, low_memory=False)) for path in paths]


def is_light(path: Path) -> bool:
    """Whether a file of records is small enough to lie in the site itself."""
    return path.stat().st_size <= LIGHT
