"""What `StochasticGCCA` captures at its default settings, beside cca-zoo's stochastic CCA at its own.

Nothing is tuned: only the number of components, the merit, the algorithm and `random_state` are given.  CCA-EY gets the
same number of passes and minibatches of the same size, as its default is one batch of all rows.  Each is run from
several seeds, of which the worst is recorded.

The captured share is TCC of the weights on all rows, divided by the sum of the largest canonical correlations.  For
three views, which have no TCC, it is the objective of the weights, made feasible, divided by the optimum; for the Huber
merit it is Huber's objective, divided by its value at the exact solution of CCA, so that more than 1 is possible.

    python benchmarks/defaults.py  # five minutes on one core
"""

import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import common
import numpy as np
import pandas as pd

from cdfsg import StochasticGCCA, checksums, metrics
from cdfsg.datasets import Provenance, Views, load, make_views
from cdfsg.files import RECORDS
from cdfsg.linalg import Array
from cdfsg.merits import Huber, Identity, make_merit

P, MU, PASSES = 5, 0.05, 5
SEEDS = (0, 1, 2)
PATH = RECORDS / "defaults.csv"
RUNS = (("identity", "cdfsg-ada"), ("identity", "cdfsg"), ("huber", "cdfsg-ada"))


@dataclass(frozen=True)
class Case:
    """A data set and its exact solution."""

    name: str
    description: str
    views: Views

    @cached_property
    def parts(self) -> list[Array]:
        """The views as arrays, in the type in which they are stored."""
        return [np.ascontiguousarray(self.views.data[:, view]) for view in self.views.slices]

    @cached_property
    def deviation(self) -> Array:
        """Standard deviation of each stored column; 1 where it is constant."""
        deviation = np.sqrt(np.diag(self.views.covariance)) / self.views.scale
        return np.where(deviation > 0, deviation, 1.0)

    @cached_property
    def correlation(self) -> Array:
        """Correlation matrix: columns of any scale must not count as empty in the exact solution."""
        return self.views.covariance / self.views.scale**2 / np.outer(self.deviation, self.deviation)

    @cached_property
    def eigenvalues(self) -> Array:
        """Generalised eigenvalues, in descending order."""
        return metrics.generalised_eigenvalues(self.correlation, self.views.sizes)

    @cached_property
    def p(self) -> int:
        """Columns: `P`, or as many as the narrowest view has, or as there are correlations."""
        return min(P, int((self.eigenvalues > 1e-8).sum()), *self.views.sizes)

    def share(self, weights: Array, merit: Identity | Huber) -> float:
        """What weights (n, p) of the stored columns capture."""
        if not np.isfinite(weights).all():
            return float("nan")
        K = self._moments(weights)
        if merit.name == "identity" and self.views.n_views == 2:
            return float(metrics.tcc(K)[0] / self.eigenvalues[: self.p].sum())
        K = metrics.congruence(K, metrics.orthogonalise(metrics.constraint(K))[0])
        exact = self._moments(metrics.minimiser(self.correlation, self.views.sizes, self.p) / self.deviation[:, None])
        return float(metrics.objective(K, merit)[0] / metrics.objective(exact, merit)[0])

    def _moments(self, weights: Array) -> Array:
        return metrics.cross_moments((weights * self.deviation[:, None])[None], self.correlation, self.views.sizes)


def main() -> None:
    """Measure and write ``defaults.csv``."""
    with common.one_thread("defaults"):
        rows = [row for case in cases() for row in measured(case)]
    checksums.write(PATH, pd.DataFrame(rows).to_csv(index=False, lineterminator="\n"))
    common.say(f"{len(rows)} records in {PATH.name}")


def cases() -> Sequence[Case]:
    """The data sets."""
    digits, synthetic = load("digits"), load("synthetic")
    hidden = make_views(20_000, (50, 40), (0.9, 0.8, 0.7, 0.6, 0.5), seed=3, exact=True, condition=30.0)
    return [
        Case("digits", "left and right halves of 8 x 8 pixels", digits),
        Case("digits, scaled", "columns multiplied by 1e-3 to 1e3 at random", scaled(digits)),
        Case("synthetic", "four canonical pairs in 12 + 10 columns", synthetic),
        Case("synthetic, scaled", "columns multiplied by 1e-3 to 1e3 at random", scaled(synthetic)),
        Case("synthetic, copies", "thirty columns that repeat combinations of others up to 1e-4", with_copies(hidden)),
        Case("synthetic, hidden", "five pairs in directions whose variances are up to 900 times apart", hidden),
        Case("mediamill", "120 features and 101 labels", load("mediamill")),
        Case("mnist", "left and right halves of 28 x 28 pixels", load("mnist")),
        Case("nmnist", "three degraded copies of 28 x 28 pixels", load("nmnist")),
    ]


def scaled(views: Views) -> Views:
    """The same views with columns of very different scale."""
    factors = 10 ** np.random.default_rng(5).uniform(-3, 3, views.n_features)
    data = views.data * views.scale * factors
    return replace(views, data=data, scale=1.0, provenance=_altered(views, "columns scaled"))


def with_copies(views: Views) -> Views:
    """The same views, the first with thirty columns more that are nearly combinations of its others."""
    rng = np.random.default_rng(1)
    left, right = (views.data[:, view] for view in views.slices)
    copies = left @ rng.standard_normal((left.shape[1], 30)) + 1e-4 * rng.standard_normal((len(left), 30))
    data, sizes = np.hstack([left, copies, right]), (left.shape[1] + 30, right.shape[1])
    return replace(views, data=data, sizes=sizes, provenance=_altered(views, "columns repeated"))


def _altered(views: Views, how: str) -> Provenance:
    source = views.provenance
    kind = "synthetic" if source.kind == "synthetic" else "derived"
    return Provenance(f"{source.source}, {how}", source.checksum, kind)


def measured(case: Case) -> list[dict[str, object]]:
    """The rows of a data set."""
    fits = {run: [ours(case, *run, seed) for seed in SEEDS] for run in RUNS}
    fits["identity", "CCA-EY, cca-zoo"] = [ey(case, seed) for seed in SEEDS]
    return [row(case, *run, found) for run, found in fits.items()]


class Fit(NamedTuple):
    """One run: the weights (n, p), passes, seconds, and what was warned of."""

    weights: Array
    epochs: int
    seconds: float
    warned: tuple[str, ...]


def ours(case: Case, merit: str, algorithm: str, seed: int) -> Fit:
    """`StochasticGCCA` with nothing set that has a default."""
    model = StochasticGCCA(case.p, merit=merit, mu=MU, algorithm=algorithm, random_state=seed)
    seconds, warned = _told(lambda: model.fit(case.parts))
    return Fit(np.concatenate(model.weights_), model.n_epochs_, seconds, warned)


def ey(case: Case, seed: int) -> Fit:
    """CCA-EY of cca-zoo; the conversion to float64 is not on its clock."""
    from cca_zoo.stochastic import StochasticCCAEY

    size = StochasticGCCA(case.p)._minibatch(case.views.n_samples)
    model = StochasticCCAEY(case.p, batch_size=size, max_iter=PASSES, random_state=seed)
    parts = [part.astype(np.float64) * case.views.scale for part in case.parts]
    try:
        seconds, warned = _told(lambda: model.fit(parts))
    except ValueError as error:
        return Fit(np.full((case.views.n_features, case.p), np.nan), PASSES, float("nan"), (str(error),))
    return Fit(np.concatenate(model.weights_), PASSES, seconds, warned)


def _told(work: Callable[[], object]) -> tuple[float, tuple[str, ...]]:
    """Seconds of this process, which has one thread, that a call takes, and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        began = time.process_time()
        work()
        seconds = time.process_time() - began
    return seconds, tuple(str(warning.message) for warning in caught)


def row(case: Case, merit: str, algorithm: str, fits: Sequence[Fit]) -> dict[str, object]:
    """The record of some runs that differ in their seed: the worst share, and what was warned of there."""
    shares = [case.share(fit.weights, make_merit(merit, MU)) for fit in fits]
    worst = int(np.argmin(np.nan_to_num(shares, nan=-1.0)))
    warned = " ".join(fits[worst].warned).split(". ")[0]
    common.say(f"{case.name}, {merit}, {algorithm}: {min(shares):.4f} to {max(shares):.4f}; {warned}")
    return {
        "dataset": case.name, "description": case.description, "n": case.views.n_features, "N": case.views.n_samples,
        "p": case.p, "merit": merit, "algorithm": algorithm, "epochs": max(fit.epochs for fit in fits),
        "share": shares[worst], "warned": warned, "seconds": statistics.median(fit.seconds for fit in fits),
        "provenance": case.views.provenance.kind,
    }  # fmt: skip


if __name__ == "__main__":
    main()
