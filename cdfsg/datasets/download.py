"""Files fetched once from the first source that works, verified by checksum, kept in a folder."""

import gzip
import hashlib
import io
import logging
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeVar

from cdfsg.files import named_folder, sweep, write_atomically
from cdfsg.files import say as say

if TYPE_CHECKING:
    import httpx2

ENVIRONMENT = "CDFSG_DATA_DIR"
TIMEOUT = 20.0
TOTAL_TIMEOUT = 600.0
MOST = 1 << 28  # no file that is downloaded here has more bytes; sources of smaller files say so

R = TypeVar("R")


class DownloadError(RuntimeError):
    """A file could not be fetched; the message lists each attempt and what to do by hand."""


@dataclass(frozen=True)
class Source:
    """One way to get a file: the words for messages, and a function that returns the bytes or raises."""

    describe: str
    fetch: Callable[[], bytes]


def data_dir() -> Path:
    """``$CDFSG_DATA_DIR`` if set, else ``data/raw`` in a checkout, else ``~/.cache/cdfsg``."""
    if chosen := named_folder(ENVIRONMENT):
        return chosen
    root = Path(__file__).resolve().parents[2]
    return root / "data" / "raw" if (root / "pyproject.toml").is_file() else Path.home() / ".cache" / "cdfsg"


def obtain(name: str, checksum: str, sources: Sequence[Source]) -> Path:
    """Path of a file in `data_dir`, fetched from the first source that works unless it is there undamaged.

    The checksum, ``"md5:..."`` or ``"sha256:..."``, is verified at each call.  DownloadError if the folder cannot be
    written, or no source gives the file; ModuleNotFoundError if the packages that download are not installed.
    """
    path = data_dir() / name
    if path.exists():
        try:
            verify(path, checksum)
            return path
        except OSError as error:
            raise DownloadError(f"cannot read {path}: {error}; make it a readable file") from error
        except ValueError as error:
            say(f"{path} is damaged and will be fetched anew: {error}")
    _require_writable(path.parent)
    data = _first(name, checksum, sources, path)
    try:
        write_atomically(path, data)
    except OSError as error:
        advice = f"make room there or set {ENVIRONMENT} to another folder"
        raise DownloadError(f"cannot write {path}: {error}; {advice}") from error
    say(f"{path} is in place, {len(data)} bytes, {checksum}")
    return path


def _first(name: str, checksum: str, sources: Sequence[Source], path: Path) -> bytes:
    reasons = []
    for source in sources:
        say(f"fetching {name} from {source.describe}")
        try:
            data = source.fetch()
            verify(data, checksum)
            return data
        except ModuleNotFoundError as error:  # of the extra `suite`, which the other downloads need, too
            hint = f"could not get {name} without the package {error.name}: pip install 'cdfsg[suite]'"
            raise ModuleNotFoundError(hint, name=error.name) from error
        except Exception as error:  # one source may fail in any way, and the next one succeed
            reasons.append(f"{source.describe}: {str(error) or repr(error)}")
            say(f"no success with {reasons[-1]}")
    raise DownloadError(
        f"could not get {name}. Tried:\n"
        + "".join(f"  - {reason}\n" for reason in reasons)
        + f"Get the file elsewhere and place it by hand as {path} ({checksum}), or set {ENVIRONMENT} "
        f"to a folder that has a file {name} with that checksum."
    )


def _require_writable(folder: Path) -> None:
    """Raise DownloadError unless a folder takes files; remove what killed downloads left in it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        sweep(folder)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        advice = f"make it a writable folder or set {ENVIRONMENT} to one"
        raise DownloadError(f"cannot write to the data folder {folder}: {error}; {advice}") from error


def verify(data: bytes | memoryview | Path, checksum: str) -> None:
    """Raise ValueError unless bytes, or a file's, have the checksum ``"algorithm:hex digest"``.

    >>> verify(b"?", "md5:d41d8cd98f00b204e9800998ecf8427e")
    Traceback (most recent call last):
    ValueError: 1 bytes with md5 d1457b72c3fb323a2671125aef3eab5d, expected d41d8cd98f00b204e9800998ecf8427e
    """
    algorithm, _, expected = checksum.partition(":")
    if algorithm not in ("md5", "sha256") or not expected:
        raise ValueError(f"checksum={checksum!r}: expected 'md5:...' or 'sha256:...'")
    with data.open("rb") if isinstance(data, Path) else io.BytesIO(data) as stream:
        found = hashlib.file_digest(stream, lambda: hashlib.new(algorithm, usedforsecurity=algorithm == "sha256"))
        size = stream.seek(0, io.SEEK_END)
    if found.hexdigest() != expected:
        raise ValueError(f"{size} bytes with {algorithm} {found.hexdigest()}, expected {expected}")


def gunzip(packed: IO[bytes] | bytes, most: int = MOST) -> bytes:
    """Unpack a gzip archive; raise ValueError if it has more than `most` bytes, as a few kilobytes may."""
    with gzip.open(io.BytesIO(packed) if isinstance(packed, bytes) else packed) as stream:
        return read_all(stream, most)


def read_all(stream: IO[bytes] | io.BufferedIOBase, most: int) -> bytes:
    """All bytes of an unpacked stream; raise ValueError if it has more than `most`."""
    content = stream.read(most + 1)
    if len(content) > most:
        raise ValueError(f"the archive unpacks to more than the {most} bytes expected of it")
    return content


def http(
    url: str, transform: Callable[[bytes], bytes] = bytes, timeout: float | None = None, most: int = MOST
) -> Source:
    """Source that reads a URL (``https://`` or ``http://``) and transforms the bytes served.

    It is given up after `timeout` seconds of silence (`TIMEOUT` by default), `TOTAL_TIMEOUT` in all, or `most` bytes.
    """

    def read(given_up: threading.Event) -> bytes:
        import httpx2

        with httpx2.Client(timeout=TIMEOUT if timeout is None else timeout, follow_redirects=True) as client:
            return fetch_bytes(client, url, None, most, given_up)

    return Source(url, lambda: transform(within(TOTAL_TIMEOUT, read)))


def fetch_bytes(
    client: "httpx2.Client", url: str, checksum: str | None, most: int, given_up: threading.Event
) -> bytes:
    """The bytes of a URL, at most `most` of them; pooch verifies the checksum."""
    import pooch

    pooch.get_logger().setLevel(logging.WARNING)  # `say` reports the progress

    # pooch's own downloader bounds neither the bytes nor the time in all.
    def download(url: str, path: str, _: object) -> None:
        with client.stream("GET", url, headers={"Accept-Encoding": "identity"}) as response, open(path, "wb") as file:
            response.raise_for_status()
            expected = int(response.headers.get("Content-Length", 0))
            if expected > most:
                raise ValueError(f"it states a length of {expected} bytes, more than the {most} expected of it")
            done, told, last = 0, 0, time.monotonic()
            for block in response.iter_raw():
                done += len(block)
                if done > most:
                    raise ValueError(f"it sends more than the {most} bytes expected of it")
                if given_up.is_set():
                    return
                file.write(block)
                now = time.monotonic()
                tenth = 10 * done // expected if expected else 0
                if tenth > told or now - last > 5:
                    say(f"{done} bytes" + (f" of {expected} ({100 * done // expected} %)" if expected else ""))
                    told, last = tenth, now

    with tempfile.TemporaryDirectory() as folder:
        return Path(pooch.retrieve(url, checksum, "download", folder, downloader=download)).read_bytes()


def within(seconds: float, work: Callable[[threading.Event], R]) -> R:
    """The result of `work`, or its exception; TimeoutError if it takes longer, and then it is left in its thread.

    A socket's timeout begins anew with each byte, and nothing interrupts a server that drips headers.
    """
    results: list[R] = []
    errors: list[BaseException] = []
    given_up = threading.Event()

    def run() -> None:
        try:
            results.append(work(given_up))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    given_up.set()
    if errors:
        raise errors.pop()  # kept nowhere, or its traceback would keep the socket open
    if not results:
        raise TimeoutError(f"it is not complete after {seconds:g} s")
    return results[0]
