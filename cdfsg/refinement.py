"""Refinement of weights for the identity merit on views too wide for their covariances: LOBPCG in passes over rows."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import blas, cho_factor, cho_solve

from cdfsg import metrics
from cdfsg.exact import RESOLVED, WIDEST
from cdfsg.linalg import Array, sym, view_slices
from cdfsg.problems import SampledProblem

GUARD = 4  # random columns beside those that are refined
KEPT = 2 * WIDEST**2  # numbers of the views' covariances, each by itself, up to which a preconditioner has them
ENOUGH = 4  # rows for each column of the widest view from which they are estimated
SKETCH = 50  # leading directions of each view that a preconditioner knows otherwise, fewer for very wide views
SKETCHED = 2**21  # numbers of these directions
REFINEMENTS = 30  # block steps, of two passes each
SLOWEST = 0.95  # ratio of two gains that is believed
WAVE = 3  # steps in a row in which little may be missing: gains come in waves
RESOLVED_SINGLE = 1e-6  # relative variance of a combination of projections that single precision tells from none


@dataclass(frozen=True)
class Refined:
    """What `refine` found: better weights X (n, p), moments K (m, m, p, p) of them and of those given, the optimum."""

    X: Array
    K: Array
    K_given: Array
    optimum: float


def refine(
    problem: SampledProblem, batches: Callable[[], Iterable[Any]], X: Array, variance: Array, tol: float, seed: int
) -> Refined:
    """Improve weights X (n, p) for the identity merit in passes over all rows, and estimate the optimum.

    Block steps of LOBPCG: X is replaced by the best weights in the span, in each view by itself, of X, of the residual
    ``(S_off - theta M) X``, preconditioned, and of the last change.  A few random columns find what X has no part in.
    What is missing is extrapolated from the gains; a share below `tol` ends it.
    """
    p, m, views = X.shape[1], len(problem.sizes), view_slices(problem.sizes)
    deviation, first = np.sqrt(variance)[:, None], next(iter(batches()))[0]
    precision, are_dense = np.finfo(first[0].dtype).eps, all(isinstance(block, np.ndarray) for block in first)
    scaling = np.divide(1, deviation, out=np.zeros_like(deviation), where=deviation > 0)
    random = np.random.default_rng(seed).standard_normal((len(X), GUARD))
    parts, width, totals, missing = [X, random * scaling], p + GUARD, [0.0], np.inf
    if are_dense and sum(n * n for n in problem.sizes) <= KEPT:
        preconditioners = _factored(problem, batches, scaling)
    else:
        preconditioners = _sketched(problem, batches, scaling, precision, seed)
    least = RESOLVED if precision < RESOLVED else RESOLVED_SINGLE
    for _ in range(REFINEMENTS):
        basis, rows = np.hstack(parts), 0
        k = basis.shape[1]
        S = np.zeros((m * k, m * k))
        for samples in batches():
            P = _scores(problem, samples, basis).reshape(-1, m * k)
            S, rows = S + P.T @ P, rows + samples[0][0].shape[0]
        if len(totals) == 1:
            K_given = (S / rows).reshape(m, k, m, k)[:, :p, :, :p].transpose(0, 2, 1, 3)
        units = np.sqrt(np.diag(S) / rows)
        lengths = np.concatenate([np.linalg.norm((deviation * basis)[view], axis=0) for view in views])
        units[units <= precision / least**0.5 * lengths] = np.inf  # the rounding of their terms would count
        S = S / rows / np.outer(units, units)
        T, roots = metrics.whitened(S, (k,) * m, rtol=least)
        values, vectors = np.linalg.eigh(T)
        theta, Y = values[::-1][:width], metrics.unwhitened(vectors[:, ::-1][:, :width], roots)
        factors = (Y / units[:, None]).reshape(m, k, -1)
        X = np.concatenate([basis[view] @ N for view, N in zip(views, factors, strict=True)])
        totals.append(float(theta[: p + 1].sum()))
        missing = _still_missing(totals)
        if missing <= tol * theta[:p].sum():
            break
        change = [basis[view, width:] @ N[width:] for view, N in zip(views, factors, strict=True)]
        G = np.zeros_like(X)
        for samples in batches():
            P = _scores(problem, samples, X)
            sums = P.reshape(-1, m, len(theta)).sum(axis=1).repeat(m, axis=0)
            G += _adjoint(problem, samples, sums - (1 + theta) * P)
        W = scaling * G / rows
        W = np.concatenate([apply(W[view]) for view, apply in zip(views, preconditioners, strict=True)])
        parts = [X, scaling * W, *([np.concatenate(change)] if k > width else [])]
    K = metrics.cross_moments(Y[None, :, :p], S, (k,) * m)[:, :, 0]
    return Refined(X[:, :p], K, K_given, min(float(theta[:p].sum()) + missing, p * (m - 1.0)))


def _scores(problem: SampledProblem, samples: Any, X: Array) -> Array:
    """Scores (l m, p) in double precision, from a product in that of the samples."""
    P = problem.scores(samples, X[None].astype(samples[0][0].dtype))
    return P[0, 0].astype(np.float64)


def _adjoint(problem: SampledProblem, samples: Any, R: Array) -> Array:
    return problem.adjoint(samples, R.reshape(1, 1, -1, R.shape[-1]).astype(samples[0][0].dtype))[0]


def _factored(
    problem: Any, batches: Callable[[], Iterable[Any]], scaling: Array
) -> Sequence[Callable[[Array], Array]]:
    """Per view the product with the inverse of its correlations, with the ridge, on some rows."""
    products, rows, views = [np.zeros((n, n), order="F") for n in problem.sizes], 0, view_slices(problem.sizes)
    for samples in batches():
        for i, view in enumerate(views):
            Z = samples[0][i] * scaling[view].T
            products[i] = blas.dsyrk(1.0, Z.T, beta=1.0, c=products[i], overwrite_c=1)
        rows += samples[0][0].shape[0]
        if rows >= ENOUGH * max(problem.sizes):
            break
    for S, view in zip(products, views, strict=True):
        S /= rows
        own = 0 if problem.ridge is None else problem.ridge[view] * scaling[view, 0] ** 2
        S[np.diag_indices_from(S)] += own + RESOLVED
    return [partial(cho_solve, cho_factor(S, overwrite_a=True)) for S in products]


def _sketched(
    problem: SampledProblem, batches: Callable[[], Iterable[Any]], scaling: Array, precision: float, seed: int
) -> Sequence[Callable[[Array], Array]]:
    """The same up to a factor, on all rows, by ``I + U diag(f) U'``.

    A Nystrom approximation from random columns (Frangella, Tropp, Udell 2023).
    """
    found, views = [], view_slices(problem.sizes)
    rng, width = np.random.default_rng(seed + 1), min(SKETCH, SKETCHED // len(scaling) + 1)
    Q, rows = np.zeros((len(scaling), width)), 0
    for view, n in zip(views, problem.sizes, strict=True):
        Q[view, :n] = np.linalg.qr(rng.standard_normal((n, min(n, width))))[0]
    Y = np.zeros_like(Q)
    for samples in batches():
        Y += _adjoint(problem, samples, _scores(problem, samples, scaling * Q))
        rows += samples[0][0].shape[0]
    for view, n in zip(views, problem.sizes, strict=True):
        S = (scaling[view] * Y[view] / rows)[:, :n]
        jitter = max(1e-8, 10 * precision) * np.linalg.norm(S)
        S += jitter * Q[view, :n]
        C = np.linalg.cholesky(sym(Q[view, :n].T @ S))
        U, values, _ = np.linalg.svd(np.linalg.solve(C, S.T).T, full_matrices=False)
        values = np.maximum(values**2 - jitter, values[-1] ** 2)
        found.append(partial(_add_low_rank, U, (values[-1] / values - 1)[:, None]))
    return found


def _add_low_rank(U: Array, factors: Array, R: Array) -> Array:
    return R + U @ (factors * (U.T @ R))


def _still_missing(totals: list[float]) -> float:
    """What a sequence gains after its last term, the most that one of the last steps lets expect."""
    return max(_extrapolated(totals[: len(totals) - k]) for k in range(WAVE))


def _extrapolated(totals: list[float]) -> float:
    """The same, if gains shrink as they did in the last two steps."""
    if len(totals) < 5:
        return np.inf
    gains = np.maximum(np.diff(totals[-4:]), 0)
    if not gains[-1]:
        return 0.0
    ratio = min(np.sqrt(gains[-1] / gains[0]), SLOWEST) if gains[0] else SLOWEST
    return float(gains[-1] * ratio / (1 - ratio))
