"""Section 3.4: how the gradient of h measures stationarity and violation in Omega_{1/6}."""

import numpy as np

from cdfsg.linalg import Array, eye_like, sym
from cdfsg.penalty import Penalty
from cdfsg.theory import counterexamples
from cdfsg.theory.check import Check, Statement, Tally, at_most, concluded, error
from cdfsg.theory.derivatives import commuting
from cdfsg.theory.instances import COUNT, REACH, Instance, instances, near_feasible, somewhere

ROUNDING = 1e-9


def dissolved_part(h: Penalty, X: Array) -> Array:
    """Gradient of ``g = f(A(.))``: that of h without the barrier's, shape (n, p)."""
    C = h.constraint(X)
    gradient: Array = h.gradient(X) - h.beta * h.M @ X @ (C @ C - eye_like(C))
    return gradient


def violation(h: Penalty, X: Array) -> float:
    """``||X'MX - I||``."""
    C = h.constraint(X)
    return float(np.linalg.norm(C - eye_like(C)))


def points(count: int, seed: int) -> list[tuple[Instance, Array]]:
    """Instances at or above the threshold, each with a point of Omega_{1/6}."""
    return [(case, near_feasible(case.penalty.M, case.p, rng)) for case, rng in instances(count, seed)]


def inner_product_with_the_dissolved_part() -> Check:
    """eq:sta2, for Q that commutes with C; its use with ``Q = C^2 - I`` is one."""
    tally = Tally()
    for case, rng in instances(COUNT, 41):
        h = case.penalty
        X = somewhere(h.M, case.p, rng)
        C = h.constraint(X)
        G = h.problem.gradient(h.dissolve(X))
        for Q in (commuting(C, rng), C @ C - eye_like(C)):
            inner = float(np.vdot(X @ Q, G @ (3 * eye_like(C) - C) / 2 - h.M @ X @ sym(X.T @ G)))
            stated = float(-1.5 * np.trace(sym(X.T @ G) @ (C - eye_like(C)) @ Q))
            scale = float(np.linalg.norm(X @ Q) * np.linalg.norm(G) * (1 + np.linalg.norm(C)))
            tally.add(error(inner - stated, scale))
    says = "<XQ, grad g> = -3/2 tr(Lam (C - I) Q) for Q that commutes with C"
    return concluded("eq:sta2", says, tally, counterexamples.any_symmetric_factor())


def gradient_of_h_bounds_violation_below() -> Check:
    """eq:feabound."""
    tally = Tally()
    for case, X in points(COUNT, 42):
        h = case.penalty
        low, high = case.spectrum
        bound = (low / high) ** 0.5 / 2 * float(np.linalg.norm(dissolved_part(h, X)))
        bound += h.beta * low**0.5 / 2 * violation(h, X)
        tally.add(at_most(bound, float(np.linalg.norm(h.gradient(X)))))
    says = "||grad h|| >= ||grad g|| / (2 kappa^(1/2)) + beta s^(1/2) ||C - I|| / 2 in Omega_{1/6}"
    return concluded("eq:feabound", says, tally)


def step_with_thirteen_halves() -> Check:
    """Step (ii) of the proof of eq:feabound: ``3 sigma_max(Lam (C + I)) <= 13/2 sigma_max(X'G)``."""
    tally = Tally()
    for case, X in points(COUNT, 43):
        h = case.penalty
        C = h.constraint(X)
        product = X.T @ h.problem.gradient(h.dissolve(X))
        left = 3 * float(np.linalg.norm(sym(product) @ (C + eye_like(C)), 2))
        tally.add(
            at_most(left, 13 / 2 * float(np.linalg.norm(product, 2))),
            at_most(14 / 5, float(np.linalg.eigvalsh(C @ (C + eye_like(C)) @ (C + eye_like(C)))[0])),
        )
    says = "step (ii) with 13/2 for 7/2; the 14/5 beside it is right"
    return concluded("eq:feabound, proof (ii)", says, tally, counterexamples.neighbourhood_step())


def dissolved_part_is_near_the_lagrangian_gradient() -> Check:
    """The estimate of ``||grad g - L||`` in the proof of th:star_bx, with the factor ``||C - I||`` in step (iii)."""
    tally = Tally()
    for case, X in points(COUNT, 44):
        h = case.penalty
        low = case.spectrum[0]
        gap = float(np.linalg.norm(dissolved_part(h, X) - h.lagrangian_gradient(X)))
        # The constant is the threshold's numerator: beta~ s / 12 = kappa (3 (p+1) L_g + s^(1/2) L_0).
        constant = case.threshold * low**0.5 / 24
        tally.add((constant * violation(h, X) - gap) / (constant * REACH), at_most(constant, h.beta * low**0.5 / 2))
    says = "||grad g - L|| <= kappa (3 (p+1) L_g + s^(1/2) L_0) / (2 s^(1/2)) ||C - I||"
    return concluded("th:star_bx, proof (iii)", says, tally, counterexamples.lost_violation())


def dissolved_part_minus_the_lagrangian_gradient() -> Check:
    """The first line of the proof of th:star_bx: ``G - grad f - G (C - I)/2 - M X Psi(X'(G - grad f))``."""
    tally = Tally()
    for case, X in points(COUNT, 45):
        h = case.penalty
        C = h.constraint(X)
        G, gradient = h.problem.gradient(h.dissolve(X)), h.problem.gradient(X)
        terms = G - gradient - G @ (C - eye_like(C)) / 2 - h.M @ X @ sym(X.T @ (G - gradient))
        gap = float(np.linalg.norm(dissolved_part(h, X) - h.lagrangian_gradient(X) - terms))
        tally.add(error(gap, float(np.linalg.norm(h.M @ X)) * h.beta))
    says = "grad f for f, and - G (C - I) / 2 for +"
    return concluded("th:star_bx, proof", says, tally, counterexamples.dissolved_gradient_sign())


def gradient_of_h_is_between() -> Check:
    """th:star_bx, the upper bound with 2.39 for the printed 7."""
    tally = Tally()
    for case, X in points(COUNT, 46):
        h = case.penalty
        low, high = case.spectrum
        norm, stationarity = float(np.linalg.norm(h.gradient(X))), float(np.linalg.norm(h.lagrangian_gradient(X)))
        above = stationarity + SHARPER * h.beta * high**0.5 * violation(h, X)
        below = (low / high) ** 0.5 / 2 * stationarity + low**0.5 * h.beta / 4 * violation(h, X)
        tally.add(at_most(norm, above), at_most(below, norm))
    says = f"both bounds, the upper one even with {SHARPER} for 7"
    return concluded("th:star_bx", says, tally)


SHARPER = 2.39
"""(7/6)^(1/2) 13/6 + 1/24, in place of the printed 7."""


def approximate_points_are_shared() -> Check:
    """The corollary of th:star_bx, with eps the norm of grad h, and with the smallest eps of (eq:epfos)."""
    tally = Tally()
    for case, X in points(COUNT, 47):
        h = case.penalty
        low, high = case.spectrum
        norm = float(np.linalg.norm(h.gradient(X)))
        epsilon = max(float(np.linalg.norm(h.lagrangian_gradient(X))), violation(h, X))
        tally.add(
            at_most(epsilon, (4 + 2 * high**0.5 * h.beta) / (low**0.5 * h.beta) * norm),
            at_most(norm, (1 + 7 * h.beta * high**0.5) * epsilon),
        )
    says = "the constants of both directions"
    return concluded("corollary of th:star_bx", says, tally)


CHECKS: tuple[Statement, ...] = (
    inner_product_with_the_dissolved_part,
    gradient_of_h_bounds_violation_below,
    step_with_thirteen_halves,
    dissolved_part_minus_the_lagrangian_gradient,
    dissolved_part_is_near_the_lagrangian_gradient,
    gradient_of_h_is_between,
    approximate_points_are_shared,
)
