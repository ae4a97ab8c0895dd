"""The archive: the records of every experiment that were published, and where they lie."""

import os
from pathlib import Path

import pandas as pd

from cdfsg import sums
from cdfsg.files import FIGURES, QUICK, RECORDS, is_intact
from cdfsg.paper import records
from cdfsg.paper.experiments import Experiment


def folder_of(experiment: Experiment) -> Path:
    """Where the published records of an experiment lie: in the repository only for the paper's own."""
    return RECORDS if experiment.table else QUICK / "records"


def figure_folder(experiment: Experiment) -> Path:
    """Where the figures of an experiment go: into the repository only for the paper's own."""
    return FIGURES if experiment.table else QUICK


def stem(experiment: Experiment, runs: pd.DataFrame) -> str:
    """Beginning of the names of an experiment's files; it says so where the data are a surrogate."""
    return _stems(experiment)[1 if records.is_surrogate(runs) else 0]


def publish(experiment: Experiment, runs: pd.DataFrame) -> None:
    """Write the records of an experiment, the curves in a file of their own."""
    folder, name = folder_of(experiment), stem(experiment, runs)
    traced = runs["role"] == "trace"
    records.publish(runs[~traced], folder / f"{name}.csv")
    records.publish(runs[traced], folder / f"{name}-curves.csv")


def publish_more(experiment: Experiment, what: str, runs: pd.DataFrame) -> None:
    """Write further records of an experiment: its "betas" or its "ablations"."""
    records.publish(runs, folder_of(experiment) / f"{stem(experiment, runs)}-{what}.csv")


def unpack(experiment: Experiment, folder: Path) -> int:
    """Write the published blocks of an experiment into `folder`, as if they had been run here; returns how many.

    A block whose file is there already, undamaged, stays.  Those of other code or data do no harm: nothing asks for
    their keys.
    """
    count = 0
    for name in _stems(experiment):
        for path in sorted(folder_of(experiment).glob(f"{name}*.csv")):
            if path.stem.removeprefix(name) in ("", "-curves", "-betas", "-ablations"):
                for key, block in _read(experiment, [path]).groupby("key", sort=False):
                    target = folder / f"{key}.csv"
                    if not is_intact(target):
                        records.write(block, target)
                        count += 1
    return count


def exists(experiment: Experiment) -> bool:
    """Whether there are records of an experiment."""
    return any((folder_of(experiment) / f"{name}.csv").exists() for name in _stems(experiment))


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
    table = sums.read_csv(path, remedy) if path.exists() else pd.DataFrame({"dataset": []})
    mine = table[table["dataset"] == experiment.dataset]
    if mine.empty:
        raise FileNotFoundError(f"{path} has nothing of {experiment.dataset}; make it with: make {_target(experiment)}")
    return mine.reset_index(drop=True)


def _stems(experiment: Experiment) -> tuple[str, str]:
    """Names for the data set itself and for a surrogate of it."""
    return experiment.name, f"{experiment.dataset}-surrogate-{experiment.merit}"


def _require_file(experiment: Experiment, suffix: str) -> Path:
    """The file with the records of the data set itself, or else those of its surrogate."""
    paths = [folder_of(experiment) / f"{name}{suffix}.csv" for name in _stems(experiment)]
    for path in paths:
        if os.path.lexists(path):  # a link that leads nowhere is damage, of which reading tells
            return path
    raise FileNotFoundError(f"{paths[0]} is missing; make it with: make {_target(experiment)}")


def _read(experiment: Experiment, paths: list[Path]) -> pd.DataFrame:
    return records.read_published(paths, f"make {_target(experiment)}")


def _target(experiment: Experiment) -> str:
    return "reproduce" if experiment.table else "quick"
