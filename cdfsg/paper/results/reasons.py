"""Why a number differs from the paper's: each that is worse, or diverged on one side only, with its reasons.

A reason is a test over the records.  It applies if under it the number would match the printed one or be better.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from cdfsg import checksums
from cdfsg.files import RECORDS
from cdfsg.paper import archive
from cdfsg.paper.experiments import EXPERIMENTS, Experiment
from cdfsg.paper.protocols import ENTRIES
from cdfsg.paper.results.reported import QUANTITIES, tolerance_of
from cdfsg.paper.results.verdicts import final_cells, judge
from cdfsg.paper.select import ROW, grid_cells, rows_at, summarise

MISMATCHES = ("worse", "diverged-ours", "diverged-paper")
UNEXPLAINED = "unexplained"
COLUMNS = ("table", *ROW, "quantity", "reported", "reproduced", "verdict", "reason", "evidence")


@dataclass(frozen=True)
class Number:
    """A number that differs, with all that may explain it."""

    place: dict[str, Any]  # batch_size, p, solver
    quantity: str
    reported: float  # NaN for a dash
    row: pd.Series  # the paper's printed row by quantity
    ours: pd.DataFrame  # summaries of our runs at this place, of every variant and setting
    # Batch sizes, for this p and solver, at which a variant diverges, and at which the paper has a dash:
    diverging: dict[str, list[int]]
    dashes: list[int]

    def accepts(self, value: float) -> bool:
        """Whether a value would match the printed one or be better; an Fval must match, as an infeasible one is low."""
        verdict = judge(self.reported, value, self.quantity)
        return verdict == "match" or (verdict == "better" and not self.quantity.startswith("fval"))

    def judged(self) -> pd.Series | None:
        """Our cell that stands for this place, or None if its runs diverged or nothing was eligible."""
        cells = self.ours[self.ours["judged"] & (self.ours["n_diverged"] == 0)]
        return cells.iloc[0] if len(cells) else None


def other_norm(number: Number) -> str:
    """Fea in the spectral norm: the paper does not say which norm it prints."""
    cell = number.judged()
    if not number.quantity.startswith("fea") or cell is None:
        return ""
    value = cell[number.quantity.replace("fea", "fea_spectral")]
    return f"{value:.2f} in the spectral norm" if number.accepts(value) else ""


def invariant_evaluation(number: Number) -> str:
    """The paper's Fval does not move under post-processing though Fea does: it looks evaluated after normalisation."""
    cell = number.judged()
    if number.quantity not in ("fval", "fval_post") or cell is None:
        return ""
    printed = number.row.reindex(["fval", "fval_post", "fval_orth"]).to_numpy(dtype=float)
    constant = np.ptp(printed) <= 0.01 + 1e-9  # a unit of the last printed digit
    value, fea = cell["fval_orth"], number.row["fea"]
    if not (constant and fea >= tolerance_of("fea").tolerance and number.accepts(value)):
        return ""
    return (
        f"the paper's Fval, Fval* and Fval⋆ are one number in spite of Fea = {fea:.2f}; "
        f"our Fval⋆ is {value:.2f}"
    )


def other_setting(number: Number) -> str:
    """Other settings of a competitor: its authors' step in our units, or tuned like CDFSG; or another order."""
    # The first of a competitor's settings is the judged one.
    return _among(number, BASELINES.get(number.place["solver"], ())[1:])


def other_grid_point(number: Number) -> str:
    """Another point of the paper's grid: the paper does not say how it chose."""
    grid = number.ours[number.ours["variant"] == "grid"]
    good = grid[[number.accepts(value) for value in grid[number.quantity]]]
    if good.empty:
        return ""
    best = good.loc[(good["quality"] - good["fea"]).idxmax()]
    return (
        f"{best[number.quantity]:.2f} at s1 = {best['s1']:g}, s2 = {best['s2']:g} "
        f"(quality {best['quality']:.2f}, Fea {best['fea']:.2f}; the paper's Fea {number.row['fea']:.2f})"
    )


def other_protocol(number: Number) -> str:
    """Another reading of the setting, with step sizes selected anew: raw data, one minibatch, Ada's constants."""
    known = ("grid", "orders", *BASELINES.get(number.place["solver"], ()))
    return _among(number, [variant for variant in number.ours["variant"].unique() if variant not in known])


def data_order(number: Number) -> str:
    """Chance: one of ten other data orders gives the number."""
    values = number.ours.loc[number.ours["variant"] == "orders", number.quantity].dropna()
    if values.empty or not any(number.accepts(value) for value in values):
        return ""
    return f"{values.min():.2f} to {values.max():.2f} over {len(values)} data orders"


def dashes_of_other_setting(number: Number) -> str:
    """Under another setting the competitor diverges exactly at the batch sizes where the paper has dashes."""
    if not np.isnan(number.reported):
        return ""
    same = [variant for variant, sizes in number.diverging.items() if sizes == number.dashes]
    return f"at l = {_list(number.dashes)} alone with the setting {', '.join(same)}" if same else ""


def diverges_elsewhere_too(number: Number) -> str:
    """Under another setting the competitor diverges here, but not only where the paper has dashes."""
    if not np.isnan(number.reported):
        return ""
    size, found = number.place["batch_size"], number.diverging.items()
    here = [(variant, sizes) for variant, sizes in found if size in sizes and sizes != number.dashes]
    return "; ".join(f"{variant} at l = {_list(sizes)}" for variant, sizes in here)


REASONS: dict[str, Callable[[Number], str]] = {
    "norm": other_norm,
    "evaluation": invariant_evaluation,
    "data order": data_order,
    "baseline's setting": other_setting,
    "baseline diverges": dashes_of_other_setting,
    "grid point": other_grid_point,
    "protocol": other_protocol,
    "diverges elsewhere too": diverges_elsewhere_too,
}
"""Reasons by the name that the tables print, the plainest first."""
BASELINES = {name: (*entry.given, "tuned") for name, entry in ENTRIES.items() if entry.given}
"""Settings with which a competitor runs under the protocol."""


def reasons(experiment: Experiment, judged: pd.DataFrame, runs: pd.DataFrame, ablated: pd.DataFrame) -> pd.DataFrame:
    """Every number whose verdict is in `MISMATCHES` with its reasons, and the evidence of each."""
    cells = _cells(runs, ablated)
    rows = []
    for cell in judged[judged["verdict"].isin(MISMATCHES)].itertuples():
        number = _number(cell, judged, cells)
        found = {name: words for name, test in REASONS.items() if (words := test(number))}
        rows.append(
            {
                **{name: getattr(cell, name) for name in COLUMNS[:8]},
                "reason": "; ".join(found) or UNEXPLAINED,
                "evidence": " | ".join(f"{name}: {words}" for name, words in found.items()),
            }
        )
    return pd.DataFrame(rows, columns=list(COLUMNS))


def counts(table: pd.DataFrame) -> pd.DataFrame:
    """Numbers per solver and first reason."""
    first = table["reason"].str.split("; ").str[0]
    return pd.crosstab(table["solver"], first).rename_axis(columns=None)


def norms(judged: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """How many numbers of Fea would match, be better or worse in either norm, to see whether one fits better."""
    cells = final_cells(runs).set_index(ROW)
    rows = []
    for number in judged[judged["quantity"].isin(["fea", "fea_post"])].itertuples():
        key = (number.batch_size, number.p, number.solver)
        if key in cells.index and not np.isnan(number.reported):
            for norm, name in (("Frobenius", "fea"), ("spectral", "fea_spectral")):
                value = cells.loc[key, number.quantity.replace("fea", name)]
                word = judge(number.reported, value, number.quantity, number.flag)
                rows.append({"norm": norm, "verdict": word})
    table = pd.DataFrame(rows, columns=["norm", "verdict"])
    counted = pd.crosstab(table["norm"], table["verdict"])
    return counted.reindex(columns=["match", "better", "worse"], fill_value=0).rename_axis(columns=None)


def listing(table: pd.DataFrame) -> str:
    """Each number with its evidence in words; a dash of the paper where our runs ended is one line for its row."""
    lines = []
    is_dash = table["verdict"] == "diverged-paper"
    for row in pd.concat([table[~is_dash], table[is_dash].drop_duplicates(ROW)]).itertuples():
        said = f"{QUANTITIES[row.quantity]} {row.reproduced:.2f}, the paper {row.reported:.2f}"
        if row.verdict == "diverged-paper":
            said = "ends well, the paper has dashes"
        lines.append(f"l = {row.batch_size}, p = {row.p}, {row.solver}: {said}")
        lines += [f"    {words}" for words in (row.evidence or row.reason).split(" | ")]
    return "\n".join(lines) or "Nothing differs."


def write(judged: pd.DataFrame) -> pd.DataFrame:
    """Find the reasons of every number that differs, and write ``data/records/reasons.csv``."""
    frames = []
    for experiment in EXPERIMENTS.values():
        part = judged[judged["table"] == experiment.table]
        if part["verdict"].isin(MISMATCHES).any():
            frames.append(reasons(experiment, part, archive.runs_of(experiment), archive.ablations(experiment)))
    table = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=list(COLUMNS))
    checksums.write(RECORDS / "reasons.csv", table.to_csv(index=False, lineterminator="\n"))
    return table


def read() -> pd.DataFrame:
    """The published ``data/records/reasons.csv``."""
    missing = dict.fromkeys(("reported", "reproduced"), "")
    remedy = "make it anew with: python -m cdfsg verdict"
    return checksums.read_csv(RECORDS / "reasons.csv", remedy, keep_default_na=False, na_values=missing)


def _cells(runs: pd.DataFrame, ablated: pd.DataFrame) -> pd.DataFrame:
    """Summaries of all reported runs, a run in another data order by itself; `judged` marks those that were judged."""
    ordered = ablated["variant"] == "orders"
    parts = [part[part["role"] == "reported"] for part in (runs[runs["variant"] != "grid"], ablated[~ordered])]
    cells = pd.concat([grid_cells(runs), *(summarise(part) for part in parts if len(part))], ignore_index=True)
    alone = ablated[ordered].assign(n_diverged=(ablated["status"] == "diverged").astype(int))
    cells = pd.concat([cells, alone[alone.columns.intersection(cells.columns)]], ignore_index=True)
    keys = [*ROW, "variant", "s1", "s2"]
    judged = final_cells(runs)[keys].assign(judged=True)
    cells = cells.merge(judged, how="left", on=keys)  # a missing s1 equals a missing s1
    return cells.assign(judged=cells["judged"].eq(True))


def _number(cell: Any, judged: pd.DataFrame, cells: pd.DataFrame) -> Number:
    place = {name: getattr(cell, name) for name in ROW}
    column = (judged[["p", "solver", "quantity"]] == [cell.p, cell.solver, cell.quantity]).all(axis=1)
    dashes = judged.loc[column & judged["reported"].isna(), "batch_size"]
    lost = cells[(cells["variant"] != "grid") & (cells["n_diverged"] > 0)]
    lost = lost[(lost["p"] == cell.p) & (lost["solver"] == cell.solver)]
    sizes = lost.groupby("variant")["batch_size"].unique()
    return Number(
        place=place,
        quantity=cell.quantity,
        reported=cell.reported,
        row=rows_at(judged, place.values()).set_index("quantity")["reported"],
        ours=rows_at(cells, place.values()),
        diverging={variant: sorted(found) for variant, found in sizes.items()},
        dashes=sorted(dashes),
    )


def _among(number: Number, variants: Sequence[str]) -> str:
    """The variants under which the number would match or be better, with what they give."""
    words = []
    for variant in variants:
        values = number.ours.loc[number.ours["variant"] == variant, number.quantity]
        words += [f"{value:.2f} {variant}" for value in values if number.accepts(value)]
    return ", ".join(words)


def _list(sizes: Sequence[int]) -> str:
    return ", ".join(str(size) for size in sizes)
