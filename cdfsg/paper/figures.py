"""Figures from records: each is a picture (SVG and PNG) with the plotted numbers (CSV), in fixed bytes."""

import io
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cdfsg.files import FIGURES, write_atomically
from cdfsg.paper.reported import QUANTITIES

# Okabe and Ito's palette: told apart with every common form of colour blindness.
SERIES: dict[tuple[str, str], dict[str, Any]] = {
    ("CDFSG", "grid"): {"label": "CDFSG", "color": "#0072B2"},
    ("CDFSG-Ada", "grid"): {"label": "CDFSG-Ada", "color": "#D55E00"},
    ("Landing", "fixed"): {"label": "Landing, fixed", "color": "#009E73"},
    ("Landing", "tuned"): {"label": "Landing, tuned like CDFSG", "color": "#009E73", "linestyle": "--"},
    ("RSG+", "permuted"): {"label": "RSG+", "color": "#666666"},
}
VERDICT_COLOURS = {
    "match": "#bfe3c8",
    "better": "#8fc7e8",
    "worse": "#f5b9a6",
    "diverged-both": "#d9e8d0",
    "diverged-ours": "#e8998d",
    "diverged-paper": "#f3d9a4",
    "not-comparable": "#eeeeee",
}
_STYLE = {
    "svg.hashsalt": "cdfsg",
    "svg.fonttype": "path",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.dpi": 100,
}


def trace_bands(runs: pd.DataFrame) -> pd.DataFrame:
    """Median, lowest and highest value over the runs along the pass.

    Returns
    -------
    DataFrame
        Columns ``p, solver, variant, samples, quantity, median, low, high, runs, diverged``; runs that diverged
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
                    "runs": groups.size(),
                    "diverged": groups.size() - groups.count(),
                }
            ).reset_index()
        )
    bands = pd.concat(frames, ignore_index=True)
    return bands[~((bands["solver"] == "RSG+") & (bands["quantity"] == "fea"))].reset_index(drop=True)


def curves(bands: pd.DataFrame, title: str) -> Figure:
    """PCC and feasibility violation against samples seen, a column of panels per p."""
    ps = sorted(bands["p"].unique())
    with plt.rc_context(_STYLE):
        figure: Figure
        figure, axes = plt.subplots(2, len(ps), figsize=(4.6 * len(ps), 6), sharex=True, squeeze=False)
        for column, p in enumerate(ps):
            for row, quantity in enumerate(("pcc", "fea")):
                _curve_panel(axes[row, column], bands[(bands["p"] == p) & (bands["quantity"] == quantity)])
            axes[0, column].set(title=f"p = {p}", ylim=(0, 1.03))
            axes[1, column].set(yscale="log", xlabel="samples seen in the pass")
        axes[0, 0].set_ylabel("PCC")
        axes[1, 0].set_ylabel("feasibility violation")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="lower center", ncols=3, frameon=False)
        figure.suptitle(title, fontsize=10)
        figure.tight_layout(rect=(0, 0.08, 1, 1))
    return figure


def verdict_map(verdicts: pd.DataFrame, title: str) -> Figure:
    """The paper's table as a picture: in each cell our number over the paper's, coloured by the verdict."""
    quantities = list(dict.fromkeys(verdicts["quantity"]))
    rows = list(dict.fromkeys(zip(verdicts["batch_size"], verdicts["solver"], strict=True)))
    ps = sorted(verdicts["p"].unique())
    columns = [(p, quantity) for p in ps for quantity in quantities]
    with plt.rc_context(_STYLE):
        figure: Figure
        figure, axis = plt.subplots(figsize=(1.0 * len(columns) + 1.6, 0.46 * len(rows) + 1.6))
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
            axis.text(middle, -0.95, f"p = {p}", ha="center", va="bottom", fontweight="bold")
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


def save(figure: Figure, name: str, numbers: pd.DataFrame, folder: Path = FIGURES) -> None:
    """Write ``name.svg``, ``name.png`` and ``name.csv``; the same numbers give the same bytes.

    The files are left alone where they are equal already.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with plt.rc_context(_STYLE):
        write_atomically(folder / f"{name}.svg", _rendered(figure, "svg", {"Date": None, "Creator": None}))
        write_atomically(folder / f"{name}.png", _rendered(figure, "png", {"Software": None}))
    write_atomically(folder / f"{name}.csv", numbers.to_csv(index=False, float_format="%.6g", lineterminator="\n"))


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
    figure.savefig(buffer, format=kind, dpi=120, metadata=metadata)
    return buffer.getvalue()

