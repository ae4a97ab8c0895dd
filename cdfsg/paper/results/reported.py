"""The paper's own numbers, and what counts as reproducing them."""

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd

from cdfsg import checksums
from cdfsg.files import PAPER
from cdfsg.linalg import Array

QUANTITIES = {
    "pcc": "PCC", "fea": "Fea", "time_s": "Time (s)", "pcc_post": "PCC*", "fea_post": "Fea*", "pcc_orth": "PCC⋆",
    "fval": "Fval", "fval_post": "Fval*", "fval_orth": "Fval⋆",
}  # fmt: skip
"""Column of the data file to heading of the paper: * is its own post-processing, ⋆ the exact one."""

TABLES = (
    "ta:computation", "ta:data", "ta:pcctimemd", "ta:pcctimemn", "ta:fvalnmni", "ta:fvalmd", "ta:fvalmn", "ta:fvalnmnh",
)  # fmt: skip
"""Labels of the paper's tables in their printed order."""
PANELS = {
    "ta:pcctimemd": "Figure 3 (a) to (d)", "ta:pcctimemn": "Figure 3 (e) to (h)", "ta:fvalnmni": "Figure 4 (a) to (d)",
    "ta:fvalmd": "Figure 5 (a) to (d)", "ta:fvalmn": "Figure 5 (e) to (h)", "ta:fvalnmnh": "Figure 5 (i) to (l)",
}  # fmt: skip
"""The paper's panels of a table: accuracy and Fea for p = 5, then for p = 10."""
BETA_PANELS = {"ta:pcctimemn": "Figure 1 (a) and (b)", "ta:fvalmn": "Figure 2 (a) and (b)"}
"""Those of penalty parameters: accuracy and Fea."""


def table_name(table: str) -> str:
    """Name of a table as printed, such as "Table 4"."""
    return f"Table {TABLES.index(table) + 1}" if table in TABLES else "no table of the paper"


@dataclass(frozen=True)
class Tolerance:
    """How far a quantity may differ from the printed number, and why."""

    tolerance: float
    reason: str
    relative: float = 0.0  # what is added, as a share of the printed number
    comparable: bool = True  # or else shown and never judged

    def around(self, reported: float) -> float:
        """Tolerance around a printed number."""
        return self.tolerance + self.relative * abs(reported)


@lru_cache(maxsize=1)
def tolerances() -> dict[str, Tolerance]:
    """Tolerances by quantity; the post-processed forms have that of their metric."""
    entries = tomllib.loads(checksums.read(PAPER / "tolerances.toml").decode("utf-8"))
    return {name: Tolerance(**entry) for name, entry in entries.items()}


def tolerance_of(quantity: str) -> Tolerance:
    """Tolerance of a quantity such as ``fea_post``; ValueError if it has none."""
    known = tolerances()
    name = quantity if quantity in known else quantity.split("_")[0]
    if name not in known:
        raise ValueError(
            f"no tolerance for the quantity {quantity!r}; data/paper/tolerances.toml has {', '.join(known)}, and what "
            "is to be judged needs an entry there, with its reason"
        )
    return known[name]


DERIVED = ("pcc_post", "pcc_orth", "fval_post", "fval_orth")
"""Quantities that follow from PCC, or from Fval at a nearly feasible point: they are shown and not counted."""
INDEPENDENT = ("accuracy", "fea", "fea_post")
"""The others that are compared; accuracy is PCC or Fval."""
INAPPLICABLE = "inapplicable"
"""Flag of a dash for a quantity that the solver does not have."""
UNPRINTED = "not in the paper"
"""Flag of a solver's numbers that the paper does not have."""


def load_table(table: str) -> pd.DataFrame:
    """Cells of one of the paper's tables, none of ""; `reported` is NaN where it prints a dash."""
    cells = checksums.read_csv(PAPER / "tables.csv", keep_default_na=False, na_values={"value": [""]})
    known = cells["table"].unique()
    cells = cells[cells["table"] == table].rename(columns={"value": "reported"})
    if cells.empty and table:
        raise ValueError(
            f"the paper has no table {table!r}; known tables in {PAPER / 'tables.csv'}: {', '.join(known)}"
        )
    cells.loc[(cells["solver"] == "RSG+") & cells["reported"].isna(), "flag"] = INAPPLICABLE
    return cells.reset_index(drop=True)


def unprinted(table: str, solver: str) -> pd.DataFrame:
    """Cells like those of `load_table` for a solver that the paper lacks: nothing reported, flag `UNPRINTED`."""
    cells = load_table(table)
    one = cells[cells["solver"] == cells["solver"].iloc[0]]
    return one.assign(solver=solver, reported=float("nan"), bold=0, flag=UNPRINTED)


def printed_rows(tables: Iterable[str], solvers: Sequence[str]) -> pd.DataFrame:
    """The printed rows of some solvers with their independent quantities and tolerances: a row per place.

    Columns: table, dataset, batch_size, p, solver, measure ("pcc" or "fval"), and `INDEPENDENT` with and without
    ``_tolerance``.
    """
    rows, places = [], ["table", "dataset", "batch_size", "p", "solver"]
    for table in tables:
        cells = load_table(table)
        for place, part in cells[cells["solver"].isin(solvers)].groupby(places, sort=False):
            values = part.set_index("quantity")["reported"]
            measure = "pcc" if "pcc" in values else "fval"
            row = dict(zip(places, place, strict=True)) | {"measure": measure}
            for name, quantity in zip(INDEPENDENT, (measure, "fea", "fea_post"), strict=True):
                row[name] = values[quantity]
                row[f"{name}_tolerance"] = tolerance_of(quantity).around(values[quantity])
            rows.append(row)
    numbers = [column for name in INDEPENDENT for column in (name, f"{name}_tolerance")]
    return pd.DataFrame(rows, columns=[*places, "measure", *numbers])


def gaps(values: Array, rows: pd.DataFrame) -> Array:
    """Differences of values (..., rows, `INDEPENDENT`) to printed rows in tolerances; NaN where there is no number."""
    tolerances = rows[[f"{name}_tolerance" for name in INDEPENDENT]].to_numpy()
    return (values - rows[list(INDEPENDENT)].to_numpy()) / tolerances


def distances(values: Array, rows: pd.DataFrame) -> Array:
    """The largest of the absolute `gaps` to each row; infinite where a run diverged."""
    farthest = np.abs(gaps(values, rows)).max(axis=-1)
    return np.where(np.isnan(farthest), np.inf, farthest)
