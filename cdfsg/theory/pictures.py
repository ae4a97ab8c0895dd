"""The numbers behind the pictures of the theory, as tables."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.optimize import brentq

from cdfsg.linalg import Array, inv_sqrt
from cdfsg.merits import Merit
from cdfsg.penalty import Penalty
from cdfsg.problems import Linear, Quadratic
from cdfsg.theory import saddles, sharpness
from cdfsg.theory.assumptions import least_bounded_beta, two_features
from cdfsg.theory.first_order import sharp_beta_of_quadratics
from cdfsg.theory.instances import Instance, Sines, definite, orthogonal
from cdfsg.theory.stationary import Point, hessian_matrix, linear_root, pencil, quadratic_lengths

LINE_FACTORS = (1.0, 0.05, 0.01)
"""Penalty parameters on the line, in units of the threshold."""


def line(factors: Sequence[float] = LINE_FACTORS) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The function h for n = p = 1, M = 1 and f = x^2/2 + x/2 + sin x, and its stationary points.

    Returns
    -------
    values : DataFrame
        Columns ``factor, x, h``, with h in units of beta.
    points : DataFrame
        Columns ``factor, x, h, kind``.
    """
    f = Sines(np.array([[1.0]]), np.array([[0.5]]), 1.0)
    threshold = Penalty(f, np.eye(1), 1.0).threshold(1)
    grid = np.linspace(-1.6, 1.6, 801) + 1e-4  # not symmetric, so that no stationary point is on the grid
    values, points = [], []
    for factor in factors:
        h = Penalty(f, np.eye(1), factor * threshold)
        slopes = [_slope(x, h) for x in grid]
        values += [{"factor": factor, "x": x, "h": h.value(np.array([[x]])) / h.beta} for x in grid]
        for k in np.flatnonzero(np.diff(np.sign(slopes))):
            x = float(brentq(_slope, grid[k], grid[k + 1], args=(h,), xtol=1e-14))
            points.append({"factor": factor, "x": x, "h": h.value(np.array([[x]])) / h.beta,
                           "kind": _kind(Point(Instance(h, 1, "sines"), np.array([[x]])))})  # fmt: skip
    return pd.DataFrame(values), pd.DataFrame(points)


def _slope(x: float, h: Penalty) -> float:
    return float(h.gradient(np.array([[x]])).item())


def _kind(point: Point) -> str:
    """A word for a picture: feasible points by whether they minimise h locally, others by their class."""
    if point.is_feasible:
        return "feasible minimiser" if point.least_curvature > 0 else "feasible saddle"
    return "infeasible saddle" if point.classify() == "strict saddle" else "infeasible minimiser"


PLANE_FACTORS = (2.0, 0.25)
"""Penalty parameters in the plane, in units of the sharp one."""


def plane(factors: Sequence[float] = PLANE_FACTORS) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The function h for n = 2, p = 1 and a quadratic f, and its stationary points; as in `line`, with ``y``."""
    problem, M = Quadratic(np.diag([1.0, 1.6])), np.array([[1.0, 0.3], [0.3, 0.8]])
    spectrum = pencil(Instance(Penalty(problem, M, 1.0), 1, "quadratic"))
    sharp = sharp_beta_of_quadratics(spectrum[0])
    grid = np.linspace(-2.0, 2.0, 121)
    values, points = [], []
    for factor in factors:
        case = Instance(Penalty(problem, M, factor * sharp), 1, "quadratic")
        h = case.penalty
        for x in grid:
            values += [
                {"factor": factor, "x": x, "y": y, "h": h.value(np.array([[x], [y]])) / h.beta} for y in grid
            ]  # fmt: skip
        for lam, w in zip(spectrum[0], spectrum[1].T, strict=True):
            for length in quadratic_lengths(float(lam), h.beta):
                for sign in (1.0, -1.0) if length else (1.0,):
                    X = sign * length**0.5 * w[:, None]
                    points.append({"factor": factor, "x": X[0, 0], "y": X[1, 0], "h": h.value(X) / h.beta,
                                   "kind": _kind(Point(case, X))})  # fmt: skip
    return pd.DataFrame(values), pd.DataFrame(points).drop_duplicates(["factor", "x", "y"])


def saddle_curvatures(seed: int = 71, count: int = 60) -> pd.DataFrame:
    """Curvature at infeasible stationary points of a linear f against sigma, in units of s beta.

    The larger beta, the smaller sigma; only below the threshold, by up to a thousand times, sigma is seen to grow.

    Returns
    -------
    DataFrame
        Columns ``factor`` (beta over the threshold), ``sigma, direction, hessian, guaranteed, printed``: curvature
        along the explicit direction, smallest eigenvalue of the Hessian, what the closed form guarantees, what is
        printed.
    """
    rng = np.random.default_rng(seed)
    M = definite(rng, 3, 4.0)
    # Unequal lengths: of two equal singular values the vectors, and so the point, depend on the processor.
    B = np.linalg.cholesky(M) @ orthogonal(rng, 3)[:, :2] * (1.0, 1.2)
    problem = Linear(B)
    threshold = Penalty(problem, M, 1.0).threshold(2)
    rows = []
    for factor in np.geomspace(2e-2, 10, count):
        point = _inner_point(Instance(Penalty(problem, M, factor * threshold), 2, "linear"))
        D = saddles.direction(point)
        unit = point.case.spectrum[0] * point.case.penalty.beta
        size = float(np.vdot(D, D))
        rows.append({
            "factor": factor, "sigma": float(point.eigenvalues[0]),
            "direction": float(np.vdot(D, point.case.penalty.hessian(point.X, D))) / size / unit,
            "hessian": point.least_curvature / unit, "guaranteed": -saddles.constant(point) / unit,
            "printed": -saddles.printed_constant(point) / unit,
        })  # fmt: skip
    return pd.DataFrame(rows)


def _inner_point(case: Instance) -> Point:
    """The stationary point of a linear f with one column at the inner root and the others feasible."""
    problem, inverse = case.penalty.problem, inv_sqrt(case.penalty.M)
    U, b, Vt = np.linalg.svd(inverse @ problem.gradient(np.zeros((case.n, case.p))), full_matrices=False)
    t = np.array([-1.0] * (len(b) - 1) + [linear_root(float(b[-1]), case.penalty.beta)])
    return Point(case, inverse @ (U * t) @ Vt)


def hessian_spectra(count: int = 40) -> pd.DataFrame:
    """Eigenvalues of the Hessian of h, in units of the Lipschitz constant, against beta in units of the threshold.

    At the minimiser and at an infeasible point of a quadratic f with n = 4, p = 2.

    Returns
    -------
    DataFrame
        Columns ``where, factor, index, value``.
    """
    rng = np.random.default_rng(72)
    Q = orthogonal(rng, 4)
    problem = Quadratic(Q @ np.diag([-2.0, -0.5, 1.0, 2.0]) @ Q.T)
    M = np.eye(4)
    threshold = Penalty(problem, M, 1.0).threshold(2)
    minimiser, infeasible = Q[:, :2], Q[:, :2] * np.array([1.0, 0.0])
    rows = []
    for factor in np.geomspace(1e-4, 1, count):
        h = Penalty(problem, M, factor * threshold)
        for where, X in (("minimiser", minimiser), ("infeasible point", infeasible)):
            values: Array = np.linalg.eigvalsh(hessian_matrix(h, X)) / problem.lipschitz
            values = values.round(12) + 0.0  # zeros without roundoff, and without a sign
            rows += [{"where": where, "factor": factor, "index": k, "value": v} for k, v in enumerate(values)]
    return pd.DataFrame(rows)


def least_betas() -> pd.DataFrame:
    """`sharpness.of_quadratics` as a table: ``statement, instance, ratio, closed``."""
    return pd.DataFrame([vars(found) for found in sharpness.of_quadratics()])


def leading_pair(rho: float, merits: Sequence[Merit], betas: dict[str, float]) -> pd.DataFrame:
    """The function h along the first canonical pair, at the sharp penalty parameter and at given ones.

    Parameters
    ----------
    rho : float
        First canonical correlation of two views.
    merits : sequence
    betas : dict
        Penalty parameters by what a picture calls them.

    Returns
    -------
    DataFrame
        Columns ``merit, beta, name, length, h, edge``: length is the eigenvalue of X'MX, edge the sharp parameter.
    """
    rows = []
    lengths = np.linspace(0, 6, 241)
    for merit in merits:
        edge = least_bounded_beta(rho, merit)
        for name, beta in {**betas, "sharp": edge}.items():
            h = two_features(rho, merit, beta)
            for length in lengths:
                value = h.value(np.full((2, 1), (length / 2) ** 0.5))
                rows.append({"merit": merit.name, "beta": beta, "name": name, "length": length,
                             "h": value / edge, "edge": edge})  # fmt: skip
    return pd.DataFrame(rows)
