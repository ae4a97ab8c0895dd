"""Counterexamples to what the paper prints, each a few lines of numpy that a reader can follow by hand.

Nothing here uses the project's formulas, so that a refutation does not depend on our form of them.  In Section 4,
``n = p = 1``: M_theta = m, X, Y and D are numbers and ``C_theta(x) = m x^2``; where f = 0 the direction is
``W(x, y) = beta m x (y^2 - 1)``.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.polynomial.polynomial import polyder, polyint, polyval

from cdfsg.linalg import Array
from cdfsg.theory.statement import Found, counterexample

I = np.eye(2)  # noqa: E741
BETA, START, OUTCOMES = Fraction("0.05"), Fraction("0.7"), [Fraction(m) for m in ("2.001", "-0.999", "-0.999")]
Polynomial = Sequence[Fraction] | Array
"""Coefficients of a polynomial, whose bounds are rational, without rounding."""
PULL, ROOT_K = -4 * BETA * START**5 / 3, 100  # of `printed_rate_bound`; M_theta is each of OUTCOMES equally often


@counterexample("f = -2 g(x y), mu = 0.1, from (0, R) to (mu/R, R)")
def huber_is_not_lipschitz() -> Found:
    mu = 0.1  # two views of one feature, S_12 = 1: df/dx = -2 y g'(x y)
    changes = {R: 2 * R * min(R * (mu / R), mu) for R in (1.0, 10.0, 100.0)}  # of it, from x = 0
    slopes = {f"slope at R = {R:g}": change / (mu / R) for R, change in changes.items()}
    return max(slopes.values()) > 1e4, slopes


@counterexample("f = x_2, M = diag(1, 0), p = 1, beta = 1e6")
def singular_constraint_is_unbounded() -> Found:
    beta, y, C = 1e6, np.array([0, -1e6, -1e9]), 1  # x = 1
    h = y * (3 - C) / 2 + beta / 6 * (C**3 - 3 * C)
    return h[2] < 100 * h[0], {f"h(1, {end:g})": value for end, value in zip(y, h, strict=True)}


@counterexample("two views of one feature, variances 1, covariance 1/2")
def classical_correlation_scale() -> Found:
    x = y = 0.5**0.5  # x^2 + y^2 = 1, and f = -2 (1/2) x y >= -(x^2 + y^2) / 2
    value, classical = -x * y, -0.5 * 0.5  # of the classical form at x = y = 1
    numbers = {"x^2 at GCCA's minimiser": x**2, "constraint of the classical form": 1.0}
    numbers |= {"GCCA's value": value, "classical value": classical}
    return abs(x**2 - 1) > 0.1 and abs(value - 2 * classical) < 1e-9, numbers


@counterexample("identity merit, rho = 1, beta = 0.1, x = y")
def small_beta_is_unbounded() -> Found:
    beta, rho, lengths = 0.1, 1.0, np.array([1, 10, 100])  # two views of one feature: f = -2 rho x y, C = x^2 + y^2
    h = -rho * lengths * ((3 - lengths) / 2) ** 2 + beta / 6 * (lengths**3 - 3 * lengths)
    return h[2] < 10 * h[1] < 100 * h[0], {f"h at C = {C:g}": value for C, value in zip(lengths, h, strict=True)}


@counterexample("M = diag(1, 4), x = (0.6, 0.4), T = (-1.6, 0.6)")
def normal_space() -> Found:
    M, x, T = np.diag([1, 4]), np.array([0.6, 0.4]), np.array([-1.6, 0.6])  # x'Mx = 1
    return abs(x @ M @ T) < 1e-12 < abs(x @ T), {"x'MT": (x @ M @ T).round(12), "<x, T>": x @ T}


@counterexample("M = diag(1, [[1, -2], [-2, 5]]), A = diag(0, [[1, -2], [-2, 24]]), x = (1, 0, 0), T = (0, 1, -1)")
def second_order_condition() -> Found:
    M = np.array([[1, 0, 0], [0, 1, -2], [0, -2, 5]])
    A = np.array([[0, 0, 0], [0, 1, -2], [0, -2, 24]])  # f = x'Ax / 2 >= 0, as 1 * 24 >= 2 * 2
    x, T = np.array([1, 0, 0]), np.array([0, 1, -1])  # f(x) = 0 and T'Mx = 0
    printed = T @ (np.linalg.inv(M) @ A @ T - T * (x @ A @ x))
    ours = T @ (A @ T - M @ T * (x @ A @ x))
    return printed < 0 <= ours, {"printed": printed, "corrected": ours}


@counterexample("f = 0, n = p = 1, M = 1, beta = 1, x = 1, D = 0, c = 1e6")
def saddle_without_direction() -> Found:
    x, c, D = 1.0, 1e6, 0.0  # h = (x^6 - 3 x^2) / 6
    curvature = 5 * x**4 - 1
    numbers = {"h''": curvature, "<D, h'' D>": D * curvature * D, "-c D^2": 0 - c * D**2}
    return curvature > 0 and D * curvature * D <= -c * D**2, numbers


@counterexample("f = x^2/2, n = p = 1, M = 1, x = 1")
def approximate_stationarity() -> Found:
    x = 1.0
    f, slope = x**2 / 2, x
    printed, ours = abs(f - x * (x * slope)), abs(slope - x * (x * slope))
    return printed > 0.1 > ours, {"printed": printed, "corrected": ours}


@counterexample("f = 0, M = I, beta = 1, X = diag(1, 1/2), D = [[0, 1], [1, 0]]")
def hessian_last_term() -> Found:
    X, D = np.diag([1, 0.5]), np.array([[0, 1], [1, 0]])
    along = (Z.T @ Z for Z in (X - 1e-3 * D, X, X + 1e-3 * D))
    h = [np.trace(C @ C @ C - 3 * C) / 6 for C in along]
    curvature = (h[2] - 2 * h[1] + h[0]) / 1e-6
    C, S = X.T @ X, (X.T @ D + D.T @ X) / 2
    printed = np.sum(D * (D @ (C @ C - I) + 4 * X @ S @ C))
    ours = np.sum(D * (D @ (C @ C - I) + 2 * X @ (S @ C + C @ S)))
    numbers = {"h along D": curvature, "printed": printed, "corrected": ours}
    return abs(curvature - printed) > 0.1 and abs(curvature - ours) < 1e-3, numbers


@counterexample("f = x, n = p = 1, M = 1, x = 1/2")
def inner_bound_inside() -> Found:
    x, b, L_g, s = 0.5, 1.0, 0.0, 1.0  # f = b x
    bound, ours = ((3 * L_g + 2 * b * s**0.5) / (2 * s) * C + L_g / (2 * s) * C**2 for C in (s * x * x, 1.0))
    return bound < x * b <= ours, {"sigma_max(X'G)": x * b, "printed bound": bound}


@counterexample("f = |x|^2/2, n = 2, p = 1, M = I, beta = 72, X = 0")
def vanishing_saddle_direction() -> Found:
    x, v, beta, lam = np.zeros(2), 1.0, 72.0, 1.0  # beta is the threshold
    D = x * v * v
    u = np.array([1.0, 0.0])  # any u with X'Mu = 0
    curvature = (9 / 4 * lam - beta) * (u @ u)
    numbers = {"norm of the proof's D": np.linalg.norm(D), "curvature along u v'": curvature}
    return not D.any() and curvature < 0, numbers


@counterexample("M = I, A = [[20, 30], [30, 76]] / 27, beta = 1, X = diag(3/7, 12/7)^(1/2)")
def columns_off_the_eigenvectors() -> Found:
    A, C = np.array([[20, 30], [30, 76]]) / 27, np.diag([3 / 7, 12 / 7])  # f = tr(X'AX) / 2
    X, Q = C**0.5, (3 * I - C) / 2
    G = A @ X @ Q
    slope = G @ Q - X @ (X.T @ G + G.T @ X) / 2 + X @ (C @ C - I)  # grad h
    size = np.linalg.norm(slope).round(12)
    return size < 1e-12 < abs(A[0, 1]), {"||grad h||": size, "e_2'A e_1": A[0, 1]}


@counterexample("f = x, n = p = 1, M = 1, beta = 12, x = N = 1")
def normal_curvature_step() -> Found:
    beta, b = 12.0, 1.0  # beta is the threshold
    curvature, printed = 4 * beta - 3 * b, 4 * beta - b  # h'' = -3 b x + beta (5 x^4 - 1)
    return curvature < printed, {"<N, hess h N>": curvature, "printed lower bound": printed}


@counterexample("f = X_12, M = I, X = diag(1, 1/2), Q = [[0, 1], [1, 0]]")
def any_symmetric_factor() -> Found:
    X, Q = np.diag([1, 0.5]), np.array([[0, 1], [1, 0]])
    B = np.array([[0, 1], [0, 0]])  # f = <B, X>
    C, Lam = X.T @ X, (X.T @ B + B.T @ X) / 2
    inner = np.sum((X @ Q) * (B @ (3 * I - C) / 2 - X @ Lam))  # <XQ, grad g>
    printed = -1.5 * np.trace(Lam @ (C - I) @ Q)
    return abs(inner - printed) > 0.1, {"<XQ, grad g>": inner, "printed": printed}


@counterexample("n = p = 1, X'MX = 7/6")
def neighbourhood_step() -> Found:
    C = Fraction(7, 6)
    return 7 / 2 < 3 * (C + 1) <= 13 / 2, {"3 (C + 1)": 3 * (C + 1), "printed": 7 / 2}


@counterexample("f = x, n = p = 1, M = 1, x = 1.1")
def dissolved_gradient_sign() -> Found:
    x = 1.1  # G = grad f = 1
    C = x * x
    difference = ((3 - C) / 2 - x * x) - (1 - x * x)  # grad g - L
    printed = (1 - 1) + (C - 1) / 2 - x * x * (1 - 1)
    return difference * printed < 0, {"grad g - L": difference, "printed": printed}


@counterexample("f = x, n = p = 1, M = 1, beta = 12, x = 1")
def lost_violation() -> Found:
    kappa, p, L_g, L_0, s, beta, violation = 1.0, 1, 0.0, 1.0, 1.0, 12.0, 0.0
    left = kappa * (3 * (p + 1) * L_g + s**0.5 * L_0) / (2 * s**0.5)
    right = beta * s**0.5 / 2 * violation
    return left * violation <= right < left, {"left": left, "right": right}


@counterexample("f = 0, n = p = 1, M = 1")
def surrogate_minimiser() -> Found:
    C = np.linspace(0, 2, 20001)  # C = x^2 should be 1
    printed, ours = C[np.argmin(C * (C**2 - 1))], C[np.argmin(C * (C**2 - 3))]
    numbers = {"X'MX at the printed minimiser": printed, "with V^2 - 3I": ours}
    return abs(printed - 1) > 0.1 > abs(ours - 1), numbers


@counterexample("f_xi = a x^2/2 and M_theta = m with a = m in {1, 3}, x = y = 1, beta any")
def shared_minibatch() -> Found:
    m = a = np.array([1.0, 3.0])
    x = 1.0  # with y = 1, Q(y) = 1 and W = a x - m x (x a x)
    shared = np.mean(a * x - m * x * a * x**2)
    exact = a.mean() * x - m.mean() * x * a.mean() * x**2
    return shared != exact, {"E W, shared": shared, "W": exact}


@counterexample("samples (1, 1) and (1, -1), x = (1, 1), mu = 1, one sample a minibatch")
def huber_minibatch() -> Found:
    Z = np.array([[1.0, 1.0], [1.0, -1.0]])  # two samples of two views of one feature each
    t = Z[:, 0] * Z[:, 1]
    exact, mean = 2 * -(t.mean() ** 2) / 2 + 0.0, np.mean(-2 * t**2 / 2)
    return exact != mean, {"f": exact, "E f_xi": mean}


@counterexample("f = -2 g(x y), y = 1, x = mu = 0.1")
def huber_has_kinks() -> Found:
    mu, step = 0.1, 1e-6  # df/dx = -2 min(x, mu)
    slopes = [2 * (mu - min(mu + side * step, mu)) / (side * step) for side in (-1, 1)]
    return slopes[0] != slopes[1], {"f'' from below": slopes[0], "from above": slopes[1]}


@counterexample("f = 0, M_theta = 1, alpha beta = 1/2, b = 1, x_0 = 1.6")
def far_start() -> Found:
    x, numbers = 1.6, {}
    for k in range(1, 5):
        x = x - 0.5 * x * (x**4 - 1)
        numbers[f"|x_{k}|"] = abs(x)
    return numbers["|x_4|"] > 1e30, numbers


@counterexample("M_theta in {0.5, 1.5}, x = 1, D = 0, Y_0 = 0.5, b = 4, draws 1.5, 0.5, 1.5")
def tracking_above_one() -> Found:
    x, tau_x, tau_m, Y, b = 1.0, 1.0, 1.5, 0.5, 4.0  # no move, so a tau_d = 0
    numbers, tau_y = {}, tau_x * tau_m * tau_x
    for k, m in enumerate((1.5, 0.5, 1.5), start=1):
        Y = Y - b * (Y - m * x**2)
        numbers[f"Y_{k}"] = Y
    return max(map(abs, numbers.values())) > tau_y, numbers | {"tau_y": tau_y}


@counterexample("f_xi = -+x/1000, beta = 0.001, M_theta in {0, 1/4}, x_0 = Y_0 = 0, alpha = 1, b = 1/2, eta = (0, 0), "
                "epsilon = 1e-12")
def tracking_in_algorithm_2() -> Found:
    alpha, b, epsilon, beta, x, Y, B, V, tau_x, tau_d = 1.0, 0.5, 1e-12, 1e-3, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for m, c in ((0.25, -1e-3), (0.25, 1e-3), (0.0, -1e-3), (0.25, 1e-3)):  # draws of theta and xi
        x_new = x - alpha * B / (epsilon + V) ** 0.5
        x, Y = x_new, Y - b * (Y - m * x**2) + m * (x_new**2 - x**2)
        B = c * (3 - Y) / 2 - m * x**2 * c + beta * m * x * (Y**2 - 1)  # D_{k+1}
        V, tau_x, tau_d = max(V, B**2), max(tau_x, abs(x)), max(tau_d, abs(B))
    tau_y = [tau_x * 0.25 * (tau_x + 2 * alpha / b * length) for length in (tau_d, 1.0)]  # ||step|| <= alpha
    return tau_y[0] < Y <= tau_y[1], {"Y_4": Y, "tau_y": tau_y[0], "corrected": tau_y[1]}


@counterexample("M_theta in {1, -0.9}, x_k = 0.95, x_{k+1} = 1, Y_k = C(x_k), b = 0.1")
def tracking_constant() -> Found:
    m = np.array([1.0, -0.9])  # M = 0.05 > 0
    x, x_new, b = 0.95, 1.0, 0.1
    Y = m.mean() * x**2
    Y_new = Y - b * (Y - m * x**2) + m * x_new**2 - m * x**2
    error = np.mean((m.mean() * x_new**2 - Y_new) ** 2)
    noise, move = 2 * b**2 * x_new**4 * m.var(), (x_new - x) ** 2  # tau_x = x_new, tau_m = 1
    numbers = {"E|C - Y|^2": error, "with 4": noise + 4 * move, "with 8": noise + 8 * move}
    return noise + 4 * move < error <= noise + 8 * move, numbers


@counterexample("f = 0, M_theta = 1, x_0 = 2, beta = 1")
def first_move() -> Found:
    x, beta, m = 2.0, 1.0, 1.0
    D0, W0 = 0.0, beta * m * x * ((m * x * x) ** 2 - 1)
    return D0 != W0, {"D_0": D0, "W(X_0, Y_0)": W0}


@counterexample("f = 0, M_theta in {0.5, 1.5}, x = 1, beta = 1, b = 1, no move")
def conditional_expectation() -> Found:
    m = np.array([0.5, 1.5])
    x, beta = 1.0, 1.0
    Y = m * x**2  # b = 1 and no move: Y_{k+1} = C_theta(x)
    D = beta * m * x * (Y**2 - 1)
    W = beta * m.mean() * x * (Y**2 - 1)
    return D.mean() != W.mean(), {"E D": D.mean(), "E W(X, Y)": W.mean()}


def enclosure(p: Polynomial, low: Fraction, high: Fraction, pieces: int = 500) -> tuple[Fraction, Fraction]:
    """Bounds of p on [low, high]: its values at the centres of the pieces, and half a piece times a bound of |p'|."""
    half, reach = (high - low) / (2 * pieces), max(abs(low), abs(high))
    steepest = polyval(reach, polyder([abs(a) for a in p]))
    values = polyval(np.array([low + (2 * j + 1) * half for j in range(pieces)]), p)
    return min(values) - steepest * half, max(values) + steepest * half


def least(p: Polynomial, reach: Fraction) -> Fraction:
    """A lower bound of p on the whole line; ValueError unless its leading term dominates beyond `reach`."""
    *rest, top = (a * reach**k for k, a in enumerate(p))
    if len(p) % 2 == 0 or top < sum(map(abs, rest)):
        raise ValueError(f"the leading term does not dominate beyond {float(reach):.4g}; take more")
    return min(enclosure(p, -reach, reach, 2000)[0], Fraction(0))


@counterexample("f = c x, c = -4/3 beta 0.7^5, beta = 0.05, M_theta = 2.001 or (twice) -0.999, b = 1, "
                "alpha = s1 = 2, x_0 = 0.7, K = 10,000")
def printed_rate_bound() -> Found:
    c, beta, low, high, s1, s2 = PULL, BETA, Fraction("0.35"), Fraction("0.72"), 2, 2 * ROOT_K
    M, tau_x, tau_m = sum(OUTCOMES, Fraction(0)) / 3, high, max(OUTCOMES)  # M = 0.001 > 0
    variance = sum(((m - M) ** 2 for m in OUTCOMES), Fraction(0)) / 3

    def slope(m: Fraction) -> list[Fraction]:  # coefficients of h' for M = m; with b = 1, y = m x^2, also of D
        return [3 * c / 2, -beta * m, -3 * c * m / 2, Fraction(0), Fraction(0), beta * m**3]

    moves = [enclosure([(k == 1) - s1 * a for k, a in enumerate(slope(m))], low, high) for m in OUTCOMES]
    stays = all(low <= x[0] and x[1] <= high for x in moves)  # x - 2 D stays in [low, high], so no path leaves it
    tau_d = max(abs(D) for m in OUTCOMES for D in enclosure(slope(m), low, high))
    squared = min(map(abs, enclosure(slope(M), low, high))) ** 2
    h = polyint(slope(M))
    L_h = max(map(abs, enclosure(polyder(slope(M)), -high, high)))
    gap = polyval(START, h) - least(h, Fraction(100))
    tau_y = tau_x * tau_m * (tau_x + 2 * s1 * tau_d)

    def bound(m: Fraction, noise: Fraction, drift: int) -> Fraction:
        L_W = abs(c) / 2 + 2 * beta * m * tau_x * tau_y  # dW/dy = -c/2 + 2 beta m x y
        J_0 = gap + L_W**2 * START**4 * (tau_m - M) ** 2
        drifts = (drift * (L_W * tau_x * tau_m) ** 2 + L_h / 2) * s2 * tau_d**2
        return Fraction(2, ROOT_K) * (J_0 / s2 + noise * s2 / s1**2 * L_W**2 * tau_x**4 * variance + drifts)

    printed, eight, sure = bound(M, Fraction(1, 2), 4), bound(M, Fraction(2), 8), bound(tau_m, Fraction(2), 8)
    numbers = {"|h'|^2 at least": squared, "printed": printed, "with 2 and 8": eight, "and almost sure L_W": sure}
    return stays and printed < eight < squared < sure, numbers


@counterexample("B_0 = 1, V_0 = 0, alpha = 0.01, eta = (0.9, 0.999), epsilon = 1e-8")
def step_with_momentum() -> Found:
    eta1, eta2, epsilon, alpha, B = 0.9, 0.999, 1e-8, 0.01, 1.0
    step, bound = (alpha * B) ** 2 / epsilon, alpha**2 / (1 - eta2) / (1 - eta1**2 / eta2)
    covered = (alpha * B) ** 2 / (epsilon + (1 - eta2) * B**2)  # with V_0 = (1 - eta2) B_0^2
    return covered <= bound < step, {"|x_1 - x_0|^2": step, "bound": bound}


@counterexample("eta = (0.9, 0.82), D_k = 1, V_0 = 0, k = 20")
def second_moment_recursion() -> Found:
    eta1, eta2, V = 0.9, 0.82, 0.0  # eta1 < sqrt(eta2) = 0.9055
    gamma, D, k = eta1**2 / eta2, 1.0, 20
    for _ in range(k):
        V = max(V, eta2 * V + (1 - eta2) * D**2)
    printed, ours = ((1 - eta2) * D**2 * sum(factor**j for j in range(k)) for factor in (gamma, eta2))
    return ours <= V + 1e-12 < printed, {"V_k": V, "printed lower bound": printed}


@counterexample("f = 0, M_theta = 1, x_k = 1 (stationary)")
def suggested_first_moment() -> Found:
    x, m, beta = 1.0, 1.0, 1.0
    B0, tau_d = x * m * x, abs(beta * m * x * ((m * x * x) ** 2 - 1))
    return tau_d < B0, {"suggested B_0": B0, "tau_d": tau_d}


@counterexample("h'(x_0) = -1, B_0 = 1, V_0 = 0.001, alpha = 0.01, eta = (0.9, 0.999)")
def lyapunov_start() -> Found:
    eta1, epsilon, alpha, B0, slope = 0.9, 1e-8, 0.01, 1.0, -1.0
    V0 = (1 - 0.999) * B0**2
    missing = -alpha / (1 - eta1) * slope * B0 / np.sqrt(epsilon + V0)
    return missing > 0, {"J_0 of (49) minus printed J_0": missing}
