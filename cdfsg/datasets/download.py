"""Files fetched once from the first source that works, verified by checksum, kept in a folder."""

import gzip
import hashlib
import io
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cdfsg.files import ROOT, named_folder, say, sweep, write_atomically

if TYPE_CHECKING:
    import httpx2

ENVIRONMENT = "CDFSG_DATA_DIR"
TIMEOUT, TOTAL_TIMEOUT = 20.0, 600.0  # seconds of silence, and in all
MOST = 1 << 28  # bytes of a file, packed or not


class DownloadError(RuntimeError):
    """A file could not be fetched; the message has each attempt, and in its last line the remedy."""


@dataclass(frozen=True)
class Source:
    """One way to get a file: its description, and a function that returns the bytes or raises."""

    describe: str
    fetch: Callable[[], bytes]


_is_offline = False


@contextmanager
def offline() -> Iterator[None]:
    """Let `obtain` raise `DownloadError` where it would fetch or make a file."""
    global _is_offline
    _is_offline = True
    try:
        yield
    finally:
        _is_offline = False


def data_dir() -> Path:
    """``$CDFSG_DATA_DIR`` if set, else ``data/raw`` in a checkout, else ``~/.cache/cdfsg``."""
    if chosen := named_folder(ENVIRONMENT):
        return chosen
    return ROOT / "data" / "raw" if (ROOT / "pyproject.toml").is_file() else Path.home() / ".cache" / "cdfsg"


def obtain(name: str, checksum: str, sources: Sequence[Source], *remedies: str) -> Path:
    """Path of a file in `data_dir`, fetched from the first source that works unless it is there undamaged.

    The checksum, ``"md5:..."`` or ``"sha256:..."``, is verified at each call. DownloadError if the folder cannot be
    written, or no source gives the file: it then names the further `remedies`, too. ModuleNotFoundError if the
    packages that download are not installed.
    """
    path = data_dir() / name
    sweep(path.parent, age=3600)  # other processes may fetch the same
    if path.exists():
        try:
            verify(path, checksum)
            return path
        except OSError as error:
            raise DownloadError(f"cannot read {path}: {error}; make it a readable file") from error
        except ValueError as error:
            say(f"{path} is damaged{' and will be fetched anew' * (not _is_offline)}: {error}")
    if _is_offline:
        raise DownloadError(f"{path} is not here; get it by make data")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=path.parent).close()  # before anything is fetched in vain
        data = _first(path, checksum, sources, remedies)
        write_atomically(path, data)
    except OSError as error:
        remedy = f"make room, make its folder writable, or set {ENVIRONMENT} to another folder"
        raise DownloadError(f"cannot write {path}: {error}; {remedy}") from error
    say(f"{path} is in place, {len(data)} bytes, {checksum}")
    return path


def _first(path: Path, checksum: str, sources: Sequence[Source], remedies: Sequence[str]) -> bytes:
    """The verified bytes of the first source that works."""
    reasons = []
    for source in sources:
        say(f"fetching {path.name} from {source.describe}")
        try:
            data = source.fetch()
            verify(data, checksum)
            return data
        except ModuleNotFoundError as error:  # the other downloads need it, too
            hint = f"could not get {path.name} without the package {error.name}: pip install 'cdfsg[suite]'"
            raise ModuleNotFoundError(hint, name=error.name) from error
        except Exception as error:  # a source may fail in any way
            reasons.append(f"{source.describe}: {str(error) or repr(error)}")
            say(f"no success with {reasons[-1]}")
    place = f"Place the file by hand as {path} ({checksum})"
    raise DownloadError(
        f"could not get {path.name}. Tried:\n"
        + "".join(f"  - {reason}\n" for reason in reasons)
        + ", or ".join([place, f"set {ENVIRONMENT} to a folder that has it", *remedies])
        + "."
    )


def sha256(data: bytes | memoryview) -> str:
    """The checksum ``"sha256:hex digest"``."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def verify(data: bytes | memoryview | Path, checksum: str) -> None:
    """Raise ValueError unless bytes, or a file's, have the checksum ``"algorithm:hex digest"``."""
    algorithm, _, expected = checksum.partition(":")
    with data.open("rb") if isinstance(data, Path) else io.BytesIO(data) as stream:
        found = hashlib.file_digest(stream, lambda: hashlib.new(algorithm, usedforsecurity=algorithm == "sha256"))
        size = stream.seek(0, io.SEEK_END)
    if found.hexdigest() != expected:
        raise ValueError(f"{size} bytes with {algorithm} {found.hexdigest()}, expected {expected}")


def gunzip(packed: bytes) -> bytes:
    """Unpack a gzip archive; raise ValueError if it has more than `MOST` bytes."""
    with gzip.open(io.BytesIO(packed)) as stream:
        return read_all(stream)


def read_all(stream: io.BufferedIOBase) -> bytes:
    """All bytes of a stream; raise ValueError if it has more than `MOST`."""
    content = stream.read(MOST + 1)
    if len(content) > MOST:
        raise ValueError(f"it has more than {MOST} bytes")
    return content


def http(url: str, transform: Callable[[bytes], bytes] = bytes) -> Source:
    """Source that reads a URL and transforms the bytes served.

    It fails after `TIMEOUT` seconds of silence, `TOTAL_TIMEOUT` in all, or `MOST` bytes.
    """

    def read(given_up: threading.Event) -> bytes:
        import httpx2

        with httpx2.Client(timeout=TIMEOUT, follow_redirects=True) as client:
            return content_of(client, url, given_up)

    return Source(url, lambda: transform(within(TOTAL_TIMEOUT, read)))


def content_of(client: "httpx2.Client", url: str, given_up: threading.Event) -> bytes:
    """The bytes that a URL serves; ValueError after `MOST` of them, or once they are given up."""
    content, told = bytearray(), time.monotonic()
    with client.stream("GET", url, headers={"Accept-Encoding": "identity"}) as response:
        length = response.raise_for_status().headers.get("Content-Length", "?")
        for block in response.iter_raw():  # unpacked, it could have any size
            content += block
            if len(content) > MOST or given_up.is_set():
                raise ValueError(f"it sends more than {MOST} bytes, or takes too long")
            if time.monotonic() - told > 5:
                told = time.monotonic()
                say(f"{len(content)} of {length} bytes")
    return bytes(content)


def within(seconds: float, work: Callable[[threading.Event], bytes]) -> bytes:
    """The result of `work`; TimeoutError if it takes longer, and then it is left in its thread.

    A socket's timeout begins anew with each byte, and nothing interrupts a server that drips headers.
    """
    given_up, result = threading.Event(), Future[bytes]()

    def run() -> None:
        try:
            result.set_result(work(given_up))
        except BaseException as error:
            result.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    complete, _ = wait([result], seconds)
    given_up.set()
    if not complete:
        raise TimeoutError(f"it is not complete after {seconds:g} s")
    return result.result()
