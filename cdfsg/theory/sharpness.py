"""How small beta may be before each statement fails, against the paper's threshold beta~.

Quadratic f with a simple pencil, at stationary points with columns along its eigenvectors.  For p >= 2 and small beta
there are others (`counterexamples.columns_off_the_eigenvectors`), and of Omega_{1/6} some points are tried: the least
beta found is a lower estimate, exact where there is a closed form, since by Le_inner_nablah_XQ an eigenvalue sigma of
C other than 0 and 1 has ``beta (1 + sigma) = (9/4 - 3/4 sigma) u'Au``, ``u'Mu = 1``.  The search goes down to the
first failure; a statement may hold again below.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, combinations, permutations

import numpy as np

from cdfsg.linalg import Array
from cdfsg.theory.first_order import printed_constant, sharp_beta_of_quadratics, zero_or_one
from cdfsg.theory.instances import REACH, Instance, instances, near_feasible
from cdfsg.theory.near_feasible import feabound, star_bx
from cdfsg.theory.stationary import Point, pencil, quadratic_points

PRECISION = 1e-3  # relative precision of the least beta
LOWEST = 1e-4  # where the search ends, in units of the threshold
TRIED = 60  # random points of Omega_{1/6}, besides those along eigenvectors of the pencil
DOWN = 0.8  # factor from one beta to the next on the way down from the threshold
ROUNDING = 1e-9


def least_beta(holds: Callable[[float], bool], low: float, high: float) -> float:
    """The least beta, at least `low`, from which a statement holds up to `high`, in steps of `DOWN`."""
    if not holds(high):
        raise ValueError(f"the statement does not hold at beta = {high:.4g}; begin with a larger beta")
    while high > low and holds(high * DOWN):
        high *= DOWN
    fails = high * DOWN
    while high > max(low, fails * (1 + PRECISION)):
        middle = (fails * high) ** 0.5
        fails, high = (fails, middle) if holds(middle) else (middle, high)
    return max(low, high)


TESTS: dict[str, Callable[[Point], bool]] = {
    "pro:sigma_up": lambda point: bool(point.eigenvalues[-1] <= 1 + ROUNDING),
    "quadratic proposition": lambda point: zero_or_one(point) < ROUNDING,
    "pro:saddle": lambda point: point.is_feasible or point.least_curvature <= -printed_constant(point),
    "thm:refir": lambda point: point.is_feasible or point.is_strict_saddle,
    "le:sop_slep, eq:nn": lambda point: not point.is_feasible or bool(
        4 * point.h.beta > 3 * np.linalg.eigvalsh(point.X.T @ point.h.problem.gradient(point.X))[-1]
    ),
    "eq:feabound": lambda point: bool(feabound(point.case, point.X).margins >= -ROUNDING),
    "th:star_bx": lambda point: all(r.margins >= -ROUNDING for r in star_bx(point.case, point.X)),
}
"""A test of each statement at a stationary point, or at one of Omega_{1/6} for `OF_OMEGA`."""
OF_OMEGA = ("eq:feabound", "th:star_bx")


def of_quadratics() -> list[dict[str, float | str]]:
    """The least beta of each statement on four quadratic f with n = 3, p = 2 and condition number 4.

    Rows have the statement, the instance, and the ratio to the threshold, found and by a closed form or NaN.
    """
    found: list[dict[str, float | str]] = []
    cases = instances(4, 61, kinds=("quadratic",), betas=(1.0,), conditions=(4.0,), shapes=((3, 2),))
    for number, (case, rng) in enumerate(cases):
        top, (values, vectors) = case.threshold, pencil(case)
        closed = {
            "pro:sigma_up": 3 / 4 * float(np.abs(values).max()),
            "quadratic proposition": sharp_beta_of_quadratics(values),
            "le:sop_slep, eq:nn": 3 / 4 * max(float(values[-1]), 0.0),
        }
        near = [near_feasible(case.h.M, case.p, rng) for _ in range(TRIED)]
        for chosen in permutations(range(case.n), case.p):  # eigenvectors, the first too long or too short
            shifts = np.linspace(-REACH, REACH, 12)
            near += [vectors[:, list(chosen)] * np.sqrt(1 + shift * np.eye(1, case.p)) for shift in shifts]
        for name in TESTS:
            ratio = least_beta(partial(holds, name, case, near), LOWEST * top, top) / top
            sharp = closed.get(name, np.nan) / top
            found.append({"statement": name, "instance": number, "ratio": ratio, "closed": sharp})
    return found


def holds(name: str, case: Instance, near: Sequence[Array], beta: float) -> bool:
    """Whether a test passes at all points that are tried, with another beta."""
    case = replace(case, h=replace(case.h, beta=beta))
    stationary = (quadratic_points(case, chosen) for chosen in combinations(range(case.n), case.p))
    tried = (Point(case, X) for X in near) if name in OF_OMEGA else chain.from_iterable(stationary)
    return all(map(TESTS[name], tried))
