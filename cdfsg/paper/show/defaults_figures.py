"""What `StochasticGCCA` captures at its default settings: the records, their picture and what they say."""

from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from cdfsg import checksums
from cdfsg.files import RECORDS
from cdfsg.paper.show.figures import STYLE, finish, panels

GOAL = 0.95
"""Share of the exact correlations that default settings are to reach within five passes, or else to warn."""
DEFAULT, RIVAL = "cdfsg-ada", "CCA-EY, cca-zoo"
_METHODS = {DEFAULT: ("#D55E00", "o"), "cdfsg": ("#0072B2", "s"), RIVAL: ("#666666", "D")}


def published(folder: Path = RECORDS) -> pd.DataFrame:
    """Read ``defaults.csv``; ``warned`` is empty text where there was no warning.

    Raises
    ------
    FileNotFoundError
        If it is missing; the message says how to make it.
    """
    path = folder / "defaults.csv"
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing; make it with: make bench, or benchmarks/defaults.py alone")
    missing = dict.fromkeys(("share", "seconds"), [""])
    return checksums.read_csv(path, "make it anew with: make bench", keep_default_na=False, na_values=missing)


def shares(table: pd.DataFrame, title: str) -> Figure:
    """Share of the exact correlations by data set and method, identity merit; hollow where the method warned."""
    rows = table[table["merit"] == "identity"]
    names = [f"{name} ({kind})" for name, kind in zip(rows["dataset"], rows["provenance"], strict=True)]
    places = {name: place for place, name in enumerate(dict.fromkeys(names))}
    with plt.rc_context(STYLE):
        figure, axes = panels(1, 1, width=8, height=0.34 * len(places) + 1.4)
        axis = axes[0, 0]
        for name, row in zip(names, rows.itertuples(), strict=True):
            colour, marker = _METHODS[row.algorithm]
            axis.plot(row.share, places[name], marker, color=colour, mfc="none" if row.warned else colour, ms=6)
        axis.axvline(GOAL, color="black", lw=0.8, ls=":")
        axis.set_yticks(list(places.values()), list(places))
        axis.set(ylim=(len(places) - 0.5, -0.5), xlabel="share of the exact correlations, worst of three seeds")
        axis.grid(axis="x", alpha=0.25)
        handles = [
            Line2D([], [], color=colour, marker=marker, ls="", label=method)
            for method, (colour, marker) in _METHODS.items()
        ]
        handles.append(Line2D([], [], color="black", marker="o", mfc="none", ls="", label="hollow: it warned"))
        return finish(figure, title, handles)


def explain(table: pd.DataFrame) -> str:
    """In how many data sets each method reaches `GOAL`, and in how many of the others it warned."""
    lines = []
    for method, rows in table[table["merit"] == "identity"].groupby("algorithm", sort=False):
        short = rows[rows["share"] < GOAL]
        derived = int((rows["provenance"] == "derived").sum())
        of = f"{len(rows)} ({derived} on derived data)" if derived else f"{len(rows)}"
        lines.append(
            f"{method}: {len(rows) - len(short)} of {of} at {GOAL:g} or more, least {rows['share'].min():.3f}; "
            f"of the others {(short['warned'] != '').sum()} of {len(short)} with a warning"
        )
    return "\n".join(lines)


def silent(table: pd.DataFrame) -> list[str]:
    """The fits of the estimator that miss `GOAL` without a warning."""
    rows = table[(table["algorithm"] != RIVAL) & ~(table["share"] >= GOAL) & (table["warned"] == "")]
    return [f"{row.dataset}, {row.merit} merit, {row.algorithm}: {row.share:.2f}" for row in rows.itertuples()]
