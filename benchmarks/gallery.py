"""The estimator beside exact CCA and cca-zoo on data that come with packages: correlation captured, and seconds.

Nothing is tuned: only the number of components and `random_state` are given.  From `LONG` rows on, CCA-EY gets
minibatches of 100 and five passes, as its default of 1,000 steps on all rows would take a quarter of an hour.  The
total is that of the weights over all rows, the sum of the canonical correlations of their projections, whoever found
them.  The exact one is by QR of the centred views, without directions below `RANK` of the largest, and SVD; for sparse
views, which QR would make dense, it is that of ``algorithm="exact"``.  Seconds are those of the process, which has one
thread; the conversion to float64 for cca-zoo, which takes no sparse views, is not among them.

`columns` times the exact algorithm and the stochastic one on two views of more and more columns.

    python benchmarks/gallery.py              # five minutes on one core
    python benchmarks/gallery.py mnist text   # these data sets alone; the rows of the others stay
"""

import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import common
import numpy as np
import pandas as pd
from cca_zoo.linear import CCA
from cca_zoo.stochastic import StochasticCCAEY
from scipy import sparse
from scipy.linalg import qr
from sklearn import datasets
from threadpoolctl import threadpool_limits

from cdfsg import StochasticGCCA, checksums
from cdfsg.convention import moments_of
from cdfsg.datasets import load, make_views
from cdfsg.files import RECORDS
from cdfsg.linalg import Array
from cdfsg.metrics import tcc

RANK = 1e-10
SEED = 0
LONG = 10_000
WIDTHS = (50, 100, 200, 400, 800, 1600, 3200)
"""Columns of both views together."""
CORRELATIONS = (0.9, 0.8, 0.7, 0.6, 0.5)
ROWS = 10_000
Weights = list[Array]


def main() -> None:
    """Measure and write ``gallery.csv`` and ``gallery-columns.csv``."""
    wanted = sys.argv[1:]
    if not wanted:
        write("gallery-columns", pd.DataFrame(columns()).assign(machine=common.machine()))
    for name, *case in cases():
        if name in wanted or not wanted:
            rows = pd.DataFrame(shares(name, *case)).assign(machine=common.machine())
            path = RECORDS / "gallery.csv"
            kept = checksums.read_csv(path, "") if path.exists() else rows[:0]
            write("gallery", pd.concat([kept[kept["dataset"] != name], rows]))


def write(name: str, table: pd.DataFrame) -> None:
    """Write a record."""
    checksums.write(RECORDS / f"{name}.csv", table.to_csv(index=False, float_format="%.4g", lineterminator="\n"))


def cases() -> Iterator[tuple[str, str, int, list[Any]]]:
    """Name, description, number of components and views of each data set."""
    cancer = datasets.load_breast_cancer().data
    yield "breast cancer", "means of ten measures of cells; their errors and worst values", 5, [
        cancer[:, :10], cancer[:, 10:],
    ]  # fmt: skip
    sugar = datasets.load_diabetes(scaled=False).data
    yield "diabetes", "age, sex, body mass, pressure; six blood values", 2, [sugar[:, :4], sugar[:, 4:]]
    men = datasets.load_linnerud()
    yield "linnerud", "three exercises; weight, waist, pulse of twenty men", 1, [men.data, men.target]
    for name, description in (("digits", "halves of 8 x 8 pixels"), ("mnist", "halves of 28 x 28 pixels")):
        halves = load(name)
        yield name, description, 5, [np.ascontiguousarray(halves.data[:, view]) for view in halves.slices]
    yield "text", "counts of words in generated documents of two languages", 5, bilingual(20_000, 2_100)


def bilingual(documents: int, words: int) -> list[Any]:
    """Counts of the words of documents and of their translations, as CSR: 20 topics, words by Zipf's law."""
    rng = np.random.default_rng(SEED)
    topics = rng.dirichlet(np.full(20, 0.1), documents)
    views = []
    for _ in range(2):
        common_words = 1 / np.arange(2, words + 2)
        chances = rng.dirichlet(common_words * 50, 20)  # of each word in each topic
        lengths = rng.poisson(60, documents)
        drawn = [rng.choice(20, length, p=topic) for length, topic in zip(lengths, topics, strict=True)]
        topic = np.concatenate(drawn)
        word = np.empty(len(topic), dtype=np.int64)
        for k in range(20):
            word[topic == k] = rng.choice(words, (topic == k).sum(), p=chances[k])
        document = np.repeat(np.arange(documents), lengths)
        ones = np.ones(len(word), dtype=np.float32)
        views.append(sparse.csr_array((ones, (document, word)), shape=(documents, words)))
    return views


def shares(name: str, description: str, p: int, views: list[Any]) -> list[dict[str, object]]:
    """A row per method."""
    rows, best = [], 0.0
    for method, fit in methods(p, views[0].shape[0]).items():
        if sparse.issparse(views[0]):
            if "cca-zoo" in method:
                continue
            fit = ours(p, algorithm="exact") if method == "exact" else fit
        given = [view.astype(np.float64) for view in views] if "cca-zoo" in method else views
        with threadpool_limits(1):
            seconds, weights, warned = timed(fit, given)
        total = captured(weights, views)
        best = best or total
        common.say(f"{name}, {method}: {total:.4f} of {best:.4f}, {seconds:.2f} s; {warned}")
        rows.append({
            "dataset": name, "description": description, "N": views[0].shape[0],
            "n": sum(view.shape[1] for view in views), "p": p, "method": method,
            "total": total, "share": total / best, "seconds": seconds, "warned": warned,
        })  # fmt: skip
    return rows


def methods(p: int, rows: int) -> dict[str, Callable[[list[Any]], Weights]]:
    """Weights of the views by each method, exact first."""
    few = {"batch_size": 100, "max_iter": 5} if rows >= LONG else {}
    return {
        "exact": lambda views: exact(views, p),
        "StochasticGCCA": ours(p),
        'StochasticGCCA, algorithm="cdfsg-ada"': ours(p, algorithm="cdfsg-ada"),
        "CCA, cca-zoo": lambda views: CCA(p).fit(views).weights_,
        "CCA-EY, cca-zoo": lambda views: StochasticCCAEY(p, random_state=SEED, **few).fit(views).weights_,
    }


def ours(p: int, **settings: Any) -> Callable[[list[Any]], Weights]:
    """How `StochasticGCCA` finds weights."""
    return lambda views: StochasticGCCA(p, random_state=SEED, **settings).fit(views).weights_


def exact(views: list[Any], p: int) -> Weights:
    """Weights by QR with pivots of each centred view in columns of unit deviation, and SVD."""
    factors = []
    for view in views:
        Z = view - view.mean(axis=0)
        deviation = Z.std(axis=0)
        units = np.where(deviation > RANK * np.abs(deviation).max(), deviation, np.inf)
        Q, R, order = qr(Z / units, mode="economic", pivoting=True)
        rank = int((np.abs(np.diag(R)) > RANK * np.abs(R[0, 0])).sum())
        factors.append((Q[:, :rank], R[:rank, :rank], order[:rank], units))
    U, _, Vt = np.linalg.svd(factors[0][0].T @ factors[1][0])
    weights = []
    for (_, R, order, units), span in zip(factors, (U, Vt.T), strict=True):
        W = np.zeros((len(units), p))
        W[order] = np.linalg.solve(R, span[:, :p])
        weights.append(W / units[:, None])
    return weights


def captured(weights: Weights, views: list[Any]) -> float:
    """Sum of the canonical correlations of the centred projections."""
    P = np.stack([view @ W for view, W in zip(views, weights, strict=True)], axis=1)
    if not np.isfinite(P).all():
        return float("nan")
    P -= P.mean(axis=0)
    return float(tcc(moments_of(P / P.std(axis=0))[:, :, None])[0])


def columns() -> list[dict[str, object]]:
    """Seconds of both algorithms against the number of columns, and the share of the exact one's total."""
    rows = []
    for n in WIDTHS:
        drawn = make_views(ROWS, (n // 2, n // 2), CORRELATIONS, seed=SEED, condition=10.0)
        views = [drawn.data[:, view].astype(np.float32) for view in drawn.slices]
        best = 0.0
        for algorithm in ("exact", "cdfsg-ada"):
            with threadpool_limits(1):
                seconds, weights, warned = timed(ours(len(CORRELATIONS), algorithm=algorithm), views)
            total = captured(weights, views)
            best = best or total
            common.say(f"{n} columns, {algorithm}: {total / best:.4f}, {seconds:.2f} s; {warned}")
            rows.append({"n": n, "N": ROWS, "p": 5, "algorithm": algorithm, "share": total / best, "seconds": seconds})
    return rows


def timed(fit: Callable[[list[Any]], Weights], views: list[Any]) -> tuple[float, Weights, str]:
    """Seconds of the process, the weights, and the beginning of the first warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        began = time.process_time()
        weights = fit(views)
        seconds = time.process_time() - began
    return seconds, list(weights), "; ".join(re.split(r"[:;]|\. ", str(one.message))[0] for one in caught[:1])


if __name__ == "__main__":
    main()
