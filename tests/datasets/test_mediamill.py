import bz2
import hashlib
import os
import re

import numpy as np
import pytest

from cdfsg.datasets import DownloadError, load_mediamill, mediamill
from cdfsg.datasets.download import Source, data_dir
from cdfsg.datasets.mediamill import read_text
from cdfsg.files import npy
from cdfsg.metrics import canonical_correlations
from tests.datasets.builders import arff, python2_pickle, svm, tarred, to_be_had

ROWS, USED = 60, 53
SERVED = mediamill.SOURCES[1].fetch


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    features = np.round(rng.random((ROWS, 120)), 6).astype(np.float32)
    features[rng.random(features.shape) < 0.1] = 0
    return features, (rng.random((ROWS, 101)) < 0.05).astype(np.uint8)


@pytest.fixture(autouse=True)
def few(request, rows, tmp_path, monkeypatch):
    """Make 60 random rows stand in for Mediamill's, in an empty data folder and without a way to fetch."""
    if "original" in request.fixturenames:
        return
    monkeypatch.setenv("CDFSG_DATA_DIR", str(tmp_path / "raw"))
    monkeypatch.setenv("CDFSG_MEDIAMILL", "")
    data = np.hstack(rows)
    for name, value in {
        "ROWS": ROWS,
        "USED": USED,
        "CARDINALITY": round(rows[1].sum() / ROWS, 3),
        "CHECKSUM": f"sha256:{hashlib.sha256(data[:USED]).hexdigest()}",
        "FILE_CHECKSUM": f"sha256:{hashlib.sha256(npy(data)).hexdigest()}",
        "SOURCES": (mediamill.SOURCES[0], Source("the package", lambda: 1 / 0)),
    }.items():
        monkeypatch.setattr(mediamill, name, value)


PARTS = (slice(0, 40), slice(40, None))


def packed(features, labels):
    return [bz2.compress(svm(features[part], labels[part])) for part in PARTS]


def place(folder, features, labels, unpacked=False):
    folder.mkdir(exist_ok=True, parents=True)
    for name, content in zip(mediamill.FILES, packed(features, labels), strict=True):
        path = folder / (name.removesuffix(".bz2") if unpacked else name)
        path.write_bytes(bz2.decompress(content) if unpacked else content)
    return folder


def altered(rows):
    """Other values: one feature is another one."""
    features = rows[0].copy()
    features[0, 0] = 0.5
    return features, rows[1]


def check(views, rows, kind="original"):
    np.testing.assert_array_equal(views.data, np.hstack(rows)[:USED])
    assert views.data.dtype == np.float32 and views.sizes == (120, 101) and views.scale == 1 and views.centred
    assert views.provenance.kind == kind
    assert views.provenance.checksum == "sha256:" + hashlib.sha256(views.data).hexdigest()


@pytest.fixture
def mirror(serve, monkeypatch):
    """Return a function that puts two files on a web server, which becomes the only mirror."""

    def put(first, second):
        for name, content in zip(mediamill.FILES, (first, second), strict=True):
            url = serve(content, path=f"/multilabel/{name}")
        monkeypatch.setattr(mediamill, "MIRROR", url.removesuffix(mediamill.FILES[1]))
        monkeypatch.setattr(mediamill, "SOURCES", (Source("a mirror", SERVED), *mediamill.SOURCES))

    return put


@pytest.mark.parametrize("kind", ["packed", "unpacked", "arff"])
def test_the_users_files_of_any_kind_with_the_real_values_are_original(rows, tmp_path, monkeypatch, kind):
    path = tmp_path / "mediamill.arff" if kind == "arff" else place(tmp_path, *rows, unpacked=kind == "unpacked")
    if kind == "arff":
        path.write_bytes(arff(*rows))
    monkeypatch.setenv("CDFSG_MEDIAMILL", str(path))
    check(load_mediamill(), rows)


def test_a_mirrors_files_become_one_file_alone_and_are_not_fetched_again(rows, mirror, monkeypatch, capfd):
    mirror(*packed(*rows))
    check(load_mediamill(), rows)
    assert os.listdir(data_dir()) == [mediamill.FILE]
    assert f"{mediamill.FILE} is in place" in capfd.readouterr().err
    monkeypatch.setattr(mediamill, "http", None)
    check(load_mediamill(), rows)
    assert capfd.readouterr().err == ""
    (data_dir() / mediamill.FILE).unlink()
    place(data_dir(), *rows)  # LIBSVM's files in the data folder do as well
    check(load_mediamill(), rows)


def test_the_package_goes_before_mirrors_files_of_other_values(rows, mirror, monkeypatch, capfd):
    exact = np.round(rows[0].astype(np.float64), 6)
    parts = [{"X": exact[part], "y": rows[1][part].astype(np.int64)} for part in PARTS]
    archive = tarred(zip(mediamill.PICKLES, (bz2.compress(python2_pickle(part, 0)) for part in parts), strict=True))
    package = Source("the package", lambda: npy(mediamill.from_package(archive)))
    monkeypatch.setattr(mediamill, "SOURCES", (package,))
    mirror(*packed(*altered(rows)))
    check(load_mediamill(), rows)
    assert os.listdir(data_dir()) == [mediamill.FILE]
    assert re.search(r"no success with a mirror: \d+ bytes with sha256 ", capfd.readouterr().err)


# --- what is not Mediamill ---


@pytest.mark.parametrize("harm", [ROWS - 1, 41, "labels"])
def test_a_number_of_rows_or_of_labels_that_is_not_mediamills_is_refused(rows, tmp_path, monkeypatch, harm):
    features, labels = (part[:harm] if harm != "labels" else part.copy() for part in rows)
    if harm == "labels":
        labels[0, :5] = [*(1 - labels[0, :2]), 1, 1, 1]
    found = rf"{len(labels)} rows of .* labels each: expected {ROWS} of {mediamill.CARDINALITY}; .*set CDFSG_MEDIAMILL"
    monkeypatch.setenv("CDFSG_MEDIAMILL", str(place(tmp_path / "mine", features, labels)))
    with pytest.raises(ValueError, match=found):
        load_mediamill()


def test_without_a_source_the_error_has_each_attempt_and_the_way_to_use_files_of_ones_own(rows):
    place(data_dir(), *altered(rows))
    with pytest.raises(DownloadError) as caught:
        load_mediamill()
    _, placed, package, remedy = str(caught.value).splitlines()
    assert re.search(r"placed by hand in the data folder: \d+ bytes with sha256 \w+, expected", placed)
    assert "the package: division by zero" in package
    assert "or set CDFSG_MEDIAMILL to a folder with train-exp1.svm.bz2 and test-exp1.svm.bz2" in remedy


# --- derived data ---


@pytest.mark.parametrize("at_hand", [False, True])
def test_the_users_files_of_other_values_are_derived_and_it_is_told_how_they_differ(
    rows, tmp_path, monkeypatch, capfd, at_hand
):
    if at_hand:
        data_dir().mkdir()
        (data_dir() / mediamill.FILE).write_bytes(npy(np.hstack(rows)))
    monkeypatch.setenv("CDFSG_MEDIAMILL", str(place(tmp_path / "mine", *altered(rows))))
    check(load_mediamill(), altered(rows), "derived")
    how = "1 of 13260 values differ, by at most 0.14\n" if at_hand else "the checksum of its values is sha256:"
    assert f"is not the original Mediamill: {how}" in capfd.readouterr().err


# --- the original ---


@pytest.fixture(scope="module")
def original():
    with to_be_had():
        return load_mediamill()


def test_the_original_has_its_known_shape_checksum_and_labels(original):
    assert original.data.shape == (43_900, 221) and original.sizes == (120, 101) and original.centred
    checksum = "sha256:783a06d0dad8e341748e6562d842a0432920836166ffc5812458b4dd979b8400"
    assert original.provenance.checksum == checksum == f"sha256:{hashlib.sha256(original.data).hexdigest()}"
    labels = original.data[:, 120:]
    assert np.unique(labels).tolist() == [0, 1] and np.linalg.matrix_rank(labels) == 100
    assert round(float(labels.sum(dtype=np.float64)) / 43_900, 3) == 4.376


def test_all_rows_of_the_original_have_their_known_canonical_correlations(original):
    known = [0.7043, 0.6385, 0.5336, 0.4938, 0.4313, 0.3855, 0.3594, 0.3474, 0.3267, 0.3168]
    whole = np.load(data_dir() / mediamill.FILE)
    np.testing.assert_array_equal(whole[:43_900], original.data)
    assert len(whole) == 43_907 and round(float(whole[:, 120:].sum(dtype=np.float64)) / 43_907, 4) == 4.3756
    found = canonical_correlations(np.cov(whole.T, dtype=np.float64), original.sizes)
    np.testing.assert_allclose(found[:10], known, rtol=0, atol=1e-4)


# --- text files ---


SVM = "3,0 1:0.5 4:-2e-1\n1:1 2:0.25\n2 \n"
ARFF = """% a comment
@relation 'toy: -C 2'

@attribute a numeric
@attribute 'b c' REAL
@attribute d numeric
@attribute e numeric
@ATTRIBUTE v {0,1}
@attribute w { 0, 1 }
@attribute 'x y'{0,1}
@attribute y {0,1}
@attribute z {0,1}
@data
0.5,0,0,-0.2,1,0,0,1,0

% another
1,0.25,0,0,0,0,0,0,0
0,0,0,0,0,0,1,0,0
"""
SPARSE = ARFF.partition("0.5,")[0] + """{0 0.5, 3 -0.2, 4 1,7 1}

% another
{0 1, 1 0.25}
{ 6 1 }
"""
DATA = np.float32([[0.5, 0, 0, -0.2, 1, 0, 0, 1, 0], [1, 0.25, *[0] * 7], [*[0] * 6, 1, 0, 0]])


@pytest.fixture
def small(monkeypatch):
    """Four features and five labels."""
    for name, value in {"FEATURES": 4, "LABELS": 5, "ROWS": 3}.items():
        monkeypatch.setattr(mediamill, name, value)


@pytest.mark.parametrize(
    "name, content",
    [("x.svm", SVM.encode()), ("x.svm.bz2", bz2.compress(SVM.encode())), ("x.arff", ARFF.encode()),
     ("x.arff", SPARSE.encode())],
)
def test_a_text_file_gives_the_features_and_then_the_labels(small, name, content):
    found = read_text(name, content)
    np.testing.assert_array_equal(found, DATA)
    assert found.dtype == np.float32


def test_arff_attributes_may_come_in_any_order(small):
    lines = [*["@attribute y {0,1}"] * 5, *["@attribute a numeric"] * 4, "@data", "1,0,0,1,0,0.5,0,0,-0.2"]
    np.testing.assert_array_equal(read_text("x.arff", "\n".join(lines).encode()), DATA[:1])


MALFORMED = {
    "x.svm": ["5 1:1", "-1 1:1", "0.5 1:1", "nan 1:1", "cat 1:1", "1 0:1", "1 5:1", "1 2:1 1:1", "1 2:x", "1 2:nan",
              "1 2:1e39", "1 2:1:1", "9223372036854775808 1:1", "1 9223372036854775808:1"],
    "x.arff": ["0.5,1,0", "0.5,x,0,0,1,0,0,0,0", "0.5,inf,0,0,1,0,0,0,0", "1e39,0,0,0,1,0,0,0,0", "0,0,0,0,2,0,0,0,0",
               "{0 1}"],
    "sparse.arff": ["{0 1, 9 1}", "{-1 1}", "{0 1, 1}", "{0 1", "{0.5 1}", "{1 1, 0 1}", "0,0,0,0,1,0,0,0,0"],
}  # fmt: skip


@pytest.mark.parametrize("name, row", [(name, row) for name in MALFORMED for row in MALFORMED[name]])
def test_a_malformed_row_is_refused_with_the_name_of_the_file(small, name, row):
    valid = {"x.svm": SVM, "x.arff": ARFF, "sparse.arff": SPARSE}[name].splitlines()[:-1]
    assert len(read_text(name, "\n".join(valid).encode())) == 2
    with pytest.raises(ValueError, match=rf"^{name}: .*expected a file of LIBSVM's .*get it anew"):
        read_text(name, "\n".join([*valid, row]).encode())


@pytest.mark.parametrize(
    "name, content",
    [
        ("x.svm.bz2", b"\xff\xfe\x00"),
        ("x.svm.bz2", bz2.compress(SVM.encode() * 1000)[:-20]),
        ("x.svm", b"\xff\xfe\x00"),
        ("x.arff", b"\xff\xfe\x00"),
        ("x.arff", ARFF.split("@data")[0].encode()),
        ("x.svm", b"1 1:1\n" * 100),
        *(("x.arff", ARFF.replace(*change, 1).encode())
          for change in (("a numeric", "a string"), ("a numeric", "a {0,1,2}"), ("a numeric", "a {0,1}"),
                         ("@data", "@date"))),
        ("x.arff", SPARSE.replace("@attribute", "@attribute id string\n@attribute", 1).encode()),
    ],
)  # fmt: skip
def test_a_file_that_is_no_such_table_is_refused_by_its_name(small, name, content):
    with pytest.raises(ValueError, match=rf"^{name}: .*get it anew"):
        read_text(name, content)
