import subprocess
import sys

import numpy as np
import pytest
from sklearn import datasets

from cdfsg.datasets import load_digits
from cdfsg.files import ROOT


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


def test_the_bundled_and_the_synthetic_data_need_numpy_scipy_and_scikit_learn_alone():
    code = (
        "import sys\n"
        "sys.modules |= dict.fromkeys(('pandas', 'matplotlib', 'unearth', 'httpx2', 'requests', 'filelock'))\n"
        "import cdfsg.checksums, cdfsg.lock\n"
        "from cdfsg.datasets import load\n"
        "print(load('digits').n_samples, load('synthetic').n_samples)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "1797 4000\n", done.stderr
