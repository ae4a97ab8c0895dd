"""Section 1: the blanket assumptions, the GCCA example, and whether h is bounded below."""

from collections.abc import Iterator

import numpy as np

from cdfsg.linalg import Array
from cdfsg.merits import Huber, Identity, Merit
from cdfsg.penalty import Penalty
from cdfsg.problems import GCCA, Linear
from cdfsg.theory import counterexamples
from cdfsg.theory.check import Check, Statement, Tally, at_most, concluded
from cdfsg.theory.definitions import quadratic_minimiser
from cdfsg.theory.instances import COUNT, definite, instances, orthogonal, somewhere
from cdfsg.theory.stationary import pencil

FAR = 10.0 ** np.arange(1, 7)
"""Squared lengths of a column, far from the feasible set."""


def two_features(rho: float, merit: Merit, beta: float) -> Penalty:
    """The function h of two views of one feature each, of variance 1 and correlation rho (n = 2)."""
    problem = GCCA(np.array([[1.0, rho], [rho, 1.0]]), (1, 1), merit)
    return Penalty(problem, problem.M, beta)


def along_the_leading_pair(h: Penalty, lengths: Array) -> Array:
    """Values of h of `two_features` on the diagonal x = y, at squared lengths ``x'Mx``."""
    return np.array([h.value(np.full((2, 1), (length / 2) ** 0.5)) for length in lengths])


def is_bounded_below(h: Penalty) -> bool:
    """Whether h does not fall any more far out on the diagonal of `two_features`."""
    values = along_the_leading_pair(h, FAR)
    return bool((np.diff(values) > 0).all() and values[-1] > 0)


def least_bounded_beta(rho: float, merit: Merit) -> float:
    """``3/2 rho``, and ``3/2 mu rho`` for the Huber merit: below it h falls without bound, on it h is bounded."""
    return 1.5 * rho * (merit.mu if isinstance(merit, Huber) else 1.0)


def penalty_is_bounded_below() -> Check:
    """(CDFCP) and its motivation: for beta large enough; with two views exactly for ``beta >= 3/2 rho_1``."""
    tally = Tally()
    for case, rng in instances(COUNT, 51, kinds=("quadratic", "identity")):
        h = case.penalty
        X = somewhere(h.M, case.p, rng) * 10 ** rng.uniform(-1, 4)
        least = h.value(quadratic_minimiser(case))  # of the problem, and hence of h
        tally.add((h.value(X) - least) / (abs(least) + abs(h.value(X))))
    for rho, merit in correlations(COUNT, 52):
        edge = least_bounded_beta(rho, merit)
        tally.add(0.0 if is_bounded_below(two_features(rho, merit, 1.01 * edge)) else -1.0)
        tally.add(-1.0 if is_bounded_below(two_features(rho, merit, 0.99 * edge)) else 0.0)
    says = "min h is min f at beta~; with two views h is bounded below for beta >= 3/2 rho_1 (Huber: 3/2 mu rho_1) only"
    return concluded("cdfcp", says, tally, counterexamples.small_beta_is_unbounded())


def correlations(count: int, seed: int) -> Iterator[tuple[float, Merit]]:
    """Canonical correlations in (0, 1], each with a merit."""
    rng = np.random.default_rng(seed)
    for k in range(count // 2):
        rho = 1.0 if k == 0 else float(rng.uniform(0.05, 1))
        yield rho, Identity()
        yield rho, Huber(float(10 ** rng.uniform(-2, 0)))


def identity_merit_is_lipschitz() -> Check:
    """Assumption 1.1 for the identity merit, with a constant that is attained."""
    tally = Tally()
    for case, rng in instances(COUNT, 53, kinds=("identity",)):
        problem = case.penalty.problem
        X, Y = rng.standard_normal((2, case.n, case.p))
        difference = float(np.linalg.norm(problem.gradient(X) - problem.gradient(Y)))
        steepest = np.linalg.svd(problem.hessian(np.zeros((case.n, case.n)), np.eye(case.n)))[2][:1].T
        attained = float(np.linalg.norm(problem.gradient(steepest)))
        tally.add(
            at_most(difference, problem.lipschitz * float(np.linalg.norm(X - Y))),
            -abs(attained / problem.lipschitz - 1),
        )
    return concluded("as:blanket (1), identity", "GCCA with g(t) = t has L_g = 2 ||(c_ij S_ij)||_2", tally)


def huber_merit_is_lipschitz() -> Check:
    """Assumption 1.1 for the Huber merit, as the experiments presume: bounded slopes of the gradient."""
    tally = Tally()
    for _, merit in correlations(2 * COUNT, 54):
        if isinstance(merit, Huber):
            slopes = [huber_slope(merit, R) for R in (1.0, 1e3)]
            tally.add(at_most(slopes[1], 10 * slopes[0]))
    says = "that the experiments' GCCA with the Huber merit has a globally Lipschitz gradient"
    return concluded("as:blanket (1), Huber", says, tally, counterexamples.huber_is_not_lipschitz())


def huber_slope(merit: Huber, R: float) -> float:
    """Slope of the gradient of f between (0, R) and (mu/R, R), two views of one feature, perfectly correlated."""
    problem = two_features(1.0, merit, 1.0).problem
    start, end = np.array([[0.0], [R]]), np.array([[merit.mu / R], [R]])
    return float(np.linalg.norm(problem.gradient(end) - problem.gradient(start)) / np.linalg.norm(end - start))


def singular_constraint_is_enough() -> Check:
    """Whether M >= 0 would do in Assumption 1.3: h bounded below for large beta, along the kernel of M."""
    tally = Tally()
    rng = np.random.default_rng(55)
    for _ in range(COUNT):
        n = int(rng.integers(2, 5))
        basis = orthogonal(rng, n)
        M = basis[:, 1:] @ definite(rng, n - 1, 10.0) @ basis[:, 1:].T
        h = Penalty(Linear(basis[:, :1]), (M + M.T) / 2, 1e6)
        values = [h.value(-t * basis[:, :1]) for t in (1e6, 1e9)]
        tally.add(0.0 if values[1] > values[0] else -1.0)
    says = "that M >= 0 suffices, as for data with constant features"
    return concluded("as:blanket (3)", says, tally, counterexamples.singular_constraint_is_unbounded())


def two_views_give_classical_correlations_up_to_scale() -> Check:
    """eq:classcca: the minimiser of (p:GCCA) times ``2^(1/2)`` is feasible for the classical form, and minimises it."""
    tally = Tally()
    for case, _ in instances(COUNT, 56, kinds=("identity",)):
        problem = case.penalty.problem
        assert isinstance(problem, GCCA)
        X = np.sqrt(2) * quadratic_minimiser(case)[:, :1]  # the leading pair; more of them while rho_k > 0
        gaps = [float((X[view].T @ problem.M[view, view] @ X[view]).item()) - 1 for view in problem.slices]
        one, two = problem.slices
        classical = -0.5 * float((X[one].T @ problem.covariance[one, two] @ X[two]).item())
        rho = -0.5 * float(pencil(case)[0][0])
        tally.add(-max(map(abs, gaps)), -abs(classical + rho / 2))
    says = "the same subspaces after X -> 2^(1/2) X, and half of the value"
    return concluded("eq:classcca", says, tally, counterexamples.classical_correlation_scale(), 1e-6)


CHECKS: tuple[Statement, ...] = (
    identity_merit_is_lipschitz,
    huber_merit_is_lipschitz,
    singular_constraint_is_enough,
    two_views_give_classical_correlations_up_to_scale,
    penalty_is_bounded_below,
)
