"""Work in several processes of this machine; when Ctrl-C stops a command, they say nothing."""

import os
import signal
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import resource_tracker
from typing import Any, TypeVar

import numpy as np
from joblib import Parallel, delayed

R = TypeVar("R")
_ROOM = 128 << 20  # bytes, fewer than any process of ours takes


def each(function: Callable[..., R], tasks: Sequence[tuple[Any, ...]], jobs: int, ordered: bool = False) -> Iterator[R]:
    """Results of ``function(*task)``, in the order of the tasks or as they are finished."""
    if not tasks:
        return
    os.environ.setdefault("PYTHONWARNINGS", "ignore:resource_tracker")  # it tells of what it removes after Ctrl-C
    np.empty(_ROOM, np.uint8)  # MemoryError here, where it is told in words; OpenBLAS would exit, the pool hang
    pool = Parallel(
        n_jobs=min(jobs, len(tasks)), return_as="generator" if ordered else "generator_unordered", batch_size=1,
        pre_dispatch="all", temp_folder=tempfile.gettempdir(),  # a kill leaves the default one
        initializer=_ignore_interrupts,
    )  # fmt: skip
    can_wait = hasattr(signal, "pthread_sigmask")  # not on Windows
    if can_wait:  # workers inherit from their first instruction on that SIGINT waits
        resource_tracker.ensure_running()  # it lets signals through when it starts
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        results = pool(delayed(function)(*task) for task in tasks)
    finally:
        if can_wait:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
    yield from results


def stop(*_: Any) -> None:
    """Handle SIGINT of a command, once: ends it with one line, as the pool that is torn down is silenced."""
    _ignore_interrupts()
    warnings.simplefilter("ignore")  # joblib's, of tasks that are given up
    threading.excepthook = lambda _: None
    raise KeyboardInterrupt


def _ignore_interrupts() -> None:
    """Let this process ignore SIGINT: a worker is ended by the process that asked."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
