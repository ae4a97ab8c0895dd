"""Section 3.3: the Hessian of h at feasible stationary points, and second-order stationary points."""

from functools import lru_cache

import numpy as np
from scipy.linalg import null_space

from cdfsg.linalg import Array, sym
from cdfsg.theory import counterexamples
from cdfsg.theory.check import Check, Statement, Tally, concluded, error
from cdfsg.theory.stationary import Point, hessian_matrix, pool

ROUNDING = 1e-7
"""For points from a search or of ill-conditioned M."""
SIGN = 1e-12
"""Curvature relative to the Hessian's size up to which an eigenvalue counts as zero."""


@lru_cache(maxsize=1)
def feasible_points() -> tuple[Point, ...]:
    """Feasible stationary points: those of the pool."""
    return tuple(point for point in pool() if point.is_feasible)


def parts_of(point: Point, D: Array) -> tuple[Array, Array]:
    """The tangent part T and the matrix S of the normal part XS of D at a feasible X."""
    S = sym(point.X.T @ point.case.penalty.M @ D)
    T: Array = D - point.X @ S
    return T, S


def tangent_basis(point: Point) -> Array:
    """Orthonormal basis of the tangent space (eq:tx), shape (n p, dimension)."""
    n, p = point.X.shape
    units = np.eye(n * p).reshape(-1, n, p)
    conditions = np.array([sym(point.X.T @ point.case.penalty.M @ unit).ravel() for unit in units]).T
    basis: Array = null_space(conditions, rcond=1e-9)
    return basis


def tangent_form(point: Point) -> Array:
    """Matrix of ``<T, hess f(X)[T] - M T X' grad f(X)>`` (def:ocso, corrected) on the basis of the tangent space."""
    h, X = point.case.penalty, point.X
    multiplier = sym(X.T @ h.problem.gradient(X))
    basis = tangent_basis(point)
    units = basis.T.reshape(-1, *X.shape)
    images = [(h.problem.hessian(X, T) - h.M @ T @ multiplier).ravel() for T in units]
    return sym(basis.T @ np.array(images).T) if images else np.zeros((0, 0))


def scale_of(point: Point) -> float:
    """Size of the Hessian's entries, for relative margins."""
    h = point.case.penalty
    return h.beta * point.case.spectrum[1] + h.problem.lipschitz


def random_directions(seed: int) -> list[tuple[Point, Array]]:
    """Each feasible point with a random direction."""
    rng = np.random.default_rng(seed)
    return [(point, rng.standard_normal(point.X.shape)) for point in feasible_points()]


def hessian_does_not_mix_tangent_and_normal_space() -> Check:
    """eq:tn of le:sop_slep."""
    tally = Tally()
    for point, D in random_directions(31):
        h = point.case.penalty
        T, S = parts_of(point, D)
        N = point.X @ S
        size = float(np.vdot(D, D)) * point.case.spectrum[1] / point.case.spectrum[0]
        tally.add(error(float(np.vdot(N, h.hessian(point.X, T))), scale_of(point) * size))
    return concluded("le:sop_slep, eq:tn", "<N, hess h[T]> = 0 at feasible stationary points", tally, rounding=ROUNDING)


def hessian_is_positive_on_the_normal_space() -> Check:
    """eq:nn of le:sop_slep, with the exact value ``4 beta |S|^2 - 3 tr(S^2 X' grad f)``."""
    tally = Tally()
    for point, D in random_directions(32):
        h, X = point.case.penalty, point.X
        S = parts_of(point, D)[1]
        curvature = float(np.vdot(X @ S, h.hessian(X, X @ S)))
        exact = float(4 * h.beta * np.vdot(S, S) - 3 * np.trace(S @ S @ X.T @ h.problem.gradient(X)))
        tally.add(
            error(curvature - exact, h.beta * float(np.vdot(S, S)) * 10),
            min(curvature / (h.beta * float(np.vdot(S, S))), 0.0),
        )
    says = "<N, hess h[N]> = 4 beta |S|^2 - 3 tr(S^2 X' grad f) > 0 for N = X S != 0"
    return concluded("le:sop_slep, eq:nn", says, tally, rounding=ROUNDING)


def lower_bound_on_the_normal_space() -> Check:
    """Step (i) of the proof of eq:nn, with the factor 3 that is lost in print."""
    tally = Tally()
    for point, D in random_directions(33):
        h, X, s = point.case.penalty, point.X, point.case.spectrum[0]
        S = parts_of(point, D)[1]
        size = float(np.vdot(S, S))
        at_zero = float(np.linalg.norm(h.problem.gradient(np.zeros_like(X))))
        bound = 4 * h.beta - 3 * (2 * point.case.p * h.problem.lipschitz + s**0.5 * at_zero) / s
        tally.add((float(np.vdot(X @ S, h.hessian(X, X @ S))) - bound * size) / (h.beta * size))
    says = "the lower bound 4 beta - 3 (2 p L_g + s^(1/2) L_0) / s"
    against = counterexamples.normal_curvature_step()
    return concluded("le:sop_slep, proof (i)", says, tally, against, ROUNDING)


def trace_is_at_most_the_largest_singular_value() -> Check:
    """The equality before step (i): it is an inequality."""
    tally = Tally()
    for point, D in random_directions(34):
        S = parts_of(point, D)[1]
        product = point.X.T @ point.case.penalty.problem.gradient(point.X)
        bound = float(np.linalg.norm(product, 2) * np.vdot(S, S))
        tally.add((bound - float(np.trace(S @ S @ product))) / (bound or 1.0))
    says = "tr(S^2 X' grad f) <= sigma_max(X' grad f) |S|^2, where = is printed"
    against = counterexamples.normal_curvature_equality()
    return concluded("le:sop_slep, proof", says, tally, against, ROUNDING)


def second_order_points_are_shared() -> Check:
    """th:sopr_b1, both ways, by the eigenvalues of the Hessian of h and of the form on the tangent space."""
    tally = Tally()
    for point in pool():
        h, scale = point.case.penalty, scale_of(point)
        if not point.is_feasible:
            tally.add(0.0 if point.least_curvature < -SIGN * scale else -1.0)
            continue
        form, basis = tangent_form(point), tangent_basis(point)
        full = hessian_matrix(h, point.X)
        tally.add(error(float(np.abs(form - basis.T @ full @ basis).max(initial=0.0)), scale))  # eq:s1
        least = float(np.linalg.eigvalsh(form).min(initial=0.0))
        if least > -SIGN * scale * point.case.spectrum[0] / point.case.spectrum[1]:
            tally.add(0.0 if np.linalg.eigvalsh(full)[0] >= -SIGN * scale else -1.0)
        elif least < -SIGN * scale:
            tally.add(0.0 if np.linalg.eigvalsh(full)[0] < -SIGN * scale else -1.0)
    says = "the same second-order points, with def:ocso corrected; infeasible ones are none"
    return concluded("th:sopr_b1", says, tally, counterexamples.second_order_condition(), ROUNDING)


CHECKS: tuple[Statement, ...] = (
    hessian_does_not_mix_tangent_and_normal_space,
    hessian_is_positive_on_the_normal_space,
    lower_bound_on_the_normal_space,
    trace_is_at_most_the_largest_singular_value,
    second_order_points_are_shared,
)
