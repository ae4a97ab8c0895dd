"""Checksums of the paper's numbers and of the records: what is read was written, or is refused.

``sha256sum -c SHA256SUMS`` checks a folder.  Writers take turns, see `cdfsg.lock`.
"""

import hashlib
import io
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdfsg.files import Damaged, read_bytes, write_atomically

if TYPE_CHECKING:
    import pandas as pd

LIST = "SHA256SUMS"
REMEDY = "take back both with git checkout"
_LINE = re.compile(r"^([0-9a-f]{64}) [ *](\S.*)$", re.MULTILINE)


def write(path: Path, content: str | bytes) -> None:
    """Write a file atomically and list its checksum.

    While the file is replaced the list has both checksums, so that a kill leaves a file that is listed.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    old, new = _listed(path.parent, REMEDY), (path.name, hashlib.sha256(data).hexdigest())
    _save(path.parent, old | {new})
    write_atomically(path, data)
    _save(path.parent, {entry for entry in old if entry[0] != path.name} | {new})


def read(path: Path, remedy: str = REMEDY) -> bytes:
    """The bytes of a file; `Damaged` if its checksum is not the listed one."""
    for _ in range(2):  # another process may replace the file between the two looks
        data = read_bytes(path, remedy)
        if (path.name, hashlib.sha256(data).hexdigest()) in _listed(path.parent, remedy):
            return data
    raise Damaged(f"{path} is not what {path.parent / LIST} says: one of them was changed or damaged; {remedy}")


def read_csv(path: Path, remedy: str = REMEDY, **options: Any) -> "pd.DataFrame":
    """A table, checked as by `read`."""
    import pandas as pd  # the theory reads its files without it

    return pd.read_csv(io.BytesIO(read(path, remedy)), **options)


def read_record(path: Path, command: str, **options: Any) -> "pd.DataFrame":
    """A table that a command writes, or an error that names the command."""
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing; make it with: {command}")
    return read_csv(path, f"make it anew with: {command}", **options)


def _listed(folder: Path, remedy: str) -> set[tuple[str, str]]:
    """(name, checksum) of every line that is not damaged."""
    try:
        text = read_bytes(folder / LIST, remedy).decode("utf-8", errors="replace")
    except FileNotFoundError:
        return set()
    return {(name, digest) for digest, name in _LINE.findall(text)}


def _save(folder: Path, entries: set[tuple[str, str]]) -> None:
    write_atomically(folder / LIST, "".join(f"{digest}  {name}\n" for name, digest in sorted(entries)))
