"""Counterexamples to what the paper prints of its algorithms, each a few lines that a reader can follow by hand.

Nothing here uses the formulas of the rest of the project.  Unless said otherwise ``n = p = 1``, so that M_theta, X, Y
and D are numbers, ``C_theta(x) = m x^2``, and for f = 0 the direction is ``W(x, y) = beta m x (y^2 - 1)``.
"""

import numpy as np

from cdfsg.theory.check import Counterexample


def shared_minibatch() -> Counterexample:
    """One sample for xi and theta: E W is not W(X, Y)."""
    m = a = np.array([1.0, 3.0])  # M_theta = m, f_xi = a x^2 / 2
    x = 1.0  # with y = 1, Q(y) = 1 and W = a x - m x (x a x)
    shared, exact = np.mean(a * x - m * x * a * x**2), a.mean() * x - m.mean() * x * a.mean() * x**2
    setting = "f_xi = a x^2/2 and M_theta = m with a = m in {1, 3}, x = y = 1, beta any"
    return Counterexample(setting, {"E W, shared": shared, "W": exact}, bool(shared != exact))


def huber_minibatch() -> Counterexample:
    """GCCA with the Huber merit: f of a minibatch is a biased estimate of f."""
    Z = np.array([[1.0, 1.0], [1.0, -1.0]])  # two samples of two views of one feature each, X = (1, 1), mu >= 1
    t = Z[:, 0] * Z[:, 1]
    exact, mean = 2 * -(t.mean() ** 2) / 2 + 0.0, np.mean(-2 * t**2 / 2)
    setting = "samples (1, 1) and (1, -1), x = (1, 1), mu = 1, one sample a minibatch"
    return Counterexample(setting, {"f": exact, "E f_xi": mean}, bool(exact != mean))


def tracking_above_one(b: float = 4.0) -> Counterexample:
    """pro:boundy with b > 1, as the paper's grid allows: the tracker leaves its bound, and for b > 2 it diverges."""
    x, tau_x, tau_m, Y = 1.0, 1.0, 1.5, 0.5  # M_theta in {0.5, 1.5}; alpha D = 0, so a tau_d = 0
    tau_y = tau_x * tau_m * tau_x
    track = []
    for m in (1.5, 0.5, 1.5):
        Y = Y - b * (Y - m * x**2)
        track.append(Y)
    numbers = {f"Y_{k}": value for k, value in enumerate(track, start=1)} | {"tau_y": tau_y}
    setting = f"M_theta in {{0.5, 1.5}}, x = 1, D = 0, Y_0 = 0.5, b = {b:g}, draws 1.5, 0.5, 1.5"
    return Counterexample(setting, numbers, max(map(abs, track)) > tau_y)


def tracking_constant() -> Counterexample:
    """pr:yktrack with its constant 4, which an indefinite M_theta violates; 8 holds."""
    m = np.array([1.0, -0.9])  # M = 0.05 > 0
    x, x_new, b = 0.95, 1.0, 0.1
    Y = m.mean() * x**2  # exact at the start
    Y_new = Y - b * (Y - m * x**2) + m * x_new**2 - m * x**2
    error = np.mean((m.mean() * x_new**2 - Y_new) ** 2)
    noise, move = 2 * b**2 * x_new**4 * m.var(), (x_new - x) ** 2  # tau_x = x_new, tau_m = 1
    numbers = {"E|C - Y|^2": error, "with 4": noise + 4 * move, "with 8": noise + 8 * move}
    setting = "M_theta in {1, -0.9}, x_k = 0.95, x_{k+1} = 1, Y_k = C(x_k), b = 0.1"
    return Counterexample(setting, numbers, bool(noise + 4 * move < error <= noise + 8 * move))


def conditional_expectation() -> Counterexample:
    """The same theta_k enters Y_k and D_k, so E[D_k | F_{k-1}] is not E[W(X_k, Y_k) | F_{k-1}]."""
    m = np.array([0.5, 1.5])
    x, beta = 1.0, 1.0
    Y = m * x**2  # b = 1 and no move: Y_{k+1} = C_theta(x)
    D = beta * m * x * (Y**2 - 1)
    W = beta * m.mean() * x * (Y**2 - 1)
    setting = "f = 0, M_theta in {0.5, 1.5}, x = 1, beta = 1, b = 1, no move"
    return Counterexample(setting, {"E D": D.mean(), "E W(X, Y)": W.mean()}, bool(D.mean() != W.mean()))


def first_move() -> Counterexample:
    """Algorithm 1 starts from D_0 = 0, but the theorem's proof uses E D_0 = W(X_0, Y_0) for k = 0."""
    x, beta, m = 2.0, 1.0, 1.0
    D0, W0 = 0.0, beta * m * x * ((m * x * x) ** 2 - 1)
    return Counterexample("f = 0, M_theta = 1, x_0 = 2, beta = 1", {"D_0": D0, "W(X_0, Y_0)": W0}, bool(D0 != W0))


def step_with_momentum() -> Counterexample:
    """pr:xkdist with B_0 != 0 and V_0 = 0: the first step exceeds the bound."""
    eta1, eta2, epsilon, alpha, B = 0.9, 0.999, 1e-8, 0.01, 1.0
    step = (alpha * B) ** 2 / epsilon
    bound = alpha**2 / (1 - eta2) / (1 - eta1**2 / eta2)
    setting = "B_0 = 1, V_0 = 0, alpha = 0.01, eta = (0.9, 0.999), epsilon = 1e-8"
    return Counterexample(setting, {"|x_1 - x_0|^2": step, "bound": bound}, step > bound)


def second_moment_recursion() -> Counterexample:
    """The induction in pr:xkdist's proof, ``V_k >= (1 - eta2) sum gamma^(k-l) D_l^2``, where eta1 > eta2."""
    eta1, eta2, V = 0.9, 0.82, 0.0  # eta1 < sqrt(eta2) = 0.9055
    gamma, D, k = eta1**2 / eta2, 1.0, 20
    for _ in range(k):
        V = max(V, eta2 * V + (1 - eta2) * D**2)
    printed = (1 - eta2) * D**2 * sum(gamma**j for j in range(k))
    setting = "eta = (0.9, 0.82), D_k = 1, V_0 = 0, k = 20"
    return Counterexample(setting, {"V_k": V, "printed lower bound": printed}, printed > V)


def suggested_first_moment() -> Counterexample:
    """pro:bvbound's suggestion ``B_0 = X_0' M_theta0 X_0``: p by p, not n by p; where n = p it may exceed tau_d."""
    x, m, beta = 1.0, 1.0, 1.0  # f = 0: stationary, so that every D_k is zero
    B0, tau_d = x * m * x, abs(beta * m * x * ((m * x * x) ** 2 - 1))
    setting = "f = 0, M_theta = 1, x_k = 1 (stationary)"
    return Counterexample(setting, {"suggested B_0": B0, "tau_d": tau_d}, bool(tau_d < B0))


def lyapunov_start() -> Counterexample:
    """The theorem on Algorithm 2 prints J_0 without the momentum term that eq:jkdefi_1 gives it."""
    eta1, epsilon, alpha, B0, slope = 0.9, 1e-8, 0.01, 1.0, -1.0  # slope = h'(x_0), V_0 = (1 - eta2) B_0^2
    V0 = (1 - 0.999) * B0**2
    missing = -alpha / (1 - eta1) * slope * B0 / np.sqrt(epsilon + V0)
    setting = "h'(x_0) = -1, B_0 = 1, V_0 = 0.001, alpha = 0.01, eta = (0.9, 0.999)"
    return Counterexample(setting, {"J_0 of eq:jkdefi_1 minus printed J_0": missing}, missing > 0)
