"""Counterexamples to what the paper prints, each a few lines of numpy that a reader can follow by hand.

Nothing here uses the formulas of the rest of the project, so that what refutes a formula does not depend on our form of
it.  In Section 4, ``n = p = 1``, so that M_theta = m, X, Y and D are numbers and ``C_theta(x) = m x^2``; where f = 0
the direction is ``W(x, y) = beta m x (y^2 - 1)``.
"""

import numpy as np

from cdfsg.theory.statement import Counterexample

I = np.eye(2)  # noqa: E741


def huber_is_not_lipschitz() -> Counterexample:
    mu = 0.1  # two views of one feature, S_12 = 1: f = -2 g(x y), and df/dx = -2 y g'(x y)
    slopes = {}
    for R in (1.0, 10.0, 100.0):
        change = -2 * R * min(R * (mu / R), mu) - 0.0
        slopes[f"slope at R = {R:g}"] = abs(change) / (mu / R)
    return Counterexample("f = -2 g(x y), mu = 0.1, from (0, R) to (mu/R, R)", slopes, max(slopes.values()) > 1e4)


def singular_constraint_is_unbounded() -> Counterexample:
    beta = 1e6  # f = x_2, M = diag(1, 0), n = 2, p = 1

    def h(x: float, y: float) -> float:
        C = x * x
        return y * (3 - C) / 2 + beta / 6 * (C**3 - 3 * C)

    numbers = {f"h(1, {y:g})": h(1, y) for y in (0, -1e6, -1e9)}
    return Counterexample("f = x_2, M = diag(1, 0), p = 1, beta = 1e6", numbers, h(1, -1e9) < 100 * h(1, 0))


def classical_correlation_scale() -> Counterexample:
    angle = np.linspace(0, np.pi / 2, 1801)  # one feature a view, S_ii = 1, S_12 = 1/2: x^2 + y^2 = 1
    x, y = np.cos(angle), np.sin(angle)
    best = int(np.argmin(-2 * 0.5 * x * y))
    numbers = {
        "x^2 at GCCA's minimiser": float(x[best] ** 2), "constraint of the classical form": 1.0,
        "GCCA's value": float(-2 * 0.5 * x[best] * y[best]), "classical value": -0.5 * 0.5,
    }  # fmt: skip
    setting = "two views of one feature, variances 1, covariance 1/2"
    return Counterexample(setting, numbers, abs(x[best] ** 2 - 1) > 0.1)


def small_beta_is_unbounded() -> Counterexample:
    beta, rho = 0.1, 1.0  # two views of one feature: f = -2 rho x y on the diagonal x = y, C = x^2 + y^2

    def h(C: float) -> float:
        return -rho * C * ((3 - C) / 2) ** 2 + beta / 6 * (C**3 - 3 * C)

    numbers = {f"h at C = {C:g}": h(C) for C in (1, 10, 100)}
    return Counterexample("identity merit, rho = 1, beta = 0.1, x = y", numbers, h(100) < 10 * h(10) < 100 * h(1))


def second_order_condition() -> Counterexample:
    M = np.array([[1, 0, 0], [0, 1, -2], [0, -2, 5]])
    A = np.array([[0, 0, 0], [0, 1, -2], [0, -2, 24]])  # f = x'Ax / 2 >= 0
    x, T = np.array([1, 0, 0]), np.array([0, 1, -1])  # f(x) = 0 and T'Mx = 0
    printed = float(T @ (np.linalg.inv(M) @ A @ T - T * (x @ A @ x)))
    ours = float(T @ (A @ T - M @ T * (x @ A @ x)))
    setting = "M = diag(1, [[1, -2], [-2, 5]]), A = diag(0, [[1, -2], [-2, 24]]), x = (1, 0, 0), T = (0, 1, -1)"
    return Counterexample(setting, {"printed": printed, "corrected": ours}, printed < 0 <= ours)


def saddle_without_direction() -> Counterexample:
    x, c, D = 1.0, 1e6, 0.0  # f = 0, M = 1, beta = 1: h = (x^6 - 3 x^2) / 6
    curvature = 5 * x**4 - 1
    numbers = {"h''": curvature, "<D, h'' D>": D * curvature * D, "-c D^2": 0 - c * D**2}
    setting = "f = 0, n = p = 1, M = 1, beta = 1, x = 1, D = 0, c = 1e6"
    return Counterexample(setting, numbers, curvature > 0 and D * curvature * D <= -c * D**2)


def approximate_stationarity() -> Counterexample:
    x = 1.0  # f = x^2 / 2 and M = 1
    f, slope = x**2 / 2, x
    printed, ours = abs(f - x * (x * slope)), abs(slope - x * (x * slope))
    numbers = {"printed": printed, "corrected": ours}
    return Counterexample("f = x^2/2, n = p = 1, M = 1, x = 1", numbers, printed > 0.1 > ours)


def inner_product_last_line() -> Counterexample:
    x, beta = 2.0, 1.0  # f = 0, M = 1, Q = 1
    C = x * x
    inner = x * (beta * x * (C**2 - 1))  # <x, grad h>
    stated, printed = beta * C * (C + 1) * (C - 1), beta * C * (C + 1) * (C + 1)
    numbers = {"<x, grad h>": inner, "statement": stated, "proof's last line": printed}
    return Counterexample("f = 0, n = p = 1, M = 1, beta = 1, x = 2, Q = 1", numbers, stated == inner != printed)


def hessian_last_term() -> Counterexample:
    X, D = np.diag([1, 0.5]), np.array([[0, 1], [1, 0]])  # f = 0, M = I, beta = 1

    def h(t: float) -> float:
        C = (X + t * D).T @ (X + t * D)
        return float(np.trace(C @ C @ C - 3 * C)) / 6

    curvature = (h(1e-3) - 2 * h(0) + h(-1e-3)) / 1e-6
    C, S = X.T @ X, (X.T @ D + D.T @ X) / 2
    printed = float(np.sum(D * (D @ (C @ C - I) + 4 * X @ S @ C)))
    ours = float(np.sum(D * (D @ (C @ C - I) + 2 * X @ (S @ C + C @ S))))
    numbers = {"h along D": curvature, "printed": printed, "corrected": ours}
    setting = "f = 0, M = I, beta = 1, X = diag(1, 1/2), D = [[0, 1], [1, 0]]"
    return Counterexample(setting, numbers, abs(curvature - printed) > 0.1)


def inner_bound_inside() -> Counterexample:
    x, b, L_g, s = 0.5, 1.0, 0.0, 1.0  # f = b x, M = 1
    C = s * x * x
    bound = (3 * L_g + 2 * b * s**0.5) / (2 * s) * C + L_g / (2 * s) * C**2
    numbers = {"sigma_max(X'G)": x * b, "printed bound": bound}
    return Counterexample("f = x, n = p = 1, M = 1, x = 1/2", numbers, x * b > bound)


def inner_bound_without_s() -> Counterexample:
    s, b, L_g = 0.25, 1.0, 0.0  # f = b x, M = s
    x = s**-0.5  # feasible
    printed = 2 * L_g + s**0.5 * b
    numbers = {"sigma_max(X'G)": x * b, "printed bound": printed, "divided by s": printed / s}
    return Counterexample("f = x, n = p = 1, M = 1/4, x = 2", numbers, printed < x * b <= printed / s)


def vanishing_saddle_direction() -> Counterexample:
    x, v, beta, lam = np.zeros(2), 1.0, 72.0, 1.0  # f = |x|^2 / 2, M = I, p = 1; beta is the threshold
    D = x * v * v
    u = np.array([1.0, 0.0])  # any u with X'Mu = 0
    curvature = (9 / 4 * lam - beta) * float(u @ u)
    numbers = {"norm of the proof's D": float(np.linalg.norm(D)), "curvature along u v'": curvature}
    setting = "f = |x|^2/2, n = 2, p = 1, M = I, beta = 72, X = 0"
    return Counterexample(setting, numbers, not D.any() and curvature < 0)


def normal_curvature_step() -> Counterexample:
    beta, b = 12.0, 1.0  # f = b x, M = 1, x = 1, N = 1; beta is the threshold
    curvature, printed = 4 * beta - 3 * b, 4 * beta - b  # h'' = -3 b x + beta (5 x^4 - 1)
    numbers = {"<N, hess h N>": curvature, "printed lower bound": printed}
    return Counterexample("f = x, n = p = 1, M = 1, beta = 12, x = N = 1", numbers, curvature < printed)


def normal_curvature_equality() -> Counterexample:
    X, S = I, np.diag([0.0, 1.0])  # f = X_11, M = I
    gradient = np.diag([1.0, 0.0])
    left = float(np.trace(S @ S @ X.T @ gradient))
    right = float(np.linalg.norm(X.T @ gradient, 2) * np.sum(S**2))
    return Counterexample("f = X_11, M = I, X = I, S = diag(0, 1)", {"left": left, "right": right}, left < right)


def any_symmetric_factor() -> Counterexample:
    X, B, Q = np.diag([1, 0.5]), np.array([[0, 1], [0, 0]]), np.array([[0, 1], [1, 0]])  # f = <B, X>, M = I
    C = X.T @ X
    Lam = (X.T @ B + B.T @ X) / 2
    inner = float(np.sum((X @ Q) * (B @ (3 * I - C) / 2 - X @ Lam)))  # <XQ, grad g>
    printed = float(-1.5 * np.trace(Lam @ (C - I) @ Q))
    setting = "f = X_12, M = I, X = diag(1, 1/2), Q = [[0, 1], [1, 0]]"
    return Counterexample(setting, {"<XQ, grad g>": inner, "printed": printed}, abs(inner - printed) > 0.1)


def neighbourhood_step() -> Counterexample:
    C = 1 + 1 / 6  # n = p = 1
    needed = 3 * (C + 1)
    return Counterexample("n = p = 1, X'MX = 7/6", {"3 (C + 1)": needed, "printed": 7 / 2}, needed > 7 / 2)


def dissolved_gradient_sign() -> Counterexample:
    x = 1.1  # f = x, M = 1: G = grad f = 1
    C = x * x
    difference = ((3 - C) / 2 - x * x) - (1 - x * x)  # grad g - L
    printed = (1 - 1) + (C - 1) / 2 - x * x * (1 - 1)
    numbers = {"grad g - L": difference, "printed": printed}
    return Counterexample("f = x, n = p = 1, M = 1, x = 1.1", numbers, difference * printed < 0)


def lost_violation() -> Counterexample:
    kappa, p, L_g, L_0, s, beta, violation = 1.0, 1, 0.0, 1.0, 1.0, 12.0, 0.0  # f = x, M = 1, x = 1
    left = kappa * (3 * (p + 1) * L_g + s**0.5 * L_0) / (2 * s**0.5)
    right = beta * s**0.5 / 2 * violation
    return Counterexample("f = x, n = p = 1, M = 1, beta = 12, x = 1", {"left": left, "right": right}, left > right)


def surrogate_minimiser() -> Counterexample:
    C = np.linspace(0, 2, 20001)  # f = 0, M = 1: C = x^2 should be 1
    printed, ours = float(C[np.argmin(C * (C**2 - 1))]), float(C[np.argmin(C * (C**2 - 3))])
    numbers = {"X'MX at the printed minimiser": printed, "with V^2 - 3I": ours}
    return Counterexample("f = 0, n = p = 1, M = 1", numbers, abs(printed - 1) > 0.1 > abs(ours - 1))


def shared_minibatch() -> Counterexample:
    m = a = np.array([1.0, 3.0])  # M_theta = m, f_xi = a x^2 / 2
    x = 1.0  # with y = 1, Q(y) = 1 and W = a x - m x (x a x)
    shared, exact = np.mean(a * x - m * x * a * x**2), a.mean() * x - m.mean() * x * a.mean() * x**2
    setting = "f_xi = a x^2/2 and M_theta = m with a = m in {1, 3}, x = y = 1, beta any"
    return Counterexample(setting, {"E W, shared": shared, "W": exact}, bool(shared != exact))


def huber_minibatch() -> Counterexample:
    Z = np.array([[1.0, 1.0], [1.0, -1.0]])  # two samples of two views of one feature each, X = (1, 1), mu >= 1
    t = Z[:, 0] * Z[:, 1]
    exact, mean = 2 * -(t.mean() ** 2) / 2 + 0.0, np.mean(-2 * t**2 / 2)
    setting = "samples (1, 1) and (1, -1), x = (1, 1), mu = 1, one sample a minibatch"
    return Counterexample(setting, {"f": exact, "E f_xi": mean}, bool(exact != mean))


def tracking_above_one() -> Counterexample:
    x, tau_x, tau_m, Y, b = 1.0, 1.0, 1.5, 0.5, 4.0  # M_theta in {0.5, 1.5}; alpha D = 0, so a tau_d = 0
    numbers, tau_y = {}, tau_x * tau_m * tau_x
    for k, m in enumerate((1.5, 0.5, 1.5), start=1):
        Y = Y - b * (Y - m * x**2)
        numbers[f"Y_{k}"] = Y
    setting = "M_theta in {0.5, 1.5}, x = 1, D = 0, Y_0 = 0.5, b = 4, draws 1.5, 0.5, 1.5"
    return Counterexample(setting, numbers | {"tau_y": tau_y}, max(map(abs, numbers.values())) > tau_y)


def tracking_constant() -> Counterexample:
    m = np.array([1.0, -0.9])  # M = 0.05 > 0
    x, x_new, b = 0.95, 1.0, 0.1
    Y = m.mean() * x**2  # exact at the start
    Y_new = Y - b * (Y - m * x**2) + m * x_new**2 - m * x**2
    error = np.mean((m.mean() * x_new**2 - Y_new) ** 2)
    noise, move = 2 * b**2 * x_new**4 * m.var(), (x_new - x) ** 2  # tau_x = x_new, tau_m = 1
    numbers = {"E|C - Y|^2": error, "with 4": noise + 4 * move, "with 8": noise + 8 * move}
    setting = "M_theta in {1, -0.9}, x_k = 0.95, x_{k+1} = 1, Y_k = C(x_k), b = 0.1"
    return Counterexample(setting, numbers, bool(noise + 4 * move < error <= noise + 8 * move))


def first_move() -> Counterexample:
    x, beta, m = 2.0, 1.0, 1.0
    D0, W0 = 0.0, beta * m * x * ((m * x * x) ** 2 - 1)
    return Counterexample("f = 0, M_theta = 1, x_0 = 2, beta = 1", {"D_0": D0, "W(X_0, Y_0)": W0}, bool(D0 != W0))


def conditional_expectation() -> Counterexample:
    m = np.array([0.5, 1.5])
    x, beta = 1.0, 1.0
    Y = m * x**2  # b = 1 and no move: Y_{k+1} = C_theta(x)
    D = beta * m * x * (Y**2 - 1)
    W = beta * m.mean() * x * (Y**2 - 1)
    setting = "f = 0, M_theta in {0.5, 1.5}, x = 1, beta = 1, b = 1, no move"
    return Counterexample(setting, {"E D": D.mean(), "E W(X, Y)": W.mean()}, bool(D.mean() != W.mean()))


def step_with_momentum() -> Counterexample:
    eta1, eta2, epsilon, alpha, B = 0.9, 0.999, 1e-8, 0.01, 1.0
    step, bound = (alpha * B) ** 2 / epsilon, alpha**2 / (1 - eta2) / (1 - eta1**2 / eta2)
    setting = "B_0 = 1, V_0 = 0, alpha = 0.01, eta = (0.9, 0.999), epsilon = 1e-8"
    return Counterexample(setting, {"|x_1 - x_0|^2": step, "bound": bound}, step > bound)


def second_moment_recursion() -> Counterexample:
    eta1, eta2, V = 0.9, 0.82, 0.0  # eta1 < sqrt(eta2) = 0.9055
    gamma, D, k = eta1**2 / eta2, 1.0, 20
    for _ in range(k):
        V = max(V, eta2 * V + (1 - eta2) * D**2)
    printed = (1 - eta2) * D**2 * sum(gamma**j for j in range(k))
    setting = "eta = (0.9, 0.82), D_k = 1, V_0 = 0, k = 20"
    return Counterexample(setting, {"V_k": V, "printed lower bound": printed}, printed > V)


def suggested_first_moment() -> Counterexample:
    x, m, beta = 1.0, 1.0, 1.0  # f = 0: stationary, so that every D_k is zero
    B0, tau_d = x * m * x, abs(beta * m * x * ((m * x * x) ** 2 - 1))
    setting = "f = 0, M_theta = 1, x_k = 1 (stationary)"
    return Counterexample(setting, {"suggested B_0": B0, "tau_d": tau_d}, bool(tau_d < B0))


def lyapunov_start() -> Counterexample:
    eta1, epsilon, alpha, B0, slope = 0.9, 1e-8, 0.01, 1.0, -1.0  # slope = h'(x_0), V_0 = (1 - eta2) B_0^2
    V0 = (1 - 0.999) * B0**2
    missing = -alpha / (1 - eta1) * slope * B0 / np.sqrt(epsilon + V0)
    setting = "h'(x_0) = -1, B_0 = 1, V_0 = 0.001, alpha = 0.01, eta = (0.9, 0.999)"
    return Counterexample(setting, {"J_0 of eq:jkdefi_1 minus printed J_0": missing}, missing > 0)
