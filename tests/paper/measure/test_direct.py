import numpy as np
import pytest

from cdfsg.datasets import load
from cdfsg.merits import Identity
from cdfsg.paper.measure import direct
from cdfsg.problems import SampledGCCA
from cdfsg.solvers import SOLVERS, lanes

SETTING = (0.5, 0.05)


@pytest.fixture(scope="module")
def views():
    return load("synthetic")


def both(name, views, dtype):
    """The last iterates of the direct form and of the engine after one pass."""
    solver = SOLVERS[name]()
    X0 = lanes.initial_points(solver, views.n_features, 3, [1])
    steps = views.n_samples // 50
    settings = dict(zip(solver.settings, np.array([SETTING]).T, strict=True))
    problem = SampledGCCA(views.sizes, Identity())
    engine = lanes.run(solver, problem, views, X0, settings, 50, 1, dtype=dtype)
    return direct.run(solver, views, X0[:, 0], *SETTING, 50, 1, dtype, steps).X, engine.X[:, 0]


@pytest.mark.parametrize("name", ["CDFSG", "CDFSG-Ada"])
@pytest.mark.parametrize("dtype, rounding", [(np.float64, 1e-12), (np.float32, 1e-4)])
def test_the_form_with_dense_matrices_and_the_engine_give_the_same_iterates(views, name, dtype, rounding):
    dense, engine = both(name, views, dtype)
    assert dense.dtype == engine.dtype == dtype and np.abs(dense).max() > 0.5
    np.testing.assert_allclose(dense, engine, atol=rounding)


def test_the_dense_matrices_are_the_block_diagonal_of_the_moment_and_the_rest_of_it(views):
    Z = views.rows(np.arange(30), np.float64)
    moments = direct.DenseMoments(views, np.float64)
    M, S = moments.constraint_matrix(Z), moments.cross_covariance(Z)
    left, right = views.slices
    np.testing.assert_allclose(M + S, Z.T @ Z / 30, atol=1e-14)
    assert not M[left, right].any() and not M[right, left].any()
    assert not S[left, left].any() and not S[right, right].any()


def test_a_minibatch_does_not_leave_its_moments_to_the_next(views):
    one, two = (views.rows(np.arange(k, k + 30), np.float64) for k in (0, 30))
    moments = direct.DenseMoments(views, np.float64)
    moments.constraint_matrix(one)
    moments.cross_covariance(one)
    np.testing.assert_array_equal(
        moments.constraint_matrix(two), direct.DenseMoments(views, np.float64).constraint_matrix(two)
    )
    np.testing.assert_array_equal(
        moments.cross_covariance(two), direct.DenseMoments(views, np.float64).cross_covariance(two)
    )


@pytest.mark.parametrize("steps", [0, 81])
def test_more_steps_than_a_pass_has_are_refused(views, steps):
    X0 = np.eye(views.n_features, 2)
    with pytest.raises(ValueError, match=f"steps={steps}: expected 1..80"):
        direct.run(SOLVERS["CDFSG"](), views, X0, 0.5, 0.05, 50, 1, np.float64, steps)
