"""Run records: their schema, content keys and files.

A job's record in the cache is one sealed CSV file named by its content key.
"""

import hashlib
import io
import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from cdfsg.files import Damaged, read_sealed, write_sealed
from cdfsg.paper.experiments import Job
from cdfsg.paper.protocols import DIVERGED_FEA, Protocol
from cdfsg.solvers import SOLVERS

SETTINGS = tuple(dict.fromkeys(name for solver in SOLVERS.values() for name in solver.settings))
"""Hyper-parameters of the registered solvers: a record has a column of each, empty where a solver has none of it."""

JOB = (
    "dataset", "merit", "batch_size", "p", "solver", "role", "variant", "beta", "order", "bound", "lanes", "provenance",
)  # fmt: skip
"""Columns that are the same in all rows of a job."""

RUN = (
    "start", *SETTINGS, "samples", "status", "stopped_at", "quality", "pcc", "pcc_paired",
    "fval", "fea", "fea_spectral", "pcc_post", "fea_post", "fea_spectral_post", "fval_post",
    "pcc_orth", "fea_orth", "fval_orth",
)  # fmt: skip
"""Columns that differ: one row per run, or per run and point of a curve."""

COLUMNS = (*JOB, *RUN, "seconds", "key")
"""Columns of a record, with the wall time of its job; the key comes last, so that a row that is cut short shows."""

SAME_RUN = ["batch_size", "p", "solver", "variant", *SETTINGS]
"""Columns that the runs of one cell of a grid share."""

_TEXT = {"dataset", "merit", "solver", "role", "variant", "status", "provenance", "key"}
_ONE_ROW = ["key", "samples", "start", *SETTINGS]


def content_key(job: Job, code: str, data: str) -> str:
    """Sixteen hex digits that name a job's record; `code` and `data` are words that tell any two apart."""
    settings = asdict(job)
    changed = {name: value for name, value in settings.pop("protocol").items() if value != getattr(Protocol(), name)}
    # A choice that is added to the protocol later leaves the keys of the others as they are.
    content = json.dumps([settings, changed, DIVERGED_FEA, code, data], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def rounded(numbers: pd.Series) -> pd.Series:
    """Numbers to eight significant digits: what is behind them is rounding of single precision."""
    return numbers.map("{:.8g}".format).astype(float)


def write(frame: pd.DataFrame, path: Path) -> None:
    """Write the record of a job as sealed CSV."""
    require_columns(frame)
    write_sealed(path, frame.to_csv(index=False, lineterminator="\n"))


def require_columns(frame: pd.DataFrame) -> None:
    """Raise ValueError unless the columns are `COLUMNS`."""
    if tuple(frame.columns) != COLUMNS:
        odd = set(frame.columns).symmetric_difference(COLUMNS)
        raise ValueError(f"records need exactly the columns of the schema in order; differing: {sorted(odd)}")


def read(paths: Iterable[Path]) -> pd.DataFrame:
    """Read and join the records of jobs; an empty frame with the schema's columns where there is none."""
    frames, remedy = [], "delete it and run again"
    for path in paths:
        try:
            frames.append(complete(table(read_sealed(path, remedy), COLUMNS, path, remedy), path, remedy))
        except FileNotFoundError as error:
            raise Damaged(f"{path} is not a readable record ({error}); {remedy}") from error
    return joined(frames)


def joined(frames: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Records joined; those without rows have no types, and would take them from the others."""
    some = [frame for frame in frames if len(frame)]
    return pd.concat(some, ignore_index=True) if some else pd.DataFrame(columns=list(COLUMNS))


def table(data: bytes, columns: tuple[str, ...], path: Path, remedy: str) -> pd.DataFrame:
    """A table of some of the schema's columns; those of settings may be missing, as of solvers that came later."""
    try:
        frame = pd.read_csv(io.BytesIO(data), dtype={"key": str})  # a key can look like a number
    except ValueError as error:
        raise Damaged(f"{path} is not a readable record ({error}); {remedy}") from error
    if tuple(frame.columns) != tuple(name for name in columns if name in frame or name not in SETTINGS):
        foreign = [name for name in frame if name not in columns]
        missing = [name for name in columns if name not in frame and name not in SETTINGS]
        words = [f"without {', '.join(missing)}"] if missing else []
        if foreign:
            words.append(f"with {', '.join(foreign)}, which this version does not know: it may be of a later one")
        odd = f" ({'; '.join(words) or 'in another order'})"
        raise Damaged(f"{path} does not have the columns of a record{odd}; {remedy}")
    return frame.reindex(columns=list(columns))


def complete(frame: pd.DataFrame, path: Path, remedy: str) -> pd.DataFrame:
    """The records, if every job has all its lanes at each of its points once, and numbers where they belong."""
    numbers = frame.drop(columns=[name for name in frame if name in _TEXT])
    points = frame.groupby(["key", "samples"])["lanes"].agg(["size", "min", "max"])
    if (
        frame.empty
        or not all(pd.api.types.is_numeric_dtype(kind) for kind in numbers.dtypes)
        or not frame["key"].str.fullmatch("[0-9a-f]{16}", na=False).all()
        or not frame["status"].isin(["done", "diverged"]).all()
        or frame.duplicated(_ONE_ROW).any()
        or not ((points["size"] == points["min"]) & (points["min"] == points["max"])).all()
    ):
        raise Damaged(f"{path} is cut short or damaged, or has a row twice; {remedy}")
    return frame
