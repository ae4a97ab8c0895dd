"""Identities and inequalities of the paper over dimensions, spectra and scales, away from the checks' own instances."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdfsg.linalg import sym
from cdfsg.penalty import Penalty
from cdfsg.theory.derivatives import (
    derivative,
    dissolved_derivative,
    dissolved_gradient,
    multiplier_bound,
    printed_hessian,
)
from cdfsg.theory.instances import (
    LIPSCHITZ,
    REACH,
    Instance,
    definite,
    in_omega,
    near_feasible,
    objective,
    somewhere,
)
from cdfsg.theory.near_feasible import dissolved_part, violation
from cdfsg.theory.stationary import linear_points, quadratic_minimiser, quadratic_points

ABOVE = st.floats(1.0001, 1e3)
"""Penalty parameters above the threshold, in units of it."""


@st.composite
def cases(draw, kinds=LIPSCHITZ, beta=ABOVE):
    """An instance of any objective, size, spectrum and scale, its beta in units of the threshold, and a generator."""
    n = draw(st.integers(2, 6))
    p = draw(st.integers(1, n))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    M = definite(rng, n, 10 ** draw(st.floats(0, 4))) * 10 ** draw(st.floats(-2, 2))
    kind = draw(st.sampled_from(kinds))
    problem, M = objective(kind, rng, M, p)
    threshold = Penalty(problem, M, 1.0).threshold(p)
    return Instance(Penalty(problem, M, draw(beta) * threshold), p, kind), rng


few = settings(max_examples=60, deadline=None, derandomize=True)  # the same examples everywhere


@few
@given(cases(beta=st.floats(1e-6, 1e3)))
def test_gradient_and_hessian_of_h_are_its_derivatives_for_every_beta(drawn):
    case, rng = drawn
    h, X, D = case.h, somewhere(case.h.M, case.p, rng), somewhere(case.h.M, case.p, rng)
    D *= 1e-2
    slope = float(derivative(lambda t: h.value(X + t * D), 0.1))
    assert slope == pytest.approx(np.vdot(h.gradient(X), D), rel=1e-7, abs=1e-9 * abs(h.value(X)))
    change = derivative(lambda t: h.gradient(X + t * D), 0.1)
    np.testing.assert_allclose(change, h.hessian(X, D), rtol=1e-6, atol=1e-9 * np.linalg.norm(h.gradient(X)))


@few
@given(cases())
def test_the_hessian_is_symmetric_and_the_printed_one_is_off_by_a_commutator(drawn):
    case, rng = drawn
    h, M = case.h, case.h.M
    X, D, E = (somewhere(M, case.p, rng) for _ in range(3))
    scale = h.beta * np.linalg.norm(D) * np.linalg.norm(E) * np.linalg.norm(M, 2)
    assert np.vdot(E, h.hessian(X, D)) == pytest.approx(np.vdot(D, h.hessian(X, E)), abs=1e-10 * scale)
    S, C = sym(X.T @ M @ D), h.constraint(X)
    gap = 2 * h.beta * M @ X @ (S @ C - C @ S)
    np.testing.assert_allclose(printed_hessian(h, X, D) - h.hessian(X, D), gap, atol=1e-9 * scale)


@few
@given(cases())
def test_bounds_on_g_its_derivative_and_the_multiplier(drawn):
    case, rng = drawn
    h, (low, high) = case.h, case.spectrum
    X = in_omega(h.M, case.p, rng)
    D = rng.standard_normal(X.shape)
    bound = (1.5 + (high / low) ** 0.5) * h.problem.lipschitz * np.linalg.norm(D)
    assert np.linalg.norm(dissolved_derivative(h, X, D)) <= bound * (1 + 1e-9)
    assert np.linalg.norm(X.T @ dissolved_gradient(h, X), 2) <= multiplier_bound(case, 1.0) * (1 + 1e-9)


@few
@given(cases())
def test_near_the_feasible_set_the_gradient_of_h_is_between_the_papers_bounds(drawn):
    case, rng = drawn
    h, (low, high) = case.h, case.spectrum
    X = near_feasible(h.M, case.p, rng)
    assert violation(h, X) <= REACH * (1 + 1e-9)
    norm, L, gap = np.linalg.norm(h.gradient(X)), np.linalg.norm(h.lagrangian_gradient(X)), violation(h, X)
    half = (low / high) ** 0.5 / 2
    assert norm >= (half * np.linalg.norm(dissolved_part(h, X)) + h.beta * low**0.5 / 2 * gap) * (1 - 1e-9)
    assert norm >= (half * L + h.beta * low**0.5 / 4 * gap) * (1 - 1e-9)
    assert norm <= (L + 7 * h.beta * high**0.5 * gap) * (1 + 1e-9)


@few
@given(cases(kinds=("quadratic",), beta=st.floats(1e-4, 10)))
def test_closed_forms_for_quadratics_are_stationary_for_every_beta(drawn):
    case, rng = drawn
    case = Instance(case.h, min(case.p, 3), case.kind)
    for point in quadratic_points(case, rng):
        largest = max(1.0, point.eigenvalues[-1])
        scale = case.h.beta * case.spectrum[1] ** 0.5 * largest**3
        assert np.linalg.norm(case.h.gradient(point.X)) <= 1e-7 * scale


@few
@given(cases(kinds=("linear",), beta=st.floats(1e-4, 10)))
def test_closed_forms_for_linear_objectives_are_stationary_for_every_beta(drawn):
    case, _ = drawn
    if case.p > 3:
        return
    for point in linear_points(case):
        scale = case.h.beta * case.spectrum[1] ** 0.5 * max(1.0, point.eigenvalues[-1]) ** 3
        assert np.linalg.norm(case.h.gradient(point.X)) <= 1e-7 * scale


@few
@given(cases(kinds=("quadratic", "identity")), st.floats(-2, 4))
def test_above_the_threshold_no_point_lies_below_the_problems_minimum(drawn, exponent):
    case, rng = drawn
    h = case.h
    X = somewhere(h.M, case.p, rng) * 10**exponent
    least = h.value(quadratic_minimiser(case))
    assert h.value(X) >= least - 1e-9 * (abs(least) + abs(h.value(X)))


@few
@given(st.integers(1, 6), st.floats(0, 8), st.integers(0, 2**32))
def test_a_matrix_has_the_condition_number_that_was_asked_for(n, exponent, seed):
    M = definite(np.random.default_rng(seed), n, 10**exponent)
    assert np.linalg.cond(M) == pytest.approx(10**exponent if n > 1 else 1.0, rel=1e-6)
