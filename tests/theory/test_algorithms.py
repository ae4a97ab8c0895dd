"""Section 4 beside its checks: the error of a tracker, the moments, what samples bias, the Lipschitz constants."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdfsg.merits import Huber
from cdfsg.solvers.cdfsg import CDFSG, CDFSGAda
from cdfsg.theory import adaptive, rates, sampling, tracker
from cdfsg.theory.finite import Run, random_pencil

seeds = st.integers(0, 2**32)


def test_no_constant_below_eight_serves_in_the_recursion_and_the_printed_one_fails_clearly():
    assert tracker.sharpest(1e-4, 8).margins >= 0 > tracker.sharpest(1e-4, 7.98).margins
    assert tracker.sharpest(1e-4, tracker.PRINTED).margins < -0.2


def test_the_error_of_a_standing_tracker_is_what_all_paths_give():
    m, b, x, steps = np.array([0.5, 1.5, 2.0]), 0.7, 1.3, 4
    tracked = m * x**2
    for _ in range(steps):
        tracked = (tracked[:, None] - b * (tracked[:, None] - m * x**2)).ravel()
    exact = np.mean((tracked - m.mean() * x**2) ** 2) / (m * x**2).var()
    assert tracker.tracking_error(b, steps)[-1] == pytest.approx(exact, rel=1e-12)


@settings(max_examples=60, deadline=None)
@given(seed=seeds, eta1=st.floats(0, 0.999), eta2=st.floats(0, 0.999), scale=st.floats(-6, 6))
def test_the_moments_are_those_of_the_algorithm_written_out(seed, eta1, eta2, scale):
    rng = np.random.default_rng(seed)
    D, B0 = rng.standard_normal((2, 6, 2, 3, 1)) * 10**scale
    B, V = B0[0], np.zeros((2, 3, 1))
    Bs, Vs, moves = adaptive.run_moments(CDFSGAda(eta1=eta1, eta2=eta2, epsilon=1e-6), D, B, V, 0.1)
    for k, direction in enumerate(D):
        np.testing.assert_allclose(moves[k], -0.1 * B / np.sqrt(1e-6 + V), rtol=1e-9, atol=1e-9 * (1 + 10**scale))
        B, V = eta1 * B + (1 - eta1) * direction, np.maximum(V, eta2 * V + (1 - eta2) * direction**2)
        np.testing.assert_allclose(Bs[k + 1], B, rtol=1e-12, atol=1e-12 * 10**scale)
        np.testing.assert_allclose(Vs[k + 1], V, rtol=1e-12)


def test_the_gradient_bias_of_the_huber_merit_falls_like_the_variance_of_a_mean_below_the_threshold():
    Z, sizes, X, _ = sampling.example()
    bias = np.array([np.linalg.norm(b) for b in sampling.gradient_bias(Z, sizes, X, Huber(sampling.QUADRATIC))])
    size = np.arange(1, 10)
    np.testing.assert_allclose(bias / bias[0], (10 - size) / (9 * size), rtol=1e-9)


def test_the_huber_merit_has_no_bias_where_no_minibatch_leaves_its_linear_part():
    Z = np.array([[1.0, 1.0], [1.0, 2.0], [1.0, 3.0]])  # every t is positive and above the threshold
    for bias, variance, _ in sampling.huber_bias(Z, (1, 1), np.ones((1, 2, 1)), Huber(0.5)):
        assert abs(bias[0]) < 1e-12 < variance[0]


@settings(max_examples=50, deadline=None)
@given(seed=seeds, tau_x=st.floats(0.1, 3), tau_y=st.floats(0.1, 3), beta=st.floats(0.01, 10))
def test_the_exact_lipschitz_constants_bound_difference_quotients_and_are_bounded_by_the_norms(
    seed, tau_x, tau_y, beta
):
    toy = random_pencil(np.random.default_rng(seed), 1, 2)
    L_h, L_W = rates.exact_lipschitz(toy, beta, tau_x, tau_y)
    loose_h, loose_W = rates.bounded_lipschitz(toy, beta, tau_x, tau_y)
    x = np.linspace(-tau_x, tau_x, 400)
    slopes = np.abs(np.diff(toy.gradient_of_h(x[:, None, None], beta).ravel()) / np.diff(x))
    assert 0.9 * L_h <= slopes.max() * 1.05 and slopes.max() <= L_h * (1 + 1e-9) <= loose_h * (1 + 1e-8)
    assert loose_W * (1 + 1e-9) >= L_W
    samples, X = toy.draw(*toy.pairs.repeat(400, axis=1)), np.tile(x, 4)[:, None, None]
    Y, P = np.array([-tau_y, tau_y]), toy.scores(samples, X)
    up, down = ([CDFSG(beta).direction(toy, samples, P, 0 * X + y) for y in Y + side] for side in (1, -1))
    assert np.abs(np.subtract(up, down)).max() / 2 == pytest.approx(L_W, rel=1e-3)  # W is quadratic in y


@settings(max_examples=30, deadline=None)
@given(seed=seeds, n=st.integers(2, 4), p=st.integers(1, 2), size=st.floats(0.1, 2))
def test_the_norm_bound_of_L_h_bounds_difference_quotients(seed, n, p, size):
    rng = np.random.default_rng(seed)
    toy, beta = random_pencil(rng, n, 3), 0.7
    X = rng.standard_normal((50, n, p))
    X *= size / np.linalg.norm(X, axis=(1, 2), keepdims=True)
    near = X * (1 - 1e-4) + 1e-5 * rng.standard_normal(X.shape) * size
    tau_x = max(np.linalg.norm(points, axis=(1, 2)).max() for points in (X, near))
    change = toy.gradient_of_h(X, beta) - toy.gradient_of_h(near, beta)
    quotient = np.linalg.norm(change, axis=(1, 2)) / np.linalg.norm(X - near, axis=(1, 2))
    assert quotient.max() <= rates.bounded_lipschitz(toy, beta, float(tau_x), 1.0)[0]


def test_the_step_sizes_of_the_rates_are_those_of_the_theorems():
    assert 0 < rates.S1 <= 2 and max(rates.S2.values()) / (rates.S1 * min(rates.HORIZONS) ** 0.5) <= 1


def test_a_run_leaves_the_start_that_it_is_given_for_the_next_one():
    rng = np.random.default_rng(0)
    X0 = rng.standard_normal((3, 2, 1))
    given = X0.copy()
    *_, last = Run(CDFSG(1.0), random_pencil(rng, 2, 3), 5, 1.0, 0.01).random_path(X0, rng)
    np.testing.assert_array_equal(X0, given)
    assert (last.X != X0).all()
