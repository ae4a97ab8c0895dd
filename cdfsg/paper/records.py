"""Run records: their schema, and their files, of which the cache has a sealed one per job."""

import io
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from cdfsg.files import Damaged, read_sealed, write_sealed
from cdfsg.solvers import SOLVERS

SETTINGS = tuple(dict.fromkeys(name for solver in SOLVERS.values() for name in solver.settings))
"""Hyper-parameters of all registered solvers, each a column."""

JOB = (
    "dataset", "merit", "batch_size", "p", "solver", "role", "variant", "beta", "bound", "lanes", "provenance",
)  # fmt: skip
"""Columns that are the same in all rows of a job."""

RUN = ("order", "start", *SETTINGS, "samples", "status", "stopped_at")
"""Columns that differ: one row per run, or per run and point of a curve."""

METRICS = (
    "quality", "pcc", "pcc_paired", "fval", "fea", "fea_spectral", "pcc_post", "fea_post", "fea_spectral_post",
    "fval_post", "pcc_orth", "fea_orth", "fval_orth",
)  # fmt: skip
"""What such a row says of the iterates."""

COLUMNS = (*JOB, *RUN, *METRICS, "seconds", "key")
"""Columns of a record; the key comes last, so that a row cut short shows."""

SAME_RUN = ["batch_size", "p", "solver", "variant", *SETTINGS]
"""Columns that the runs of one cell of a grid share."""

_TEXT = {"dataset", "merit", "solver", "role", "variant", "status", "provenance", "key"}
_ONE_ROW = ["key", "samples", "order", "start", *SETTINGS]


def write(frame: pd.DataFrame, path: Path) -> None:
    """Write the record of a job as sealed CSV; ValueError unless its columns are `COLUMNS`."""
    if tuple(frame.columns) != COLUMNS:
        odd = sorted(set(frame.columns).symmetric_difference(COLUMNS))
        raise ValueError(f"a record has the columns COLUMNS in order; differing: {odd}; see cdfsg/paper/records.py")
    write_sealed(path, frame.to_csv(index=False, lineterminator="\n"))


def read(paths: Iterable[Path]) -> pd.DataFrame:
    """Read and join the records of jobs."""
    remedy = "delete it and run again"
    return joined(complete(table(read_sealed(path, remedy), COLUMNS, path, remedy), path, remedy) for path in paths)


def joined(frames: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Records joined, without the empty ones, which have no types."""
    some = [frame for frame in frames if len(frame)]
    return pd.concat(some, ignore_index=True) if some else pd.DataFrame(columns=list(COLUMNS))


def table(data: bytes, columns: tuple[str, ...], path: Path, remedy: str) -> pd.DataFrame:
    """A table with these columns; settings may be missing, as those of solvers that came later."""
    try:
        frame = pd.read_csv(io.BytesIO(data), dtype={"key": str})  # a key can look like a number
    except ValueError as error:
        raise Damaged(f"{path} is not a readable record ({error}); {remedy}") from error
    expected = [name for name in columns if name in frame or name not in SETTINGS]
    if list(frame) != expected:
        odd = ", ".join(sorted({*frame} ^ {*expected})) or "in another order"
        raise Damaged(f"{path} does not have the columns of a record of this version (differing: {odd}); {remedy}")
    return frame.reindex(columns=list(columns))


def complete(frame: pd.DataFrame, path: Path, remedy: str) -> pd.DataFrame:
    """The records; `Damaged` unless every job has each lane once at each point, and numbers."""
    points = frame.groupby(["key", "samples"])["lanes"].agg(["size", "min", "max"])
    if (
        frame.empty
        or frame.select_dtypes("number").shape[1] != len(COLUMNS) - len(_TEXT)
        or not frame["key"].str.fullmatch("[0-9a-f]{16}", na=False).all()
        or not frame["status"].isin(["done", "diverged"]).all()
        or frame.duplicated(_ONE_ROW).any()
        or not ((points["size"] == points["min"]) & (points["min"] == points["max"])).all()
    ):
        raise Damaged(f"{path} is cut short or damaged, or has a row twice; {remedy}")
    return frame
