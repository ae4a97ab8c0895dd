"""Where the project keeps its files, and how it writes them so that they survive a kill and reveal damage.

Paths are anchored at the repository and never at the working directory.  A file of a cache is *sealed*: its last line
is the checksum of what is before it.  Files that lie in the repository stay plain, see `cdfsg.checksums`.
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

CACHE_ENVIRONMENT = "CDFSG_CACHE_DIR"
"""Names a folder for what can be made again, as where the repository is read-only; read when Python starts."""

ROOT = Path(__file__).resolve().parent.parent
PAPER = ROOT / "data" / "paper"
RECORDS = ROOT / "data" / "records"
CACHE = Path(os.path.expanduser(os.environ.get(CACHE_ENVIRONMENT) or ROOT / "data" / "cache")).absolute()
RUNS = CACHE / "runs"
KEPT = CACHE / "kept"
QUICK = CACHE / "quick"
FIGURES = ROOT / "figures"
NOTEBOOKS = ROOT / "notebooks"

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FORBIDDEN = {errno.EROFS, errno.EACCES, errno.EPERM}
_NO_FOLDER = {errno.EEXIST, errno.ENOTDIR, errno.ENOENT}
_TEMPORARY = ".cdfsg.tmp"
_SEAL = "# sha256:{}\n"
_SEALED = re.compile(rb"# sha256:([0-9a-f]{64})\n\Z")


class Damaged(ValueError):
    """A file is not what was written; the message names it and says what to do."""


def named_folder(variable: str) -> Path | None:
    """The folder that an environment variable names; None if it is not set.

    Raises
    ------
    ValueError
        If it begins with the home folder of a user that there is not.
    """
    text = os.environ.get(variable)
    folder = os.path.expanduser(text or "")
    if folder.startswith("~"):
        raise ValueError(f"{variable}={text}: no user of that name has a home folder; give the whole path")
    return Path(folder) if text else None


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file under a temporary name in its folder and rename it; equal content is left alone.

    A file that exists is therefore complete, and a killed process leaves none that is cut short.  What it may leave is
    the temporary one, see `sweep`.

    Raises
    ------
    OSError
        If it cannot be written; the message names the file and says what to do.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    temporary = None
    try:
        if _holds(path, data):
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = _temporary(path)
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.chmod(temporary, 0o644)  # mkstemp makes it private
            os.replace(temporary, path)  # before it is closed: until then it is locked
    except OSError as error:  # a full disk names no file by itself, mkstemp its own
        raise OSError(error.errno, f"{error.strerror}: '{path}'{remedy(error.errno, path)}") from error
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def remedy(number: int | None, path: Path) -> str:
    """What to do about an error of the system in writing a file; empty if nothing is known."""
    if number in _FULL:
        return "; make room there, and the same command goes on from here"
    if number in _FORBIDDEN:
        other = f" or set {CACHE_ENVIRONMENT} to a folder that is" if path.is_relative_to(CACHE) else ""
        return f"; make its folder writable{other}"
    if number in _NO_FOLDER:
        other = f", or set {CACHE_ENVIRONMENT} to a folder" if path.is_relative_to(CACHE) else ""
        return f"; {path.parent} must be a folder: move away what is in its place{other}"
    if number == errno.EISDIR:
        return "; a folder is where a file is to be written: move it away"
    return ""


def _holds(path: Path, data: bytes) -> bool:
    try:
        return path.read_bytes() == data
    except OSError:  # it is missing, or cannot be read and is written anew
        return False


def _temporary(path: Path) -> tuple[int, str]:
    """A new locked file beside `path`, open for writing."""
    while True:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=_TEMPORARY)
        try_lock(handle)
        if os.fstat(handle).st_nlink:
            return handle, name
        os.close(handle)  # swept away before it was locked


# --- checksums of cached files ---------------------------------------------------------------------------


def write_sealed(path: Path, content: str | bytes) -> None:
    """Write a file atomically with a last line that has the checksum of the content.

    An array of ``np.save`` stays one that ``np.load`` reads, and a table one for readers that skip ``#`` lines.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    write_atomically(path, data + _SEAL.format(hashlib.sha256(data).hexdigest()).encode())


@contextmanager
def unreadable_is_damaged(path: Path, remedy: str) -> Iterator[None]:
    """Tell of a file that is there and cannot be read as of a damaged one; the message ends with `remedy`."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise Damaged(f"{error.filename or path} cannot be read ({error.strerror}); {remedy}") from error


def read_sealed(path: Path, remedy: str = "delete it") -> bytes:
    """The content that `write_sealed` wrote.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    Damaged
        If it cannot be read or the checksum is missing or another one; the message ends with `remedy`.
    """
    with unreadable_is_damaged(path, remedy):
        data = path.read_bytes()
    seal = _SEALED.search(data)
    if seal is None:
        raise Damaged(f"{path} does not end with a checksum: it is cut short, or of an earlier version; {remedy}")
    content = data[: seal.start()]
    if hashlib.sha256(content).hexdigest() != seal[1].decode():
        raise Damaged(f"{path} is not what its checksum says; {remedy}")
    return content


def kept_array(path: Path, make: Callable[[], np.ndarray]) -> np.ndarray:
    """The array in a sealed file; it is made where the file is missing or damaged, and damage is told."""
    try:
        return np.asarray(np.load(io.BytesIO(read_sealed(path, "it is made anew"))))
    except FileNotFoundError:
        pass
    except Damaged as error:
        print(f"cdfsg: {error}", file=sys.stderr, flush=True)
    array = make()
    buffer = io.BytesIO()
    np.save(buffer, array)
    write_sealed(path, buffer.getvalue())
    return array


def is_intact(path: Path) -> bool:
    """Whether `read_sealed` would succeed."""
    try:
        read_sealed(path)
    except (Damaged, FileNotFoundError):
        return False
    return True


# --- locks -----------------------------------------------------------------------------------------------


def try_lock(handle: int) -> bool | None:
    """Lock an open file against all who lock it as well; the kernel releases the lock when the holder ends.

    Returns
    -------
    bool or None
        True if it is locked now, False if another one has it, None where there are no locks.
    """
    if sys.platform == "win32":
        return None
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def sweep(*folders: Path) -> None:
    """Remove the temporary files of writers that were killed; a living writer has its own locked, and it stays."""
    for folder in folders:
        for path in folder.glob(f"*{_TEMPORARY}"):
            with suppress(OSError):
                handle = os.open(path, os.O_RDWR)
                try:
                    if try_lock(handle):
                        path.unlink()
                finally:
                    os.close(handle)
