from functools import partial

import numpy as np
import pytest

from cdfsg.penalty import Penalty
from cdfsg.problems import Linear, Quadratic
from cdfsg.theory import sharpness, stationary
from cdfsg.theory.first_order import sharp_beta_of_quadratics
from cdfsg.theory.instances import LIPSCHITZ, Instance, definite, instances, with_spectrum
from cdfsg.theory.stationary import Point, certificate, linear_points, pencil, pool, quadratic_points, search


def quadratic(beta, lam=(-1.0, 0.5, 2.0), p=2):
    return Instance(Penalty(Quadratic(np.diag(lam)), np.eye(3), beta), p, "quadratic")


def test_columns_of_the_third_length_are_infeasible_stationary_points_of_a_small_beta():
    case = quadratic(1.0)
    found = {tuple(np.round(point.eigenvalues, 6)) for point in quadratic_points(case, (0, 1))}
    longer = [point for point in found if any(value not in (0.0, 1.0) for value in point)]
    assert longer


def test_closed_forms_are_stationary_for_every_beta():
    cases = instances(240, 6, kinds=("quadratic", "linear"), betas=(1e-4, 1e-2, 1.0, 10.0), conditions=(1.0, 10.0, 1e4))
    for case, _ in cases:
        for point in linear_points(case) if case.kind == "linear" else quadratic_points(case, range(case.p)):
            scale = case.h.beta * case.spectrum[1] ** 0.5 * max(1.0, point.eigenvalues[-1]) ** 3
            assert np.linalg.norm(case.h.gradient(point.X)) <= 1e-7 * scale


@pytest.mark.parametrize("n", [1, 2, 6])
@pytest.mark.parametrize("condition", [1.0, 30.0, 1e8])
def test_a_matrix_has_the_condition_number_that_was_asked_for(n, condition):
    M = definite(np.random.default_rng(0), n, condition)
    assert np.linalg.cond(M) == pytest.approx(condition if n > 1 else 1.0, rel=1e-6)


def test_a_feasible_point_a_strict_saddle_and_a_spurious_minimiser_are_told_apart():
    far_above = quadratic(50.0)
    feasible, saddle = Point(far_above, np.eye(3)[:, :2]), Point(far_above, np.zeros((3, 2)))
    assert feasible.is_feasible and not saddle.is_feasible and saddle.is_strict_saddle
    # At zero the curvature is 9/4 lam - beta: with beta = 0.2 a minimiser off the feasible set.
    case = Instance(Penalty(Quadratic(np.eye(2)), np.eye(2), 0.2), 1, "quadratic")
    minimiser = Point(case, np.zeros((2, 1)))
    assert not minimiser.is_feasible and not minimiser.is_strict_saddle


def test_the_hessian_matrix_gives_the_curvature_along_every_direction():
    case, rng = next(instances(1, 5, kinds=("sines",), shapes=((3, 2),)))
    X, D = rng.standard_normal((2, 3, 2))
    matrix = stationary.hessian_matrix(case.h, X)
    assert D.ravel() @ matrix @ D.ravel() == pytest.approx(np.vdot(D, case.h.hessian(X, D)), rel=1e-10)


def test_the_search_finds_the_stationary_point_that_the_closed_form_knows():
    rng = np.random.default_rng(3)
    M = definite(rng, 3, 5.0)
    problem = Linear(rng.standard_normal((3, 2)))
    case = Instance(Penalty(problem, M, 1.1 * Penalty(problem, M, 1.0).threshold(2)), 2, "linear")
    for exact in linear_points(case):
        found = search(case, exact.X + 1e-3 * rng.standard_normal((3, 2)) * np.linalg.norm(exact.X))
        assert found is not None
        assert min(np.linalg.norm(found.X - other.X) for other in linear_points(case)) < 1e-8


def test_a_search_that_is_cut_short_gives_nothing(monkeypatch):
    case, rng = next(instances(1, 5, kinds=("sines",), shapes=((3, 2),)))
    start = with_spectrum(case.h.M, np.array([0.1, 0.9]), rng)
    assert search(case, start) is not None
    monkeypatch.setattr(stationary, "MOST_STEPS", 1)
    assert search(case, start) is None


def test_every_point_of_the_pool_is_certified_and_both_kinds_are_there():
    points = pool().found
    assert pool().failed <= 0.02 * pool().made
    assert max(certificate(point.case.h, point.X) for point in points) <= stationary.CERTIFIED
    kinds = {(point.case.kind, point.is_feasible) for point in points}
    assert kinds == {(kind, feasible) for kind in set(LIPSCHITZ) for feasible in (True, False)}
    assert sum(not point.is_feasible for point in points) >= 1000 and sum(p.is_feasible for p in points) >= 1000


def test_eigenvectors_are_feasible_and_stationary_for_the_huber_merit():
    for point in stationary.huber_points(100):
        assert point.is_feasible and certificate(point.case.h, point.X) < 1e-9


def test_the_search_finds_the_sharp_beta_of_quadratics():
    (case, _) = next(instances(1, 7, kinds=("quadratic",), betas=(1.0,), conditions=(4.0,), shapes=((3, 2),)))
    sharp = sharp_beta_of_quadratics(pencil(case)[0])
    holds = partial(sharpness.holds, "quadratic proposition", case, ())
    found = sharpness.least_beta(holds, 1e-3 * sharp, 10 * sharp)
    assert found == pytest.approx(sharp, rel=2 * sharpness.PRECISION)


@pytest.mark.parametrize("low, sharp", [(1.0, 3), (5.0, 5)])
def test_the_search_stops_at_the_first_failure_from_above_or_at_its_end(low, sharp):
    found = sharpness.least_beta(lambda beta: beta > 3 or beta < 2, low, 100.0)
    assert found == pytest.approx(sharp, rel=2 * sharpness.PRECISION)


def test_the_search_refuses_to_begin_where_the_statement_fails():
    with pytest.raises(ValueError, match="does not hold at beta = 2; begin with a larger beta"):
        sharpness.least_beta(lambda beta: beta > 3, 1.0, 2.0)
