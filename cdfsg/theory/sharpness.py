"""How small beta may be before each statement fails, against the paper's threshold beta~.

Quadratic f with a simple pencil, where all stationary points are known up to rotation; the statements on Omega_{1/6}
are tried on many of its points, so that for them the least beta found is a lower estimate.  A statement that fails at
some beta may hold again below it; the search therefore goes down from the threshold to the first failure.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations, permutations, product

import numpy as np

from cdfsg.linalg import Array
from cdfsg.theory.first_order import sharp_beta_of_quadratics
from cdfsg.theory.instances import REACH, Instance, instances, near_feasible
from cdfsg.theory.near_feasible import both_bounds, lower_bound
from cdfsg.theory.saddles import printed_constant
from cdfsg.theory.statement import norm
from cdfsg.theory.stationary import Point, pencil, quadratic_lengths

PRECISION = 1e-3  # relative precision of the least beta
LOWEST = 1e-4  # where the search ends, in units of the threshold
TRIED = 60
"""Random points of Omega_{1/6} on which its statements are tried, besides those along eigenvectors of the pencil."""
DOWN = 0.8  # factor from one beta to the next on the way down from the threshold


def least_beta(holds: Callable[[float], bool], low: float, high: float) -> float:
    """The least beta from which a statement holds up to `high`, seen in steps of `DOWN` and refined; at least `low`."""
    if not holds(high):
        raise ValueError(f"the statement does not hold at beta = {high:.4g}; begin with a larger beta")
    while high > low and holds(high * DOWN):
        high *= DOWN
    fails = high * DOWN
    while high > max(low, fails * (1 + PRECISION)):
        middle = (fails * high) ** 0.5
        fails, high = (fails, middle) if holds(middle) else (middle, high)
    return max(low, high)


def quadratic_points(case: Instance, beta: float, spectrum: tuple[Array, Array]) -> Iterator[Point]:
    """All stationary points at another beta of a quadratic f with a simple pencil, up to rotation."""
    case, (values, vectors) = with_beta(case, beta), spectrum
    for chosen in combinations(range(case.n), case.p):
        for pattern in product(*(quadratic_lengths(float(values[i]), beta) for i in chosen)):
            yield Point(case, vectors[:, list(chosen)] * np.sqrt(pattern))


def with_beta(case: Instance, beta: float) -> Instance:
    """The instance with another penalty parameter."""
    return replace(case, h=replace(case.h, beta=beta))


def _zero_or_one(point: Point) -> bool:
    values = point.eigenvalues
    return bool(np.minimum(values, np.abs(values - 1)).max() < 1e-9)


def _normal_curvature_is_positive(point: Point) -> bool:
    if not point.is_feasible:
        return True
    largest = np.linalg.eigvalsh(point.X.T @ point.h.problem.gradient(point.X))[-1]
    return bool(4 * point.h.beta > 3 * largest)


OF_POINTS: dict[str, Callable[[Point], bool]] = {
    "pro:sigma_up": lambda point: bool(point.eigenvalues[-1] <= 1 + 1e-9),
    "quadratic proposition": _zero_or_one,
    "pro:saddle": lambda point: point.is_feasible or point.least_curvature <= -printed_constant(point),
    "thm:refir": lambda point: point.classify() != "other",
    "le:sop_slep, eq:nn": _normal_curvature_is_positive,
}
"""Statements on stationary points, each by a test of one point."""


def _feabound(case: Instance, X: Array) -> bool:
    return lower_bound(case, X) <= norm(case.h.gradient(X)) * (1 + 1e-9)


def _between(case: Instance, X: Array) -> bool:
    slope, (below, above) = norm(case.h.gradient(X)), both_bounds(case, X)
    return below <= slope * (1 + 1e-9) and slope <= above * (1 + 1e-9)


OF_OMEGA: dict[str, Callable[[Instance, Array], bool]] = {"eq:feabound": _feabound, "th:star_bx": _between}
"""Statements on Omega_{1/6}, each by a test of one point of it."""


def of_quadratics(count: int = 4, seed: int = 61) -> list[dict[str, float | str]]:
    """The least beta of each statement on some quadratic f with n = 3, p = 2 and condition number 4 of M.

    Each row has the statement, the instance, and the ratio to the threshold, found and by a closed form or NaN.
    """
    found: list[dict[str, float | str]] = []
    cases = instances(count, seed, kinds=("quadratic",), betas=(1.0,), conditions=(4.0,), shapes=((3, 2),))
    for number, (case, rng) in enumerate(cases):
        spectrum, top = pencil(case), case.threshold
        closed = closed_forms(spectrum[0])
        points = [near_feasible(case.h.M, case.p, rng) for _ in range(TRIED)]
        points += along_eigenvectors(case, spectrum[1])
        tests = {name: _on_points(case, spectrum, test) for name, test in OF_POINTS.items()}
        tests |= {name: _on_omega(case, points, test) for name, test in OF_OMEGA.items()}
        for name, holds in tests.items():
            ratio = least_beta(holds, LOWEST * top, top) / top
            found.append({"statement": name, "instance": number, "ratio": ratio,
                          "closed": closed.get(name, float("nan")) / top})  # fmt: skip
    return found


def along_eigenvectors(case: Instance, vectors: Array) -> Iterator[Array]:
    """Points of Omega_{1/6} with feasible eigenvectors as columns, one of them too long or too short."""
    for chosen in permutations(range(case.n), case.p):
        for shift in np.linspace(-REACH, REACH, 12):
            yield vectors[:, list(chosen)] * np.sqrt(1 + shift * np.eye(1, case.p))


def closed_forms(values: Array) -> dict[str, float]:
    """Least beta by statement, from the pencil's eigenvalues, for quadratic f with n > p."""
    return {
        "pro:sigma_up": 3 / 4 * float(np.abs(values).max()),
        "quadratic proposition": sharp_beta_of_quadratics(values),
        "le:sop_slep, eq:nn": 3 / 4 * max(float(values[-1]), 0.0),
    }


def _on_points(case: Instance, spectrum: tuple[Array, Array], test: Callable[[Point], bool]) -> Callable[[float], bool]:
    return lambda beta: all(test(point) for point in quadratic_points(case, beta, spectrum))


def _on_omega(case: Instance, points: list[Array], test: Callable[[Instance, Array], bool]) -> Callable[[float], bool]:
    return lambda beta: all(test(with_beta(case, beta), X) for X in points)
