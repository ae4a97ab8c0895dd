"""The assumptions of Sections 3 and 4, the functions H and W, what samples estimate and what a minibatch biases."""

from collections.abc import Callable, Iterator
from itertools import combinations, product

import numpy as np
from numpy.random import default_rng

from cdfsg.linalg import Array, sym
from cdfsg.merits import Huber, Identity, Merit
from cdfsg.penalty import Penalty
from cdfsg.problems import GCCA, SampledGCCA
from cdfsg.solvers.cdfsg import CDFSG
from cdfsg.theory import counterexamples
from cdfsg.theory.assumptions import correlations, two_features
from cdfsg.theory.derivatives import along, derivative
from cdfsg.theory.finite import FinitePencil, Run, random_pencil
from cdfsg.theory.instances import ANYWHERE, COUNT, LIPSCHITZ, draws, points, somewhere
from cdfsg.theory.statement import BLANKET, EVERY, OURS, Margins, at_most, equal, inner, norm, statement
from cdfsg.theory.tracker import tracked

BETA = 0.7
QUADRATIC = 1e9  # a Huber threshold that no t of the instances reaches, so that g(t) = t^2/2
Sizes = tuple[int, ...]


@statement("as:s", "Section 3.1, Assumption 3.4", assumes="f as in the checks: quadratic, linear, with sines, CCA",
    known_by="search", says="hess f exists everywhere.")
def twice_differentiable() -> Margins:
    for case, h, X, rng in points(somewhere, 17):
        D, f = rng.standard_normal(X.shape), h.problem
        yield case, equal(along(f.gradient, X, D), f.hessian(X, D), case.L_g * norm(D) + norm(f.gradient(X)))


@statement("as:s, Huber", "Assumption 3.4, Section 5", assumes="GCCA with the Huber merit",
    known_by="counterexample", says="hess f exists everywhere, as the experiments presume.",
    printed="an experiment under Assumption 3.4",
    corrected="grad f has a kink where a correlation is mu; there h has in general no Hessian",
    severity="outside the assumptions", counterexample=counterexamples.huber_has_kinks, source=OURS)
def huber_is_twice_differentiable() -> Margins:
    for rho, huber in correlations(COUNT, 18):
        f, D = two_features(rho, huber, 1.0).problem, np.array([[1.0], [0.0]])
        X, step = np.array([[huber.mu / rho], [1.0]]), 1e-3 * huber.mu / rho  # at the kink
        ahead, back = (f.gradient(X + side * step * D) - f.gradient(X) for side in (1, -1))
        yield equal(ahead, -back, norm(back))


@statement("as:algo (2)", "Section 4.1, Assumption 4.1 (2)", assumes="GCCA, minibatches of finitely many samples",
    says="||M_theta|| <= tau_m almost surely.")
def samples_are_bounded() -> Margins:
    """A mean is no longer than its longest term; features without a bound, as Gaussian ones, have no tau_m."""
    for _, rng in draws(1000, 19):
        Z, sizes = rng.standard_normal((8, 4)) * 10.0 ** rng.uniform(-2, 2, 4), (1, 3)
        M, *single = (GCCA(sym(A), sizes, Identity()).M for A in (Z.T @ Z / 8, *(np.outer(z, z) for z in Z)))
        yield at_most(norm(M), max(map(norm, single)))


@statement("as:algo (3)", "Section 4.1, Assumption 4.1 (3)",
    assumes="f = 0, n = p = 1, M_theta = b = 1, alpha beta <= 1/2, x_0^4 <= 1 + 2/(alpha beta)",
    says="The iterates are bounded.",
    printed="an assumption on the iterates for every start and step size",
    corrected="it is one on the start and the step size: from a start far out they leave every ball",
    severity="outside the assumptions", counterexample=counterexamples.far_start)
def iterates_are_bounded() -> Margins:
    """``x - alpha beta x (x^4 - 1)`` is no longer than x where ``1 <= x^4 <= 1 + 2/(alpha beta)``, else than 9/8."""
    one = np.ones((1, 1, 1))
    for _, rng in draws(40, 20):
        alpha, lanes = float(10.0 ** rng.uniform(-3, np.log10(0.5))), rng.uniform(-1, 1, 30)
        lanes[0] = 1 - 1e-9
        limit = np.maximum(abs(start := lanes * (1 + 2 / alpha) ** 0.25), 9 / 8)
        run = Run(CDFSG(1.0), FinitePencil(0 * one, one), 60, alpha, alpha * 60**0.5)
        states = run.random_path(start.reshape(-1, 1, 1), rng)
        _, *path = (norm(state.X) for state in states)  # the start is within the limit
        yield at_most(np.max(path, axis=0), limit)


@statement("as:algo (4)", "Section 4.1, Assumption 4.1 (4)",
    assumes="(2), (3), grad f_xi bounded on balls, 0 < b <= b_k <= 1", says="||D_k|| <= tau_d almost surely.")
def directions_are_bounded() -> Margins:
    """``||Y_{k+1}|| <= (1 - b_k) ||Y_k|| + b_k tau_x^2 tau_m + 4 tau_x^2 tau_m``, and ``D_k = W(X_k, Y_k)``."""
    yield "Since ||Y_k|| <= tau_x^2 tau_m (1 + 4/b), which grows with 1/b, and so with K in the theorems"
    for number, rng in draws(20, 22):
        b = rng.uniform(0.02, 1, 50)
        X, M = rng.uniform(-1, 1, (2, 201, 50, 1, 1))
        X[1::2], X[2::2] = 1.0, 0.0
        M[1::2], M[2::2] = 1.0, -(number % 2)  # the tracker grows at each move
        largest = np.max([norm(Y) for Y in tracked(X, M, np.tile(b, (200, 1)))], axis=0)
        yield at_most(largest, 1 + 4 / b)


@statement("as:algo (5)", "Section 4.1, Assumption 4.1 (5)", assumes="alpha_k = s1 b_k, as in both theorems",
    says="a = sup alpha_k / b_k is finite.")
def ratio_of_steps() -> Margins:
    """It is s1.  The remark's great flexibility ends at ``s1 <= 2`` and ``b_k <= 1``, which the theorems need."""
    rng, one = default_rng(24), np.ones((1000, 1, 1))
    s1, s2 = 10.0 ** rng.uniform(-2, 0, (2, 1000, 1, 1))
    toy, theta = random_pencil(rng, 1, 1), np.zeros(1000, int)
    state = CDFSG(1.0).start(toy, one, {"s1": s1, "s2": s2}, toy.draw(theta, theta))
    yield equal(s2.ravel(), (s1 * state.b).ravel(), s2.ravel())


@statement("as:algoadam (1)", "Section 4.2, Assumption 4.7 (1)", assumes="quadratic f_xi, finitely many outcomes",
    says="grad f_xi is bounded for ||X|| <= tau_x (tau_y + 3)/2, where W evaluates it.")
def gradients_are_bounded() -> Margins:
    """``||X (3I - Y)/2|| <= ||X|| (3 + ||Y||)/2``, and ``||A_xi X|| <= ||A_xi|| ||X||``."""
    for number, rng in draws(1000, 25):
        toy, n = random_pencil(rng, 1 + number % 3, 2), 1 + number % 3
        X, Y = rng.standard_normal((2, n, n))
        Z, radius = X @ (3 * np.eye(n) - sym(Y)) / 2, norm(X) * (norm(sym(Y)) + 3) / 2
        yield at_most(norm(Z), radius), at_most(norm(toy.A_xi @ Z).max(), norm(toy.A_xi).max() * radius)


@statement("eq:H", "Section 4.1, equation (36)", assumes=EVERY,
    known_by="algebra", says="H(X, C(X)) = h(X), as (37) says.",
    printed="beta/6 tr(V (V^2 - I))",
    corrected="beta/6 tr(V (V^2 - 3 I)), which agrees with (CDFCP)",
    severity="wrong formula", counterexample=counterexamples.surrogate_minimiser)
def surrogate_value() -> Margins:
    for _, h, X, _ in points(somewhere, 15, **ANYWHERE):
        value = h.value(X)
        yield equal(h.surrogate(X, h.constraint(X)), value, abs(value) + h.beta)


@statement("W", "Section 4.1, definition of W", assumes=EVERY + ", smooth f, M_theta symmetric, Y far from C(X)",
    known_by="algebra", says="W(X, Y) is the derivative of H through both arguments, and W(X, C(X)) = grad h(X).")
def direction() -> Margins:
    for _, h, X, rng in points(somewhere, 16, **(ANYWHERE | {"kinds": LIPSCHITZ})):
        D, C = somewhere(h.M, X.shape[1], rng), h.constraint(X)
        Y, S = sym(rng.standard_normal(C.shape)), 2 * sym(X.T @ h.M @ D)  # Y moves along S, as C does
        W, slope = h.direction(X, Y), derivative(lambda t: h.surrogate(X + t * D, Y + t * S))  # noqa: B023
        yield equal(slope, inner(W, D), norm(W) * norm(D) + abs(h.surrogate(X, Y)))
        yield equal(h.direction(X, C), h.gradient(X), norm(h.gradient(X)) + h.beta * norm(h.M @ X))


@statement("as:algo (1)", "Section 4.1, Assumption 4.1 (1)", assumes="GCCA with g(t) = t, xi and theta independent",
    says="E W_{xi,theta}(X, Y) = W(X, Y).")
def independent_samples() -> Margins:
    """W is a sum of products of a factor of xi and one of theta."""
    for Z, sizes, X, Y, scale in _samples():
        problem = GCCA(sym(Z.T @ Z / len(Z)), sizes, Identity())
        h = Penalty(problem, problem.M, BETA)
        W = [sampled_direction(np.array(pair)[:, None], sizes, X, Y) for pair in product(Z, Z)]
        yield equal(np.mean(W, axis=0), np.stack([*map(h.direction, X, Y)]), scale)


@statement("as:algo (1), shared", "Assumption 4.1 (1), Section 5", assumes="GCCA, xi and theta the same minibatch",
    known_by="counterexample", says="E W_{xi,theta}(X, Y) = W(X, Y).",
    counterexample=counterexamples.shared_minibatch, source=OURS)
def shared_samples() -> Margins:
    yield "The bias is (N-l)/((N-1) l) times that at l = 1"
    for Z, sizes, X, Y, scale in _samples():
        biases = shared_bias(Z, sizes, X, Y)
        yield equal(biases[0], 0.0, scale)
        for count, bias in enumerate(biases, start=1):
            predicted = without_replacement(count, len(Z)) * biases[0]
            yield equal(bias, predicted, scale, claim="the bias is proportional to (N - l)/((N - 1) l)")


@statement("as:blanket (2), Huber", "Assumption 1.1 (2), Section 5",
    assumes=BLANKET + " (2) for GCCA with the Huber merit",
    known_by="counterexample", says="A minibatch estimates f without bias.",
    printed="f_xi on a minibatch as an unbiased estimate of f (Assumption 1.1 (2))",
    corrected="biased: E g(t_xi) - g(t) lies between 0 and Var(t_xi)/2, which is of order 1/l",
    severity="outside the assumptions", counterexample=counterexamples.huber_minibatch, source=OURS)
def huber_minibatches() -> Margins:
    for Z, sizes, X, _, _ in _samples():
        for mu in (0.05, QUADRATIC):  # mostly linear, and quadratic throughout
            for bias, variance, exact in huber_bias(Z, sizes, X, Huber(mu)):
                yield equal(bias, 0.0, exact)
                scale = variance + 1e-6 * (1 + exact)
                yield at_most(0.0, bias, scale, claim="the bias is not negative")
                yield at_most(bias, variance / 2, scale, claim="the bias is at most half the variance")
                if mu == QUADRATIC:
                    yield equal(bias, variance / 2, scale, claim="the bias is half the variance below mu")


def without_replacement(size: int, N: int) -> float:
    """Variance of the mean of l of N samples relative to that of one."""
    return (N - size) / ((N - 1) * size)


def on_minibatches(function: Callable[[Array], Array], Z: Array) -> list[Array]:
    """Values of a function on all minibatches of l of N samples, for l = 1, ..., N; the last is exact."""
    choices = ([list(chosen) for chosen in combinations(range(len(Z)), size)] for size in range(1, len(Z) + 1))
    return [np.stack([function(Z[None, chosen]) for chosen in some]) for some in choices]


def bias(function: Callable[[Array], Array], Z: Array) -> list[Array]:
    """``E F - F`` for a function F of a minibatch of l samples, for l = 1, ..., N - 1."""
    *some, exact = (values.mean(axis=0) for values in on_minibatches(function, Z))
    return [mean - exact for mean in some]


def sampled_direction(samples: Array, sizes: Sizes, X: Array, Y: Array) -> Array:
    """The solver's direction on minibatches (s, l, n), shape (lanes, n, p)."""
    problem = SampledGCCA(sizes, Identity())
    return CDFSG(BETA).direction(problem, samples, problem.scores(samples, X), Y)


def shared_bias(Z: Array, sizes: Sizes, X: Array, Y: Array) -> list[Array]:
    """`bias` of W with one minibatch for xi and theta."""
    return bias(lambda samples: sampled_direction(samples, sizes, X, Y), Z)


def gradient_bias(Z: Array, sizes: Sizes, X: Array, merit: Merit) -> list[Array]:
    """`bias` of ``grad f``, X of shape (lanes, n, p)."""
    f = SampledGCCA(sizes, merit)
    return bias(lambda samples: f.adjoint(samples, f.raw_gradient(f.scores(samples, X)[0])[None]), Z)


def huber_bias(Z: Array, sizes: Sizes, X: Array, merit: Merit) -> Iterator[tuple[Array, Array, Array]]:
    """``E g(t_Z) - g(t)``, ``Var t_Z`` and ``g(t)`` per lane, for l = 1, ..., N - 1."""
    problem, m = SampledGCCA(sizes, merit), len(sizes)

    def inner_products(samples: Array) -> Array:
        P = problem.scores(samples, X)[0]
        return np.stack([(P[:, i::m] * P[:, j::m]).mean(axis=1) for i, j in problem.pairs])  # (pairs, lanes, p)

    *some, (t,) = on_minibatches(inner_products, Z)
    exact = merit.value(t)
    for t_Z in some:
        error = merit.value(t_Z).mean(axis=0) - exact
        yield tuple(a.sum(axis=(0, 2)) for a in (error, t_Z.var(axis=0), exact))


def example() -> tuple[Array, Sizes, Array, Array]:
    """Samples, view sizes, X and Y that the figures show."""
    rng = default_rng(5)
    Z, X = rng.standard_normal((10, 4)), rng.standard_normal((1, 4, 1)) / 2
    return Z, (2, 2), X, np.ones((1, 1, 1))


def _samples() -> Iterator[tuple[Array, Sizes, Array, Array, Array]]:
    """Small data sets with X, any symmetric Y and the size of the terms of W in lanes; some are singular, or p = n."""
    for number, rng in draws(16, 3):
        sizes = [(1, 1), (2, 2), (2, 1, 2), (3, 2)][number % 4]
        n, N = sum(sizes), 5
        p = [1, 2, n][number % 3]
        Z = rng.standard_normal((N, n)) * 10.0 ** rng.uniform(-1, 1, n)
        if number % 5 == 4:
            Z[:, -1] = 0  # a constant feature: M is singular
        X = rng.standard_normal((n, 70, p)).swapaxes(0, 1)
        X[0] = 0
        Y = sym(rng.standard_normal((70, p, p)))
        z, x = norm(Z), norm(X)
        yield Z, sizes, X, Y, z**2 * x * (1 + norm(Y)) ** 2 * (1 + z**2 * x**2) + 1e-12
