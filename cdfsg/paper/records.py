"""Run records: their schema, content keys and files.

A block's record is one CSV file named by its content key, written to a temporary name and renamed: a file that
exists is complete, and a killed run loses only the blocks that were under way.  The key covers the block, the
data's checksum and the source code of the numerics, so a record is never mistaken for that of another setting.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from cdfsg.files import write_atomically
from cdfsg.paper.experiments import DIVERGED_FEA, Block
from cdfsg.solvers import SOLVERS

SETTINGS = tuple(dict.fromkeys(name for solver in SOLVERS.values() for name in solver.settings))
"""Hyper-parameters of the registered solvers: a record has a column of each, empty where a solver has none of it."""

COLUMNS = (
    "dataset", "merit", "batch_size", "p", "solver", "role", "variant", "beta", "order", "start",
    *SETTINGS, "samples", "status", "stopped_at",
    "quality", "bound", "pcc", "pcc_paired",
    "fval", "fea", "fea_spectral", "pcc_post", "fea_post", "fea_spectral_post", "fval_post",
    "pcc_orth", "fea_orth", "fval_orth",
    "lanes", "block_seconds", "provenance", "key",
)  # fmt: skip
"""Columns of a record: one row per run, or per run and point of a curve."""

SAME_RUN = ["batch_size", "p", "solver", "variant", *SETTINGS]
"""Columns that the runs of one cell of a grid share."""

_TEXT = ("dataset", "merit", "solver", "role", "variant", "status", "provenance", "key")

VOLATILE = ("block_seconds",)
"""Columns that differ between two runs of the same code: wall times."""


def content_key(block: Block, data: str, code: str) -> str:
    """Sixteen hex digits that name a block's record; `data` and `code` are words that tell any two apart."""
    content = json.dumps([asdict(block), DIVERGED_FEA, data, code], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def write(frame: pd.DataFrame, path: Path) -> None:
    """Write records as CSV, floats at full precision.

    Raises
    ------
    ValueError
        If the columns are not `COLUMNS`.
    """
    if tuple(frame.columns) != COLUMNS:
        odd = set(frame.columns).symmetric_difference(COLUMNS)
        raise ValueError(f"records need exactly the columns of the schema in order; differing: {sorted(odd)}")
    write_atomically(path, frame.to_csv(index=False, lineterminator="\n"))


def is_surrogate(runs: pd.DataFrame) -> bool:
    """Whether the runs are on a surrogate data set, which is never compared with the paper."""
    return "surrogate" in set(runs["provenance"])


def _is_complete(frame: pd.DataFrame) -> bool:
    """Whether every block has all its lanes at each of its points, and numbers where numbers belong."""
    numbers = frame.drop(columns=list(_TEXT))
    if frame.empty or not all(pd.api.types.is_numeric_dtype(kind) for kind in numbers.dtypes):
        return False
    if not frame["key"].str.fullmatch("[0-9a-f]{16}", na=False).all():
        return False
    if not frame["status"].isin(["done", "diverged"]).all():
        return False
    points = frame.groupby(["key", "samples"])["lanes"].agg(["size", "min", "max"])
    return bool((points["size"] == points["min"]).all() and (points["min"] == points["max"]).all())


def read(paths: Iterable[Path]) -> pd.DataFrame:
    """Read and join record files; an empty frame with the schema's columns where there is none.

    Raises
    ------
    ValueError
        If a file is not a record or not all of it is there; the message names it.
    """
    frames = []
    for path in paths:
        try:
            frame = pd.read_csv(path, dtype={"key": str})  # a key can look like a number
        except (ValueError, OSError) as error:
            raise ValueError(f"{path} is not a readable record ({error}); delete it and run again") from error
        if tuple(frame.columns) != tuple(name for name in COLUMNS if name in frame or name not in SETTINGS):
            raise ValueError(f"{path} does not have the columns of a record; delete it and run again")
        frame = frame.reindex(columns=list(COLUMNS))  # settings of solvers that came later are empty
        if not _is_complete(frame):
            raise ValueError(f"{path} is cut short or damaged; delete it and run again")
        frames.append(frame)
    if not frames:
        return pd.DataFrame(columns=list(COLUMNS))
    return pd.concat(frames, ignore_index=True)
