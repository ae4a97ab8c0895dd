import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdfsg.linalg import sym
from cdfsg.theory import tracker
from cdfsg.theory.check import CORRECTED, FALSE

VERDICTS = (CORRECTED, CORRECTED, FALSE, FALSE)


@pytest.mark.parametrize(("check", "verdict"), list(zip(tracker.CHECKS, VERDICTS, strict=True)))
def test_the_statements_on_the_tracker_are_judged_as_recorded(check, verdict):
    outcome = check()
    assert outcome.verdict == verdict and outcome.instances >= 1000 and outcome.witness


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 2**32), n=st.integers(1, 5), p=st.integers(1, 5), b=st.floats(0, 1), move=st.floats(-5, 1),
       semidefinite=st.booleans())  # fmt: skip
def test_the_tracking_error_satisfies_the_corrected_recursion(seed, n, p, b, move, semidefinite):
    rng = np.random.default_rng(seed)
    R = rng.standard_normal((3, n, n))
    M = np.swapaxes(R, 1, 2) @ R if semidefinite else sym(R)
    X = rng.standard_normal((n, min(n, p)))
    X_new = X + 10**move * rng.standard_normal(X.shape)
    Y = sym(rng.standard_normal((X.shape[1],) * 2))
    constant = tracker.SEMIDEFINITE if semidefinite else tracker.INDEFINITE
    assert tracker.recursion_margin(M, X, X_new, Y, b, constant) >= -1e-12


def test_no_constant_below_eight_serves_in_the_recursion():
    assert tracker.sharpest(1e-4, 8) >= 0 > tracker.sharpest(1e-4, 7.98)


def test_the_printed_constant_fails_for_the_sharpest_instance_and_eight_does_not_by_more_than_rounding():
    assert tracker.sharpest(1e-4, tracker.PRINTED) < -0.2


def test_the_error_of_a_standing_tracker_is_what_all_paths_give():
    m, b, x, steps = np.array([0.5, 1.5, 2.0]), 0.7, 1.3, 4
    tracked = m * x**2
    for _ in range(steps):
        tracked = (tracked[:, None] - b * (tracked[:, None] - m * x**2)).ravel()
    exact = np.mean((tracked - m.mean() * x**2) ** 2) / (m * x**2).var()
    assert tracker.tracking_error(b, steps)[-1] == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("b", [0.1, 0.8, 1.0, 1.5])
def test_the_error_of_a_standing_tracker_tends_to_its_limit(b):
    assert tracker.tracking_error(b, 500)[-1] == pytest.approx(b / (2 - b), rel=1e-9)


@pytest.mark.parametrize("b", [2.0, 4.0])
def test_the_tracker_diverges_with_the_largest_step_sizes_of_the_grid(b):
    error = tracker.tracking_error(b, 100)
    assert (np.diff(error) >= 3.9).all()
