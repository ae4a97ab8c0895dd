"""The printed bounds of the theorems on both algorithms: the first's certificate, and searches for violations."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import differential_evolution

from cdfsg.solvers.cdfsg import CDFSGAda
from cdfsg.theory import counterexamples, finite, rates
from cdfsg.theory.counterexamples import enclosure, least
from cdfsg.theory.tracker import PRINTED


def test_enclosures_hold_the_values_of_random_polynomials_and_are_close_to_them():
    rng = np.random.default_rng(0)
    for _ in range(20):
        p = [Fraction(int(a), 7) for a in rng.integers(-9, 10, 6)]
        x = np.linspace(-0.5, 1.25, 2001)
        values = np.polynomial.Polynomial([float(a) for a in p])(x)
        low, high = map(float, enclosure(p, Fraction(-1, 2), Fraction(5, 4), 400))
        assert low <= values.min() + 1e-12 and values.max() - 1e-12 <= high
        assert high - low <= np.ptp(values) + 0.5


def test_a_lower_bound_on_the_line_needs_a_leading_term_that_dominates():
    p = [Fraction(1), Fraction(-2), Fraction(1)]  # (x - 1)^2
    assert -0.1 < least(p, Fraction(3)) <= 0
    for wrong, reach in ((p, Fraction(1)), (p[:2], Fraction(9)), ([*p[:2], Fraction(-1)], Fraction(9))):
        with pytest.raises(ValueError, match="the leading term does not dominate"):
            least(wrong, reach)


def test_the_solver_stays_where_the_certificate_says_and_has_the_gradient_that_it_says():
    found = counterexamples.printed_rate_bound
    means = rates.run_of_counterexample(400, lanes=8)
    least_square = found.numbers["|h'|^2 at least"]
    assert found.refutes and (least_square <= means).all() and (means <= 1.01 * least_square).all()
    assert found.numbers["printed"] < least_square / 5.5


def test_the_certificate_refuses_an_instance_whose_paths_leave_the_interval(monkeypatch):
    monkeypatch.setattr(counterexamples, "OUTCOMES", [Fraction(m) for m in ("2.997", "-2", "-0.994")])
    assert not counterexamples.printed_rate_bound.refutes


def printed_share(m, q, x):
    """The printed bound over ``h'(x)^2`` as beta tends to 0 and K to infinity, for n = p = 1, f = c x, b = 1, s1 = 2.

    Outcomes ``m >= 1`` of probability q; c is such that x is where the mean direction vanishes.
    All paths stay in ``(max m)^(-1/2) <= x <= 1 = tau_x``; constants are in units of beta.
    """
    M = q @ m
    c = (M * x - q @ m**3 * x**5) / (1.5 * (1 - M * x**2))
    if M * x**2 >= 1 or c > 0:
        return 1e6
    slope = 1.5 * c * (1 - M * x**2) + M**3 * x**5 - M * x
    L_W = abs(c) / 2 + 2 * M * m.max()
    return 0.5 * L_W**2 * (q @ (m - M) ** 2) / slope**2


@pytest.mark.parametrize("outcomes, evaluations", [(2, 12_000), (3, 20_000)])
def test_a_search_with_semidefinite_samples_comes_no_nearer_than_a_factor_of_ten(outcomes, evaluations):
    k = outcomes - 1

    def share(t):
        q = np.append(1.0, np.exp(t[k : 2 * k]))
        return printed_share(1 + np.append(0.0, np.exp(t[:k])), q / q.sum(), t[-1])

    box = [(-4, 8)] * k + [(-16, 6)] * k + [(0.05, 0.999)]
    size = 20 * len(box)
    found = differential_evolution(share, box, seed=0, popsize=20, maxiter=evaluations // size, tol=0, polish=False)
    t = np.linspace(0.01, 0.99, 9801)
    limit = (4 / 3 / ((1 - t) * t**2.5)).min()
    assert limit == pytest.approx(10.8222, abs=1e-3) and limit < found.fun < 1.1 * limit


def printed_share_of_algorithm_2(t):
    """The bound printed for Algorithm 2 over the mean, for n = p = 1 and two outcomes; large where h has no minimum."""
    x, log_beta, mean, spread, a, pull, log_alpha, log_s1, eta1, eta2, log_epsilon, B0, steps = t
    M_theta, beta = np.array([mean + spread, mean - spread])[:, None, None], 10**log_beta
    toy = finite.FinitePencil(np.array([a + pull, a - pull])[:, None, None], M_theta)
    if beta <= -0.8 * a / mean:
        return 1e9
    solver = CDFSGAda(beta, eta1 * eta2**0.5, eta2, 10**log_epsilon)
    K, s1 = int(steps), min(2.0, 10**log_s1)
    run = finite.Run(solver, toy, K, s1, min(10**log_alpha, s1) * K**0.5)
    squares, c = rates.enumerate_paths(run, np.full((1, 1), x), np.full((1, 1), B0))
    move = B0 / (solver.epsilon + (1 - eta2) * B0**2) ** 0.5
    J_0 = c.J_0 + run.alpha / (1 - solver.eta1) * toy.penalty(beta).gradient(np.full((1, 1), x)).item() * move
    return rates.second_bound(run, 1, replace(c, J_0=J_0), PRINTED) / squares[1:].mean()


BOX = [(0.01, 2), (-2, 2), (0.01, 2), (0, 3), (-2, 2), (0, 2), (-4, 0.3), (-3, 0.3), (0, 0.95), (0.01, 0.99), (-6, 3),
       (-2, 2), (1, 3.99)]  # fmt: skip


def nearest_of_algorithm_2(evaluations, seed=0):
    rounds = evaluations // (4 * len(BOX))
    share = printed_share_of_algorithm_2
    return differential_evolution(share, BOX, seed=seed, popsize=4, maxiter=rounds, tol=0, polish=False).fun


def test_no_violation_of_the_bound_printed_for_algorithm_2_is_found_on_the_line():
    assert nearest_of_algorithm_2(600) > 5
