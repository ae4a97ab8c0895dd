"""How near the engine comes to what this core can do: time of a step beside the roofline's.

The roofline is min(peak flops, intensity x bandwidth), with the counts of `cdfsg.paper.measure.speed.Work`.  Peak is
the rate of a large square product in float32; a second, lower one is the rate at which this core multiplies arrays of
the very shapes that the step needs, since a product with five columns cannot reach the first.  Bandwidth is that of
the better of two elementwise passes (copy, and a sum of two arrays), in an array as large as the working set for what
stays in cache, in a large one for the data as they are stored.  Rates are taken beside every configuration.
"""

import statistics
from collections.abc import Callable
from itertools import product

import common
import numpy as np

from cdfsg.datasets import Views
from cdfsg.linalg import Array
from cdfsg.paper.compute import views_of
from cdfsg.paper.measure.speed import Work, roofline_seconds

SETTINGS = {"CDFSG": (0.5, 0.005), "CDFSG-Ada": (0.5, 0.001), "Landing": (0.001, 1.0)}
"""Step sizes so short that no lane diverges in the few steps timed."""
DATASETS, LANES, BATCH_SIZES, COLUMNS = ("mnist", "nmnist"), (1, 18, 180), (20, 50, 100, 200), (5, 10)
REPEATS = 5
SQUARE = 768
"""Rows of the square product: 2 MB an array, too much for the second-level cache and no effort for the third."""
LARGE = 192 * 2**20
"""Bytes of an array that no cache holds."""
SMALLEST = 256 * 2**10
"""Bytes of the smallest working set whose bandwidth is measured; below, what a call costs would count."""
RUN_FLOPS, FEWEST, MOST = 4e9, 5, 200
"""Flops of a timed run, and the steps it may have."""


def main() -> None:
    """Measure and write ``speed-roofline.csv``."""
    with common.one_thread("roofline"):
        memory = bandwidth(LARGE)
        common.say(f"memory {memory / 1e9:.1f} GB/s, peak {peak() / 1e9:.1f} GFLOP/s")
        rows = [
            row(dataset, Work(solver, views_of(dataset).n_features, size, p, count), memory)
            for dataset, solver, count, size, p in product(DATASETS, SETTINGS, LANES, BATCH_SIZES, COLUMNS)
        ]
        common.publish("roofline", rows)


def row(dataset: str, work: Work, memory: float) -> dict[str, object]:
    """One configuration: seconds of a step, beside those of either roofline."""
    views = views_of(dataset)
    pass_steps = views.n_samples // work.batch_size
    steps = int(min(max(RUN_FLOPS / work.flops, FEWEST), MOST, pass_steps))
    part = common.beginning(views, steps, work.batch_size)
    cache, shapes = bandwidth(work.working_set), shape_rate(work, views.sizes)
    peaks, times, stopped = [], [], 0
    for _ in range(REPEATS):
        peaks.append(peak())
        seconds, lost = step_seconds(part, work)
        times.append(seconds)
        stopped += lost
    roofs = [roofline_seconds(work, rate, memory, cache) for rate in peaks]
    lower = [roofline_seconds(work, min(rate, shapes), memory, cache) for rate in peaks]
    share = _median_ratio(roofs, times)
    if work.batch_size == max(BATCH_SIZES) and work.p == max(COLUMNS):
        common.say(f"{dataset} {work.solver} {work.lanes} lanes l={work.batch_size}: {share:.0%}")
    return {
        "dataset": dataset, "solver": work.solver, "lanes": work.lanes, "batch_size": work.batch_size, "p": work.p,
        "n": work.n, "step_seconds": statistics.median(times), "low_seconds": min(times), "flops": work.flops,
        "stored_bytes": work.stored_bytes, "working_bytes": work.working_bytes, "intensity": work.intensity,
        "peak": statistics.median(peaks), "shape_rate": shapes, "memory_bandwidth": memory, "cache_bandwidth": cache,
        "roofline_seconds": statistics.median(roofs), "share": share, "share_of_shapes": _median_ratio(lower, times),
        "stopped": stopped, "steps": steps, "pass_steps": pass_steps, "repeats": REPEATS,
    }  # fmt: skip


def _median_ratio(over: list[float], under: list[float]) -> float:
    """Median over the repeats, whose two sides were measured one after the other."""
    return statistics.median(a / b for a, b in zip(over, under, strict=True))


def step_seconds(views: Views, work: Work) -> tuple[float, int]:
    """Seconds of a step of a run over all rows of `views`, and how many lanes diverged."""
    outcome = common.run(work.solver, SETTINGS[work.solver], views, work.batch_size, work.p, work.lanes)
    return outcome.seconds / outcome.steps, int((outcome.stopped_at >= 0).sum())


def peak() -> float:
    """Flops per second of a square product."""
    a = np.ones((SQUARE, SQUARE), np.float32)
    b, out = a.copy(), np.empty_like(a)
    return 2 * SQUARE**3 / common.per_call(lambda: np.matmul(a, b, out=out))


def bandwidth(size: int) -> float:
    """Bytes per second of the faster of two passes over arrays of `size` bytes in all."""
    return max(_pass_rate(size, 2, np.copyto), _pass_rate(size, 3, lambda c, a, b: np.add(a, b, out=c)))


def _pass_rate(size: int, arrays: int, work: Callable[..., object]) -> float:
    chosen = [np.ones(max(size, SMALLEST) // (4 * arrays), np.float32) for _ in range(arrays)]
    return arrays * chosen[0].nbytes / common.per_call(lambda: work(*chosen))


def shape_rate(work: Work, sizes: tuple[int, ...]) -> float:
    """Flops per second of the products of a step by themselves: projections and lifts of all views, laid out anew."""
    columns, seconds, flops = work.lanes * work.p, 0.0, 0
    for size in set(sizes):
        Z = np.ones((work.rows, size), np.float32)
        X, R = np.ones((size, columns), np.float32), np.ones((len(Z), columns), np.float32)
        for left, right in ((Z, X), (Z.T, R)):
            seconds += sizes.count(size) * _product_seconds(left, right)
            flops += sizes.count(size) * 2 * Z.size * columns
    return flops / seconds


def _product_seconds(left: Array, right: Array) -> float:
    """Seconds of a product or of the transposed one, whichever is faster."""
    transposed = np.ascontiguousarray(right.T)
    return min(common.per_call(lambda: left @ right), common.per_call(lambda: transposed @ left.T))


if __name__ == "__main__":
    main()
