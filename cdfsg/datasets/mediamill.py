"""Mediamill: 120 visual features of video keyframes, and the 101 labels of their annotation."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np

from cdfsg.datasets import mediamill_files as files
from cdfsg.datasets.download import Source, data_dir, http, obtain, say, sha256, verify
from cdfsg.datasets.mediamill_files import FEATURES, LABELS, ROWS
from cdfsg.datasets.packages import package_source
from cdfsg.datasets.views import Provenance, Views
from cdfsg.files import named_folder, npy

ENVIRONMENT = "CDFSG_MEDIAMILL"
USED = 43_900
CARDINALITY = 4.376
# Of the values of the rows used, as float32, the features before the labels.
CHECKSUM = "sha256:783a06d0dad8e341748e6562d842a0432920836166ffc5812458b4dd979b8400"

FILE = "mediamill.npy"  # all rows, the features before the labels
FILE_CHECKSUM = "sha256:8fea27911ea35610b0a5958a197e5d84455e4413fe088639a982ca67800a8a71"

FILES = ("train-exp1.svm.bz2", "test-exp1.svm.bz2")
MIRROR = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multilabel/mediamill/"
TIMEOUT = 8.0
MOST = 1 << 26  # bytes of a packed file: 31,000 lines of 120 values have fewer even unpacked

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

    43,900 x (120 + 101) float32 in the units of the file, scale 1, centred: the training rows first, then the test
    rows. The labels are zeros and ones. The kind is ``original`` for values of the known checksum. It is ``derived``
    for others, which only ``CDFSG_MEDIAMILL`` can name; standard error says how they differ, if the original is at
    hand. Source: C. Snoek et al., The challenge problem for automated detection of 101 semantic concepts in
    multimedia, ACM Multimedia 2006.
    """
    if path := named_folder(ENVIRONMENT):
        return _load_named(path)
    return _views(np.load(obtain(FILE, FILE_CHECKSUM, SOURCES, _REMEDY), mmap_mode="r"), FILE)


def _load_named(path: Path) -> Views:
    """The views of a user's file; how its values differ from the original ones is said."""
    found = [path] if path.suffix == ".arff" and path.is_file() else _files_in(path)
    data, name = _read(found), ", ".join(file.name for file in found)
    views = _views(data, name)
    if views.provenance.kind != "original":
        say(f"{name} is not the original Mediamill: {_difference(data)}")
    return views


def _difference(data: np.ndarray) -> str:
    """How values differ from the original ones, if these are at hand."""
    with suppress(OSError, ValueError):
        verify(data_dir() / FILE, FILE_CHECKSUM)
        apart = np.abs(data - np.load(data_dir() / FILE))
        return f"{np.count_nonzero(apart)} of {apart.size} values differ, by at most {apart.max():.2g}"
    return f"the checksum of its values is {sha256(data[:USED].data)}, expected {CHECKSUM}"


def _views(data: np.ndarray, name: str) -> Views:
    # Of the values, not of the files: it is then the same whichever format they were read from.
    checksum = sha256(data[:USED].data)
    kind = "original" if checksum == CHECKSUM else "derived"
    provenance = Provenance(f"Mediamill, {name}", checksum, kind)
    return Views("mediamill", data[:USED], (FEATURES, LABELS), 1.0, centred=True, provenance=provenance)


def _files_in(folder: Path) -> list[Path]:
    """LIBSVM's two files, packed or not."""
    places = (folder / name for name in FILES)
    found = [path if path.is_file() else path.with_suffix("") for path in places]
    if not all(path.is_file() for path in found):
        raise FileNotFoundError(f"{folder} does not have the files of Mediamill; {_REMEDY}")
    return found


def _read(paths: Iterable[Path]) -> np.ndarray:
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


def _served() -> bytes:
    names = (MIRROR + name for name in FILES)
    return npy(_parse({name: http(name, timeout=TIMEOUT, most=MOST).fetch() for name in names}))


SOURCES = (
    Source(f"{FILES[0]} and {FILES[1]} placed by hand in the data folder", lambda: npy(_read(_files_in(data_dir())))),
    Source(MIRROR, _served),
    package_source(
        "scikit-multilearn==0.0.1",
        "scikit-multilearn-0.0.1.tar.gz",
        "sha256:ac30a342595481f46db77f5334c3a1e2d8261f4adbd104e3444f801c3c89b6a0",
        lambda archive: npy(files.from_package(archive)),
        MOST,
    ),
)
