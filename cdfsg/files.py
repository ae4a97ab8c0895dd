"""Where files lie, and how they are written so that they survive a kill and reveal damage.

A file of a cache is *sealed*: its last line is the checksum of the rest.  For the repository see `cdfsg.checksums`.
"""

import errno
import hashlib
import io
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

CACHE_ENVIRONMENT = "CDFSG_CACHE_DIR"  # another folder for the caches; read when Python starts

ROOT = Path(__file__).resolve().parent.parent
PAPER, RECORDS = ROOT / "data" / "paper", ROOT / "data" / "records"
CACHE = Path(os.path.expanduser(os.environ.get(CACHE_ENVIRONMENT) or ROOT / "data" / "cache")).absolute()
RUNS, KEPT, QUICK = CACHE / "runs", CACHE / "kept", CACHE / "quick"
FIGURES, NOTEBOOKS = ROOT / "figures", ROOT / "notebooks"

WINDOWS = os.name == "nt"
_LOCKED = 1 << 30  # on Windows the byte that is locked, beyond the end: a locked one cannot be read
_TEMPORARY = ".cdfsg.tmp"
_SEALED = re.compile(rb"# sha256:([0-9a-f]{64})\n\Z")


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
    """Write a temporary file and rename it, unless the content is there already; see `sweep` for a kill."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    temporary = None
    try:
        with suppress(OSError):  # a file that is missing or cannot be read is written anew
            if path.read_bytes() == data:
                return
        path.parent.mkdir(parents=True, exist_ok=True)
        while True:
            handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=_TEMPORARY)
            try_lock(handle)
            if os.fstat(handle).st_nlink:
                break
            os.close(handle)  # swept away before it was locked
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.chmod(temporary, 0o644)  # mkstemp makes it private
            if not WINDOWS:  # which renames no open file
                os.replace(temporary, path)  # before it is closed: until then it is locked
        if WINDOWS:
            os.replace(temporary, path)
    except OSError as error:  # of a full disk it names no file, of mkstemp the temporary one
        raise explain(error, path) from error
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def explain(error: OSError, path: Path) -> OSError:
    """The same error with the name of the file and what to do about it."""
    in_cache = path.is_relative_to(CACHE)
    remedy = ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        remedy = "; make room there, and the same command goes on from here"
    elif error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        remedy = "; make its folder writable" + f" or set {CACHE_ENVIRONMENT} to a folder that is" * in_cache
    elif error.errno in (errno.EEXIST, errno.ENOTDIR, errno.ENOENT):
        remedy = f"; {path.parent} must be a folder: move away what is in its place"
        remedy += f", or set {CACHE_ENVIRONMENT} to a folder" * in_cache
    elif error.errno == errno.EISDIR:
        remedy = "; a folder is where a file is to be written: move it away"
    return OSError(error.errno, f"{error.strerror}: '{path}'{remedy}")


def try_lock(handle: int) -> bool | None:
    """Lock an open file until the process ends: False if another process has it, None where there are no locks."""
    try:
        if WINDOWS:
            import msvcrt

            os.lseek(handle, _LOCKED, os.SEEK_SET)
            try:
                msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
            finally:
                os.lseek(handle, 0, os.SEEK_SET)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):  # Windows has the second
        return False
    except OSError:  # a disk of another machine
        return None
    return True


def sweep(*folders: Path) -> None:
    """Remove the temporary files of killed writers; those of living ones are locked."""
    for path in (path for folder in folders for path in folder.glob(f"*{_TEMPORARY}")):
        with suppress(OSError):
            if WINDOWS:  # it refuses while a writer has the file open
                path.unlink()
                continue
            with path.open("r+b") as stream:
                if try_lock(stream.fileno()):
                    path.unlink()


def write_sealed(path: Path, content: str | bytes) -> None:
    """Write a file atomically with its checksum in a last line, which readers of tables and arrays skip."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    write_atomically(path, data + f"# sha256:{hashlib.sha256(data).hexdigest()}\n".encode())


@contextmanager
def unreadable_is_damaged(path: Path, remedy: str) -> Iterator[None]:
    """Report a file that exists and cannot be read as damaged."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise Damaged(f"{error.filename or path} cannot be read ({error.strerror}); {remedy}") from error


def read_sealed(path: Path, remedy: str = "delete it") -> bytes:
    """The content that `write_sealed` wrote, or `Damaged`."""
    with unreadable_is_damaged(path, remedy):
        data = path.read_bytes()
    seal = _SEALED.search(data)
    if seal is None:
        raise Damaged(f"{path} does not end with a checksum: it is cut short; {remedy}")
    if hashlib.sha256(data[: seal.start()]).hexdigest() != seal[1].decode():
        raise Damaged(f"{path} is not what its checksum says; {remedy}")
    return data[: seal.start()]


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
    buffer = io.BytesIO()
    np.save(buffer, array)
    write_sealed(path, buffer.getvalue())
    return array
