"""Section 3.3: the Hessian of h at feasible stationary points, and second-order stationary points."""
# fmt: off: in a statement's decorator a line is one part of the words

from collections.abc import Iterator

import numpy as np
from scipy.linalg import null_space

from cdfsg.linalg import Array, sym
from cdfsg.theory import counterexamples
from cdfsg.theory.first_order import ROUNDING, STATIONARY
from cdfsg.theory.statement import Margin, equal, inner, norm, statement, true
from cdfsg.theory.stationary import Point, hessian_matrix, pool

SIGN = 1e-12  # curvature relative to the Hessian's size up to which an eigenvalue counts as zero
FEASIBLE = STATIONARY + " and feasible"


def parts_of(point: Point, D: Array) -> tuple[Array, Array]:
    """The tangent part T and the matrix S of the normal part XS of D."""
    S = sym(point.X.T @ point.h.M @ D)
    return D - point.X @ S, S


def tangent_basis(point: Point) -> Array:
    """Orthonormal basis of the tangent space (eq:tx), shape (n p, dimension)."""
    n, p = point.X.shape
    units = np.eye(n * p).reshape(-1, n, p)
    conditions = np.array([sym(point.X.T @ point.h.M @ unit).ravel() for unit in units]).T
    return null_space(conditions, rcond=1e-9)


def tangent_form(point: Point, basis: Array) -> Array:
    """Matrix of ``<T, hess f(X)[T] - M T X' grad f(X)>`` (def:ocso, corrected) on a basis of the tangent space."""
    h, X = point.h, point.X
    multiplier = sym(X.T @ h.problem.gradient(X))
    images = [(h.problem.hessian(X, T) - h.M @ T @ multiplier).ravel() for T in basis.T.reshape(-1, *X.shape)]
    return sym(basis.T @ np.array(images).T) if images else np.zeros((0, 0))


def scale_of(point: Point) -> float:
    """Size of the Hessian's entries, for relative margins."""
    return point.h.beta * point.case.spectrum[1] + point.h.problem.lipschitz


def random_directions(seed: int) -> Iterator[tuple[Point, Array]]:
    rng = np.random.default_rng(seed)
    return ((point, rng.standard_normal(point.X.shape)) for point in pool() if point.is_feasible)


@statement("le:sop_slep, eq:tn", place="Section 3.3, lemma, first part", assumes=FEASIBLE,
           says="The Hessian does not mix tangent and normal directions: <N, hess h[T]> = 0.", rounding=ROUNDING)
def mixed_curvature() -> Iterator[Margin]:
    for point, D in random_directions(31):
        T, S = parts_of(point, D)
        size = inner(D, D) * point.case.spectrum[1] / point.case.spectrum[0]
        yield equal(inner(point.X @ S, point.h.hessian(point.X, T)), 0, scale_of(point) * size)


@statement("le:sop_slep, eq:nn", place="Section 3.3, lemma, second part", assumes=FEASIBLE,
           says="The Hessian is positive on normal directions N = XS != 0: "
                "<N, hess h[N]> = 4 beta |S|^2 - 3 tr(S^2 X' grad f).",
           rounding=ROUNDING)
def normal_curvature() -> Iterator[Margin]:
    for point, D in random_directions(32):
        h, X = point.h, point.X
        S = parts_of(point, D)[1]
        curvature, size = inner(X @ S, h.hessian(X, X @ S)), h.beta * inner(S, S)
        exact = 4 * size - 3 * float(np.trace(S @ S @ X.T @ h.problem.gradient(X)))
        yield equal(curvature, exact, size * 10), min(curvature / size, 0.0)


@statement("le:sop_slep, proof", place="Section 3.3, proof of eq:nn, before step (i)", assumes=FEASIBLE,
           says="A trace equals the largest singular value times a norm.",
           printed="tr(S^2 X' grad f(X)) = sigma_max(X' grad f(X)) ||S||^2",
           corrected="tr(S^2 X' grad f(X)) <= sigma_max(X' grad f(X)) ||S||^2",
           severity="typo", counterexample=counterexamples.normal_curvature_equality, rounding=ROUNDING)
def trace_bound() -> Iterator[Margin]:
    for point, D in random_directions(34):
        S = parts_of(point, D)[1]
        product = point.X.T @ point.h.problem.gradient(point.X)
        bound = norm(product, 2) * inner(S, S)
        yield (bound - np.trace(S @ S @ product)) / (bound or 1.0)


@statement("le:sop_slep, proof (i)", place="Section 3.3, proof of eq:nn, step (i)", assumes=FEASIBLE,
           says="A lower bound on the curvature along normal directions.",
           printed="4 beta - (2 p L_g + L_0 s^(1/2)) / s",
           corrected="4 beta - 3 (2 p L_g + L_0 s^(1/2)) / s",
           severity="wrong constant", counterexample=counterexamples.normal_curvature_step, rounding=ROUNDING)
def curvature_bound() -> Iterator[Margin]:
    for point, D in random_directions(33):
        h, X, s = point.h, point.X, point.case.spectrum[0]
        S = parts_of(point, D)[1]
        bound = 4 * h.beta - 3 * (2 * point.case.p * h.problem.lipschitz + s**0.5 * point.case.L_0) / s
        yield (inner(X @ S, h.hessian(X, X @ S)) - bound * inner(S, S)) / (h.beta * inner(S, S))


@statement("th:sopr_b1", place="Section 3.3, theorem", assumes=STATIONARY,
           says="Problem and penalty function share their second-order stationary points; infeasible points are none.",
           corrected="they share them with def:ocso corrected; infeasible points are none",
           counterexample=counterexamples.second_order_condition, rounding=ROUNDING)
def shared_second_order_points() -> Iterator[Margin]:
    for point in pool():
        scale, (low, high) = scale_of(point), point.case.spectrum
        if not point.is_feasible:
            yield true(point.least_curvature < -SIGN * scale)
            continue
        basis = tangent_basis(point)
        form, full = tangent_form(point, basis), hessian_matrix(point.h, point.X)
        yield -np.abs(form - basis.T @ full @ basis).max(initial=0.0) / scale  # eq:s1
        least = np.linalg.eigvalsh(form).min(initial=0.0)
        if least > -SIGN * scale * low / high:
            yield true(point.least_curvature >= -SIGN * scale)
        elif least < -SIGN * scale:
            yield true(point.least_curvature < -SIGN * scale)
