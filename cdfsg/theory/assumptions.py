"""Section 1: the blanket assumptions, the GCCA example, and whether h is bounded below."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from cdfsg.linalg import Array
from cdfsg.merits import Huber, Identity, Merit, largest_slope
from cdfsg.penalty import Penalty
from cdfsg.problems import GCCA, Linear
from cdfsg.theory import counterexamples
from cdfsg.theory.instances import COUNT, QUADRATICS, definite, draws, instances, orthogonal, points, somewhere
from cdfsg.theory.statement import BLANKET, OURS, Margins, at_most, equal, norm, statement, true
from cdfsg.theory.stationary import pencil, quadratic_minimiser

FAR = 10.0 ** np.arange(1, 7)  # squared lengths of a column, far out, where h rises if it is bounded below


@statement("as:blanket (1), identity", "Assumption 1.1 (1), Example 1.2", assumes="GCCA with g(t) = t",
    says="The gradient of f is globally Lipschitz, with L_g = 2 ||(c_ij S_ij)||_2.", source=OURS)
def identity_merit() -> Margins:
    """The gradient is linear: ``-2 (c_ij S_ij) X``."""
    for case, rng in instances(COUNT, 53, kinds=("identity",)):
        f = case.h.problem
        X, Y = rng.standard_normal((2, case.n, case.p))
        steepest = np.linalg.svd(f.hessian(np.zeros((case.n, case.n)), np.eye(case.n)))[2][:1].T
        attained = norm(f.gradient(steepest))
        yield case, at_most(norm(f.gradient(X) - f.gradient(Y)), case.L_g * norm(X - Y)), equal(
            attained, case.L_g, case.L_g)


@statement("as:blanket (1), Huber", "Assumption 1.1 (1), Section 5", assumes="GCCA with the Huber merit",
    known_by="counterexample", says="The gradient of f is globally Lipschitz, as the experiments presume.",
    printed="an experiment under Assumption 1.1",
    corrected="the gradient is not globally Lipschitz, so there is no threshold",
    severity="outside the assumptions", counterexample=counterexamples.huber_is_not_lipschitz, source=OURS)
def huber_merit() -> Margins:
    for _, huber in correlations(COUNT, 54):
        f, slopes = two_features(1.0, huber, 1.0).problem, []
        for R in (1.0, 1e3):
            start, end = np.array([[0.0], [R]]), np.array([[huber.mu / R], [R]])
            slopes.append(norm(f.gradient(end) - f.gradient(start)) / norm(end - start))
        yield at_most(slopes[1], 10 * slopes[0])


@statement("as:blanket (3)", "Assumption 1.1 (3), Section 5, constant features", assumes="M >= 0 in place of M > 0",
    known_by="counterexample", says="h is bounded below for large beta, as the experiments presume.",
    printed="an experiment under Assumption 1.1 (3)",
    corrected="M is singular; for general f, h may then be unbounded below for every beta; not for GCCA, "
              "where f ignores the kernel of M and the assumption holds on its range",
    severity="outside the assumptions", counterexample=counterexamples.singular_constraint_is_unbounded, source=OURS)
def singular_constraint() -> Margins:
    for _, rng in draws(COUNT, 55):
        n = int(rng.integers(2, 5))
        basis = orthogonal(rng, n)
        M = basis[:, 1:] @ definite(rng, n - 1, 10.0) @ basis[:, 1:].T
        h = Penalty(Linear(basis[:, :1]), (M + M.T) / 2, 1e6)
        yield true(h.value(-1e9 * basis[:, :1]) > h.value(-1e6 * basis[:, :1]))
        Z = rng.standard_normal((9, 4)) * (1, 1, 1, 0)  # a constant feature of the second view
        gcca = GCCA(Z.T @ Z / 9, (2, 2), Identity())
        h, X = Penalty(gcca, gcca.M, 1.0), rng.standard_normal((4, 2))
        moved = h.value(X + np.outer(np.eye(4)[3], (5, -3)))
        yield equal(moved, h.value(X), 1 + abs(h.value(X)), claim="GCCA ignores the kernel of M")


@statement("eq:classcca", "Section 1, equation (2)", assumes="two views, identity merit, c_ij = 1, rho_p > 0",
    says="Problem (1) is classical canonical correlation analysis.",
    printed="yields the classical problem with X_i' S_ii X_i = I",
    corrected="yields it after X -> 2^(1/2) X: X_i' S_ii X_i = I/2 at its minimisers, with twice the classical value",
    severity="wrong constant", counterexample=counterexamples.classical_correlation_scale, rounding=1e-6)
def classical_correlation() -> Margins:
    """With ``(x, y)`` of rho > 0 the pencil has ``(x, -y)`` of -rho, which is M-orthogonal to all of positive rho.

    So ``x_r' S_11 x_s = y_r' S_22 y_s``, and both are half of ``delta_rs``.
    """
    for case, _ in instances(COUNT, 56, kinds=("identity",)):
        problem = case.h.problem
        assert isinstance(problem, GCCA)
        (one, two), values = problem.slices, pencil(case)[0]
        p = int(np.sum(values[: case.p] < -1e-6))
        X = np.sqrt(2) * quadratic_minimiser(case)[:, :p]
        gram = [X[view].T @ problem.M[view, view] @ X[view] for view in problem.slices]
        classical = -0.5 * np.trace(X[one].T @ problem.covariance[one, two] @ X[two])
        yield *(equal(part, np.eye(p), 1.0) for part in gram), equal(classical, values[:p].sum() / 4, 1.0)


@statement("cdfcp", "Section 1.2, (CDFCP)", assumes=BLANKET + ", beta > 3/4 L_g / s",
    says="The penalty function is bounded below for suitable beta.")
def bounded_below_for_large_beta() -> Margins:
    """``f(Y) >= f(0) - L_0 |Y| - L_g/2 |Y|^2`` and ``|A(X)|^2 <= tr(C (3 - C)^2) / (4 s)``.

    So h is at least a function of C in which ``(beta/6 - L_g/(8 s)) tr C^3`` dominates.
    """
    for case, h, X, rng in points(somewhere, 50, betas=(1.0,)):
        s = case.spectrum[0]
        h = replace(h, beta=(0.75 + 10 ** rng.uniform(-6, 1)) * (case.L_g or 1.0) / s)
        X *= 10 ** rng.uniform(-1, 4)
        C, A = h.constraint(X), norm(h.dissolve(X))
        wide = float(np.trace(C @ (3 * np.eye(case.p) - C) @ (3 * np.eye(case.p) - C))) / (4 * s)
        least = h.problem.value(0 * X) - case.L_0 * wide**0.5 - case.L_g / 2 * wide
        yield case, at_most(A**2, wide), at_most(least, h.problem.value(h.dissolve(X)), abs(least) + wide)


@statement("beta = 0.1", "Section 5, beta = 0.1", assumes="quadratic f: beta >= beta~; two views: any beta",
    known_by="search", says="The penalty function is bounded below, and its minimisers are those of the problem.",
    printed="beta = 0.1 for (CDFCP)",
    corrected="at beta~ minimisers of h solve the problem (min h = min f - beta p/3); with two views h is bounded "
              "below only for beta >= 3/2 rho_1 (Huber: 3/2 mu rho_1), which 0.1 is not for the identity merit",
    severity="outside the assumptions", counterexample=counterexamples.small_beta_is_unbounded, source=OURS)
def bounded_below() -> Margins:
    for case, h, X, rng in points(somewhere, 51, kinds=QUADRATICS):
        X *= 10 ** rng.uniform(-1, 4)
        least = h.value(quadratic_minimiser(case))
        yield case, at_most(least, h.value(X))
    for rho, huber in correlations(COUNT // 2, 52):
        for merit in (Identity(), huber):
            for share in (1.01, 0.99):
                h = two_features(rho, merit, share * least_bounded_beta(rho, merit))
                far = along_the_leading_pair(h, FAR)
                yield true(((np.diff(far) > 0).all() and far[-1] > 0) == (share > 1))


def correlations(count: int, seed: int) -> Iterator[tuple[float, Huber]]:
    for k, rng in draws(count, seed):
        yield float(rng.uniform(0.05, 1)) if k else 1.0, Huber(float(10 ** rng.uniform(-2, 0)))


def two_features(rho: float, merit: Merit, beta: float) -> Penalty:
    """The function h of two views of one feature each, of variance 1 and correlation rho."""
    problem = GCCA(np.array([[1.0, rho], [rho, 1.0]]), (1, 1), merit)
    return Penalty(problem, problem.M, beta)


def along_the_leading_pair(h: Penalty, lengths: Array) -> Array:
    return np.array([h.value(np.full((2, 1), (length / 2) ** 0.5)) for length in lengths])


def least_bounded_beta(rho: float, merit: Merit) -> float:
    """``3/2 rho``, and ``3/2 mu rho`` for the Huber merit: below it h falls without bound."""
    return 1.5 * rho * largest_slope(merit)
