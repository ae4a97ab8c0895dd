"""How small beta may be before each statement fails, against the paper's threshold beta~.

Quadratic f with a simple pencil, where all stationary points are known up to rotation; the statements on Omega_{1/6}
are tried on many of its points, so that for them the least beta found is a lower estimate.  A statement that fails at
some beta may hold again below it; the search therefore goes down from the threshold to the first failure.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import permutations, product

import numpy as np

from cdfsg.linalg import Array
from cdfsg.theory.first_order import sharp_beta_of_quadratics
from cdfsg.theory.instances import REACH, Instance, instances, near_feasible
from cdfsg.theory.near_feasible import dissolved_part, violation
from cdfsg.theory.saddles import printed_constant
from cdfsg.theory.stationary import Point, pencil, quadratic_lengths

PRECISION = 1e-3
"""Relative precision of the least beta."""
LOWEST = 1e-4
"""Where the search ends, in units of the threshold."""
TRIED = 60
"""Random points of Omega_{1/6} on which its statements are tried, besides those along eigenvectors of the pencil."""
DOWN = 0.8
"""Factor from one beta to the next on the way down from the threshold."""


def least_beta(holds: Callable[[float], bool], low: float, high: float, precision: float = PRECISION) -> float:
    """The least beta at which a statement holds that holds at `high`; `low` if it holds there already.

    Parameters
    ----------
    holds : callable
        Whether the statement holds at a beta; once it holds it must do so for all larger ones.
    low, high : float
        Positive.
    precision : float
        Relative.

    Raises
    ------
    ValueError
        If the statement does not hold at `high`.
    """
    if not holds(high):
        raise ValueError(f"the statement does not hold at beta = {high:.4g}; begin with a larger beta")
    if holds(low):
        return low
    while high > low * (1 + precision):
        middle = (low * high) ** 0.5
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def least_beta_from_above(holds: Callable[[float], bool], low: float, high: float) -> float:
    """The least beta such that the statement holds from there up to `high`, seen in steps of `DOWN`.

    The arguments are those of `least_beta`, which refines the last step.
    """
    beta = high
    while beta > low and holds(beta * DOWN):
        beta *= DOWN
    return low if beta <= low else least_beta(holds, beta * DOWN, beta)


def with_beta(case: Instance, beta: float) -> Instance:
    """The instance with another penalty parameter."""
    return replace(case, penalty=replace(case.penalty, beta=beta))


def quadratic_points(case: Instance, spectrum: tuple[Array, Array]) -> Iterator[Point]:
    """All stationary points of a quadratic f with a simple pencil, up to rotation and the order of columns."""
    values, vectors = spectrum
    for chosen in permutations(range(case.n), case.p):
        if list(chosen) == sorted(chosen):
            lengths = [quadratic_lengths(float(values[i]), case.penalty.beta) for i in chosen]
            for pattern in product(*lengths):
                yield Point(case, vectors[:, list(chosen)] * np.sqrt(pattern))


def _in_omega(point: Point) -> bool:
    return float(point.eigenvalues[-1]) <= 1 + 1e-9


def _zero_or_one(point: Point) -> bool:
    values = point.eigenvalues
    return bool(np.minimum(values, np.abs(values - 1)).max() < 1e-9)


def _feasible_or_saddle(point: Point) -> bool:
    return point.classify() != "other"


def _feasible_or_printed_saddle(point: Point) -> bool:
    return point.is_feasible or point.least_curvature <= -printed_constant(point)


def _normal_curvature_is_positive(point: Point) -> bool:
    if not point.is_feasible:
        return True
    largest = np.linalg.eigvalsh(point.X.T @ point.case.penalty.problem.gradient(point.X))[-1]
    return bool(4 * point.case.penalty.beta > 3 * largest)


OF_POINTS: dict[str, Callable[[Point], bool]] = {
    "pro:sigma_up": _in_omega,
    "quadratic proposition": _zero_or_one,
    "pro:saddle": _feasible_or_printed_saddle,
    "thm:refir": _feasible_or_saddle,
    "le:sop_slep, eq:nn": _normal_curvature_is_positive,
}
"""Statements on stationary points, each by a test of one point."""


def _feabound(case: Instance, X: Array) -> bool:
    h, (low, high) = case.penalty, case.spectrum
    bound = (low / high) ** 0.5 / 2 * float(np.linalg.norm(dissolved_part(h, X)))
    return bool(bound + h.beta * low**0.5 / 2 * violation(h, X) <= np.linalg.norm(h.gradient(X)) * (1 + 1e-9))


def _between(case: Instance, X: Array) -> bool:
    h, (low, high) = case.penalty, case.spectrum
    norm, L = float(np.linalg.norm(h.gradient(X))), float(np.linalg.norm(h.lagrangian_gradient(X)))
    above = L + 7 * h.beta * high**0.5 * violation(h, X)
    below = (low / high) ** 0.5 / 2 * L + low**0.5 * h.beta / 4 * violation(h, X)
    return bool(below <= norm * (1 + 1e-9) and norm <= above * (1 + 1e-9))


OF_OMEGA: dict[str, Callable[[Instance, Array], bool]] = {"eq:feabound": _feabound, "th:star_bx": _between}
"""Statements on Omega_{1/6}, each by a test of one point of it."""


@dataclass(frozen=True)
class Sharpness:
    """The least beta of a statement on one instance, in units of the threshold.

    Attributes
    ----------
    statement : str
    instance : int
    ratio : float
        Least beta over the threshold.
    closed : float
        The same by a closed form, where there is one; NaN else.
    """

    statement: str
    instance: int
    ratio: float
    closed: float = float("nan")


def of_quadratics(count: int = 4, seed: int = 61) -> list[Sharpness]:
    """Sharpness of each statement on some quadratic f with n = 3, p = 2 and condition number 4 of M."""
    found = []
    for number, (case, rng) in enumerate(
        instances(count, seed, kinds=("quadratic",), betas=(1.0,), conditions=(4.0,), shapes=((3, 2),))
    ):
        spectrum = pencil(case)
        closed = closed_forms(spectrum[0])
        top = case.threshold
        for statement, test in OF_POINTS.items():
            holds = _on_points(case, spectrum, test)
            ratio = least_beta_from_above(holds, LOWEST * top, top) / top
            found.append(Sharpness(statement, number, ratio, closed.get(statement, float("nan")) / top))
        points = [near_feasible(case.penalty.M, case.p, rng) for _ in range(TRIED)]
        points += along_eigenvectors(case, spectrum[1])
        for statement, on_omega in OF_OMEGA.items():
            ratio = least_beta_from_above(_on_omega(case, points, on_omega), LOWEST * top, top) / top
            found.append(Sharpness(statement, number, ratio))
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
    return lambda beta: all(test(point) for point in quadratic_points(with_beta(case, beta), spectrum))


def _on_omega(case: Instance, points: list[Array], test: Callable[[Instance, Array], bool]) -> Callable[[float], bool]:
    return lambda beta: all(test(with_beta(case, beta), X) for X in points)
