import gzip
import hashlib
import os
import pickle

import numpy as np
import pytest

from cdfsg.datasets import DownloadError, load, load_mnist, mnist
from cdfsg.datasets.download import Source, data_dir
from tests.datasets.builders import hub_pickle, hub_wheel, idx, to_be_had


@pytest.fixture(scope="module")
def views():
    with to_be_had():
        return load("mnist")


def test_mnist_is_the_official_file_as_two_halves_of_each_image(views):
    raw = (data_dir() / "train-images-idx3-ubyte").read_bytes()
    assert hashlib.md5(raw).hexdigest() == "6bbc9ace898e44ae57da46a324031adb"
    assert views.data.shape == (60000, 784) and views.data.dtype == np.uint8
    assert views.sizes == (392, 392) and views.scale == 1 / 255 and views.centred
    assert views.provenance.kind == "original"
    assert views.provenance.checksum == "md5:6bbc9ace898e44ae57da46a324031adb"
    images = np.frombuffer(raw, np.uint8)[16:].reshape(60000, 28, 28)
    for number in (0, 59999):
        left, right = (views.data[number, part].reshape(28, 14) for part in views.slices)
        np.testing.assert_array_equal(np.hstack([left, right]), images[number])


@pytest.fixture
def images(tmp_path, monkeypatch):
    """Three images in place of MNIST's, in a data folder without a way to fetch."""
    images = np.random.default_rng(0).integers(0, 256, (3, 28, 28), dtype=np.uint8)
    monkeypatch.setenv("CDFSG_DATA_DIR", str(tmp_path))
    monkeypatch.setattr(mnist, "CHECKSUM", "md5:" + hashlib.md5(idx(images)).hexdigest())
    monkeypatch.setattr(mnist, "SOURCES", mnist.SOURCES[:1])
    return images


def loaded_pixels():
    views = load_mnist()
    return np.concatenate([views.data[:, part].reshape(-1, 28, 14) for part in views.slices], axis=2)


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_file_placed_by_hand_is_used_packed_or_not(images, tmp_path, suffix):
    content = idx(images)
    (tmp_path / f"train-images-idx3-ubyte{suffix}").write_bytes(gzip.compress(content) if suffix else content)
    np.testing.assert_array_equal(loaded_pixels(), images)


@pytest.mark.parametrize("other", [False, True])
def test_without_the_file_or_with_other_images_the_error_says_what_to_place_where(images, tmp_path, other):
    if other:
        (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(255 - images)))
    with pytest.raises(DownloadError) as caught:
        load_mnist()
    found = "train-images-idx3-ubyte.gz placed by hand in the data folder: " + "2368 bytes with md5" * other
    for words in (found, str(tmp_path / "train-images-idx3-ubyte"), mnist.CHECKSUM):
        assert words in str(caught.value)


def test_the_official_file_is_rebuilt_from_the_package(images, monkeypatch):
    wheel = hub_wheel(hub_pickle(images))
    monkeypatch.setattr(mnist, "SOURCES", (Source("package", lambda: mnist._idx_from_hub(wheel)),))
    np.testing.assert_array_equal(loaded_pixels(), images)


class Malicious:
    def __init__(self, function, *args):
        self.call = function, args

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("function", [os.mkdir, eval, np.save, np.load])
def test_a_pickle_that_asks_for_anything_but_arrays_is_refused_and_not_run(tmp_path, monkeypatch, function):
    monkeypatch.chdir(tmp_path)
    arguments = {eval: ("__import__('os').mkdir('run')",), np.save: ("run", 0)}.get(function, ("run",))
    with pytest.raises(pickle.UnpicklingError, match="the pickle asks for .*: expected nothing but numpy"):
        mnist._idx_from_hub(hub_wheel(pickle.dumps(Malicious(function, *arguments), protocol=2)))
    assert os.listdir(tmp_path) == []
