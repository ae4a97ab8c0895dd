import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdfsg.solvers.cdfsg import CDFSGAda
from cdfsg.theory import adaptive
from cdfsg.theory.check import CORRECTED


@pytest.mark.parametrize("check", adaptive.CHECKS)
def test_the_statements_on_the_moments_are_judged_as_recorded(check):
    outcome = check()
    assert outcome.verdict == CORRECTED and outcome.instances >= 1000 and outcome.witness


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), eta1=st.floats(0, 0.999), eta2=st.floats(0, 0.999), scale=st.floats(-6, 6))
def test_the_moments_are_those_of_the_algorithm_written_out(seed, eta1, eta2, scale):
    rng = np.random.default_rng(seed)
    D, B0 = rng.standard_normal((2, 6, 3, 1, 2)) * 10**scale
    course = adaptive.run_moments(CDFSGAda(eta1=eta1, eta2=eta2, epsilon=1e-6), D, B0[0], np.zeros((3, 1, 2)), 0.1)
    B, V = B0[0], np.zeros((3, 1, 2))
    for k, direction in enumerate(D):
        np.testing.assert_allclose(course.moves[k], -0.1 * B / np.sqrt(1e-6 + V), rtol=1e-9,
                                   atol=1e-9 * (1 + 10**scale))  # fmt: skip
        B, V = eta1 * B + (1 - eta1) * direction, np.maximum(V, eta2 * V + (1 - eta2) * direction**2)
        np.testing.assert_allclose(course.B[k + 1], B, rtol=1e-12, atol=1e-12 * 10**scale)
        np.testing.assert_allclose(course.V[k + 1], V, rtol=1e-12)


def test_the_step_bound_is_attained_without_momentum():
    D = np.zeros((3, 1, 1, 1))
    D[0] = 2.0
    course = adaptive.run_moments(CDFSGAda(eta1=0, eta2=0.9, epsilon=1e-300), D, D[0] * 0, D[0] * 0, 0.5)
    assert course.moves[1, 0, 0, 0] ** 2 == pytest.approx(0.5**2 / (1 - 0.9))
