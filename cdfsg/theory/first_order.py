"""Section 3.2: first-order stationary points of h and of the problem."""

from collections.abc import Iterator

import numpy as np

from cdfsg.linalg import Array
from cdfsg.penalty import Penalty
from cdfsg.problems import Quadratic
from cdfsg.theory import counterexamples
from cdfsg.theory.derivatives import dissolved_gradient
from cdfsg.theory.instances import COUNT, QUADRATICS, Instance, feasible, instances, points
from cdfsg.theory.statement import ABOVE, BLANKET, SMOOTH_ABOVE, Margins, at_most, equal, inner, norm, statement, true
from cdfsg.theory.stationary import FEASIBLE, Point, certificate, huber_points, pencil, pool, quadratic_lengths

ROUNDING = 1e-7  # for points from a search or of ill-conditioned M
VANISHING = 1e-20  # an eigenvalue of C up to which X v counts as 0
STATIONARY = SMOOTH_ABOVE + ", X stationary"
INFEASIBLE = STATIONARY + " and infeasible"


def infeasible() -> Iterator[Point]:
    return (point for point in pool().found if not point.is_feasible)


@statement("pro:sigma_up", "Section 3.2, Proposition 3.7", assumes=ABOVE + ", X stationary",
    says="X lies in Omega: sigma_max(X'MX) <= 1.", rounding=ROUNDING, searches=pool)
def sigma_up() -> Margins:
    """Where ``Cv = sigma v``, sigma > 1, Q = vv' in Le_inner_nablah_XQ gives ``beta (sigma + 1) sigma = 3/2 v'X'Gv``.

    By eq:normlambda and ``beta >= 36 p L_g/s + 12 L_0/s^(1/2)`` the right side is at most ``beta sigma (sigma + 1)/8``.
    For p = 1, ``|A| = |X| |3 - sigma|/2`` and ``|X|^2 <= sigma/s`` give the sharper threshold.
    """
    yield "For p = 1 already for beta > 3/4 (L_g / s + L_0 / s^(1/2)), at most beta~/16, which is sharp"
    for point in pool().found:
        yield point, at_most(point.eigenvalues[-1], 1.0)
    for case, h, X, rng in points(feasible, 22, betas=(1.0,), shapes=((1, 1), (2, 1), (4, 1))):
        s, sigma = case.spectrum[0], 1 + rng.choice([0, 10 ** rng.uniform(-3, 2)])
        least, X = 3 / 4 * (case.L_g / s + case.L_0 / s**0.5), X * sigma**0.5
        product = inner(X, dissolved_gradient(h, X))
        yield at_most(1.5 * product, least * sigma * (sigma + 1), claim="the sharper beta suffices for p = 1")
        yield at_most(16 * least, case.threshold, claim="beta~ is 16 times the sharper beta")


@statement("Prop_first_order_equivalence_feasible", "Section 3.2, Proposition 3.8",
    assumes=BLANKET + " or Huber merit, X feasible, every beta",
    says="Problem and penalty function share their feasible stationary points: grad h = L there.")
def feasible_points() -> Margins:
    """There ``C = I``, so that ``A(X) = X``, ``Q(C) = I`` and ``beta M X (C^2 - I) = 0``."""
    for case, h, X, _ in points(feasible, 21, betas=(1e-6, 1e-3, 1.0, 1e3)):
        low, high = case.spectrum
        scale = norm(h.problem.gradient(X)) * (high / low) + h.beta * high**0.5
        yield equal(h.gradient(X), h.lagrangian_gradient(X), scale)
    for point in huber_points(300):
        h = point.h
        yield equal(h.gradient(point.X), 0, h.beta * norm(h.M @ point.X))


@statement("The_first_order_equivalence_feasible", "Section 3.2, Theorem 3.9",
    assumes=ABOVE + ", X stationary and infeasible", says="sigma_min(X'MX) <= beta~/(4 beta).", searches=pool)
def feasible_or_far() -> Margins:
    """Q = vv' in Le_inner_nablah_XQ, where ``Cv = sigma v`` and 0 < sigma < 1: ``beta sigma (1 + sigma) = 3/2 v'X'Gv``.

    ``v'X'Gv <= (sigma/s)^(1/2) (2 L_g (p/s)^(1/2) + L_0)``, so ``sigma^(1/2) (1 + sigma) <= beta~/(8 kappa beta)``.
    """
    yield "Even: each eigenvalue is 1 or <= (beta~/(8 kappa beta))^2"
    for point in infeasible():
        ratio, (low, high) = point.case.threshold / point.h.beta, point.case.spectrum
        sharper = (ratio * low / (8 * high)) ** 2
        others = [value for value in point.eigenvalues if abs(value - 1) > FEASIBLE]
        yield point, at_most(min(others), ratio / 4), at_most(max(others), sharper, claim="the sharper bound holds")


@statement("pro:saddle", "Section 3.2, Proposition 3.10", assumes=INFEASIBLE,
    says="X is a strict saddle point with c = s beta / 4.", rounding=ROUNDING, searches=pool)
def strict_saddles() -> Margins:
    """Let v be a unit eigenvector of C for its least sigma < 1, and u the left singular vector of ``M^(1/2) X`` for it.

    Along ``D = M^(-1/2) u v'``, a multiple of the paper's ``X v v'`` unless that vanishes, the curvature of h is
    ``(1 - sigma) [9/4 (1 - sigma) <D, hess f(A(X))[D]> - beta (1 + 3 sigma) <D, MD>]``.  It is negative by at least
    ``31/32 s beta |D|^2``, since ``sigma <= 1/64`` and ``s beta >= 72 L_g``.
    """
    yield "Explicit directions give 31/32 s beta, which is sharp at beta = beta~"
    case = Instance(Penalty(Quadratic(np.eye(1)), np.eye(1), 72.0), 1, "quadratic")
    sharp = Point(case, np.zeros((1, 1)))
    yield equal(case.threshold, case.h.beta, 1.0, claim="that is the threshold")
    yield equal(sharp.least_curvature, -31 / 32 * case.h.beta, 1.0, claim="31/32 is sharp")
    for point in infeasible():
        h, D, sigma = point.h, point.direction, point.eigenvalues[0]
        printed, ours, size = printed_constant(point), curvature_constant(point), inner(D, D)
        of_f, curvature = inner(D, h.problem.hessian(h.dissolve(point.X), D)), inner(D, h.hessian(point.X, D))
        stated = (1 - sigma) * (9 / 4 * (1 - sigma) * of_f - h.beta * (1 + 3 * sigma) * inner(D, h.M @ D))
        yield (point, at_most(printed, -point.least_curvature),
               equal(curvature, stated, h.beta * point.case.spectrum[1] * size, claim="the closed form is right"),
               at_most(ours * size, -curvature, claim="the direction is as curved"),
               at_most(31 / 8 * printed, ours, claim="31/32 serves"))


def curvature_constant(point: Point) -> float:
    """The c of `strict_saddles` of which a curvature of at most ``- c |D|^2`` follows, for the sigma of the point."""
    sigma, s = float(point.eigenvalues[0]), point.case.spectrum[0]
    return (1 - sigma) * (point.h.beta * (1 + 3 * sigma) * s - 9 / 4 * (1 - sigma) * point.case.L_g)


def printed_constant(point: Point) -> float:
    """The paper's ``sigma_min(M) beta / 4``."""
    return point.case.spectrum[0] * point.h.beta / 4


def printed_direction(point: Point) -> Array:
    """The ``X v v'`` of the paper's proof, with v for the least eigenvalue of C."""
    v = point.factors[2][:, :1]
    return point.X @ v @ v.T


@statement("pro:saddle, proof", "Section 3.2, Proposition 3.10, proof", assumes=INFEASIBLE,
    known_by="counterexample", says="Along the direction D = X v v' the penalty function has negative curvature.",
    printed="D = X v v'",
    corrected="where X v = 0, D = u v' with X'Mu = 0; its curvature is 9/4 hess f(A(X))[D, D] - beta u'Mu",
    severity="gap in proof", counterexample=counterexamples.vanishing_saddle_direction)
def strict_saddles_proof() -> Margins:
    yield "It is zero where X v = 0, as at every infeasible point of quadratics"
    for point in infeasible():
        h, D = point.h, printed_direction(point)
        yield true(inner(D, h.M @ D) > VANISHING and inner(D, h.hessian(point.X, D)) < 0)


@statement("quadratic proposition", "Section 3.2, Proposition 3.11",
    assumes="f = tr(X'AX)/2, beta >= beta~, X stationary",
    says="The eigenvalues of X'MX are 0 or 1.", rounding=ROUNDING, searches=pool)
def quadratics() -> Margins:
    """For sigma other than 0 and 1: ``beta (1 + sigma) = (9/4 - 3/4 sigma) u'Au``, where ``sigma^(1/2) u = Xv``.

    For ``beta >= 9/4 u'Au`` and ``beta >= -3/4 u'Au`` no sigma > 0 does this, as in Le_inner_nablah_XQ with Q = vv'.
    """
    yield "So for beta >= max(9/4 lam_max, 3/4 |lam_min|) of the pencil, which is at most beta~/32"
    for point in pool().found:
        if point.case.kind in QUADRATICS:
            yield equal(zero_or_one(point), 0.0, 1.0)
    for case, _ in instances(COUNT, 24, kinds=QUADRATICS):
        values = pencil(case)[0]
        sharp = sharp_beta_of_quadratics(values)
        thirds = [third for lam in values for third in quadratic_lengths(float(lam), 1.001 * sharp)[2:]]
        yield true(not any(thirds), claim="no other length is stationary")
        yield at_most(32 * sharp, case.threshold, claim="beta~ is 32 times the sharp beta")


def zero_or_one(point: Point) -> float:
    """How far the eigenvalues of ``X'MX`` are from 0 and 1."""
    return float(np.minimum(point.eigenvalues, np.abs(point.eigenvalues - 1)).max())


def sharp_beta_of_quadratics(values: Array) -> float:
    """The least beta from which squared lengths are 0 or 1; values are those of the pencil."""
    return max(9 / 4 * float(values[-1]), 3 / 4 * abs(min(float(values[0]), 0.0)), 0.0)


@statement("thm:refir", "Section 3.2, Theorem 3.12", assumes=STATIONARY,
    says="X is feasible, hence stationary for the problem, or a strict saddle point.", searches=pool)
def feasible_or_saddle() -> Margins:
    """Prop_first_order_equivalence_feasible and pro:saddle."""
    for point in pool().found:
        stationary = equal(certificate(point.h, point.X), 0.0, 1.0)
        yield stationary if point.is_feasible else true(point.is_strict_saddle)
