"""Section 3.2: first-order stationary points of h and of the problem."""

from functools import lru_cache

import numpy as np

from cdfsg.linalg import Array
from cdfsg.theory import counterexamples, saddles
from cdfsg.theory.check import Check, Statement, Tally, at_most, concluded, error
from cdfsg.theory.instances import COUNT, feasible, instances
from cdfsg.theory.stationary import FEASIBLE, Point, certificate, huber_pairs, pencil, pool, quadratic_lengths

ROUNDING = 1e-7
"""For points from a search or of ill-conditioned M."""


@lru_cache(maxsize=1)
def infeasible() -> tuple[Point, ...]:
    """The infeasible ones of the pool."""
    return tuple(point for point in pool() if not point.is_feasible)


def stationary_points_lie_in_omega() -> Check:
    """pro:sigma_up: ``sigma_max(X'MX) <= 1`` at every stationary point."""
    tally = Tally()
    for point in pool():
        tally.add(1 - float(point.eigenvalues[-1]))
    return concluded(
        "pro:sigma_up", "sigma_max(X'MX) <= 1 at stationary points, beta > beta~", tally, rounding=ROUNDING
    )


def feasible_points_are_stationary_for_both_or_neither() -> Check:
    """Prop_first_order_equivalence_feasible: ``grad h(X) = L(X)`` at feasible X, for every beta."""
    tally = Tally()
    for case, rng in instances(COUNT, 21, betas=(1e-6, 1e-3, 1.0, 1e3)):
        h = case.penalty
        X = feasible(h.M, case.p, rng)
        G = h.problem.gradient(X)
        scale = float(np.linalg.norm(G)) * (case.spectrum[1] / case.spectrum[0]) + h.beta * case.spectrum[1] ** 0.5
        tally.add(error(float(np.linalg.norm(h.gradient(X) - h.lagrangian_gradient(X))), scale))
    for point in huber_pairs(300):
        h, X = point.case.penalty, point.X
        tally.add(error(float(np.linalg.norm(h.gradient(X))), h.beta * float(np.linalg.norm(h.M @ X))))
    says = "grad h = L at feasible X for every beta; also for the Huber merit, at its canonical pairs"
    return concluded("Prop_first_order_equivalence_feasible", says, tally)


def stationary_points_are_feasible_or_far() -> Check:
    """The_first_order_equivalence_feasible, and more: each eigenvalue of C is 1 or near 0."""
    tally = Tally()
    for point in infeasible():
        threshold, beta = point.case.threshold, point.case.penalty.beta
        low, high = point.case.spectrum
        sharper = (threshold * low / (8 * high * beta)) ** 2
        others = [float(value) for value in point.eigenvalues if abs(value - 1) > FEASIBLE]
        tally.add((sharper - max(others)) / sharper, (threshold / (4 * beta) - min(others)) / (threshold / (4 * beta)))
    says = "feasible, or sigma_min <= beta~/(4 beta); even: each eigenvalue is 1 or <= (beta~/(8 kappa beta))^2"
    return concluded("The_first_order_equivalence_feasible", says, tally)


def bound_of_that_proof() -> Check:
    """The bound on ``sigma_max(X'G)`` in the proof, divided by s."""
    tally = Tally()
    for point in pool():
        h, p, s = point.case.penalty, point.case.p, point.case.spectrum[0]
        at_zero = float(np.linalg.norm(h.problem.gradient(np.zeros_like(point.X))))
        bound = (2 * p * h.problem.lipschitz + s**0.5 * at_zero) / s
        tally.add(at_most(float(np.linalg.norm(point.X.T @ h.problem.gradient(h.dissolve(point.X)), 2)), bound))
    says = "sigma_max(X'G) <= (2 p L_g + s^(1/2) L_0) / s in Omega"
    against = counterexamples.inner_bound_without_s()
    return concluded("The_first_order_equivalence_feasible, proof", says, tally, against, ROUNDING)


def infeasible_stationary_points_are_strict_saddles() -> Check:
    """pro:saddle by the smallest eigenvalue of the Hessian, and by an explicit direction with its exact curvature."""
    tally = Tally()
    for point in infeasible():
        if point.eigenvalues[0] > 1 - FEASIBLE:  # outside Omega, where no direction is known
            tally.add(-1.0)
            continue
        h = point.case.penalty
        D = saddles.direction(point)
        size = float(np.vdot(D, D))
        curvature = float(np.vdot(D, h.hessian(point.X, D)))
        scale = h.beta * point.case.spectrum[1] * size
        tally.add(
            error(curvature - saddles.curvature(point, D), scale),
            (-saddles.constant(point) * size - curvature) / scale,
            at_most(saddles.printed_constant(point), saddles.constant(point)),
            at_most(saddles.printed_constant(point), -point.least_curvature),
        )
    says = "a c-saddle with c = s beta / 4; explicit directions give more than that"
    return concluded("pro:saddle", says, tally, rounding=ROUNDING)


def direction_of_the_proof_is_one() -> Check:
    """The proof of pro:saddle as printed: the direction ``X v v'`` has curvature at most ``- s beta / 4 |D|^2 < 0``."""
    tally = Tally()
    for point in infeasible():
        h = point.case.penalty
        D = saddles.printed_direction(point)
        nonzero = float(np.vdot(D, h.M @ D)) > saddles.VANISHING
        tally.add(0.0 if nonzero and float(np.vdot(D, h.hessian(point.X, D))) < 0 else -1.0)
    says = (
        "as printed: D = X v v' shows the saddle; it is zero where X v = 0, as at every infeasible point of quadratics"
    )
    return concluded("pro:saddle, proof", says, tally, counterexamples.vanishing_saddle_direction())


def quadratics_have_eigenvalues_zero_or_one() -> Check:
    """The proposition on quadratic f, at the threshold and down to the sharp ``max(9/4 lam_max, 3/4 |lam_min|)``."""
    tally = Tally()
    for point in pool():
        if point.case.kind in ("quadratic", "identity"):
            values = point.eigenvalues
            tally.add(-float(np.minimum(values, np.abs(values - 1)).max()))
    for case, _ in instances(COUNT, 24, kinds=("quadratic", "identity")):
        values, _ = pencil(case)
        sharp = sharp_beta_of_quadratics(values)
        tally.add(at_most(sharp, case.threshold), max(0.0, max(third_lengths(values, 1.001 * sharp))) * -1)
    says = "eigenvalues of X'MX are 0 or 1; also for all beta >= max(9/4 lam_max, 3/4 |lam_min|) of the pencil"
    return concluded("quadratic proposition", says, tally, rounding=ROUNDING)


def sharp_beta_of_quadratics(values: Array) -> float:
    """The least beta from which squared lengths are 0 or 1: ``max(9/4 lam_max, 3/4 |lam_min|)`` of the pencil."""
    return max(9 / 4 * float(values[-1]), 3 / 4 * abs(min(float(values[0]), 0.0)), 0.0)


def third_lengths(values: Array, beta: float) -> list[float]:
    """Squared lengths other than 0 and 1 over all eigenvalues; zero if there are none."""
    return [length for lam in values for length in (0.0, *quadratic_lengths(float(lam), beta)[2:])]


def stationary_points_are_feasible_or_strict_saddles() -> Check:
    """thm:refir by classification of the whole pool."""
    tally = Tally()
    for point in pool():
        sorted_in = point.classify() != "other"
        if point.is_feasible:
            h = point.case.penalty
            tally.add(-certificate(h, point.X) if sorted_in else -1.0)
        else:
            tally.add(0.0 if sorted_in else -1.0)
    says = "every stationary point is feasible, hence stationary for the problem, or a strict saddle"
    return concluded("thm:refir", says, tally)


CHECKS: tuple[Statement, ...] = (
    stationary_points_lie_in_omega,
    feasible_points_are_stationary_for_both_or_neither,
    stationary_points_are_feasible_or_far,
    bound_of_that_proof,
    infeasible_stationary_points_are_strict_saddles,
    direction_of_the_proof_is_one,
    quadratics_have_eigenvalues_zero_or_one,
    stationary_points_are_feasible_or_strict_saddles,
)
