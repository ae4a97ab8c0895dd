"""Time of a run and its peak memory against n, N, p, l and the number of lanes, each over decades.

On random pixels, where one size varies and the others stay.  Time is that of a pass; against l that of a step.  Each
axis but N begins where what a step costs at any size outweighs the growing term; `UPPER` says from where on it does
not, and the exponents over the whole range are given beside those of the upper part.
"""

import gc
import statistics
import tracemalloc

import common

from cdfsg.datasets import Views
from cdfsg.solvers.engine import RunResult

BASE = {"n": 2000, "N": 2000, "p": 20, "batch_size": 100, "lanes": 1}
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
    sizes = BASE | OTHERWISE.get(axis, {}) | {axis: value}
    views = common.random_views(sizes["n"], sizes["N"])
    results: dict[str, list[RunResult]] = {solver: [] for solver in COMPARED}
    for _ in range(REPEATS):
        for solver in COMPARED:
            results[solver].append(run(solver, sizes, views))
    rows = []
    for solver, found in results.items():
        times = [result.seconds / (result.steps if axis == "batch_size" else 1) for result in found]
        rows.append({
            "solver": solver, "axis": axis, "value": value, **sizes, "upper": value >= UPPER[axis],
            "seconds": statistics.median(times), "low_seconds": min(times),
            "peak_bytes": peak_bytes(solver, sizes, views), "dense_bytes": common.FLOAT * sizes["n"] ** 2,
            "stopped": sum(int((result.stopped_at >= 0).sum()) for result in found), "repeats": REPEATS,
        })  # fmt: skip
    return rows


def run(solver: str, sizes: dict[str, int], views: Views) -> RunResult:
    """Run all lanes at one setting."""
    return common.run_lanes(solver, [SETTING] * sizes["lanes"], views, sizes["batch_size"], sizes["p"])


def peak_bytes(solver: str, sizes: dict[str, int], views: Views) -> int:
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
    points = [(axis, value) for axis, values in VALUES.items() for value in values]
    common.publish("growth", lambda: [row for point in points for row in measure(*point)])


if __name__ == "__main__":
    main()
