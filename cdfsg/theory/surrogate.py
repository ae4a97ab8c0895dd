"""The beginning of Section 4: the function H of two arguments and the direction W of the algorithms."""

from functools import partial

import numpy as np

from cdfsg.linalg import Array, sym
from cdfsg.penalty import Penalty
from cdfsg.theory import counterexamples
from cdfsg.theory.check import Check, Statement, Tally, concluded, error
from cdfsg.theory.derivatives import derivative
from cdfsg.theory.instances import COUNT, any_instances, somewhere


def surrogate_agrees_with_h() -> Check:
    """eq:nest with ``V (V^2 - 3I)`` in H: ``H(X, C(X)) = h(X)``."""
    tally = Tally()
    for case, rng in any_instances(COUNT, 15):
        h = case.penalty
        X = somewhere(h.M, case.p, rng)
        value = h.value(X)
        tally.add(error(h.surrogate(X, h.constraint(X)) - value, abs(value) + h.beta))
    return concluded("eq:H", "with V (V^2 - 3I), H(X, C(X)) = h(X)", tally, counterexamples.surrogate_minimiser())


def direction_is_the_derivative_of_the_surrogate() -> Check:
    """W: the derivative of H through both arguments, for Y far from C(X), and grad h at ``Y = C(X)``."""
    tally = Tally()
    for case, rng in any_instances(COUNT, 16, kinds=("quadratic", "linear", "sines", "identity")):
        h = case.penalty
        X, D = somewhere(h.M, case.p, rng), somewhere(h.M, case.p, rng)
        C = h.constraint(X)
        Y = sym(rng.standard_normal(C.shape))
        towards = 2 * sym(X.T @ h.M @ D)  # the derivative of C along D
        quotient = derivative(partial(_surrogate_along, h, (X, Y), (D, towards)))
        W = h.direction(X, Y)
        scale = float(np.linalg.norm(W) * np.linalg.norm(D)) + abs(h.surrogate(X, Y))
        tally.add(error(float(quotient) - float(np.vdot(W, D)), scale))
        gap = float(np.linalg.norm(h.direction(X, C) - h.gradient(X)))
        tally.add(error(gap, float(np.linalg.norm(h.gradient(X))) + h.beta * float(np.linalg.norm(h.M @ X))))
    return concluded("W", "W is the derivative of H through both arguments, and W(X, C(X)) = grad h(X)", tally)


def _surrogate_along(h: Penalty, start: tuple[Array, Array], towards: tuple[Array, Array], t: float) -> float:
    return h.surrogate(start[0] + t * towards[0], start[1] + t * towards[1])


CHECKS: tuple[Statement, ...] = (
    surrogate_agrees_with_h,
    direction_is_the_derivative_of_the_surrogate,
)
