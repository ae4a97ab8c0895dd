"""Sections 2 and 3.1: the derivatives of h, and the bounds on them."""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from cdfsg.linalg import Array, eye_like, sym
from cdfsg.penalty import Penalty, dissolving_factor
from cdfsg.theory import counterexamples
from cdfsg.theory.check import Check, Statement, Tally, at_most, concluded, error
from cdfsg.theory.instances import (
    COUNT,
    Instance,
    any_instances,
    crosses_kink,
    feasible,
    in_omega,
    instances,
    somewhere,
)

STEP = 2e-3
"""Step of the difference quotient, relative to the direction; its error is of sixth order."""


def derivative(function: Callable[[float], Array | float], step: float = STEP) -> Array:
    """Derivative at 0 by the central difference of sixth order, exact for polynomials of degree six."""
    at = {k: np.asarray(function(k * step)) for k in (-3, -2, -1, 1, 2, 3)}
    quotient: Array = (45 * (at[1] - at[-1]) - 9 * (at[2] - at[-2]) + at[3] - at[-3]) / (60 * step)
    return quotient


def _along(function: Callable[[Array], Array | float], X: Array, D: Array) -> Callable[[float], Array | float]:
    return lambda t: function(X + t * D)


def smooth_lines(seed: int) -> Iterator[tuple[Penalty, Array, Array]]:
    """Instances with a point and a direction along which f(A(X)) is smooth within the steps of `derivative`.

    A few more than `COUNT` are drawn, since some cross a kink of the Huber merit.
    """
    for case, rng in any_instances(COUNT + 200, seed):
        h = case.penalty
        X, D = somewhere(h.M, case.p, rng), somewhere(h.M, case.p, rng)
        if not crosses_kink(h.problem, [h.dissolve(X + k * STEP * D) for k in range(-3, 4)]):
            yield h, X, D


def gradient_of_h() -> Check:
    """eq:gradh against difference quotients of h, with and without the assumptions."""
    tally = Tally()
    for h, X, D in smooth_lines(5):
        quotient = derivative(_along(h.value, X, D))
        scale = float(np.linalg.norm(h.gradient(X)) * np.linalg.norm(D)) + abs(h.value(X))
        tally.add(error(float(quotient) - float(np.vdot(h.gradient(X), D)), scale))
    return concluded("Le_formulation_gradient_f", "grad h is the derivative of h, for any M >= 0 and beta", tally)


def inner_product_of_the_gradient_with_xq() -> Check:
    """Le_inner_nablah_XQ: for Q that commutes with C, as its statement has it."""
    tally = Tally()
    for case, rng in any_instances(COUNT, 6):
        h = case.penalty
        X = somewhere(h.M, case.p, rng)
        C = h.constraint(X)
        Q = commuting(C, rng)
        G = dissolved_gradient(h, X)
        inner = float(np.vdot(X @ Q, h.gradient(X)))
        factor = h.beta * C @ (C + eye_like(C)) - 1.5 * sym(X.T @ G)
        scale = float(np.linalg.norm(X @ Q) * (np.linalg.norm(G) + h.beta * np.linalg.norm(h.M @ X)))
        tally.add(error(inner - float(np.trace(factor @ (C - eye_like(C)) @ Q)), scale))
    return concluded("Le_inner_nablah_XQ", "<XQ, grad h> as stated, with (C - I)", tally)


def commuting(C: Array, rng: np.random.Generator) -> Array:
    """A random symmetric matrix that commutes with C, shape (p, p)."""
    vectors = np.linalg.eigh(C)[1]
    Q: Array = (vectors * rng.standard_normal(len(C))) @ vectors.T
    return Q


def inner_product_proof() -> Check:
    """The last line of the proof, with ``C - I`` for ``C + I``: one column, where it can be read off."""
    tally = Tally()
    for case, rng in any_instances(COUNT, 7):
        C = case.penalty.constraint(somewhere(case.penalty.M, 1, rng))
        left = C @ C - eye_like(C)
        tally.add(error(float((left - (C + eye_like(C)) @ (C - eye_like(C))).item()), 1 + float(C.item()) ** 2))
    says = "the last line with (C - I), since C^2 - I = (C + I)(C - I)"
    return concluded("Le_inner_nablah_XQ, proof", says, tally, counterexamples.inner_product_last_line())


def growth_of_the_gradient_of_f() -> Check:
    """eq:normgraf; equality for linear f."""
    tally = Tally()
    for case, rng in instances(COUNT, 8):
        problem = case.penalty.problem
        X = rng.standard_normal((case.n, case.p)) * 10 ** rng.uniform(-3, 3)
        at_zero = float(np.linalg.norm(problem.gradient(np.zeros_like(X))))
        bound = problem.lipschitz * float(np.linalg.norm(X)) + at_zero
        tally.add(at_most(float(np.linalg.norm(problem.gradient(X))), bound))
    return concluded("eq:normgraf", "||grad f(X)|| <= L_g ||X|| + L_0", tally)


def growth_of_g() -> Check:
    """le:normg; equality for linear f."""
    tally = Tally()
    for case, rng in instances(COUNT, 9):
        h = case.penalty
        X = somewhere(h.M, case.p, rng) * 10 ** rng.uniform(-2, 2)
        norm = float(np.linalg.norm(dissolved_gradient(h, X)))
        sigma = float(np.linalg.norm(h.constraint(X), 2))
        at_zero = float(np.linalg.norm(h.problem.gradient(np.zeros_like(X))))
        bound = h.problem.lipschitz * (1.5 + sigma / 2) * float(np.linalg.norm(X)) + at_zero
        tally.add(at_most(norm, bound))
    return concluded("le:normg", "||G(X)|| <= L_g (3/2 + sigma_max(C)/2) ||X|| + L_0", tally)


def hessian_of_h() -> Check:
    """eq:hessh, corrected, against difference quotients of grad h."""
    tally = Tally()
    for h, X, D in smooth_lines(10):
        quotient = derivative(_along(h.gradient, X, D))
        H = h.hessian(X, D)
        scale = float(np.linalg.norm(H) + np.linalg.norm(h.gradient(X)))
        tally.add(error(float(np.linalg.norm(quotient - H)), scale))
    says = "the last term is 2 beta M X (Psi(X'MD) C + C Psi(X'MD))"
    return concluded("Le_formulation_hessian_h", says, tally, counterexamples.hessian_last_term())


def printed_hessian(h: Penalty, X: Array, D: Array) -> Array:
    """eq:hessh as printed, with the last term ``4 beta M X Psi(X'MD) C``, shape (n, p)."""
    C, S = h.constraint(X), sym(X.T @ h.M @ D)
    printed: Array = h.hessian(X, D) + 2 * h.beta * h.M @ X @ (S @ C - C @ S)
    return printed


def printed_hessian_holds_at_feasible_points() -> Check:
    """eq:hessh as printed agrees where Psi(X'MD) and C commute: at feasible X, and along ``D = X v v'``."""
    tally = Tally()
    for case, rng in instances(COUNT, 11):
        h = case.penalty
        X = feasible(h.M, case.p, rng)
        Z = in_omega(h.M, case.p, rng)
        v = np.linalg.eigh(h.constraint(Z))[1][:, :1]
        for point, D in ((X, rng.standard_normal(X.shape)), (Z, Z @ v @ v.T)):
            H = h.hessian(point, D)
            scale = float(np.linalg.norm(H)) + h.beta * case.spectrum[1] * float(np.linalg.norm(point))
            tally.add(error(float(np.linalg.norm(printed_hessian(h, point, D) - H)), scale))
    says = "the printed Hessian is right at feasible X and along X v v', where the proofs use it"
    return concluded("eq:hessh, uses", says, tally)


def derivative_of_g() -> Check:
    """eq:GD against difference quotients of G."""
    tally = Tally()
    for h, X, D in smooth_lines(12):
        quotient = derivative(_along(partial(dissolved_gradient, h), X, D))
        J = dissolved_derivative(h, X, D)
        scale = float(np.linalg.norm(J) + np.linalg.norm(dissolved_gradient(h, X)))
        tally.add(error(float(np.linalg.norm(quotient - J)), scale))
    return concluded("eq:GD", "J_G(X)[D] is the derivative of G", tally)


def dissolved_gradient(h: Penalty, X: Array) -> Array:
    """``G(X) = grad f(A(X))`` (eq:defgG), shape (n, p)."""
    return h.problem.gradient(h.dissolve(X))


def dissolved_derivative(h: Penalty, X: Array, D: Array) -> Array:
    """``J_G(X)[D]`` (eq:GD), shape (n, p)."""
    C = h.constraint(X)
    moved = D @ dissolving_factor(C) - X @ sym(X.T @ h.M @ D)
    return h.problem.hessian(h.dissolve(X), moved)


def bound_on_the_derivative_of_g() -> Check:
    """le:normj on Omega, with the smaller constant ``3/2 + kappa^(1/2)`` besides."""
    tally = Tally()
    for case, rng in instances(COUNT, 13):
        h = case.penalty
        X = in_omega(h.M, case.p, rng)
        D = rng.standard_normal(X.shape)
        low, high = case.spectrum
        bound = (1.5 + (high / low) ** 0.5) * h.problem.lipschitz * float(np.linalg.norm(D))
        tally.add(at_most(float(np.linalg.norm(dissolved_derivative(h, X, D))), bound))
    return concluded("le:normj", "the constant 2 + kappa, and even 3/2 + kappa^(1/2)", tally)


def bound_on_the_multiplier() -> Check:
    """eq:normlambda: with sigma = sigma_max(C) replaced by max(sigma, 1), since it is also used inside Omega."""
    tally = Tally()
    for case, rng in instances(COUNT, 14):
        h = case.penalty
        X = somewhere(h.M, case.p, rng) * 10 ** rng.uniform(-1, 1)
        sigma = max(float(np.linalg.norm(h.constraint(X), 2)), 1.0)
        norm = float(np.linalg.norm(X.T @ dissolved_gradient(h, X), 2))
        tally.add(at_most(norm, multiplier_bound(case, sigma)))
    says = "the bound on sigma_max(X'G) at max(sigma_max(C), 1)"
    return concluded("eq:normlambda", says, tally, counterexamples.inner_bound_inside())


def multiplier_bound(case: Instance, sigma: float) -> float:
    """The last line of eq:normlambda at ``sigma = sigma_max(X'MX)``."""
    h, p, s = case.penalty, case.p, case.spectrum[0]
    at_zero = float(np.linalg.norm(h.problem.gradient(np.zeros((case.n, p)))))
    lipschitz = h.problem.lipschitz
    linear = (3 * p * lipschitz + 2 * at_zero * s**0.5) / (2 * s)
    return float(linear * sigma + p * lipschitz / (2 * s) * sigma**2)


CHECKS: tuple[Statement, ...] = (
    gradient_of_h,
    inner_product_of_the_gradient_with_xq,
    inner_product_proof,
    growth_of_the_gradient_of_f,
    growth_of_g,
    hessian_of_h,
    printed_hessian_holds_at_feasible_points,
    derivative_of_g,
    bound_on_the_derivative_of_g,
    bound_on_the_multiplier,
)
