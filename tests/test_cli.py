import os
import re
import subprocess
import sys
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from unittest import mock

import pandas as pd
import pytest

from cdfsg import __main__ as cli
from cdfsg import checksums
from cdfsg.datasets import digits, load, mediamill, mnist, nmnist
from cdfsg.files import RECORDS, ROOT
from cdfsg.lock import lock
from cdfsg.paper import archive, experiments
from cdfsg.paper.report import summaries
from cdfsg.paper.results import claims, conclusions, verdicts
from tests.paper.fakes import TINY

# Cells that the paper's table has, on data that take no time.
SMALL = replace(TINY, table="ta:pcctimemn", ps=(5, 10), solvers=("CDFSG", "RSG+"))
GIVEN = len(SMALL.jobs())
BEFOREHAND = re.compile(r"cdfsg: \w+, on two cores: .*minute.* go(es)? to /")
PARTS = [path.name.partition(".")[0] for path in (ROOT / "docs" / "templates" / "readme").iterdir()]
"""How long a command takes and where its results go."""


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    """Send all output to a temporary folder and let the paper have one small experiment."""
    for module in (cli, archive, verdicts, conclusions, claims):
        monkeypatch.setattr(module, "RECORDS", tmp_path / "records")
    for module in (cli, archive):
        monkeypatch.setattr(module, "QUICK", tmp_path / "quick")
        monkeypatch.setattr(module, "EXPERIMENTS", {SMALL.table: SMALL})
    monkeypatch.setattr(cli, "RUNS", tmp_path / "runs")
    for module in (cli.cost, cli.data_table):
        monkeypatch.setattr(module, "publish", lambda *_: None)
    for module in (cli, summaries):
        monkeypatch.setattr(module, "ROOT", tmp_path / "root")
    (tmp_path / "root").mkdir()
    marks = [mark for name in PARTS for mark in summaries.marks(name)]
    (tmp_path / "root" / "README.md").write_text("\n".join(marks))
    monkeypatch.setattr(experiments, "QUICK", replace(TINY, solvers=("Landing",)))
    return tmp_path


@pytest.fixture
def executed(folders, monkeypatch):
    """Notebooks that were executed, with their arguments; none really runs."""
    calls = []

    def execute(name, parameters=None, output=None):
        calls.append((name, parameters, output))
        return output or folders / f"{name}.ipynb"

    monkeypatch.setattr(cli.notebooks, "execute", execute)
    monkeypatch.setattr(cli.notebooks, "names", lambda: ["00_start", "40_gcca"])
    return calls


@pytest.fixture
def searched(folders):
    """The published results of the multiverse."""
    for path in RECORDS.glob("multiverse*.csv"):
        checksums.write(folders / "records" / path.name, path.read_bytes())


@pytest.fixture
def call(capsys):
    """Return a function that runs a command and gives its status, standard output and standard error."""

    def run(*arguments):
        capsys.readouterr()
        status = cli.main(arguments)
        return status, *capsys.readouterr()

    return run


def test_a_filter_keeps_the_experiments_that_have_all_its_values(monkeypatch):
    other, own = replace(SMALL, table="ta:fvalmn", merit="huber"), replace(SMALL, table="", dataset="mine")
    monkeypatch.setattr(cli, "EXPERIMENTS", {one.table: one for one in (SMALL, other, own)})
    assert cli.chosen("") == [SMALL, other, own] and cli.chosen("dataset=mine") == [own]
    assert cli.chosen("dataset=digits") == [SMALL, other]
    for only in ("dataset=digits,merit=huber", " dataset = digits , merit=huber ", "table=ta:fvalmn,", "table=7"):
        assert cli.chosen(only) == [other], only
    for only in ("table=0", "table=9", "table=ta:fvalmd", "merit=hubert", "data=digits", "merit=huber,merit=identity"):
        with pytest.raises(ValueError, match=f"{only} keeps no experiment; there are: table=4 is dataset=digits,"):
            cli.chosen(only)


def test_the_status_tells_what_is_done_before_and_after_a_run(call, folders, monkeypatch):
    status, out, _ = call("status")
    assert status == 0 and out.startswith(f"Table 4, digits-identity\n  0 of {GIVEN} jobs with given settings are done")
    assert "no published records yet; make reproduce" in out

    status, out, err = call("run", "--jobs", "1")
    assert status == 0 and "jobs to run" in err
    published = pd.concat([pd.read_csv(path) for path in (folders / "records").glob("digits-*.csv")])
    assert out == f"digits-identity: {len(published)} records in {folders / 'records'}\n"

    status, out, _ = call("status")
    assert status == 0 and f"{GIVEN} of {GIVEN} jobs with given settings are done" in out
    assert f"published records: {len(published)}, of this code and data" in out

    status, _, err = call("run", "--jobs", "1")
    assert status == 0 and err.splitlines()[1:] == ["cdfsg: Table 4, digits-identity (1 of 1)"]  # nothing is run

    monkeypatch.setattr("cdfsg.paper.compute.NUMERICS", "other")
    _, out, _ = call("status")
    assert f"0 of {GIVEN} jobs" in out and "of other code or data" in out


def test_the_status_fetches_and_makes_nothing_and_names_the_data_that_are_not_here(call, monkeypatch, tmp_path):
    published = [experiments.EXPERIMENTS[table] for table in ("ta:pcctimemd", "ta:pcctimemn", "ta:fvalnmni")]
    monkeypatch.setattr(cli, "EXPERIMENTS", {experiment.table: experiment for experiment in published})
    monkeypatch.setattr(cli.download, "_first", mock.Mock(side_effect=AssertionError("something was fetched")))
    monkeypatch.setenv("CDFSG_DATA_DIR", str(tmp_path / "raw"))
    monkeypatch.delenv("CDFSG_MEDIAMILL", raising=False)
    monkeypatch.setattr("cdfsg.paper.compute.views_of", load)  # the other keeps what it has loaded before
    status, out, err = call("status")
    names = (mediamill.FILE, mnist.FILE, nmnist.FILE)
    assert status == 0 and not err and not (tmp_path / "raw").exists()
    for line, name in zip(out.splitlines()[1::2], names, strict=True):
        words = f"{tmp_path / 'raw' / name} is not here; get it by make data"
        assert line == f"  published records: 0; whether of these data: {words}"
    with pytest.raises(AssertionError, match="something was fetched"):  # what comes after may fetch again
        load("mnist")


def test_a_verdict_without_records_says_how_to_make_them_and_removes_what_a_killed_command_left(call, folders):
    left = folders / "runs" / "0123456789abcdef.csvxyz.cdfsg.tmp"
    left.parent.mkdir()
    left.write_text("dataset,")
    status, out, err = call("verdict")
    assert status == 1 and out == "" and "make reproduce" in err
    assert not {"records", "quick"} & set(os.listdir(folders)) and not left.exists()


def test_the_verdict_on_a_run_is_a_summary_a_report_and_a_file_with_every_number(call, folders, searched):
    call("run", "--jobs", "1")
    status, out, err = call("verdict")
    assert BEFOREHAND.match(err) and status == 0 and "Table 4: 48 independent numbers of CDFSG and CDFSG-Ada: " in out
    path = folders / "records" / "verdicts.csv"
    assert f"Every number: {path};" in out and len(pd.read_csv(path)) == 192
    readme = (folders / "root" / "README.md").read_text()
    assert "| MNIST (original) | 48 |" in readme and "**The numbers are not reproduced, " in readme
    for name in PARTS:
        begin, end = summaries.marks(name)
        assert readme.partition(begin)[2].partition(end)[0].strip(), name
    assert (folders / "root" / "REPORT.md").read_text().startswith("# [Re] Stochastic optimization")


@pytest.mark.parametrize("won, words", [(True, "meets"), (False, "does not meet")])
def test_the_multiverse_says_whether_its_search_meets_the_criterion(call, monkeypatch, won, words):
    monkeypatch.setattr(cli.multiverse, "tour", mock.Mock(return_value=won))
    status, out, err = call("multiverse", "--jobs", "1")
    assert status == 0 and f"The search {words} the criterion" in out and BEFOREHAND.match(err)
    assert cli.multiverse.tour.call_args.args[0] == [SMALL]


@pytest.mark.parametrize("command", ["run", "verdict", "notebooks", "report", "reproduce", "multiverse", "quick"])
def test_two_commands_that_write_exclude_each_other(call, folders, command):
    with lock(folders / "lock", "cdfsg something"):
        status, out, err = call(command)
    assert status == 1 and out == "" and err.startswith("cdfsg: cdfsg something (process ")
    assert f"cdfsg {command} would write the same files; wait until it is done" in err


def test_the_quick_run_leaves_its_records_and_its_notebook_beside_the_papers(call, folders, executed):
    status, out, err = call("quick", "--jobs", "1")
    target = folders / "quick" / "40_gcca.ipynb"
    parameters = {"dataset": "digits", "merit": "identity", "profile": "quick"}
    assert status == 0 and executed == [("40_gcca", parameters, target)] and str(target.parent) in out
    assert BEFOREHAND.match(err)
    assert (folders / "quick" / "records" / "digits-identity.csv").exists() and not (folders / "records").exists()


def test_reproduce_runs_judges_and_executes_the_notebooks_on_the_records(call, folders, executed, searched):
    status, out, err = call("reproduce", "--jobs", "1")
    assert status == 0 and executed[0] == ("00_start", None, None)
    # The notebooks with parameters are executed for every experiment that has records.
    parameters, folder = {"dataset": "digits", "merit": "identity"}, cli.notebooks.INSTANCES
    assert executed[1:] == [("40_gcca", parameters, folder / "40_gcca-digits-identity.ipynb")]
    assert (folders / "records" / "verdicts.csv").exists()
    assert "Table 4: 48 independent numbers" in out and "Done in" in out
    assert "40_gcca-digits-identity.ipynb" in err


def test_tables_without_data_are_left_out_in_a_line_and_with_none_left_it_is_an_error(call, folders, monkeypatch):
    mediamills = {table: experiments.EXPERIMENTS[table] for table in ("ta:pcctimemd", "ta:fvalmd")}
    monkeypatch.setattr(cli, "EXPERIMENTS", mediamills | {SMALL.table: SMALL})
    monkeypatch.setattr(cli, "views_of", load)  # the other keeps what it has loaded before
    monkeypatch.setattr(cli.multiverse, "tour", mock.Mock())
    monkeypatch.setattr(mediamill, "SOURCES", ())
    monkeypatch.setenv("CDFSG_DATA_DIR", str(folders / "raw"))
    for command in ("run", "multiverse"):
        status, _, err = call(command, "--jobs", "1")
        (line,) = [line for line in err.splitlines() if "Table 3" in line]
        assert status == 0 and "Table 3 and Table 6 cannot be run without the data set mediamill; " in line
        assert "stay as they are. Place " in line and "set CDFSG_MEDIAMILL to a folder" in line
    assert {path.name.partition("-")[0] for path in (folders / "records").glob("*-*.csv")} == {"digits"}
    assert cli.multiverse.tour.call_args.args[0] == [SMALL]
    status, out, err = call("run", "--only", "dataset=mediamill")
    assert status == 1 and not out
    assert "\ncdfsg: could not get mediamill.npy. Tried:\nPlace the file by hand" in err


def test_the_data_command_names_each_data_set(call, monkeypatch):
    monkeypatch.setattr(cli, "DATASETS", {"digits": None, "synthetic": None})
    status, out, _ = call("data")
    assert status == 0 and "Views('digits', 1797 x 64" in out and "Views('synthetic', 4000 x 22" in out
    assert f"scikit-learn's bundled digits (sklearn.datasets), {digits.CHECKSUM}\n" in out


def test_the_data_command_goes_on_after_a_data_set_that_cannot_be_had(call, monkeypatch, tmp_path):
    monkeypatch.setattr(cli, "DATASETS", {"mediamill": None, "digits": None})
    monkeypatch.setattr(cli, "views_of", load)
    monkeypatch.setattr(mediamill, "SOURCES", ())
    monkeypatch.setenv("CDFSG_DATA_DIR", str(tmp_path))
    status, out, err = call("data")
    assert status == 1 and out.startswith("Views('digits', 1797 x 64")
    assert "could not get mediamill.npy" in err and "Place the file by hand" in err.splitlines()[-1]


LOST = "cdfsg: a process was lost, or had too little memory: {}; the same command goes on from here, with --jobs 1"


@pytest.mark.parametrize(
    "error, status, words",
    [
        (KeyboardInterrupt(), 130, "cdfsg: stopped; the same command goes on from here"),
        (MemoryError("Unable to allocate 9 GiB"), 1, LOST.format("Unable to allocate 9 GiB")),
        (BrokenProcessPool("A worker was lost.\nMore"), 1, LOST.format("A worker was lost.")),
    ],
)
def test_an_interruption_is_told_in_one_line_with_how_to_go_on(call, monkeypatch, error, status, words):
    monkeypatch.setattr(cli, "run_experiment", mock.Mock(side_effect=error))
    found, _, err = call("run", "--jobs", "1")
    assert found == status and err.splitlines()[-1].startswith(words)


def test_folders_that_the_environment_names_are_the_same_for_notebooks_elsewhere(call, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    names = ("CDFSG_DATA_DIR", "CDFSG_CACHE_DIR", "CDFSG_NMNIST_DIR", "CDFSG_MEDIAMILL")
    for name in names:
        monkeypatch.setenv(name, "near")
    call("status")
    assert {os.environ[name] for name in names} == {str(tmp_path / "near")}


def test_a_command_starts_without_what_only_notebooks_and_the_report_need():
    code = "import sys, cdfsg.__main__; print(*{'nbformat', 'papermill', 'sphinx', 'jsonschema'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not done.stdout.split()
