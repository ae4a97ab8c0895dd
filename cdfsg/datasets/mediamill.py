"""Mediamill: 120 visual features of video keyframes, and the 101 labels of their annotation."""

import hashlib
import os
import tempfile
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np

from cdfsg.datasets import mediamill_files as files
from cdfsg.datasets.download import DownloadError, Source, data_dir, http, obtain, say, verify
from cdfsg.datasets.mediamill_files import FEATURES, LABELS, ROWS, decode, side_by_side
from cdfsg.datasets.mediamill_surrogate import surrogate
from cdfsg.datasets.packages import package_source
from cdfsg.datasets.views import Provenance, Views
from cdfsg.files import kept_array, named_folder, write_atomically

ENVIRONMENT, SURROGATE = "CDFSG_MEDIAMILL", "surrogate"
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
       multi-label collection ("mediamill (exp1)", packed or not), Mulan's ``mediamill.arff``, an
       ``.npz`` file (see `cdfsg.datasets.mediamill_files.read_npz`), or the word ``surrogate``;
    2. the file ``mediamill.bits`` (14 MB) in `cdfsg.datasets.download.data_dir`, made there on first
       use from LIBSVM's two files, placed there by hand or fetched, or from the archive of an early
       release of the package scikit-multilearn (33 MB);
    3. if it cannot be fetched, a surrogate (see `cdfsg.datasets.mediamill_surrogate`). Standard error
       says so, and neither this process nor one that it starts tries to fetch the files again.

    43,900 x (120 + 101) float32 in the units of the file, scale 1, centred: the training rows first, then the test
    rows. The labels are zeros and ones. The kind is ``original`` for values of the known checksum, ``derived`` for
    others (standard error says how they differ, if the original is at hand), ``surrogate`` for the stand-in.

    References
    ----------
    C. Snoek et al.: The challenge problem for automated detection of 101 semantic concepts in
    multimedia, ACM Multimedia 2006.
    """
    if os.environ.get(ENVIRONMENT) == SURROGATE:
        return surrogate(USED)
    path = named_folder(ENVIRONMENT)
    return _load_named(path) if path else _load_fetched()


def _load_named(path: Path) -> Views:
    if path.is_dir():
        found = _files_in(path)
        if not found:
            raise FileNotFoundError(f"{ENVIRONMENT}={path}: expected {FILES[0]} and {FILES[1]} in this folder")
        return _load_values(_parse(found), ", ".join(file.name for file in found))
    if not path.is_file():
        remedy = f"{_REMEDY}, or to the word {SURROGATE}"
        raise FileNotFoundError(f"{ENVIRONMENT}={path}: there is no such file or folder; {remedy}")
    if path.suffix == ".arff":
        return _load_values(_parse([path]), path.name)
    if path.suffix != ".npz":
        raise ValueError(f"{ENVIRONMENT}={path}: expected a folder, an .arff or an .npz file; {_REMEDY}")
    features, labels = files.read_npz(path)
    if features.dtype.kind not in "iu":
        return _load_values(side_by_side(features, labels), path.name)
    # Levels of a discretised version, brought to the range of the similarity scores they stand for.
    low, high = int(features.min()), int(features.max())
    scores = (features.astype(np.float64) - low) / max(high - low, 1)
    return _views(side_by_side(scores, labels), f"discretised Mediamill, {path.name}")


def _load_values(data: np.ndarray, name: str) -> Views:
    """The views of a user's file; how its values differ from the original ones is said."""
    views = _views(data, f"Mediamill, {name}")
    if views.provenance.kind == "original":
        return views
    original = data_dir() / FILE
    how = f"the checksum of its values is {views.provenance.checksum}, expected {CHECKSUM}"
    if original.is_file():
        with suppress(ValueError):
            verify(original, FILE_CHECKSUM)
            how = _difference(data, decode(original.read_bytes()))
    say(f"{name} is not the original Mediamill: {how}")
    return _views(data, f"altered Mediamill, {name}")


def _difference(found: np.ndarray, original: np.ndarray) -> str:
    if found.shape != original.shape:
        return f"{len(found)} rows in place of {len(original)}"
    apart = np.abs(found - original)
    features, labels = apart[:, :FEATURES], apart[:, FEATURES:]
    return (
        f"{np.count_nonzero(features)} of {features.size} features differ, by at most {features.max():.2g}, "
        f"and {np.count_nonzero(labels)} of {labels.size} labels"
    )


def _views(data: np.ndarray, source: str) -> Views:
    # Of the values, not of the files: it is then the same whichever format they were read from.
    checksum = f"sha256:{hashlib.sha256(data[:USED].data).hexdigest()}"
    provenance = Provenance(source, checksum, "original" if checksum == CHECKSUM else "derived")
    return Views("mediamill", data[:USED], (FEATURES, LABELS), 1.0, centred=True, provenance=provenance)


def _files_in(folder: Path) -> list[Path]:
    """The two files, packed or not; empty if one is missing."""
    places = (folder / name for name in FILES)
    found = [path if path.is_file() else path.with_suffix("") for path in places]
    return found if all(path.is_file() for path in found) else []


def _read(paths: list[Path]) -> np.ndarray:
    """Features and labels from text files; ValueError unless they have the published size and label cardinality."""
    say(f"parsing {' and '.join(path.name for path in paths)}, some 10 s once")
    data, source = files.from_text(paths), " and ".join(map(str, paths))
    if len(data) != ROWS:
        raise ValueError(f"{source}: {len(data)} rows: expected {ROWS}; {_REMEDY}")
    cardinality = data[:, FEATURES:].sum(dtype=np.float64) / ROWS
    if round(cardinality, 3) != CARDINALITY:
        remedy = f"the file is cut off or of other data; {_REMEDY}"
        raise ValueError(f"{source}: {cardinality:.3f} labels per row: expected {CARDINALITY}; {remedy}")
    return data


def _parse(paths: list[Path]) -> np.ndarray:
    """Features and labels from text files, or from what an earlier call kept of the same bytes."""
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in paths))
    made: list[np.ndarray] = []

    def make() -> np.ndarray:
        made.append(_read(paths))
        return made[0]

    cache = data_dir() / f"mediamill-{digest.hexdigest()[:16]}.npy"
    try:
        return kept_array(cache, make)
    except OSError as error:
        if not made:
            raise
        say(f"{cache} cannot be written, so Mediamill will be parsed again next time: {error}")
        return made[0]


def _load_fetched() -> Views:
    others: list[np.ndarray] = []
    try:
        data = decode(obtain(FILE, FILE_CHECKSUM, _sources(others)).read_bytes())
    except DownloadError as error:
        if others:  # better than a surrogate; the environment names them to worker processes, too
            os.environ[ENVIRONMENT] = str(data_dir())
            return _load_named(data_dir())
        reason = str(error) if str(error).count("\n") == 0 else "no way to it has worked"
        say(f"Mediamill cannot be fetched ({reason}); a surrogate with its statistics stands in, which is never "
            f"compared with the paper. For the original, {_REMEDY}")  # fmt: skip
        # In the environment, so that worker processes do not find reachable what their parent did not.
        os.environ[ENVIRONMENT] = SURROGATE
        return surrogate(USED)
    for other in others:
        say(f"LIBSVM's files are not the original Mediamill: {_difference(other, data)}")
    return _views(data, f"Mediamill, {FILE}")


def _sources(others: list[np.ndarray]) -> list[Source]:
    """Ways to the small file; values of LIBSVM's files that are not the original ones are added to `others`."""

    def packed(data: np.ndarray) -> bytes:
        try:
            verify(data[:USED].data.cast("B"), CHECKSUM)
        except ValueError:
            others.append(data)
            raise
        return files.encode(data)

    def served(mirror: str) -> bytes:
        contents = [http(mirror + name, timeout=TIMEOUT, most=MOST).fetch() for name in FILES]
        with tempfile.TemporaryDirectory() as scratch:
            trial = [Path(scratch) / name for name in FILES]
            for path, content in zip(trial, contents, strict=True):
                path.write_bytes(content)
            data = _read(trial)
        try:
            return packed(data)
        except ValueError:  # kept as second best, in case the package cannot be fetched
            for name, content in zip(FILES, contents, strict=True):
                write_atomically(data_dir() / name, content)
            raise

    sources = [Source(mirror, partial(served, mirror)) for mirror in MIRRORS]
    if paths := _files_in(data_dir()):
        sources.insert(0, Source(f"{FILES[0]} and {FILES[1]} in the data folder", lambda: packed(_parse(paths))))
    return [*sources, PACKAGE]
