r"""Counterexamples to what the paper prints, each a few lines of numpy that a reader can follow by hand.

Nothing here uses the formulas of the rest of the project, so that what refutes a formula does not depend on our form
of it.  The notation is the paper's: ``C = X'MX``, ``A(X) = X (3I - C) / 2``, ``G = grad f(A(X))``, and
``Psi(S) = (S + S') / 2``; s is the smallest eigenvalue of M.
"""

import numpy as np

from cdfsg.theory.check import Counterexample


def second_order_condition() -> Counterexample:
    """Def. 2.1 with D = T: ``<T, M^-1 hess f[T] - T X' grad f>`` is negative at a global minimiser."""
    M = np.array([[1, 0, 0], [0, 1, -2], [0, -2, 5]])
    A = np.array([[0, 0, 0], [0, 1, -2], [0, -2, 24]])  # f = x'Ax / 2 >= 0
    x, T = np.array([1, 0, 0]), np.array([0, 1, -1])  # f(x) = 0 and T'Mx = 0
    printed = float(T @ (np.linalg.inv(M) @ A @ T - T * (x @ A @ x)))
    ours = float(T @ (A @ T - M @ T * (x @ A @ x)))
    setting = "M = diag(1, [[1, -2], [-2, 5]]), A = diag(0, [[1, -2], [-2, 24]]), x = (1, 0, 0), T = (0, 1, -1)"
    return Counterexample(setting, {"printed": printed, "corrected": ours}, printed < 0 <= ours)


def saddle_without_direction() -> Counterexample:
    """Def. 2.2: with D = 0 allowed, a strict minimiser of h is a c-saddle point for every c."""
    x, c, D = 1.0, 1e6, 0.0  # f = 0, M = 1, beta = 1: h = (x^6 - 3 x^2) / 6
    curvature = 5 * x**4 - 1
    return Counterexample(
        "f = 0, n = p = 1, M = 1, beta = 1, x = 1, D = 0, c = 1e6",
        {"h''": curvature, "<D, h'' D>": D * curvature * D, "-c D^2": 0 - c * D**2},
        curvature > 0 and D * curvature * D <= -c * D**2,
    )


def approximate_stationarity() -> Counterexample:
    """eq:epfos with f(X) in place of its gradient: an exactly stationary point is not 0.1-stationary."""
    x = 1.0  # f = x^2 / 2 and M = 1
    f, slope = x**2 / 2, x
    printed, ours = abs(f - x * (x * slope)), abs(slope - x * (x * slope))
    return Counterexample(
        "f = x^2/2, n = p = 1, M = 1, x = 1", {"printed": printed, "corrected": ours}, printed > 0.1 > ours
    )


def inner_product_last_line() -> Counterexample:
    """The proof of Le_inner_nablah_XQ ends with ``C + I`` where its statement has ``C - I``."""
    x, beta = 2.0, 1.0  # f = 0, M = 1, Q = 1
    C = x * x
    inner = x * (beta * x * (C**2 - 1))  # <x, grad h>
    stated, printed = beta * C * (C + 1) * (C - 1), beta * C * (C + 1) * (C + 1)
    numbers = {"<x, grad h>": inner, "statement": stated, "proof's last line": printed}
    return Counterexample("f = 0, n = p = 1, M = 1, beta = 1, x = 2, Q = 1", numbers, stated == inner != printed)


def any_symmetric_factor() -> Counterexample:
    """eq:sta2 "for any Q": wrong where Q does not commute with C."""
    X, B, Q = np.diag([1, 0.5]), np.array([[0, 1], [0, 0]]), np.array([[0, 1], [1, 0]])  # f = <B, X>, M = I
    C = X.T @ X
    Lam = (X.T @ B + B.T @ X) / 2
    inner = float(np.sum((X @ Q) * (B @ (3 * np.eye(2) - C) / 2 - X @ Lam)))  # <XQ, grad g>
    printed = float(-1.5 * np.trace(Lam @ (C - np.eye(2)) @ Q))
    setting = "f = X_12, M = I, X = diag(1, 1/2), Q = [[0, 1], [1, 0]]"
    return Counterexample(setting, {"<XQ, grad g>": inner, "printed": printed}, abs(inner - printed) > 0.1)


def hessian_last_term() -> Counterexample:
    """eq:hessh: the last term ``4 beta M X Psi(X'MD) C`` against the curvature of h along D."""
    X, D = np.diag([1, 0.5]), np.array([[0, 1], [1, 0]])  # f = 0, M = I, beta = 1

    def h(t: float) -> float:
        C = (X + t * D).T @ (X + t * D)
        return float(np.trace(C @ C @ C - 3 * C)) / 6

    curvature = (h(1e-3) - 2 * h(0) + h(-1e-3)) / 1e-6
    C, S = X.T @ X, (X.T @ D + D.T @ X) / 2
    printed = float(np.sum(D * (D @ (C @ C - np.eye(2)) + 4 * X @ S @ C)))
    ours = float(np.sum(D * (D @ (C @ C - np.eye(2)) + 2 * X @ (S @ C + C @ S))))
    setting = "f = 0, M = I, beta = 1, X = diag(1, 1/2), D = [[0, 1], [1, 0]]"
    return Counterexample(
        setting, {"h along D": curvature, "printed": printed, "corrected": ours}, abs(curvature - printed) > 0.1
    )


def inner_bound_inside() -> Counterexample:
    """eq:normlambda is used where ``sigma_max(C) < 1``, where its last lines fail."""
    x, b, L_g, s = 0.5, 1.0, 0.0, 1.0  # f = b x, M = 1
    C = s * x * x
    bound = (3 * L_g + 2 * b * s**0.5) / (2 * s) * C + L_g / (2 * s) * C**2
    return Counterexample(
        "f = x, n = p = 1, M = 1, x = 1/2", {"sigma_max(X'G)": x * b, "printed bound": bound}, x * b > bound
    )


def inner_bound_without_s() -> Counterexample:
    """The proof of The_first_order_equivalence_feasible: ``2 p L_g + s^(1/2) L_0`` has lost the factor 1/s."""
    s, b, L_g = 0.25, 1.0, 0.0  # f = b x, M = s
    x = s**-0.5  # feasible
    printed = 2 * L_g + s**0.5 * b
    return Counterexample(
        "f = x, n = p = 1, M = 1/4, x = 2",
        {"sigma_max(X'G)": x * b, "printed bound": printed, "divided by s": printed / s},
        printed < x * b <= printed / s,
    )


def vanishing_saddle_direction() -> Counterexample:
    """The proof of pro:saddle: at X = 0 its direction ``D = X v v'`` is zero, and shows no negative curvature."""
    x, v, beta, lam = np.zeros(2), 1.0, 72.0, 1.0  # f = |x|^2 / 2, M = I, p = 1; beta is the threshold
    D = x * v * v
    u = np.array([1.0, 0.0])  # any u with X'Mu = 0
    curvature = (9 / 4 * lam - beta) * float(u @ u)
    return Counterexample(
        "f = |x|^2/2, n = 2, p = 1, M = I, beta = 72, X = 0",
        {"norm of the proof's D": float(np.linalg.norm(D)), "curvature along u v'": curvature},
        not D.any() and curvature < 0,
    )


def normal_curvature_step() -> Counterexample:
    """The proof of eq:nn: its step (i) has lost the factor 3 of the line before."""
    beta, b = 12.0, 1.0  # f = b x, M = 1, x = 1, N = 1; beta is the threshold
    curvature = 4 * beta - 3 * b  # h'' = -3 b x + beta (5 x^4 - 1)
    printed = 4 * beta - b
    return Counterexample(
        "f = x, n = p = 1, M = 1, beta = 12, x = N = 1",
        {"<N, hess h N>": curvature, "printed lower bound": printed}, curvature < printed,
    )  # fmt: skip


def normal_curvature_equality() -> Counterexample:
    """The proof of eq:nn: ``tr(S^2 X' grad f) = sigma_max(X' grad f) ||S||^2`` is an inequality."""
    X, S = np.eye(2), np.diag([0.0, 1.0])  # f = X_11, M = I
    gradient = np.diag([1.0, 0.0])
    left = float(np.trace(S @ S @ X.T @ gradient))
    right = float(np.linalg.norm(X.T @ gradient, 2) * np.sum(S**2))
    return Counterexample("f = X_11, M = I, X = I, S = diag(0, 1)", {"left": left, "right": right}, left < right)


def neighbourhood_step() -> Counterexample:
    """The proof of eq:feabound: ``3 sigma_max(C + I)`` on Omega_{1/6} is 13/2, where step (ii) has 7/2."""
    C = 1 + 1 / 6  # n = p = 1
    needed = 3 * (C + 1)
    return Counterexample("n = p = 1, X'MX = 7/6", {"3 (C + 1)": needed, "printed": 7 / 2}, needed > 7 / 2)


def dissolved_gradient_sign() -> Counterexample:
    """The proof of th:star_bx: ``grad g - L`` has ``- G (C - I) / 2``, where ``+`` is printed, and f for grad f."""
    x = 1.1  # f = x, M = 1: G = grad f = 1
    C = x * x
    difference = ((3 - C) / 2 - x * x) - (1 - x * x)  # grad g - L
    printed = (1 - 1) + (C - 1) / 2 - x * x * (1 - 1)
    return Counterexample(
        "f = x, n = p = 1, M = 1, x = 1.1", {"grad g - L": difference, "printed": printed}, difference * printed < 0
    )


def lost_violation() -> Counterexample:
    """The proof of th:star_bx: step (iii) has lost the factor ``||C - I||``, so that it fails at feasible points."""
    kappa, p, L_g, L_0, s, beta, violation = 1.0, 1, 0.0, 1.0, 1.0, 12.0, 0.0  # f = x, M = 1, x = 1
    left = kappa * (3 * (p + 1) * L_g + s**0.5 * L_0) / (2 * s**0.5)
    right = beta * s**0.5 / 2 * violation
    return Counterexample("f = x, n = p = 1, M = 1, beta = 12, x = 1", {"left": left, "right": right}, left > right)


def surrogate_minimiser() -> Counterexample:
    """eq:H with ``V (V^2 - I)``: the function of (CDFCP) would have its minimiser off the feasible set."""
    C = np.linspace(0, 2, 20001)  # f = 0, n = p = 1, M = 1: C = x^2 should be 1
    printed, ours = float(C[np.argmin(C * (C**2 - 1))]), float(C[np.argmin(C * (C**2 - 3))])
    return Counterexample(
        "f = 0, n = p = 1, M = 1",
        {"X'MX at the printed minimiser": printed, "with V^2 - 3I": ours}, abs(printed - 1) > 0.1 > abs(ours - 1),
    )  # fmt: skip


def classical_correlation_scale() -> Counterexample:
    """eq:classcca: with two views (p:GCCA) makes ``X_i' S_ii X_i = I/2``, not I, so the problems differ by a scale."""
    angle = np.linspace(0, np.pi / 2, 1801)  # one feature a view, S_ii = 1, S_12 = 1/2: x^2 + y^2 = 1
    x, y = np.cos(angle), np.sin(angle)
    best = int(np.argmin(-2 * 0.5 * x * y))
    return Counterexample(
        "two views of one feature, variances 1, covariance 1/2",
        {"x^2 at GCCA's minimiser": float(x[best] ** 2), "constraint of the classical form": 1.0,
         "GCCA's value": float(-2 * 0.5 * x[best] * y[best]), "classical value": -0.5 * 0.5},
        abs(x[best] ** 2 - 1) > 0.1,
    )  # fmt: skip


def huber_is_not_lipschitz() -> Counterexample:
    """Assumption 1.1 and the Huber merit: the gradient's slope along (x, R), 0 <= x <= mu/R, grows like R^2."""
    mu = 0.1  # two views of one feature, S_12 = 1: f = -2 g(x y), and df/dx = -2 y g'(x y)
    slopes = {}
    for R in (1.0, 10.0, 100.0):
        change = -2 * R * min(R * (mu / R), mu) - 0.0
        slopes[f"slope at R = {R:g}"] = abs(change) / (mu / R)
    return Counterexample("f = -2 g(x y), mu = 0.1, from (0, R) to (mu/R, R)", slopes, max(slopes.values()) > 1e4)


def small_beta_is_unbounded() -> Counterexample:
    """The default beta = 0.1 with a canonical correlation of 1: h falls without bound along the leading direction."""
    beta, rho = 0.1, 1.0  # two views of one feature: f = -2 rho x y on the diagonal x = y, C = x^2 + y^2

    def h(C: float) -> float:
        return -rho * C * ((3 - C) / 2) ** 2 + beta / 6 * (C**3 - 3 * C)

    numbers = {f"h at C = {C:g}": h(C) for C in (1, 10, 100)}
    return Counterexample("identity merit, rho = 1, beta = 0.1, x = y", numbers, h(100) < 10 * h(10) < 100 * h(1))


def singular_constraint_is_unbounded() -> Counterexample:
    """M > 0 is needed: where it is singular, h may fall without bound for every beta."""
    beta = 1e6  # f = x_2, M = diag(1, 0), n = 2, p = 1

    def h(x: float, y: float) -> float:
        C = x * x
        return y * (3 - C) / 2 + beta / 6 * (C**3 - 3 * C)

    numbers = {f"h(1, {y:g})": h(1, y) for y in (0, -1e6, -1e9)}
    return Counterexample("f = x_2, M = diag(1, 0), p = 1, beta = 1e6", numbers, h(1, -1e9) < 100 * h(1, 0))
