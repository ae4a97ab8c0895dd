"""The files that Mediamill comes in: text and a package's pickles."""

import bz2
import io
import re
from itertools import chain
from pathlib import Path

import numpy as np

from cdfsg.datasets.download import read_all, say
from cdfsg.datasets.packages import arrays, members

ROWS, FEATURES, LABELS = 43_907, 120, 101

PICKLES = tuple(f"scikit-multilearn-0.0.1/skmultilearn/data/mediamill-{part}.dump.bz2" for part in ("train", "test"))
# Bytes of an unpacked file; a pickle has up to four for each byte of its arrays.
_LARGEST = 1 << 28
_ATTRIBUTE = re.compile(
    r"^\s*@attribute\s+\S.*?[\s'\"](numeric|real|integer|\{\s*0\s*,\s*1\s*\})\s*$", re.IGNORECASE | re.MULTILINE
)
_DATA = re.compile(r"^\s*@data\s*$", re.IGNORECASE | re.MULTILINE)


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


def from_package(archive: bytes) -> np.ndarray:
    """Features and labels out of the source distribution that has the pickles and whose checksum was verified."""
    parts = []
    for name, packed in zip(PICKLES, members(archive, PICKLES), strict=True):
        say(f"unpacking {Path(name).name}, some seconds once")
        part = arrays(_unpack(packed))
        parts.append(side_by_side(part["X"], part["y"]))
    return np.vstack(parts)


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
    """Numeric attributes are features, {0,1} ones labels; all rows are dense, or all sparse (``{0 0.25, 2 1}``)."""
    from sklearn.datasets import load_svmlight_file

    header, rows = _DATA.split(re.sub(rb"(?m)^%.*", b"", content).decode("ascii"), maxsplit=1)
    is_label = np.array([kind.startswith("{") for kind in _ATTRIBUTE.findall(header)])
    if "{" in rows:  # as LIBSVM's, ``0 0:0.25 2:1``
        pairs = re.sub(r"(\d+)\s+([^\s,}]+)\s*,?", r"\1:\2 ", rows)
        text = re.sub(r"(?m)^\s*\{(.*)\}", r"0 \1", pairs)
        table = load_svmlight_file(io.BytesIO(text.encode()), n_features=len(is_label), zero_based=True)[0].toarray()
    else:
        table = np.loadtxt(io.StringIO(rows), delimiter=",", ndmin=2)
    return side_by_side(table[:, ~is_label], table[:, is_label])
