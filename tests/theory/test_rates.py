
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdfsg.solvers.cdfsg import CDFSG, CDFSGAda
from cdfsg.theory import algorithm_counterexamples, rates
from cdfsg.theory.check import CORRECTED
from cdfsg.theory.finite import random_pencil


@pytest.mark.parametrize("check", [rates.bound_of_algorithm_1_holds, rates.bound_of_algorithm_2_holds])
def test_the_corrected_bounds_hold_over_all_paths(check):
    outcome = check()
    assert outcome.verdict == CORRECTED and outcome.instances >= 1000


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32), tau_x=st.floats(0.1, 3), tau_y=st.floats(0.1, 3), beta=st.floats(0.01, 10))
def test_the_exact_lipschitz_constants_bound_difference_quotients_and_are_bounded_by_the_norms(
    seed, tau_x, tau_y, beta
):
    rng = np.random.default_rng(seed)
    toy = random_pencil(rng, 1, 2)
    L_h, L_W = rates.exact_lipschitz(toy, beta, tau_x, tau_y)
    loose_h, loose_W = rates.bounded_lipschitz(toy, beta, tau_x, tau_y)
    x = np.linspace(-tau_x, tau_x, 400)
    slopes = np.abs(np.diff(toy.gradient_of_h(x[None, :, None], beta)[0, :, 0]) / np.diff(x))
    assert 0.9 * L_h <= slopes.max() * 1.05 and slopes.max() <= L_h * (1 + 1e-9) <= loose_h * (1 + 1e-8)
    assert loose_W * (1 + 1e-9) >= L_W
    q = (3 - tau_y) / 2, (3 + tau_y) / 2
    a, m = toy.A_xi.ravel(), toy.M_theta.ravel()[:, None, None]
    by_hand = max(
        np.abs(-a[:, None] * x * factor + m * x * (a[:, None] * x**2 / 2 + 2 * beta * y)).max()
        for factor, y in zip(q, (tau_y, -tau_y), strict=True)
    )
    assert by_hand == pytest.approx(L_W, rel=1e-3)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32), n=st.integers(2, 4), p=st.integers(1, 2), size=st.floats(0.1, 2))
def test_the_norm_bound_of_L_h_bounds_difference_quotients(seed, n, p, size):
    rng = np.random.default_rng(seed)
    toy, beta = random_pencil(rng, n, 3), 0.7
    X = rng.standard_normal((n, 50, p))
    X *= size / np.sqrt((X**2).sum(axis=(0, 2)))[:, None]
    near = X * (1 - 1e-4) + 1e-5 * rng.standard_normal(X.shape) * size
    tau_x = np.sqrt(max((X**2).sum(axis=(0, 2)).max(), (near**2).sum(axis=(0, 2)).max()))
    change = toy.gradient_of_h(X, beta) - toy.gradient_of_h(near, beta)
    quotient = np.sqrt((change**2).sum(axis=(0, 2)) / ((X - near) ** 2).sum(axis=(0, 2)))
    assert quotient.max() <= rates.bounded_lipschitz(toy, beta, float(tau_x), 1.0)[0]


@pytest.mark.parametrize("solver", [CDFSG(rates.RATE_BETA), CDFSGAda(rates.RATE_BETA)], ids=lambda s: s.name)
def test_four_times_the_steps_at_least_almost_halve_the_mean_squared_gradient(solver):
    short, long = (rates.mean_squared_gradients(solver, K, lanes=64).mean() for K in (200, 800))
    assert 0 < long < 0.6 * short


def test_the_step_sizes_of_the_rate_are_within_the_theorems_ranges():
    for s2 in rates.S2.values():
        assert 0 < rates.S1 <= 2 and s2 / (rates.S1 * min(rates.HORIZONS) ** 0.5) <= 1


@pytest.mark.parametrize("name", [n for n, v in vars(algorithm_counterexamples).items() if hasattr(v, "__code__")])
def test_the_counterexamples_refute_what_is_printed(name):
    assert getattr(algorithm_counterexamples, name)().refutes
