"""Command line: ``python -m cdfsg COMMAND``."""

import cdfsg.suite  # noqa: F401  # ends here without the repository or the extra `suite`

# isort: split
import argparse
import io
import os
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext
from typing import Any

import pandas as pd
from joblib import cpu_count

from cdfsg import processes
from cdfsg.datasets import DATASETS, DownloadError, download, mediamill, nmnist
from cdfsg.files import (
    CACHE_ENVIRONMENT,
    FIGURES,
    KEPT,
    NOTEBOOKS,
    QUICK,
    RECORDS,
    ROOT,
    RUNS,
    named_folder,
    read_if_intact,
    say,
    sweep,
)
from cdfsg.lock import lock
from cdfsg.paper import archive, exact, experiments, multiverse
from cdfsg.paper.compute import key_of, views_of
from cdfsg.paper.experiments import EXPERIMENTS, Experiment
from cdfsg.paper.measure import cost, data_table
from cdfsg.paper.report import notebooks, summaries
from cdfsg.paper.results import claims, verdicts
from cdfsg.paper.results.reported import table_name
from cdfsg.paper.run import cluster, run_experiment
from cdfsg.paper.select import plan
from cdfsg.theory import statements


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m cdfsg", description="Replication suite for CDFSG.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    for name, (_, purpose, beforehand, *takes) in _COMMANDS.items():
        about = f"{purpose}: {beforehand}".removesuffix(": ")
        command = commands.add_parser(name, help=purpose, description=about.replace("%", "%%"))
        for option, details in (_OPTIONS[key] for key in takes):
            command.add_argument(option, **details)
    arguments = parser.parse_args(argv)
    action, _, beforehand, *takes = _COMMANDS[arguments.command]
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # for letters that the terminal has not
    try:
        for name in (CACHE_ENVIRONMENT, download.ENVIRONMENT, nmnist.ENVIRONMENT, mediamill.ENVIRONMENT):
            if folder := named_folder(name):  # absolute, as notebooks run in another one
                os.environ[name] = str(folder.absolute())
        if "only" in takes:
            arguments.experiments = chosen(arguments.only)
        alone = arguments.command in _WRITERS
        with lock(RUNS.parent / "lock", f"cdfsg {arguments.command}") if alone else nullcontext():
            if alone:
                caches = (RUNS, KEPT, QUICK, QUICK / "records")
                sweep(*caches, RECORDS, FIGURES, NOTEBOOKS, notebooks.INSTANCES, ROOT)
            if beforehand:
                say(f"{arguments.command}, on two cores: {beforehand}")
            action(arguments)
    except (ValueError, OSError, DownloadError) as error:
        say(str(error))
        return 1
    except ModuleNotFoundError:
        raise
    except (MemoryError, BrokenProcessPool, ImportError) as error:  # there is no room to load a shared library
        reason = (str(error) or "out of memory").splitlines()[0]
        say(f"a process was lost, or had too little memory: {reason}; {_GO_ON}, with --jobs 1 where memory is short")
        return 1
    except KeyboardInterrupt:
        say(f"stopped; {_GO_ON}")
        return 130
    return 0


def _jobs(text: str) -> int:
    if not (text.isdecimal() and int(text) >= 1):
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, got {text!r}")
    return int(text)


def chosen(only: str) -> list[Experiment]:
    """The experiments that a filter such as ``dataset=mnist, merit=identity`` or ``table=4`` keeps."""
    known = list(EXPERIMENTS.values())
    wanted = {"".join(part.split()) for part in only.split(",")} - {""}
    numbers = [table_name(e.table).removeprefix("Table ") for e in known]
    named = [(f"table={n}", f"dataset={e.dataset}", f"merit={e.merit}") for n, e in zip(numbers, known, strict=True)]
    kept = [e for e, names in zip(known, named, strict=True) if wanted <= {f"table={e.table}", *names}]
    if not kept:
        there = "; ".join(f"{table} is {dataset},{merit}" for table, dataset, merit in named)
        raise ValueError(f"--only {only} keeps no experiment; there are: {there}")
    return kept


def _data(_: argparse.Namespace) -> None:
    errors = _unavailable(DATASETS)
    for views in (views_of(name) for name in DATASETS if name not in errors):
        print(f"{views}\n    {views.provenance.source}, {views.provenance.checksum}")
    if errors:
        raise DownloadError("\n".join(map(str, errors.values())))


def _run(arguments: argparse.Namespace) -> None:
    kept = _with_data(arguments.experiments)
    for number, experiment in enumerate(kept, start=1):
        say(f"{table_name(experiment.table)}, {experiment.name} ({number} of {len(kept)})")
        if arguments.published:
            print(f"{archive.unpack(experiment, RUNS)} published jobs taken over", file=sys.stderr)
        count = _run_one(experiment, arguments)
        print(f"{experiment.name}: {count} records in {archive.folder_of(experiment)}")
    if not arguments.only:
        cost.publish(RECORDS)
        data_table.publish(RECORDS, {experiment.dataset for experiment in kept})


def _with_data(experiments: Sequence[Experiment]) -> list[Experiment]:
    """Return the experiments whose data set is available, and print a line about the others.

    Raise DownloadError if none is left.
    """
    errors = _unavailable(experiment.dataset for experiment in experiments)
    kept = [e for e in experiments if e.dataset not in errors]
    if not kept:
        raise DownloadError("\n".join(map(str, errors.values())))
    for name, reason in errors.items():
        lost = " and ".join(table_name(e.table) for e in experiments if e.dataset == name)
        stays, remedy = "the published records and figures stay as they are", str(reason).splitlines()[-1]
        say(f"{lost} cannot be run without the data set {name}; {stays}. {remedy}")
    return kept


def _unavailable(names: Iterable[str]) -> dict[str, DownloadError]:
    """The errors of the data sets that cannot be had, by name."""
    errors = {}
    for name in dict.fromkeys(names):
        try:
            views_of(name)
        except DownloadError as error:
            errors[name] = error
    return errors


def _run_one(experiment: Experiment, arguments: argparse.Namespace) -> int:
    with cluster(arguments.dask, arguments.jobs) as workers:
        parts = run_experiment(experiment, RUNS, workers)
    archive.publish(experiment, parts)
    exact.update(archive.folder_of(experiment) / "exact.csv", experiment.dataset, experiment.ps)
    return len(parts[""])


def _status(arguments: argparse.Namespace) -> None:
    for experiment in arguments.experiments:
        print(f"{table_name(experiment.table)}, {experiment.name}")
        runs = archive.runs_of(experiment) if archive.exists(experiment) else pd.DataFrame()
        jobs = experiment.jobs()
        try:
            with download.offline():
                done = sum(read_if_intact(RUNS / f"{key_of(job)}.csv") is not None for job in jobs)
                planned = experiment.jobs(plan(experiment, runs)) if len(runs) else []
                wanted = {key_of(job) for job in planned}
        except DownloadError as error:
            print(f"  published records: {len(runs)}; whether of these data: {error}")
            continue
        print(f"  {done} of {len(jobs)} jobs with given settings are done in {RUNS}")
        if runs.empty:
            print("  no published records yet; make reproduce")
            continue
        of = "this code and data" if wanted == set(runs["key"]) else "other code or data; renew them by make reproduce"
        print(f"  published records: {len(runs)}, of {of}")


def _verdict(_: argparse.Namespace) -> None:
    table, asserted = verdicts.write(), claims.write()
    summaries.write(table, asserted)
    for experiment in archive.published():
        part = table[table["table"] == experiment.table]
        print(summaries.summary(experiment, part, archive.runs_of(experiment)))
    print(asserted[["claim", "verdict"]].to_string(index=False))
    print(f"Every number: {RECORDS / 'verdicts.csv'}; every claim: {RECORDS / 'claims.csv'}")


def _multiverse(arguments: argparse.Namespace) -> None:
    began, kept = time.monotonic(), _with_data(list(EXPERIMENTS.values()))
    with cluster(arguments.dask, arguments.jobs) as workers:
        won = multiverse.tour(kept, RUNS, workers, RECORDS)
    words = "meets" if won else "does not meet"
    print(f"Done in {time.monotonic() - began:.0f} s. The search {words} the criterion in data/paper/criterion.toml. "
          f"Look at {RECORDS / 'multiverse.csv'} and notebooks/41_multiverse.ipynb.")  # fmt: skip


def _notebooks(arguments: argparse.Namespace) -> None:
    tasks: list[tuple[Any, ...]] = [(name,) for name in notebooks.names() if name not in notebooks.OF_EXPERIMENTS]
    for experiment in filter(archive.exists, arguments.experiments):
        parameters = {"dataset": experiment.dataset, "merit": experiment.merit}
        for name in notebooks.of_experiment(experiment):
            instance = notebooks.INSTANCES / f"{name}-{experiment.name}.ipynb"
            tasks.append((name,) if experiment.name == notebooks.EXAMPLE else (name, parameters, instance))
    _execute(tasks, arguments.jobs)


def _execute(tasks: Sequence[tuple[Any, ...]], jobs: int) -> None:
    """Execute notebooks at once; a task has the arguments of `notebooks.execute`."""
    for path in processes.each(notebooks.execute, tasks, jobs):
        print(path, file=sys.stderr, flush=True)


def _report(_: argparse.Namespace) -> None:
    from cdfsg.paper.report import site  # a second to import, with all that draws

    print(f"Open {site.build()}")


def _reproduce(arguments: argparse.Namespace) -> None:
    began = time.monotonic()
    _run(arguments)
    _verdict(arguments)
    _notebooks(arguments)
    print(f"Done in {time.monotonic() - began:.0f} s. Look at notebooks/ and figures/.")


def _quick(arguments: argparse.Namespace) -> None:
    experiment = experiments.QUICK
    _run_one(experiment, arguments)
    parameters = {"dataset": experiment.dataset, "merit": experiment.merit, "profile": "quick"}
    names = notebooks.of_experiment(experiment)
    _execute([(name, parameters, QUICK / f"{name}.ipynb") for name in names], arguments.jobs)
    print(f"Done. Look at the notebooks and figures in {QUICK}.")


_GO_ON = "the same command goes on from here"
_WRITERS = ("run", "multiverse", "verdict", "notebooks", "report", "reproduce", "quick")
"""Commands that exclude each other."""
_OPTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "only": ("--only", {"default": "", "metavar": "KEY=VALUE,...",
                        "help": "experiments to keep, by table, dataset or merit"}),
    "labels": ("--only", {"nargs": "+", "default": (), "metavar": "LABEL",
                          "help": "statements to check, by their labels, in quotes"}),
    "jobs": ("--jobs", {"type": _jobs, "default": cpu_count(),
                        "help": "processes, at least 1 (default: the available cores)"}),
    "write": ("--write", {"action": "store_true",
                          "help": "write data/paper/statements.csv and errata.toml from the code"}),
    "dask": ("--dask", {"metavar": "ADDRESS", "help": "scheduler of a Dask cluster whose workers do the runs"}),
    "published": ("--published", {"action": "store_true",
                                  "help": "take over published runs of this code and data, times included"}),
}  # fmt: skip
_RECORDS = f"records go to {RECORDS}, and {RUNS} keeps what is done if you stop it"
_SHOWN = f"notebooks go to {NOTEBOOKS}, pictures to {FIGURES}"
_COMMANDS: dict[str, tuple[Any, ...]] = {
    "data": (_data, "download and check the data sets",
             "a minute or two; 86 MB go to data/raw, or CDFSG_DATA_DIR, and 141 MB made of them"),
    "run": (_run, "run what is missing of the experiments", f"up to 15 minutes; {_RECORDS}",
            "only", "jobs", "dask", "published"),
    "status": (_status, "say what is done", "", "only"),
    "verdict": (_verdict, "judge the records against the paper", f"half a minute; tables go to {RECORDS}"),
    "theory": (lambda given: statements.report(given.jobs, given.write, given.only), "check the paper's statements",
               "half a minute; nothing is written but with --write", "labels", "jobs", "write"),
    "notebooks": (_notebooks, "execute the notebooks", f"five minutes; {_SHOWN}", "only", "jobs"),
    "report": (_report, "build the report, a site", "half a minute; it goes to build/report"),
    "reproduce": (_reproduce, "run, verdict and notebooks", f"up to 18 minutes; {_RECORDS}; {_SHOWN}",
                  "only", "jobs", "dask", "published"),
    "multiverse": (_multiverse, "score every protocol that the paper leaves open",
                   f"75 minutes; {_RECORDS}", "jobs", "dask"),
    "quick": (_quick, "the same pipeline on a small real data set",
              f"half a minute; all of it goes to {QUICK}", "jobs", "dask"),
}  # fmt: skip
"""What a command does, how long it takes on two cores and where its results go, and its options."""

if __name__ == "__main__":
    signal.signal(signal.SIGINT, processes.stop)
    sys.exit(main())
