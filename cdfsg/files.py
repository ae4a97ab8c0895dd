"""Where the project keeps its files, and how it writes them.

Paths are anchored at the repository and never at the working directory.
"""

import errno
import os
import tempfile
from pathlib import Path

CACHE_ENVIRONMENT = "CDFSG_CACHE_DIR"
"""Names a folder for what can be made again, as where the repository is read-only; read when Python starts."""

ROOT = Path(__file__).resolve().parent.parent
PAPER = ROOT / "data" / "paper"
RECORDS = ROOT / "data" / "records"
CACHE = Path(os.environ.get(CACHE_ENVIRONMENT) or ROOT / "data" / "cache").expanduser().absolute()
RUNS = CACHE / "runs"
KEPT = CACHE / "kept"
QUICK = CACHE / "quick"
FIGURES = ROOT / "figures"
NOTEBOOKS = ROOT / "notebooks"

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FORBIDDEN = {errno.EROFS, errno.EACCES, errno.EPERM}


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file under a temporary name in its folder and rename it; equal content is left alone.

    A file that exists is therefore complete, and a killed process leaves none that is cut short.

    Raises
    ------
    OSError
        If it cannot be written; the message names the file and says what to do.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    temporary = None
    try:
        if path.exists() and path.read_bytes() == data:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".tmp")
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        os.chmod(temporary, 0o644)  # mkstemp makes it private
        os.replace(temporary, path)
    except OSError as error:  # a full disk names no file by itself, mkstemp its own
        raise OSError(error.errno, f"{error.strerror}: '{path}'{_remedy(error.errno, path)}") from error
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def _remedy(number: int | None, path: Path) -> str:
    if number in _FULL:
        return "; make room there, and the same command goes on from here"
    if number in _FORBIDDEN:
        other = f" or set {CACHE_ENVIRONMENT} to a folder that is" if path.is_relative_to(CACHE) else ""
        return f"; make its folder writable{other}"
    return ""
