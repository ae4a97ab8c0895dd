"""Identities of Sections 3 and 4 for generic small n and p by computer algebra: entries are polynomials over Q.

The derivatives of h at X know f by its value, gradient and Hessian at A(X) alone, and linear together with quadratic f
have every gradient and Hessian there.  So an identity that holds for all of these holds for every f of class C^2.
"""

from functools import cache

import numpy as np
import pytest
from sympy import QQ, ring

from cdfsg.linalg import sym
from cdfsg.penalty import Penalty
from cdfsg.theory import statements
from cdfsg.theory.derivatives import dissolved_derivative, dissolved_gradient, printed_hessian
from cdfsg.theory.near_feasible import dissolved_part

proved = set()


def proves(*labels):
    """Run a test for some n and p, and note which statements it proves for them."""
    proved.update(labels)
    return pytest.mark.parametrize("n, p", [(1, 1), (2, 1), (2, 2), (3, 2)])


class Generic(Penalty):
    """h with polynomials for entries, which no validation understands."""

    def __post_init__(self):
        pass


class SecondOrder:
    """``f(Z) = <B, Z> + <Z, A[Z]> / 2`` with a symmetric A on the entries of Z in C order."""

    def __init__(self, A, B):
        self.A, self.B = A, B

    def value(self, Z):
        return np.sum(self.B * Z) + np.sum(Z * self.hessian(None, Z)) / 2

    def gradient(self, Z):
        return self.B + self.hessian(None, Z)

    def hessian(self, _, D):
        return (self.A @ D.reshape(-1)).reshape(D.shape)


@cache
def generic(n, p):
    """A generic h, X, D and symmetric Y, and a function for the derivative of a polynomial of X along D."""
    sizes = {"x": n * p, "d": n * p, "b": n * p, "a": (n * p) * (n * p + 1) // 2, "m": n * (n + 1) // 2,
             "y": p * (p + 1) // 2, "beta": 1}  # fmt: skip
    R, *letters = ring([f"{name}{i}" for name, count in sizes.items() for i in range(count)], QQ)
    taken = iter(letters)
    x, d, b, a, m, y, (beta,) = ([next(taken) for _ in range(count)] for count in sizes.values())
    X, D, B = (np.array(entries, dtype=object).reshape(n, p) for entries in (x, d, b))
    beta = np.array(beta, dtype=object)  # a polynomial does not know how to multiply an array from the left
    h = Generic(SecondOrder(symmetric(a, n * p), B), symmetric(m, n), beta)

    def along(value):
        return sum((value.diff(entry) * step for entry, step in zip(x, d, strict=True)), R.zero)

    return h, X, D, symmetric(y, p), along


def symmetric(entries, n):
    S = np.empty((n, n), dtype=object)
    S[np.triu_indices(n)] = entries
    S.T[np.triu_indices(n)] = entries
    return S


def barrier(V):
    """``tr(V (V^2 - 3I))``."""
    return np.trace(V @ V @ V) - 3 * np.trace(V)


def value(h, U, V):
    """``H(U, V)`` of eq:H with ``V^2 - 3I``; h is ``H(X, X'MX)``, as in (CDFCP)."""
    return h.problem.value((3 * U - U @ V) / 2) + h.beta * barrier(V) / 6


def is_zero(polynomials):
    return all(entry == 0 for entry in np.ravel(polynomials))


@proves("Le_formulation_gradient_f", "eq:H")
def test_eq_gradh_is_the_gradient_of_cdfcp(n, p):
    h, X, D, _, along = generic(n, p)
    assert is_zero(along(value(h, X, X.T @ h.M @ X)) - np.sum(h.gradient(X) * D))


@proves("Le_formulation_hessian_h", "eq:hessh, uses")
def test_the_corrected_eq_hessh_is_the_derivative_of_the_gradient_and_the_printed_one_is_off_by_a_commutator(n, p):
    h, X, D, _, along = generic(n, p)
    H = h.hessian(X, D)
    assert is_zero([along(entry) for entry in h.gradient(X).ravel()] - H.ravel())
    C, S = X.T @ h.M @ X, sym(X.T @ h.M @ D)
    gap = printed_hessian(h, X, D) - H
    assert is_zero(gap - 2 * h.M @ X @ (S @ C - C @ S) * h.beta) and is_zero(gap) == (p == 1)


@proves("eq:GD")
def test_eq_GD_is_the_derivative_of_G(n, p):
    h, X, D, _, along = generic(n, p)
    assert is_zero([along(entry) for entry in dissolved_gradient(h, X).ravel()] - dissolved_derivative(h, X, D).ravel())


@proves("W")
def test_W_is_the_derivative_of_H_through_both_arguments_and_the_gradient_of_h_at_Y_equal_to_C(n, p):
    h, X, D, Y, along = generic(n, p)
    C = X.T @ h.M @ X
    moved = along(value(h, X, Y + C))  # the value at which Y + C is the symmetric V of H
    assert is_zero(moved - np.sum(h.direction(X, Y + C) * D))
    assert is_zero(h.direction(X, C) - h.gradient(X))


@proves("Le_inner_nablah_XQ", "eq:sta2")
def test_the_lemma_on_the_gradient_along_XQ_holds_for_every_Q_that_commutes_with_C(n, p):
    h, X, _, _, _ = generic(n, p)
    C, one, Lam = X.T @ h.M @ X, np.eye(p, dtype=int), sym(X.T @ dissolved_gradient(h, X))
    factor = (C @ (C + one) * h.beta - 3 * Lam / 2) @ (C - one)
    for Q in (one, C):  # for p <= 2 these span what commutes with a generic C
        assert is_zero(np.sum(X @ Q * h.gradient(X)) - np.trace(factor @ Q))
        assert is_zero(np.sum(X @ Q * dissolved_part(h, X)) + 3 * np.trace(Lam @ (C - one) @ Q) / 2)


@proves("th:star_bx, proof")
def test_the_difference_of_grad_g_and_L_is_the_corrected_first_line_of_the_proof(n, p):
    h, X, _, _, _ = generic(n, p)
    C, G, slope = X.T @ h.M @ X, dissolved_gradient(h, X), h.problem.gradient(X)
    line = G - slope - G @ (C - np.eye(p, dtype=int)) / 2 - h.M @ X @ sym(X.T @ (G - slope))
    assert is_zero(dissolved_part(h, X) - h.lagrangian_gradient(X) - line)


def test_the_statements_known_by_algebra_are_those_that_are_proved_here():
    assert proved == {entry.label for entry in statements.EVERY if entry.known_by == "algebra"}
