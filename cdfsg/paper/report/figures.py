"""Figures, each a picture (SVG) beside its numbers (CSV), and what several plots share."""

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from cdfsg.files import FIGURES, write_atomically
from cdfsg.paper.protocols import OTHERS, headline_variant
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
    "match": "#9ec3bd", "better": "#779ab5", "worse": "#d98960", "higher": "#e8c3fe", "lower": "#9886ff",
    "beyond-the-optimum": "#fcfbac", "diverged-both": "#dde3bb", "diverged-ours": "#d47c81",
    "diverged-paper": "#edc36a", "derived": "#f7f7f7", "n/a": "#f7f7f7", "not-comparable": "#eeeeee",
}  # fmt: skip
"""Red-green blind people tell them apart, too; black is legible on each."""
QUALITY = {"pcc": "PCC", "fval": "Fval / bound of feasible points"}
"""What a rule for step sizes maximises, by what a table prints."""
STYLE = {
    "svg.hashsalt": "cdfsg", "svg.fonttype": "none", "font.size": 9, "figure.dpi": 100, "savefig.dpi": 100,
    "font.sans-serif": ["DejaVu Sans", "Verdana", "sans-serif"],  # an SVG names them at each word
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "axes.axisbelow": True, "grid.alpha": 0.25,
}  # fmt: skip
ROUNDOFF = 1e-12  # plotted numbers up to here are zero
LAST_DIGIT = 1.1e-5  # relative difference of six digits, rounded up and down
_NUMBER = re.compile(r"(?<![#\w.])(-?\d+(?:\.\d+)?(?:e[-+]?\d+)?)")
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


def png(figure: Figure, **options: Any) -> bytes:
    """Draw the figure as PNG; `options` are Pillow's, as a lower ``compress_level`` saves time."""
    return _draw(figure, "png", pil_kwargs=options)


def save(figure: Figure, name: str, numbers: pd.DataFrame, folder: Path = FIGURES) -> None:
    """Write ``name.csv`` and ``name.svg``, unless the old ones differ by rounding only."""
    table = numbers.to_csv(index=False, float_format="%.6g", lineterminator="\n")
    drawn = compact(_draw(figure, "svg").decode("utf-8"))
    csv, svg = folder / f"{name}.csv", folder / f"{name}.svg"
    if not (_agree(csv, table, ROUNDOFF) and _agree(svg, drawn, _POINT)):
        write_atomically(svg, drawn)
        write_atomically(csv, table)


def compact(svg: str) -> str:
    """Leave out of an SVG file what nobody sees, and round its places to hundredths of a point."""

    def rounded(number: re.Match[str]) -> str:
        value = float(number[0])
        return (f"{value:.2f}" if abs(value) >= 1 else f"{value:.4f}").rstrip("0").rstrip(".")

    return _LONG.sub(rounded, _UNSEEN.sub("", svg)).replace(" \n", " ")


def _draw(figure: Figure, kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    with plt.rc_context(STYLE):
        figure.savefig(buffer, format=kind, **options)
    return buffer.getvalue()


def _agree(path: Path, new: str, absolute: float) -> bool:
    """Whether a file has a text up to the rounding of numbers, and hashes of them; a damaged one is written anew."""
    try:
        texts = path.read_text(encoding="utf-8"), new
    except (OSError, UnicodeDecodeError):
        return False
    parts = [_NUMBER.split(_HASH.sub("", text)) for text in texts]  # words and numbers by turns
    before, after = (np.array(part[1::2], dtype=float) for part in parts)
    return parts[0][::2] == parts[1][::2] and np.allclose(before, after, rtol=LAST_DIGIT, atol=absolute)


def plain_ticks(figure: Figure) -> None:
    """Let logarithmic axes have numbers such as 0.2 and 5,000 in place of powers."""
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        if isinstance(axis.get_major_locator(), LogLocator):
            low, high = axis.get_view_interval()
            most = 1e3 if axis.axis_name == "y" else 40  # horizontally numbers stand side by side
            axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < most else (1,), numticks=9))
            axis.set_major_formatter(StrMethodFormatter("{x:,g}"))
            axis.set_minor_formatter(NullFormatter())


def colour_of(solver: str) -> str:
    """Colour of a solver, whatever its variant."""
    return str(SERIES[solver, headline_variant(solver)]["color"])


def panels(rows: int, columns: int, width: float = 0, height: float = 0, **shared: Any) -> tuple[Figure, Any]:
    """A figure with an array of panels, (rows, columns)."""
    size = (width or min(4.6 * columns, 12), height or 3 * rows)
    return plt.subplots(rows, columns, figsize=size, squeeze=False, **shared)


def quality_panels(
    table: pd.DataFrame, ylabel: str, by: str = "p", x: str = "batch_size"
) -> tuple[Figure, list[tuple[Sequence[Axes], pd.DataFrame]]]:
    """A figure of quality above Fea; for each value of `by` its two panels and its rows."""
    groups = list(table.groupby(by, sort=by == "p"))
    figure, axes = panels(2, len(groups), sharex=True, sharey="row")
    for column, (value, _) in zip(axes.T, groups, strict=True):
        column[0].set_title(f"p = {value}" if by == "p" else value)
        column[1].set_yscale("log")
        for axis in column if x == "batch_size" else ():
            batch_size_axis(axis, table[x])
        if x == "samples":
            samples_axis(column[1])
    axes[0, 0].set_ylabel(ylabel)
    axes[1, 0].set_ylabel("feasibility violation")
    return figure, [(column, part) for column, (_, part) in zip(axes.T, groups, strict=True)]


def lines(
    axes: Iterable[Axes], table: pd.DataFrame, x: str, columns: Iterable[str],
    styles: Mapping[Any, Any] = SERIES, by: str | tuple[str, ...] = ("solver", "variant"), **options: Any,
) -> None:  # fmt: skip
    """Draw one column into each panel, a line per key of `styles` that has numbers; dotted if it is of survivors.

    The columns ``diverged`` and ``runs``, where there are any, say how many of the runs were lost in the end.
    """
    groups = {key: group.sort_values(x) for key, group in table.groupby(by if isinstance(by, str) else list(by))}
    for axis, column in zip(axes, columns, strict=True):
        for key, style in styles.items():
            if key in groups and groups[key][column].notna().any():
                lost = {"linestyle": ":"} if groups[key].get("diverged", pd.Series([0])).iloc[-1] else {}
                axis.plot(groups[key][x], groups[key][column], **{**options, **style, **lost})


def samples_axis(axis: Axes) -> None:
    """Let the horizontal axis have the samples of a pass."""
    axis.set_xlabel("samples seen in the pass")
    axis.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def note(words: Mapping[Axes, Sequence[tuple[str, str]]]) -> None:
    """Write below the lines of panels with one scale what they lack, a line of (text, colour) each."""
    for axis, rows in words.items():
        if axis.get_autoscaley_on():  # not set, also through another panel
            scale = axis.yaxis.get_transform()
            low, high = scale.transform(axis.get_ylim())
            room = 0.09 * max(map(len, words.values())) * (high - low)
            axis.set_ylim(*scale.inverted().transform([low - room, high]))
        for number, (text, colour) in enumerate(rows):
            y = 0.03 + 0.075 * number
            axis.text(0.98, y, text, color=colour, fontsize=7, ha="right", transform=axis.transAxes)


def survivors(table: pd.DataFrame, styles: Mapping[Any, Any], by: str | list[str]) -> list[tuple[str, str]]:
    """For `note`: lines without all of their runs at the end of the pass, and those that were never run."""
    ends, found = table[table["samples"] == table["samples"].max()].set_index(by), []
    for key, style in styles.items():
        lost, runs = ends.loc[key, ["diverged", "runs"]] if key in ends.index else (1, 0)
        if lost:
            words = f"{runs - lost} of {runs} runs survive" if runs else "no point of the grid is eligible"
            found.append((f"{style['label']}: {words}", style["color"]))
    return found


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
    rows, height = -(-len(handles) // 3), figure.get_size_inches()[1]
    figure.suptitle(title, fontsize=10, y=max(0.98, 1 - 0.22 / height))  # that of a tall figure would lie in its panel
    plain_ticks(figure)
    figure.tight_layout(rect=(0, 0.28 * rows / height, 1, 1))
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
