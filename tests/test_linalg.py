import numpy as np
import pytest

from cdfsg.linalg import inv_sqrt, side_by_side, sym, truncated_inv_sqrt


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_the_symmetric_part_is_symmetric_and_keeps_the_quadratic_form(rng):
    a = rng.standard_normal((3, 4, 4))
    x = np.arange(4.0)
    np.testing.assert_array_equal(sym(a), np.swapaxes(sym(a), -1, -2))
    np.testing.assert_allclose(x @ sym(a) @ x, x @ a @ x)


def test_the_inverse_square_root_whitens(rng):
    a = rng.standard_normal((3, 6, 4))
    c = np.swapaxes(a, -1, -2) @ a
    whitened = inv_sqrt(c) @ c @ inv_sqrt(c)
    np.testing.assert_allclose(whitened, np.broadcast_to(np.eye(4), c.shape), atol=1e-10)


@pytest.mark.parametrize("bad, words", [(np.diag([1.0, 0.0]), "0"), (np.full((2, 2), np.nan), "NaN")])
def test_a_matrix_without_inverse_square_root_is_refused_and_named(bad, words):
    with pytest.raises(ValueError, match=words):
        inv_sqrt(bad)


def test_the_truncated_inverse_square_root_whitens_the_range_and_drops_the_rest(rng):
    factor = rng.standard_normal((5, 3))
    c = factor @ factor.T
    root = truncated_inv_sqrt(c, 1e-10)
    projector = root @ c @ root
    np.testing.assert_allclose(projector @ factor, factor, atol=1e-8)
    assert np.trace(projector) == pytest.approx(3)


def test_lanes_side_by_side_are_one_tall_matrix_without_a_copy(rng):
    a = rng.standard_normal((4, 7, 3))
    beside = side_by_side(a)
    np.testing.assert_array_equal(beside, a)
    assert beside.transpose(1, 0, 2).flags.c_contiguous


def test_the_truncation_of_a_spectrum_is_relative_so_that_units_do_not_matter(rng):
    half = rng.standard_normal((5, 3))
    A = half @ half.T
    for unit in (1e-12, 1e12):
        in_units = truncated_inv_sqrt(unit * A, 1e-10) * unit**0.5
        np.testing.assert_allclose(in_units, truncated_inv_sqrt(A, 1e-10), rtol=1e-6, atol=1e-9)
