"""Both theorems of Section 4 on the mean squared gradient: their bounds against exact expectations, and the rate.

The bounds are the corrected ones:

* Algorithm 1: ``s2/(2 s1^2)`` becomes ``2 s2/s1^2``, the 4 of pr:yktrack becomes 8, and L_W is the almost sure constant
  of as:algoadam (2), since the same theta_k makes Y_k and D_k; ``b_k <= 1`` is needed.
* Algorithm 2: J_0 gets the momentum term of eq:jkdefi_1, the stray ``1/s2`` of the second term goes (it came from
  ``alpha_K / (s2 / sqrt(K)) = 1``), and the 8 before c becomes 16.
"""

from dataclasses import dataclass

import numpy as np

from cdfsg.linalg import Array
from cdfsg.solvers.cdfsg import CDFSG, AdaptiveState, CDFSGAda, TrackingState, sampled_direction
from cdfsg.theory import algorithm_counterexamples as counterexamples
from cdfsg.theory.check import Check, Statement, Tally, at_most, concluded
from cdfsg.theory.finite import (
    FinitePencil,
    constraint_values,
    every_path,
    expected,
    least_penalty,
    random_pencil,
    squared_norms,
    started,
)  # fmt: skip
from cdfsg.theory.tracker import INDEFINITE


@dataclass(frozen=True)
class Setting:
    """Constants of a run with the theorems' step sizes ``alpha = s1 b = s2 / sqrt(K)``."""

    K: int
    s1: float
    s2: float
    beta: float

    @property
    def alpha(self) -> float:
        """Step size, of every k."""
        return float(self.s2 / self.K**0.5)

    @property
    def b(self) -> float:
        """Step size of the tracker, of every k."""
        return self.alpha / self.s1


@dataclass(frozen=True)
class Constants:
    """The constants of the bounds, valid for one problem, setting and horizon.

    Attributes
    ----------
    tau_x, tau_d, tau_h : float
        Largest ``||X_k||``, ``||D_k||`` and ``||grad h(X_k)||`` over all paths.  The paper uses tau_h undefined.
    tau_m, tau_y : float
        Largest ``||M_theta||``, and the bound of pro:boundy.
    variance : float
        ``v_m^2 = E||M_theta - M||^2``.
    L_h, L_W : float
        Lipschitz constants of grad h on ``||X|| <= tau_x``, and of every ``W_{xi,theta}`` in Y on
        ``||X|| <= tau_x, ||Y|| <= tau_y``; exact for n = p = 1, upper bounds otherwise.
    J_0 : float
        Expected value of the theorem's J_0.
    """

    tau_x: float
    tau_d: float
    tau_h: float
    tau_m: float
    tau_y: float
    variance: float
    L_h: float
    L_W: float
    J_0: float


@dataclass(frozen=True)
class Exact:
    """Mean squared gradients ``E||grad h(X_k)||^2``, k = 0, ..., K, and the constants, by enumeration."""

    squared_gradients: Array
    constants: Constants


def bound_of_algorithm_1_holds() -> Check:
    """The theorem on Algorithm 1, with D_0 drawn by eq:updated, over all paths of random problems."""
    tally, rng = Tally(), np.random.default_rng(11)
    for number in range(1000):
        toy, X0, setting = _instance(rng, number)
        exact = enumerate_paths(CDFSG(setting.beta), toy, X0, setting, null_direction=False)
        mean = float(exact.squared_gradients[: setting.K].mean())
        tally.add(at_most(mean, bound_of_algorithm_1(setting, exact.constants)))
    tested = "the mean of E|grad h(X_k)|^2, k < K, with 2 for 1/2, 8 for 4, almost sure L_W, and b <= 1"
    return concluded("theorem on Algorithm 1", tested, tally, counterexamples.conditional_expectation())


def bound_of_algorithm_2_holds() -> Check:
    """The theorem on Algorithm 2, with the momentum term in J_0, over all paths of random problems."""
    tally, rng = Tally(), np.random.default_rng(12)
    for number in range(1000):
        toy, X0, setting = _instance(rng, number)
        eta2 = float(rng.choice([0.5, 0.9, 0.999]))
        eta1 = float(rng.uniform(0, 0.99)) * eta2**0.5
        solver = CDFSGAda(setting.beta, eta1, eta2, float(10.0 ** rng.uniform(-8, 0)))
        B0 = rng.standard_normal(X0.shape) if number % 2 else np.zeros_like(X0)
        exact = enumerate_paths(solver, toy, X0, setting, B0=B0)
        mean = float(exact.squared_gradients[1:].mean())
        tally.add(at_most(mean, bound_of_algorithm_2(solver, X0.size, setting, exact.constants)))
    tested = "the mean of E|grad h(X_k)|^2, 0 < k <= K, with B_0 in J_0, no 1/s2 in its second term, 16 for 8, b <= 1"
    return concluded("theorem on Algorithm 2", tested, tally, counterexamples.lyapunov_start())


def algorithm_1_has_the_rate() -> Check:
    """The mean squared gradient of Algorithm 1 falls like ``1/sqrt(K)``, over decades of K."""
    return _rate_check("theorem on Algorithm 1, rate", CDFSG(RATE_BETA))


def algorithm_2_has_the_rate() -> Check:
    """The mean squared gradient of Algorithm 2 falls like ``1/sqrt(K)``, over decades of K."""
    return _rate_check("theorem on Algorithm 2, rate", CDFSGAda(RATE_BETA))


# --- bounds --------------------------------------------------------------------------------------------------


def bound_of_algorithm_1(setting: Setting, c: Constants) -> float:
    """``2/sqrt(K) (J_0/s2 + 2 s2/s1^2 L_W^2 tau_x^4 v_m^2 + (8 L_W^2 tau_x^2 tau_m^2 + L_h/2) s2 tau_d^2)``."""
    s1, s2 = setting.s1, setting.s2
    noise = 2 * s2 / s1**2 * c.L_W**2 * c.tau_x**4 * c.variance
    drift = (INDEFINITE * (c.L_W * c.tau_x * c.tau_m) ** 2 + c.L_h / 2) * s2 * c.tau_d**2
    return float(2 / setting.K**0.5 * (c.J_0 / s2 + noise + drift))


def bound_of_algorithm_2(solver: CDFSGAda, size: int, setting: Setting, c: Constants) -> float:
    """The corrected bound of the theorem on Algorithm 2; `size` is n p."""
    s1, s2, eta1 = setting.s1, setting.s2, solver.eta1
    steps = size / (1 - solver.eta2) / (1 - eta1**2 / solver.eta2)  # pr:xkdist, which is eta~ np (1 - eta1)
    weight = tracker_weight(solver, c.L_W)
    inner = (
        c.J_0 / s2
        + c.tau_h * c.tau_d * solver.epsilon**-0.5 * (size + 1) / ((1 - eta1) * setting.K**0.5)
        + 2 * INDEFINITE * weight * s2 * (c.tau_x * c.tau_m) ** 2 * steps
        + 4 * s2 / s1**2 * weight * c.tau_x**4 * c.variance
        + (3 - eta1) / 2 * c.L_h * s2 * steps / (1 - eta1)
    )
    return float(2 * (solver.epsilon + c.tau_d**2) ** 0.5 / ((1 - eta1) * setting.K**0.5) * inner)


def tracker_weight(solver: CDFSG, L_W: float) -> float:
    """Weight of ``||C(X_k) - Y_k||^2`` in J_k: ``L_W^2``, or ``c = L_W^2 / ((1 - eta1) sqrt(epsilon))``."""
    if isinstance(solver, CDFSGAda):
        return float(L_W**2 / ((1 - solver.eta1) * solver.epsilon**0.5))
    return L_W**2


def enumerate_paths(
    solver: CDFSG, toy: FinitePencil, X0: Array, setting: Setting, null_direction: bool = True, B0: Array | None = None
) -> Exact:
    """Expectations and constants over all paths of K steps.

    Parameters
    ----------
    solver : CDFSG or CDFSGAda
    toy : FinitePencil
    X0 : array (n, p)
    setting : Setting
    null_direction : bool
        ``D_0 = 0``; otherwise D_0 is drawn by eq:updated.
    B0 : array (n, p), optional
        First moment at the start, for Algorithm 2; then ``V_0 = (1 - eta2) B_0^2``.
    """
    state = started(solver, toy, X0, {"s1": setting.s1, "s2": setting.alpha}, null_direction)
    if B0 is not None and isinstance(state, AdaptiveState) and isinstance(solver, CDFSGAda):
        state.B = np.repeat(B0[:, None], state.X.shape[1], axis=1)
        state.V = (1 - solver.eta2) * state.B**2
    means, sizes = [], []
    for current in every_path(solver, toy, state, setting.K):
        squares = squared_norms(toy.gradient_of_h(current.X, setting.beta), 1)
        means.append(expected(squares))
        others = (squared_norms(current.X, 1), squared_norms(_direction(current, solver), 1))
        sizes.append([float(a.max()) ** 0.5 for a in (*others, squares)])
    tau_x, tau_d, tau_h = (max(column) for column in zip(*sizes, strict=True))
    if B0 is not None:
        tau_d = max(tau_d, float(np.linalg.norm(B0)))  # as pro:bvbound asks
    constants = _constants(solver, toy, setting, state, tau_x, tau_d, tau_h)
    return Exact(np.array(means), constants)


def _direction(state: TrackingState, solver: CDFSG) -> Array:
    """D_k of a state; Algorithm 2 keeps ``(1 - eta1) D_k`` in its place."""
    return state.D / (1 - solver.eta1) if isinstance(solver, CDFSGAda) else state.D


def _constants(
    solver: CDFSG, toy: FinitePencil, setting: Setting, first: TrackingState, tau_x: float, tau_d: float, tau_h: float
) -> Constants:
    M = toy.M_theta.mean(axis=0)
    tau_m = float(np.linalg.norm(toy.M_theta, axis=(1, 2)).max())
    tau_y = tau_x * tau_m * (tau_x + 2 * setting.s1 * tau_d)
    scalar = first.X.shape[0] * first.X.shape[2] == 1
    lipschitz = exact_lipschitz if scalar else bounded_lipschitz
    L_h, L_W = lipschitz(toy, setting.beta, tau_x, tau_y)
    gap = expected(squared_norms(constraint_values(M, first.X) - first.Y, 0))
    penalty, X0 = toy.penalty(setting.beta), first.X[:, 0]
    J_0 = penalty.value(X0) - least_penalty(toy, setting.beta, X0.shape[1]) + tracker_weight(solver, L_W) * gap
    if isinstance(solver, CDFSGAda) and isinstance(first, AdaptiveState):
        move = first.B[:, 0] / np.sqrt(solver.epsilon + first.V[:, 0])
        J_0 -= setting.alpha / (1 - solver.eta1) * float(np.vdot(penalty.gradient(X0), move))  # eq:jkdefi_1
    variance = float(np.mean(np.linalg.norm(toy.M_theta - M, axis=(1, 2)) ** 2))
    return Constants(tau_x, tau_d, tau_h, tau_m, tau_y, variance, L_h, L_W, J_0)


# --- Lipschitz constants -------------------------------------------------------------------------------------


def exact_lipschitz(toy: FinitePencil, beta: float, tau_x: float, tau_y: float) -> tuple[float, float]:
    """L_h and L_W for n = p = 1, where grad h is a polynomial of degree 5 in x, and dW/dy of degree 3 in x.

    W is quadratic in y: a central difference gives dW/dy, which is linear and so largest at ``y = +-tau_y``.
    """
    x = _nodes(5, tau_x)
    L_h = _largest(x, toy.gradient_of_h(x[None, :, None], beta)[0, :, 0], tau_x, derivative=True)
    x = _nodes(3, tau_x)
    shape = (toy.outcomes, toy.outcomes, 2, 2, len(x))  # theta, xi, end of the range of y, side of it, x
    theta, xi, end, side, node = np.indices(shape).reshape(5, -1)
    draw = toy.draw(theta, xi)
    X, Y = x[node][None, :, None], ((2 * end - 1) * tau_y + 2 * side - 1)[:, None, None]
    W = sampled_direction(toy, draw, toy.project(draw.rows, X), Y, beta).reshape(shape)
    slopes = (W[..., 1, :] - W[..., 0, :]).reshape(-1, len(x)) / 2
    return L_h, max(_largest(x, values, tau_x) for values in slopes)


def bounded_lipschitz(toy: FinitePencil, beta: float, tau_x: float, tau_y: float) -> tuple[float, float]:
    """Upper bounds of L_h and L_W from norms, for any n and p: each product of the formulas is differentiated.

    With ``alpha = ||A||``, ``mu = ||M||``, ``c = mu tau_x^2`` and ``q = (3 + c)/2``:
    ``L_h <= alpha (q^2 + 5 q c + c^2) + beta mu (5 c^2 + 1)``; with the largest norms of A_xi and M_theta and
    ``r = (3 + tau_y)/2``: ``L_W <= alpha tau_x r + mu alpha tau_x^3 / 2 + 2 beta mu tau_x tau_y``.
    """
    alpha, mu = (float(np.linalg.norm(matrices.mean(axis=0), 2)) for matrices in (toy.A_xi, toy.M_theta))
    c = mu * tau_x**2
    q = (3 + c) / 2
    L_h = alpha * (q**2 + 5 * q * c + c**2) + beta * mu * (5 * c**2 + 1)
    alpha, mu = (float(np.linalg.norm(matrices, 2, axis=(1, 2)).max()) for matrices in (toy.A_xi, toy.M_theta))
    L_W = alpha * tau_x * (3 + tau_y) / 2 + mu * alpha * tau_x**3 / 2 + 2 * beta * mu * tau_x * tau_y
    return L_h, L_W


def _nodes(degree: int, radius: float) -> Array:
    """Chebyshev nodes that determine a polynomial of that degree."""
    nodes: Array = np.cos(np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1)) * radius
    return nodes


def _largest(nodes: Array, values: Array, radius: float, derivative: bool = False) -> float:
    """Largest absolute value on [-radius, radius] of the polynomial through the values, or of its derivative."""
    polynomial = np.polynomial.Polynomial.fit(nodes, values, len(nodes) - 1, domain=[-radius, radius])
    if derivative:
        polynomial = polynomial.deriv()
    turning = polynomial.deriv().roots().real
    inside = np.concatenate([[-radius, radius], turning[np.abs(turning) <= radius]])
    return float(np.abs(polynomial(inside)).max())


def _instance(rng: np.random.Generator, number: int) -> tuple[FinitePencil, Array, Setting]:
    """A problem, an initial point and step sizes with ``b <= 1`` and ``s1 <= 2``; every third is larger than 1 by 1."""
    n, p = ((1, 1), (1, 1), (2, 1), (1, 1), (1, 1), (2, 2))[number % 6]
    outcomes = 1 + (number % 5 > 0)  # a fifth of them are deterministic
    toy = random_pencil(rng, n, outcomes, rows=None if n == 1 else n, condition=float(rng.choice([1, 3])))
    toy = FinitePencil(toy.U, toy.V + (np.sign(toy.V) if n == 1 else 0), toy.sign)  # M is not nearly 0
    A, M = np.linalg.norm(toy.A_xi, axis=(1, 2)).max(), toy.M_theta.mean(axis=0)
    beta = float(A / np.linalg.eigvalsh(M)[0] * rng.choice([1, 3]))
    root = float(np.linalg.norm(M, 2)) ** -0.5
    X0 = rng.standard_normal((n, p)) * root * rng.choice([0.1, 1])
    K = int(rng.integers(1, 5))
    L_h, _ = bounded_lipschitz(toy, beta, float(np.linalg.norm(X0)) + root, 1.0)
    b = float(rng.choice([1, rng.uniform(0.05, 1)]))
    alpha = min(10.0 ** rng.uniform(-2, 0) / L_h, 2 * b)
    return toy, X0, Setting(K, alpha / b, alpha * K**0.5, beta)


# --- the rate over decades of K ------------------------------------------------------------------------------

HORIZONS = (200, 800, 3200, 12800)
LANES = 32
RATE_BETA = 1.0
S1, S2 = 2.0, {"CDFSG": 0.7, "CDFSG-Ada": 0.1}
"""Step sizes within the theorems' ranges: ``0 < s1 <= 2`` and ``b = s2 / (s1 sqrt(K)) <= 1``."""
DENSE, STRIDE = 512, 16
"""Gradients are taken at every k below DENSE, where the transient is, and at every STRIDE-th k beyond."""


def rate_problem() -> FinitePencil:
    """A concave f on 5-by-2 matrices with 16 outcomes of five rows each: M_theta is ``(I + noise)'(I + noise)``."""
    rng = np.random.default_rng(21)
    noise = 0.2 * rng.standard_normal((2, 16, 5, 5))
    U, V = 5**0.5 * (np.eye(5) + noise)
    return FinitePencil(U * np.geomspace(1, 0.3, 5), V, sign=-1)


def mean_squared_gradients(solver: CDFSG, K: int, lanes: int = LANES, seed: int = 0) -> Array:
    """``1/K sum_{k=1}^K ||grad h(X_k)||^2`` per lane, with the theorem's step sizes, shape (lanes,).

    Every lane has draws of its own and an initial point with ``X_0' X_0 = I / 4``.
    """
    toy, rng = rate_problem(), np.random.default_rng([seed, K])
    n = toy.sizes[0]
    X0 = np.stack([np.linalg.qr(rng.standard_normal((n, 2)))[0] / 2 for _ in range(lanes)], axis=1)
    values = {"s1": np.full(lanes, S1), "s2": np.full(lanes, S2[solver.name] / K**0.5)}
    state = solver.start(toy, X0, values, toy.first(rng.integers(toy.outcomes, size=lanes)))
    total = np.zeros(lanes)
    for k in range(1, K + 1):
        theta, xi = rng.integers(toy.outcomes, size=(2, lanes))
        solver.step(toy, state, toy.draw(theta, xi), 0)
        if k <= DENSE or k % STRIDE == 0:
            weight = 1 if k <= DENSE else STRIDE
            total += weight * squared_norms(toy.gradient_of_h(state.X, solver.beta), 1)
    return total / K


def rate(solver: CDFSG) -> tuple[Array, float, float]:
    """Mean squared gradients per horizon and lane, and the slope in K on log-log scale with its half-width (95 %).

    Returns
    -------
    means : array (len(HORIZONS), LANES)
    slope, half_width : float
        Of the slope of each lane's own fit: mean and 1.96 standard errors.
    """
    means = np.stack([mean_squared_gradients(solver, K) for K in HORIZONS])
    slopes = np.polyfit(np.log(HORIZONS), np.log(means), 1)[0]
    return means, float(slopes.mean()), float(1.96 * slopes.std(ddof=1) / len(slopes) ** 0.5)


def _rate_check(statement: str, solver: CDFSG) -> Check:
    _, slope, half_width = rate(solver)
    tally = Tally(instances=len(HORIZONS) * LANES, margin=-0.5 - slope + half_width)
    tested = f"mean squared gradient against K = 200 ... 12,800: slope {slope:.3f} +- {half_width:.3f}, claimed -0.5"
    return concluded(statement, tested, tally)


CHECKS: tuple[Statement, ...] = (
    bound_of_algorithm_1_holds,
    algorithm_1_has_the_rate,
    bound_of_algorithm_2_holds,
    algorithm_2_has_the_rate,
)
