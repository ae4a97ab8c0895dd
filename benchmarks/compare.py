"""Two folders of run records beside each other: how the numbers differ on another processor, or under another kernel.

    .venv/bin/python benchmarks/compare.py /path/to/the/old/records data/records

It prints how far the numbers of the same runs lie apart, the runs for which that is more than 1e-4 (`LIMIT`), and
the selected settings and the words of the verdicts and claims that differ.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from cdfsg.linalg import Array
from cdfsg.paper.archive import INDEX
from cdfsg.paper.records import METRICS, SETTINGS
from cdfsg.paper.select import select

RUN = [
    "dataset", "merit", "batch_size", "p", "solver", "role", "variant", "beta", "order", "start", *SETTINGS, "samples",
]  # fmt: skip
"""Columns that tell a run, or a point of its curve, from all others; wall times and keys do not."""
NUMBERS = ["stopped_at", "bound", *METRICS, "seconds"]
WORDS = {
    "verdicts.csv": ["table", "dataset", "merit", "batch_size", "p", "solver", "quantity"],
    "claims.csv": ["claim"],
}
"""Files with a column `verdict`, and the columns that tell their rows apart."""
LIMIT = 1e-4
"""Largest difference of a number below 1, or relative difference of a larger one, that needs no look."""
ROUNDED_ZERO = 1e-9
"""Numbers below are the rounding of a zero, as Fea after the exact post-processing; their relative differences are of
this number."""


def compare(old: Path, new: Path) -> dict[str, pd.DataFrame]:
    """Compare two folders as ``data/records`` with records of the same experiments.

    Returns ``numbers``, the spread of the relative differences per solver and column; ``runs``, those whose status
    differs, that only one folder has, or with a number that differs by more than `LIMIT`, and why; ``settings`` and
    ``verdicts``, what differs of them.
    """
    names = sorted({path.name for path in old.glob("*.csv")} & {path.name for path in new.glob("*.csv")} - {INDEX})
    pairs = {name: (read(old / name), read(new / name)) for name in names}
    records = {name: pair for name, pair in pairs.items() if "role" in pair[0]}
    how = {"on": RUN, "how": "outer", "suffixes": ("_old", "_new"), "indicator": True, "validate": "1:1"}
    joined = pd.concat([pd.merge(*pair, **how).assign(file=name) for name, pair in records.items()], ignore_index=True)
    there = joined[joined["_merge"] == "both"]
    apart, scaled = (
        pd.DataFrame({name: _apart(there[f"{name}_old"], there[f"{name}_new"], least) for name in NUMBERS}, there.index)
        for least in (ROUNDED_ZERO, 1.0)
    )
    parts = {"all": apart, **{solver: apart.loc[index] for solver, index in there.groupby("solver").groups.items()}}
    settings = [_settings(*pair).assign(file=name) for name, pair in records.items()]
    words = [_words(*pairs[name], keys).assign(file=name) for name, keys in WORDS.items() if name in pairs]
    return {
        "numbers": pd.concat({solver: _spread(part) for solver, part in parts.items()}, names=["solver", "number"]),
        "runs": _odd(joined, scaled),
        "settings": pd.concat(settings, ignore_index=True),
        "verdicts": pd.concat([pd.DataFrame(), *words], ignore_index=True),
    }


def read(path: Path) -> pd.DataFrame:
    """A table; of records the columns that are compared, with what the folder's index has of their jobs."""
    table, jobs = pd.read_csv(path), pd.read_csv(path.with_name(INDEX))
    if "status" not in table:
        return table
    table = table.merge(jobs[jobs["file"] == path.name], on="key", how="left")
    return table.reindex(columns=[*RUN, "status", *NUMBERS])


def _apart(old: pd.Series, new: pd.Series, least: float) -> Array:
    """Differences relative to the larger number or `least`; none where both are missing, infinite where one is."""
    size = np.maximum(np.maximum(old.abs(), new.abs()), least)
    missing = np.where(old.isna() == new.isna(), np.nan, np.inf)
    return np.where(old.isna() | new.isna(), missing, (old - new).abs() / size)


def _spread(apart: pd.DataFrame) -> pd.DataFrame:
    """How the differences are spread, of the runs that have the number in both folders."""
    apart = apart.where(np.isfinite(apart))
    columns = {"runs": apart.count(), "median": apart.median(), "99 %": apart.quantile(0.99), "largest": apart.max()}
    return pd.DataFrame(columns).query("runs > 0")


def _odd(joined: pd.DataFrame, apart: pd.DataFrame) -> pd.DataFrame:
    """The runs to look at, with the number that differs most and its difference."""
    most = apart.max(axis=1).reindex(joined.index)
    status = joined["status_old"] != joined["status_new"]
    why = np.select(
        [joined["_merge"] == "left_only", joined["_merge"] == "right_only", status, most > LIMIT],
        ["only in the old", "only in the new", "another status", "another number"],
        default="",
    )
    odd = joined[["file", *RUN, "status_old", "status_new"]].assign(
        why=why, number=apart.fillna(-1).idxmax(axis=1).reindex(joined.index), apart=most
    )
    return odd[odd["why"] != ""].reset_index(drop=True)


def _settings(old: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
    """Selected settings that differ, of every variant with tuning runs."""
    rows = []
    for variant in sorted(set(old.loc[old["role"] == "tuning", "variant"])):
        before, after = (select(side[side["variant"] == variant]) for side in (old, new))
        cells = [cell for cell in sorted(before.keys() | after.keys()) if before.get(cell) != after.get(cell)]
        rows += [(variant, *cell, before.get(cell), after.get(cell)) for cell in cells]
    return pd.DataFrame(rows, columns=["variant", "batch_size", "p", "solver", "old", "new"])


def _words(old: pd.DataFrame, new: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Rows whose verdicts differ, or that one table does not have."""
    both = pd.merge(*(side[[*keys, "verdict"]] for side in (old, new)), on=keys, how="outer", suffixes=("_old", "_new"))
    return both[both["verdict_old"].fillna("") != both["verdict_new"].fillna("")]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    given = parser.parse_args()
    for title, found in compare(given.old, given.new).items():
        print(f"\n{title}: {len(found)}\n{found.to_string(float_format='{:.3g}'.format)}")
