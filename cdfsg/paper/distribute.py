"""Where jobs are computed: in processes of this machine, or by the workers of a Dask cluster.

The process that asks for results writes them: workers need not share a file system with it.
"""

import asyncio
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any, TypeVar

from cdfsg import processes
from cdfsg.paper.experiments import Job

_PATIENCE = 10
"""Seconds to wait for an answer of the scheduler, and then for its first worker."""

R = TypeVar("R")
Workers = Any
"""A number of processes of this machine, or a `distributed.Client`."""


def each(compute: Callable[..., R], tasks: Sequence[tuple[Job, Any]], workers: Workers) -> Iterator[R]:
    """Results of ``compute(*task)`` as they are finished."""
    if isinstance(workers, int):
        yield from processes.each(compute, tasks, workers)
        return
    from distributed import as_completed

    # All are submitted at once, so that workers that join the cluster later find some left.
    futures = {workers.submit(compute, *task, pure=False): task[0] for task in tasks}
    for future in as_completed(list(futures), loop=workers.loop):
        try:
            result = future.result()
        except CancelledError as error:
            raise ValueError(
                "the connection to the Dask scheduler was lost; start it again, and the same command goes on from here"
            ) from error
        except (ValueError, MemoryError):  # of the job, which it names
            raise
        except Exception as error:
            job = futures[future].describe()
            raise ValueError(f"{job}: given up by Dask ({type(error).__name__}: {error})") from error
        del futures[future]  # for the worker to forget it
        yield result


@contextmanager
def cluster(address: str | None, processes: int) -> Iterator[Workers]:
    """The workers of the Dask cluster at `address`, one thread each; without one, processes of this machine."""
    if address is None:
        yield processes
        return
    try:
        from distributed import Client
    except ImportError as error:
        raise ValueError("--dask needs Dask, which is not installed; run pip install 'cdfsg[dask]'") from error
    try:
        kind = asyncio.run(_kind_at(address))
    except (OSError, ValueError, TypeError) as error:
        kind = str(error) or f"no answer in {_PATIENCE} seconds"
    if kind != "Scheduler":
        raise ValueError(
            f"no Dask scheduler at {address!r} ({kind}); expected the address that dask scheduler prints when it "
            "starts, such as tcp://host:8786"
        )
    start = f"dask worker {address} --nthreads 1"
    with Client(address, set_as_default=False) as client:
        try:
            client.wait_for_workers(1, timeout=_PATIENCE)
            threads = {worker: count for worker, count in client.nthreads().items() if count > 1}
        except OSError as error:
            raise ValueError(f"the Dask scheduler at {address} has no worker; start one by {start}") from error
        if threads:
            raise ValueError(
                f"Dask workers with several threads: {threads}; jobs that share a process share its BLAS threads, "
                f"so start a process for each job by {start} --nworkers COUNT"
            )
        yield client


async def _kind_at(address: str) -> str:
    """What answers at an address: a ``Scheduler``, or another part of Dask.

    Asked first, since a `Client` can wait for minutes at a port of something else.
    """
    from distributed import Security
    from distributed.core import rpc

    async with rpc(address, connection_args=Security().get_connection_args("client")) as remote:
        identity = await asyncio.wait_for(remote.identity(), _PATIENCE)
    return str(identity["type"])


def progress(results: Iterable[tuple[Job, R, float]], jobs: Sequence[Job], total: int) -> Iterator[tuple[Job, R]]:
    """Results of `jobs`, of `total` in all; stderr gets whole lines on what is done and left."""
    if jobs:
        kept = f", {total - len(jobs)} kept" * (total > len(jobs))
        print(f"{len(jobs)} of {total} jobs to run{kept}", file=sys.stderr, flush=True)
    began = told = time.monotonic()
    left = cost = sum(job.cost for job in jobs)
    for number, (job, result, seconds) in enumerate(results, start=1):
        yield job, result
        left -= job.cost
        now = time.monotonic()
        if now - told < 2 and number < len(jobs):
            continue
        told, spent = now, now - began
        rest = max(0.0, spent * left / (cost - left))
        line = f"[{number:3d}/{len(jobs)}] {spent:4.0f} s, about {rest:3.0f} s left: {job.describe()}, {seconds:.1f} s"
        print(line, file=sys.stderr, flush=True)
