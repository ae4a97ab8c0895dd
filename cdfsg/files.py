"""Where files lie, and how they are written so that they survive a kill and reveal damage.

A file of a cache is *sealed*: its last line is the checksum of the rest.  For the repository see `cdfsg.checksums`.
"""

import hashlib
import io
import os
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np

CACHE_ENVIRONMENT = "CDFSG_CACHE_DIR"  # another folder for the caches; read when Python starts

ROOT = Path(__file__).resolve().parent.parent
PAPER, RECORDS = ROOT / "data" / "paper", ROOT / "data" / "records"
CACHE = Path(os.path.expanduser(os.environ.get(CACHE_ENVIRONMENT) or ROOT / "data" / "cache")).absolute()
RUNS, KEPT, QUICK = CACHE / "runs", CACHE / "kept", CACHE / "quick"
FIGURES, NOTEBOOKS = ROOT / "figures", ROOT / "notebooks"

_TEMPORARY = ".cdfsg.tmp"


class Damaged(ValueError):
    """A file is not the one that was written."""


def say(line: str) -> None:
    """Print one line for the user on standard error."""
    print(f"cdfsg: {line}", file=sys.stderr, flush=True)


def named_folder(variable: str) -> Path | None:
    """The folder that an environment variable names, if it is set."""
    text = os.environ.get(variable)
    folder = os.path.expanduser(text or "")
    if folder.startswith("~"):
        raise ValueError(f"{variable}={text}: no such user; give the whole path")
    return Path(folder) if text else None


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a temporary file and rename it, unless the content is there; see `sweep` for a kill."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    temporary = None
    try:
        with suppress(OSError):  # a file that is missing or cannot be read is written anew
            if path.read_bytes() == data:
                return
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=_TEMPORARY)
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        try:
            os.chmod(temporary, 0o644)  # mkstemp makes it private
            os.replace(temporary, path)
        except FileNotFoundError:  # a command that began meanwhile swept it away
            write_atomically(path, data)
    except OSError as error:  # of a full disk it names no file, of mkstemp the temporary one
        raise explain(error, path) from error
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def explain(error: OSError, path: Path) -> OSError:
    """The same error with the name of the file and what to do about it."""
    remedy = "make room, make its folder writable, or move away what is in the way"
    if path.is_relative_to(CACHE):
        remedy += f", or set {CACHE_ENVIRONMENT} to another folder"
    return OSError(error.errno, f"{error.strerror}: '{path}'; {remedy}; then the same command goes on")


def sweep(*folders: Path, age: float = 0) -> None:
    """Remove the temporary files that killed writers left, if they are `age` seconds old.

    A living writer needs no more than seconds; commands exclude each other, see `cdfsg.lock`.
    """
    for path in (path for folder in folders for path in folder.glob(f"*{_TEMPORARY}")):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime >= age:
                path.unlink()


def write_sealed(path: Path, content: str | bytes) -> None:
    """Write a file atomically with its checksum in a last line, which readers of tables and arrays skip."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    write_atomically(path, data + _seal(data))


def _seal(content: bytes) -> bytes:
    return f"# sha256:{hashlib.sha256(content).hexdigest()}\n".encode()


def read_bytes(path: Path, remedy: str) -> bytes:
    """The content of a file; `Damaged` if it is there and cannot be read."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise Damaged(f"{path} cannot be read ({error.strerror}); {remedy}") from error


def read_sealed(path: Path, remedy: str = "delete it") -> bytes:
    """The content that `write_sealed` wrote, or `Damaged`."""
    data = read_bytes(path, remedy)
    content = data[: -len(_seal(b""))]
    if data != content + _seal(content):
        raise Damaged(f"{path} is not what the checksum in its last line says; {remedy}")
    return content


def read_if_intact(path: Path, remedy: str = "") -> bytes | None:
    """The same, or None; a damaged file is told, if there is a remedy."""
    try:
        return read_sealed(path, remedy)
    except (Damaged, FileNotFoundError) as error:
        if remedy and isinstance(error, Damaged):
            say(str(error))
    return None


def kept_array(path: Path, make: Callable[[], np.ndarray]) -> np.ndarray:
    """The array in a sealed file, made if the file is missing or, with a message, if it is damaged."""
    if (data := read_if_intact(path, "it is made anew")) is not None:
        return np.load(io.BytesIO(data))
    array = make()
    write_sealed(path, npy(array))
    return array


def npy(array: np.ndarray) -> bytes:
    """The content of a ``.npy`` file; the same under each numpy that the package allows."""
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()
