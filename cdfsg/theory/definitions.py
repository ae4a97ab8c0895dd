"""Section 2: tangent and normal space, and what a stationary point is."""

import numpy as np
from scipy.linalg import eigh

from cdfsg.linalg import Array, sym
from cdfsg.penalty import Penalty
from cdfsg.problems import Quadratic
from cdfsg.theory import counterexamples
from cdfsg.theory.check import Check, Statement, Tally, concluded, error
from cdfsg.theory.instances import COUNT, Instance, feasible, instances


def tangent_and_normal_space_sum_directly() -> Check:
    """eq:tx and eq:nx: every D is T + XS with ``Psi(T'MX) = 0``, and ``<T, M X S> = 0``."""
    tally = Tally()
    for case, rng in instances(COUNT, 1):
        M = case.penalty.M
        X = feasible(M, case.p, rng)
        D = rng.standard_normal(X.shape)
        N = X @ sym(X.T @ M @ D)
        T = D - N
        scale = float(np.linalg.norm(X.T @ M @ D)) + 1
        tally.add(error(float(np.linalg.norm(sym(T.T @ M @ X))), scale), error(float(np.vdot(T, M @ N)), scale**2))
    return concluded("eq:nx", "each D is the sum of its tangent and its normal part, orthogonal with M", tally)


def second_order_points_use_the_tangent_direction() -> Check:
    """Def. 2.1: with ``<T, hess f[T] - M T X' grad f> >= 0`` the global minimisers of quadratics pass."""
    tally = Tally()
    for case, rng in instances(COUNT, 2, kinds=("quadratic", "identity")):
        M, problem = case.penalty.M, case.penalty.problem
        X = quadratic_minimiser(case)
        D = rng.standard_normal(X.shape)
        T = D - X @ sym(X.T @ M @ D)
        multiplier = X.T @ problem.gradient(X)
        form = float(np.vdot(T, problem.hessian(X, T) - M @ T @ multiplier))
        scale = problem.lipschitz * float(np.vdot(D, D)) * case.spectrum[1] / case.spectrum[0]
        tally.add(min(0.0, form) / scale)
    says = "<T, hess f(X)[T] - M T X' grad f(X)> >= 0 on the tangent space holds at minimisers"
    return concluded("def:ocso", says, tally, counterexamples.second_order_condition())


def quadratic_minimiser(case: Instance) -> Array:
    """Minimiser of a quadratic f over ``X'MX = I``: the lowest p eigenvectors of the pencil, shape (n, p)."""
    A = case.penalty.problem.hessian(np.zeros((case.n, case.n)), np.eye(case.n))
    X: Array = eigh(sym(A), case.penalty.M)[1][:, : case.p]
    return X


def saddles_need_a_direction() -> Check:
    """Def. 2.2: with ``D != 0``, a strict minimiser of h is no c-saddle point (f = 0, so the barrier alone)."""
    tally = Tally()
    for case, rng in instances(COUNT, 3, kinds=("linear",), shapes=((1, 1), (2, 2), (3, 3)), conditions=(1.0, 10.0)):
        barrier = Penalty(Quadratic(np.zeros_like(case.penalty.M)), case.penalty.M, case.penalty.beta)
        X = feasible(case.penalty.M, case.p, rng)
        N = X @ sym(rng.standard_normal((case.p, case.p)))
        curvature = float(np.vdot(N, barrier.hessian(X, N)))
        tally.add(curvature / (barrier.beta * float(np.vdot(N, N)) * case.spectrum[1]))
    says = "a direction D != 0 of curvature at most -c |D|^2; the barrier has none across the feasible set"
    return concluded("def:occd", says, tally, counterexamples.saddle_without_direction())


def approximate_points_are_measured_by_the_gradient() -> Check:
    """eq:epfos with grad f: ``L(X)`` is tangent at feasible X, and vanishes at stationary points."""
    tally = Tally()
    for case, rng in instances(COUNT, 4):
        h = case.penalty
        X = feasible(h.M, case.p, rng)
        L = h.lagrangian_gradient(X)
        scale = float(np.linalg.norm(X) * np.linalg.norm(h.problem.gradient(X)))
        tally.add(error(float(np.linalg.norm(sym(X.T @ L))), scale))
        if case.kind in ("quadratic", "identity"):
            Z = quadratic_minimiser(case)
            scale = float(np.linalg.norm(h.problem.gradient(Z))) * case.spectrum[1] / case.spectrum[0]
            tally.add(error(float(np.linalg.norm(h.lagrangian_gradient(Z))), scale))
    says = "||grad f - M X Psi(X' grad f)|| <= eps and ||X'MX - I|| <= eps: zero at stationary points"
    return concluded("eq:epfos", says, tally, counterexamples.approximate_stationarity())


CHECKS: tuple[Statement, ...] = (
    tangent_and_normal_space_sum_directly,
    second_order_points_use_the_tangent_direction,
    saddles_need_a_direction,
    approximate_points_are_measured_by_the_gradient,
)
