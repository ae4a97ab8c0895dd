"""Section 3.3: the Hessian of h at feasible stationary points; second-order points."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.random import default_rng
from scipy.linalg import null_space

from cdfsg.linalg import Array, sym
from cdfsg.theory import counterexamples
from cdfsg.theory.derivatives import multiplier_bound
from cdfsg.theory.first_order import ROUNDING, STATIONARY
from cdfsg.theory.instances import parts_of
from cdfsg.theory.statement import SMOOTH, Margins, at_most, equal, inner, statement, true
from cdfsg.theory.stationary import Point, hessian_matrix, pool, units

SIGN = 1e-12  # curvature, relative to the Hessian's size, that counts as zero
FEASIBLE = STATIONARY + " and feasible"


def tangent_form(point: Point) -> tuple[Array, Array]:
    """Orthonormal basis (n p, dimension) of the tangent space (eq:tx), and the corrected form of def:ocso on it."""
    h, X = point.h, point.X
    conditions = np.array([sym(X.T @ h.M @ unit).ravel() for unit in units(X)]).T
    basis, multiplier = null_space(conditions, rcond=1e-9), sym(X.T @ h.problem.gradient(X))
    images = [h.problem.hessian(X, T) - h.M @ T @ multiplier for T in basis.T.reshape(-1, *X.shape)]
    return basis, sym(basis.T @ np.reshape(images, basis.T.shape).T)


def scale_of(point: Point) -> float:
    """Size of the Hessian's entries, for relative margins."""
    return point.h.beta * point.case.spectrum[1] + point.case.L_g


def random_directions(seed: int) -> Iterator[tuple[Point, Array, Array, Array]]:
    """Feasible points with a random D, its tangent part T, and the S of its normal part XS."""
    rng = default_rng(seed)
    for point in pool().found:
        if point.is_feasible:
            D = rng.standard_normal(point.X.shape)
            yield point, D, *parts_of(point.h.M, point.X, D)


@statement("le:sop_slep, eq:tn", "Section 3.3, Lemma 3.13, equation (28)",
    assumes=SMOOTH + ", X stationary and feasible, every beta", rounding=ROUNDING, searches=pool,
    says="The Hessian does not mix tangent and normal directions: <N, hess h[T]> = 0.")
def mixed_curvature() -> Margins:
    """``<XS, hess h[T]> = -tr(S X'MT Lambda) - tr(S T' grad f)``, where ``X'MT = -T'MX`` and ``MX Lambda = grad f``."""
    for point, D, T, S in random_directions(31):
        size = inner(D, D) * point.case.spectrum[1] / point.case.spectrum[0]
        for factor in (1.0, 1e-4):
            h = replace(point.h, beta=factor * point.h.beta)
            yield equal(inner(point.X @ S, h.hessian(point.X, T)), 0, scale_of(point) * size)


@statement("le:sop_slep, eq:nn", "Section 3.3, Lemma 3.13, equation (29)", assumes=FEASIBLE,
    says="The Hessian is positive on normal directions N = XS != 0: "
         "<N, hess h[N]> = 4 beta |S|^2 - 3 tr(S^2 X' grad f).", rounding=ROUNDING, searches=pool)
def normal_curvature() -> Margins:
    """``J_G(X)[XS] = hess f[XS - XS] = 0``; the other terms of eq:hessh are three times ``-tr(S^2 X' grad f)``."""
    yield "Even at least 15/4 beta |S|^2, which is sharp at beta~"
    for point, _, _, S in random_directions(32):
        h, X = point.h, point.X
        curvature, size = inner(X @ S, h.hessian(X, X @ S)), h.beta * inner(S, S)
        exact = 4 * size - 3 * float(np.trace(S @ S @ X.T @ h.problem.gradient(X)))
        yield point, at_most(4 * size - exact, 4 * size), equal(curvature, exact, size * 10)
        yield at_most(15 / 4 * size, curvature, claim="it is at least 15/4 beta |S|^2")


@statement("le:sop_slep, proof (i)", "Section 3.3, Lemma 3.13, proof, step (i)", assumes=FEASIBLE,
    says="The curvature along normal directions is at least the printed bound.",
    printed="4 beta - (2 p L_g + L_0 s^(1/2)) / s",
    corrected="4 beta - 3 (2 p L_g + L_0 s^(1/2)) / s",
    severity="wrong constant", counterexample=counterexamples.normal_curvature_step, rounding=ROUNDING, searches=pool)
def curvature_bound() -> Margins:
    """eq:nn and eq:normlambda at ``sigma = 1``."""
    for point, _, _, S in random_directions(33):
        h, X = point.h, point.X
        bound = 4 * h.beta - 3 * multiplier_bound(point.case)
        yield point, at_most(bound * inner(S, S), inner(X @ S, h.hessian(X, X @ S)))


@statement("th:sopr_b1", "Section 3.3, Theorem 3.14", assumes=STATIONARY,
    says="Problem and penalty function share their second-order stationary points, and no infeasible point is one.",
    corrected="they share them with the corrected Definition 2.1, and no infeasible point is one",
    counterexample=counterexamples.second_order_condition, rounding=ROUNDING, searches=pool)
def shared_second_order_points() -> Margins:
    """On tangent directions the Hessians agree (eq:s1); then le:sop_slep, and pro:saddle at infeasible points."""
    for point in pool().found:
        scale, (low, high) = scale_of(point), point.case.spectrum
        if not point.is_feasible:
            yield true(point.least_curvature < -SIGN * scale)
            continue
        (basis, form), full = tangent_form(point), hessian_matrix(point.h, point.X)
        yield equal(form, basis.T @ full @ basis, scale)  # eq:s1
        least = np.linalg.eigvalsh(form).min(initial=0.0)
        if least > -SIGN * scale * low / high:
            yield true(point.least_curvature >= -SIGN * scale)
        elif least < -SIGN * scale:
            yield true(point.least_curvature < -SIGN * scale)
