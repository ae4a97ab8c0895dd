"""From an experiment's runs to what people look at: record files, verdicts, figures, a summary in words."""

from pathlib import Path

import pandas as pd

from cdfsg.files import QUICK, RECORDS, write_atomically
from cdfsg.paper import records
from cdfsg.paper.experiments import EXPERIMENTS, Experiment
from cdfsg.paper.verdicts import VERDICTS, attainability, verdicts

OURS = ("CDFSG", "CDFSG-Ada")


def folder_of(experiment: Experiment) -> Path:
    """Where the published records of an experiment lie: in the repository only for the paper's own."""
    return RECORDS if experiment.table else QUICK


def publish(experiment: Experiment, runs: pd.DataFrame) -> None:
    """Write the records of an experiment, the curves in a file of their own."""
    folder = folder_of(experiment)
    traced = runs["role"] == "trace"
    records.write(runs[~traced], folder / f"{experiment.name}.csv")
    records.write(runs[traced], folder / f"{experiment.name}-curves.csv")


def published(experiment: Experiment) -> pd.DataFrame:
    """Read the published records of an experiment.

    Raises
    ------
    FileNotFoundError
        If they are missing; the message says how to make them.
    """
    folder = folder_of(experiment)
    paths = [folder / f"{experiment.name}{suffix}.csv" for suffix in ("", "-curves")]
    for path in paths:
        if not path.exists():
            target = "reproduce" if experiment.table else "quick"
            raise FileNotFoundError(f"{path} is missing; make it with: make {target}")
    return records.read(paths)


def write_verdicts() -> pd.DataFrame:
    """Judge every experiment with published records and write ``data/records/verdicts.csv``."""
    frames = [
        verdicts(experiment, published(experiment))
        for experiment in EXPERIMENTS.values()
        if (folder_of(experiment) / f"{experiment.name}.csv").exists()
    ]
    if not frames:
        raise FileNotFoundError(f"there are no records in {RECORDS}; make them with: make reproduce")
    table = pd.concat(frames, ignore_index=True)
    write_atomically(RECORDS / "verdicts.csv", table.to_csv(index=False, lineterminator="\n"))
    return table


def count_verdicts(table: pd.DataFrame) -> pd.DataFrame:
    """Number of verdicts of each kind per solver."""
    counts = pd.crosstab(table["solver"], table["verdict"])
    return counts.reindex(columns=[word for word in VERDICTS if word in counts]).rename_axis(columns=None)


def summary(experiment: Experiment, table: pd.DataFrame, runs: pd.DataFrame) -> str:
    """A few lines on what was reproduced."""
    ours = table[table["solver"].isin(OURS) & (table["quantity"] != "time_s")]
    good = int(ours["verdict"].isin(["match", "better"]).sum())
    rows = attainability(experiment, runs)
    return (
        f"{experiment.table}: {len(table)} printed numbers\n"
        f"  CDFSG and CDFSG-Ada at our rule's settings: {good} of {len(ours)} match or better\n"
        f"  rows whose printed numbers a grid cell attains: {int(rows['attainable'].sum())} of {len(rows)}\n"
        f"{count_verdicts(table).to_string()}"
    )
