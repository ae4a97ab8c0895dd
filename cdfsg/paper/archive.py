"""The archive: the records of every experiment that were published, and where they lie."""

import os
from pathlib import Path

import pandas as pd

from cdfsg import checksums
from cdfsg.files import FIGURES, QUICK, RECORDS, is_intact
from cdfsg.paper import records
from cdfsg.paper.experiments import Experiment


def folder_of(experiment: Experiment) -> Path:
    """Where the published records of an experiment lie: in the repository only for the paper's own."""
    return RECORDS if experiment.table else QUICK / "records"


def figure_folder(experiment: Experiment) -> Path:
    """Where the figures of an experiment go: into the repository only for the paper's own."""
    return FIGURES if experiment.table else QUICK


def publish(experiment: Experiment, runs: pd.DataFrame) -> None:
    """Write the records of an experiment, the curves in a file of their own."""
    traced = runs["role"] == "trace"
    records.publish(runs[~traced], _file(experiment, ""))
    records.publish(runs[traced], _file(experiment, "-curves"))


def publish_more(experiment: Experiment, what: str, runs: pd.DataFrame) -> None:
    """Write further records of an experiment: its "betas" or its "ablations"."""
    records.publish(runs, _file(experiment, f"-{what}"))


def unpack(experiment: Experiment, folder: Path) -> int:
    """Write the published blocks of an experiment into `folder`, as if they had been run here; returns how many.

    A block whose file is there already, undamaged, stays.  Those of other code or data do no harm: nothing asks for
    their keys.
    """
    count = 0
    paths = [_file(experiment, suffix) for suffix in ("", "-curves", "-betas", "-ablations")]
    for path in filter(Path.exists, paths):
        for key, block in _read(experiment, [path]).groupby("key", sort=False):
            target = folder / f"{key}.csv"
            if not is_intact(target):
                records.write(block, target)
                count += 1
    return count


def exists(experiment: Experiment) -> bool:
    """Whether there are records of an experiment."""
    return _file(experiment, "").exists()


def runs_of(experiment: Experiment) -> pd.DataFrame:
    """Read the published records of an experiment.

    Raises
    ------
    FileNotFoundError
        If they are missing; the message says how to make them.
    Damaged
        If they are not as they were published.
    """
    return _read(experiment, [_require_file(experiment, suffix) for suffix in ("", "-curves")])


def more(experiment: Experiment, what: str) -> pd.DataFrame:
    """Read further records: "betas", curves under other penalty parameters; "ablations", other readings of the setting.

    Raises
    ------
    FileNotFoundError
        If they are missing; the message says how to make them.
    Damaged
        If they are not as they were published.
    """
    return _read(experiment, [_require_file(experiment, f"-{what}")])


def ablations(experiment: Experiment) -> pd.DataFrame:
    """Read the published ablations; no rows where an experiment has none."""
    return more(experiment, "ablations") if experiment.treatments else _read(experiment, [])


def exact(experiment: Experiment) -> pd.DataFrame:
    """Read the exact solver's results on the experiment's data set.

    Raises
    ------
    FileNotFoundError
        If they are missing; the message says how to make them.
    Damaged
        If they are not as they were published.
    """
    path = folder_of(experiment) / "exact.csv"
    remedy = f"delete it and make it with: make {_target(experiment)}"
    table = checksums.read_csv(path, remedy) if path.exists() else pd.DataFrame({"dataset": []})
    mine = table[table["dataset"] == experiment.dataset]
    if mine.empty:
        raise FileNotFoundError(f"{path} has nothing of {experiment.dataset}; make it with: make {_target(experiment)}")
    return mine.reset_index(drop=True)


def _file(experiment: Experiment, suffix: str) -> Path:
    return folder_of(experiment) / f"{experiment.name}{suffix}.csv"


def _require_file(experiment: Experiment, suffix: str) -> Path:
    path = _file(experiment, suffix)
    if not os.path.lexists(path):  # a link that leads nowhere is damage, which reading reports
        raise FileNotFoundError(f"{path} is missing; make it with: make {_target(experiment)}")
    return path


def _read(experiment: Experiment, paths: list[Path]) -> pd.DataFrame:
    return records.read_published(paths, f"make {_target(experiment)}")


def _target(experiment: Experiment) -> str:
    return "reproduce" if experiment.table else "quick"
