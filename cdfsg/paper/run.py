"""From an experiment to its records: run the jobs that are missing, in parallel and resumably."""

import platform
import time
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from threadpoolctl import threadpool_limits

from cdfsg.datasets import DownloadError
from cdfsg.files import read_if_intact
from cdfsg.paper import distribute, records
from cdfsg.paper.compute import compute, key_of, origin
from cdfsg.paper.distribute import Workers
from cdfsg.paper.experiments import Experiment, Job
from cdfsg.paper.select import plan


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
    results = distribute.each(compute_alone, tasks, workers)
    for job, frame in distribute.progress(results, missing, len(jobs)):
        records.write(frame, paths[job])
    return records.read(paths.values())


def compute_alone(job: Job, asked: tuple[str, ...]) -> tuple[Job, pd.DataFrame, float]:
    """Compute a job of the code and data `asked` for; with its seconds in all."""
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
