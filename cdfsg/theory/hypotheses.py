"""The assumptions of Sections 3 and 4 (as:s, as:algo, as:algoadam), where they can be checked before a run."""

import numpy as np
from numpy.random import default_rng

from cdfsg.linalg import sym
from cdfsg.merits import Identity
from cdfsg.problems import GCCA
from cdfsg.solvers.cdfsg import CDFSG
from cdfsg.theory import counterexamples
from cdfsg.theory.assumptions import correlations, two_features
from cdfsg.theory.derivatives import along
from cdfsg.theory.finite import FinitePencil, Run, random_pencil
from cdfsg.theory.instances import COUNT, draws, points, somewhere
from cdfsg.theory.statement import OURS, Margins, at_most, equal, norm, statement
from cdfsg.theory.tracker import tracked


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
