"""Section 3.4: how the gradient of h measures stationarity and violation in Omega_{1/6}."""
# fmt: off: in a statement's decorator a line is one part of the words

from collections.abc import Iterator

import numpy as np

from cdfsg.linalg import Array, eye_like, sym
from cdfsg.penalty import Penalty, dissolving_factor
from cdfsg.theory import counterexamples
from cdfsg.theory.derivatives import commuting, dissolved_gradient
from cdfsg.theory.instances import COUNT, REACH, Instance, instances, near_feasible, points, somewhere
from cdfsg.theory.statement import ABOVE, BLANKET, Margin, at_most, equal, inner, norm, statement

NEAR = ABOVE + ", X in Omega_{1/6}"
SHARPER = 2.39  # (7/6)^(1/2) 13/6 + 1/24, in place of the printed 7 of th:star_bx


def dissolved_part(h: Penalty, X: Array) -> Array:
    """Gradient of ``g = f(A(.))``: that of h without the barrier's, shape (n, p)."""
    C = h.constraint(X)
    return h.gradient(X) - h.beta * h.M @ X @ (C @ C - eye_like(C))


def violation(h: Penalty, X: Array) -> float:
    C = h.constraint(X)
    return norm(C - eye_like(C))


def lower_bound(case: Instance, X: Array) -> float:
    """The bound of eq:feabound on the norm of grad h."""
    h, (low, high) = case.h, case.spectrum
    bound = (low / high) ** 0.5 / 2 * norm(dissolved_part(h, X))
    return bound + h.beta * low**0.5 / 2 * violation(h, X)


def both_bounds(case: Instance, X: Array, constant: float = 7) -> tuple[float, float]:
    """The lower bound of th:star_bx on the norm of grad h, and the upper one with its printed constant or another."""
    h, (low, high) = case.h, case.spectrum
    stationarity, gap = norm(h.lagrangian_gradient(X)), violation(h, X)
    below = (low / high) ** 0.5 / 2 * stationarity + low**0.5 * h.beta / 4 * gap
    return below, stationarity + constant * h.beta * high**0.5 * gap


def near(seed: int) -> Iterator[tuple[Instance, Penalty, Array, object]]:
    return points(near_feasible, instances(COUNT, seed))


@statement("eq:sta2", place="Section 3.4, eq:sta2", assumes=BLANKET,
           says="<XQ, grad g(X)> = -3/2 tr(Lambda (C - I) Q).",
           printed="for any Q in S^p",
           corrected="for any Q in S^p that commutes with X'MX; C^2 - I, for which it is used, does",
           severity="gap in proof", counterexample=counterexamples.any_symmetric_factor)
def inner_product() -> Iterator[Margin]:
    for _, h, X, rng in points(somewhere, instances(COUNT, 41)):
        C, G = h.constraint(X), dissolved_gradient(h, X)
        for Q in (commuting(C, rng), C @ C - eye_like(C)):
            left = inner(X @ Q, G @ dissolving_factor(C) - h.M @ X @ sym(X.T @ G))
            right = -1.5 * np.trace(sym(X.T @ G) @ (C - eye_like(C)) @ Q)
            yield equal(left, right, norm(X @ Q) * norm(G) * (1 + norm(C)))


@statement("eq:feabound", place="Section 3.4, proposition", assumes=NEAR,
           says="||grad h|| >= ||grad g|| / (2 kappa^(1/2)) + beta s^(1/2) ||C - I|| / 2.")
def violation_is_bounded() -> Iterator[Margin]:
    for case, h, X, _ in near(42):
        yield at_most(lower_bound(case, X), norm(h.gradient(X)))


@statement("eq:feabound, proof (ii)", place="Section 3.4, proof of eq:feabound, step (ii)", assumes=NEAR,
           says="Step (ii) with the constants 14/5 and 7/2.",
           printed="14/5 beta - 7/2 sigma_max(X'G(X))",
           corrected="14/5 beta - 13/2 sigma_max(X'G(X))",
           severity="wrong constant", counterexample=counterexamples.neighbourhood_step)
def violation_proof() -> Iterator[Margin]:
    for _, h, X, _ in near(43):
        C = h.constraint(X)
        wide = C + eye_like(C)
        product = X.T @ dissolved_gradient(h, X)
        yield (
            at_most(3 * norm(sym(product) @ wide, 2), 13 / 2 * norm(product, 2)),
            at_most(14 / 5, np.linalg.eigvalsh(C @ wide @ wide)[0]),
        )


@statement("th:star_bx, proof", place="Section 3.4, proof of th:star_bx, first line", assumes=NEAR,
           says="The difference of grad g and L.",
           printed="grad f(A(X)) - f(X) + 1/2 grad f(A(X)) (X'MX - I) - ...",
           corrected="grad f(A(X)) - grad f(X) - 1/2 grad f(A(X)) (X'MX - I) - ...",
           severity="typo", counterexample=counterexamples.dissolved_gradient_sign)
def sandwich_proof() -> Iterator[Margin]:
    for _, h, X, _ in near(45):
        C, G, gradient = h.constraint(X), dissolved_gradient(h, X), h.problem.gradient(X)
        terms = G - gradient - G @ (C - eye_like(C)) / 2 - h.M @ X @ sym(X.T @ (G - gradient))
        yield equal(dissolved_part(h, X) - h.lagrangian_gradient(X), terms, norm(h.M @ X) * h.beta)


@statement("th:star_bx, proof (iii)", place="Section 3.4, proof of th:star_bx, step (iii)", assumes=NEAR,
           says="A bound on ||grad g - L||.",
           printed="kappa (3 (p+1) L_g + s^(1/2) L_0) / (2 s^(1/2))",
           corrected="the same times ||X'MX - I||",
           severity="typo", counterexample=counterexamples.lost_violation)
def sandwich_step() -> Iterator[Margin]:
    for case, h, X, _ in near(44):
        low = case.spectrum[0]
        gap = norm(dissolved_part(h, X) - h.lagrangian_gradient(X))
        # The constant is the threshold's numerator: beta~ s / 12 = kappa (3 (p+1) L_g + s^(1/2) L_0).
        constant = case.threshold * low**0.5 / 24
        yield (constant * violation(h, X) - gap) / (constant * REACH), at_most(constant, h.beta * low**0.5 / 2)


@statement("th:star_bx", place="Section 3.4, theorem", assumes=NEAR,
           says="||L|| / (2 kappa^(1/2)) + beta s^(1/2) ||C - I|| / 4 <= ||grad h|| "
                "<= ||L|| + 7 beta sigma_max(M)^(1/2) ||C - I||.")
def sandwich() -> Iterator[Margin]:
    yield f"Even {SHARPER} serves for 7"
    for case, h, X, _ in near(46):
        below, above = both_bounds(case, X, SHARPER)
        slope = norm(h.gradient(X))
        yield at_most(slope, above), at_most(below, slope)


@statement("corollary of th:star_bx", place="Section 3.4, corollary", assumes=NEAR,
           says="Problem and penalty function share their approximate stationary points, with the printed constants.")
def shared_approximate_points() -> Iterator[Margin]:
    for case, h, X, _ in near(47):
        low, high = case.spectrum
        slope, epsilon = norm(h.gradient(X)), max(norm(h.lagrangian_gradient(X)), violation(h, X))
        yield (
            at_most(epsilon, (4 + 2 * high**0.5 * h.beta) / (low**0.5 * h.beta) * slope),
            at_most(slope, (1 + 7 * h.beta * high**0.5) * epsilon),
        )
