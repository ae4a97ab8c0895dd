"""Both theorems of Section 4 on the mean squared gradient: their bounds against exact expectations, and the rate."""
# fmt: off: in a statement's decorator a line is one part of the words

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from cdfsg.linalg import Array
from cdfsg.solvers.cdfsg import CDFSG, CDFSGAda
from cdfsg.theory import counterexamples
from cdfsg.theory.finite import FinitePencil, every_path, least_penalty, random_pencil, squared_norms, started
from cdfsg.theory.statement import BLANKET, Erratum, Margin, at_most, norm, statement
from cdfsg.theory.tracker import INDEFINITE

STEPS = BLANKET + ", alpha_k = s1 b_k = s2 / sqrt(K), 0 < s1 <= 2"


@dataclass(frozen=True)
class Setting:
    """Constants of a run with the theorems' step sizes ``alpha = s1 b = s2 / sqrt(K)``."""

    K: int
    s1: float
    s2: float
    beta: float

    @property
    def alpha(self) -> float:
        return float(self.s2 / self.K**0.5)


@dataclass(frozen=True)
class Constants:
    """The constants of the bounds, valid for one problem, setting and horizon, over all paths."""

    tau_x: float  # largest ||X_k||
    tau_d: float  # largest ||D_k||
    tau_h: float  # largest ||grad h(X_k)||, which the paper uses undefined
    tau_m: float  # largest ||M_theta||
    variance: float  # v_m^2 of M_theta
    L_h: float  # of grad h on ||X|| <= tau_x; exact for n = p = 1, else an upper bound, as is
    L_W: float  # of every W_{xi,theta} in Y on ||X|| <= tau_x, ||Y|| <= tau_y
    J_0: float  # expected


@statement("theorem on Algorithm 1", place="Section 4.1, theorem on Algorithm 1",
           assumes=STEPS + ", s2 <= s1 sqrt(K), almost sure L_W, D_0 by eq:updated",
           says="The mean of E||grad h(X_k)||^2 over k < K is at most the printed bound.",
           corrected="the mean of E||grad h(X_k)||^2 over k < K is at most the corrected bound",
           counterexample=counterexamples.conditional_expectation,
           slips=(Erratum("Section 4.1, theorem on Algorithm 1",
                          "s2/(2 s1^2) L_W^2 tau_x^4 v_m^2 and 4 L_W^2 tau_x^2 tau_m^2, for all s2 > 0",
                          "2 s2/s1^2 L_W^2 tau_x^4 v_m^2 and 8 L_W^2 tau_x^2 tau_m^2, for s2 <= s1 sqrt(K), which is "
                          "b_k <= 1; J_0 is an expectation over Y_0", "wrong constant"),))
def bound_of_algorithm_1() -> Iterator[Margin]:
    rng = np.random.default_rng(11)
    for number in range(1000):
        toy, X0, setting = random_setting(rng, number)
        squares, constants = enumerate_paths(CDFSG(setting.beta), toy, X0, setting, null_direction=False)
        yield at_most(squares[: setting.K].mean(), first_bound(setting, constants))


@statement("theorem on Algorithm 1, rate", place="Section 4.1, theorem on Algorithm 1", assumes=STEPS,
           says="The mean of E||grad h(X_k)||^2 is O(1/sqrt(K)).")
def rate_of_algorithm_1() -> Iterator[Margin]:
    yield from slope_margins(CDFSG(RATE_BETA))


@statement("theorem on Algorithm 2", place="Section 4.2, theorem on Algorithm 2, J_0",
           assumes=STEPS + ", s2 <= s1 sqrt(K), V_0 = (1 - eta2) B_0^2",
           says="The mean of E||grad h(X_k)||^2 over 0 < k <= K is at most the printed bound.",
           printed="J_0 = h(X_0) - h(X_*) + c ||C(X_0) - Y_0||^2",
           corrected="J_0 as in eq:jkdefi_1, with the momentum term -c_0 <grad h(X_0), (eps + V_0)^(-1/2) B_0>, which "
                     "vanishes for B_0 = 0",
           severity="wrong formula", counterexample=counterexamples.lyapunov_start,
           slips=(Erratum("Section 4.2, theorem on Algorithm 2, constants",
                          "tau_h tau_d eps^(-1/2) (np + 1) / (s2 (1 - eta1) sqrt(K)), 8 c s2 tau_x^2 tau_m^2, and "
                          "tau_h without a definition",
                          "tau_h tau_d eps^(-1/2) (np + 1) / ((1 - eta1) sqrt(K)), 16 c s2 tau_x^2 tau_m^2, for "
                          "b_k <= 1, and tau_h the supremum of ||grad h(X_k)||", "wrong constant"),))
def bound_of_algorithm_2() -> Iterator[Margin]:
    rng = np.random.default_rng(12)
    for number in range(1000):
        toy, X0, setting = random_setting(rng, number)
        eta2 = float(rng.choice([0.5, 0.9, 0.999]))
        eta1 = float(rng.uniform(0, 0.99)) * eta2**0.5
        solver = CDFSGAda(setting.beta, eta1, eta2, float(10.0 ** rng.uniform(-8, 0)))
        B0 = rng.standard_normal(X0.shape) if number % 2 else np.zeros_like(X0)
        squares, constants = enumerate_paths(solver, toy, X0, setting, B0=B0)
        yield at_most(squares[1:].mean(), second_bound(solver, X0.size, setting, constants))


@statement("theorem on Algorithm 2, rate", place="Section 4.2, theorem on Algorithm 2", assumes=STEPS,
           says="The mean of E||grad h(X_k)||^2 is O(1/sqrt(K)).")
def rate_of_algorithm_2() -> Iterator[Margin]:
    yield from slope_margins(CDFSGAda(RATE_BETA))


def first_bound(setting: Setting, c: Constants) -> float:
    s1, s2 = setting.s1, setting.s2
    noise = 2 * s2 / s1**2 * c.L_W**2 * c.tau_x**4 * c.variance
    drift = (INDEFINITE * (c.L_W * c.tau_x * c.tau_m) ** 2 + c.L_h / 2) * s2 * c.tau_d**2
    return float(2 / setting.K**0.5 * (c.J_0 / s2 + noise + drift))


def second_bound(solver: CDFSGAda, size: int, setting: Setting, c: Constants) -> float:
    """The bound of the theorem on Algorithm 2; `size` is n p.  A stray 1/s2 is left out."""
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
    return L_W**2 / ((1 - solver.eta1) * solver.epsilon**0.5) if isinstance(solver, CDFSGAda) else L_W**2


def enumerate_paths(
    solver: CDFSG, toy: FinitePencil, X0: Array, setting: Setting, null_direction: bool = True, B0: Array | None = None
) -> tuple[Array, Constants]:
    """``E||grad h(X_k)||^2``, k = 0, ..., K, and the constants, over all paths; B0 comes with its least V_0."""
    first = started(solver, toy, X0, {"s1": setting.s1, "s2": setting.alpha}, null_direction)
    if B0 is not None and isinstance(solver, CDFSGAda):
        first.B = first.B + B0
        first.V = (1 - solver.eta2) * first.B**2
    means, largest = [], [0.0, 0.0 if B0 is None else norm(B0), 0.0]  # tau_d bounds B_0, as pro:bvbound asks
    for state in every_path(solver, toy, first, setting.K):
        squares = squared_norms(toy.gradient_of_h(state.X, setting.beta))
        means.append(squares.mean())
        sizes = (squared_norms(state.X), squared_norms(state.D), squares)
        largest = [max(old, float(new.max()) ** 0.5) for old, new in zip(largest, sizes, strict=True)]
    return np.array(means), _constants(solver, toy, setting, first, *largest)


def _constants(
    solver: CDFSG, toy: FinitePencil, setting: Setting, first: Any, tau_x: float, tau_d: float, tau_h: float
) -> Constants:
    tau_m = float(squared_norms(toy.M_theta).max()) ** 0.5
    tau_y = tau_x * tau_m * (tau_x + 2 * setting.s1 * tau_d)  # pro:boundy
    X0 = first.X[0]
    lipschitz = exact_lipschitz if X0.size == 1 else bounded_lipschitz
    L_h, L_W = lipschitz(toy, setting.beta, tau_x, tau_y)
    penalty = toy.penalty(setting.beta)
    gap = squared_norms(penalty.constraint(X0) - first.Y).mean()
    J_0 = penalty.value(X0) - least_penalty(toy, setting.beta, X0.shape[1]) + tracker_weight(solver, L_W) * gap
    if isinstance(solver, CDFSGAda):
        move = first.B[0] / np.sqrt(solver.epsilon + first.V[0])
        J_0 -= setting.alpha / (1 - solver.eta1) * np.vdot(penalty.gradient(X0), move)  # eq:jkdefi_1
    variance = float(squared_norms(toy.M_theta - toy.M).mean())
    return Constants(tau_x, tau_d, tau_h, tau_m, variance, L_h, L_W, float(J_0))


def exact_lipschitz(toy: FinitePencil, beta: float, tau_x: float, tau_y: float) -> tuple[float, float]:
    """L_h and L_W for n = p = 1, where grad h is a polynomial of degree 5 in x, and dW/dy of degree 3 in x.

    W is quadratic in y: a central difference gives dW/dy, which is largest at ``y = +-tau_y``.
    """
    x = _nodes(5, tau_x)
    L_h = _largest(x, toy.gradient_of_h(x[:, None, None], beta).ravel(), tau_x, derivative=True)
    x = _nodes(3, tau_x)
    shape = (toy.outcomes, toy.outcomes, 2, 2, len(x))  # theta, xi, end of the range of y, side of it, x
    theta, xi, end, side, node = np.indices(shape).reshape(5, -1)
    samples, Y = toy.draw(theta, xi), ((2 * end - 1) * tau_y + 2 * side - 1)[:, None, None]
    P = toy.scores(samples, x[node][:, None, None])
    W = CDFSG(beta).direction(toy, samples, P, Y).reshape(shape)
    slopes = (W[..., 1, :] - W[..., 0, :]).reshape(-1, len(x)) / 2
    return L_h, max(_largest(x, values, tau_x) for values in slopes)


def bounded_lipschitz(toy: FinitePencil, beta: float, tau_x: float, tau_y: float) -> tuple[float, float]:
    """Upper bounds of L_h and L_W from norms, for any n and p: each product of the formulas is differentiated."""
    alpha, mu = norm(toy.A, 2), norm(toy.M, 2)
    c = mu * tau_x**2
    q = (3 + c) / 2
    L_h = alpha * (q**2 + 5 * q * c + c**2) + beta * mu * (5 * c**2 + 1)
    alpha, mu = (float(np.linalg.norm(matrices, 2, axis=(1, 2)).max()) for matrices in (toy.A_xi, toy.M_theta))
    L_W = alpha * tau_x * (3 + tau_y) / 2 + mu * alpha * tau_x**3 / 2 + 2 * beta * mu * tau_x * tau_y
    return L_h, L_W


def _nodes(degree: int, radius: float) -> Array:
    return np.cos(np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1)) * radius


def _largest(nodes: Array, values: Array, radius: float, derivative: bool = False) -> float:
    """Largest absolute value on [-radius, radius] of the polynomial through the values, or of its derivative."""
    polynomial = np.polynomial.Polynomial.fit(nodes, values, len(nodes) - 1, domain=[-radius, radius])
    if derivative:
        polynomial = polynomial.deriv()
    turning = polynomial.deriv().roots().real
    inside = np.concatenate([[-radius, radius], turning[np.abs(turning) <= radius]])
    return float(np.abs(polynomial(inside)).max())


def random_setting(rng: np.random.Generator, number: int) -> tuple[FinitePencil, Array, Setting]:
    """A problem, an initial point and step sizes with ``b <= 1`` and ``s1 <= 2``."""
    n, p = ((1, 1), (1, 1), (2, 1), (1, 1), (1, 1), (2, 2))[number % 6]
    outcomes = 1 + (number % 5 > 0)  # a fifth of them are deterministic
    toy = random_pencil(rng, n, outcomes, rows=None if n == 1 else n, condition=float(rng.choice([1, 3])))
    toy = FinitePencil(toy.U, toy.V + (np.sign(toy.V) if n == 1 else 0), toy.sign)  # M is not nearly 0
    A = np.linalg.norm(toy.A_xi, axis=(1, 2)).max()
    beta = float(A / np.linalg.eigvalsh(toy.M)[0] * rng.choice([1, 3]))
    size = norm(toy.M, 2) ** -0.5
    X0 = rng.standard_normal((n, p)) * size * rng.choice([0.1, 1])
    K = int(rng.integers(1, 5))
    L_h, _ = bounded_lipschitz(toy, beta, norm(X0) + size, 1.0)
    b = float(rng.choice([1, rng.uniform(0.05, 1)]))
    alpha = min(10.0 ** rng.uniform(-2, 0) / L_h, 2 * b)
    return toy, X0, Setting(K, alpha / b, alpha * K**0.5, beta)

HORIZONS = (200, 800, 3200, 12800)
LANES = 32
RATE_BETA = 1.0
S1, S2 = 2.0, {"CDFSG": 0.7, "CDFSG-Ada": 0.1}
"""Step sizes within the theorems' ranges: ``0 < s1 <= 2`` and ``b = s2 / (s1 sqrt(K)) <= 1``."""
DENSE, STRIDE = 512, 16  # gradients are taken at every k up to DENSE, where the transient is, then at every STRIDE-th


def rate_problem() -> FinitePencil:
    """A concave f on 5-by-2 matrices with 16 outcomes of five rows each: M_theta is ``(I + noise)'(I + noise)``."""
    noise = 0.2 * np.random.default_rng(21).standard_normal((2, 16, 5, 5))
    U, V = 5**0.5 * (np.eye(5) + noise)
    return FinitePencil(U * np.geomspace(1, 0.3, 5), V, sign=-1)


def mean_squared_gradients(solver: CDFSG, K: int, lanes: int = LANES, seed: int = 0) -> Array:
    """``1/K sum_{k=1}^K ||grad h(X_k)||^2`` per lane, with the theorem's step sizes; each lane has its own draws."""
    toy, rng = rate_problem(), np.random.default_rng([seed, K])
    X0 = np.stack([np.linalg.qr(rng.standard_normal((toy.n, 2)))[0] / 2 for _ in range(lanes)])
    values = {name: np.full((lanes, 1, 1), s) for name, s in (("s1", S1), ("s2", S2[solver.name] / K**0.5))}
    state = solver.start(toy, X0, values, toy.rows(rng.integers(toy.outcomes, size=lanes))[None])
    total = np.zeros(lanes)
    for k in range(1, K + 1):
        solver.step(toy, state, toy.draw(*rng.integers(toy.outcomes, size=(2, lanes))))
        weight = 1 if k <= DENSE else STRIDE
        if k % weight == 0:
            total += weight * squared_norms(toy.gradient_of_h(state.X, solver.beta))
    return total / K


def rate(solver: CDFSG) -> tuple[Array, float, float]:
    """Mean squared gradients (horizons, lanes), and mean and 1.96 standard errors of the lanes' slopes in log K."""
    means = np.stack([mean_squared_gradients(solver, K) for K in HORIZONS])
    slopes = np.polyfit(np.log(HORIZONS), np.log(means), 1)[0]
    return means, float(slopes.mean()), float(1.96 * slopes.std(ddof=1) / len(slopes) ** 0.5)


def slope_margins(solver: CDFSG) -> Iterator[Margin]:
    means, slope, half_width = rate(solver)
    yield np.full(means.shape, -0.5 - slope + half_width)
    yield f"Slope {slope:.3f} +- {half_width:.3f} over K = 200 ... 12,800"
