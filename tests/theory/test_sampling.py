import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdfsg.linalg import sym
from cdfsg.merits import Huber
from cdfsg.theory import sampling
from cdfsg.theory.check import FALSE, HOLDS

VERDICTS = (HOLDS, FALSE, FALSE)


@pytest.mark.parametrize(("check", "verdict"), list(zip(sampling.CHECKS, VERDICTS, strict=True)))
def test_what_a_sample_estimates_is_judged_as_recorded(check, verdict):
    outcome = check()
    assert outcome.verdict == verdict and outcome.instances >= 1000
    assert bool(outcome.witness) == (verdict != HOLDS)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32), n=st.integers(1, 3), p=st.integers(1, 3), scale=st.floats(-3, 3))
def test_the_bias_of_a_shared_minibatch_falls_like_the_variance_of_a_mean(seed, n, p, scale):
    rng = np.random.default_rng(seed)
    Z, X = rng.standard_normal((5, 2 * n)) * 10**scale, rng.standard_normal((2 * n, 2, p))
    biases = sampling.shared_bias(Z, (n, n), X, sym(rng.standard_normal((2, p, p))))
    for size, bias in enumerate(biases, start=1):
        np.testing.assert_allclose(
            bias, biases[0] * (5 - size) / (4 * size), rtol=0, atol=1e-12 * np.abs(biases[0]).max() + 1e-12 * 10**scale
        )


def test_the_gradient_bias_of_the_huber_merit_falls_like_the_variance_of_a_mean_below_the_threshold():
    Z, sizes, X, _ = sampling.example()
    bias = np.array(sampling.gradient_bias(Z, sizes, X, Huber(sampling.QUADRATIC)))
    size = np.arange(1, 10)
    np.testing.assert_allclose(bias / bias[0], (10 - size) / (9 * size), rtol=1e-9)


def test_the_huber_merit_has_no_bias_where_no_minibatch_leaves_its_linear_part():
    Z = np.array([[1.0, 1.0], [1.0, 2.0], [1.0, 3.0]])  # every t is positive and above the threshold
    for bias, variance, _ in sampling.huber_bias(Z, (1, 1), np.ones((2, 1, 1)), Huber(0.5)):
        assert abs(bias[0]) < 1e-12 < variance[0]
