"""Section 4, what a sample estimates: the surrogate H, the direction W, and what a minibatch biases."""

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from cdfsg.linalg import Array, sym
from cdfsg.merits import Huber, Identity, Merit
from cdfsg.penalty import Penalty
from cdfsg.problems import GCCA, SampledGCCA
from cdfsg.solvers.cdfsg import sampled_direction
from cdfsg.solvers.draws import Draw
from cdfsg.theory import algorithm_counterexamples as counterexamples
from cdfsg.theory.check import Check, Statement, Tally, concluded, error
from cdfsg.theory.finite import require

BETA = 0.7
QUADRATIC = 1e9
"""A Huber threshold that no t of the instances reaches, so that g(t) = t^2/2."""


def independent_samples_leave_the_direction_unbiased() -> Check:
    """as:algo (1) ii: ``E W_{xi,theta}(X, Y) = W(X, Y)``, xi and theta independent, each drawn from N samples."""
    tally = Tally()
    for Z, sizes, X, Y in _samples():
        mean = np.mean([_direction(Z, [i], [j], sizes, X, Y) for i in range(len(Z)) for j in range(len(Z))], axis=0)
        for k in range(X.shape[1]):
            exact = _exact(Z, sizes).direction(X[:, k], Y[k])
            tally.add(error(float(np.linalg.norm(mean[:, k] - exact)), _size(Z, X[:, k], Y[k])))
    return concluded("as:algo (1)", "E W_{xi,theta}(X, Y) = W(X, Y) over all pairs of independent samples", tally)


def shared_minibatch_leaves_the_direction_unbiased() -> Check:
    """as:algo (1) ii with one minibatch for xi and theta, a usual implementation: false, its bias is exactly O(1/l)."""
    tally, order = Tally(), Tally()
    for Z, sizes, X, Y in _samples():
        biases = shared_bias(Z, sizes, X, Y)
        for k in range(X.shape[1]):
            size = _size(Z, X[:, k], Y[k])
            tally.add(error(float(np.linalg.norm(biases[0][:, k])), size))
            for count, bias in enumerate(biases, start=1):
                predicted = without_replacement(count, len(Z)) * biases[0][:, k]
                order.add(error(float(np.linalg.norm(bias[:, k] - predicted)), size))
    require(order, "the bias is proportional to (N - l)/((N - 1) l)")
    tested = f"one minibatch for both; the bias is (N-l)/((N-1) l) times that at l = 1 (error {-order.margin:.0e})"
    return concluded("as:algo (1), shared", tested, tally, counterexamples.shared_minibatch())


def huber_minibatches_estimate_the_objective() -> Check:
    """as:blanket (2) for GCCA with the Huber merit: false; ``0 <= E g(t) - g(E t) <= Var(t)/2``, which is O(1/l)."""
    tally, order = Tally(), Tally()
    for Z, sizes, X, _ in _samples():
        for mu in (0.05, QUADRATIC):  # mostly linear, and quadratic throughout
            for biases, variances, exact in huber_bias(Z, sizes, X, Huber(mu)):
                for bias, variance, g in zip(biases, variances, exact, strict=True):
                    tally.add(error(float(bias), float(g)))
                    scale = max(variance, 1e-9 * (1 + g))
                    order.add(float(min(bias, variance / 2 - bias) / scale))
                    if mu == QUADRATIC:
                        order.add(error(float(bias - variance / 2), float(scale)))
    require(order, "the bias lies in [0, Var/2]", 1e-6)
    tested = "E f_xi = f on minibatches; the bias of g is at most Var(t)/2 = O(1/l), and equal to it below mu"
    return concluded("as:blanket (2), Huber", tested, tally, counterexamples.huber_minibatch())


def without_replacement(size: int, N: int) -> float:
    """Variance of the mean of l of N samples relative to that of one: ``(N - l) / ((N - 1) l)``."""
    return (N - size) / ((N - 1) * size)


def shared_bias(Z: Array, sizes: tuple[int, ...], X: Array, Y: Array) -> list[Array]:
    """``E W - W`` with one minibatch of l samples for xi and theta, over all choices of them, for l = 1, ..., N - 1.

    Parameters
    ----------
    Z : array (N, n)
        Samples.
    sizes : tuple of int
        View sizes.
    X : array (n, lanes, p)
    Y : array (lanes, p, p)
    """
    N = len(Z)
    exact = np.stack([_exact(Z, sizes).direction(X[:, k], Y[k]) for k in range(X.shape[1])], axis=1)
    return [
        np.mean([_direction(Z, list(c), list(c), sizes, X, Y) for c in combinations(range(N), size)], axis=0) - exact
        for size in range(1, N)
    ]


def huber_bias(Z: Array, sizes: tuple[int, ...], X: Array, merit: Merit) -> Iterator[tuple[Array, Array, Array]]:
    """``E g(t_Z) - g(t)``, ``Var t_Z`` and ``g(t)`` per lane, summed over columns and views, for l = 1, ..., N - 1."""
    P, m = SampledGCCA(sizes, merit).project(Z, X), len(sizes)
    t = np.stack([P[:, i] * P[:, j] for i in range(m) for j in range(m) if i != j])  # (pairs, N, lanes, p)
    exact = merit.value(t.mean(axis=1))
    for size in range(1, len(Z)):
        means = np.stack([t[:, list(c)].mean(axis=1) for c in combinations(range(len(Z)), size)])
        bias = merit.value(means).mean(axis=0) - exact
        yield tuple(a.sum(axis=(0, 2)) for a in (bias, means.var(axis=0), exact))


def gradient_bias(Z: Array, sizes: tuple[int, ...], X: Array, merit: Merit) -> list[float]:
    """``|| E grad f_Z - grad f ||`` per batch size l = 1, ..., N - 1, X of shape (n, lanes, p)."""
    problem, N = SampledGCCA(sizes, merit), len(Z)
    exact, norms = problem.gradient(Z, X), []
    for size in range(1, N):
        mean = np.mean([problem.gradient(Z[list(c)], X) for c in combinations(range(N), size)], axis=0)
        norms.append(float(np.linalg.norm(mean - exact)))
    return norms


def example() -> tuple[Array, tuple[int, ...], Array, Array]:
    """Samples, view sizes, X and Y that the figures show."""
    rng = np.random.default_rng(5)
    Z, X = rng.standard_normal((10, 4)), rng.standard_normal((4, 1, 1)) / 2
    return Z, (2, 2), X, np.ones((1, 1, 1))


def _samples() -> Iterator[tuple[Array, tuple[int, ...], Array, Array]]:
    """Small data sets with points X in lanes and any symmetric Y; some of them rank deficient, or with p = n."""
    rng = np.random.default_rng(3)
    for number in range(16):
        sizes = [(1, 1), (2, 2), (2, 1, 2), (3, 2)][number % 4]
        n, N = sum(sizes), 5
        p = [1, 2, n][number % 3]
        Z = rng.standard_normal((N, n)) * 10.0 ** rng.uniform(-1, 1, n)
        if number % 5 == 4:
            Z[:, -1] = 0  # a constant feature: M is singular
        X = rng.standard_normal((n, 70, p))
        X[:, 0] = 0
        yield Z, sizes, X, sym(rng.standard_normal((70, p, p)))


def _direction(Z: Array, xi: list[int], theta: list[int], sizes: tuple[int, ...], X: Array, Y: Array) -> Array:
    problem = SampledGCCA(sizes, Identity())
    rows = Z[theta + xi]
    draw = Draw(rows, slice(0, len(theta)), slice(len(theta), None))
    return sampled_direction(problem, draw, problem.project(rows, X), Y, BETA)


def _exact(Z: Array, sizes: tuple[int, ...]) -> Penalty:
    problem = GCCA(sym(Z.T @ Z / len(Z)), sizes, Identity())
    return Penalty(problem, problem.M, BETA)


def _size(Z: Array, X: Array, Y: Array) -> float:
    """A size of the terms of W, to measure rounding by."""
    z, x, y = (float(np.linalg.norm(a)) for a in (Z, X, Y))
    return z**2 * x * (1 + y) ** 2 * (1 + z**2 * x**2) + 1e-12


def _slope_error(penalty: Penalty, X: Array, D: Array) -> float:
    """Margin of ``d/dt h(X + t D) = <W(X, C(X)), D>``: h is a polynomial of degree 6 in t, so seven values give it."""
    D = D * (1 + np.linalg.norm(X)) / np.linalg.norm(D)
    t = np.arange(-3, 4) / 3
    values = [penalty.value(X + step * D) for step in t]
    slope = float(np.polynomial.Polynomial.fit(t, values, 6, domain=[-1, 1], window=[-1, 1]).coef[1])
    inner = float(np.vdot(penalty.direction(X, penalty.constraint(X)), D))
    return error(slope - inner, float(np.abs(values).max()))


CHECKS: tuple[Statement, ...] = (
    independent_samples_leave_the_direction_unbiased,
    shared_minibatch_leaves_the_direction_unbiased,
    huber_minibatches_estimate_the_objective,
)
