"""Mediamill: 120 visual features of video keyframes, and the 101 labels of their annotation."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np

from cdfsg.datasets import mediamill_files as files
from cdfsg.datasets.download import Source, data_dir, http, obtain, say, sha256, verify
from cdfsg.datasets.mediamill_files import FEATURES, LABELS, ROWS, decode
from cdfsg.datasets.packages import package_source
from cdfsg.datasets.views import Provenance, Views
from cdfsg.files import named_folder

ENVIRONMENT = "CDFSG_MEDIAMILL"
USED = 43_900
CARDINALITY = 4.376
# Of the values of the rows used, as float32, the features before the labels.
CHECKSUM = "sha256:783a06d0dad8e341748e6562d842a0432920836166ffc5812458b4dd979b8400"

FILE = "mediamill.bits"  # small, with all rows, see `cdfsg.datasets.mediamill_files`
FILE_CHECKSUM = "sha256:1e610f0e30c3c0750e14e87e4ca380ea35bb0668ede378a4e680b517a02c0789"

FILES = ("train-exp1.svm.bz2", "test-exp1.svm.bz2")
MIRRORS = ("https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multilabel/mediamill/",)
TIMEOUT = 8.0
MOST = 1 << 26  # bytes of a packed file: 31,000 lines of 120 values have fewer even unpacked
PACKAGE = package_source(
    "scikit-multilearn==0.0.1",
    "scikit-multilearn-0.0.1.tar.gz",
    "sha256:ac30a342595481f46db77f5334c3a1e2d8261f4adbd104e3444f801c3c89b6a0",
    files.from_package,
    MOST,
)

_REMEDY = (
    f"set {ENVIRONMENT} to a folder with {FILES[0]} and {FILES[1]} (LIBSVM's multi-label collection, "
    "'mediamill (exp1)') or to Mulan's mediamill.arff"
)


def load_mediamill() -> Views:
    """Mediamill's first 43,900 keyframes as two views, the features and the labels.

    Looked for in this order:

    1. what the environment variable ``CDFSG_MEDIAMILL`` names: a folder with the two files of LIBSVM's
       multi-label collection ("mediamill (exp1)", packed or not), or Mulan's ``mediamill.arff``;
    2. the file ``mediamill.bits`` (14 MB) in `cdfsg.datasets.download.data_dir`, made on first use of
       LIBSVM's two files, placed there or fetched, or of an early release of scikit-multilearn (33 MB).

    43,900 x (120 + 101) float32 in the units of the file, scale 1, centred: the training rows first, then the test
    rows. The labels are zeros and ones. The kind is ``original`` for values of the known checksum. It is ``derived``
    for others, which only ``CDFSG_MEDIAMILL`` can name; standard error says how they differ, if the original is at
    hand. Source: C. Snoek et al., The challenge problem for automated detection of 101 semantic concepts in
    multimedia, ACM Multimedia 2006.
    """
    if path := named_folder(ENVIRONMENT):
        return _load_named(path)
    return _views(decode(obtain(FILE, FILE_CHECKSUM, _sources(), _REMEDY).read_bytes()), FILE)


def _load_named(path: Path) -> Views:
    """The views of a user's file; how its values differ from the original ones is said."""
    if path.is_dir():
        found = _files_in(path)
        if not found:
            raise FileNotFoundError(f"{ENVIRONMENT}={path}: expected {FILES[0]} and {FILES[1]} in this folder")
    elif not path.is_file():
        raise FileNotFoundError(f"{ENVIRONMENT}={path}: there is no such file or folder; {_REMEDY}")
    elif path.suffix != ".arff":
        raise ValueError(f"{ENVIRONMENT}={path}: expected a folder or an .arff file; {_REMEDY}")
    else:
        found = [path]
    data, name = _read(found), ", ".join(file.name for file in found)
    views = _views(data, name)
    if views.provenance.kind != "original":
        say(f"{name} is not the original Mediamill: {_difference(data)}")
    return views


def _difference(data: np.ndarray) -> str:
    """How values differ from the original ones, if these are at hand."""
    with suppress(OSError, ValueError):
        verify(data_dir() / FILE, FILE_CHECKSUM)
        apart = np.abs(data - decode((data_dir() / FILE).read_bytes()))
        return f"{np.count_nonzero(apart)} of {apart.size} values differ, by at most {apart.max():.2g}"
    return f"the checksum of its values is {sha256(data[:USED].data)}, expected {CHECKSUM}"


def _views(data: np.ndarray, name: str) -> Views:
    # Of the values, not of the files: it is then the same whichever format they were read from.
    checksum = sha256(data[:USED].data)
    kind = "original" if checksum == CHECKSUM else "derived"
    provenance = Provenance(f"Mediamill, {name}", checksum, kind)
    return Views("mediamill", data[:USED], (FEATURES, LABELS), 1.0, centred=True, provenance=provenance)


def _files_in(folder: Path) -> list[Path]:
    """LIBSVM's two files, packed or not; empty if one is missing."""
    places = (folder / name for name in FILES)
    found = [path if path.is_file() else path.with_suffix("") for path in places]
    return found if all(path.is_file() for path in found) else []


def _read(paths: Sequence[Path]) -> np.ndarray:
    return _parse({str(path): path.read_bytes() for path in paths})


def _parse(texts: Mapping[str, bytes]) -> np.ndarray:
    """Features and labels from text files; ValueError unless they have the published size and label cardinality."""
    names = " and ".join(texts)
    say(f"parsing {names}, some seconds")
    data = np.vstack([files.read_text(name, content) for name, content in texts.items()])
    if len(data) != ROWS:
        raise ValueError(f"{names}: {len(data)} rows: expected {ROWS}; {_REMEDY}")
    cardinality = data[:, FEATURES:].sum(dtype=np.float64) / ROWS
    if round(cardinality, 3) != CARDINALITY:
        found = f"{cardinality:.3f} labels per row: expected {CARDINALITY}"
        raise ValueError(f"{names}: {found}; the file is cut off or of other data; {_REMEDY}")
    return data


def _sources() -> list[Source]:
    """Ways to the small file."""
    sources = [Source(mirror, partial(_served, mirror)) for mirror in MIRRORS]
    if placed := _files_in(data_dir()):
        sources.insert(0, Source(f"{FILES[0]} and {FILES[1]} in the data folder", lambda: _packed(_read(placed))))
    return [*sources, PACKAGE]


def _served(mirror: str) -> bytes:
    """The small file from LIBSVM's."""
    names = (mirror + name for name in FILES)
    return _packed(_parse({name: http(name, timeout=TIMEOUT, most=MOST).fetch() for name in names}))


def _packed(data: np.ndarray) -> bytes:
    verify(data[:USED].data.cast("B"), CHECKSUM)
    return files.encode(data)
