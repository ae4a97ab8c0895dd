"""From an experiment to its records: run the jobs that are missing, in parallel and resumably."""

import platform
import time
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from threadpoolctl import threadpool_limits

from cdfsg.datasets import DownloadError
from cdfsg.datasets.download import say
from cdfsg.files import Damaged, read_sealed
from cdfsg.paper import distribute, records
from cdfsg.paper.compute import compute, key_of, origin
from cdfsg.paper.experiments import Experiment, Job
from cdfsg.paper.select import plan


def run_experiment(experiment: Experiment, folder: Path, processes: int) -> dict[str, pd.DataFrame]:
    """The records of an experiment by part: the stages that need no selection, then the others at what it gives."""
    first = {part: run_jobs(experiment.jobs(part=part), folder, processes) for part in experiment.parts}
    chosen = plan(experiment, records.joined(first.values()))
    found = {}
    for part in experiment.parts:
        jobs = experiment.jobs(chosen, part)
        # Timing runs come last, so that nothing else competes with them than another timing run.
        timed = [job for job in jobs if job.role == "timing"]
        others = run_jobs([job for job in jobs if job.role != "timing"], folder, processes)
        found[part] = records.joined([others, run_jobs(timed, folder, processes)])
    return found


def run_jobs(jobs: Sequence[Job], folder: Path, processes: int) -> pd.DataFrame:
    """Run what is missing of `jobs`, or damaged, and return all their records; a kill loses those under way alone."""
    paths = {job: folder / f"{key_of(job)}.csv" for job in jobs}
    missing = sorted((job for job in jobs if not _is_kept(paths[job])), key=lambda job: -job.cost)
    progress = distribute.Progress(missing, len(jobs))
    tasks = [(job, _origin(job)) for job in missing]
    for job, frame, seconds in distribute.each(compute_alone, tasks, processes):
        records.write(frame, paths[job])
        progress.report(job, seconds)
    return records.read(paths.values())


def _is_kept(path: Path) -> bool:
    """Whether the record of a job is there undamaged; damage is told."""
    try:
        read_sealed(path, "its job is run again")
    except FileNotFoundError:
        return False
    except Damaged as error:
        say(str(error))
        return False
    return True


def compute_alone(job: Job, asked: str) -> tuple[Job, pd.DataFrame, float]:
    """Compute a job of the code and data `asked` for, maybe on another machine; with its seconds in all."""
    began = time.perf_counter()
    # Independent jobs on one BLAS thread each beat threads inside small products.
    with threadpool_limits(1):
        try:
            if _origin(job) != asked:
                raise ValueError(
                    f"the worker {platform.node()} has {_origin(job)}, but the process that asked has {asked}; "
                    "give both the same version of cdfsg and the same data files, and start the worker anew"
                )
            frame = compute(job)
        except (ValueError, OSError, DownloadError) as error:
            raise ValueError(f"{job.describe()}: {error}") from error
        except MemoryError as error:
            raise MemoryError(f"{job.describe()}: {error}") from error
    return job, frame, time.perf_counter() - began


def _origin(job: Job) -> str:
    code, data = origin(job)
    return f"{code}, data {data}, key {key_of(job)}"
