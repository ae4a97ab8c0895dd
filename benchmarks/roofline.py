"""How near the engine comes to what this core can do: time of a step beside the roofline's.

The roofline is min(peak flops, intensity x bandwidth), with the counts of `Work`.  Peak is
the rate of a large square product in float32; a second, lower one is the rate at which this core multiplies arrays of
the very shapes that the step needs, since a product with five columns cannot reach the first.  Bandwidth is that of
the better of two elementwise passes (copy, and a sum of two arrays), in an array as large as the working set for what
stays in cache, in a large one for the data as they are stored.  Rates are taken beside every configuration.
"""

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import common
import numpy as np

from cdfsg.linalg import Array
from cdfsg.paper.compute import views_of
from cdfsg.solvers import SOLVERS

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


DATA_PRODUCTS = {"CDFSG": 5, "CDFSG-Ada": 5, "Landing": 4}
"""Products of a minibatch with n-by-p matrices per step: three of scores and two adjoints; Landing has two of each."""
STATE_PASSES = {"CDFSG": 2, "CDFSG-Ada": 6, "Landing": 2}
"""Reads and writes of n-by-p arrays per step: X, and the two moment estimates of CDFSG-Ada."""


@dataclass(frozen=True)
class Work:
    """The sizes of one step of all lanes; `stored` is the bytes of a stored value of the data."""

    solver: str
    n: int
    batch_size: int
    p: int
    lanes: int
    stored: int = 1

    @property
    def rows(self) -> int:
        """Rows of all minibatches of a step."""
        return SOLVERS[self.solver].samples_per_step * self.batch_size

    @property
    def flops(self) -> int:
        """Additions and multiplications of the products with the data, as the algorithm is written."""
        return 2 * DATA_PRODUCTS[self.solver] * self.batch_size * self.n * self.lanes * self.p

    @property
    def stored_bytes(self) -> int:
        """Bytes read of the data as they are stored, which come from memory: a minibatch has rows at random."""
        return self.rows * self.n * self.stored

    @property
    def working_bytes(self) -> int:
        """Least bytes moved besides: a minibatch is written as floats and read again, the state read and written."""
        state = STATE_PASSES[self.solver] * self.n * self.lanes * self.p
        return common.FLOAT * (2 * self.rows * self.n + state)

    @property
    def working_set(self) -> int:
        """Bytes that are live during a step, which decide how fast they move."""
        state = STATE_PASSES[self.solver] // 2 * self.n * self.lanes * self.p
        return common.FLOAT * (self.rows * self.n + state)

    @property
    def intensity(self) -> float:
        """Flops per byte."""
        return self.flops / (self.stored_bytes + self.working_bytes)

    def seconds(self, peak: float, memory: float, cache: float) -> float:
        """Least seconds of a step, of the flops or of the bytes, at flops and bytes per second."""
        return max(self.flops / peak, self.stored_bytes / memory + self.working_bytes / cache)


def rows() -> list[dict[str, object]]:
    """All configurations."""
    memory = bandwidth(LARGE)
    common.say(f"memory {memory / 1e9:.1f} GB/s, peak {peak() / 1e9:.1f} GFLOP/s")
    return [
        row(dataset, Work(solver, views_of(dataset).n_features, size, p, lanes), memory)
        for dataset, solver, lanes, size, p in product(DATASETS, SETTINGS, LANES, BATCH_SIZES, COLUMNS)
    ]


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
        result = common.run_lanes(work.solver, [SETTINGS[work.solver]] * work.lanes, part, work.batch_size, work.p)
        times.append(result.seconds / result.steps)
        stopped += int((result.stopped_at >= 0).sum())
    roofs = [work.seconds(rate, memory, cache) for rate in peaks]
    lower = [work.seconds(min(rate, shapes), memory, cache) for rate in peaks]
    # The two sides of a ratio were measured one after the other.
    share, share_of_shapes = (statistics.median(np.divide(roof, times)) for roof in (roofs, lower))
    if work.batch_size == max(BATCH_SIZES) and work.p == max(COLUMNS):
        common.say(f"{dataset} {work.solver} {work.lanes} lanes l={work.batch_size}: {share:.0%}")
    return {
        "dataset": dataset, "solver": work.solver, "lanes": work.lanes, "batch_size": work.batch_size, "p": work.p,
        "n": work.n, "step_seconds": statistics.median(times), "low_seconds": min(times), "flops": work.flops,
        "stored_bytes": work.stored_bytes, "working_bytes": work.working_bytes, "intensity": work.intensity,
        "peak": statistics.median(peaks), "shape_rate": shapes, "memory_bandwidth": memory, "cache_bandwidth": cache,
        "roofline_seconds": statistics.median(roofs), "share": share, "share_of_shapes": share_of_shapes,
        "stopped": stopped, "steps": steps, "pass_steps": pass_steps, "repeats": REPEATS,
    }  # fmt: skip


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
    """Flops per second of a step's products by themselves: scores and adjoints of all views, laid out anew."""
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


def main() -> None:
    """Measure and write ``speed-roofline.csv``."""
    common.publish("roofline", rows)


if __name__ == "__main__":
    main()
