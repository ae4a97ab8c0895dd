"""Where jobs are computed: in processes of this machine, or by the workers of a Dask cluster.

The process that asks for results writes them: workers need not share a file system with it.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any, TypeVar

from joblib import Parallel, delayed, parallel_config
from joblib._dask import DaskDistributedBackend

from cdfsg.paper.experiments import Job

_PATIENCE = 10
"""Seconds to wait for an answer of the scheduler, and then for its first worker."""

R = TypeVar("R")


def each(compute: Callable[[Job, str], R], tasks: Sequence[tuple[Job, str]], processes: int) -> Iterator[R]:
    """Results of ``compute(*task)`` as they are finished, by that many processes or, within `cluster`, its workers."""
    if tasks:
        # All are handed over at once, so that workers that join a cluster later find some left.
        parallel = Parallel(
            n_jobs=min(processes, len(tasks)), return_as="generator_unordered", batch_size=1, pre_dispatch="all",
            temp_folder=tempfile.gettempdir(),  # never used; by default an empty one is made, and a kill leaves it
        )  # fmt: skip
        yield from parallel(delayed(compute)(*task) for task in tasks)


@contextmanager
def cluster(address: str | None) -> Iterator[None]:
    """Let `each` use the Dask cluster at `address`, such as ``host:8786``; None stands for this machine's processes."""
    if address is None:
        yield
        return
    with _connected(address) as client, parallel_config(backend=_Workers(client=client)):
        yield


def _connected(address: str) -> Any:
    """A client of the cluster, which has a worker and none with several threads."""
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
    client = Client(address, set_as_default=False)
    start = f"dask worker {address} --nthreads 1"
    try:
        client.wait_for_workers(1, timeout=_PATIENCE)
        threads = {worker: count for worker, count in client.nthreads().items() if count > 1}
    except OSError as error:
        client.close()
        raise ValueError(f"the Dask scheduler at {address} has no worker; start one by {start}") from error
    if threads:
        client.close()
        raise ValueError(
            f"Dask workers with several threads: {threads}; jobs that share a process share its BLAS threads, "
            f"so start a process for each job by {start} --nworkers COUNT"
        )
    return client


async def _kind_at(address: str) -> str:
    """What answers at an address: a ``Scheduler``, or another part of Dask.

    Asked first, since a `Client` can wait for minutes at a port of something else, such as the scheduler's dashboard.
    """
    from distributed import Security
    from distributed.core import rpc

    async with rpc(address, connection_args=Security().get_connection_args("client")) as remote:
        identity = await asyncio.wait_for(remote.identity(), _PATIENCE)
    return str(identity["type"])


class _Workers(DaskDistributedBackend):  # type: ignore[misc]
    """joblib's backend for Dask, mended where a run of hours would go elsewhere, hang, or end without a word."""

    def effective_n_jobs(self, n_jobs: int) -> int:
        """At least 2, as joblib takes 1 to mean that nothing needs to be handed to a worker."""
        return max(2, int(super().effective_n_jobs(n_jobs)))

    def submit(self, func: Any, callback: Callable[[Any], None]) -> Any:
        """Hand a task over; if Dask gives it up, tell joblib, which would wait for it for ever."""
        future = super().submit(func, callback)

        def tell(done: Any) -> None:
            error = done.exception()
            if error is not None:
                [(_, (job, _), _)] = func.items
                callback(ValueError(f"{job.describe()}: given up by Dask ({type(error).__name__}: {error})"))

        future.add_done_callback(tell)
        return future

    def retrieve_result_callback(self, out: Any) -> Any:
        """Results of a task; it has none if the scheduler is gone."""
        if isinstance(out, CancelledError):
            raise ValueError(
                "the connection to the Dask scheduler was lost; start it again, and the same command goes on from here"
            ) from out
        return super().retrieve_result_callback(out)


class Progress:
    """Lines that read well in a log: what is done, how long it took, how long it will take."""

    def __init__(self, missing: Sequence[Job], total: int) -> None:
        self.missing = len(missing)
        self.cost = sum(job.cost for job in missing)
        self.began = self.spoke = time.monotonic()
        self.done = 0
        self.spent = 0.0
        if missing:
            kept = total - self.missing
            print(f"{self.missing} of {total} jobs to run" + (f", {kept} kept" if kept else ""),
                  file=sys.stderr, flush=True)  # fmt: skip

    def report(self, job: Job, seconds: float) -> None:
        """Say that a job is done, if the last line is two seconds old or it is the last job."""
        self.done += 1
        self.spent += job.cost
        now = time.monotonic()
        if now - self.spoke < 2 and self.done < self.missing:
            return
        self.spoke, elapsed = now, now - self.began
        left = max(0.0, elapsed * (self.cost - self.spent) / self.spent)
        print(
            f"[{self.done:3d}/{self.missing}] {elapsed:4.0f} s, about {left:3.0f} s left: "
            f"{job.describe()}, {seconds:.1f} s",
            file=sys.stderr,
            flush=True,
        )
