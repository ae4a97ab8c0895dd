"""From a small gradient of h to the problem: an approximate thm:refir, and K(eps) on a real instance.

The sample complexity of Section 4 is for h alone.  The corollary of th:star_bx leads from there to the problem inside
Omega_{1/6}, where nothing in the paper keeps the iterates; the statement here needs no neighbourhood.
"""

from dataclasses import replace
from itertools import islice

import numpy as np
from numpy.random import default_rng
from sklearn.datasets import load_digits

from cdfsg.linalg import inv_sqrt
from cdfsg.theory.finite import FinitePencil, Run
from cdfsg.theory.near_feasible import violation
from cdfsg.theory.rates import Constants, first_bound, means_and_constants
from cdfsg.theory.statement import OURS, SMOOTH_ABOVE, Margins, at_most, inner, norm, statement
from cdfsg.theory.stationary import Point, pool

SMALL = 1 / 64  # of eta p^(1/2)


@statement("approximate stationarity", "Section 3.4, everywhere", source=OURS,
    assumes=SMOOTH_ABOVE + ", eta = ||grad h|| / (beta s^(1/2)) <= 1/(64 p^(1/2))",
    says="Either ||L|| <= 2 kappa^(1/2) ||grad h|| and ||C - I|| <= 5/8 p^(1/2) eta, or sigma_min(C) is at most "
         "(beta~/(8 kappa beta) + 16/15 eta)^2 and a direction D has curvature at most -9/10 s beta ||D||^2.")
def small_gradient() -> Margins:
    """Q = vv' in Le_inner_nablah_XQ, where ``Cv = sigma v`` and ``|Xv| <= (sigma/s)^(1/2)``, tells two kinds of sigma.

    It gives ``|1 - sigma| |sigma^(1/2) (1 + sigma) - t| <= eta``, where ``t = 3/2 v'X'Gv / (beta sigma^(1/2))``.
    If sigma > 1 is the largest, eq:normlambda bounds t by ``sigma^(1/2) (1 + sigma)/8``, so ``sigma - 1 <= 4/7 eta``.
    Then ``|t| <= r = beta~/(8 kappa beta) <= 1/8`` for every v, and sigma < 1 is either

    * at least 1/16: ``1 - sigma <= 64/9 eta <= 1/9``, and so ``1 - sigma <= 5/8 eta``; or
    * less: ``sigma^(1/2) <= r + 16/15 eta <= 1/7``.

    If the first is so of all, X is in Omega_{1/6}, and th:star_bx bounds L.  If not, let u be the left singular vector
    of ``M^(1/2) X`` for v.  ``D = M^(-1/2) u v'`` has ``<D, MD> = 1`` and the curvature
    ``9/4 (1 - sigma)^2 <D, hess f(A(X))[D]> - 3 v'X'Gv + beta (5 sigma^2 - 1)``, of which the first term is at most
    ``9/4 L_g/s <= beta/32``, and the second ``2 sigma^(1/2) r beta <= beta/28``.
    """
    rng = default_rng(48)
    for base in pool().found[::4]:
        inverse, step = inv_sqrt(base.h.M), 0.3 * rng.random()
        noise = inverse @ rng.standard_normal(base.X.shape)
        while relative_gradient(point := Point(base.case, base.X + step * noise)) > SMALL * base.case.p**-0.5:
            step /= 2
        h, X, (low, high) = point.h, point.X, point.case.spectrum
        eta, slope, least = relative_gradient(point), norm(h.gradient(X)), point.eigenvalues[0]
        if least >= 1 / 16:
            yield (base.case.kind, at_most(violation(h, X), 5 / 8 * point.case.p**0.5 * eta),
                   at_most(norm(h.lagrangian_gradient(X)), 2 * (high / low) ** 0.5 * slope))
        else:
            far, D = point.case.threshold / (8 * high / low * h.beta) + 16 / 15 * eta, point.direction
            yield (base.case.kind, at_most(least**0.5, far),
                   at_most(inner(D, h.hessian(X, D)), -9 / 10 * h.beta * inner(D, h.M @ D)))


def relative_gradient(point: Point) -> float:
    """``eta = ||grad h(X)|| / (beta s^(1/2))``."""
    return norm(point.h.gradient(point.X)) / (point.h.beta * point.case.spectrum[0] ** 0.5)


def digits(size: int = 100, kept: int = 4) -> FinitePencil:
    """CCA of the left and the right halves of scikit-learn's digits; an outcome is one of the disjoint minibatches.

    Each half is in its first principal components, of variance 1, so that ``M = I``.
    """
    images = load_digits().images
    count = len(images) // size * size
    halves = np.stack(np.split(images[:count], 2, axis=2)).reshape(2, count, -1)
    U = np.linalg.svd(halves - halves.mean(axis=1, keepdims=True), full_matrices=False)[0]
    Z = np.hstack(U[..., :kept] * count**0.5).reshape(-1, size, 2 * kept)
    S, within = Z.mT @ Z / size, np.kron(np.eye(2), np.ones((kept, kept)))
    return FinitePencil(-2 * S * (1 - within), S * within)


def observed(run: Run) -> tuple[float, Constants]:
    """Mean squared gradient over k < K of a run of Algorithm 1, and its constants, the largest that it has seen."""
    rng = default_rng(23)
    X0 = np.linalg.qr(rng.standard_normal((4, run.toy.n, 2)))[0] / 2
    means, constants = means_and_constants(run, islice(run.random_path(X0, rng), run.K))
    return float(means.mean()), constants


def steps_needed(epsilon: float, run: Run, c: Constants) -> float:
    """``K(eps) = 16 J_0 N / eps^4``: the corrected bound of the theorem on Algorithm 1 is eps^2 there.

    The bound is ``2 (J_0/s2 + N s2) / sqrt(K)``, least at ``s2 = (J_0/N)^(1/2)``.  Then b is ``eps^2 / (4 s1 N)``,
    which must be at most 1.  The constants are taken not to depend on K, but see as:algo (4).
    """
    N = first_bound(replace(run, K=1, s2=1.0), c) / 2 - c.J_0
    return 16 * c.J_0 * N / epsilon**4
