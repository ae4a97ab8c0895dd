"""Figures of what a step costs: multiplications by what they are for, and memory."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from cdfsg.paper.measure.cost import FORMULA, MIDDLE, PARTS, lines
from cdfsg.paper.show.figures import SERIES, STYLE, batch_size_axis, finish, panels
from cdfsg.solvers.cdfsg import CDFSG

COLOURS = dict(zip(PARTS, ("#0072B2", "#56B4E9", "#009E73", "#D55E00", "#999999"), strict=True))
LABELS = {
    "O_C": "C_theta, twice",
    "O_grad_f": "gradient of f_xi",
    "O_grad_C": "gradient of C_theta",
    "products": "products with p-by-p matrices",
    "entrywise": "entrywise",
}
HATCHES = {CDFSG.name: "", FORMULA: "///"}


def multiplications(totals: pd.DataFrame, title: str) -> Figure:
    """Multiplications per step and sample, stacked by what they are for; the solver beside the paper's formula."""
    with plt.rc_context(STYLE):
        problems = list(totals[["n", "m"]].drop_duplicates().itertuples(index=False))
        figure, axes = panels(1, len(problems), width=11, height=4)
        for axis, (n, m) in zip(axes[0], problems, strict=True):
            panel = totals[(totals["n"] == n) & (totals["m"] == m)]
            sizes = sorted(panel["batch_size"].unique())
            for shift, (solver, hatch) in zip((-0.2, 0.2), HATCHES.items(), strict=True):
                base = np.zeros(len(sizes))
                for part in PARTS:
                    bars = panel[(panel["solver"] == solver) & (panel["part"] == part)].sort_values("batch_size")
                    height = bars["multiplications"].to_numpy() / np.array(sizes) / 1e3
                    axis.bar(np.arange(len(sizes)) + shift, height, 0.36, bottom=base, color=COLOURS[part],
                             hatch=hatch, edgecolor="white", linewidth=0)  # fmt: skip
                    base += height
            axis.set_xticks(range(len(sizes)), [f"{size}" for size in sizes])
            axis.set(xlabel="batch size l", title=f"n = {n}, m = {m}")
        axes[0, 0].set_ylabel("1000 multiplications per step / l")
        handles = [Patch(color=COLOURS[part], label=LABELS[part]) for part in PARTS]
        handles += [Patch(facecolor="#bbbbbb", hatch=HATCHES[FORMULA], edgecolor="white", label=f"hatched: {FORMULA}")]
        return finish(figure, title, handles)


def memory(table: pd.DataFrame, title: str) -> Figure:
    """Numbers kept and allocated at once against n, and the extra of a step against the batch size."""
    with plt.rc_context(STYLE):
        figure, axes = panels(1, 2, height=3.8, width=10)
        for solver, along_n in lines(table, "n").groupby("solver"):
            style = {"color": SERIES[str(solver), "grid"]["color"], "marker": "o", "ms": 4}
            along_n = along_n.sort_values("n")
            axes[0, 0].plot(along_n["n"], along_n["state"], **style)
            everything = along_n[["state", "minibatch", "extra"]].sum(axis=1)
            axes[0, 0].plot(along_n["n"], everything, ls="--", **style)
            along_l = lines(table, "batch_size")
            along_l = along_l[along_l["solver"] == solver].sort_values("batch_size")
            axes[0, 1].plot(along_l["batch_size"], along_l["extra"], label=solver, **style)
        n = np.array(sorted(lines(table, "n")["n"].unique()))
        axes[0, 0].plot(n, n**2, color="black", lw=0.8, ls=":")
        axes[0, 1].plot(along_l["batch_size"], along_l["minibatch"], color="black", lw=0.8, ls="-.")
        axes[0, 0].set(xscale="log", yscale="log", xlabel="n", ylabel="numbers in memory")
        axes[0, 0].set(title=f"l = {MIDDLE['batch_size']}, p = {MIDDLE['p']}")
        axes[0, 1].set(yscale="log", title=f"n = {MIDDLE['n']}, p = {MIDDLE['p']}")
        batch_size_axis(axes[0, 1], along_l["batch_size"])
        handles = axes[0, 1].get_legend_handles_labels()[0]
        for label, dashes in (
            ("kept; right: extra of a step", "-"), ("with minibatch and extra", "--"),
            ("an n-by-n matrix", ":"), ("the minibatch", "-."),
        ):  # fmt: skip
            handles.append(Line2D([], [], color="black", lw=1, ls=dashes, label=label))
        for axis in axes[0]:
            axis.grid(alpha=0.25)
        return finish(figure, title, handles)
