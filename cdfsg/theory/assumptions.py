"""Section 1: the blanket assumptions, the GCCA example, and whether h is bounded below."""
# fmt: off (see statement.py)

from collections.abc import Iterator

import numpy as np
from numpy.random import default_rng

from cdfsg.linalg import Array
from cdfsg.merits import Huber, Identity, Merit
from cdfsg.penalty import Penalty
from cdfsg.problems import GCCA, Linear
from cdfsg.theory import counterexamples
from cdfsg.theory.instances import COUNT, QUADRATICS, definite, instances, orthogonal, points, somewhere
from cdfsg.theory.statement import Margins, at_most, norm, statement, true
from cdfsg.theory.stationary import pencil, quadratic_minimiser

FAR = 10.0 ** np.arange(1, 7)  # squared lengths of a column, far from the feasible set


@statement("as:blanket (1), identity", "Assumption 1.1, Example 1", assumes="GCCA with g(t) = t",
    says="The gradient of f is globally Lipschitz, with L_g = 2 ||(c_ij S_ij)||_2.")
def identity_merit() -> Margins:
    for case, rng in instances(COUNT, 53, kinds=("identity",)):
        f = case.h.problem
        X, Y = rng.standard_normal((2, case.n, case.p))
        steepest = np.linalg.svd(f.hessian(np.zeros((case.n, case.n)), np.eye(case.n)))[2][:1].T
        attained = norm(f.gradient(steepest))
        yield at_most(norm(f.gradient(X) - f.gradient(Y)), case.L_g * norm(X - Y)), -abs(attained / case.L_g - 1)


@statement("as:blanket (1), Huber", "Assumption 1.1, Section 5", assumes="GCCA with the Huber merit",
    says="The gradient of f is globally Lipschitz, as the experiments presume.",
    printed="an experiment under Assumption 1.1",
    corrected="the gradient is not globally Lipschitz, so there is no threshold",
    severity="outside the assumptions", counterexample=counterexamples.huber_is_not_lipschitz)
def huber_merit() -> Margins:
    for _, merit in correlations(2 * COUNT, 54):
        if isinstance(merit, Huber):
            f, slopes = two_features(1.0, merit, 1.0).problem, []
            for R in (1.0, 1e3):
                start, end = np.array([[0.0], [R]]), np.array([[merit.mu / R], [R]])
                slopes.append(norm(f.gradient(end) - f.gradient(start)) / norm(end - start))
            yield at_most(slopes[1], 10 * slopes[0])


@statement("as:blanket (3)", "Assumption 1.3, Section 5, constant features", assumes="M >= 0 in place of M > 0",
    says="h is bounded below for large beta, as the experiments presume.",
    printed="an experiment under Assumption 1.3",
    corrected="M is singular; for general f, h may then be unbounded below for every beta",
    severity="outside the assumptions", counterexample=counterexamples.singular_constraint_is_unbounded)
def singular_constraint() -> Margins:
    rng = default_rng(55)
    for _ in range(COUNT):
        n = int(rng.integers(2, 5))
        basis = orthogonal(rng, n)
        M = basis[:, 1:] @ definite(rng, n - 1, 10.0) @ basis[:, 1:].T
        h = Penalty(Linear(basis[:, :1]), (M + M.T) / 2, 1e6)
        yield true(h.value(-1e9 * basis[:, :1]) > h.value(-1e6 * basis[:, :1]))


@statement("eq:classcca", "Section 1", assumes="two views, identity merit",
    says="(p:GCCA) is classical canonical correlation analysis.",
    printed="yields the classical problem with X_i' S_ii X_i = I",
    corrected="yields it after X -> 2^(1/2) X: X_i' S_ii X_i = I/2 at its minimisers, "
              "with twice the classical value",
    severity="wrong constant", counterexample=counterexamples.classical_correlation_scale, rounding=1e-6)
def classical_correlation() -> Margins:
    for case, _ in instances(COUNT, 56, kinds=("identity",)):
        problem = case.h.problem
        assert isinstance(problem, GCCA)
        X = np.sqrt(2) * quadratic_minimiser(case)[:, :1]  # the leading pair
        gaps = [(X[view].T @ problem.M[view, view] @ X[view]).item() - 1 for view in problem.slices]
        one, two = problem.slices
        classical = -0.5 * (X[one].T @ problem.covariance[one, two] @ X[two]).item()
        rho = -0.5 * float(pencil(case)[0][0])
        yield -max(map(abs, gaps)), -abs(classical + rho / 2)


@statement("cdfcp", "Section 1; beta = 0.1 in Section 5",
    assumes="quadratic f: beta >= beta~; two views: any beta",
    says="The penalty function is bounded below, so that min h is min f.",
    printed="beta = 0.1 for (CDFCP)",
    corrected="min h is min f at beta~; with two views h is bounded below only for "
              "beta >= 3/2 rho_1 (Huber: 3/2 mu rho_1), which 0.1 is not for the identity merit",
    severity="outside the assumptions", counterexample=counterexamples.small_beta_is_unbounded)
def bounded_below() -> Margins:
    for case, h, X, rng in points(somewhere, instances(COUNT, 51, kinds=QUADRATICS)):
        X *= 10 ** rng.uniform(-1, 4)
        least = h.value(quadratic_minimiser(case))
        yield (h.value(X) - least) / (abs(least) + abs(h.value(X)))
    for rho, merit in correlations(COUNT, 52):
        edge = least_bounded_beta(rho, merit)
        yield true(is_bounded_below(two_features(rho, merit, 1.01 * edge)))
        yield true(not is_bounded_below(two_features(rho, merit, 0.99 * edge)))


def correlations(count: int, seed: int) -> Iterator[tuple[float, Merit]]:
    rng = default_rng(seed)
    for k in range(count // 2):
        rho = float(rng.uniform(0.05, 1)) if k else 1.0
        yield rho, Identity()
        yield rho, Huber(float(10 ** rng.uniform(-2, 0)))


def two_features(rho: float, merit: Merit, beta: float) -> Penalty:
    """The function h of two views of one feature each, of variance 1 and correlation rho."""
    problem = GCCA(np.array([[1.0, rho], [rho, 1.0]]), (1, 1), merit)
    return Penalty(problem, problem.M, beta)


def along_the_leading_pair(h: Penalty, lengths: Array) -> Array:
    return np.array([h.value(np.full((2, 1), (length / 2) ** 0.5)) for length in lengths])


def is_bounded_below(h: Penalty) -> bool:
    """Whether h rises far out on the diagonal of `two_features`."""
    values = along_the_leading_pair(h, FAR)
    return bool((np.diff(values) > 0).all() and values[-1] > 0)


def least_bounded_beta(rho: float, merit: Merit) -> float:
    """``3/2 rho``, and ``3/2 mu rho`` for the Huber merit: below it h falls without bound."""
    return 1.5 * rho * (merit.mu if isinstance(merit, Huber) else 1.0)
