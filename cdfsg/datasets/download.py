"""Files fetched once from the first source that works, verified by checksum, kept in a folder."""

import gzip
import hashlib
import io
import logging
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeVar

from cdfsg.files import named_folder, sweep, write_atomically

if TYPE_CHECKING:
    import httpx2

ENVIRONMENT = "CDFSG_DATA_DIR"
TIMEOUT = 20.0
TOTAL_TIMEOUT = 600.0
MOST = 1 << 28
"""No file that is downloaded here is larger; what is known to be smaller says so."""

R = TypeVar("R")


class DownloadError(RuntimeError):
    """A file could not be had; the message lists what was tried and what to do by hand."""


@dataclass(frozen=True)
class Source:
    """One way to get the bytes of a file.

    Parameters
    ----------
    describe : str
        The way in words, for messages.
    fetch : callable
        Returns the bytes of the final file, or raises an exception whose message says why not.
        They need not be verified: `obtain` does so.
    """

    describe: str
    fetch: Callable[[], bytes]


def data_dir() -> Path:
    """Folder of the downloaded files; it need not exist yet.

    Returns
    -------
    Path
        ``$CDFSG_DATA_DIR`` if set; else ``data/raw`` in the repository if the package is used from
        one (the folder above it has a ``pyproject.toml``); else ``~/.cache/cdfsg``.
    """
    chosen = named_folder(ENVIRONMENT)
    if chosen:
        return chosen
    root = Path(__file__).resolve().parents[2]
    if (root / "pyproject.toml").is_file():
        return root / "data" / "raw"
    return Path.home() / ".cache" / "cdfsg"


def obtain(name: str, checksum: str, sources: Sequence[Source]) -> Path:
    """Path of a verified file in `data_dir`, fetched if it is not there or damaged.

    Parameters
    ----------
    name : str
        File name in the folder.
    checksum : str
        ``"md5:..."`` or ``"sha256:..."`` of the file, verified at each call.
    sources : sequence of Source
        Tried in this order until one gives bytes with that checksum.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    DownloadError
        If the folder cannot be written, or no source gives the file.
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
        raise DownloadError(
            f"cannot write {path}: {error}; make room there or set {ENVIRONMENT} to another folder"
        ) from error
    say(f"{path} is in place, {len(data)} bytes, {checksum}")
    return path


def verify(data: bytes | memoryview | Path, checksum: str) -> None:
    """Check bytes, or those of a file, against ``"algorithm:hex digest"``.

    Raises
    ------
    ValueError
        If they differ; the message has both digests and the number of bytes.
    OSError
        If the file cannot be read.

    Examples
    --------
    >>> verify(b"", "md5:d41d8cd98f00b204e9800998ecf8427e")
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
    """Unpack a gzip archive that is known to hold no more than `most` bytes.

    Raises
    ------
    ValueError
        If it holds more: a few kilobytes can unpack to all of the memory.
    OSError, EOFError, zlib.error
        If it is none, or is cut off or damaged.
    """
    with gzip.open(io.BytesIO(packed) if isinstance(packed, bytes) else packed) as stream:
        return read_all(stream, most)


def read_all(stream: IO[bytes] | io.BufferedIOBase, most: int) -> bytes:
    """All bytes of a stream that is known to have no more than `most`.

    Raises
    ------
    ValueError
        If it has more.
    """
    content = stream.read(most + 1)
    if len(content) > most:
        raise ValueError(f"the archive unpacks to more than the {most} bytes expected of it")
    return content


def http(
    url: str, transform: Callable[[bytes], bytes] = bytes, timeout: float | None = None, most: int = MOST
) -> Source:
    """Source that reads a URL (``https://`` or ``http://``).

    Parameters
    ----------
    url : str
        The address.
    transform : callable, optional
        Turns the bytes served into those of the final file, such as `gunzip`.
    timeout : float, optional
        Seconds of silence after which it is given up; `TIMEOUT` if not given. It is given up after
        `TOTAL_TIMEOUT`, too, as a mirror that sends a byte now and then is never silent.
    most : int, optional
        Bytes after which it is given up, whatever length the mirror states.
    """

    def read(given_up: threading.Event) -> bytes:
        import httpx2

        with httpx2.Client(timeout=TIMEOUT if timeout is None else timeout, follow_redirects=True) as client:
            return fetched(client, url, None, most, given_up)

    return Source(url, lambda: transform(within(TOTAL_TIMEOUT, read)))


def fetched(
    client: "httpx2.Client", url: str, checksum: str | None, most: int, given_up: threading.Event
) -> bytes:
    """The bytes of a URL, which go through a temporary file of pooch's that is gone afterwards.

    Parameters
    ----------
    client : httpx2.Client
        It knows the certificates, proxies and timeouts.
    url : str
        The address.
    checksum : str or None
        What pooch verifies, if it is known.
    most : int
        Bytes after which it is given up, whatever length is stated.
    given_up : threading.Event
        Set when nobody waits for the bytes any more, see `within`.

    Raises
    ------
    ValueError
        If the bytes are too many, or not those of the checksum.
    httpx2.HTTPError
        If they cannot be had, or not all of them.
    """
    import pooch

    pooch.get_logger().setLevel(logging.WARNING)  # `say` tells what it would

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
        path = pooch.retrieve(url, checksum, "download", folder, downloader=download)
        return Path(path).read_bytes()


def _first(name: str, checksum: str, sources: Sequence[Source], path: Path) -> bytes:
    reasons = []
    for source in sources:
        say(f"fetching {name} from {source.describe}")
        try:
            data = source.fetch()
            verify(data, checksum)
            return data
        except Exception as error:  # whatever is wrong with one source, the next may do
            reasons.append(f"{source.describe}: {str(error) or repr(error)}")
            say(f"no success with {reasons[-1]}")
    raise DownloadError(
        f"could not get {name}. Tried:\n"
        + "".join(f"  - {reason}\n" for reason in reasons)
        + f"Get the file elsewhere and place it by hand as {path} ({checksum}), or set {ENVIRONMENT} "
        f"to a folder that has a file {name} with that checksum."
    )


def _require_writable(folder: Path) -> None:
    """Tell before any fetch that a folder cannot be written; what killed downloads left in it is removed."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        sweep(folder)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise DownloadError(
            f"cannot write to the data folder {folder}: {error}; make it a writable folder or set "
            f"{ENVIRONMENT} to one"
        ) from error


def within(seconds: float, work: Callable[[threading.Event], R]) -> R:
    """What `work` returns or raises; it is left alone in its thread if that takes longer than `seconds`.

    A socket's timeout begins anew with each byte, also while a server sends headers or redirects, which cannot be
    interrupted from outside.  The thread does not keep the process from ending; `work` gets an event that is set when
    nobody waits for it any more.
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


def say(line: str) -> None:
    """Tell the user one line on standard error."""
    print(f"cdfsg: {line}", file=sys.stderr, flush=True)
