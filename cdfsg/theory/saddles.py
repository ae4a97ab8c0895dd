r"""Explicit directions of negative curvature at infeasible stationary points (pro:saddle).

Let v be a unit eigenvector of ``C = X'MX`` with eigenvalue sigma < 1, f'' be ``<D, hess f(A(X))[D]>`` and s the
smallest eigenvalue of M.  The curvature along D is

* for sigma > 0 and ``D = X v v'``: ``(1 - sigma) [9/4 (1 - sigma) f'' - beta (1 + 3 sigma) <D, MD>]``;
* for sigma = 0, where the paper's ``X v v'`` vanishes, and ``D = u v'`` with ``X'Mu = 0``: ``9/4 f'' - beta u'Mu``.

At an infeasible stationary point above the threshold both give negative curvature of at least ``31/32 s beta |D|^2``,
31/8 times what the paper states: ``sigma <= 1/64`` and ``s beta >= 72 L_g``.  At ``beta = beta~`` that is sharp.
"""

import numpy as np

from cdfsg.linalg import Array, inv_sqrt
from cdfsg.theory.instances import root
from cdfsg.theory.statement import inner
from cdfsg.theory.stationary import FEASIBLE, Point

VANISHING = 1e-20  # an eigenvalue of C up to which X v counts as 0


def direction(point: Point) -> Array:
    """A direction of negative curvature; ValueError unless an eigenvalue of ``X'MX`` is below 1."""
    values, vectors = point.eigenvectors
    if values[0] > 1 - FEASIBLE:
        raise ValueError(f"a direction needs an eigenvalue of X'MX below 1, but the least is {values[0]:.6g}")
    if values[0] > VANISHING:
        return printed_direction(point)
    M = point.h.M
    left = np.linalg.svd(root(M) @ point.X, full_matrices=False)[0][:, -1:]  # orthogonal to M^(1/2) X
    return inv_sqrt(M) @ left @ vectors[:, :1].T


def curvature(point: Point, D: Array) -> float:
    """``<D, hess h(X)[D]>`` along `direction`, from the formulas above."""
    h, sigma = point.h, _least(point)
    along = inner(D, h.problem.hessian(h.dissolve(point.X), D))
    return (1 - sigma) * (9 / 4 * (1 - sigma) * along - h.beta * (1 + 3 * sigma) * inner(D, h.M @ D))


def constant(point: Point) -> float:
    """What the formulas guarantee: curvature at most ``- constant |D|^2``."""
    sigma, (s, _) = _least(point), point.case.spectrum
    return (1 - sigma) * (point.h.beta * (1 + 3 * sigma) * s - 9 / 4 * (1 - sigma) * point.case.L_g)


def printed_constant(point: Point) -> float:
    """The paper's ``sigma_min(M) beta / 4``."""
    return point.case.spectrum[0] * point.h.beta / 4


def printed_direction(point: Point) -> Array:
    """The ``X v v'`` of the paper's proof, with v for the smallest eigenvalue of C."""
    v = point.eigenvectors[1][:, :1]
    return point.X @ v @ v.T


def _least(point: Point) -> float:
    least = float(point.eigenvalues[0])
    return least if least > VANISHING else 0.0
