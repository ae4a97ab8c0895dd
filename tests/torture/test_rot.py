"""Files that rot on the disk: each is noticed, named, and mended or refused, and none becomes a verdict."""

import re
import shutil
from itertools import product

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from cdfsg import __main__ as cli
from cdfsg import checksums
from cdfsg.files import Damaged
from cdfsg.paper import archive, run
from cdfsg.paper.experiments import EXPERIMENTS
from cdfsg.paper.measure import cost, data_table
from cdfsg.paper.report import figures, notebooks
from cdfsg.paper.results import claims, conclusions, multiverse, reported, verdicts
from cdfsg.paper.run import key_of, run_jobs
from cdfsg.theory import statements
from tests.datasets.builders import flip
from tests.paper.fakes import TINY, fake
from tests.project import copy

EXPERIMENT = EXPERIMENTS["ta:pcctimemn"]


DAMAGES = {
    "flip": flip,
    "flip first": lambda data: flip(data, 0),
    "flip last": lambda data: flip(data, -1),
    "digit": lambda data: re.sub(rb"\d(?=\D*\Z)", lambda last: b"%d" % (9 - int(last[0])), data),
    "row twice": lambda data: data + data.splitlines(keepends=True)[-1],
    "cut": lambda data: data[: len(data) // 2],
    "shorter": lambda data: data[:-1],
    "empty": lambda data: b"",
    "folder": None,
    "unreadable": None,
}


def damage(path, kind):
    """Do to a file what the name of the damage says."""
    data = path.read_bytes()
    path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind == "unreadable":  # for root, too
        path.symlink_to(path)
    else:
        path.write_bytes(DAMAGES[kind](data))


def heal(path, data):
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    path.write_bytes(data)


def refuse_all(readers, tally, kinds=DAMAGES):
    """Every reader refuses every damage to its file by its name, says what to do, and reads it once it is healed."""
    for path, reader in readers.items():
        data = path.read_bytes()
        for kind in kinds:
            damage(path, kind)
            # A link to itself is not there, for some of them.
            with pytest.raises((Damaged, FileNotFoundError) if kind == "unreadable" else Damaged) as caught:
                reader()
            told = str(caught.value)
            tally(path.name in told and any(words in told for words in ("git checkout", "make", "python -m cdfsg")))
            heal(path, data)
        reader()


@pytest.fixture
def copied(tmp_path, everywhere):
    """The repository's data, figures and notebooks in a folder, and everything that reads them there."""
    places = {"PAPER": "data/paper", "RECORDS": "data/records", "FIGURES": "figures", "NOTEBOOKS": "notebooks"}
    copy(tmp_path, *places.values(), "README.md", "REPORT.md")
    everywhere(**{name: tmp_path / place for name, place in places.items()})
    everywhere(ROOT=tmp_path, RUNS=tmp_path / "runs", INSTANCES=tmp_path / "notebooks" / "instances")
    reported.tolerances.cache_clear()
    yield tmp_path
    reported.tolerances.cache_clear()


@pytest.mark.case("rot: what was taken from the paper")
def test_the_papers_numbers_are_refused_when_they_are_damaged(copied, tally):
    def tolerances():
        reported.tolerances.cache_clear()
        return reported.tolerances()

    folder = copied / "data" / "paper"
    readers = {
        "tables.csv": lambda: reported.load_table("ta:pcctimemn"), "tolerances.toml": tolerances,
        "claims.toml": claims.load_claims, "criterion.toml": multiverse.criterion,
        "computation.csv": cost.load_printed_cost, "datasets.csv": data_table.read_paper_table,
        "statements.csv": lambda: statements.recorded(folder / "statements.csv"),
        "errata.toml": lambda: checksums.read(folder / "errata.toml"),
    }  # fmt: skip
    assert set(readers) == {path.name for path in folder.iterdir()} - {checksums.LIST}
    refuse_all({folder / name: reader for name, reader in readers.items()}, tally)


def reader_of(name):
    """What the commands read a file of the published records with."""
    kinds = {file: kind for kind, file in data_table.FILES.items()}
    known = {
        "verdicts.csv": verdicts.read, "claims.csv": claims.read, "multiverse.csv": conclusions.specifications,
        "multiverse-folds.csv": conclusions.folds, "multiverse-choices.csv": conclusions.choices,
        "exact.csv": lambda: archive.exact(EXPERIMENT),
        cost.MEMORY_NAME: cost.read_memory,
    }  # fmt: skip
    if name in known:
        return known[name]
    if name in kinds:
        return lambda: data_table.read(kinds[name])
    for experiment in EXPERIMENTS.values():
        if name in (f"{experiment.name}.csv", f"{experiment.name}-curves.csv", archive.INDEX, archive.TIMES):
            return lambda: archive.runs_of(experiment)
        if name == f"{experiment.name}-betas.csv":
            return lambda: archive.more(experiment, "betas")
    return lambda: checksums.read_csv(archive.RECORDS / name)


@pytest.mark.case("rot: published records")
def test_published_records_are_refused_when_they_are_damaged(copied, tally):
    paths = sorted((copied / "data" / "records").glob("*.csv"))
    # Of each kind of records one file; all are read by the same few functions.
    kinds = [path for path in paths if "huber" not in path.name and not path.name.startswith("nmnist")]
    refuse_all({path: reader_of(path.name) for path in kinds}, tally)


@pytest.mark.case("rot: figures and stored notebooks")
def test_a_damaged_figure_is_drawn_anew(tmp_path, tally):
    numbers = pd.DataFrame({"x": [1.0, 2.0], "y": [0.25, 0.5]})
    figure, axes = plt.subplots()
    axes.plot(numbers["x"], numbers["y"])
    figures.save(figure, "x", numbers, tmp_path)
    kinds = ("flip", "flip first", "flip last", "cut", "empty", "folder", "unreadable")  # the others cannot be seen
    for path, kind in product(sorted(tmp_path.iterdir()), kinds):
        whole = path.read_bytes()
        damage(path, kind)
        if kind == "folder":
            with pytest.raises(OSError, match=f"{path}'; .*move away what is in the way"):
                figures.save(figure, "x", numbers, tmp_path)
            path.rmdir()
        figures.save(figure, "x", numbers, tmp_path)
        tally(path.read_bytes() == whole)
    plt.close(figure)


@pytest.mark.case("rot: figures and stored notebooks")
def test_the_report_refuses_a_damaged_notebook(copied, tally):
    kinds = ("row twice", "cut", "empty", "folder", "unreadable")  # a changed number fails in `make test`
    for path in (copied / "notebooks" / "00_start.ipynb", *(copied / "notebooks" / "instances").glob("30*.ipynb")):
        refuse_all({path: lambda path=path: notebooks.read(path)}, tally, kinds)


@pytest.mark.case("rot: no verdict on damaged files")
@pytest.mark.parametrize("command", ["verdict", "report", "status"])
@pytest.mark.parametrize("kind", ["digit", "row twice", "folder"])
def test_a_command_on_damaged_records_ends_with_their_name_and_writes_nothing(copied, capsys, command, kind):
    victim = copied / "data" / "records" / "mediamill-identity.csv"
    damage(victim, kind)
    before = {path: path.read_bytes() for path in copied.rglob("*") if path.is_file() and path.name != "lock"}
    assert cli.main([command]) == 1
    out, err = capsys.readouterr()
    assert str(victim) in err and "git checkout" in err and "match" not in out
    assert {path: path.read_bytes() for path in copied.rglob("*") if path.is_file() and path.name != "lock"} == before


@pytest.mark.case("rot: cached records of blocks")
def test_a_damaged_job_is_named_and_run_again_to_the_same_numbers(tmp_path, monkeypatch, tally, capsys):
    monkeypatch.setattr(run, "compute", lambda job: fake(job, key=key_of(job), pcc=0.3))
    jobs = TINY.jobs()[:2]
    whole = run_jobs(jobs, tmp_path, 1)
    victim = tmp_path / f"{key_of(jobs[0])}.csv"
    for kind in (kind for kind in DAMAGES if kind != "folder"):  # which is told as for a figure
        damage(victim, kind)
        capsys.readouterr()
        found = run_jobs(jobs, tmp_path, 1)
        err = capsys.readouterr().err
        tally(found.equals(whole) and "1 of 2 jobs to run" in err and str(victim) in err)
