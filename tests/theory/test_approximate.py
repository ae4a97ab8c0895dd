"""From a small gradient of h to the problem: the steps of the proof, how sharp it is, and K(eps)."""

from dataclasses import replace

import numpy as np
import pytest

from cdfsg.penalty import Penalty
from cdfsg.problems import Linear
from cdfsg.solvers.cdfsg import CDFSG
from cdfsg.theory import approximate
from cdfsg.theory.finite import Run
from cdfsg.theory.instances import Instance, instances, somewhere
from cdfsg.theory.rates import first_bound
from cdfsg.theory.stationary import Point


def points():
    """X from small to somewhat above feasible, with the eigenvalues and eigenvectors of C."""
    for case, rng in instances(300, 49):
        X = somewhere(case.h.M, case.p, rng)
        yield Point(case, X / np.linalg.norm(X.T @ case.h.M @ X, 2) ** 0.5 * rng.uniform(0.01, 1.004))


def test_the_gradient_along_X_v_v_bounds_each_eigenvalue():
    for point in points():
        h, X, (low, _) = point.h, point.X, point.case.spectrum
        G, eta = h.problem.gradient(h.dissolve(X)), approximate.relative_gradient(point)
        r = point.case.threshold * low / (8 * point.case.spectrum[1] * h.beta)
        values, vectors = np.linalg.eigh(h.constraint(X))
        for sigma, v in zip(values, vectors.T, strict=True):
            if sigma > 1e-12:
                t = 1.5 * v @ X.T @ G @ v / (h.beta * sigma**0.5)
                assert abs(1 - sigma) * abs(sigma**0.5 * (1 + sigma) - t) <= eta * (1 + 1e-7) + 1e-12
                assert abs(t) <= r * (1 + 1e-9) <= 1 / 8 * (1 + 1e-8)


def test_the_direction_has_the_curvature_of_the_proof_at_any_point():
    for point in points():
        h, X, D = point.h, point.X, point.direction
        sigma, v = point.eigenvalues[0], point.factors[2][:, 0]
        assert np.vdot(D, h.M @ D) == pytest.approx(1)
        along = np.vdot(D, h.problem.hessian(h.dissolve(X), D))
        inner = v @ X.T @ h.problem.gradient(h.dissolve(X)) @ v
        curvature = 9 / 4 * (1 - sigma) ** 2 * along - 3 * inner + h.beta * (5 * sigma**2 - 1)
        assert np.vdot(D, h.hessian(X, D)) == pytest.approx(curvature, abs=1e-9 * h.beta * np.linalg.cond(h.M))


def test_the_numbers_of_the_proof():
    r, eta = 1 / 8, approximate.SMALL
    assert (1 / 16) ** 0.5 * 17 / 16 - r == 9 / 64 and 64 / 9 * eta == pytest.approx(1 / 9)
    assert 1 / ((8 / 9) ** 0.5 * 17 / 9 - r) <= 5 / 8 and 4 / 7 <= 5 / 8
    small = r + 16 / 15 * eta
    assert small <= 1 / 7 and 2 * small * r <= 1 / 28 and 1 - 1 / 32 - 1 / 28 - 5 * small**4 >= 9 / 10
    assert 5 / 8 * eta <= 1 / 6  # C - I in Omega_{1/6} for eta p^(1/2) <= 1/64


def test_no_constant_below_one_half_serves_for_the_violation():
    h = Penalty(Linear(np.array([[1e-9]])), np.eye(1), 1.0)
    for x in (1 - 1e-4, 1 + 1e-4):
        point = Point(Instance(h, 1, "linear"), np.array([[x]]))
        assert abs(x**2 - 1) / approximate.relative_gradient(point) == pytest.approx(1 / 2, rel=1e-3)


def test_the_bound_of_algorithm_1_is_eps_squared_after_K_of_eps_steps_on_the_digits():
    toy = approximate.digits()
    np.testing.assert_allclose(toy.M, np.eye(8), atol=1e-12)
    mean, constants = approximate.observed(run := Run(CDFSG(5.0), toy, 200, 2.0, 0.4))
    assert mean <= first_bound(run, constants)
    K = approximate.steps_needed(0.5, run, constants)
    slope = first_bound(replace(run, K=1, s2=1.0), constants) / 2 - constants.J_0
    bounds = [first_bound(replace(run, K=int(K), s2=s2), constants)
              for s2 in (constants.J_0 / slope) ** 0.5 * np.array([0.9, 1, 1.1])]  # fmt: skip
    assert bounds[1] == pytest.approx(0.5**2, rel=1e-6) and bounds[1] < min(bounds[0], bounds[2])
    assert approximate.steps_needed(1.0, run, constants) == pytest.approx(K / 16)
