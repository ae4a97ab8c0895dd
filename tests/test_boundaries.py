"""Where a formula changes form, a matrix stops being what it must be, or a lane has no value."""

import numpy as np
import pytest

from cdfsg import metrics
from cdfsg.linalg import truncated_inv_sqrt
from cdfsg.merits import MERITS, Huber, make_merit
from cdfsg.penalty import Penalty
from cdfsg.problems import Quadratic


@pytest.mark.parametrize("name", MERITS)
def test_slope_and_curvature_are_derivatives_on_both_sides_of_the_threshold(name):
    g, t, step = make_merit(name, 0.4), np.array([-2.0, -0.5, -0.3, 0.1, 0.39, 0.41, 3.0]), 1e-4
    np.testing.assert_allclose((g.value(t + step) - g.value(t - step)) / (2 * step), g.slope(t), atol=1e-10)
    np.testing.assert_allclose((g.slope(t + step) - g.slope(t - step)) / (2 * step), g.curvature(t), atol=1e-10)


def test_the_huber_merit_is_a_parabola_up_to_its_threshold_and_a_line_beyond():
    g, t = Huber(0.4), np.array([-1.0, -0.4, -0.2, 0.0, 0.2, 0.4, 1.0])
    np.testing.assert_allclose(g.value(t), [0.32, 0.08, 0.02, 0, 0.02, 0.08, 0.32])
    np.testing.assert_allclose(g.slope(t), [-0.4, -0.4, -0.2, 0, 0.2, 0.4, 0.4])
    np.testing.assert_array_equal(g.curvature(t), [0, 1, 1, 1, 1, 1, 0])  # at the kinks 1 is agreed


@pytest.mark.parametrize("name", MERITS)
def test_a_merit_keeps_single_precision(name):
    g, t = make_merit(name, 0.4), np.array([0.1, 0.9], dtype=np.float32)
    assert {g.value(t).dtype, g.slope(t).dtype, g.curvature(t).dtype} == {np.dtype(np.float32)}


def test_a_quadratic_takes_nested_lists():
    assert Quadratic([[2, 0], [0, 4]]).value(np.ones((2, 1))) == 3


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_the_symmetry_of_a_matrix_is_judged_relative_to_its_largest_entry(scale):
    Quadratic(scale * np.array([[1, 1 + 1e-11], [1, 1]]))
    with pytest.raises(ValueError, match="must be symmetric"):
        Quadratic(scale * np.array([[1, 1 + 1e-9], [1, 1]]))


def test_the_threshold_is_inversely_proportional_to_the_scale_of_m():
    problem, M = Quadratic(np.eye(3)), np.diag([0.5, 1.0, 2.0])
    expected = Penalty(problem, M, 1.0).threshold(2)
    assert expected == pytest.approx(12 * 4 * 3 * 3 / 0.5)
    for scale in (1e-30, 1e30):
        assert Penalty(problem, scale * M, 1.0).threshold(2) == pytest.approx(expected / scale)


@pytest.mark.parametrize("M", [np.zeros((3, 3)), np.diag([1e-17, 1.0, 1.0]), 1.0 - np.eye(3)])
def test_a_singular_constraint_matrix_has_no_threshold(M):
    with pytest.raises(ValueError, match="positive definite M"):
        Penalty(Quadratic(np.eye(3)), M, 1.0).threshold(1)


def test_an_eigenvalue_at_the_truncation_counts_as_zero():
    root = truncated_inv_sqrt(np.diag([4.0, 1.0, 0.25]), 0.25)
    np.testing.assert_allclose(root, np.diag([0.5, 0, 0]))
    np.testing.assert_array_equal(truncated_inv_sqrt(np.zeros((2, 2)), 1e-10), np.zeros((2, 2)))


def test_columns_that_vanish_have_no_correlation_at_any_scale_of_x():
    K = np.zeros((2, 2, 2, 3, 3))
    K[0, 0] = K[1, 1] = np.eye(3)
    K[0, 1] = K[1, 0] = np.diag([0.5, -0.25, 0.125])
    np.testing.assert_allclose(metrics.paired_correlations(K), 0.875)
    np.testing.assert_allclose(metrics.paired_correlations(K * 1e-8), 0.875)
    some = np.stack([np.eye(3), np.diag([1.0, 0.0, 1.0])])
    np.testing.assert_allclose(metrics.paired_correlations(metrics.congruence(K, some)), [0.875, 0.625])


def test_a_lane_without_post_processing_does_not_stop_the_lanes_after_it():
    for p in (1, 2):
        C = np.stack([-np.eye(p), 4 * np.eye(p)]).astype(np.float32)
        N, defined = metrics.orthogonalise(C)
        assert N.dtype == np.float64 and np.isnan(N[0]).all() and list(defined) == [False, True]
        np.testing.assert_allclose(N[defined], [np.eye(p) / 2])
