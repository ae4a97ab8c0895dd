"""Where the project keeps its files, and how it writes them.

Paths are anchored at the repository and never at the working directory.
"""

import os
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAPER = ROOT / "data" / "paper"
RECORDS = ROOT / "data" / "records"
RUNS = ROOT / "data" / "cache" / "runs"
KEPT = ROOT / "data" / "cache" / "kept"
QUICK = ROOT / "data" / "cache" / "quick"
FIGURES = ROOT / "figures"
NOTEBOOKS = ROOT / "notebooks"


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file under a temporary name in its folder and rename it; equal content is left alone.

    A file that exists is therefore complete, and a killed process leaves none that is cut short.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    if path.exists() and path.read_bytes() == data:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        os.chmod(temporary, 0o644)  # mkstemp makes it private
        os.replace(temporary, path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error  # a full disk names no file by itself
    finally:
        Path(temporary).unlink(missing_ok=True)
