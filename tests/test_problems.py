"""Derivatives are checked by the slope of the Taylor remainder, samples against the exact problem."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from cdfsg.merits import MERITS, Huber, Identity, largest_slope, make_merit
from cdfsg.problems import GCCA, Linear, Quadratic, SampledGCCA, pair_weights

SIZES = (4, 3, 5)
N, P = sum(SIZES), 3


def covariance(seed=0):
    rows = np.random.default_rng(seed).standard_normal((40, N))
    return rows.T @ rows / 40


def weights():
    return np.array([[0, 1, 0.5], [1, 0, 2], [0.5, 2, 0]])


def problems():
    rng = np.random.default_rng(1)
    a = rng.standard_normal((N, N))
    return {
        "quadratic": Quadratic(a + a.T),
        "linear": Linear(rng.standard_normal((N, P))),
        "gcca-identity": GCCA(covariance(), SIZES, Identity(), weights()),
        "gcca-huber": GCCA(covariance(), SIZES, Huber(0.3), weights()),
    }


def taylor_slope(values, order):
    """Slope of log |remainder| against log t for steps t = 2^-3 ... 2^-8."""
    steps = 2.0 ** -np.arange(3, 9)
    remainders = np.array([values(t) for t in steps])
    if np.all(remainders < 1e-13):
        return np.inf  # the expansion is exact
    return np.polyfit(np.log(steps), np.log(remainders), 1)[0]


@pytest.mark.parametrize("name", problems())
def test_the_gradient_leaves_a_remainder_of_second_order(name):
    f = problems()[name]
    rng = np.random.default_rng(2)
    X, D = rng.standard_normal((2, N, P)) / 2
    slope = taylor_slope(lambda t: abs(f.value(X + t * D) - f.value(X) - t * np.vdot(f.gradient(X), D)), 2)
    assert slope > 1.9


@pytest.mark.parametrize("name", problems())
def test_the_hessian_leaves_a_remainder_of_second_order_in_the_gradient(name):
    f = problems()[name]
    rng = np.random.default_rng(2)
    X, D = rng.standard_normal((2, N, P)) / 2
    D *= 0.05  # no column crosses the kink of the Huber merit
    slope = taylor_slope(lambda t: np.linalg.norm(f.gradient(X + t * D) - f.gradient(X) - t * f.hessian(X, D)), 2)
    assert slope > 1.9


@pytest.mark.parametrize("merit", MERITS)
def test_the_minibatch_of_all_rows_is_the_exact_problem(merit):
    rows = np.random.default_rng(0).standard_normal((40, N))
    exact = GCCA(rows.T @ rows / 40, SIZES, make_merit(merit, 0.3), weights())
    sampled = SampledGCCA(SIZES, make_merit(merit, 0.3), weights())
    X = np.random.default_rng(3).standard_normal((2, N, P))
    P_rows = sampled.scores(rows[None], X)
    constraint = sampled.adjoint(rows[None], sampled.constraint_factor(P_rows[0])[None])
    for lane, x in enumerate(X):
        np.testing.assert_allclose(gradient(sampled, rows, X)[lane], exact.gradient(x), atol=1e-12)
        np.testing.assert_allclose(constraint[lane], exact.M @ x, atol=1e-12)
        np.testing.assert_allclose(sampled.constraint(P_rows[0])[lane], x.T @ exact.M @ x, atol=1e-12)


def gradient(problem, rows, X):
    """The gradient of f on one minibatch, of every lane."""
    [scores] = problem.scores(rows[None], X)
    return problem.adjoint(rows[None], problem.raw_gradient(scores)[None])


def test_scores_and_their_adjoint_go_over_minibatches_lanes_and_views():
    rng = np.random.default_rng(0)
    samples, X = rng.standard_normal((2, 6, N)), rng.standard_normal((4, N, P))
    problem = SampledGCCA(SIZES, Identity())
    found, R = problem.scores(samples, X), rng.standard_normal((2, 4, 18, P))
    for (k, rows), (lane, x), (i, view) in product(enumerate(samples), enumerate(X), enumerate(problem.slices)):
        np.testing.assert_allclose(found[k, lane, i::3], rows[:, view] @ x[view], atol=1e-13)
    np.testing.assert_allclose(np.vdot(found, R), np.vdot(X, problem.adjoint(samples, R)))


def test_minibatch_gradients_of_the_identity_merit_average_to_the_exact_gradient():
    rows = np.random.default_rng(0).standard_normal((40, N))
    exact = GCCA(rows.T @ rows / 40, SIZES, Identity())
    sampled = SampledGCCA(SIZES, Identity())
    X = np.random.default_rng(3).standard_normal((1, N, P))
    mean = np.mean([gradient(sampled, rows[k : k + 8], X)[0] for k in range(0, 40, 8)], axis=0)
    np.testing.assert_allclose(mean, exact.gradient(X[0]), atol=1e-12)


def test_the_lipschitz_constant_bounds_the_gradient_and_is_attained():
    f = problems()["gcca-identity"]
    rng = np.random.default_rng(4)
    for _ in range(20):
        D = rng.standard_normal((N, P))
        assert np.linalg.norm(f.gradient(D)) <= f.lipschitz * np.linalg.norm(D) * (1 + 1e-12)
    D = rng.standard_normal((N, P))
    for _ in range(2000):
        D = f.gradient(f.gradient(D))
        D /= np.linalg.norm(D)
    assert np.linalg.norm(f.gradient(D)) == pytest.approx(f.lipschitz, rel=1e-6)


def test_weights_given_in_whole_numbers_serve_as_floats():
    weights = pair_weights(2, np.array([[0, 1], [1, 0]]))
    assert weights.dtype == np.float64
    np.testing.assert_array_equal(weights, [[0, 1], [1, 0]])


def test_a_quadratic_keeps_its_matrix_as_an_array():
    assert isinstance(Quadratic([[2, 1], [1, 2]]).A, np.ndarray)


@pytest.mark.parametrize("name", ["square", ["identity"]])
def test_a_merit_of_no_known_name_is_refused(name):
    with pytest.raises(ValueError, match="unknown merit .*; known merits: identity, huber"):
        make_merit(name, 0.1)


def test_the_largest_slope_is_that_for_covariances_between_0_and_1():
    assert largest_slope(Identity()) == 1 and largest_slope(Huber(0.3)) == 0.3
    assert largest_slope(SimpleNamespace(slope=lambda t: t * (1 - t))) == 0.25
