"""Section 3.4: how the gradient of h measures stationarity and violation in Omega_{1/6}."""

import numpy as np

from cdfsg.linalg import Array, eye_like, sym
from cdfsg.penalty import Penalty, dissolving_factor
from cdfsg.theory import counterexamples
from cdfsg.theory.derivatives import commuting, dissolved_gradient
from cdfsg.theory.instances import Instance, near_feasible, points, somewhere
from cdfsg.theory.statement import ABOVE, BLANKET, Margins, Relation, at_most, equal, inner, norm, statement

NEAR = ABOVE + ", X in Omega_{1/6}"
SHARPER = 2.39  # (7/6)^(1/2) 13/6 + 1/24, in place of the printed 7 of th:star_bx


def dissolved_part(h: Penalty, X: Array) -> Array:
    """Gradient of ``g = f(A(.))``, that of h without the barrier's."""
    C = h.constraint(X)
    return h.gradient(X) - h.beta * h.M @ X @ (C @ C - eye_like(C))


def violation(h: Penalty, X: Array) -> float:
    C = h.constraint(X)
    return norm(C - eye_like(C))


def feabound(case: Instance, X: Array) -> Relation:
    """eq:feabound."""
    h, (low, high) = case.h, case.spectrum
    bound = (low / high) ** 0.5 / 2 * norm(dissolved_part(h, X))
    return at_most(bound + h.beta * low**0.5 / 2 * violation(h, X), norm(h.gradient(X)))


def star_bx(case: Instance, X: Array, constant: float = 7, claim: str = "") -> tuple[Relation, Relation]:
    """th:star_bx, the upper bound with its printed constant or another."""
    h, (low, high) = case.h, case.spectrum
    L, slope, gap = norm(h.lagrangian_gradient(X)), norm(h.gradient(X)), violation(h, X)
    below = (low / high) ** 0.5 / 2 * L + low**0.5 * h.beta / 4 * gap
    return at_most(slope, L + constant * h.beta * high**0.5 * gap, claim=claim), at_most(below, slope)


@statement("eq:sta2", "Section 3.4, equation (34)", assumes=BLANKET,
    known_by="algebra", says="<XQ, grad g(X)> = -3/2 tr(Lambda (C - I) Q).",
    printed="for any Q in S^p",
    corrected="for any Q in S^p that commutes with X'MX; C^2 - I, for which it is used, does",
    severity="gap in proof", counterexample=counterexamples.any_symmetric_factor)
def inner_product() -> Margins:
    for _, h, X, rng in points(somewhere, 41):
        C, G = h.constraint(X), dissolved_gradient(h, X)
        Lambda = sym(X.T @ G)
        for Q in (commuting(C, rng), C @ C - eye_like(C)):
            left = inner(X @ Q, G @ dissolving_factor(C) - h.M @ X @ Lambda)
            right = -1.5 * np.trace(Lambda @ (C - eye_like(C)) @ Q)
            yield equal(left, right, norm(X @ Q) * norm(G) * (1 + norm(C)))


@statement("eq:feabound", "Section 3.4, Proposition 3.15", assumes=NEAR,
    says="||grad h|| >= ||grad g|| / (2 kappa^(1/2)) + beta s^(1/2) ||C - I|| / 2.")
def violation_is_bounded() -> Margins:
    """eq:sta1 and eq:sta2 with step (ii) corrected: ``14/5 beta - 13/2 sigma_max(X'G) >= beta``."""
    for case, _, X, _ in points(near_feasible, 42):
        yield case, feabound(case, X)


@statement("eq:feabound, proof (ii)", "Section 3.4, Proposition 3.15, proof, step (ii)", assumes=NEAR,
    says="Step (ii) holds with the constants 14/5 and 7/2.",
    printed="14/5 beta - 7/2 sigma_max(X'G(X))",
    corrected="14/5 beta - 13/2 sigma_max(X'G(X))",
    severity="wrong constant", counterexample=counterexamples.neighbourhood_step)
def violation_proof() -> Margins:
    """``3 (C + I) <= 13/2 I``, and ``C (C + I)^2 >= 5/6 (11/6)^2 I >= 14/5 I``."""
    for case, h, X, _ in points(near_feasible, 43):
        C = h.constraint(X)
        wide = C + eye_like(C)
        product = X.T @ dissolved_gradient(h, X)
        yield (case, at_most(3 * norm(sym(product) @ wide, 2), 13 / 2 * norm(product, 2)),
               at_most(14 / 5, np.linalg.eigvalsh(C @ wide @ wide)[0]))


@statement("th:star_bx, proof", "Section 3.4, Theorem 3.16, proof, first line", assumes=NEAR,
    known_by="algebra", says="The printed line is the difference of grad g and L.",
    printed="grad f(A(X)) - f(X) + 1/2 grad f(A(X)) (X'MX - I) - ...",
    corrected="grad f(A(X)) - grad f(X) - 1/2 grad f(A(X)) (X'MX - I) - ...",
    severity="typo", counterexample=counterexamples.dissolved_gradient_sign)
def sandwich_proof() -> Margins:
    for _, h, X, _ in points(near_feasible, 45):
        C, G, gradient = h.constraint(X), dissolved_gradient(h, X), h.problem.gradient(X)
        terms = G - gradient - G @ (C - eye_like(C)) / 2 - h.M @ X @ sym(X.T @ (G - gradient))
        yield equal(dissolved_part(h, X) - h.lagrangian_gradient(X), terms, norm(h.M @ X) * h.beta)


@statement("th:star_bx, proof (iii)", "Section 3.4, Theorem 3.16, proof, step (iii)", assumes=NEAR,
    says="||grad g - L|| is at most the printed bound.",
    printed="kappa (3 (p+1) L_g + s^(1/2) L_0) / (2 s^(1/2))",
    corrected="the same times ||X'MX - I||",
    severity="typo", counterexample=counterexamples.lost_violation)
def sandwich_step() -> Margins:
    """``||A(X) - X|| <= sigma_max(X) ||C - I||/2`` in the corrected first line."""
    for case, h, X, _ in points(near_feasible, 44):
        low = case.spectrum[0]
        gap = norm(dissolved_part(h, X) - h.lagrangian_gradient(X))
        # beta~ s / 12 = kappa (3 (p+1) L_g + s^(1/2) L_0)
        constant = case.threshold * low**0.5 / 24
        yield case, at_most(gap, constant * violation(h, X))
        yield at_most(12 * constant, h.beta * low**0.5 / 2, claim="the next step allows twelve times it")


@statement("th:star_bx", "Section 3.4, Theorem 3.16", assumes=NEAR,
    says="||L|| / (2 kappa^(1/2)) + beta s^(1/2) ||C - I|| / 4 <= ||grad h|| "
         "<= ||L|| + 7 beta sigma_max(M)^(1/2) ||C - I||.")
def sandwich() -> Margins:
    """By step (iii), and eq:feabound or ``||MX (C^2 - I)|| <= (7/6)^(1/2) 13/6 sigma_max(M)^(1/2) ||C - I||``."""
    yield f"Even {SHARPER} serves for 7"
    for case, _, X, _ in points(near_feasible, 46):
        sharper, _ = star_bx(case, X, SHARPER, claim="the sharper constant serves")
        yield case, *star_bx(case, X), sharper


@statement("corollary of th:star_bx", "Section 3.4, Corollary 3.17", assumes=NEAR,
    says="Problem and penalty function share approximate stationary points, with the printed constants.")
def shared_approximate_points() -> Margins:
    """th:star_bx, each term alone."""
    for case, h, X, _ in points(near_feasible, 47):
        low, high = case.spectrum
        slope, epsilon = norm(h.gradient(X)), max(norm(h.lagrangian_gradient(X)), violation(h, X))
        yield (case, at_most(epsilon, (4 + 2 * high**0.5 * h.beta) / (low**0.5 * h.beta) * slope),
               at_most(slope, (1 + 7 * h.beta * high**0.5) * epsilon))
