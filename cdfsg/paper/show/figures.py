"""Figures from records: each is a picture (SVG and PNG) with the plotted numbers (CSV)."""

import io
import re
from collections.abc import Mapping, Sequence
from itertools import cycle, product
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from cdfsg.files import FIGURES, write_atomically
from cdfsg.paper.experiments import OTHERS, TREATMENTS, stands_for
from cdfsg.paper.results.reported import QUANTITIES
from cdfsg.paper.results.tables import EXACT
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
_TREATMENT_COLOURS = {
    "protocol": "black", "raw": "#CC79A7", "shared": "#009E73", "file": "#666666",
    "eta1": "#56B4E9", "eta2": "#E69F00", "epsilon": "#D55E00",
}  # fmt: skip
VERDICT_COLOURS = {
    "match": "#bfe3c8",
    "better": "#8fc7e8",
    "worse": "#f5b9a6",
    "diverged-both": "#d9e8d0",
    "diverged-ours": "#e8998d",
    "diverged-paper": "#f3d9a4",
    "not-comparable": "#eeeeee",
}
QUALITY = {"pcc": "PCC", "fval": "Fval / bound of feasible points"}
"""What a rule for step sizes maximises, by what a table prints."""
STYLE = {
    "svg.hashsalt": "cdfsg",
    "svg.fonttype": "path",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.dpi": 100,
    "savefig.dpi": 100,
}
ROUNDOFF = 1e-12
"""Plotted numbers up to here are zero."""
LAST_DIGIT = 1.1e-5
"""Relative difference up to which two numbers of six digits are the same one, rounded up and down."""
_NUMBER = re.compile(r"(?<![#\w.])-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
_HASH = re.compile(r"\b[a-z][0-9a-f]{10}\b")


def colour_of(solver: str) -> str:
    """Colour of a solver, whatever its variant."""
    return str(SERIES[solver, stands_for(solver)]["color"])


def trace_bands(runs: pd.DataFrame) -> pd.DataFrame:
    """Median, lowest and highest value over the runs along the pass.

    Returns
    -------
    DataFrame
        Columns ``p, solver, variant, samples, quantity, median, low, high, bound, runs, diverged``; runs that diverged
        before a point do not enter there, and `diverged` counts them.
    """
    traced = runs[runs["role"] == "trace"]
    keys = ["p", "solver", "variant", "samples"]
    frames = []
    for quantity in ("pcc", "fea", "fval"):
        groups = traced.groupby(keys)[quantity]
        frames.append(
            pd.DataFrame(
                {
                    "quantity": quantity,
                    "median": groups.median(),
                    "low": groups.min(),
                    "high": groups.max(),
                    "bound": traced.groupby(keys)["bound"].first(),
                    "runs": groups.size(),
                    "diverged": groups.size() - groups.count(),
                }
            ).reset_index()
        )
    bands = pd.concat(frames, ignore_index=True)
    return bands[~((bands["quantity"] == "fea") & bands["solver"].map(_has_no_fea))].reset_index(drop=True)


def _has_no_fea(solver: str) -> bool:
    return not SOLVERS[solver].joint


def curves(bands: pd.DataFrame, title: str, measure: str = "pcc") -> Figure:
    """The measure (PCC or Fval) and feasibility violation against samples seen, a column of panels per p.

    Beside Fval its lower bound over feasible points is drawn; an infeasible point can lie below it.
    """
    ps = sorted(bands["p"].unique())
    with plt.rc_context(STYLE):
        figure, axes = panels(2, len(ps), sharex=True)
        for column, p in enumerate(ps):
            for row, quantity in enumerate((measure, "fea")):
                _curve_panel(axes[row, column], bands[(bands["p"] == p) & (bands["quantity"] == quantity)])
            axes[0, column].set(title=f"p = {p}")
            axes[1, column].set(yscale="log", xlabel="samples seen in the pass")
            if measure == "pcc":
                axes[0, column].set(ylim=(0, 1.03))
            else:
                bound = bands.loc[bands["p"] == p, "bound"].iloc[0]
                axes[0, column].axhline(bound, color="black", lw=0.8, ls=":", label="bound of feasible points")
                axes[0, column].set(ylim=(1.15 * bound, -0.05 * bound))
        axes[0, 0].set_ylabel(QUANTITIES[measure])
        axes[1, 0].set_ylabel("feasibility violation")
        return finish(figure, title, axes[0, 0].get_legend_handles_labels()[0])


def beta_curves(medians: pd.DataFrame, title: str, measure: str = "pcc") -> Figure:
    """Median curves of CDFSG and CDFSG-Ada under each penalty parameter, a colour each."""
    solvers, betas = list(dict.fromkeys(medians["solver"])), sorted(medians["beta"].unique())
    colours = plt.get_cmap("viridis")(np.linspace(0, 0.92, len(betas)))
    with plt.rc_context(STYLE):
        figure, axes = panels(2, len(solvers), sharex=True, sharey="row")
        for (column, solver), (beta, colour) in product(enumerate(solvers), zip(betas, colours, strict=True)):
            line = medians[(medians["solver"] == solver) & (medians["beta"] == beta)]
            for row, quantity in enumerate((measure, "fea")):
                axis = axes[row, column]
                axis.plot(line["samples"], line[quantity], color=colour, lw=1.4, label=f"beta = {beta:g}")
                axis.grid(alpha=0.25)
            axes[0, column].set_title(solver)
            axes[1, column].set(yscale="log", xlabel="samples seen in the pass")
        axes[0, 0].set_ylabel(QUANTITIES[measure])
        axes[1, 0].set_ylabel("feasibility violation")
        return finish(figure, title, axes[0, 0].get_legend_handles_labels()[0])


def beta_ends(ends: pd.DataFrame, limit: float, title: str) -> Figure:
    """Where the runs end against the penalty parameter; below the dotted line h is unbounded below."""
    with plt.rc_context(STYLE):
        figure, axes = panels(1, 2, height=3.4)
        for solver, line in ends.groupby("solver", sort=False):
            style = SERIES[str(solver), "grid"]
            for axis, quantity in zip(axes[0], ("quality", "fea"), strict=True):
                axis.plot(line["beta"], line[quantity], "o-", ms=4, **style)
        for axis in axes[0]:
            axis.set(xscale="log", xlabel="penalty parameter beta")
            axis.axvline(limit, color="black", lw=0.8, ls=":")
            axis.grid(alpha=0.25)
        for row in ends[ends["n_diverged"] > 0].itertuples():
            words, colour = f"{row.n_diverged}/{row.runs}", SERIES[row.solver, "grid"]["color"]
            axes[0, 0].text(row.beta, 0.02, words, fontsize=8, ha="center", color=colour,
                            transform=axes[0, 0].get_xaxis_transform())  # fmt: skip
        axes[0, 0].set(ylabel="quality (k/n: diverged)", ylim=(0, 1.05))
        axes[0, 1].set(ylabel="feasibility violation", yscale="log")
        return finish(figure, title, axes[0, 0].get_legend_handles_labels()[0])


def verdict_map(verdicts: pd.DataFrame, title: str, bounds: Mapping[int, float] | None = None) -> Figure:
    """The paper's table as a picture: in each cell our number over the paper's, coloured by the verdict.

    `bounds` gives by p the lowest Fval of a feasible point, to stand beside the columns of Fval.
    """
    quantities = list(dict.fromkeys(verdicts["quantity"]))
    rows = list(dict.fromkeys(zip(verdicts["batch_size"], verdicts["solver"], strict=True)))
    ps = sorted(verdicts["p"].unique())
    columns = [(p, quantity) for p in ps for quantity in quantities]
    with plt.rc_context(STYLE):
        figure, axes = panels(1, 1, width=1.0 * len(columns) + 1.6, height=0.46 * len(rows) + 1.6)
        axis = axes[0, 0]
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
        for side in axis.spines.values():
            side.set_visible(False)
        for k, p in enumerate(ps):
            middle = (k + 0.5) * len(quantities)
            words = f"p = {p}" + (f", no feasible Fval below {bounds[p]:.2f}" if bounds else "")
            axis.text(middle, -0.95, words, ha="center", va="bottom", fontweight="bold")
        swatches = [
            plt.Rectangle((0, 0), 1, 1, facecolor=VERDICT_COLOURS[word]) for word in VERDICT_COLOURS
        ]
        axis.legend(
            swatches, list(VERDICT_COLOURS), loc="upper center", bbox_to_anchor=(0.5, -0.02), ncols=7,
            frameon=False, fontsize=8,
        )  # fmt: skip
        figure.suptitle(title, fontsize=10)
        figure.tight_layout()
    return figure


def trade_off(cells: pd.DataFrame, title: str, measure: str = "pcc") -> Figure:
    """Quality against Fea of every grid cell, our selection ringed and the paper's row as a star."""
    ps, sizes = sorted(cells["p"].unique()), sorted(cells["batch_size"].unique())
    with plt.rc_context(STYLE):
        figure, axes = panels(len(ps), len(sizes), sharex=True, sharey=True)
        for (i, p), (j, size) in product(enumerate(ps), enumerate(sizes)):
            panel = cells[(cells["p"] == p) & (cells["batch_size"] == size)]
            _trade_off_panel(axes[i, j], panel)
            axes[i, j].set_title(f"l = {size}, p = {p}", fontsize=9)
        for axis in axes[-1]:
            axis.set_xlabel("feasibility violation")
        for axis in axes[:, 0]:
            axis.set_ylabel(QUALITY[measure])
        handles = [Line2D([], [], color=SERIES[name, "grid"]["color"], marker="o", ls="", label=name, ms=4)
                   for name in dict.fromkeys(cells["solver"])]  # fmt: skip
        handles += [
            Line2D([], [], color="black", marker="o", mfc="none", ls="", ms=10, label="selected by our rule"),
            Line2D([], [], color="black", marker="*", ls="", ms=10, label="the paper's row"),
        ]
        return finish(figure, title, handles)


def attainability(rows: pd.DataFrame, title: str) -> Figure:
    """How far the nearest grid cell is from each of the paper's rows, in tolerances."""
    with plt.rc_context(STYLE):
        figure, axes = panels(1, 1, width=7.5, height=0.27 * len(rows) + 1.2)
        axis = axes[0, 0]
        for y, row in enumerate(rows.itertuples()):
            colour = SERIES[row.solver, "grid"]["color"]
            axis.plot([0, row.distance], [y, y], color=colour, lw=1.2)
            axis.plot(row.distance, y, "o", color=colour, ms=5)
            axis.annotate(row.farthest, (row.distance, y), (6, -3), textcoords="offset points", fontsize=7)
        names = [f"{row.solver}  l = {row.batch_size}, p = {row.p}" for row in rows.itertuples()]
        axis.set_yticks(range(len(rows)), names)
        axis.axvline(1, color="black", lw=0.8, ls=":")
        axis.set(ylim=(len(rows) - 0.5, -0.5), xlim=(0, None))
        axis.set_xlabel("largest difference of the nearest grid cell, in tolerances")
        return finish(figure, title, [])


def landing(table: pd.DataFrame, title: str, measure: str = "pcc") -> Figure:
    """Landing three ways: quality and Fea against the batch size, with the paper's rows as stars."""
    ps = sorted(table["p"].unique())
    labels = {
        "fixed": "printed step",
        "authors": "authors' own step in our units",
        "tuned": "tuned like CDFSG",
    }
    colours = {"fixed": "#009E73", "authors": "#CC79A7", "tuned": "#E69F00"}
    with plt.rc_context(STYLE):
        figure, axes = panels(2, len(ps), sharex=True, sharey="row")
        for (i, quantity), (j, p) in product(enumerate(("quality", "fea")), enumerate(ps)):
            axis, panel = axes[i, j], table[table["p"] == p]
            for variant, words in labels.items():
                line = panel[panel["variant"] == variant]
                axis.plot(line["batch_size"], line[quantity], "o-", ms=4, color=colours[variant], label=words)
            reported = panel.drop_duplicates("batch_size")
            axis.plot(reported["batch_size"], reported["reported_" + quantity], "k*", ms=9, label="the paper")
            axis.set_title(f"p = {p}" if i == 0 else "")
            batch_size_axis(axis, reported["batch_size"])
        for axis, p in zip(axes[0], ps, strict=True):
            _mark_diverged(axis, table[table["p"] == p], colours)
        axes[0, 0].set_ylabel(QUALITY[measure])
        axes[1, 0].set_ylabel("feasibility violation")
        return finish(figure, title, axes[0, 0].get_legend_handles_labels()[0])


def tuned(table: pd.DataFrame, title: str, measure: str = "pcc") -> Figure:
    """Quality and Fea against the batch size; dashed are the competitors' tuned settings."""
    ps = sorted(table["p"].unique())
    with plt.rc_context(STYLE):
        figure, axes = panels(2, len(ps), sharex=True, sharey="row")
        for (i, quantity), (j, p) in product(enumerate(("quality", "fea")), enumerate(ps)):
            axis, panel = axes[i, j], table[table["p"] == p]
            for (solver, variant), style in SERIES.items():
                line = panel[(panel["solver"] == solver) & (panel["variant"] == variant)].sort_values("batch_size")
                if line[quantity].notna().any():
                    axis.plot(line["batch_size"], line[quantity], marker="o", ms=4, lw=1.6, **style)
            axis.set_title(f"p = {p}" if i == 0 else "")
            batch_size_axis(axis, table["batch_size"])
        axes[0, 0].set_ylabel(QUALITY[measure])
        axes[1, 0].set(ylabel="feasibility violation", yscale="log")
        return finish(figure, title, axes[0, 0].get_legend_handles_labels()[0])


def treatments(table: pd.DataFrame, orders: pd.DataFrame, title: str, measure: str = "pcc") -> Figure:
    """Quality and Fea under each treatment against the batch size, a column per solver and p.

    The bars are what ten data orders do to the untreated runs.
    """
    columns = list(dict.fromkeys(zip(table["p"], table["solver"], strict=True)))
    columns = [c for c in columns if table[_is_at(table, c)]["treatment"].nunique() > 1]
    with plt.rc_context(STYLE):
        figure, axes = panels(2, len(columns), sharex=True, sharey="row")
        for (i, quantity), (j, column) in product(enumerate(("quality", "fea")), enumerate(columns)):
            axis, panel, spread = axes[i, j], table[_is_at(table, column)], orders[_is_at(orders, column)]
            axis.vlines(spread["batch_size"], spread[f"{quantity}_low"], spread[f"{quantity}_high"],
                        color="black", lw=7, alpha=0.2)  # fmt: skip
            for name, line in panel.groupby("treatment", sort=False):
                axis.plot(line["batch_size"], line[quantity], marker="o", ms=3.5, **_treatment_style(str(name)))
            axis.set_title(f"{column[1]}, p = {column[0]}" if i == 0 else "")
            batch_size_axis(axis, table["batch_size"])
        axes[0, 0].set_ylabel(QUALITY[measure])
        axes[1, 0].set(ylabel="feasibility violation", yscale="log")
        handles = [
            Line2D([], [], marker="o", ms=3.5, label=name, **_treatment_style(name))
            for name in table["treatment"].unique()
        ]
        handles.append(Line2D([], [], color="black", lw=7, alpha=0.2, label="range over ten data orders"))
        return finish(figure, title, handles)


def _is_at(table: pd.DataFrame, column: tuple[int, str]) -> pd.Series:
    return (table["p"] == column[0]) & (table["solver"] == column[1])


def _treatment_style(name: str) -> dict[str, Any]:
    """A colour per kind of treatment; the two values of a constant differ in the line."""
    kind, _, value = name.partition("=")
    style = {"color": _TREATMENT_COLOURS.get(kind, "#999999"), "lw": 2.2 if not value and kind == "protocol" else 1.3}
    others = [other for other in TREATMENTS if other.startswith(kind + "=")]
    return style | {"ls": "--" if name in others[1:] else "-"}


def times(table: pd.DataFrame, title: str) -> Figure:
    """Time of a run as a multiple of CDFSG's: ours solid, the paper's dashed, the exact solver's dotted."""
    ps = sorted(table["p"].unique())
    with plt.rc_context(STYLE):
        figure, axes = panels(1, len(ps), sharey=True, height=3.4)
        for axis, p in zip(axes[0], ps, strict=True):
            for solver, line in table[table["p"] == p].groupby("solver"):
                if solver == EXACT:
                    axis.plot(line["batch_size"], line["ratio"], "k:", lw=1.4, label=solver)
                    continue
                colour = colour_of(solver)
                axis.plot(line["batch_size"], line["ratio"], "o-", ms=4, color=colour, label=solver)
                axis.plot(line["batch_size"], line["reported_ratio"], "*--", ms=7, lw=1, color=colour)
            axis.set(yscale="log", title=f"p = {p}")
            axis.set_yticks([0.5, 1, 2, 5, 10, 20, 50, 100], ["½", "1", "2", "5", "10", "20", "50", "100"])
            batch_size_axis(axis, table["batch_size"])
        axes[0, 0].set_ylabel("time / time of CDFSG")
        handles = axes[0, 0].get_legend_handles_labels()[0]
        handles.append(Line2D([], [], color="black", marker="*", ls="--", label="the paper"))
        return finish(figure, title, handles)


def claims(table: pd.DataFrame, title: str) -> Figure:
    """In how many of the instances each claim holds."""
    with plt.rc_context(STYLE):
        figure, axes = panels(1, 1, width=9, height=0.42 * len(table) + 1.2)
        axis = axes[0, 0]
        share = (table["holds"] / table["of"].where(table["of"] > 0)).fillna(0)
        axis.barh(range(len(table)), 1, color=VERDICT_COLOURS["worse"], height=0.7)
        axis.barh(range(len(table)), share, color=VERDICT_COLOURS["match"], height=0.7)
        for y, row in enumerate(table.itertuples()):
            if not row.of:
                axis.barh(y, 1, color=VERDICT_COLOURS["not-comparable"], height=0.7)
            derived = f" ({row.derived} on derived data)" if row.derived else ""
            axis.text(0.01, y, row.verdict + derived, va="center", fontsize=8)
        axis.set_yticks(range(len(table)), list(table["claim"]))
        axis.set(ylim=(len(table) - 0.5, -0.5), xlim=(0, 1), xlabel="share of the instances in which the claim holds")
        return finish(figure, title, [])


def match_share(shares: pd.DataFrame, title: str) -> Figure:
    """Share of the comparable numbers within a multiple of the tolerance, or better, a line per table."""
    with plt.rc_context(STYLE):
        figure, axes = panels(1, 2, height=3.6, sharey=True)
        for axis, column, words in zip(
            axes[0], ("near", "near_or_better"), ("within the tolerance", "within it or better"), strict=True
        ):
            for table, line in shares.groupby("table", sort=False):
                axis.plot(line["multiple"], line[column], lw=1.6, label=str(table))
            axis.axvline(1, color="black", lw=0.8, ls=":")
            axis.set(xlabel="multiple of the written tolerance", title=words, ylim=(0, 1.02), xlim=(0, None))
            axis.grid(alpha=0.25)
        axes[0, 0].set_ylabel("share of the numbers of CDFSG, CDFSG-Ada")
        return finish(figure, title, axes[0, 0].get_legend_handles_labels()[0])


def show(figure: Figure, name: str, numbers: pd.DataFrame, folder: Path = FIGURES) -> None:
    """Save a figure and display the stored picture, so that a notebook has the same bytes on every processor."""
    from IPython.display import Image, display  # only notebooks need it

    save(figure, name, numbers, folder)
    plt.close(figure)
    display(Image(folder / f"{name}.png"))


def save(figure: Figure, name: str, numbers: pd.DataFrame, folder: Path = FIGURES) -> None:
    """Write ``name.csv``, ``name.svg`` and ``name.png``, unless those that are there differ by rounding alone.

    Processors and builds of numpy round differently. Numbers are rounded to six digits; a change in the last of them,
    or of a line by a hundredth of a point, is no new figure.
    """
    table = numbers.to_csv(index=False, float_format="%.6g", lineterminator="\n")
    csv, svg, png = (folder / f"{name}.{kind}" for kind in ("csv", "svg", "png"))
    with plt.rc_context(STYLE):
        drawn = _rendered(figure, "svg", {"Date": None, "Creator": None}).decode("utf-8")
        if _agree(_text(csv), table, ROUNDOFF) and _agree(_text(svg), drawn, 0.01) and _is_picture(png):
            return
        write_atomically(svg, drawn)
        write_atomically(png, _rendered(figure, "png", {"Software": None}))
    write_atomically(csv, table)


def _agree(old: str, new: str, absolute: float) -> bool:
    """Whether two texts are equal but for numbers that differ by rounding, and names made of a hash of such numbers."""
    if _NUMBER.sub("0", _HASH.sub("", old)) != _NUMBER.sub("0", _HASH.sub("", new)):
        return False
    before, after = (np.array(_NUMBER.findall(_HASH.sub("", text)), dtype=float) for text in (old, new))
    return np.allclose(before, after, rtol=LAST_DIGIT, atol=absolute)


def _text(path: Path) -> str:
    """Content of a file; empty if it is missing or damaged, for then it is written anew."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _is_picture(path: Path) -> bool:
    try:
        plt.imread(path)
    except (OSError, SyntaxError, ValueError):  # for a damaged one, Pillow raises any of them
        return False
    return True


def panels(rows: int, columns: int, width: float = 0, height: float = 0, **shared: Any) -> tuple[Figure, Any]:
    """A figure with an array of panels, (rows, columns)."""
    figure, axes = plt.subplots(
        rows, columns, figsize=(width or min(4.6 * columns, 12), height or 3 * rows), squeeze=False, **shared
    )
    return figure, axes


def finish(figure: Figure, title: str, handles: Sequence[Any]) -> Figure:
    """Title above, legend below, nothing overlapping."""
    rows = -(-len(handles) // 3)
    below = 0.28 * rows / figure.get_size_inches()[1]
    if handles:
        figure.legend(handles=handles, loc="lower center", ncols=3, frameon=False)
    figure.suptitle(title, fontsize=10)
    figure.tight_layout(rect=(0, below, 1, 1))
    return figure


def _trade_off_panel(axis: Axes, cells: pd.DataFrame) -> None:
    for y, (solver, group) in enumerate(cells.groupby("solver", sort=False)):
        colour = SERIES[solver, "grid"]["color"]
        axis.plot(group["fea"], group["quality"], "o", color=colour, ms=4, alpha=0.7)
        ours = group[group["selected"]]
        axis.plot(ours["fea"], ours["quality"], "o", mfc="none", mec=colour, ms=11, mew=1.5)
        target = group.iloc[:1]
        axis.plot(target["reported_fea"], target["reported_quality"], "*", color=colour, mec="black", mew=0.5, ms=11)
        lost = int((group["n_diverged"] > 0).sum())
        axis.text(0.03, 0.05 + 0.08 * y, f"{lost} of {len(group)} diverged", color=colour, fontsize=7,
                  transform=axis.transAxes)  # fmt: skip
    axis.set(xscale="log")
    axis.grid(alpha=0.25)


def batch_size_axis(axis: Axes, sizes: pd.Series) -> None:
    """Let the horizontal axis have the batch sizes, evenly spaced by their ratios."""
    ticks = sorted(sizes.unique())
    axis.set(xscale="log", xlabel="batch size l", xlim=(ticks[0] / 1.25, ticks[-1] * 1.25))
    axis.set_xticks(ticks, [str(tick) for tick in ticks])
    axis.minorticks_off()
    axis.label_outer()
    axis.grid(alpha=0.25)


def _mark_diverged(axis: Axes, panel: pd.DataFrame, colours: dict[str, str]) -> None:
    lost = panel[panel["n_diverged"] > 0]
    for row in lost.itertuples():
        axis.text(row.batch_size, 0.02, f"{row.n_diverged} of {row.runs}\ndiverged", color=colours[row.variant],
                  fontsize=7, ha="center", transform=axis.get_xaxis_transform())  # fmt: skip


def _curve_panel(axis: Axes, bands: pd.DataFrame) -> None:
    for (solver, variant), style in SERIES.items():
        line = bands[(bands["solver"] == solver) & (bands["variant"] == variant)].sort_values("samples")
        if line.empty:
            continue
        axis.plot(line["samples"], line["median"], linewidth=1.6, **style)
        axis.fill_between(line["samples"], line["low"], line["high"], color=style["color"], alpha=0.18, lw=0)
    axis.grid(alpha=0.25)


def _number(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.2f}"


def _rendered(figure: Figure, kind: str, metadata: dict[str, None]) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, metadata=metadata)
    return buffer.getvalue()

