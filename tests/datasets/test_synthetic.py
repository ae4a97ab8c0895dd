import numpy as np
import pytest

from cdfsg.datasets import load_synthetic, make_views
from cdfsg.datasets.synthetic import CORRELATIONS


def canonical_correlations(views, one=0, two=1):
    """Compute the sample's by orthogonal bases of the centred views, not by `Views.covariance`."""
    bases = []
    for part in (views.slices[one], views.slices[two]):
        block = views.data[:, part] - views.data[:, part].mean(axis=0)
        bases.append(np.linalg.qr(block)[0])
    return np.linalg.svd(bases[0].T @ bases[1], compute_uv=False)


@pytest.mark.parametrize("condition", [1.0, 100.0])
def test_an_exact_sample_has_the_canonical_correlations_asked_for(condition):
    views = make_views(60, (5, 4), (1.0, 0.5, 0.25), 0, exact=True, condition=condition, offset=3.0)
    np.testing.assert_allclose(canonical_correlations(views), [1, 0.5, 0.25, 0], atol=1e-11)
    assert make_views(7, (3, 2), (0.5,), 0, exact=True).n_samples == 7  # one row more than latent variables


def test_without_exact_the_correlations_are_those_asked_for_up_to_sampling_error():
    views = make_views(100_000, (4, 3), (0.8, 0.3), 0)
    found = canonical_correlations(views)
    np.testing.assert_allclose(found, [0.8, 0.3, 0], atol=0.015)
    assert abs(found - [0.8, 0.3, 0]).max() > 1e-6


def test_every_pair_of_three_views_has_the_correlations_asked_for_in_order():
    views = make_views(200, (3, 4, 5), (0.9, 0.4), 1, exact=True)
    for one, two in ((0, 1), (0, 2), (1, 2)):
        np.testing.assert_allclose(canonical_correlations(views, one, two)[:3], [0.9, 0.4, 0], atol=1e-12)
    # With equal mixing taken away by whitening, the sum over views has the eigenvalues 1 + (m-1) rho and 1 - rho.
    blocks = [views.data[:, part] - views.data[:, part].mean(axis=0) for part in views.slices]
    joint = np.hstack([np.linalg.qr(block)[0] for block in blocks])
    expected = [0.1, 0.1, 0.6, 0.6, *[1] * 6, 1.8, 2.8]
    np.testing.assert_allclose(np.linalg.eigvalsh(joint.T @ joint), expected, atol=1e-12)


@pytest.mark.parametrize("condition", [1.0, 30.0])
def test_the_covariance_of_each_view_has_the_square_of_the_condition_asked_for(condition):
    views = make_views(100, (6, 5), (0.5,), 0, exact=True, condition=condition)
    for part in views.slices:
        values = np.linalg.eigvalsh(views.covariance[part, part])
        np.testing.assert_allclose(values[[0, -1]], [condition**-2, 1], rtol=1e-9)


def test_the_offset_moves_the_means_and_nothing_else():
    still, moved = (make_views(100, (3, 2), (0.5,), 0, exact=True, offset=b) for b in (0.0, 10.0))
    np.testing.assert_allclose(still.mean, 0, atol=1e-13)
    assert abs(moved.mean).min() > 0.1
    np.testing.assert_allclose(moved.covariance, still.covariance, atol=1e-12)


def test_the_seed_decides_the_data():
    first, again, other = (make_views(20, (2, 2), (0.5,), seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.data, again.data)
    assert first.provenance == again.provenance != other.provenance
    assert not np.array_equal(first.data, other.data)


def test_the_default_data_have_their_documented_shape_and_exact_correlations():
    views = load_synthetic()
    assert views.data.shape == (4000, 22) and views.sizes == (12, 10)
    assert views.provenance.kind == "synthetic" and views.centred
    np.testing.assert_allclose(canonical_correlations(views), [*CORRELATIONS, *[0] * 6], atol=1e-12)
