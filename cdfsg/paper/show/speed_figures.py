"""Figures of speed: ratios to the direct form, PCC against seconds, the roofline, and growth."""

from itertools import product

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from cdfsg.paper.measure.speed import LEVELS, Fit, exponents
from cdfsg.paper.show.figures import STYLE, batch_size_axis, colour_of, finish, panels
from cdfsg.paper.show.pages import NAMES

_DTYPES = {"float32": "#0072B2", "float64": "#56B4E9"}
_MARKERS = dict(zip((1, 18, 180), ("o", "s", "^"), strict=True))
_OTHERS = {
    "CCA-EY, cca-zoo": ("#CC79A7", ""),
    "exact, ours": ("black", "*"),
    "exact, scipy.linalg.eigh": ("#E69F00", "D"),
    "scikit-learn CCA": ("#56B4E9", "X"),
}
"""Colour of a method that is none of ours, and the marker of one that gives a single point."""
_AXES = {"n": "n", "N": "samples N", "p": "p", "batch_size": "batch size l", "lanes": "lanes"}


def ratios(direct: pd.DataFrame, title: str) -> Figure:
    """How many times as long the direct form takes as the engine, per lane; bars are medians, lines the range."""
    with plt.rc_context(STYLE):
        datasets = list(dict.fromkeys(direct["dataset"]))
        figure, axes = panels(1, len(datasets), height=3.6, sharey=True)
        for axis, dataset in zip(axes[0], datasets, strict=True):
            panel = direct[direct["dataset"] == dataset]
            cells = list(dict.fromkeys(zip(panel["solver"], panel["lanes"], strict=True)))
            for shift, (dtype, colour) in zip((-0.2, 0.2), _DTYPES.items(), strict=True):
                rows = panel[panel["dtype"] == dtype].set_index(["solver", "lanes"]).loc[cells]
                x = np.arange(len(cells)) + shift
                axis.bar(x, rows["ratio"], 0.38, color=colour)
                axis.vlines(x, rows["ratio_low"], rows["ratio_high"], color="black", lw=1)
                for at, ratio, high in zip(x, rows["ratio"], rows["ratio_high"], strict=True):
                    axis.text(at, 1.08 * high, f"{ratio:.0f}", ha="center", fontsize=8)
            words = [f"{solver}\n{lanes} lane" + "s" * (lanes > 1) for solver, lanes in cells]
            axis.set_xticks(range(len(cells)), words)
            axis.set(yscale="log", ylim=(1, 2 * direct["ratio_high"].max()), title=NAMES.get(dataset, dataset))
        axes[0, 0].set_ylabel("time of the direct form / engine, per lane")
        handles = [Patch(color=colour, label=f"direct form in {dtype}") for dtype, colour in _DTYPES.items()]
        return finish(figure, title, handles)


def curves(others: pd.DataFrame, title: str) -> Figure:
    """PCC against seconds, a line per method; a method that ends in one step is a point."""
    with plt.rc_context(STYLE):
        figure, axes = panels(1, 1, width=8.5, height=4.8)
        axis = axes[0, 0]
        for (method, setting), line in others.groupby(["method", "setting"], sort=False):
            style = _style(str(method), str(setting))
            line = line[line["seconds"] > 0]
            axis.plot(line["seconds"], line["pcc"], lw=1.5, **style)
            once = line[line["passes"] >= 1].head(1)
            if len(line) > 1:
                axis.plot(once["seconds"], once["pcc"], "o", ms=5, color=style["color"])
        for level in LEVELS:
            axis.axhline(level, color="black", lw=0.8, ls=":")
        axis.set(xscale="log", xlabel="seconds on one core", ylabel="PCC", ylim=(0, 1.03))
        axis.grid(alpha=0.25)
        handles = axis.get_legend_handles_labels()[0]
        handles.append(Line2D([], [], color="#999999", marker="o", ls="", ms=5, label="end of the first pass"))
        return finish(figure, title, handles)


def _style(method: str, setting: str) -> dict[str, object]:
    """Colour, line and label of a method; dashed is a tuned setting beside a default one."""
    dashes = "--" if setting.startswith("tuned") else "-"
    if method not in _OTHERS:
        return {"color": colour_of(method), "ls": dashes, "label": method}
    colour, marker = _OTHERS[method]
    if marker:
        return {"color": colour, "marker": marker, "ms": 9, "ls": "", "label": method}
    return {"color": colour, "ls": dashes, "label": f"{method}, {setting.partition(':')[0]}"}


def roofline(table: pd.DataFrame, title: str) -> Figure:
    """Rate against intensity below the roof, and the share of the roof against the batch size."""
    with plt.rc_context(STYLE):
        datasets = list(dict.fromkeys(table["dataset"]))
        figure, axes = panels(2, len(datasets), height=6.4, sharey="row")
        for column, dataset in enumerate(datasets):
            panel = table[table["dataset"] == dataset]
            _roof(axes[0, column], panel, table)
            _shares(axes[1, column], panel)
            axes[0, column].set_title(NAMES.get(dataset, dataset))
        axes[0, 0].set_ylabel("Gflop/s")
        axes[1, 0].set_ylabel("share of the roofline")
        handles = [Line2D([], [], color=colour_of(name), lw=2, label=name) for name in dict.fromkeys(table["solver"])]
        handles += [Line2D([], [], color="black", marker=marker, ls="", ms=5, label=f"{lanes} lane" + "s" * (lanes > 1))
                    for lanes, marker in _MARKERS.items()]  # fmt: skip
        return finish(figure, title, handles)


def _roof(axis: Axes, panel: pd.DataFrame, table: pd.DataFrame) -> None:
    """The roof by the medians of the measured rates: solid from cache, dashed from memory."""
    peak = table["peak"].median()
    x = np.geomspace(table["intensity"].min() / 2, table["intensity"].max() * 2, 200)
    for column, dashes in (("cache_bandwidth", "-"), ("memory_bandwidth", "--")):
        axis.plot(x, np.minimum(peak, x * table[column].median()) / 1e9, color="black", lw=1, ls=dashes)
    for (solver, lanes), rows in panel.groupby(["solver", "lanes"]):
        axis.plot(rows["intensity"], rows["flops"] / rows["step_seconds"] / 1e9, _MARKERS[lanes], ms=4.5,
                  color=colour_of(str(solver)), alpha=0.8)  # fmt: skip
    axis.set(xscale="log", yscale="log", xlabel="flops per byte")
    axis.grid(alpha=0.25)


def _shares(axis: Axes, panel: pd.DataFrame) -> None:
    narrow = panel[panel["p"] == panel["p"].min()]
    for (solver, lanes), rows in narrow.groupby(["solver", "lanes"]):
        colour = colour_of(str(solver))
        axis.plot(rows["batch_size"], rows["share"], marker=_MARKERS[lanes], ms=4.5, lw=1.2, color=colour)
    axis.set(ylim=(0, 1.05), title=f"p = {panel['p'].min()}")
    batch_size_axis(axis, panel["batch_size"])


def growth(table: pd.DataFrame, title: str) -> Figure:
    """Time, and peak memory against n, in logarithms; lines are the fits over the upper part of each axis."""
    with plt.rc_context(STYLE):
        figure, axes = panels(2, 3, width=11, height=6.2)
        found = exponents(table).set_index(["solver", "axis", "quantity", "part"])
        shown = [*product(_AXES, ["seconds"]), ("n", "peak_bytes")]
        for axis, (name, quantity) in zip(axes.flat, shown, strict=True):
            lines = table[table["axis"] == name]
            for solver, line in lines.groupby("solver"):
                _growth_line(axis, line, found.loc[(solver, name, quantity, "upper")], quantity)
            axis.set(xscale="log", yscale="log", xlabel=_AXES[name])
            axis.grid(alpha=0.25)
            axis.legend(fontsize=7, frameon=False)
            seconds = "seconds per step" if name == "batch_size" else "seconds per pass"
            axis.set_ylabel(seconds if quantity == "seconds" else "peak memory, bytes")
        along_n = table[table["axis"] == "n"].drop_duplicates("n")
        axes[1, 2].plot(along_n["n"], along_n["dense_bytes"], "k:", lw=1, label="one n-by-n array")
        axes[1, 2].legend(fontsize=7, frameon=False)
        return finish(figure, title, [])


def _growth_line(axis: Axes, line: pd.DataFrame, found: pd.Series, quantity: str) -> None:
    solver = str(line["solver"].iloc[0])
    upper = line[line["upper"]]
    words = f"{solver}: {found['exponent']:.2f} ± {found['half_width']:.2f}"
    axis.plot(line["value"], line[quantity], "o", ms=4, color=colour_of(solver), mfc="none")
    axis.plot(upper["value"], upper[quantity], "o", ms=4, color=colour_of(solver))
    law = Fit(*found[["exponent", "half_width", "scale", "points"]])
    axis.plot(upper["value"], law.at(upper["value"].to_numpy()), lw=1.2, color=colour_of(solver), label=words)
