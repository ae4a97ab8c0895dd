"""Mediamill: 120 visual features of video keyframes, and the 101 labels of their annotation."""

import hashlib
import io
import math
import os
import tempfile
import zipfile
from pathlib import Path

import numpy as np

from cdfsg.datasets.download import data_dir, http, say
from cdfsg.datasets.mediamill_surrogate import surrogate
from cdfsg.datasets.multilabel import read_arff, read_svm
from cdfsg.datasets.views import Provenance, Views
from cdfsg.files import named_folder, write_atomically

ENVIRONMENT = "CDFSG_MEDIAMILL"
SURROGATE = "surrogate"
FILES = ("train-exp1.svm.bz2", "test-exp1.svm.bz2")
MIRRORS = ("https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multilabel/mediamill/",)
TIMEOUT = 8.0
MOST = 1 << 26  # bytes of a packed file: 31,000 lines of 120 values have fewer even unpacked

ROWS, FEATURES, LABELS = 43_907, 120, 101
USED = 43_900
CARDINALITY = 4.376

_LARGEST = (1 << 12) + 8 * (1 << 16) * FEATURES  # bytes of an array with its header, of more rows than there are
_FORMAT = b"1"  # of the cache; another number makes the old files be ignored
_REMEDY = (
    f"set {ENVIRONMENT} to a folder with {FILES[0]} and {FILES[1]} (LIBSVM's multi-label collection, "
    "'mediamill (exp1)') or to Mulan's mediamill.arff"
)


def load_mediamill() -> Views:
    """Mediamill's first 43,900 keyframes as two views, the features and the labels.

    Looked for in this order:

    1. what the environment variable ``CDFSG_MEDIAMILL`` names: a folder with the two files of LIBSVM's
       multi-label collection ("mediamill (exp1)", packed or not), Mulan's ``mediamill.arff``, an
       ``.npz`` file (see `read_npz`), or the word ``surrogate``;
    2. the two files in `cdfsg.datasets.download.data_dir`, fetched there on first use;
    3. if they cannot be had, a surrogate (see `cdfsg.datasets.mediamill_surrogate`). Standard error
       says so, and neither this process nor one that it starts tries to fetch the files again.

    No checksum of the files is known to us, so they are recognised by the facts published of them:
    43,907 rows, 120 features, 101 labels, 4.376 labels per row.

    Returns
    -------
    Views
        43,900 x (120 + 101) float32 in the units of the file, scale 1, centred: the training rows
        first, then the test rows. The labels are zeros and ones. The kind is ``original`` for the
        files, ``derived`` for an ``.npz`` file of other values, ``surrogate`` for the stand-in.

    Raises
    ------
    FileNotFoundError, ValueError
        If what ``CDFSG_MEDIAMILL`` names is not there or not Mediamill.

    References
    ----------
    C. Snoek et al.: The challenge problem for automated detection of 101 semantic concepts in
    multimedia, ACM Multimedia 2006.
    """
    chosen = os.environ.get(ENVIRONMENT)
    if chosen == SURROGATE:
        return surrogate(USED)
    path = named_folder(ENVIRONMENT)
    if path:
        return _named(path)
    found = _files_in(data_dir())
    if not found:
        try:
            found = _fetch()
        except Exception as error:  # whatever is wrong with the net or the mirror, the surrogate will do
            say(f"Mediamill cannot be fetched ({error}); a surrogate with its statistics stands in, which is never "
                f"compared with the paper. For the original, {_REMEDY}")  # fmt: skip
            # In the environment, and not in a variable, because worker processes must not wait for
            # the mirror again, nor find it reachable when their parent did not.
            os.environ[ENVIRONMENT] = SURROGATE
            return surrogate(USED)
    return _original(found)


def read_npz(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Features and labels from an ``.npz`` file.

    Parameters
    ----------
    path : Path
        Has ``features``, shape (N, 120), and ``labels``: zeros and ones of shape (N, 101), or the
        same packed into bits along the rows (``numpy.packbits``) with their number as ``n_labels``.

    Returns
    -------
    features : ndarray, shape (N, 120)
    labels : ndarray of uint8, shape (N, 101)

    Raises
    ------
    ValueError
        If the file cannot be read or holds something else.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            features, labels = _array(archive, "features"), _array(archive, "labels")
            if "n_labels.npy" in archive.namelist():
                labels = np.unpackbits(labels, axis=1)[:, : int(_array(archive, "n_labels"))]
    except Exception as error:  # a damaged archive can raise nearly anything
        raise ValueError(
            f"{path}: {error}: expected an .npz file with the arrays features and labels; get it anew"
        ) from error
    if features.ndim != 2 or features.shape[1] != FEATURES or labels.shape != (len(features), LABELS):
        raise ValueError(
            f"{path}: features of shape {features.shape} and labels of shape {labels.shape}: "
            f"expected (N, {FEATURES}) and (N, {LABELS}); is it Mediamill?"
        )
    if not np.isin(labels, (0, 1)).all():
        raise ValueError(f"{path}: labels from {labels.min()} to {labels.max()}: expected zeros and ones")
    if not np.isfinite(features).all():
        raise ValueError(f"{path}: features that are infinite or not a number; get it anew")
    return features, labels.astype(np.uint8)


def _array(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    """An array of numbers from an archive that may state any size, of itself and of the array."""
    if f"{name}.npy" not in archive.namelist():
        raise ValueError(f"{name} is not in the archive")
    member = archive.getinfo(f"{name}.npy")
    if member.file_size > _LARGEST:
        raise ValueError(f"{name} has {member.file_size} bytes, more than the {_LARGEST} expected of it")
    with archive.open(member) as stream:
        content = io.BytesIO(stream.read(member.file_size))  # without a number, all that there is would be unpacked
    version = np.lib.format.read_magic(content)
    if version != (1, 0):
        raise ValueError(f"{name} is in version {version} of the npy format, expected (1, 0)")
    shape, _, dtype = np.lib.format.read_array_header_1_0(content)
    stated, there = math.prod(shape) * dtype.itemsize, len(content.getbuffer()) - content.tell()
    if dtype.kind not in "biuf" or stated != there:
        raise ValueError(f"{name} is {dtype} of shape {shape} in {there} bytes, expected numbers in {stated}")
    content.seek(0)
    array: np.ndarray = np.lib.format.read_array(content, allow_pickle=False)
    return array


def check_facts(features: np.ndarray, labels: np.ndarray, source: str) -> None:
    """Check the data against what is published of Mediamill.

    Raises
    ------
    ValueError
        If the number of rows, features, labels, or labels per row is another one.
    """
    shapes = features.shape, labels.shape
    if shapes != ((ROWS, FEATURES), (ROWS, LABELS)):
        raise ValueError(
            f"{source}: {shapes[0][0]} rows of {shapes[0][1]} features and {shapes[1][1]} labels: "
            f"expected {ROWS} rows of {FEATURES} and {LABELS}; {_REMEDY}"
        )
    cardinality = labels.sum() / len(labels)
    if round(cardinality, 3) != CARDINALITY:
        raise ValueError(
            f"{source}: {cardinality:.3f} labels per row: expected {CARDINALITY}; the file is cut off or of other "
            f"data; {_REMEDY}"
        )


def _named(path: Path) -> Views:
    if path.is_dir():
        found = _files_in(path)
        if not found:
            raise FileNotFoundError(f"{ENVIRONMENT}={path}: expected {FILES[0]} and {FILES[1]} in this folder")
        return _original(found)
    if not path.is_file():
        raise FileNotFoundError(
            f"{ENVIRONMENT}={path}: there is no such file or folder; {_REMEDY}, or to the word {SURROGATE}"
        )
    if path.suffix == ".arff":
        return _original([path])
    if path.suffix == ".npz":
        return _from_npz(path)
    raise ValueError(f"{ENVIRONMENT}={path}: expected a folder, an .arff or an .npz file; {_REMEDY}")


def _files_in(folder: Path) -> list[Path]:
    """The two files, packed or not; empty if one is missing."""
    found = []
    for name in FILES:
        candidates = (folder / name, folder / name.removesuffix(".bz2"))
        found += [path for path in candidates if path.is_file()][:1]
    return found if len(found) == len(FILES) else []


def _fetch() -> list[Path]:
    """Fetch both files into the data folder, one attempt per mirror, and check them before they are placed."""
    for number, mirror in enumerate(MIRRORS, start=1):
        try:
            packed = [http(mirror + name, timeout=TIMEOUT, most=MOST).fetch() for name in FILES]
            return _placed(packed)
        except Exception:
            if number == len(MIRRORS):
                raise
    raise ValueError("no mirror is known")


def _placed(packed: list[bytes]) -> list[Path]:
    folder = data_dir()
    with tempfile.TemporaryDirectory() as scratch:
        trial = [Path(scratch) / name for name in FILES]
        for path, content in zip(trial, packed, strict=True):
            path.write_bytes(content)
        _cached(trial)  # raises if it is not Mediamill; else `load_mediamill` finds these bytes parsed
    for name, content in zip(FILES, packed, strict=True):
        write_atomically(folder / name, content)
    say(f"{folder / FILES[0]} and {FILES[1]} are in place")
    return [folder / name for name in FILES]


def _original(paths: list[Path]) -> Views:
    return _views(*_cached(paths), f"Mediamill, {', '.join(path.name for path in paths)}", "original")


def _from_npz(path: Path) -> Views:
    features, labels = read_npz(path)
    if features.dtype.kind in "iu":
        # Levels of a discretised version, brought to the range of the similarity scores they stand for.
        low, high = int(features.min()), int(features.max())
        scores = (features.astype(np.float64) - low) / max(high - low, 1)
        return _views(scores, labels, f"discretised Mediamill, {path.name}", "derived")
    try:
        check_facts(features, labels, str(path))
    except ValueError:
        return _views(features, labels, f"altered Mediamill, {path.name}", "derived")
    return _views(features, labels, f"Mediamill, {path.name}", "original")


def _views(features: np.ndarray, labels: np.ndarray, source: str, kind: str) -> Views:
    data = np.hstack([features[:USED], labels[:USED]]).astype(np.float32)
    # Of the values, not of the files: it is then the same whichever format they were read from.
    checksum = f"sha256:{hashlib.sha256(data.tobytes()).hexdigest()}"
    return Views("mediamill", data, (FEATURES, LABELS), 1.0, centred=True,
                 provenance=Provenance(source, checksum, kind))  # fmt: skip


def _cached(paths: list[Path]) -> tuple[np.ndarray, np.ndarray]:
    """Parse the files, or read what an earlier call made of the same bytes."""
    digest = hashlib.sha256(_FORMAT)
    for path in paths:
        digest.update(path.read_bytes())
    cache = data_dir() / f"mediamill-{digest.hexdigest()[:16]}.npz"
    if cache.is_file():
        try:
            return read_npz(cache)  # the archive's own checksums reveal damage
        except ValueError as error:
            say(f"{cache} is damaged and is made anew: {error}")
    say(f"parsing {' and '.join(path.name for path in paths)}, some 10 s once")
    features, labels = _parsed(paths)
    check_facts(features, labels, " and ".join(map(str, paths)))
    packed = io.BytesIO()
    np.savez(packed, features=features, labels=np.packbits(labels, axis=1), n_labels=np.array(LABELS))
    try:
        write_atomically(cache, packed.getvalue())
    except OSError as error:
        say(f"{cache} cannot be written, so Mediamill will be parsed again next time: {error}")
    return features, labels


def _parsed(paths: list[Path]) -> tuple[np.ndarray, np.ndarray]:
    read = read_arff if paths[0].suffix == ".arff" else read_svm
    parts = [read(path, FEATURES, LABELS, ROWS) for path in paths]
    return np.vstack([features for features, _ in parts]), np.vstack([labels for _, labels in parts])
