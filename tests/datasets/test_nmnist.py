import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from cdfsg.datasets import DownloadError, load, load_nmnist, nmnist
from cdfsg.datasets.download import data_dir
from cdfsg.datasets.mnist import FILE, load_images
from cdfsg.datasets.nmnist import blur, degrade, motion_kernel, to_bytes, with_noise
from cdfsg.files import npy
from tests.datasets.builders import flip, to_be_had


def random_images(n=40):
    return np.random.default_rng(0).integers(0, 256, (n, 28, 28), dtype=np.uint8)


# --- the recipe ---


DOCUMENTED = [
    [0.0000, 0.0000, 0.0067, 0.0572, 0.1002],
    [0.0934, 0.1448, 0.1954, 0.1448, 0.0934],
    [0.1002, 0.0572, 0.0067, 0.0000, 0.0000],
]
PRINTED = [[0.0000, 0.0754, 0.1883], [0.0754, 0.3215, 0.0754], [0.1883, 0.0754, 0.0000]]


@pytest.mark.parametrize(
    "length, degrees, expected",
    [(5, 15, DOCUMENTED), (3, 45, PRINTED), (1, 0, [[1]]), (4, 0, [[0.125, 0.25, 0.25, 0.25, 0.125]]),
     (9, 0, [[1 / 9] * 9])],
)  # fmt: skip
def test_the_motion_kernel_is_what_matlab_documents_or_prints_and_sums_to_1(length, degrees, expected):
    kernel = motion_kernel(length, degrees)
    np.testing.assert_allclose(kernel, expected, rtol=0, atol=5e-5)
    np.testing.assert_allclose(kernel.sum(), 1, rtol=1e-14)
    np.testing.assert_allclose(kernel, np.rot90(kernel, 2), rtol=0, atol=1e-16)


@pytest.mark.parametrize("decibels", [9.5, 12])
def test_noise_has_the_signal_to_noise_ratio_of_an_all_white_image(decibels):
    images = random_images(200) * np.linspace(0.1, 1, 200)[:, np.newaxis, np.newaxis]
    noise = with_noise(images, decibels, np.random.default_rng(1)) - images
    ratio = 10 * np.log10(255**2 / noise.var(axis=(1, 2)))
    # The variance of 784 normal numbers varies by 5 %, which is 0.22 decibels.
    assert abs(ratio - decibels).max() < 5 * 0.22
    assert abs(ratio.mean() - decibels) < 5 * 0.22 / np.sqrt(200)
    assert abs(noise.mean()) / 255 < 0.005


def test_the_views_are_the_image_its_blur_and_its_rounded_half_with_the_noise_that_the_recipe_names(monkeypatch):
    ratios = []
    monkeypatch.setattr(nmnist, "with_noise", lambda images, decibels, rng: ratios.append(decibels) or images)
    images, kernel = random_images(), motion_kernel(5, 15)
    views = degrade(images).reshape(-1, 3, 28, 28)
    np.testing.assert_array_equal(views[:, 0], images)
    turned = blur(images.transpose(0, 2, 1).astype(float), kernel).transpose(0, 2, 1)
    np.testing.assert_array_equal(views[:, 1], to_bytes(turned))
    np.testing.assert_array_equal(views[:, 2], (images + np.uint16(1)) // 2)
    assert ratios == [9.5, 12]


def test_an_image_is_degraded_alike_whatever_follows_it(monkeypatch):
    images = random_images()
    all_at_once = degrade(images)
    np.testing.assert_array_equal(degrade(images[:13]), all_at_once[:13])
    monkeypatch.setattr(nmnist, "_CHUNK", 10)
    np.testing.assert_array_equal(degrade(images), all_at_once)


# --- the whole data set ---


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Make all of n-MNIST in a folder of its own, which takes about 5 s."""
    with to_be_had():
        load_images()
    folder = tmp_path_factory.mktemp("raw")
    (folder / FILE).symlink_to((data_dir() / FILE).resolve())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CDFSG_DATA_DIR", str(folder))
        yield load("nmnist")
    (folder / nmnist.FILE).unlink()  # 141 MB, which pytest would keep for three sessions


def test_nmnist_has_the_mean_and_deviation_of_the_published_files(whole):
    assert whole.name == "nmnist" and whole.data.shape == (60000, 2352) and whole.data.dtype == np.uint8
    assert whole.sizes == (784, 784, 784) and whole.scale == 1 / 255 and whole.centred
    assert whole.provenance.kind == "derived"
    assert whole.provenance.checksum == "sha256:" + hashlib.sha256(whole.data).hexdigest()
    # As a public code prints them for normalisation, to four digits.
    published = [(0.2294, 0.3054), (0.1306, 0.2475), (0.1505, 0.2038)]
    for part, (mean, deviation) in zip(whole.slices, published, strict=True):
        histogram = np.bincount(whole.data[:, part].ravel(), minlength=256) / (60000 * 784)
        levels = np.arange(256) / 255
        found = histogram @ levels
        np.testing.assert_allclose(found, mean, rtol=0, atol=6e-5)
        np.testing.assert_allclose(np.sqrt(histogram @ (levels - found) ** 2), deviation, rtol=0, atol=6e-5)


def test_what_is_made_once_is_read_the_next_time_and_shared_by_processes(whole, monkeypatch):
    monkeypatch.setattr(nmnist, "degrade", None)
    again = load_nmnist()
    np.testing.assert_array_equal(again.data[::1000], whole.data[::1000])
    for owner in (whole.data, again.data):
        while owner.base is not None and not isinstance(owner, np.memmap):
            owner = owner.base
        assert isinstance(owner, np.memmap) and not owner.flags.writeable


# --- the cache and the published files, on few images ---


@pytest.fixture
def few(tmp_path, monkeypatch):
    """Make 40 random images stand in for MNIST, in an empty data folder."""
    images = random_images()
    data = degrade(images)
    monkeypatch.setenv("CDFSG_DATA_DIR", str(tmp_path / "raw"))
    monkeypatch.setattr(nmnist, "load_images", lambda: images)
    monkeypatch.setattr(nmnist, "_IMAGES", 40)
    monkeypatch.setattr(nmnist, "FILE_CHECKSUM", "sha256:" + hashlib.sha256(npy(data)).hexdigest())
    return data


def cache():
    return data_dir() / nmnist.FILE


def test_a_damaged_cache_is_told_and_made_anew(few, capfd):
    load_nmnist()
    assert os.listdir(data_dir()) == [nmnist.FILE]
    whole = cache().read_bytes()
    cache().write_bytes(flip(whole))
    np.testing.assert_array_equal(load_nmnist().data, few)
    assert f"{cache()} is damaged and will be fetched anew: " in capfd.readouterr().err
    assert cache().read_bytes() == whole


def test_noise_that_another_numpy_draws_is_an_error_and_not_other_data(few, monkeypatch):
    monkeypatch.setattr(nmnist, "SEED", 1)
    found = rf"MNIST \(numpy .* requirements.lock .* bytes with sha256 .*{nmnist.FILE_CHECKSUM[7:]}"
    with pytest.raises(DownloadError, match=found):
        load_nmnist()
    assert not cache().exists()


@pytest.fixture
def published(few, tmp_path, monkeypatch):
    """Write files as published, whose views are told apart by their values, and name their folder."""
    folder = tmp_path / "published"
    folder.mkdir()
    digits = np.eye(10, dtype=np.uint8)[np.arange(40) % 10]
    for view, name in enumerate(nmnist.FILES):
        savemat(folder / name, {"train_x": np.full((40, 784), 70 + view, np.uint8), "train_y": digits})
    monkeypatch.setenv("CDFSG_NMNIST_DIR", str(folder))
    return folder


def test_the_published_files_are_used_where_they_are_at_hand_with_digits_or_without(published, monkeypatch):
    monkeypatch.setattr(nmnist, "load_images", None)
    views = load_nmnist()
    assert views.data.dtype == np.uint8 and views.sizes == (784, 784, 784)
    assert [np.unique(views.data[:, part]).tolist() for part in views.slices] == [[70], [71], [72]]
    files = b"".join((published / name).read_bytes() for name in nmnist.FILES)
    assert views.provenance.kind == "original"
    assert views.provenance.checksum == "sha256:" + hashlib.sha256(files).hexdigest()
    savemat(published / nmnist.FILES[0], {"train_x": IMAGES})
    assert load_nmnist().data[:, :785].max() == 71 and not data_dir().exists()


IMAGES = np.zeros((40, 784), np.uint8)


@pytest.mark.parametrize(
    "content, found",
    [
        ({"train_x": IMAGES[:, :783]}, r"train_x is uint8 of shape \(40, 783\): expected uint8 of shape \(40, 784\)"),
        ({"train_x": IMAGES.astype(float)}, r"train_x is float64 of shape \(40, 784\): expected uint8"),
        ({"test_x": IMAGES}, "no train_x: expected uint8"),
        ({"train_x": IMAGES, "train_y": np.eye(10)[np.arange(1, 41) % 10]}, "train_y differs .* the same row order"),
        ({"train_x": IMAGES, "train_y": np.zeros((10, 40))}, "train_y differs"),
        (b"\x00" * 500, "not a MATLAB file that can be read"),
    ],
)
def test_a_file_of_something_else_is_refused(published, content, found):
    path = published / nmnist.FILES[1]
    path.write_bytes(content) if isinstance(content, bytes) else savemat(path, content)
    with pytest.raises(ValueError, match=rf"published/?({nmnist.FILES[1]})?: {found}"):
        load_nmnist()


def test_neighbours_of_the_reader_are_not_taken_for_other_modules(published, tmp_path):
    package = tmp_path / "a folder"
    shutil.copytree(Path(nmnist.__file__).parents[1], package / "cdfsg", ignore=shutil.ignore_patterns("__pycache__"))
    (package / "cdfsg" / "datasets" / "scipy.py").write_text("raise ImportError('not the one that is meant')")
    code = "from cdfsg.datasets import nmnist as n; n._IMAGES = 40; print(n.__file__, n.load_nmnist().data.shape)"
    environment = os.environ | {"PYTHONPATH": str(package)}
    done = subprocess.run([sys.executable, "-c", code], cwd="/", env=environment, capture_output=True, text=True)
    assert done.stdout == f"{package / 'cdfsg' / 'datasets' / 'nmnist.py'} (40, 2352)\n", done.stderr
