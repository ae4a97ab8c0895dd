"""The published records of every experiment.

``index.csv`` has a row per job; the files of runs have nothing that a job's rows share.  Wall times lie in
``times.csv``: a rerun that changes no number changes no other file.
"""

import os
from pathlib import Path

import pandas as pd

from cdfsg import checksums
from cdfsg.files import FIGURES, QUICK, RECORDS, read_if_intact
from cdfsg.paper import records
from cdfsg.paper.experiments import EXPERIMENTS, Experiment

INDEX, TIMES = "index.csv", "times.csv"
_ONE_RUN = ["key", "order", "start"]
_INDEX = ("file", *records.JOB, "key")
_RUNS = (*records.RUN, *records.METRICS, "key")
_CURVE = (*records.RUN, "quality", "pcc", "fval", "fea", "key")
_TIMES = (*_ONE_RUN, "seconds")


def folder_of(experiment: Experiment) -> Path:
    """Where the published records of an experiment lie: in the repository only for the paper's own."""
    return RECORDS if experiment.table else QUICK / "records"


def figure_folder(experiment: Experiment) -> Path:
    """Where its figures go: into the repository only for the paper's own."""
    return FIGURES if experiment.table else QUICK


def publish(experiment: Experiment, parts: dict[str, pd.DataFrame]) -> None:
    """Write the records of an experiment by part, the curves of the table in a file of their own.

    The index has old and new jobs while files are replaced, so a kill leaves records that can be read.
    """
    traced = parts[""]["role"] == "trace"
    files = {_file(experiment, part): runs for part, runs in parts.items()}
    files |= {_file(experiment, ""): parts[""][~traced], _file(experiment, "curves"): parts[""][traced]}
    named = pd.concat([runs.assign(file=path.name) for path, runs in files.items()])
    jobs = named.drop_duplicates(["file", "key"])[list(_INDEX)]
    timed = named.drop_duplicates(_ONE_RUN)[list(_TIMES)]
    index, times = folder_of(experiment) / INDEX, folder_of(experiment) / TIMES
    old = _load(index, experiment) if index.exists() else jobs.iloc[:0]
    before = _load(times, experiment) if times.exists() else timed.iloc[:0]
    all_times = pd.concat([before, timed]).drop_duplicates(_ONE_RUN, keep="last")
    both = pd.concat([old[~old["file"].isin(jobs["file"])], jobs])
    _write(times, all_times)
    _write(index, pd.concat([old, jobs]).drop_duplicates(["file", "key"]))
    for path, runs in files.items():
        _write(path, runs[list(_columns(path))])
    _write(index, both)
    _write(times, all_times[all_times["key"].isin(both["key"])])


def unpack(experiment: Experiment, folder: Path) -> int:
    """Write published jobs into `folder` where it lacks them; returns how many."""
    parts = [part for part in (*experiment.parts, "curves") if _file(experiment, part).exists()]
    jobs = {folder / f"{key}.csv": job for key, job in _read(experiment, parts).groupby("key", sort=False)}
    missing = [path for path in jobs if read_if_intact(path) is None]
    for path in missing:
        records.write(jobs[path], path)
    return len(missing)


def exists(experiment: Experiment) -> bool:
    """Whether there are records of an experiment."""
    return _file(experiment, "").exists()


def published() -> list[Experiment]:
    """The paper's experiments that have records."""
    return [experiment for experiment in EXPERIMENTS.values() if exists(experiment)]


def runs_of(experiment: Experiment) -> pd.DataFrame:
    """Read the published records of an experiment's table and curves."""
    return _read(experiment, ["", "curves"])


def more(experiment: Experiment, part: str) -> pd.DataFrame:
    """Read the part "betas"; no rows where an experiment has none."""
    return _read(experiment, [part] if part in experiment.parts else [])


def exact(experiment: Experiment) -> pd.DataFrame:
    """Read the exact solver's results on the experiment's data set."""
    path = folder_of(experiment) / "exact.csv"
    table = checksums.read_record(path, _make(experiment))
    if experiment.dataset not in set(table["dataset"]):
        raise FileNotFoundError(f"{path} has nothing of {experiment.dataset}; make it with: {_make(experiment)}")
    return table[table["dataset"] == experiment.dataset].reset_index(drop=True)


def _read(experiment: Experiment, parts: list[str]) -> pd.DataFrame:
    folder, paths, frames = folder_of(experiment), [_file(experiment, part) for part in parts], []
    for path in paths:
        if not os.path.lexists(path):  # a link that leads nowhere is damage, which reading reports
            raise FileNotFoundError(f"{path} is missing; make it with: {_make(experiment)}")
    if not paths:
        return records.joined([])
    jobs, times = _load(folder / INDEX, experiment), _load(folder / TIMES, experiment)
    for path in paths:
        frame = _load(path, experiment).merge(jobs[jobs["file"] == path.name], on="key", how="left")
        frame = frame.merge(times, on=_ONE_RUN, how="left").reindex(columns=list(records.COLUMNS))
        frames.append(records.complete(frame, path, _remedy(experiment)))
    return records.joined(frames)


def _load(path: Path, experiment: Experiment) -> pd.DataFrame:
    remedy = _remedy(experiment)
    return records.table(checksums.read(path, remedy), _columns(path), path, remedy)


def _columns(path: Path) -> tuple[str, ...]:
    of_curve = path.stem.endswith(("-curves", "-betas"))
    return {INDEX: _INDEX, TIMES: _TIMES}.get(path.name, _CURVE if of_curve else _RUNS)


def _write(path: Path, frame: pd.DataFrame) -> None:
    if path.name in (INDEX, TIMES):  # in one order, so that the same rows are the same file
        frame = frame.sort_values(["file", "key"] if "file" in frame else _ONE_RUN)
    checksums.write(path, frame.to_csv(index=False, lineterminator="\n"))


def _file(experiment: Experiment, part: str) -> Path:
    return folder_of(experiment) / f"{experiment.name}{part and '-'}{part}.csv"


def _remedy(experiment: Experiment) -> str:
    return f"take back both with git checkout, or delete it and make it with: {_make(experiment)}"


def _make(experiment: Experiment) -> str:
    return "make reproduce" if experiment.table else "make quick"
