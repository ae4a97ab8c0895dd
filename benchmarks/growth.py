"""Time of a run and its peak memory against n, N, p, l and the number of lanes, each over decades.

On random pixels, where one size varies and the others stay.  Time is that of a pass; against l that of a step.  Each
axis but N begins where what a step costs at any size outweighs the growing term; `UPPER` says from where on it does
not, and the exponents over the whole range are given beside those of the upper part.
"""

import gc
import statistics
import tracemalloc
from dataclasses import dataclass, replace

import common

from cdfsg.datasets import Views
from cdfsg.solvers.engine import RunResult


@dataclass(frozen=True)
class Sizes:
    """The sizes of a run."""

    n: int = 2000
    N: int = 2000
    p: int = 20
    batch_size: int = 100
    lanes: int = 1


BASE = Sizes()
OTHERWISE = {"n": {"p": 50}, "p": {"n": 10000, "N": 400}, "lanes": {"p": 5}}
"""What differs from `BASE` along an axis, so that the growing term is much of the whole: converting the minibatches
does not grow with p, the p-by-p algebra does not grow with n, and what a call costs grows with neither.  Many lanes
of 20 columns would take minutes."""
VALUES: dict[str, tuple[int, ...]] = {
    "n": (100, 200, 500, 1000, 2000, 5000, 10000, 20000),
    "N": (500, 1000, 2000, 5000, 10000, 20000, 50000),
    "p": (1, 2, 5, 10, 20, 50, 100, 200, 400, 800),
    "batch_size": (10, 20, 50, 100, 200, 500, 1000),
    "lanes": (1, 2, 5, 10, 20, 50, 100, 200),
}
UPPER = {"n": 2000, "N": 500, "p": 100, "batch_size": 50, "lanes": 10}
REPEATS = 5
SETTING = (0.5, 0.001)
COMPARED = ("CDFSG", "CDFSG-Ada")


def measure(axis: str, value: int) -> list[dict[str, object]]:
    """Both solvers at one point, one after the other in every repeat."""
    sizes = replace(BASE, **OTHERWISE.get(axis, {}), **{axis: value})
    views = common.random_views(sizes.n, sizes.N)
    times: dict[str, list[float]] = {solver: [] for solver in COMPARED}
    stopped = dict.fromkeys(COMPARED, 0)
    for _ in range(REPEATS):
        for solver in COMPARED:
            outcome = run(solver, sizes, views)
            times[solver].append(outcome.seconds / (outcome.steps if axis == "batch_size" else 1))
            stopped[solver] += int((outcome.stopped_at >= 0).sum())
    return [
        {
            "solver": solver, "axis": axis, "value": value, **vars(sizes), "upper": value >= UPPER[axis],
            "seconds": statistics.median(times[solver]), "low_seconds": min(times[solver]),
            "peak_bytes": peak_bytes(solver, sizes, views), "dense_bytes": common.FLOAT * sizes.n**2,
            "stopped": stopped[solver], "repeats": REPEATS,
        }
        for solver in COMPARED
    ]  # fmt: skip


def run(solver: str, sizes: Sizes, views: Views) -> RunResult:
    """Run all lanes at one setting."""
    return common.run_lanes(solver, [SETTING] * sizes.lanes, views, sizes.batch_size, sizes.p)


def peak_bytes(solver: str, sizes: Sizes, views: Views) -> int:
    """Most bytes allocated at once during a run, beyond the data; in a run of its own, since tracing takes time."""
    gc.collect()
    tracemalloc.start()
    try:
        run(solver, sizes, views)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def main() -> None:
    """Measure and write ``speed-growth.csv``."""
    with common.one_thread("growth"):
        points = [(axis, value) for axis, values in VALUES.items() for value in values]
        common.publish("growth", [row for point in points for row in measure(*point)])


if __name__ == "__main__":
    main()
