"""From an experiment to its records: run the jobs that are missing, in parallel and resumably.

They are computed in processes of this machine, or by the workers of a Dask cluster, which need not share a file system
with the process that asks for results and writes them.
"""

import asyncio
import platform
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
from threadpoolctl import threadpool_limits

from cdfsg import processes
from cdfsg.datasets import DownloadError
from cdfsg.files import read_if_intact
from cdfsg.paper import records
from cdfsg.paper.compute import compute, key_of, origin
from cdfsg.paper.experiments import Experiment, Job
from cdfsg.paper.select import plan

_PATIENCE = 10
"""Seconds to wait for an answer of the scheduler, and then for its first worker."""

Workers = Any
"""A number of processes of this machine, or a `distributed.Client`."""
Done = tuple[Job, pd.DataFrame, float]
"""A job, its record, and its seconds in all."""


def run_experiment(experiment: Experiment, folder: Path, workers: Workers) -> dict[str, pd.DataFrame]:
    """The records of an experiment by part: first what needs no selection, then what it gives."""
    first = {part: run_jobs(experiment.jobs(part=part), folder, workers) for part in experiment.parts}
    chosen = plan(experiment, records.joined(first.values()))
    return {part: run_jobs(experiment.jobs(chosen, part), folder, workers) for part in experiment.parts}


def run_jobs(jobs: Sequence[Job], folder: Path, workers: Workers) -> pd.DataFrame:
    """Run the jobs whose record is missing or damaged, and return all records."""
    paths = {job: folder / f"{key_of(job)}.csv" for job in jobs}
    missing = [job for job, path in paths.items() if read_if_intact(path, "its job is run again") is None]
    missing.sort(key=lambda job: -job.cost)
    tasks = [(job, (*origin(job), key_of(job))) for job in missing]
    here = isinstance(workers, int)
    results = processes.each(compute_alone, tasks, workers) if here else on_cluster(tasks, workers)
    for job, frame in progress(results, missing, len(jobs)):
        records.write(frame, paths[job])
    return records.read(paths.values())


def compute_alone(job: Job, asked: tuple[str, ...]) -> Done:
    """Compute a job of the code and data `asked` for."""
    began = time.perf_counter()
    # Independent jobs on one BLAS thread each beat threads inside small products.
    with threadpool_limits(1):
        try:
            here = (*origin(job), key_of(job))
            if here != asked:
                raise ValueError(
                    f"the worker {platform.node()} has {', '.join(here)}, but the process that asked has "
                    f"{', '.join(asked)}; give both the same version of cdfsg and the same data files, "
                    "and start the worker anew"
                )
            frame = compute(job)
        except (ValueError, OSError, DownloadError) as error:
            raise ValueError(f"{job.describe()}: {error}") from error
        except MemoryError as error:
            raise MemoryError(f"{job.describe()}: {error}") from error
    return job, frame, time.perf_counter() - began


def on_cluster(tasks: Sequence[tuple[Job, Any]], client: Any) -> Iterator[Done]:
    """Results of ``compute_alone(*task)`` by the workers of a `distributed.Client`, as they are finished."""
    from distributed import as_completed

    # All are submitted at once, so that workers that join the cluster later find some left.
    futures = {client.submit(compute_alone, *task, pure=False): task[0] for task in tasks}
    for future in as_completed(list(futures), loop=client.loop):
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


def progress(results: Iterable[Done], jobs: Sequence[Job], total: int) -> Iterator[tuple[Job, pd.DataFrame]]:
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
