"""The engine against the same algorithm with n-by-n matrices (`cdfsg.paper.measure.direct`), on MNIST and n-MNIST.

l = 100, p = 5, identity merit; one lane alone and per lane in the reported block of 180 lanes.  The direct form takes
half a minute per pass and lane, so it runs the first steps of a pass only, and so does the block; both are
extrapolated to the pass, step by step.  A step of the block counts for as many lanes as are alive in it.
"""

import statistics
from collections import defaultdict
from typing import Any

import common
import numpy as np

from cdfsg.datasets import Views
from cdfsg.linalg import Array
from cdfsg.merits import Identity
from cdfsg.paper.compute import views_of
from cdfsg.paper.experiments import GRID, REPORTED_ORDER, REPORTED_STARTS
from cdfsg.paper.measure import direct
from cdfsg.problems import SampledGCCA
from cdfsg.solvers import SOLVERS, lanes

BATCH_SIZE, P = 100, 5
SETTINGS = {"CDFSG": (0.5, 0.01), "CDFSG-Ada": (0.5, 0.001)}
"""(s1, s2) of the one lane, at which nothing diverges."""
BLOCK_STEPS = 30
DIRECT_STEPS = {"mnist": 40, "nmnist": 10}
DTYPES = {"float32": np.float32, "float64": np.float64}
REPEATS = 5
DATASETS, COMPARED = ("mnist", "nmnist"), ("CDFSG", "CDFSG-Ada")


def engine(solver: str, views: Views, starts: tuple[int, ...], grid: tuple[Any, ...], dtype: type) -> lanes.Outcome:
    """Run every start with every setting in one block."""
    kind = SOLVERS[solver]()
    settings = np.array([setting for _ in starts for setting in grid])
    X0 = np.repeat(lanes.initial_points(kind, views.n_features, P, starts), len(grid), axis=1)
    named = dict(zip(kind.settings, settings.T, strict=True))
    problem = SampledGCCA(views.sizes, Identity())
    return lanes.run(kind, problem, views, X0, named, BATCH_SIZE, REPORTED_ORDER, dtype=dtype)


def direct_form(solver: str, views: Views, steps: int, dtype: type) -> direct.Outcome:
    """Run one lane of the direct form."""
    kind: Any = SOLVERS[solver]()
    X0 = lanes.initial_points(kind, views.n_features, P, REPORTED_STARTS[:1])[:, 0]
    return direct.run(kind, views, X0, *SETTINGS[solver], BATCH_SIZE, REPORTED_ORDER, dtype, steps)


def lane_steps(outcome: lanes.Outcome) -> int:
    """Steps of all lanes while they were alive."""
    return int(np.where(outcome.stopped_at < 0, outcome.steps, outcome.stopped_at).sum())


def difference(a: Array, b: Array) -> float:
    """Largest difference of two iterates, relative to the largest entry."""
    return float(np.abs(a - b).max() / np.abs(b).max())


def agreement(solver: str, views: Views, steps: int) -> dict[str, float]:
    """How far the engine's iterate is from the direct form's after the same steps, at either precision."""
    part = common.beginning(views, steps, BATCH_SIZE)
    return {
        name: difference(
            engine(solver, part, REPORTED_STARTS[:1], (SETTINGS[solver],), dtype).X[:, 0],
            direct_form(solver, part, steps, dtype).X,
        )
        for name, dtype in DTYPES.items()
    }


def measure(solver: str, dataset: str) -> list[dict[str, object]]:
    """Time both forms, one after the other in every repeat."""
    views, steps = views_of(dataset), DIRECT_STEPS[dataset]
    agrees = agreement(solver, views, steps)
    part = common.beginning(views, BLOCK_STEPS, BATCH_SIZE)
    times = defaultdict(list)
    for _ in range(REPEATS):
        for name, dtype in DTYPES.items():
            times[name].append(direct_form(solver, views, steps, dtype).seconds / steps)
        alone = engine(solver, views, REPORTED_STARTS[:1], (SETTINGS[solver],), np.float32)
        if alone.stopped_at[0] >= 0:
            raise RuntimeError(f"{solver} diverged on {dataset} at {SETTINGS[solver]}; take shorter steps")
        times[1].append(alone.seconds / alone.steps)
        block = engine(solver, part, REPORTED_STARTS, GRID, np.float32)
        times[len(block.stopped_at)].append(block.seconds / lane_steps(block))
    return [
        row(solver, dataset, name, count, agrees[name], times)
        for name in DTYPES
        for count in (1, len(REPORTED_STARTS) * len(GRID))
    ]


def row(
    solver: str, dataset: str, dtype: str, count: int, apart: float, times: dict[object, list[float]]
) -> dict[str, object]:
    """One ratio; numerator and denominator of a repeat were measured side by side."""
    ratios = [slow / fast for slow, fast in zip(times[dtype], times[count], strict=True)]
    pass_steps = views_of(dataset).n_samples // BATCH_SIZE
    slow, fast = statistics.median(times[dtype]), statistics.median(times[count])
    common.say(f"{dataset} {solver} {dtype}, {count} lanes: {statistics.median(ratios):.0f} times as fast")
    return {
        "dataset": dataset, "solver": solver, "batch_size": BATCH_SIZE, "p": P, "dtype": dtype, "lanes": count,
        "ratio": statistics.median(ratios), "ratio_low": min(ratios), "ratio_high": max(ratios),
        "direct_step_seconds": slow, "engine_step_seconds": fast,
        "direct_pass_seconds": slow * pass_steps, "engine_pass_seconds": fast * pass_steps,
        "direct_steps": DIRECT_STEPS[dataset], "engine_steps": pass_steps if count == 1 else BLOCK_STEPS,
        "pass_steps": pass_steps, "extrapolated": "direct" if count == 1 else "both",
        "difference": apart, "repeats": REPEATS,
    }  # fmt: skip


def main() -> None:
    """Measure and write ``speed-direct.csv``."""
    with common.one_thread("direct"):
        rows = [row for name in DATASETS for solver in COMPARED for row in measure(solver, name)]
        common.publish("direct", rows)


if __name__ == "__main__":
    main()
