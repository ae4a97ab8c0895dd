"""The misprints of the errata sheet, evaluated without a formula of the package: only numpy, mpmath and fractions.

Each function shows that the printed form is wrong and, where it is a formula, that the corrected one is right on the
same instance.  Counterexamples are code already (`test_statements`); two that stand alone are shown a second time, by
the definitions: difference quotients, and intervals.
"""

import tomllib
from fractions import Fraction
from itertools import product
from math import sqrt

import numpy as np
import pytest
from mpmath import iv
from numpy import eye, trace
from numpy.linalg import norm
from numpy.polynomial import Polynomial

from cdfsg.files import PAPER

I = eye(2)  # noqa: E741
x = Polynomial([0.0, 1.0])
shown = {}


def shows(place):
    """Register a function by the place that the errata sheet names."""

    def register(function):
        assert place not in shown
        shown[place] = function
        return function

    return register


def sym(a):
    return (a + a.T) / 2


def barrier(X, M, beta=1.0):
    C = X.T @ M @ X
    return beta / 6 * trace(C @ (C @ C - 3 * eye(len(C))))


def h1(f, m=1.0, beta=0.0):
    """h for n = p = 1 and a polynomial f."""
    return f((3 * x - m * x**3) / 2) + beta / 6 * (m**3 * x**6 - 3 * m * x**2)


def slope(function, X, D, step=1e-4):
    return (function(X + step * D) - function(X - step * D)) / (2 * step)


def gradient(function, X):
    units = np.eye(X.size).reshape(-1, *X.shape)
    return np.array([slope(function, X, unit) for unit in units]).reshape(X.shape)


# --- Sections 1 and 2


@shows("Section 1, Assumption 1.1 (3)")
def _():
    M, rng = np.array([[1.0, 1.0], [-1.0, 1.0]]), np.random.default_rng(0)
    for X in rng.standard_normal((50, 2, 2)):
        C = X.T @ M @ X
        assert X[:, 0] @ M @ X[:, 0] == pytest.approx(X[:, 0] @ X[:, 0])
        np.testing.assert_allclose((C - C.T) / 2, np.linalg.det(X) * np.array([[0, 1], [-1, 0]]), atol=1e-12)
    # A singular X has a singular C, and C = I is neither skew nor singular.


@shows("Section 2.1, condition number")
def _():
    M = np.diag([1.0, 4.0])
    assert np.linalg.cond(I) == 1 and np.linalg.cond(M) == 4


@shows("Section 2.1, equation (5)")
def _():
    M, X = np.diag([1.0, 4.0]), np.diag([1.0, 0.5])
    for t in (1e-3, 1e-9):
        assert norm((1 + t) ** 2 * X.T @ M @ X, 2) == pytest.approx((1 + t) ** 2) and (1 + t) ** 2 > 1


# --- Section 3


@shows("Section 3.1, Lemma 3.2, proof, last line")
def _():
    left = 2 * h1(0 * x, beta=1.0).deriv()(2)  # <x, grad h>, f = 0, C = 4
    assert left == 4 * (4 + 1) * (4 - 1) != 4 * (4 + 1) * (4 + 1)


@shows("Section 3.1, Lemma 3.6, proof, step (ii)")
def _():
    X, D = np.diag([1, 0.5]), np.array([[0, 0], [2.0, 0]])  # M = I, X in Omega
    assert norm(X @ sym(X.T @ D)) ** 2 == pytest.approx(5 / 16) and norm(X @ X.T @ D) ** 2 == 1 / 4
    assert norm(X @ sym(X.T @ D)) <= norm(D)


@shows("Section 3.1, beta~")
def _():
    for p, L_g, L_0, s, kappa in product((1, 3), (0, 1), (0, 2), (Fraction(1, 9), 4), (1, 10)):
        root = Fraction(1, 3) if s < 1 else 2
        equality = 12 * kappa * (3 * (p + 1) * L_g + root * L_0) / Fraction(s)
        last = equality - (9 * p * L_g + 6 * root * L_0) / (4 * Fraction(s))
        assert last >= (135 * p * L_g + 42 * root * L_0) / (4 * Fraction(s)) and (last > 0 or L_g == L_0 == 0)


@shows("Section 3.2, Theorem 3.9, proof")
def _():
    s, p, L_g, L_0 = 0.25, 1, 0, 1  # f = x, M = s
    point = s**-0.5
    assert 2 * p * L_g + sqrt(s) * L_0 < point * 1 <= (2 * p * L_g + sqrt(s) * L_0) / s


@shows("Section 3.2, Proposition 3.10, words")
def _():
    h = h1(0 * x, 4.0, 1.0)
    assert 4 * 0.5**2 == 1 != 0.5**2 and h.deriv()(0.5) == 0 < h.deriv(2)(0.5)


@shows("Section 3.3, Lemma 3.13, proof, before step (i)")
def _():
    slope_of_f, S = np.diag([1, 0]), np.diag([0, 1])  # f = X_11, M = X = I
    assert trace(S @ S @ slope_of_f) == 0 < norm(slope_of_f, 2) * norm(S) ** 2


@shows("Section 3.3, Lemma 3.13, proof, curvature along N = XS")
def _():
    assert ((3 * x - x**3) / 2).deriv()(1) == 0 != 1  # G = A, as f = x^2/2


@shows("Section 3.4, equation (34), first line")
def _():
    grad_h, step = h1(0 * x, beta=1.0).deriv()(2), 1 * 2 * (16 - 1)  # beta M x (C^2 - 1)
    assert (2 * grad_h, 2 * step) == (60, 60) and 2 * grad_h - 2 * step == 0 != 2 * grad_h + 2 * step


# --- Section 4.1


@shows("Section 4.1, before equation (38)")
def _():
    m, point = (Fraction(1, 2), Fraction(3, 2), Fraction(4)), Fraction(2)  # f = 0, beta = 1
    M = sum(m) / 3
    mean = sum(a * point * (b * point**2 * c * point**2 - 1) for a, b, c in product(m, repeat=3)) / 27
    assert mean == M * point * ((M * point**2) ** 2 - 1)


@shows("Section 4.1, Algorithm 1, output")
def _():
    points = [0.01]
    for _ in range(16):  # h' = x^5 - x, and no noise
        points.append(points[-1] - 0.25 * (points[-1] ** 5 - points[-1]))
    squares = (np.array(points) ** 5 - points) ** 2
    assert squares[16] > 5 * squares[:16].mean() and squares[16] == squares.max()


@shows("Section 4.1, Assumption 4.1 (4)")
def _():
    for tau_d in np.geomspace(1e-9, 1e9, 50):
        tau_y = 1 * 1 * (1 + 2 * 2 * tau_d)
        assert tau_y**2 - 1 == pytest.approx(8 * tau_d + 16 * tau_d**2, rel=1e-4) and 8 * tau_d > tau_d
    for b in (0.01, 0.5, 1):  # the bound of Y in its place, at its worst: x = 1 at k even, else 0, M_theta = 1 or 0
        y, largest = 0.0, 0.0
        for k in range(2000):
            new, old = (1 - k % 2, k % 2)
            y += -b * (y - new * old**2) + new * (new**2 - old**2)  # theta is 1 where x rises
            largest = max(largest, abs(y))
        assert largest <= 1 + 4 / b and largest > 0.1 / b


@shows("Section 4.1, Proposition 4.4 in Algorithm 2")
def _():
    point = y = B = V = 0.0
    points, directions = [], []
    for m, c in ((0.25, -1e-3), (0.25, 1e-3), (0, -1e-3), (0.25, 1e-3)):
        before, point = point, point - 1.0 * B / sqrt(1e-12 + V)
        y = y - 0.5 * (y - m * before**2) + m * point**2 - m * before**2
        B = slope(lambda z, y=y, c=c: c * z * (3 - y) / 2, point, 1.0)  # grad_U H, f_xi = c x
        B += 2 * m * point * slope(lambda v, x=point, c=c: c * x * (3 - v) / 2 + 1e-3 / 6 * (v**3 - 3 * v), y, 1.0)
        V = max(V, B**2)  # eta = (0, 0)
        points.append(point), directions.append(abs(B))
    tau_x, tau_d = max(map(abs, points)), max(directions)
    assert tau_x * 0.25 * (tau_x + 2 * 2 * tau_d) < y - 0.03 < tau_x * 0.25 * (tau_x + 2 * 2 * 1)


@shows("Section 4.1, L_h and L_W")
def _():
    X = np.array([[1.0], [2.0]])
    quotient = gradient(lambda Z: barrier(Z, I), X) / norm(X)  # X_2 = 0
    assert quotient.shape == (2, 1) and norm(quotient) > 0


@shows("Section 4.1, Proposition 4.5, proof")
def _():
    m, M, old, new = np.array([1, 3]), 2, 2, 3
    I_1, I_2, I_3 = M * old**2 - m * old**2, m * (new**2 - old**2), M * (new**2 - old**2)
    assert I_2.mean() == I_3 == 10 and I_1.mean() == 0 and old**2 * m.var() < np.mean(I_1**2) <= old**4 * m.var()


@shows("Section 4.1, Theorem 4.6, proof, expectations")
def _():
    D = np.array([1, -1])  # given F_{k-1}; F_k knows which
    assert D.mean() == 0 and not (D.mean() == D).any()


@shows("Section 4.1, Theorem 4.6, proof, sums")
def _():
    K, b = 1, [1, 1]
    assert sum(b[k] ** 2 for k in range(K)) == 1 != sum(b[k] ** 2 for k in range(K + 1))


@shows("Section 4.1, Theorem 4.6")
def _():
    """Interval arithmetic: h' of degree 5 is enclosed on 400 pieces of [0.35, 0.72], which no path leaves."""
    beta, outcomes, K = iv.mpf("0.05"), [iv.mpf(a) for a in ("2.001", "-0.999", "-0.999")], 10_000
    c, M, s1, s2 = -4 * beta * iv.mpf("0.7") ** 5 / 3, iv.mpf("0.001"), 2, 2 * iv.sqrt(K)
    low, high = iv.mpf("0.35"), iv.mpf("0.72")
    pieces = [low + (high - low) * iv.mpf([k, k + 1]) / 400 for k in range(400)]

    def W(z, m, y):
        return c * (3 - y) / 2 + m * z * (-c * z + beta * (y**2 - 1))

    moves = [(z, W(z, m, m * z**2)) for z in pieces for m in outcomes]  # b = 1: Y = m x^2
    assert all(low.b <= (z - s1 * D).a and (z - s1 * D).b <= high.a for z, D in moves)
    squared = min(abs(W(z, M, M * z**2)).a for z in pieces) ** 2
    tau_x, tau_m, tau_d = high, outcomes[0], max(abs(D).b for _, D in moves)
    tau_y = tau_x * tau_m * (tau_x + 2 * s1 * tau_d)
    wide = iv.mpf([-1, 1]) * tau_x
    L_h = abs(-beta * M - 3 * c * M * wide + 5 * beta * M**3 * wide**4)

    def h(z):
        C = M * z**2
        return c * z * (3 - C) / 2 + beta / 6 * (C**3 - 3 * C)

    far = 150  # beyond it h > 0: the barrier is larger than |f(A(x))|, and grows faster
    assert (beta / 6 * ((M * far**2) ** 3 - 3 * M * far**2) - abs(c) * far * (3 + M * far**2) / 2).a > 0
    least = min(h(iv.mpf([k, k + 1]) / 4).a for k in range(-4 * far, 4 * far))
    variance = sum((m - M) ** 2 for m in outcomes) / 3

    def bound(m, noise, drift):
        L_W = abs(c) / 2 + 2 * beta * m * tau_x * tau_y
        J_0 = h(iv.mpf("0.7")) - least + L_W**2 * iv.mpf("0.7") ** 4 * (tau_m - M) ** 2
        drifts = (drift * (L_W * tau_x * tau_m) ** 2 + L_h / 2) * s2 * tau_d**2
        return 2 / iv.sqrt(K) * (J_0 / s2 + noise * s2 / s1**2 * L_W**2 * tau_x**4 * variance + drifts)

    assert 5 * bound(M, iv.mpf(1) / 2, 4).b < squared < bound(tau_m, 2, 8).a


@shows("Section 4, both theorems, X_*")
def _():
    h = h1(-4 * x**2, beta=1.0)
    np.testing.assert_allclose(h.coef, [0, 0, -19 / 2, 0, 6, 0, -5 / 6])
    assert h1(-4 * x**2, beta=1.01 * 3 / 4 * 8).coef[6] > 0  # L_g = 8, s = 1


# --- Section 4.2


@shows("Section 4.2, Algorithm 2, scaling")
def _():
    V = Fraction(1, 2) * 4 + Fraction(1, 2) * 0**2
    assert V == 2 != max(V, 4) and Fraction(1, 2) ** 2 / Fraction(1, 5) > 1


@shows("Section 4.2, Proposition 4.9, proof, indices")
def _():
    gamma, k = 0.5, 1
    assert (k + 1) * gamma**k < sum(gamma ** (k - j) for j in range(k + 1)) == sum(gamma**j for j in range(k + 1))
    D, eta1, B = [1.0, 5.0], 0.0, 9.0
    assert eta1 * B + (1 - eta1) * D[1] == D[1] > abs(D[0])
    V, B, later, alpha = 1.0, 2.0, (7.0, 8.0), 0.1  # X_1 - X_0 by eq:updatex
    assert -alpha * B / sqrt(V) == -2 * alpha != -alpha * later[1] / sqrt(later[0])
    assert sqrt(4.0) < 2.0**2


@shows("Section 4.2, equation (50), first line")
def _():
    c, product_k, J_next = 1.0, 3.0, 0.0
    assert J_next - (-c * product_k) == c * product_k != -c * product_k


@shows("Section 4.2, Theorem 4.11, constants")
def _():
    s2, K, eta1 = 2, 100, Fraction(1, 2)
    alpha_K = Fraction(s2, 10)
    added = alpha_K / (1 - eta1) / s2
    assert added == 1 / (1 - eta1) / 10 == 2 * (1 / (s2 * (1 - eta1)) / 10) and K == 10**2


@shows("Section 4.2, Theorem 4.11, proof, letters")
def _():
    gap, c = np.array([[2.0]]), 1.0
    assert c * norm(gap) ** 2 == 4 != c * norm(gap)


# --- all of them


@pytest.mark.parametrize("place", shown)
def test_what_is_printed_is_wrong_and_what_should_be_is_right(place):
    shown[place]()


def test_every_entry_of_the_errata_sheet_has_a_counterexample_or_a_reason_that_is_evaluated_here():
    entries = tomllib.loads((PAPER / "errata.toml").read_text())["erratum"]
    assert all(("counterexample" in entry) != ("proof" in entry) for entry in entries)
    assert {entry["place"] for entry in entries if "proof" in entry} <= shown.keys()
    assert shown.keys() <= {entry["place"] for entry in entries}
