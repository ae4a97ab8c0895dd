"""PCC against seconds on the halves of MNIST (identity merit, p = 5): the solvers here beside other ways to do CCA.

* The paper's solvers and its competitors at l = 100, with the settings that the published tuning runs select.
* CCA-EY by minibatches, from cca-zoo, at its default step with l = 100, and at the step and batch size that are best
  after one pass, chosen from a grid on another seed.  It gets the data as float64, which it would convert to, and the
  conversion is not on its clock.
* Exact ones: our eigensolver, scipy's generalised eigh (with a ridge, since constant pixels make M singular), and
  scikit-learn's CCA by power iterations.  The covariance is on the clock.

Evaluation is off the clock.  One pass of CDFSG draws two minibatches per step, theta and xi, and counts as one pass, as
in the paper; CCA-EY draws one per step, so it is run for several passes and its whole curve is kept.
"""

import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from itertools import product
from typing import NamedTuple

import common
import numpy as np
from cca_zoo.stochastic import StochasticCCAEY
from scipy.linalg import block_diag, eigh
from sklearn.cross_decomposition import CCA

from cdfsg import metrics
from cdfsg.datasets import Views
from cdfsg.linalg import Array
from cdfsg.paper import archive
from cdfsg.paper.compute import covariance_of, eigenvalues_of, views_of
from cdfsg.paper.experiments import EXPERIMENTS
from cdfsg.paper.protocols import REPORTED_SEEDS
from cdfsg.paper.select import select
from cdfsg.solvers import SOLVERS
from cdfsg.solvers.engine import State

DATASET, BATCH_SIZE, P = "mnist", 100, 5
POINTS, REPEATS = 60, 3
PASSES = 3
"""Passes of CCA-EY."""
STEPS = (0.05, 0.1, 0.15, 0.2, 0.3, 0.5)
BATCHES = (50, 100, 300)
TUNING_SEED = 101
RIDGE = 1e-8
"""Added to M's diagonal for scipy, in units of the view's mean variance."""


class Point(NamedTuple):
    """Where a run is: passes made, seconds on the clock, and X (n, p)."""

    passes: float
    seconds: float
    X: Array


def main() -> None:
    """Measure and write ``speed-others.csv``."""
    common.publish("others", lambda: [row for method in methods() for row in curve(*method)])


def methods() -> list[tuple[str, str, Callable[[], list[Point]], int]]:
    """Name, setting in words, how to run it, and how often."""
    selected = select(archive.runs_of(EXPERIMENTS["ta:pcctimemn"]))
    listed = []
    for name in SOLVERS:
        setting = selected[BATCH_SIZE, P, name]
        words = ", ".join(f"{key} = {value:g}" for key, value in zip(SOLVERS[name].settings, setting, strict=True))
        listed.append((name, f"l = {BATCH_SIZE}, {words}", partial(engine, name, setting), REPEATS))
    for words, eta, batch in (("default", StochasticCCAEY().learning_rate, BATCH_SIZE), ("tuned", *tuned_ey())):
        work = partial(ey, eta, batch, REPORTED_SEEDS[0][1], PASSES)
        listed.append(("CCA-EY, cca-zoo", f"{words}: l = {batch}, step {eta:g}", work, REPEATS))
    return [
        *listed,
        ("exact, ours", "covariance and eigenvectors", ours_exact, REPEATS),
        ("exact, scipy.linalg.eigh", f"ridge {RIDGE:g}", scipy_exact, REPEATS),
        ("scikit-learn CCA", "default, scale=False", sklearn_cca, 1),  # a minute: once must do
    ]


def engine(name: str, setting: tuple[float, ...]) -> list[Point]:
    """A solver of this package; the mean of the data is on the clock, as the others centre on theirs."""
    views, points = fresh_views(), []
    steps = views.n_samples // BATCH_SIZE
    began = time.perf_counter()

    def note(number: int, state: State) -> None:
        if number % (steps // POINTS) == 0:
            points.append(Point(number / steps, time.perf_counter() - began, state.X[0].copy()))

    common.run_lanes(name, [setting], views, BATCH_SIZE, P, callback=note)
    return points


class TracedEY(StochasticCCAEY):
    """CCA-EY that notes its weights now and then, and does not count the time this takes."""

    def trace(self, views: list[Array], steps_per_pass: int) -> list[Point]:
        """Fit, and give the noted points."""
        self._noted: list[Point] = []
        self._per_pass, self._done, self._began = steps_per_pass, 0, time.perf_counter()
        self.fit(views)
        return self._noted

    def _derivative(self, views, representations, weights):
        if self._done % max(1, self._per_pass // 30) == 0:
            self._note(weights)
        self._done += 1
        return super()._derivative(views, representations, weights)

    def _fit_maps_and_importances(self, views):
        self._note(self.weights_)  # what follows describes the fit and is not part of it

    def _note(self, weights: list[Array]) -> None:
        now = time.perf_counter()
        self._noted.append(Point(self._done / self._per_pass, now - self._began, np.concatenate(weights)))
        self._began += time.perf_counter() - now


def ey(step: float, batch_size: int, seed: int, passes: int) -> list[Point]:
    """CCA-EY; no point where it diverges."""
    views = float_views()
    model = TracedEY(P, learning_rate=step, batch_size=batch_size, max_iter=passes, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a few passes are too few to converge
        try:
            return model.trace(views, len(views[0]) // batch_size)
        except ValueError:
            return []


def tuned_ey() -> tuple[float, int]:
    """Step and batch size with the best PCC after one pass."""
    found = {}
    for step, size in product(STEPS, BATCHES):
        points = ey(step, size, TUNING_SEED, 1)
        found[step, size] = pcc(points[-1].X) if points else -1.0
        common.say(f"CCA-EY, tuning: step {step:g}, l = {size}: PCC {found[step, size]:.3f}")
    return max(found, key=lambda key: found[key])


def ours_exact() -> list[Point]:
    """One pass for the covariance, then its eigenvectors."""
    views = fresh_views()
    began = time.perf_counter()
    X = metrics.minimiser(views.covariance, views.sizes, P)
    return [Point(1, time.perf_counter() - began, X)]


def scipy_exact() -> list[Point]:
    """``S_off x = rho M x`` by scipy, the covariance computed as for our own."""
    views = fresh_views()
    began = time.perf_counter()
    covariance = metrics.ridged(views.covariance, views.sizes, RIDGE)
    M, n = block_diag(*(covariance[view, view] for view in views.slices)), views.n_features
    X = eigh(covariance - M, M, subset_by_index=(n - P, n - 1))[1]
    return [Point(1, time.perf_counter() - began, X)]


def sklearn_cca() -> list[Point]:
    """scikit-learn's CCA; it takes the pseudo-inverse of both views."""
    left, right = float_views()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # constant pixels
        began = time.perf_counter()
        model = CCA(P, scale=False).fit(left, right)
        seconds = time.perf_counter() - began
    return [Point(1, seconds, np.concatenate([model.x_rotations_, model.y_rotations_]))]


def fresh_views() -> Views:
    """The data without what is kept of them: mean and covariance are computed anew."""
    return replace(views_of(DATASET))


@lru_cache(maxsize=1)
def float_views() -> list[Array]:
    """Each view as float64 in [0, 1], not centred."""
    views = views_of(DATASET)
    return [np.ascontiguousarray(views.data[:, view] * views.scale) for view in views.slices]


def pcc(X: Array) -> float:
    """PCC on the full data."""
    K = metrics.cross_moments(X[None], covariance_of(DATASET), views_of(DATASET).sizes)
    return float(metrics.tcc(K)[0] / eigenvalues_of(DATASET)[:P].sum())


def curve(method: str, setting: str, work: Callable[[], list[Point]], repeats: int) -> list[dict[str, object]]:
    """The points of a method; its runs differ in the seconds only, of which the median is kept."""
    rows = [
        {"method": method, "setting": setting, "passes": same[0].passes, "pcc": pcc(same[0].X),
         "seconds": statistics.median(point.seconds for point in same), "repeats": repeats}
        for same in zip(*(work() for _ in range(repeats)), strict=True)
    ]  # fmt: skip
    common.say(f"{method} ({setting}): PCC {rows[-1]['pcc']:.3f}, {rows[-1]['seconds']:.2f} s")
    return rows


if __name__ == "__main__":
    main()
