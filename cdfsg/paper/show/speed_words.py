"""What the records of `make bench` say, in words."""

import numpy as np
import pandas as pd

from cdfsg.paper.measure.speed import LEVELS, reached
from cdfsg.paper.show.pages import NAMES


def ratios(direct: pd.DataFrame) -> str:
    """A line per data set and number of lanes: the ratios to the direct form at either precision."""
    lines = []
    for (dataset, lanes), rows in direct.groupby(["dataset", "lanes"], sort=False):
        words = ", ".join(
            f"{_span(part['ratio'])} times as fast as in {dtype}" for dtype, part in rows.groupby("dtype")
        )
        pass_seconds = _span(rows["engine_pass_seconds"])
        lines.append(f"{_place(dataset, lanes)}: {words}; a pass takes {pass_seconds} s per lane")
    return "\n".join(lines)


def shares(roofline: pd.DataFrame) -> str:
    """A line per data set and number of lanes: the share of the roofline by batch size, worst over p and solver."""
    lines = []
    for (dataset, lanes), rows in roofline.groupby(["dataset", "lanes"], sort=False):
        found = rows.groupby("batch_size")["share"].min()
        words = ", ".join(f"l = {size}: {share:.0%}" for size, share in found.items())
        lines.append(f"{_place(dataset, lanes)}: {words}")
    return "\n".join(lines)


def exponents(found: pd.DataFrame, quantity: str = "seconds") -> str:
    """A line per solver and axis: the exponent over the upper part, and over the whole range."""
    names = {"batch_size": "l", "N": "N", "n": "n", "p": "p", "lanes": "lanes"}
    lines = []
    chosen = found[found["quantity"] == quantity]
    for (solver, axis), rows in chosen.groupby(["solver", "axis"], sort=False):
        upper, whole = (rows[rows["part"] == part].iloc[0] for part in ("upper", "whole"))
        lines.append(
            f"{solver:10s} {names[axis]:6s} {upper['low']:6g} to {upper['high']:6g}: "
            f"{upper['exponent']:.2f} +- {upper['half_width']:.2f}; from {whole['low']:g} on: "
            f"{whole['exponent']:.2f} +- {whole['half_width']:.2f}"
        )
    return "\n".join(lines)


def methods(curves: pd.DataFrame) -> str:
    """A line per method and setting: when it reaches which PCC."""
    lines = []
    for row in reached(curves).to_dict("records"):
        times = ", ".join(f"PCC {level:.2f} {_when(row[f'seconds_to_{level:.2f}'])}" for level in LEVELS)
        words = f"{row['method']} ({row['setting']}): {times}; "
        words += f"PCC {row['pcc_pass']:.3f} after one pass, {_short(row['seconds_pass'])} s"
        if row["passes"] > 1:
            words += f"; {row['pcc_end']:.3f} after {row['passes']:g}, {_short(row['seconds_end'])} s"
        lines.append(words)
    return "\n".join(lines)


def paper(both: pd.DataFrame) -> str:
    """How many times as long as ours the paper's runs took, per data set and solver."""
    lines = []
    for (dataset, solver), rows in both.groupby(["dataset", "solver"], sort=False):
        ratio = rows["paper"] / rows["ours"]
        lines.append(
            f"{NAMES.get(dataset, dataset)}, {solver}: the paper {_span(rows['paper'])} s, "
            f"ours {_span(rows['ours'])} s: {_span(ratio)} times"
        )
    return "\n".join(lines)


def targets(table: pd.DataFrame) -> str:
    """The table for people, and how many are met."""
    lines = [
        f"{row.says:60s} {row.wanted:>7s}: {row.measured:.3g}, {'met' if row.met else 'not met'}"
        for row in table.itertuples()
    ]
    return "\n".join([*lines, f"{int(table['met'].sum())} of {len(table)} are met"])


def _place(dataset: str, lanes: int) -> str:
    return f"{NAMES.get(dataset, dataset)}, {lanes} lane{'s' * (lanes > 1)}"


def _span(values: pd.Series) -> str:
    """Lowest to highest, or the one number that both are in print."""
    low, high = _short(values.min()), _short(values.max())
    return low if low == high else f"{low} to {high}"


def _short(value: float) -> str:
    """Two significant digits, or the whole number."""
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def _when(seconds: float) -> str:
    return "never" if np.isnan(seconds) else f"in {_short(seconds)} s"
