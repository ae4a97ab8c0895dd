"""Section 3.2: first-order stationary points of h and of the problem."""
# fmt: off (see statement.py)

import numpy as np

from cdfsg.linalg import Array
from cdfsg.penalty import Penalty
from cdfsg.problems import Quadratic
from cdfsg.theory import counterexamples, saddles
from cdfsg.theory.derivatives import dissolved_gradient, multiplier_bound
from cdfsg.theory.instances import COUNT, QUADRATICS, Instance, feasible, instances, points
from cdfsg.theory.statement import ABOVE, BLANKET, Margins, at_most, equal, inner, norm, statement, true
from cdfsg.theory.stationary import FEASIBLE, Point, certificate, huber_pairs, pencil, pool, quadratic_lengths

ROUNDING = 1e-7  # for points from a search or of ill-conditioned M
STATIONARY = ABOVE + ", X stationary"
INFEASIBLE = STATIONARY + " and infeasible"


def infeasible() -> list[Point]:
    return [point for point in pool() if not point.is_feasible]


@statement("pro:sigma_up", "Section 3.2, first proposition", assumes=STATIONARY,
    known_by="proof", says="X lies in Omega: sigma_max(X'MX) <= 1.", rounding=ROUNDING)
def sigma_up() -> Margins:
    """Where ``Cv = sigma v``, sigma > 1, Q = vv' in Le_inner_nablah_XQ gives ``beta (sigma + 1) sigma = 3/2 v'X'Gv``.

    By eq:normlambda and ``beta >= 36 p L_g/s + 12 L_0/s^(1/2)`` the right side is at most ``beta sigma (sigma + 1)/8``.
    """
    for point in pool():
        yield point.case, at_most(point.eigenvalues[-1], 1.0)


@statement("Prop_first_order_equivalence_feasible", "Section 3.2, second proposition",
    assumes=BLANKET + " or Huber merit, X feasible, every beta",
    known_by="proof", says="Problem and penalty function share their feasible stationary points: grad h = L there.")
def feasible_points() -> Margins:
    """There ``C = I``, so that ``A(X) = X``, ``Q(C) = I`` and ``beta M X (C^2 - I) = 0``."""
    for case, h, X, _ in points(feasible, instances(COUNT, 21, betas=(1e-6, 1e-3, 1.0, 1e3))):
        low, high = case.spectrum
        scale = norm(h.problem.gradient(X)) * (high / low) + h.beta * high**0.5
        yield equal(h.gradient(X), h.lagrangian_gradient(X), scale)
    for point in huber_pairs(300):
        h = point.h
        yield equal(h.gradient(point.X), 0, h.beta * norm(h.M @ point.X))


@statement("The_first_order_equivalence_feasible", "Section 3.2, first theorem", assumes=INFEASIBLE,
    known_by="proof", says="sigma_min(X'MX) <= beta~/(4 beta).")
def feasible_or_far() -> Margins:
    """Q = vv' in Le_inner_nablah_XQ, where ``Cv = sigma v`` and 0 < sigma < 1: ``beta sigma (1 + sigma) = 3/2 v'X'Gv``.

    ``v'X'Gv <= (sigma/s)^(1/2) (2 L_g (p/s)^(1/2) + L_0)``, so ``sigma^(1/2) (1 + sigma) <= beta~/(8 kappa beta)``.
    """
    yield "Even: each eigenvalue is 1 or <= (beta~/(8 kappa beta))^2"
    for point in infeasible():
        ratio, (low, high) = point.case.threshold / point.h.beta, point.case.spectrum
        sharper = (ratio * low / (8 * high)) ** 2
        others = [value for value in point.eigenvalues if abs(value - 1) > FEASIBLE]
        yield point.case, at_most(max(others), sharper), at_most(min(others), ratio / 4)


@statement("The_first_order_equivalence_feasible, proof", "Section 3.2", assumes=STATIONARY,
    known_by="proof", says="A bound on sigma_max(X'G(X)) in Omega.",
    printed="sigma_max(X'G(X)) <= 2 p L_g + s^(1/2) L_0",
    corrected="sigma_max(X'G(X)) <= (2 p L_g + s^(1/2) L_0) / s",
    severity="typo", counterexample=counterexamples.inner_bound_without_s, rounding=ROUNDING)
def feasible_or_far_proof() -> Margins:
    """eq:normlambda at ``sigma = 1``, by pro:sigma_up."""
    for point in pool():
        product = point.X.T @ dissolved_gradient(point.h, point.X)
        yield point.case, at_most(norm(product, 2), multiplier_bound(point.case))


@statement("pro:saddle", "Section 3.2, third proposition", assumes=INFEASIBLE,
    known_by="proof", says="X is a strict saddle point with c = s beta / 4.", rounding=ROUNDING)
def strict_saddles() -> Margins:
    """See `cdfsg.theory.saddles`."""
    yield "Explicit directions give 31/32 s beta, which is sharp at beta = beta~"
    case = Instance(Penalty(Quadratic(np.eye(1)), np.eye(1), 72.0), 1, "quadratic")
    sharp = Point(case, np.zeros((1, 1)))
    yield equal(case.threshold, case.h.beta, 1.0), equal(sharp.least_curvature, -31 / 32 * case.h.beta, 1.0)
    for point in infeasible():
        if point.eigenvalues[0] > 1 - FEASIBLE:  # outside Omega, where no direction is known
            yield true(False)
            continue
        h, printed, ours = point.h, saddles.printed_constant(point), saddles.constant(point)
        D = saddles.direction(point)
        curvature = inner(D, h.hessian(point.X, D))
        scale = h.beta * point.case.spectrum[1] * inner(D, D)
        yield (point.case, equal(curvature, saddles.curvature(point, D), scale),
               at_most(ours * inner(D, D), -curvature), at_most(31 / 8 * printed, ours),
               at_most(printed, -point.least_curvature))


@statement("pro:saddle, proof", "Section 3.2", assumes=INFEASIBLE,
    known_by="certificate", says="The direction D = X v v' shows it.",
    printed="D = X v v'",
    corrected="where X v = 0, D = u v' with X'Mu = 0; its curvature is "
              "9/4 hess f(A(X))[D, D] - beta u'Mu",
    severity="gap in proof", counterexample=counterexamples.vanishing_saddle_direction)
def strict_saddles_proof() -> Margins:
    yield "It is zero where X v = 0, as at every infeasible point of quadratics"
    for point in infeasible():
        h, D = point.h, saddles.printed_direction(point)
        yield true(inner(D, h.M @ D) > saddles.VANISHING and inner(D, h.hessian(point.X, D)) < 0)


@statement("quadratic proposition", "Section 3.2, fourth proposition",
    assumes="quadratic f, beta >= beta~, X stationary",
    known_by="proof", says="The eigenvalues of X'MX are 0 or 1.", rounding=ROUNDING)
def quadratics() -> Margins:
    """For sigma other than 0 and 1: ``beta (1 + sigma) = (9/4 - 3/4 sigma) u'Au``, where ``sigma^(1/2) u = Xv``.

    For ``beta >= 9/4 u'Au`` and ``beta >= -3/4 u'Au`` no sigma > 0 does this, as in Le_inner_nablah_XQ with Q = vv'.
    """
    yield "So for beta >= max(9/4 lam_max, 3/4 |lam_min|) of the pencil"
    for point in pool():
        if point.case.kind in QUADRATICS:
            yield at_most(zero_or_one(point), 0.0, 1.0)
    for case, _ in instances(COUNT, 24, kinds=QUADRATICS):
        values = pencil(case)[0]
        sharp = sharp_beta_of_quadratics(values)
        thirds = [third for lam in values for third in quadratic_lengths(float(lam), 1.001 * sharp)[2:]]
        yield case, at_most(sharp, case.threshold), true(not any(thirds))


def zero_or_one(point: Point) -> float:
    """How far the eigenvalues of ``X'MX`` are from 0 and 1."""
    return float(np.minimum(point.eigenvalues, np.abs(point.eigenvalues - 1)).max())


def sharp_beta_of_quadratics(values: Array) -> float:
    """The least beta from which squared lengths are 0 or 1; values are those of the pencil."""
    return max(9 / 4 * float(values[-1]), 3 / 4 * abs(min(float(values[0]), 0.0)), 0.0)


@statement("thm:refir", "Section 3.2, second theorem", assumes=STATIONARY,
    known_by="proof", says="X is feasible, hence stationary for the problem, or a strict saddle point.")
def feasible_or_saddle() -> Margins:
    """Prop_first_order_equivalence_feasible and pro:saddle."""
    for point in pool():
        kind = point.classify()
        yield equal(certificate(point.h, point.X), 0.0, 1.0) if kind == "feasible" else true(kind == "strict saddle")
