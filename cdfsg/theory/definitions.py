"""Section 2: tangent and normal space, and what a stationary point is."""
# fmt: off: in a statement's decorator a line is one part of the words

from collections.abc import Iterator

import numpy as np

from cdfsg.linalg import sym
from cdfsg.penalty import Penalty
from cdfsg.problems import Quadratic
from cdfsg.theory import counterexamples
from cdfsg.theory.instances import COUNT, feasible, instances, points
from cdfsg.theory.statement import BLANKET, Margin, equal, inner, norm, statement
from cdfsg.theory.stationary import quadratic_minimiser


@statement("eq:nx", place="Section 2, eq:tx and eq:nx", assumes="M > 0, X feasible",
           says="Each D is the sum of its tangent and its normal part, which are orthogonal with M.")
def tangent_and_normal_space() -> Iterator[Margin]:
    for case, rng in instances(COUNT, 1):
        M = case.h.M
        X = feasible(M, case.p, rng)
        D = rng.standard_normal(X.shape)
        N = X @ sym(X.T @ M @ D)
        T = D - N
        scale = norm(X.T @ M @ D) + 1
        yield equal(sym(T.T @ M @ X), 0, scale), equal(inner(T, M @ N), 0, scale**2)


@statement("def:ocso", place="Section 2, def:ocso, second-order condition",
           assumes="quadratic f, X a global minimiser",
           says="Second-order stationary points of the problem.",
           printed="<D, M^-1 hess f(X)[T] - T X' grad f(X)> >= 0",
           corrected="<T, hess f(X)[T] - M T X' grad f(X)> >= 0",
           severity="wrong formula", counterexample=counterexamples.second_order_condition)
def second_order_points() -> Iterator[Margin]:
    for case, rng in instances(COUNT, 2, kinds=("quadratic", "identity")):
        M, f = case.h.M, case.h.problem
        X = quadratic_minimiser(case)
        D = rng.standard_normal(X.shape)
        T = D - X @ sym(X.T @ M @ D)
        form = inner(T, f.hessian(X, T) - M @ T @ (X.T @ f.gradient(X)))
        yield min(0.0, form) / (f.lipschitz * inner(D, D) * case.spectrum[1] / case.spectrum[0])


@statement("def:occd", place="Section 2, def:occd, c-saddle point", assumes="f = 0, X feasible",
           says="A c-saddle point of h has a direction of curvature at most -c |D|^2.",
           printed="there is a direction D",
           corrected="there is a direction D != 0; across the feasible set the barrier has none",
           severity="typo", counterexample=counterexamples.saddle_without_direction)
def saddle_points() -> Iterator[Margin]:
    for case, rng in instances(COUNT, 3, kinds=("linear",), shapes=((1, 1), (2, 2), (3, 3)), conditions=(1.0, 10.0)):
        barrier = Penalty(Quadratic(np.zeros_like(case.h.M)), case.h.M, case.h.beta)
        X = feasible(case.h.M, case.p, rng)
        N = X @ sym(rng.standard_normal((case.p, case.p)))
        yield inner(N, barrier.hessian(X, N)) / (barrier.beta * inner(N, N) * case.spectrum[1])


@statement("eq:epfos", place="Section 2, eq:epfos", assumes=BLANKET,
           says="Approximate first-order stationary points; the measure vanishes at stationary points.",
           printed="||f(X) - M X Psi(X' grad f(X))|| <= eps",
           corrected="||grad f(X) - M X Psi(X' grad f(X))|| <= eps",
           severity="typo", counterexample=counterexamples.approximate_stationarity)
def approximate_points() -> Iterator[Margin]:
    for case, h, X, _ in points(feasible, instances(COUNT, 4)):
        low, high = case.spectrum
        yield equal(sym(X.T @ h.lagrangian_gradient(X)), 0, norm(X) * norm(h.problem.gradient(X)))
        if case.kind in ("quadratic", "identity"):
            Z = quadratic_minimiser(case)
            yield equal(h.lagrangian_gradient(Z), 0, norm(h.problem.gradient(Z)) * high / low)
