import bz2
import hashlib
import os
import socket
import time
import tomllib
import zipfile

import numpy as np
import pytest

from cdfsg.datasets import load, load_mediamill, mediamill, mediamill_surrogate
from cdfsg.datasets.download import data_dir
from cdfsg.metrics import canonical_correlations

# --- the surrogate ---

FACTS = tomllib.loads(mediamill_surrogate.FACTS.read_text())


@pytest.fixture(scope="module")
def surrogate():
    return load("mediamill")


def correlation_spectrum(columns):
    return np.linalg.eigvalsh(np.corrcoef(columns.T.astype(np.float64)))[::-1]


def parts(views):
    return tuple(views.data[:, part] for part in views.slices)


def test_the_surrogate_has_mediamills_shape_and_says_what_it_is(surrogate):
    assert surrogate.data.shape == (43900, 221) and surrogate.data.dtype == np.float32
    assert surrogate.sizes == (120, 101) and surrogate.scale == 1 and surrogate.centred
    assert surrogate.name == "mediamill" and surrogate.provenance.kind == "surrogate"
    assert surrogate.provenance.source.startswith("surrogate of Mediamill") and "surrogate" in repr(surrogate)


def test_the_surrogates_labels_are_zeros_and_ones_of_the_real_frequencies(surrogate):
    _, labels = parts(surrogate)
    assert np.unique(labels).tolist() == [0, 1]
    np.testing.assert_allclose(labels.mean(axis=0), FACTS["prevalence"], rtol=0, atol=0.51 / 43900)
    assert round(float(labels.sum()) / 43900, 3) == 4.373


def test_the_facts_are_those_of_the_real_labels_and_features():
    first = [0.77, 0.64, 0.36, 0.34, 0.20, 0.18, 0.15, 0.14]
    np.testing.assert_allclose(FACTS["prevalence"][:8], first, rtol=0, atol=0.005)
    spectrum = [60.3, 20.3, 7.0, 3.8, 2.7, 2.5, 1.5, 1.2, 1.1]
    np.testing.assert_allclose(FACTS["feature_spectrum"][:9], spectrum, rtol=0, atol=0.06)
    correlations = [0.648, 0.564, 0.475, 0.364, 0.357, 0.310, 0.288, 0.264, 0.258, 0.210]
    np.testing.assert_allclose(FACTS["canonical_correlations"][:10], correlations, rtol=0, atol=6e-4)
    assert [len(FACTS[key]) for key in ("prevalence", "feature_spectrum", "canonical_correlations")] == [101, 120, 101]
    assert sum(size for size, _ in FACTS["groups"]) == 101


def test_the_surrogate_has_the_canonical_correlations_of_the_facts(surrogate):
    found = canonical_correlations(surrogate.covariance, surrogate.sizes)
    np.testing.assert_allclose(found, FACTS["canonical_correlations"], rtol=0, atol=2e-4)


def test_the_surrogates_features_have_the_correlation_spectrum_of_the_facts(surrogate):
    features, _ = parts(surrogate)
    np.testing.assert_allclose(correlation_spectrum(features), FACTS["feature_spectrum"], rtol=4e-4)


def test_the_surrogates_labels_have_about_the_correlation_spectrum_of_the_real_ones(surrogate):
    _, labels = parts(surrogate)
    real = [4.741, 3.087, 2.622, 2.465, 2.244, 2.180, 2.102, 1.989, 1.920, 1.881]
    np.testing.assert_allclose(correlation_spectrum(labels)[:10], real, rtol=0.01)


def test_the_surrogates_features_have_the_stated_mean_and_deviation_on_a_grid(surrogate):
    features = parts(surrogate)[0].astype(np.float64)
    np.testing.assert_allclose(features.mean(axis=0), 0.5, rtol=0, atol=1e-4)
    np.testing.assert_allclose(features.std(axis=0), 0.2, rtol=0, atol=1e-4)
    np.testing.assert_array_equal(features * 1024, np.rint(features * 1024))


def test_the_leading_canonical_variates_carry_about_the_real_share_of_the_features_variance(surrogate):
    covariance = surrogate.covariance
    x, y = surrogate.slices
    explained = covariance[x, y] @ np.linalg.solve(covariance[y, y], covariance[y, x])
    values, directions = np.linalg.eig(np.linalg.solve(covariance[x, x], explained))
    leading = covariance[x, x] @ directions[:, np.argsort(-values.real)[:10]].real
    norms = np.sqrt(np.einsum("ij,ij->j", leading, np.linalg.solve(covariance[x, x], leading)))
    share = ((leading / norms) ** 2).sum(axis=0) / np.trace(covariance[x, x])
    np.testing.assert_allclose([share[0], share.sum()], [0.23, 0.76], rtol=0, atol=0.01)


def test_the_surrogate_is_the_same_bytes_each_time_and_on_each_machine(surrogate):
    expected = "94c1a71b80444a47553b132bd2c8d0eb279f2fcc2578622e432d8fe50bf4bd77"
    assert surrogate.provenance.checksum == f"sha256:{expected}"
    assert hashlib.sha256(surrogate.data).hexdigest() == expected


def test_the_principal_directions_are_orthogonal_and_of_one_magnitude():
    matrix = mediamill_surrogate.hadamard_120()
    np.testing.assert_array_equal(matrix @ matrix.T, 120 * np.eye(120))
    assert set(matrix.ravel()) == {-1, 1} and (matrix[:, 0] == 1).all()


# --- the original, on few rows ---

ROWS = 60


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    features = np.round(rng.random((ROWS, 120)), 3).astype(np.float32)
    features[rng.random(features.shape) < 0.1] = 0
    return features, (rng.random((ROWS, 101)) < 0.05).astype(np.uint8)


@pytest.fixture(autouse=True)
def few(request, rows, tmp_path, monkeypatch):
    """Make 60 random rows stand in for Mediamill's, in an empty data folder and without a way to fetch."""
    if "surrogate" in request.fixturenames:
        return
    monkeypatch.setenv("CDFSG_DATA_DIR", str(tmp_path / "raw"))
    monkeypatch.setenv("CDFSG_MEDIAMILL", "")
    monkeypatch.setattr(mediamill, "MIRRORS", ((tmp_path / "nowhere").as_uri() + "/",))
    monkeypatch.setattr(mediamill, "ROWS", ROWS)
    monkeypatch.setattr(mediamill, "USED", ROWS - 7)
    monkeypatch.setattr(mediamill, "CARDINALITY", round(rows[1].sum() / ROWS, 3))


def svm(features, labels):
    lines = []
    for values, flags in zip(features, labels, strict=True):
        pairs = [f"{index + 1}:{value:g}" for index, value in enumerate(values) if value]
        lines.append(" ".join([",".join(map(str, np.flatnonzero(flags))), *pairs]) + "\n")
    return "".join(lines)


def arff(features, labels):
    kinds = ["numeric"] * 120 + ["{0,1}"] * 101
    header = "".join(f"@attribute a{number} {kind}\n" for number, kind in enumerate(kinds))
    values = [[f"{value:g}" for value in (*x, *y)] for x, y in zip(features, labels, strict=True)]
    return f"@relation mediamill\n{header}@data\n" + "".join(",".join(row) + "\n" for row in values)


def place(folder, features, labels, packed=True):
    folder.mkdir(exist_ok=True, parents=True)
    for name, part in zip(mediamill.FILES, (slice(0, 40), slice(40, None)), strict=True):
        text = svm(features[part], labels[part]).encode()
        path = folder / (name if packed else name.removesuffix(".bz2"))
        path.write_bytes(bz2.compress(text) if packed else text)
    return folder


def check_original(views, rows):
    np.testing.assert_array_equal(views.data, np.hstack(rows)[: ROWS - 7])
    assert views.data.dtype == np.float32 and views.sizes == (120, 101) and views.scale == 1 and views.centred
    assert views.provenance.kind == "original"
    assert views.provenance.checksum == "sha256:" + hashlib.sha256(views.data).hexdigest()


@pytest.mark.parametrize("packed", [True, False])
def test_a_folder_with_the_two_files_is_read_training_rows_first(rows, tmp_path, monkeypatch, packed):
    monkeypatch.setenv("CDFSG_MEDIAMILL", str(place(tmp_path / "mine", *rows, packed=packed)))
    check_original(load_mediamill(), rows)


def test_an_arff_file_is_read(rows, tmp_path, monkeypatch):
    (tmp_path / "mediamill.arff").write_text(arff(*rows))
    monkeypatch.setenv("CDFSG_MEDIAMILL", str(tmp_path / "mediamill.arff"))
    check_original(load_mediamill(), rows)


def test_an_npz_file_of_the_real_values_is_original(rows, tmp_path, monkeypatch):
    np.savez(tmp_path / "x.npz", features=rows[0], labels=rows[1])
    monkeypatch.setenv("CDFSG_MEDIAMILL", str(tmp_path / "x.npz"))
    check_original(load_mediamill(), rows)


def test_files_in_the_data_folder_are_used_without_asking_any_mirror(rows, monkeypatch):
    place(data_dir(), *rows)
    monkeypatch.setattr(mediamill, "http", None)
    check_original(load_mediamill(), rows)


def test_files_are_fetched_into_the_data_folder(rows, tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(mediamill, "MIRRORS", (place(tmp_path / "mirror", *rows).as_uri() + "/",))
    check_original(load_mediamill(), rows)
    assert set(mediamill.FILES) < set(os.listdir(data_dir()))
    told = capfd.readouterr().err
    assert f"{mediamill.FILES[1]} are in place" in told and told.count("parsing") == 1
    monkeypatch.setattr(mediamill, "http", None)
    check_original(load_mediamill(), rows)


def test_the_second_mirror_is_asked_if_the_first_fails(rows, tmp_path, monkeypatch):
    monkeypatch.setattr(mediamill, "MIRRORS", (*mediamill.MIRRORS, place(tmp_path / "second", *rows).as_uri() + "/"))
    check_original(load_mediamill(), rows)


# --- its cache ---


def caches():
    return sorted(data_dir().glob("mediamill-*.npz"))


def test_what_was_parsed_once_is_read_the_next_time(rows, monkeypatch):
    place(data_dir(), *rows)
    load_mediamill()
    monkeypatch.setattr(mediamill, "read_svm", None)
    check_original(load_mediamill(), rows)


def test_other_files_are_parsed_though_there_is_a_cache(rows, monkeypatch):
    place(data_dir(), *rows)
    load_mediamill()
    other = np.round(rows[0] / 2, 4).astype(np.float32), rows[1]
    place(data_dir(), *other)
    check_original(load_mediamill(), other)
    assert len(caches()) == 2


def flip(content):
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


@pytest.mark.parametrize("damage", [flip, lambda content: content[:-9], lambda content: b""])
def test_a_damaged_cache_is_told_and_made_anew(rows, damage, capfd):
    place(data_dir(), *rows)
    load_mediamill()
    (cache,) = caches()
    whole = cache.read_bytes()
    cache.write_bytes(damage(whole))
    check_original(load_mediamill(), rows)
    assert f"{cache} is damaged and is made anew: " in capfd.readouterr().err
    assert len(cache.read_bytes()) == len(whole)


def test_a_folder_that_takes_no_cache_costs_time_but_not_the_data(rows, tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("CDFSG_MEDIAMILL", str(place(tmp_path / "mine", *rows)))
    (tmp_path / "raw").write_text("in the way")
    check_original(load_mediamill(), rows)
    assert "cannot be written, so Mediamill will be parsed again" in capfd.readouterr().err


# --- what is not Mediamill ---


@pytest.mark.parametrize("keep", [ROWS - 1, 41])
def test_a_number_of_rows_that_is_not_mediamills_is_refused(rows, tmp_path, monkeypatch, keep):
    folder = place(tmp_path / "mine", rows[0][:keep], rows[1][:keep])
    monkeypatch.setenv("CDFSG_MEDIAMILL", str(folder))
    with pytest.raises(ValueError, match=rf"{keep} rows of 120 features and 101 labels: expected {ROWS} rows"):
        load_mediamill()
    assert not caches()


def test_a_number_of_labels_per_row_that_is_not_mediamills_is_refused(rows, tmp_path, monkeypatch):
    labels = rows[1].copy()
    labels[0, :2] = 1 - labels[0, :2]
    labels[0, 2:5] = 1
    monkeypatch.setenv("CDFSG_MEDIAMILL", str(place(tmp_path / "mine", rows[0], labels)))
    with pytest.raises(ValueError, match=rf"labels per row: expected {mediamill.CARDINALITY}; .*set CDFSG_MEDIAMILL"):
        load_mediamill()


def test_mediamills_facts_are_those_published():
    # Undo the stand-ins of the fixture by reading the source anew.
    source = mediamill.__loader__.get_source(mediamill.__name__)
    assert "ROWS, FEATURES, LABELS = 43_907, 120, 101\nUSED = 43_900\nCARDINALITY = 4.376\n" in source


@pytest.mark.parametrize(
    "name, found",
    [
        ("nothing", "there is no such file or folder; .*or to the word surrogate"),
        ("empty", "expected train-exp1.svm.bz2 and test-exp1.svm.bz2 in this folder"),
    ],
)
def test_a_path_without_the_files_is_an_error_and_no_surrogate(tmp_path, monkeypatch, name, found):
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("CDFSG_MEDIAMILL", str(tmp_path / name))
    with pytest.raises(FileNotFoundError, match=rf"CDFSG_MEDIAMILL={tmp_path / name}: {found}"):
        load_mediamill()


def test_a_file_of_an_unknown_kind_is_refused(tmp_path, monkeypatch):
    (tmp_path / "x.csv").touch()
    monkeypatch.setenv("CDFSG_MEDIAMILL", str(tmp_path / "x.csv"))
    with pytest.raises(ValueError, match="expected a folder, an .arff or an .npz file"):
        load_mediamill()


# --- derived data ---


def test_a_discretised_file_with_packed_labels_is_derived_and_its_levels_become_scores(rows, tmp_path, monkeypatch):
    levels = np.random.default_rng(1).integers(1, 4, (ROWS - 9, 120), dtype=np.uint8)
    packed = np.packbits(rows[1][: ROWS - 9], axis=1)
    np.savez(tmp_path / "x.npz", features=levels, labels=packed, n_labels=101)
    monkeypatch.setenv("CDFSG_MEDIAMILL", str(tmp_path / "x.npz"))
    views = load_mediamill()
    np.testing.assert_array_equal(parts(views)[0], np.float32([0, 0.5, 1])[levels - 1])
    np.testing.assert_array_equal(parts(views)[1], rows[1][: ROWS - 9])
    assert views.provenance.kind == "derived" and "discretised" in views.provenance.source


def test_real_values_of_other_rows_are_derived(rows, tmp_path, monkeypatch):
    np.savez(tmp_path / "x.npz", features=rows[0][1:], labels=rows[1][1:])
    monkeypatch.setenv("CDFSG_MEDIAMILL", str(tmp_path / "x.npz"))
    assert load_mediamill().provenance.kind == "derived"


@pytest.mark.parametrize(
    "content, found",
    [
        ({"features": np.zeros((3, 120))}, "labels is not in the archive"),
        ({"features": np.zeros((3, 119)), "labels": np.zeros((3, 101))}, r"features of shape \(3, 119\)"),
        ({"features": np.zeros((3, 120)), "labels": np.zeros((4, 101))}, r"labels of shape \(4, 101\)"),
        ({"features": np.zeros((3, 120)), "labels": np.full((3, 101), 2)}, "labels from 2 to 2: expected zeros"),
        ({"features": np.full((3, 120), np.inf), "labels": np.zeros((3, 101))}, "infinite or not a number"),
        ({"features": np.array([{}]), "labels": np.zeros((1, 101))}, "features is object of shape"),
    ],
)
def test_an_npz_file_of_something_else_is_refused(tmp_path, monkeypatch, content, found):
    np.savez(tmp_path / "x.npz", **content)
    monkeypatch.setenv("CDFSG_MEDIAMILL", str(tmp_path / "x.npz"))
    with pytest.raises(ValueError, match=rf"x\.npz: .*{found}"):
        load_mediamill()


def test_an_npz_file_with_a_member_that_is_no_array_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("features.npy", b"no array")
    with pytest.raises(ValueError, match=r"x\.npz: .*magic string.*expected an \.npz file with the arrays"):
        mediamill.read_npz(tmp_path / "x.npz")


# --- falling back on the surrogate ---


@pytest.fixture
def stand_in(monkeypatch):
    made = []
    monkeypatch.setattr(mediamill, "surrogate", lambda n_samples: made.append(n_samples) or made)
    return made


def test_without_the_files_the_surrogate_is_used_and_one_line_says_how_to_give_the_original(stand_in, tmp_path, capfd):
    assert load_mediamill() is stand_in == [ROWS - 7]
    (line,) = capfd.readouterr().err.splitlines()
    assert "Mediamill cannot be fetched" in line and "surrogate" in line and "No such file" in line
    assert "set CDFSG_MEDIAMILL to a folder with train-exp1.svm.bz2 and test-exp1.svm.bz2" in line


def test_a_failed_download_is_not_tried_again_by_this_process_or_its_children(stand_in, monkeypatch, capfd):
    load_mediamill()
    assert os.environ["CDFSG_MEDIAMILL"] == "surrogate"
    capfd.readouterr()
    monkeypatch.setattr(mediamill, "http", None)
    load_mediamill()
    assert len(stand_in) == 2 and capfd.readouterr().err == ""


def test_a_mirror_that_is_silent_is_given_up_soon_and_asked_for_one_file_only(stand_in, monkeypatch, capfd):
    monkeypatch.setattr(mediamill, "TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setattr(mediamill, "MIRRORS", (f"http://127.0.0.1:{silent.getsockname()[1]}/",))
        start = time.monotonic()
        load_mediamill()
        assert time.monotonic() - start < 0.39
    assert stand_in and "timed out" in capfd.readouterr().err


@pytest.mark.parametrize("harm", ["cut off", "fewer rows", "no archive"])
def test_a_download_that_is_not_mediamill_is_not_placed(stand_in, rows, tmp_path, monkeypatch, capfd, harm):
    folder = place(tmp_path / "mirror", *(part[:50] if harm == "fewer rows" else part for part in rows))
    second = folder / mediamill.FILES[1]
    if harm != "fewer rows":
        second.write_bytes(second.read_bytes()[:-30] if harm == "cut off" else b"<html>not found</html>")
    monkeypatch.setattr(mediamill, "MIRRORS", (folder.as_uri() + "/",))
    load_mediamill()
    assert stand_in and "Mediamill cannot be fetched" in capfd.readouterr().err
    assert not data_dir().exists()


def test_files_in_the_data_folder_that_are_not_mediamill_are_an_error_and_no_surrogate(stand_in, rows):
    place(data_dir(), *(part[:-1] for part in rows))
    with pytest.raises(ValueError, match=f"{ROWS - 1} rows of 120 features"):
        load_mediamill()
    assert not stand_in


def test_the_surrogate_can_be_asked_for(stand_in, rows, monkeypatch):
    place(data_dir(), *rows)
    monkeypatch.setenv("CDFSG_MEDIAMILL", "surrogate")
    assert load_mediamill() is stand_in
