"""Figures, each a picture (SVG) beside its numbers (CSV), and what several plots share."""

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import cycle
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cdfsg.files import FIGURES, write_atomically
from cdfsg.paper.protocols import OTHERS, headline_variant
from cdfsg.paper.results.reported import QUANTITIES
from cdfsg.solvers import SOLVERS

# Okabe and Ito's palette: told apart with every common form of colour blindness.
SERIES: dict[tuple[str, str], dict[str, Any]] = {
    ("CDFSG", "grid"): {"label": "CDFSG", "color": "#0072B2"},
    ("CDFSG-Ada", "grid"): {"label": "CDFSG-Ada", "color": "#D55E00"},
    ("Landing", "fixed"): {"label": "Landing, fixed", "color": "#009E73"},
    ("Landing", "tuned"): {"label": "Landing, tuned like CDFSG", "color": "#009E73", "linestyle": "--"},
    ("RSG+", "file"): {"label": "RSG+", "color": "#666666"},
    ("RSG+", "tuned"): {"label": "RSG+, tuned like CDFSG", "color": "#666666", "linestyle": "--"},
}
SERIES |= {
    (solver, "grid"): {"label": solver, "color": colour}
    for solver, colour in zip(OTHERS, cycle(("#CC79A7", "#E69F00", "#56B4E9", "#F0E442")), strict=False)
}
VERDICT_COLOURS = {
    "match": "#bfe3c8", "better": "#8fc7e8", "worse": "#f5b9a6", "higher": "#d8c6e8", "lower": "#c9cfe8",
    "beyond-the-optimum": "#f0e08c", "diverged-both": "#d9e8d0", "diverged-ours": "#e8998d",
    "diverged-paper": "#f3d9a4", "derived": "#f7f7f7", "n/a": "#f7f7f7", "not-comparable": "#eeeeee",
}  # fmt: skip
QUALITY = {"pcc": "PCC", "fval": "Fval / bound of feasible points"}
"""What a rule for step sizes maximises, by what a table prints."""
STYLE = {
    "svg.hashsalt": "cdfsg", "svg.fonttype": "none", "font.size": 9, "figure.dpi": 100, "savefig.dpi": 100,
    "font.sans-serif": ["DejaVu Sans", "Verdana", "sans-serif"],  # an SVG names them at each word
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "axes.axisbelow": True, "grid.alpha": 0.25,
}  # fmt: skip
ROUNDOFF = 1e-12  # plotted numbers up to here are zero
LAST_DIGIT = 1.1e-5  # relative difference of six digits, rounded up and down
_NUMBER = re.compile(r"(?<![#\w.])-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
_LONG = re.compile(r"(?<![#\w.-])-?\d+\.\d{3,}(?:e[-+]?\d+)?")
_UNSEEN = re.compile(r'<metadata>.*?</metadata>| id="[\w.]+_\d+"| transform="rotate\(-0 [^"]*\)"|(?<=\n) +', re.DOTALL)
_HASH = re.compile(r"\b[a-z][0-9a-f]{10}\b")
_POINT = 0.011  # in points, the difference of a place rounded to 0.01 up and down


def show(
    figure: Figure, name: str, numbers: pd.DataFrame, title: str = "", folder: Path = FIGURES, handles: Any = None
) -> None:
    """Finish a figure that has a title, save it, and display it in a notebook."""
    from IPython.display import Image, display  # only notebooks need it

    if title:
        finish(figure, title, handles)
    save(figure, name, numbers, folder)
    picture = png(figure)
    plt.close(figure)
    display(Image(picture))


def png(figure: Figure) -> bytes:
    """Draw the figure as PNG."""
    return _draw(figure, "png", {"Software": None})


def save(figure: Figure, name: str, numbers: pd.DataFrame, folder: Path = FIGURES) -> None:
    """Write ``name.csv`` and ``name.svg``, unless the old ones differ by rounding only."""
    table = numbers.to_csv(index=False, float_format="%.6g", lineterminator="\n")
    drawn = compact(_draw(figure, "svg", {"Date": None, "Creator": None}).decode("utf-8"))
    csv, svg = folder / f"{name}.csv", folder / f"{name}.svg"
    if _agree(_text(csv), table, ROUNDOFF) and _agree(_text(svg), drawn, _POINT):
        return
    write_atomically(svg, drawn)
    write_atomically(csv, table)


def compact(svg: str) -> str:
    """Leave out of an SVG file what nobody sees, and round its places to hundredths of a point."""
    return _LONG.sub(_round, _UNSEEN.sub("", svg)).replace(" \n", " ")


def _round(number: re.Match[str]) -> str:
    value = float(number[0])
    return f"{value:.2f}" if abs(value) >= 1 else f"{value:.4f}"


def _draw(figure: Figure, kind: str, metadata: dict[str, None]) -> bytes:
    buffer = io.BytesIO()
    with plt.rc_context(STYLE):
        figure.savefig(buffer, format=kind, metadata=metadata)
    return buffer.getvalue()


def _agree(old: str, new: str, absolute: float) -> bool:
    """Whether two texts are equal up to the rounding of numbers, and hashes of them."""
    old, new = _HASH.sub("", old), _HASH.sub("", new)
    if _NUMBER.sub("0", old) != _NUMBER.sub("0", new):
        return False
    before, after = (np.array(_NUMBER.findall(text), dtype=float) for text in (old, new))
    return np.allclose(before, after, rtol=LAST_DIGIT, atol=absolute)


def _text(path: Path) -> str:
    """Content of a file; empty if it is missing or damaged, to be written anew."""
    with suppress(OSError, UnicodeDecodeError):
        return path.read_text(encoding="utf-8")
    return ""


def colour_of(solver: str) -> str:
    """Colour of a solver, whatever its variant."""
    return str(SERIES[solver, headline_variant(solver)]["color"])


def panels(rows: int, columns: int, width: float = 0, height: float = 0, **shared: Any) -> tuple[Figure, Any]:
    """A figure with an array of panels, (rows, columns)."""
    size = (width or min(4.6 * columns, 12), height or 3 * rows)
    return plt.subplots(rows, columns, figsize=size, squeeze=False, **shared)


def quality_panels(
    table: pd.DataFrame, ylabel: str, by: str = "p", x: str = "batch_size", sharey: str = "row"
) -> tuple[Figure, list[tuple[Sequence[Axes], pd.DataFrame]]]:
    """A figure of quality above Fea; for each value of `by` its two panels and its rows."""
    values = sorted(table[by].unique()) if by == "p" else list(dict.fromkeys(table[by]))
    figure, axes = panels(2, len(values), sharex=True, sharey=sharey)
    for column, value in zip(axes.T, values, strict=True):
        column[0].set_title(f"p = {value}" if by == "p" else value)
        column[1].set_yscale("log")
        for axis in column if x == "batch_size" else ():
            batch_size_axis(axis, table[x])
        if x == "samples":
            column[1].set_xlabel("samples seen in the pass")
    axes[0, 0].set_ylabel(ylabel)
    axes[1, 0].set_ylabel("feasibility violation")
    return figure, [(column, table[table[by] == value]) for column, value in zip(axes.T, values, strict=True)]


def lines(
    axes: Iterable[Axes], table: pd.DataFrame, x: str, columns: Iterable[str],
    styles: Mapping[Any, Mapping[str, Any]] = SERIES, by: str | tuple[str, ...] = ("solver", "variant"), **options: Any,
) -> None:  # fmt: skip
    """Draw one column into each panel, a line per key of `styles` that has numbers."""
    groups = {key: group.sort_values(x) for key, group in table.groupby(by if isinstance(by, str) else list(by))}
    for axis, column in zip(axes, columns, strict=True):
        for key, style in styles.items():
            if key in groups and groups[key][column].notna().any():
                axis.plot(groups[key][x], groups[key][column], **{**options, **style})


def batch_size_axis(axis: Axes, sizes: pd.Series) -> None:
    """Let the horizontal axis have the batch sizes, evenly spaced by their ratios."""
    ticks = sorted(sizes.unique())
    axis.set(xscale="log", xlabel="batch size l", xlim=(ticks[0] / 1.25, ticks[-1] * 1.25))
    axis.set_xticks(ticks, [str(tick) for tick in ticks])
    axis.minorticks_off()
    axis.label_outer()


def finish(figure: Figure, title: str, handles: Sequence[Any] | None = None) -> Figure:
    """Title above, legend below (by default of the first panel), nothing overlapping."""
    if handles is None:
        handles = figure.axes[0].get_legend_handles_labels()[0]
    if handles:
        figure.legend(handles=handles, loc="lower center", ncols=3, frameon=False)
    figure.suptitle(title, fontsize=10)
    rows = -(-len(handles) // 3)
    figure.tight_layout(rect=(0, 0.28 * rows / figure.get_size_inches()[1], 1, 1))
    return figure


def trace_bands(runs: pd.DataFrame) -> pd.DataFrame:
    """Median and range along the pass over the runs that have not diverged."""
    keys, quantities = ["p", "solver", "variant", "samples"], ["pcc", "fea", "fval"]
    table = runs[runs["role"] == "trace"].melt([*keys, "bound"], quantities, "quantity")
    table["quantity"] = pd.Categorical(table["quantity"], quantities)
    groups = table.assign(lost=table["value"].isna()).groupby(["quantity", *keys], observed=True)
    columns = {"median": "median", "low": "min", "high": "max", "runs": "size"}
    bands = groups.agg(**{name: ("value", how) for name, how in columns.items()}, bound=("bound", "first"),
                       diverged=("lost", "sum")).reset_index().astype({"quantity": str})  # fmt: skip
    has_fea = bands["solver"].map(lambda solver: SOLVERS[solver].joint_constraint)
    bands = bands[(bands["quantity"] != "fea") | has_fea].reset_index(drop=True)
    return bands[[*keys, "quantity", "median", "low", "high", "bound", "runs", "diverged"]]


def verdict_map(verdicts: pd.DataFrame, title: str, bounds: Mapping[int, float] | None = None) -> Figure:
    """The paper's table: our number over the paper's, on the colour of the verdict."""
    ps, quantities = sorted(verdicts["p"].unique()), list(dict.fromkeys(verdicts["quantity"]))
    columns = [(p, quantity) for p in ps for quantity in quantities]
    rows = list(dict.fromkeys(zip(verdicts["batch_size"], verdicts["solver"], strict=True)))
    figure, ((axis,),) = panels(1, 1, width=1.0 * len(columns) + 1.6, height=0.46 * len(rows) + 1.6)
    for cell in verdicts.itertuples():
        x, y = columns.index((cell.p, cell.quantity)), rows.index((cell.batch_size, cell.solver))
        colour = VERDICT_COLOURS[cell.verdict]
        axis.add_patch(plt.Rectangle((x, y), 1, 1, facecolor=colour, edgecolor="white", linewidth=1.5))
        text = f"{_number(cell.reproduced)}\n({_number(cell.reported)})"
        axis.text(x + 0.5, y + 0.5, text, ha="center", va="center", fontsize=7)
    axis.set(xlim=(0, len(columns)), ylim=(len(rows), 0))
    axis.set_xticks(np.arange(len(columns)) + 0.5, [QUANTITIES[q] for _, q in columns])
    axis.set_yticks(np.arange(len(rows)) + 0.5, [f"l = {size}   {solver}" for size, solver in rows])
    axis.xaxis.tick_top()
    axis.tick_params(length=0)
    axis.grid(False)
    axis.spines[:].set_visible(False)
    for k, p in enumerate(ps):
        words = f"p = {p}" + (f", no feasible Fval below {bounds[p]:.2f}" if bounds else "")
        axis.text((k + 0.5) * len(quantities), -0.95, words, ha="center", va="bottom", fontweight="bold")
    swatches = [plt.Rectangle((0, 0), 1, 1, facecolor=colour) for colour in VERDICT_COLOURS.values()]
    axis.legend(swatches, list(VERDICT_COLOURS), loc="upper center", bbox_to_anchor=(0.5, -0.02), ncols=7,
                frameon=False, fontsize=8)  # fmt: skip
    figure.suptitle(title, fontsize=10)
    figure.tight_layout()
    return figure


def _number(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.2f}"
