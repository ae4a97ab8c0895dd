"""Run records: their schema, content keys and files.

A block's record is one CSV file named by its content key, written to a temporary name and renamed: a file that
exists is complete, and a killed run loses only the blocks that were under way.  The key covers the block, the
data's checksum and the source code of the numerics, so a record is never mistaken for that of another setting; the
checksum in its last line reveals damage.  Published records are files without such a line, listed by `cdfsg.checksums`.
"""

import hashlib
import io
import json
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from cdfsg import checksums
from cdfsg.files import Damaged, read_sealed, write_sealed
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

_ONE_ROW = ["key", "samples", "start", *SETTINGS]
"""Columns that tell any two rows apart."""

VOLATILE = ("block_seconds",)
"""Columns that differ between two runs of the same code: wall times."""


def content_key(block: Block, data: str, code: str) -> str:
    """Sixteen hex digits that name a block's record; `data` and `code` are words that tell any two apart."""
    content = json.dumps([asdict(block), DIVERGED_FEA, data, code], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def write(frame: pd.DataFrame, path: Path) -> None:
    """Write the record of a block as sealed CSV, floats at full precision.

    Raises
    ------
    ValueError
        If the columns are not `COLUMNS`.
    """
    write_sealed(path, _text(frame))


def publish(frame: pd.DataFrame, path: Path) -> None:
    """Write records as plain CSV whose checksum the folder's list has.

    Raises
    ------
    ValueError
        If the columns are not `COLUMNS`.
    """
    checksums.write(path, _text(frame))


def _text(frame: pd.DataFrame) -> str:
    if tuple(frame.columns) != COLUMNS:
        odd = set(frame.columns).symmetric_difference(COLUMNS)
        raise ValueError(f"records need exactly the columns of the schema in order; differing: {sorted(odd)}")
    text: str = frame.to_csv(index=False, lineterminator="\n")
    return text


def _is_complete(frame: pd.DataFrame) -> bool:
    """Whether every block has all its lanes at each of its points, each once, and numbers where numbers belong."""
    numbers = frame.drop(columns=list(_TEXT))
    if frame.empty or not all(pd.api.types.is_numeric_dtype(kind) for kind in numbers.dtypes):
        return False
    if not frame["key"].str.fullmatch("[0-9a-f]{16}", na=False).all():
        return False
    if not frame["status"].isin(["done", "diverged"]).all():
        return False
    if frame.duplicated(_ONE_ROW).any():
        return False
    points = frame.groupby(["key", "samples"])["lanes"].agg(["size", "min", "max"])
    return bool((points["size"] == points["min"]).all() and (points["min"] == points["max"]).all())


def read(paths: Iterable[Path]) -> pd.DataFrame:
    """Read and join the records of blocks; an empty frame with the schema's columns where there is none.

    Raises
    ------
    Damaged
        If a file is not a record or not all of it is there; the message names it.
    """
    return _joined(paths, read_sealed, "delete it and run again")


def read_published(paths: Iterable[Path], make: str) -> pd.DataFrame:
    """Read and join published records, as `read`; `make` is the command that writes them.

    Raises
    ------
    Damaged
        If a file is not a record, not all of it is there, or its checksum is another one; the message names it.
    """
    remedy = f"take back both with git checkout, or delete it and make it with: {make}"
    return _joined(paths, checksums.read, remedy)


def _joined(paths: Iterable[Path], content: Callable[[Path, str], bytes], remedy: str) -> pd.DataFrame:
    frames = []
    for path in paths:
        try:
            data = content(path, remedy)
            frame = pd.read_csv(io.BytesIO(data), dtype={"key": str})  # a key can look like a number
        except Damaged:
            raise
        except (ValueError, OSError) as error:
            raise Damaged(f"{path} is not a readable record ({error}); {remedy}") from error
        if tuple(frame.columns) != tuple(name for name in COLUMNS if name in frame or name not in SETTINGS):
            raise Damaged(f"{path} does not have the columns of a record{_odd(frame)}; {remedy}")
        frame = frame.reindex(columns=list(COLUMNS))  # settings of solvers that came later are empty
        if not _is_complete(frame):
            raise Damaged(f"{path} is cut short or damaged, or has a row twice; {remedy}")
        frames.append(frame)
    if not frames:
        return pd.DataFrame(columns=list(COLUMNS))
    return pd.concat(frames, ignore_index=True)


def _odd(frame: pd.DataFrame) -> str:
    """What is wrong with the columns of a table, in words; the columns are the schema, and it has no other number."""
    foreign = [name for name in frame if name not in COLUMNS]
    missing = [name for name in COLUMNS if name not in frame and name not in SETTINGS]
    words = [f"without {', '.join(missing)}"] if missing else []
    if foreign:
        words.append(f"with {', '.join(foreign)}, which this version does not know: it may be of a later one")
    return f" ({'; '.join(words) or 'in another order'})"
