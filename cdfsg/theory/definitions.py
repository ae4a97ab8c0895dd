"""Section 2: tangent and normal space, and what a stationary point is."""

import numpy as np

from cdfsg.linalg import sym
from cdfsg.penalty import Penalty
from cdfsg.problems import Quadratic
from cdfsg.theory import counterexamples
from cdfsg.theory.derivatives import along
from cdfsg.theory.instances import COUNT, QUADRATICS, feasible, instances, parts_of, points
from cdfsg.theory.statement import BLANKET, Margins, at_most, equal, inner, norm, statement
from cdfsg.theory.stationary import quadratic_minimiser


@statement("eq:tx", "Section 2.1, equation (3)", assumes="M > 0, X feasible",
    says="The tangent space of the feasible set at X is {D: Psi(D'MX) = 0}.")
def tangent_space() -> Margins:
    """The derivative of C along D is ``2 Psi(D'MX)``, which is onto S^p, as ``D = XS`` shows."""
    for case, h, X, rng in points(feasible, 26):
        D, S = rng.standard_normal(X.shape), sym(rng.standard_normal((case.p, case.p)))
        yield (equal(along(h.constraint, X, D), 2 * sym(D.T @ h.M @ X), norm(D) * norm(h.M @ X) + norm(D) ** 2),
               equal(sym((X @ S).T @ h.M @ X), S, norm(S)))


@statement("eq:nx", "Section 2.1, equation (4)", assumes="M > 0, X feasible",
    says="Each D is the sum of its tangent and its normal part, which are orthogonal.",
    printed="{XS}, for the inner product tr(X'Y)",
    corrected="{XS} for the inner product tr(X'MY), and {MXS} for tr(X'Y); the proofs need the sum alone",
    severity="wrong formula", counterexample=counterexamples.normal_space)
def tangent_and_normal_space() -> Margins:
    """For ``T = D - XS``, ``S = Psi(X'MD)``: ``Psi(X'MT) = S - S = 0``, and ``<T, MXS> = tr(Psi(T'MX) S) = 0``."""
    for _, h, X, rng in points(feasible, 1):
        D = rng.standard_normal(X.shape)
        T, S = parts_of(h.M, X, D)
        scale = norm(X.T @ h.M @ D) + 1
        yield equal(sym(T.T @ h.M @ X), 0, scale), equal(inner(T, h.M @ (X @ S)), 0, scale**2)


@statement("def:ocso", "Section 2.2, Definition 2.1", assumes="quadratic f, X a global minimiser",
    known_by="search", says="A global minimiser meets the second-order condition of the definition.",
    printed="<D, M^-1 hess f(X)[T] - T X' grad f(X)> >= 0",
    corrected="<T, hess f(X)[T] - M T X' grad f(X)> >= 0",
    severity="wrong formula", counterexample=counterexamples.second_order_condition)
def second_order_points() -> Margins:
    for case, rng in instances(COUNT, 2, kinds=QUADRATICS):
        M, f = case.h.M, case.h.problem
        X = quadratic_minimiser(case)
        D = rng.standard_normal(X.shape)
        T, _ = parts_of(M, X, D)
        form = inner(T, f.hessian(X, T) - M @ T @ (X.T @ f.gradient(X)))
        yield case, at_most(0.0, form, case.L_g * inner(D, D) * case.spectrum[1] / case.spectrum[0])


@statement("def:occd", "Section 2.2, Definition 2.2", assumes="f = 0, X feasible",
    says="A c-saddle point of h has a direction of curvature at most -c |D|^2.",
    printed="there is a direction D",
    corrected="there is a direction D != 0; across the feasible set the barrier has none",
    severity="typo", counterexample=counterexamples.saddle_without_direction)
def saddle_points() -> Margins:
    """The barrier's curvature at feasible X is ``4 beta |Psi(X'MD)|^2 >= 0``."""
    shapes = ((1, 1), (2, 2), (3, 3))
    for case, rng in instances(COUNT, 3, kinds=("linear",), shapes=shapes, conditions=(1.0, 10.0)):
        M = case.h.M
        barrier = Penalty(Quadratic(np.zeros_like(M)), M, case.h.beta)
        X = feasible(M, case.p, rng)
        N = X @ sym(rng.standard_normal((case.p, case.p)))
        size = inner(N, M @ N)
        yield case, equal(inner(N, barrier.hessian(X, N)), 4 * case.h.beta * size, case.h.beta * size)


@statement("eq:epfos", "Section 2.2, Definition 2.3", assumes=BLANKET,
    says="The measure of stationarity in (10) vanishes at stationary points of the problem.",
    printed="||f(X) - M X Psi(X' grad f(X))|| <= eps",
    corrected="||grad f(X) - M X Psi(X' grad f(X))|| <= eps",
    severity="typo", counterexample=counterexamples.approximate_stationarity)
def approximate_points() -> Margins:
    """``X'L(X)`` is the skew part of ``X' grad f(X)``; at a minimiser ``AX = MX (X'AX)``."""
    for case, h, X, _ in points(feasible, 4):
        low, high = case.spectrum
        yield equal(sym(X.T @ h.lagrangian_gradient(X)), 0, norm(X) * norm(h.problem.gradient(X)))
        if case.kind in QUADRATICS:
            Z = quadratic_minimiser(case)
            yield equal(h.lagrangian_gradient(Z), 0, norm(h.problem.gradient(Z)) * high / low)
