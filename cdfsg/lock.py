"""A lock for commands that write records, figures or notebooks."""

import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cdfsg.files import explain, say

_LOCKED = 1 << 30  # on Windows the byte that is locked, beyond the end: a locked one cannot be read


@contextmanager
def lock(path: Path, command: str) -> Iterator[None]:
    """Hold the lock file `path` while the body runs; BlockingIOError if another process holds it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)  # worker processes do not inherit it
    except OSError as error:
        raise explain(error, path) from error
    try:
        try:
            acquire(handle)
        except (BlockingIOError, PermissionError) as error:  # Windows has the second
            holder = path.read_text("utf-8", errors="replace").strip() or "another command"
            found = f"{holder} is at work in this checkout, and {command} would write the same files"
            raise BlockingIOError(f"{found}; wait until it is done, or stop it") from error
        except OSError:  # a disk of another machine
            say(f"{path} cannot be locked on this file system; let no other command be at work")
        since = time.strftime("%Y-%m-%d %H:%M:%S")
        os.lseek(handle, 0, os.SEEK_SET)
        os.ftruncate(handle, 0)
        text = f"{command} (process {os.getpid()} on {platform.node()}, since {since})"
        os.write(handle, text.encode())
        yield
    finally:
        os.close(handle)


def acquire(handle: int) -> None:
    """Lock an open file until it is closed, at the latest by the end of the process."""
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:
        import msvcrt  # on Windows

        os.lseek(handle, _LOCKED, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
