import bz2
import hashlib
import os
import re
import tomllib

import numpy as np
import pytest

from cdfsg.datasets import load, load_mediamill, mediamill, mediamill_files, mediamill_surrogate
from cdfsg.datasets.download import Source, data_dir
from cdfsg.datasets.mediamill_files import decode, encode
from cdfsg.metrics import canonical_correlations
from tests.datasets.builders import arff, python2_pickle, svm, tarred

# --- the surrogate ---

FACTS = tomllib.loads(mediamill_surrogate.FACTS.read_text())


@pytest.fixture(scope="module")
def surrogate():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CDFSG_MEDIAMILL", "surrogate")
        return load("mediamill")


def correlation_spectrum(columns):
    return np.linalg.eigvalsh(np.corrcoef(columns.T.astype(np.float64)))[::-1]


def parts(views):
    return tuple(views.data[:, part] for part in views.slices)


def test_the_surrogate_is_the_same_bytes_on_each_machine_and_says_what_it_is(surrogate):
    assert surrogate.data.shape == (43900, 221) and surrogate.data.dtype == np.float32
    assert surrogate.sizes == (120, 101) and surrogate.scale == 1 and surrogate.centred
    assert surrogate.name == "mediamill" and surrogate.provenance.kind == "surrogate"
    assert surrogate.provenance.source.startswith("surrogate of Mediamill") and "surrogate" in repr(surrogate)
    expected = "94c1a71b80444a47553b132bd2c8d0eb279f2fcc2578622e432d8fe50bf4bd77"
    assert surrogate.provenance.checksum == f"sha256:{expected}"
    assert hashlib.sha256(surrogate.data).hexdigest() == expected


def test_the_surrogate_has_the_statistics_that_it_is_said_to_have(surrogate):
    features, labels = parts(surrogate)
    assert np.unique(labels).tolist() == [0, 1] and round(float(labels.sum()) / 43900, 3) == 4.373
    np.testing.assert_allclose(labels.mean(axis=0), FACTS["prevalence"], rtol=0, atol=0.51 / 43900)
    found = canonical_correlations(surrogate.covariance, surrogate.sizes)
    np.testing.assert_allclose(found, FACTS["canonical_correlations"], rtol=0, atol=2e-4)
    np.testing.assert_allclose(found[:5], [0.648, 0.564, 0.475, 0.364, 0.357], rtol=0, atol=1e-3)
    np.testing.assert_allclose(correlation_spectrum(features), FACTS["feature_spectrum"], rtol=4e-4)
    real = [4.741, 3.087, 2.622, 2.465, 2.244, 2.180, 2.102, 1.989, 1.920, 1.881]
    np.testing.assert_allclose(correlation_spectrum(labels)[:10], real, rtol=0.01)
    exact = features.astype(np.float64)
    np.testing.assert_allclose([exact.mean(axis=0), exact.std(axis=0)], [[0.5] * 120, [0.2] * 120], rtol=0, atol=1e-4)
    np.testing.assert_array_equal(exact * 1024, np.rint(exact * 1024))


# --- few rows in place of the original ---

ROWS, USED = 60, 53


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    features = np.round(rng.random((ROWS, 120)), 6).astype(np.float32)
    features[rng.random(features.shape) < 0.1] = 0
    return features, (rng.random((ROWS, 101)) < 0.05).astype(np.uint8)


@pytest.fixture(autouse=True)
def few(request, rows, tmp_path, monkeypatch):
    """Make 60 random rows stand in for Mediamill's, in an empty data folder and without a way to fetch."""
    if {"surrogate", "original"} & set(request.fixturenames):
        return
    monkeypatch.setenv("CDFSG_DATA_DIR", str(tmp_path / "raw"))
    monkeypatch.setenv("CDFSG_MEDIAMILL", "")
    data = np.hstack(rows)
    for module in (mediamill, mediamill_files):
        monkeypatch.setattr(module, "ROWS", ROWS)
    for name, value in {
        "USED": USED,
        "CARDINALITY": round(rows[1].sum() / ROWS, 3),
        "CHECKSUM": f"sha256:{hashlib.sha256(data[:USED]).hexdigest()}",
        "FILE_CHECKSUM": f"sha256:{hashlib.sha256(encode(data)).hexdigest()}",
        "MIRRORS": (),
        "PACKAGE": Source("the package", lambda: 1 / 0),
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
        monkeypatch.setattr(mediamill, "MIRRORS", (url.removesuffix(mediamill.FILES[1]),))

    return put


@pytest.mark.parametrize("kind", ["packed", "unpacked", "arff", "float32", "float64"])
def test_the_users_files_of_any_kind_with_the_real_values_are_original(rows, tmp_path, monkeypatch, kind):
    path = {"arff": tmp_path / "mediamill.arff", "packed": tmp_path, "unpacked": tmp_path}.get(kind, tmp_path / "x.npz")
    monkeypatch.setenv("CDFSG_MEDIAMILL", str(path))
    if path == tmp_path:
        place(path, *rows, unpacked=kind == "unpacked")
    elif kind == "arff":
        path.write_bytes(arff(*rows))
    else:
        np.savez(path, features=np.round(rows[0].astype(kind), 6), labels=rows[1])
    check(load_mediamill(), rows)


def test_a_mirrors_files_become_the_small_file_alone_and_are_not_fetched_again(rows, mirror, monkeypatch, capfd):
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


# --- the package ---


def dump(features, labels):
    """A file of the package."""
    return bz2.compress(python2_pickle({"X": features.astype("<f8"), "y": labels.astype("<i8")}, 0))


@pytest.fixture
def package(rows, monkeypatch):
    """Make a source distribution the only way but mirrors."""
    exact = np.round(rows[0].astype(np.float64), 6)
    content = [dump(exact[part], rows[1][part]) for part in PARTS]
    archive = tarred(zip(mediamill_files.PICKLES, content, strict=True))
    monkeypatch.setattr(mediamill, "PACKAGE", Source("the package", lambda: mediamill_files.from_package(archive)))


def test_without_a_mirror_the_package_gives_the_original(rows, package, monkeypatch):
    monkeypatch.setattr(mediamill, "MIRRORS", ("http://127.0.0.1:1/",))  # nothing listens on port 1
    check(load_mediamill(), rows)
    assert os.listdir(data_dir()) == [mediamill.FILE]


def test_the_package_goes_before_mirrors_files_of_other_values(rows, mirror, package, capfd):
    mirror(*packed(*altered(rows)))
    check(load_mediamill(), rows)
    assert re.search(r"no success with http://.*/multilabel/: \d+ bytes with sha256 ", capfd.readouterr().err)


def test_mirrors_files_of_other_values_are_derived_in_other_processes_too(rows, mirror, monkeypatch, capfd):
    other = altered(rows)
    mirror(*packed(*other))
    check(load_mediamill(), other, "derived")
    assert os.environ["CDFSG_MEDIAMILL"] == str(data_dir())
    check(load_mediamill(), other, "derived")
    assert "is not the original Mediamill: the checksum of its values is sha256:" in capfd.readouterr().err


# --- what is not Mediamill ---


@pytest.mark.parametrize("harm", [ROWS - 1, 41, "labels"])
def test_a_number_of_rows_or_of_labels_that_is_not_mediamills_is_refused(rows, tmp_path, monkeypatch, harm):
    features, labels = (part[:harm] if harm != "labels" else part.copy() for part in rows)
    if harm == "labels":
        labels[0, :5] = [*(1 - labels[0, :2]), 1, 1, 1]
    found = f"{harm} rows: expected {ROWS}; set CDFSG_MEDIAMILL"
    found = found if harm != "labels" else f"labels per row: expected {mediamill.CARDINALITY}; .*set CDFSG_MEDIAMILL"
    monkeypatch.setenv("CDFSG_MEDIAMILL", str(place(tmp_path / "mine", features, labels)))
    with pytest.raises(ValueError, match=found):
        load_mediamill()


# --- derived data ---


def test_a_discretised_file_is_derived_and_its_levels_become_scores(rows, tmp_path, monkeypatch):
    levels = np.random.default_rng(1).integers(1, 4, (ROWS - 9, 120), dtype=np.uint8)
    packed = np.packbits(rows[1][: ROWS - 9], axis=1)
    np.savez(tmp_path / "x.npz", features=levels, labels=packed, n_labels=101)
    monkeypatch.setenv("CDFSG_MEDIAMILL", str(tmp_path / "x.npz"))
    views = load_mediamill()
    np.testing.assert_array_equal(parts(views)[0], np.float32([0, 0.5, 1])[levels - 1])
    np.testing.assert_array_equal(parts(views)[1], rows[1][: ROWS - 9])
    assert views.provenance.kind == "derived"


@pytest.mark.parametrize("at_hand", [False, True])
def test_other_values_or_rows_are_derived_and_it_is_told_how_they_differ(rows, tmp_path, monkeypatch, capfd, at_hand):
    if at_hand:
        data_dir().mkdir()
        (data_dir() / mediamill.FILE).write_bytes(encode(np.hstack(rows)))
    told = [
        (altered(rows), "1 of 13260 values differ, by at most 0.14\n"),
        ((rows[0][1:], rows[1][1:]), f"{ROWS - 1} rows in place of {ROWS}\n"),
    ]
    monkeypatch.setenv("CDFSG_MEDIAMILL", str(tmp_path / "x.npz"))
    for (features, labels), how in told:
        np.savez(tmp_path / "x.npz", features=features, labels=labels)
        assert load_mediamill().provenance.kind == "derived"
        how = how if at_hand else "the checksum of its values is sha256:"
        assert f"x.npz is not the original Mediamill: {how}" in capfd.readouterr().err


# --- falling back on the surrogate ---


@pytest.fixture
def stand_in(monkeypatch):
    made = []
    monkeypatch.setattr(mediamill, "surrogate", lambda n_samples: made.append(n_samples) or made)
    return made


def test_without_the_files_the_surrogate_is_used_and_nothing_is_tried_again(stand_in, monkeypatch, capfd):
    assert load_mediamill() is stand_in == [USED]
    line = capfd.readouterr().err.splitlines()[-1]
    assert "Mediamill cannot be fetched (no source works); a surrogate" in line
    assert "set CDFSG_MEDIAMILL to a folder with train-exp1.svm.bz2 and test-exp1.svm.bz2" in line
    assert os.environ["CDFSG_MEDIAMILL"] == "surrogate"
    monkeypatch.setattr(mediamill, "obtain", None)
    load_mediamill()
    assert len(stand_in) == 2 and capfd.readouterr().err == ""


def test_a_silent_mirror_is_given_up_soon_and_asked_for_one_file_only(stand_in, mirror, monkeypatch, capfd):
    asked = []

    def silent(connection, stop):
        asked.append(connection)
        stop.wait(9)

    monkeypatch.setattr(mediamill, "TIMEOUT", 0.2)
    mirror(silent, silent)
    load_mediamill()
    assert stand_in and len(asked) == 1 and "timed out" in capfd.readouterr().err


@pytest.mark.parametrize("harm", ["cut off", "fewer rows", "no archive"])
def test_a_download_that_is_not_mediamill_is_not_placed(stand_in, rows, mirror, capfd, harm):
    first, second = packed(*(part[:50] if harm == "fewer rows" else part for part in rows))
    mirror(first, {"cut off": second[:-30], "fewer rows": second, "no archive": b"<html>not found</html>"}[harm])
    load_mediamill()
    assert stand_in and "Mediamill cannot be fetched" in capfd.readouterr().err
    assert os.listdir(data_dir()) == []


# --- the original ---


@pytest.fixture(scope="module")
def original():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CDFSG_MEDIAMILL", "")
        views = load_mediamill()
    if views.provenance.kind != "original":
        if os.environ.get("CI"):
            pytest.fail(f"Mediamill cannot be had: {views.provenance}")
        pytest.skip("Mediamill cannot be had; standard error says why")
    return views


def test_the_original_has_its_known_shape_checksum_and_labels(original):
    assert original.data.shape == (43_900, 221) and original.sizes == (120, 101) and original.centred
    checksum = "sha256:783a06d0dad8e341748e6562d842a0432920836166ffc5812458b4dd979b8400"
    assert original.provenance.checksum == checksum == f"sha256:{hashlib.sha256(original.data).hexdigest()}"
    labels = parts(original)[1]
    assert np.unique(labels).tolist() == [0, 1] and np.linalg.matrix_rank(labels) == 100
    assert round(float(labels.sum(dtype=np.float64)) / 43_900, 3) == 4.376


def test_all_rows_of_the_original_have_their_known_canonical_correlations(original):
    known = [0.7043, 0.6385, 0.5336, 0.4938, 0.4313, 0.3855, 0.3594, 0.3474, 0.3267, 0.3168]
    whole = decode((data_dir() / mediamill.FILE).read_bytes())
    np.testing.assert_array_equal(whole[:43_900], original.data)
    assert len(whole) == 43_907 and round(float(whole[:, 120:].sum(dtype=np.float64)) / 43_907, 4) == 4.3756
    found = canonical_correlations(np.cov(whole.T, dtype=np.float64), original.sizes)
    np.testing.assert_allclose(found[:10], known, rtol=0, atol=1e-4)
