import numpy as np
import pytest

from cdfsg.linalg import inv_sqrt, sym


def test_the_symmetric_part_is_symmetric_and_keeps_the_quadratic_form():
    a = np.random.default_rng(0).standard_normal((3, 4, 4))
    x = np.arange(4.0)
    np.testing.assert_allclose(sym(a), np.swapaxes(sym(a), -1, -2))
    np.testing.assert_allclose(x @ sym(a) @ x, x @ a @ x)


def test_the_inverse_square_root_whitens():
    a = np.random.default_rng(0).standard_normal((3, 6, 4))
    c = np.swapaxes(a, -1, -2) @ a
    np.testing.assert_allclose(inv_sqrt(c) @ c @ inv_sqrt(c), np.broadcast_to(np.eye(4), c.shape), atol=1e-10)


def test_an_indefinite_matrix_is_refused_with_its_eigenvalue():
    with pytest.raises(ValueError, match="-1"):
        inv_sqrt(np.diag([1.0, -1.0]))
