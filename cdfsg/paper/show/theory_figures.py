"""Pictures of the theory: landscapes of h, saddle points, the Hessian's spectrum, and how sharp the threshold is."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from cdfsg.paper.measure import data_table
from cdfsg.paper.show.figures import STYLE, finish, panels
from cdfsg.theory.statements import SEVERITIES

MARKS: dict[str, dict[str, Any]] = {
    "feasible minimiser": {"marker": "o", "color": "#0072B2"},
    "feasible saddle": {"marker": "s", "color": "#56B4E9"},
    "infeasible saddle": {"marker": "x", "color": "#009E73"},
    "infeasible minimiser": {"marker": "*", "color": "#D55E00"},
}
"""Kinds of stationary points; told apart by shape as well as colour."""


def first_correlation(dataset: str) -> float:
    """The leading generalised eigenvalue of a data set's two views, from the published records."""
    table = data_table.read("spectra")
    leading = table[(table["dataset"] == dataset) & (table["view"] == 0) & (table["index"] == 1)]
    return float(leading["value"].iloc[0])


def line(values: pd.DataFrame, points: pd.DataFrame) -> Figure:
    """The function h on the line, a panel per penalty parameter."""
    factors = values["factor"].unique()
    with plt.rc_context(STYLE):
        figure, axes = panels(1, len(factors), width=9.5, height=3.3)
        for axis, factor in zip(axes[0], factors, strict=True):
            part = values[values["factor"] == factor]
            axis.plot(part["x"], part["h"], color="#444444", lw=1.4)
            _mark(axis, points[points["factor"] == factor], "h")
            for x in (-1, 1):
                axis.axvline(x, color="black", lw=0.6, ls=":")
            axis.set(title=f"beta = {factor:g} beta~", xlabel="x")
            axis.set_ylim(part["h"].min() - 0.15, points.loc[points["factor"] == factor, "h"].max() + 0.4)
            axis.grid(alpha=0.25)
        axes[0, 0].set_ylabel("h / beta")
        return finish(figure, "n = p = 1, M = 1, f = x²/2 + x/2 + sin x", _handles(points))


def plane(values: pd.DataFrame, points: pd.DataFrame) -> Figure:
    """Contours of h in the plane, a panel per penalty parameter."""
    factors = values["factor"].unique()
    with plt.rc_context(STYLE):
        figure, axes = panels(1, len(factors), width=8.4, height=5.1, sharey=True)
        for axis, factor in zip(axes[0], factors, strict=True):
            part = values[values["factor"] == factor].pivot(index="y", columns="x", values="h")
            part = part.round(6)  # whether a contour is seen to close hangs on the last bit
            levels = part.to_numpy().min() + np.geomspace(0.01, 3, 16)
            style = {"colors": "#999999", "linewidths": 0.7, "linestyles": "-"}
            axis.contour(part.columns, part.index, part.to_numpy(), levels, **style)
            _mark(axis, points[points["factor"] == factor], "y")
            axis.set(title=f"beta = {factor:g} of the sharp one", xlabel="x", aspect="equal", xticks=range(-2, 3))
        axes[0, 0].set_ylabel("y")
        return finish(figure, "n = 2, p = 1, quadratic f: contours of h", _handles(points))


def saddle_curvatures(table: pd.DataFrame) -> Figure:
    """Curvature at infeasible stationary points against the smallest eigenvalue of X'MX."""
    styles = {
        "printed": ("the paper's constant", "#D55E00", "--"),
        "guaranteed": ("guaranteed by the closed form", "#009E73", ":"),
        "direction": ("along X v v'", "#0072B2", "-"),
        "hessian": ("least eigenvalue of the Hessian", "black", "-."),
    }
    with plt.rc_context(STYLE):
        figure, axes = panels(1, 1, width=7.4, height=3.8)
        axis = axes[0, 0]
        for column, (label, colour, dashes) in styles.items():
            axis.plot(table["sigma"], table[column], color=colour, ls=dashes, lw=1.5, label=label)
        above = table.loc[table["factor"] >= 1, "sigma"].max()
        axis.axvspan(table["sigma"].min(), above, color="#eeeeee", lw=0)
        axis.text(above, 0.1, "above beta~ ", ha="right", fontsize=8)
        axis.axhline(0, color="black", lw=0.6)
        axis.set(xscale="log", xlabel="sigma_min(X'MX)", ylabel="curvature / (s beta)", ylim=(-3.7, 0.4))
        axis.grid(alpha=0.25)
        return finish(
            figure, "linear f, n = 3, p = 2: curvature at saddle points", axis.get_legend_handles_labels()[0]
        )


def hessian_spectra(table: pd.DataFrame) -> Figure:
    """Eigenvalues of the Hessian of h against beta, at the minimiser and at an infeasible point."""
    places = table["where"].unique()
    with plt.rc_context(STYLE):
        figure, axes = panels(1, len(places), width=8.4, height=3.6, sharey=True)
        for axis, where in zip(axes[0], places, strict=True):
            for _, curve in table[table["where"] == where].groupby("index"):
                negative = bool((curve["value"] < -1e-9).iloc[-1])
                axis.plot(curve["factor"], curve["value"], color="#D55E00" if negative else "#0072B2", lw=1.2)
            axis.axhline(0, color="black", lw=0.6)
            axis.set(xscale="log", title=f"at the {where}", xlabel="beta / beta~")
            axis.set_yscale("symlog", linthresh=1)
            axis.grid(alpha=0.25)
        axes[0, 0].set_ylabel("eigenvalue / L_g")
        handles = [
            Line2D([], [], color="#0072B2", label="not negative at beta~"),
            Line2D([], [], color="#D55E00", label="negative at beta~"),
        ]
        return finish(figure, "quadratic f, n = 4, p = 2: the Hessian's spectrum", handles)


def sharpness(table: pd.DataFrame) -> Figure:
    """Least beta of each statement in units of the threshold, with the closed forms."""
    statements = list(table["statement"].unique())
    with plt.rc_context(STYLE):
        figure, axes = panels(1, 1, width=7.2, height=3.6)
        axis = axes[0, 0]
        rows = table["statement"].map(statements.index)
        axis.plot(table["ratio"], rows, "o", color="#0072B2", ms=5, alpha=0.7, label="found")
        axis.plot(table["closed"], rows, "|", color="black", ms=13, label="closed form")
        axis.axvline(1, color="#D55E00", lw=1.2, label="the paper's threshold")
        axis.set(xscale="log", xlabel="least beta / beta~", ylim=(len(statements) - 0.5, -0.5))
        axis.set_yticks(range(len(statements)), statements)
        axis.grid(alpha=0.25)
        return finish(figure, "quadratic f, n = 3, p = 2: how small may beta be?", axis.get_legend_handles_labels()[0])


def leading_pair(table: pd.DataFrame, title: str) -> Figure:
    """The function h along the first canonical pair, a panel per merit."""
    colours = {"sharp": "black"}
    with plt.rc_context(STYLE):
        merits = table["merit"].unique()
        figure, axes = panels(1, len(merits), width=8.4, height=3.5)
        for axis, merit in zip(axes[0], merits, strict=True):
            part = table[table["merit"] == merit]
            for name, curve in part.groupby("name", sort=False):
                colour = colours.get(str(name), "#D55E00")
                label = f"{name}: beta = {curve['beta'].iloc[0]:.3g}"
                axis.plot(curve["length"], curve["h"], color=colour, lw=1.5, label=label)
            axis.axvline(1, color="black", lw=0.6, ls=":")
            axis.set(title=f"{merit} merit", xlabel="X'MX", ylabel="h / sharp beta", ylim=(-8, 8))
            axis.legend(frameon=False, fontsize=8, loc="lower left")
            axis.grid(alpha=0.25)
        return finish(figure, title, [])


def _mark(axis: Any, points: pd.DataFrame, ordinate: str) -> None:
    for kind, style in MARKS.items():
        some = points[points["kind"] == kind]
        axis.plot(some["x"], some[ordinate], ls="none", ms=8, mew=1.6, label=kind, **style)


def _handles(points: pd.DataFrame) -> list[Line2D]:
    return [Line2D([], [], ls="none", ms=7, label=kind, **style) for kind, style in MARKS.items()
            if kind in set(points["kind"])]  # fmt: skip


def severities(table: pd.DataFrame) -> Figure:
    """How many errata there are of each severity, in the order of `statements.SEVERITIES`."""
    counted = table["severity"].value_counts().reindex(SEVERITIES[::-1], fill_value=0)
    with plt.rc_context(STYLE):
        figure, axes = panels(1, 1, width=6.2, height=2.4)
        axis = axes[0, 0]
        axis.barh(list(counted.index), counted, color="#0072B2", height=0.6)
        axis.bar_label(axis.containers[0], padding=3)
        axis.set(xlabel="errata", xlim=(0, counted.max() * 1.15))
        return finish(figure, "What kind of errata", [])
