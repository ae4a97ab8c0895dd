"""What the parts of `make bench` share: the clock, the machine, data cut to size, progress, records."""

import platform
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from cdfsg import checksums
from cdfsg.datasets import Provenance, Views
from cdfsg.files import RECORDS
from cdfsg.merits import Identity
from cdfsg.paper.protocols import REPORTED_SEEDS
from cdfsg.problems import SampledGCCA
from cdfsg.solvers import SOLVERS
from cdfsg.solvers.engine import RunResult, initial_points, run

FLOAT = 4
"""Bytes of the numbers that the engine computes with."""


def machine() -> str:
    """Name of the processor."""
    path = Path("/proc/cpuinfo")
    name = re.search(r"model name\s*: (.*)", path.read_text(encoding="utf-8") if path.exists() else "")
    return name[1].strip() if name else platform.processor() or platform.machine()


def seconds_of(work: Callable[[], object]) -> float:
    """Seconds that a call takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def per_call(work: Callable[[], object], at_least: float = 0.01) -> float:
    """Seconds of one of many calls, which together take `at_least` seconds; the first, in cold caches, is left out."""
    work()
    calls = max(1, int(at_least / max(seconds_of(work), 1e-7)))
    return seconds_of(lambda: [work() for _ in range(calls)]) / calls


def beginning(views: Views, steps: int, batch_size: int) -> Views:
    """The first rows of a data set, as many as `steps` minibatches take; its mean is known when this returns."""
    part = replace(views, data=views.data[: steps * batch_size])
    _ = part.mean  # computed at its first use and kept
    return part


def random_views(n: int, samples: int) -> Views:
    """Two views of random pixels: their content is of no account for time and memory."""
    data = np.random.default_rng(0).integers(0, 256, (samples, n), dtype=np.uint8)
    return Views("random", data, (n // 2, n - n // 2), 1 / 255, True, Provenance("random", "none", "synthetic"))


def run_lanes(
    solver: str, settings: list[tuple[float, ...]], views: Views, batch_size: int, p: int, **options: object
) -> RunResult:
    """Run a solver with the identity merit: a lane per setting, from the initial points in turn."""
    kind = SOLVERS[solver]()
    starts = [REPORTED_SEEDS[number * len(REPORTED_SEEDS) // len(settings)][1] for number in range(len(settings))]
    X0 = initial_points(kind, views.n_features, p, starts)
    named = dict(zip(kind.settings, np.array(settings).T, strict=True))
    problem = SampledGCCA(views.sizes, Identity())
    return run(kind, problem, views, X0, named, batch_size, REPORTED_SEEDS[0][0], **options)


def say(words: str) -> None:
    """One line of progress."""
    print(words, file=sys.stderr, flush=True)


def publish(part: str, measure: Callable[[], list[dict[str, object]]]) -> None:
    """Measure on one BLAS thread, and write the rows with the machine's name, six significant digits."""
    path = RECORDS / f"speed-{part}.csv"
    with one_thread(part):
        table = pd.DataFrame(measure()).assign(machine=machine())
    checksums.write(path, table.to_csv(index=False, float_format="%.6g", lineterminator="\n"))
    say(f"{part}: {len(table)} records in {path.name}")


@contextmanager
def one_thread(part: str) -> Iterator[None]:
    """One BLAS thread, and how long it took in all."""
    began = time.perf_counter()
    with threadpool_limits(1):
        yield
    say(f"{part}: {time.perf_counter() - began:.0f} s in all")
