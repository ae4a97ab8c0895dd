"""Section 3.1: the derivatives of h, and the bounds on them."""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from numpy.random import Generator

from cdfsg.linalg import Array, eye_like, sym
from cdfsg.penalty import Penalty, dissolving_factor
from cdfsg.problems import GCCA
from cdfsg.theory import counterexamples
from cdfsg.theory.instances import ANYWHERE, COUNT, CURVED, Instance, feasible, in_omega, instances, points, somewhere
from cdfsg.theory.statement import BLANKET, EVERY, SMOOTH, Margins, at_most, equal, inner, norm, statement

STEP = 2e-3  # of the difference quotient, of sixth order, relative to the direction


def derivative(function: Callable[[float], Array | float]) -> Array:
    """Derivative at 0 by a central difference, exact for polynomials of degree six."""
    at = {k: np.asarray(function(k * STEP)) for k in (-3, -2, -1, 1, 2, 3)}
    return (45 * (at[1] - at[-1]) - 9 * (at[2] - at[-2]) + at[3] - at[-3]) / (60 * STEP)


def along(function: Callable[[Array], Array | float], X: Array, D: Array) -> Array:
    """Derivative of a function at X along D."""
    return derivative(lambda t: function(X + t * D))


def smooth_lines(seed: int) -> Iterator[tuple[Penalty, Array, Array]]:
    """Points and directions along which f(A(X)) is smooth within the steps of `derivative`: no merit has a kink."""
    for _, h, X, rng in points(somewhere, seed, COUNT + 200, **ANYWHERE):
        D, f = somewhere(h.M, X.shape[1], rng), h.problem
        if isinstance(f, GCCA):
            one, two = f.slices
            moved = [h.dissolve(X + k * STEP * D) for k in range(-3, 4)]
            t = np.stack([np.sum(Z[one] * (f.covariance[one, two] @ Z[two]), axis=0) for Z in moved])
            if np.ptp(f.merit.curvature(t), axis=0).any():
                continue
        yield h, X, D


@statement("Le_formulation_gradient_f", "Section 3.1, Lemma 3.1", assumes=EVERY,
    known_by="algebra", says="(11) is the gradient of the penalty function.")
def gradient() -> Margins:
    for h, X, D in smooth_lines(5):
        slope = inner(h.gradient(X), D)
        yield equal(along(h.value, X, D), slope, norm(h.gradient(X)) * norm(D) + abs(h.value(X)))


@statement("Le_inner_nablah_XQ", "Section 3.1, Lemma 3.2", assumes=EVERY + ", symmetric Q that commutes with C",
    known_by="algebra", says="<XQ, grad h(X)> = tr((beta C (C + I) - 3/2 Lambda) (C - I) Q).")
def inner_product() -> Margins:
    for _, h, X, rng in points(somewhere, 6, **ANYWHERE):
        C, G = h.constraint(X), dissolved_gradient(h, X)
        Q = commuting(C, rng)
        factor = h.beta * C @ (C + eye_like(C)) - 1.5 * sym(X.T @ G)
        stated = float(np.trace(factor @ (C - eye_like(C)) @ Q))
        yield equal(inner(X @ Q, h.gradient(X)), stated, norm(X @ Q) * (norm(G) + h.beta * norm(h.M @ X)))


def commuting(C: Array, rng: Generator) -> Array:
    """A random symmetric matrix that commutes with C."""
    vectors = np.linalg.eigh(C)[1]
    return (vectors * rng.standard_normal(len(C))) @ vectors.T


@statement("eq:normgraf", "Section 3.1, equation (13)", assumes=BLANKET,
    says="||grad f(X)|| <= L_g ||X|| + L_0, with equality for linear f.")
def growth_of_the_gradient() -> Margins:
    """``grad f`` moves by at most ``L_g ||X||`` from ``grad f(0)``."""
    for case, rng in instances(COUNT, 8):
        X = rng.standard_normal((case.n, case.p)) * 10 ** rng.uniform(-3, 3)
        yield case, at_most(norm(case.h.problem.gradient(X)), case.L_g * norm(X) + case.L_0)


@statement("le:normg", "Section 3.1, Lemma 3.3", assumes=BLANKET,
    says="||G(X)|| <= L_g (3/2 + sigma_max(C)/2) ||X|| + L_0, with equality for linear f.")
def growth_of_g() -> Margins:
    """By eq:normgraf at ``A(X) = X (3I - C)/2``."""
    for case, h, X, rng in points(somewhere, 9):
        X *= 10 ** rng.uniform(-2, 2)
        sigma = norm(h.constraint(X), 2)
        yield case, at_most(norm(dissolved_gradient(h, X)), case.L_g * (1.5 + sigma / 2) * norm(X) + case.L_0)


@statement("Le_formulation_hessian_h", "Section 3.1, Lemma 3.5, last term", assumes=EVERY + ", Assumption 3.4",
    known_by="algebra", says="(16) is the Hessian of the penalty function.",
    printed="4 beta M X Psi(X'MD) X'MX",
    corrected="2 beta M X (Psi(X'MD) X'MX + X'MX Psi(X'MD)); they agree where these commute, as in the proofs",
    severity="wrong formula", counterexample=counterexamples.hessian_last_term)
def hessian() -> Margins:
    for h, X, D in smooth_lines(10):
        H = h.hessian(X, D)
        yield equal(along(h.gradient, X, D), H, norm(H) + norm(h.gradient(X)))


def printed_hessian(h: Penalty, X: Array, D: Array) -> Array:
    """eq:hessh as printed, with the last term ``4 beta M X Psi(X'MD) C``."""
    C, S = h.constraint(X), sym(X.T @ h.M @ D)
    return h.hessian(X, D) + 2 * h.M @ X @ (S @ C - C @ S) * h.beta


@statement("eq:hessh, uses", "Section 3, proofs",
    assumes="Assumption 3.4, X feasible, or D = X v v' with an eigenvector v of C",
    known_by="algebra", says="The printed Hessian is right where the proofs use it.")
def printed_hessian_in_use() -> Margins:
    for case, h, X, rng in points(feasible, 11):
        Z = in_omega(h.M, case.p, rng)
        v = np.linalg.eigh(h.constraint(Z))[1][:, :1]
        for point, D in ((X, rng.standard_normal(X.shape)), (Z, Z @ v @ v.T)):
            H = h.hessian(point, D)
            yield equal(printed_hessian(h, point, D), H, norm(H) + h.beta * case.spectrum[1] * norm(point))


@statement("eq:GD", "Section 3.1, equation (17)", assumes=EVERY + ", Assumption 3.4",
    known_by="algebra", says="J_G(X)[D] is the derivative of G.")
def derivative_of_g() -> Margins:
    for h, X, D in smooth_lines(12):
        J = dissolved_derivative(h, X, D)
        yield equal(along(partial(dissolved_gradient, h), X, D), J, norm(J) + norm(dissolved_gradient(h, X)))


def dissolved_gradient(h: Penalty, X: Array) -> Array:
    """``G(X) = grad f(A(X))`` (eq:defgG)."""
    return h.problem.gradient(h.dissolve(X))


def dissolved_derivative(h: Penalty, X: Array, D: Array) -> Array:
    """``J_G(X)[D]`` (eq:GD)."""
    moved = D @ dissolving_factor(h.constraint(X)) - X @ sym(X.T @ h.M @ D)
    return h.problem.hessian(h.dissolve(X), moved)


@statement("le:normj", "Section 3.1, Lemma 3.6", assumes=SMOOTH + ", X in Omega",
    says="||J_G(X)[D]|| <= (2 + kappa) L_g ||D||.")
def bound_on_the_derivative_of_g() -> Margins:
    """``T(D) = DQ(C) - Z Psi(Z'D)`` with ``Z = M^(1/2) X`` is symmetric, of norm at most 3/2 where ``C <= I``.

    Let c_i be the eigenvalues of C.  Those of T are ``(3 - c_j)/2`` off the range of Z, and in it
    ``(3 - c_i - c_j +- (c_i c_j)^(1/2))/2``.  From D to M^(1/2) D and back costs kappa^(1/2).
    """
    yield "Even 3/2 kappa^(1/2) serves, which is sharp for kappa = 1"
    for case, h, X, rng in points(in_omega, 13, kinds=CURVED):
        low, high = case.spectrum
        D = rng.standard_normal(X.shape)
        J, size, kappa = norm(dissolved_derivative(h, X, D)), case.L_g * norm(D), high / low
        yield case, at_most(J, (2 + kappa) * size)
        yield at_most(J, 1.5 * kappa**0.5 * size, claim="the sharper constant serves")


@statement("eq:normlambda", "Section 3.2, equation (23), last two lines", assumes=BLANKET,
    says="sigma_max(X'G(X)) is at most the printed bound.",
    printed="a bound in sigma_max(X'MX), also used where it is below 1",
    corrected="the same bound at max(sigma_max(X'MX), 1)",
    severity="gap in proof", counterexample=counterexamples.inner_bound_inside)
def bound_on_the_multiplier() -> Margins:
    """By le:normg, ``sigma_max(X)^2 <= sigma/s``, ``||X|| <= p sigma_max(X)`` and ``sigma^(1/2) <= max(sigma, 1)``."""
    for case, h, X, rng in points(somewhere, 14):
        X *= 10 ** rng.uniform(-1, 1)
        if rng.random() < 0.5:  # the bound is tight at sigma_max = 1
            X = X / norm(h.constraint(X), 2) ** 0.5
        sigma = max(norm(h.constraint(X), 2), 1.0)
        yield case, at_most(norm(X.T @ dissolved_gradient(h, X), 2), multiplier_bound(case, sigma))


def multiplier_bound(case: Instance, sigma: float = 1.0) -> float:
    """The last line of eq:normlambda at ``sigma = sigma_max(X'MX)``."""
    p, L_g, s = case.p, case.L_g, case.spectrum[0]
    linear = (3 * p * L_g + 2 * case.L_0 * s**0.5) / (2 * s)
    return linear * sigma + p * L_g / (2 * s) * sigma**2
