import numpy as np
import pytest

from cdfsg.linalg import inv_sqrt
from cdfsg.penalty import Penalty
from cdfsg.problems import Linear, Quadratic
from tests.test_problems import N, P, covariance, problems, taylor_slope

BETA = 0.7


@pytest.fixture(params=problems())
def penalty(request):
    problem = problems()[request.param]
    M = getattr(problem, "M", covariance(5))
    return Penalty(problem, M, BETA)


def points(seed, count=2):
    return np.random.default_rng(seed).standard_normal((count, N, P)) / 4


def test_the_gradient_of_h_leaves_a_remainder_of_second_order(penalty):
    X, D = points(0)
    slope = taylor_slope(
        lambda t: abs(penalty.value(X + t * D) - penalty.value(X) - t * np.vdot(penalty.gradient(X), D)), 2
    )
    assert slope > 1.9


def test_the_hessian_of_h_leaves_a_remainder_of_second_order_in_the_gradient(penalty):
    X, D = points(1)
    D *= 0.05
    slope = taylor_slope(
        lambda t: np.linalg.norm(penalty.gradient(X + t * D) - penalty.gradient(X) - t * penalty.hessian(X, D)), 2
    )
    assert slope > 1.9


def test_the_direction_at_the_exact_constraint_is_the_gradient_of_h(penalty):
    X = points(3, 1)[0]
    W = penalty.direction(X, penalty.constraint(X))
    G = penalty.gradient(X)
    assert np.linalg.norm(W - G) <= 1e-10 * np.linalg.norm(G)


def test_the_direction_is_the_derivative_of_the_surrogate_through_both_arguments(penalty):
    X, D = points(5)
    Y = penalty.constraint(points(6, 1)[0])

    def along(t):
        moved = X + t * D
        shifted = Y + penalty.constraint(moved) - penalty.constraint(X)
        return abs(penalty.surrogate(moved, shifted) - penalty.surrogate(X, Y) - t * np.vdot(W, D))

    W = penalty.direction(X, Y)
    assert taylor_slope(along, 2) > 1.9


def test_at_feasible_points_the_gradient_of_h_is_the_lagrangian_one(penalty):
    X = feasible(penalty.M)
    for beta in (1e-3, 1.0, 1e3):
        h = Penalty(penalty.problem, penalty.M, beta)
        np.testing.assert_allclose(h.gradient(X), h.lagrangian_gradient(X), atol=1e-9 * max(1, beta))


@pytest.mark.parametrize("problem", ["gcca", Quadratic, 3])
def test_a_penalty_of_something_else_than_a_problem_is_refused(problem):
    with pytest.raises(ValueError, match="problem must be an exact problem, got .*; make one"):
        Penalty(problem, np.eye(2), 1.0)


def test_the_threshold_exists_for_square_matrices_and_not_for_a_singular_M():
    assert Penalty(Quadratic(np.eye(2)), np.eye(2), 1.0).threshold(2) == 12 * 3 * 3
    with pytest.raises(ValueError, match="got eigenvalues from 0 to 2"):
        Penalty(Quadratic(np.eye(2)), np.diag([0.0, 2.0]), 1.0).threshold(1)


def test_the_threshold_refuses_more_columns_than_rows():
    with pytest.raises(ValueError, match="p must be at most n = 3, got 4; take fewer columns of X"):
        Penalty(Quadratic(np.eye(3)), np.eye(3), 1.0).threshold(4)


def test_the_threshold_follows_the_formula_and_grows_with_the_linear_term():
    M = np.diag([0.5, 2.0])
    A = np.diag([1.0, -3.0])
    assert Penalty(Quadratic(A), M, 1.0).threshold(1) == pytest.approx(12 * 4 * (3 * 2 * 3) / 0.5)
    B = np.array([[3.0], [4.0]])
    assert Penalty(Linear(B), M, 1.0).threshold(1) == pytest.approx(12 * 4 * (0.5**0.5 * 5) / 0.5)


def feasible(M):
    X = points(9, 1)[0]
    return X @ inv_sqrt(X.T @ M @ X)
