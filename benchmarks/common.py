"""What the parts of `make bench` share: the clock, the machine, data cut to size, progress."""

import platform
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from cdfsg.datasets import Provenance, Views
from cdfsg.merits import Identity
from cdfsg.paper.experiments import REPORTED_ORDER, REPORTED_STARTS
from cdfsg.paper.measure import speed
from cdfsg.problems import SampledGCCA
from cdfsg.solvers import SOLVERS, lanes


def machine() -> str:
    """Name of the processor."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


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


def run(
    solver: str, setting: tuple[float, ...], views: Views, batch_size: int, p: int, count: int
) -> lanes.Outcome:
    """Run so many lanes of a solver from one initial point at one setting, with the identity merit."""
    kind = SOLVERS[solver]()
    X0 = np.repeat(lanes.initial_points(kind, views.n_features, p, REPORTED_STARTS[:1]), count, axis=1)
    settings = dict(zip(kind.settings, np.array([setting] * count).T, strict=True))
    problem = SampledGCCA(views.sizes, Identity())
    return lanes.run(kind, problem, views, X0, settings, batch_size, REPORTED_ORDER)


def say(words: str) -> None:
    """One line of progress."""
    print(words, file=sys.stderr, flush=True)


def publish(part: str, rows: list[dict[str, object]]) -> None:
    """Write the records of a part with the machine's name."""
    path = speed.write(part, pd.DataFrame(rows).assign(machine=machine()))
    say(f"{part}: {len(rows)} records in {path.name}")


@contextmanager
def one_thread(part: str) -> Iterator[None]:
    """One BLAS thread, and how long it took in all."""
    began = time.perf_counter()
    with threadpool_limits(1):
        yield
    say(f"{part}: {time.perf_counter() - began:.0f} s in all")
