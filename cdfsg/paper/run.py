"""From a specification to its records: run the blocks that are missing, in parallel and resumably."""

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
from cdfsg.paper.compute import code_of_block, compute, data_key, key_of, views_of
from cdfsg.paper.experiments import Block, Experiment
from cdfsg.paper.select import select


def run_blocks(blocks: Sequence[Block], folder: Path, jobs: int) -> pd.DataFrame:
    """Run what is missing of `blocks`, report progress on standard error, and return all their records.

    Each record is written as soon as it arrives: a run that is killed loses only the blocks that were under way.
    A block whose record is damaged is run again.
    """
    keyed = {block: folder / f"{key_of(block)}.csv" for block in blocks}
    missing = sorted((b for b in blocks if not _is_kept(keyed[b])), key=lambda b: -b.cost)
    progress = distribute.Progress(missing, len(blocks))
    tasks = [(block, _origin(block)) for block in missing]
    for block, frame, seconds in distribute.each(compute_alone, tasks, jobs):
        records.write(frame, keyed[block])
        progress.report(block, seconds)
    return records.read(keyed.values())


def _is_kept(path: Path) -> bool:
    """Whether the record of a block is there undamaged; damage is told."""
    try:
        read_sealed(path, "its block is run again")
    except FileNotFoundError:
        return False
    except Damaged as error:
        say(str(error))
        return False
    return True


def compute_alone(block: Block, origin: str) -> tuple[Block, pd.DataFrame, float]:
    """Compute a block in a process that does nothing else, maybe on another machine; with its seconds in all.

    Raises
    ------
    ValueError
        If the block fails, or code and data are not those of `origin`; the message names the block.
    MemoryError
        If there is too little memory; the message names the block, too.
    """
    began = time.perf_counter()
    # Independent blocks on one BLAS thread each beat threads inside small products.
    with threadpool_limits(1):
        try:
            if _origin(block) != origin:
                raise ValueError(
                    f"the worker {platform.node()} has {_origin(block)}, but the process that asked has {origin}; "
                    "give both the same version of cdfsg and the same data files, and start the worker anew"
                )
            frame = compute(block)
        except (ValueError, OSError, DownloadError) as error:
            raise ValueError(f"{block.describe()}: {error}") from error
        except MemoryError as error:
            raise MemoryError(f"{block.describe()}: {error}") from error
    return block, frame, time.perf_counter() - began


def _origin(block: Block) -> str:
    """What a record's key is made of, in words that two machines can compare."""
    data = data_key(views_of(block.dataset, block.centred))
    return f"code {code_of_block(block)[:8]}, data {data}, key {key_of(block)}"


def run_experiment(experiment: Experiment, folder: Path, jobs: int) -> pd.DataFrame:
    """Both stages of an experiment: runs at given settings, then runs at the selected ones."""
    first = run_blocks(experiment.first_stage(), folder, jobs)
    chosen = select(first)
    second = experiment.second_stage(chosen)
    # Timing runs come last, so that nothing else competes with them than another timing run.
    others = run_blocks([block for block in second if block.role != "timing"], folder, jobs)
    timing = run_blocks([block for block in second if block.role == "timing"], folder, jobs)
    return pd.concat([first, others, timing], ignore_index=True)


def run_betas(experiment: Experiment, runs: pd.DataFrame, folder: Path, jobs: int) -> pd.DataFrame:
    """The curves under other penalty parameters, at the settings that `runs` of the experiment select."""
    return run_blocks(experiment.beta_stage(select(runs)), folder, jobs)


def run_ablations(experiment: Experiment, runs: pd.DataFrame, folder: Path, jobs: int) -> pd.DataFrame:
    """Every treatment of an experiment: its own selection of step sizes, then the reported runs at them.

    `runs` of the experiment select the settings for the runs in other data orders.
    """
    tuning = run_blocks(experiment.ablation_tuning(), folder, jobs)
    treated = {str(name): select(group) for name, group in tuning.groupby("variant")}
    final = run_blocks(experiment.ablation_runs(select(runs), treated), folder, jobs)
    return pd.concat([tuning, final], ignore_index=True)
