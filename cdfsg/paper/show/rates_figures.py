"""Figures of Section 4: the tracker's error, the bias of minibatches, and the rate of both algorithms."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from cdfsg.linalg import Array
from cdfsg.merits import Huber
from cdfsg.paper.experiments import entry_of
from cdfsg.paper.show.figures import SERIES, STYLE, finish, panels
from cdfsg.solvers.cdfsg import CDFSG
from cdfsg.theory.rates import HORIZONS, rate
from cdfsg.theory.sampling import QUADRATIC, example, gradient_bias, shared_bias, without_replacement
from cdfsg.theory.tracker import tracking_error

STEPS = 60
BIASES = {"shared": ("W, one minibatch for xi and theta", "#0072B2"), "Huber": ("gradient of f, Huber", "#D55E00")}


def grid_steps() -> list[float]:
    """The tracker's step sizes ``b = s2 / s1`` that the paper's grid contains, each once."""
    return sorted({round(s2 / s1, 12) for s1, s2 in entry_of(CDFSG.name).grid})


def tracker_table() -> pd.DataFrame:
    """Mean squared error of the tracker relative to a minibatch's, per b of the paper's grid and step k."""
    frames = [
        pd.DataFrame({"b": b, "k": np.arange(STEPS + 1), "error": tracking_error(b, STEPS)}) for b in grid_steps()
    ]
    return pd.concat(frames, ignore_index=True)


def tracker(table: pd.DataFrame, title: str) -> Figure:
    """The error along the steps, and where it ends against b."""
    with plt.rc_context(STYLE):
        figure, axes = panels(1, 2, height=3.6, width=9)
        colours = plt.get_cmap("viridis")(np.linspace(0, 0.85, table["b"].nunique()))
        for b, colour in zip(sorted(table["b"].unique()), colours, strict=True):
            course, outside = table[table["b"] == b], b > 1
            axes[0, 0].plot(course["k"], course["error"], color="#D55E00" if outside else colour, lw=1.2)
            axes[0, 1].plot(b, min(course["error"].iloc[-1], 1e3), marker="^" if outside else "o",
                            color="#D55E00" if outside else colour)  # fmt: skip
        along = np.geomspace(table["b"].min(), 1.99, 200)
        axes[0, 1].plot(along, along / (2 - along), color="black", lw=0.8)
        axes[0, 1].axvline(1, color="black", lw=0.8, ls=":")
        axes[0, 0].set(yscale="log", ylim=(1e-3, 1e3), xlabel="k", ylabel="error / that of a minibatch")
        axes[0, 1].set(xscale="log", yscale="log", ylim=(1e-3, 2e3), xlabel="b", title=f"at k = {STEPS}")
        handles = [
            Line2D([], [], color=colours[1], marker="o", label="b in [0, 1]"),
            Line2D([], [], color="#D55E00", marker="^", label="b > 1, which the grid has"),
            Line2D([], [], color="black", lw=0.8, label="limit b / (2 - b)"),
        ]
        return finish(figure, title, handles)


def bias_table() -> pd.DataFrame:
    """Norm of the bias against the batch size l, relative to that at l = 1, exact over all minibatches."""
    Z, sizes, X, Y = example()
    shared: list[float] = [float(np.linalg.norm(bias)) for bias in shared_bias(Z, sizes, X, Y)]
    huber = gradient_bias(Z, sizes, X, Huber(QUADRATIC))
    size = range(1, len(Z))
    law = [without_replacement(count, len(Z)) for count in size]
    frames = [
        pd.DataFrame({"of": name, "batch_size": size, "bias": np.array(values) / values[0], "law": law})
        for name, values in (("shared", shared), ("Huber", huber))
    ]
    return pd.concat(frames, ignore_index=True)


def bias(table: pd.DataFrame, title: str) -> Figure:
    """The bias against the batch size, with 1/l and the exact law of drawing without replacement."""
    with plt.rc_context(STYLE):
        figure, axes = panels(1, 1, height=3.6, width=5.2)
        sizes = {"shared": 9, "Huber": 5}  # one lies on the other
        for (name, rows), marker in zip(table.groupby("of", sort=False), "os", strict=True):
            label, colour = BIASES[str(name)]
            axes[0, 0].plot(rows["batch_size"], rows["bias"], marker, color=colour, label=label, mfc="none",
                            ms=sizes[str(name)])  # fmt: skip
        axes[0, 0].plot(rows["batch_size"], rows["law"], color="black", lw=0.8, label="(N - l) / ((N - 1) l)")
        axes[0, 0].plot(rows["batch_size"], 1 / rows["batch_size"], color="black", lw=0.8, ls=":", label="1 / l")
        axes[0, 0].set(xscale="log", yscale="log", xlabel="batch size l", ylabel="bias / bias at l = 1")
        ticks = [1, 2, 5, 9]
        axes[0, 0].set_xticks(ticks, [f"{tick}" for tick in ticks])
        axes[0, 0].minorticks_off()
        return finish(figure, title, axes[0, 0].get_legend_handles_labels()[0])


def rate_tables(solvers: list[CDFSG]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Mean squared gradients per solver, horizon and run, and the fitted slope per solver."""
    means, slopes = [], []
    for solver in solvers:
        values, slope, half_width = rate(solver)
        means += [_runs(solver, K, row) for K, row in zip(HORIZONS, values, strict=True)]
        slopes.append({"solver": solver.name, "slope": slope, "low": slope - half_width, "high": slope + half_width})
    return pd.concat(means, ignore_index=True), pd.DataFrame(slopes)


def rates(means: pd.DataFrame, slopes: pd.DataFrame, title: str) -> Figure:
    """Mean squared gradient against K, a point per run, the line through the medians, and slope -1/2."""
    with plt.rc_context(STYLE):
        figure, axes = panels(1, len(slopes), height=3.6, width=9)
        for axis, row in zip(axes[0], slopes.itertuples(index=False), strict=True):
            rows = means[means["solver"] == row.solver]
            style = SERIES[str(row.solver), "grid"]
            axis.plot(rows["K"], rows["mean"], "o", color=style["color"], ms=3, alpha=0.3)
            median = rows.groupby("K")["mean"].median()
            axis.plot(median.index, median, color=style["color"])
            axis.plot(median.index, median.iloc[-1] * (median.index / median.index[-1]) ** -0.5, color="black", ls=":")
            axis.set(xscale="log", yscale="log", xlabel="steps K", title=str(row.solver))
            axis.text(0.95, 0.9, f"slope {row.slope:.2f} [{row.low:.2f}, {row.high:.2f}]", ha="right",
                      transform=axis.transAxes)  # fmt: skip
        axes[0, 0].set_ylabel("mean squared gradient of h")
        handles = [
            Line2D([], [], color="black", label="median of the runs (coloured)"),
            Line2D([], [], color="black", ls=":", label="slope -1/2, as claimed"),
        ]
        return finish(figure, title, handles)


def _runs(solver: CDFSG, K: int, values: Array) -> pd.DataFrame:
    return pd.DataFrame({"solver": solver.name, "K": K, "run": np.arange(len(values)), "mean": values})
