"""Time of one lane alone and of the 180 lanes of a grid, on MNIST (l = 100, p = 5), in one process on one core.

Run it with ``make bench``.  The last line is the figure of merit: how many single runs a block of 180 costs.
"""

import statistics
from dataclasses import replace

from threadpoolctl import threadpool_limits

from cdfsg.paper import run
from cdfsg.paper.experiments import EXPERIMENTS, Block

REPEATS = 7


def grid_block() -> Block:
    """The reported CDFSG runs at l = 100, p = 5: 18 grid points times 10 initial points."""
    blocks = EXPERIMENTS["ta:pcctimemn"].first_stage()
    (block,) = (
        b for b in blocks
        if (b.batch_size, b.p, b.solver, b.role) == (100, 5, "CDFSG", "reported")
    )  # fmt: skip
    return block


def main() -> None:
    """Measure both side by side and print them."""
    grid = grid_block()
    single = replace(grid, starts=grid.starts[:1], settings=((0.25, 0.05),))
    run.compute(single)  # loads the data and warms the caches
    alone, together = [], []
    for number in range(REPEATS):
        alone.append(run.compute(single)["block_seconds"].iloc[0])
        if number % 3 == 0:
            together.append(run.compute(grid)["block_seconds"].iloc[0])
    one, all_lanes = statistics.median(alone), statistics.median(together)
    print(f"one lane:  {one:6.3f} s   (median of {len(alone)}, fastest {min(alone):.3f} s)")
    print(f"{grid.lanes} lanes: {all_lanes:6.2f} s   (median of {len(together)}, fastest {min(together):.2f} s)")
    cost = all_lanes / one
    print(f"{grid.lanes} lanes cost {cost:.1f} single runs: 1/{grid.lanes / cost:.1f} of {grid.lanes}")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
