import numpy as np
import pytest
from sklearn import datasets

from cdfsg.datasets import load_digits


def test_the_digits_are_scikit_learns_images_as_two_halves():
    views = load_digits()
    assert views.data.shape == (1797, 64) and views.data.dtype == np.uint8
    assert views.sizes == (32, 32) and views.scale == 1 / 16 and views.centred
    assert views.provenance.kind == "original"
    left, right = (views.data[:, part].reshape(-1, 8, 4) for part in views.slices)
    np.testing.assert_array_equal(np.concatenate([left, right], axis=2), datasets.load_digits().images)


def test_digits_that_differ_from_those_expected_are_refused(monkeypatch):
    changed = datasets.load_digits()
    changed.images[0, 0, 0] += 1
    monkeypatch.setattr(datasets, "load_digits", lambda: changed)
    with pytest.raises(ValueError, match="scikit-learn's digits have changed"):
        load_digits()
