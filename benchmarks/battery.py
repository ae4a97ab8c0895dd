"""Data of many natures and what `StochasticGCCA` finds in them, beside the exact solution and cca-zoo.

Every kind of data is drawn with several seeds, and fitted in four ways: by default, by each of the paper's algorithms,
and by `partial_fit` in chunks.  The share is that of the exact total correlation, which is computed here by QR and SVD
of the centred views (by Cholesky factors where they are wide), without what is planted.  A fit has warned if it gives a
`ConvergenceWarning` or says that it has not converged; a report of rows that were left out speaks of the data, and is
counted apart.  A fit fails in silence if its share is below 0.95 and it has not warned.

    python benchmarks/battery.py                # all kinds, 20 minutes on one core
    python benchmarks/battery.py spectra topics # these kinds alone, printed and not written
"""

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import common
import numpy as np
import pandas as pd
from natures import KINDS, Draw
from scipy import sparse
from scipy.linalg import lapack, solve_triangular
from scipy.sparse.linalg import svds
from sklearn.exceptions import ConvergenceWarning

from cdfsg import StochasticGCCA, checksums
from cdfsg.files import RECORDS
from cdfsg.linalg import Array

SEEDS = range(8)
GOAL = 0.95
DENSE = 1000  # columns of a view up to which its orthonormal basis is by SVD
COLUMNS = ("least", "median", "warned", "reported", "silent", "error_high", "seconds")  # that are told as they come
CHUNK = 300  # rows of a call of partial_fit
PATH = RECORDS / "battery.csv"


class Outcome(NamedTuple):
    """A fit: the share it has, the share it thinks it has, whether it warned, seconds, how many rows it left out."""

    share: float
    said: float
    warned: bool
    seconds: float
    reported: int = 0


def centred(view: Any) -> Array:
    """A view as float64, without mean, in columns of unit deviation; constant ones left out."""
    Z = np.asarray(view.toarray() if sparse.issparse(view) else view, dtype=np.float64)
    Z = Z - Z.mean(axis=0)
    deviation = Z.std(axis=0)
    varies = deviation > 1e-14 * np.abs(np.asarray(view.max(axis=0).toarray() if sparse.issparse(view) else Z)).max()
    return Z[:, varies] / deviation[varies]


def factor(Z: Array) -> tuple[Array, Array]:
    """Independent columns of Z, and the Cholesky factor R of their products."""
    R, order, rank, _ = lapack.dpstrf(Z.T @ Z, tol=1e-9 * len(Z))
    return order[:rank] - 1, np.triu(R)[:rank, :rank]


def total(views: list[Any], p: int) -> float:
    """Sum of the p largest eigenvalues of the exact problem: for two views, canonical correlations."""
    Z = [centred(view) for view in views]
    if max(part.shape[1] for part in Z) <= DENSE:
        bases = []
        for part in Z:
            U, values, _ = np.linalg.svd(part, full_matrices=False)
            bases.append(U[:, values > values[0] * max(part.shape) * np.finfo(float).eps])
        T = np.block([[a.T @ b * (i != j) for j, b in enumerate(bases)] for i, a in enumerate(bases)])
        return float(np.maximum(np.linalg.eigvalsh(T)[::-1][:p], 0).sum())
    if max(part.shape[1] for part in Z) >= len(Z[0]):
        return float(p)  # one view spans all rows, which the kinds make sure of
    roots = [factor(part) for part in Z]
    T = solve_triangular(roots[0][1], Z[0][:, roots[0][0]].T @ Z[1][:, roots[1][0]], trans=1)
    T = solve_triangular(roots[1][1], T.T, trans=1)
    values = np.linalg.svd(T, compute_uv=False) if min(T.shape) <= 2 * p else svds(T, p, random_state=0)[1]
    return float(np.sort(values)[::-1][:p].sum())


def captured(draw: Draw, weights: list[Array]) -> float:
    """The same within the spans of weights, on the rows that are not planted."""
    parts = [view.toarray() if sparse.issparse(view) else np.asarray(view, np.float64) for view in draw.clean]
    return total([(part - part.mean(axis=0)) @ w for part, w in zip(parts, weights, strict=True)], draw.p)


def default(draw: Draw, seed: int, **settings: Any) -> StochasticGCCA:
    return StochasticGCCA(draw.p, random_state=seed, **settings).fit(draw.views)


def in_chunks(draw: Draw, seed: int) -> StochasticGCCA:
    model, rows = StochasticGCCA(draw.p, random_state=seed), draw.views[0].shape[0]
    for begin in range(0, rows, CHUNK):
        model.partial_fit([view[begin : begin + CHUNK] for view in draw.views])
    return model


WAYS: dict[str, Callable[[Draw, int], StochasticGCCA]] = {
    "default": default,
    "cdfsg-ada": lambda draw, seed: default(draw, seed, algorithm="cdfsg-ada"),
    "cdfsg": lambda draw, seed: default(draw, seed, algorithm="cdfsg"),
    "partial_fit": in_chunks,
}


def ours(way: str, draw: Draw, seed: int, exact: float) -> Outcome:
    """A fit by this package."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        began = time.process_time()
        try:
            model = WAYS[way](draw, seed)
        except ValueError as error:
            common.say(f"{way}: {error}")
            return Outcome(np.nan, np.nan, True, np.nan)
        weights = [w / s[:, None] for w, s in zip(model.weights_, model.scales_, strict=True)]
        seconds = time.process_time() - began
    warned = not model.converged_ or any(issubclass(one.category, ConvergenceWarning) for one in caught)
    return Outcome(captured(draw, weights) / exact, model.captured_, warned, seconds, model.n_outliers_)


def theirs(name: str, draw: Draw, seed: int, exact: float) -> Outcome:
    """A fit by cca-zoo at its defaults, with the same passes and minibatches for the stochastic one."""
    from cca_zoo.linear import CCA, MCCA
    from cca_zoo.stochastic import StochasticCCAEY

    views = [view.toarray() if sparse.issparse(view) else np.asarray(view, np.float64) for view in draw.views]
    exact_kind = CCA if len(views) == 2 else MCCA
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        began = time.process_time()
        try:
            if name == "cca-zoo, exact":
                model = exact_kind(draw.p).fit(views)
            else:
                size = min(100, max(20, len(views[0]) // 40))
                model = StochasticCCAEY(draw.p, batch_size=size, max_iter=5, random_state=seed).fit(views)
            share = captured(draw, model.weights_) / exact
        except (ValueError, np.linalg.LinAlgError):
            return Outcome(np.nan, np.nan, True, np.nan)
        seconds = time.process_time() - began
    return Outcome(share, np.nan, bool(caught), seconds)


def rows_of(name: str) -> Iterator[dict[str, object]]:
    """The records of a kind: per method the worst and the median share, silent failures, errors of the certificate."""
    kind = KINDS[name]
    draws = [kind(np.random.default_rng(seed)) for seed in SEEDS]
    exact = [total(draw.clean, draw.p) for draw in draws]
    n, rows = sum(view.shape[1] for view in draws[0].views), draws[0].views[0].shape[0]
    for method in (*WAYS, "cca-zoo, exact", "cca-zoo, stochastic"):
        fit = ours if method in WAYS else theirs
        seeds = SEEDS if method in WAYS else SEEDS[:2]
        if method not in WAYS and n > 4000:
            continue  # minutes each
        found = [fit(method, draws[seed], seed, exact[seed]) for seed in seeds]
        share, said, warned = (np.array([getattr(one, key) for one in found]) for key in ("share", "said", "warned"))
        known = said[~np.isnan(said)] - share[~np.isnan(said)]
        yield {
            "kind": name, "n": n, "N": rows, "p": draws[0].p, "method": method, "fits": len(found),
            "exact": np.mean(exact), "least": share.min(), "median": np.median(share),
            "reach_99": int((share >= 0.99).sum()), "warned": int(warned.sum()),
            "reported": sum(one.reported > 0 for one in found),
            "warned_at_99": int((warned & (share >= 0.99)).sum()), "silent": int((~(share >= GOAL) & ~warned).sum()),
            "error_low": known.min(initial=0), "error_high": known.max(initial=0),
            "off_002": int((np.abs(known) > 0.02).sum()), "known": len(known),
            "seconds": np.median([one.seconds for one in found]),
        }  # fmt: skip


def main(names: list[str]) -> None:
    """Measure and write ``battery.csv``, or print the kinds that are named."""
    rows = []
    with common.one_thread("battery"):
        for name in names or KINDS:
            for row in rows_of(name):
                rows.append(row)
                told = (f"{key} {row[key]:.3g}" for key in COLUMNS)
                common.say(f"{name}, {row['method']}: {', '.join(told)}")
    if not names:
        table = pd.DataFrame(rows)
        checksums.write(PATH, table.to_csv(index=False, float_format="%.4g", lineterminator="\n"))


if __name__ == "__main__":
    main(sys.argv[1:])
