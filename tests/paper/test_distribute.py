import json
import operator
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from distributed import Client

from cdfsg import __main__ as cli
from cdfsg.files import ROOT
from cdfsg.paper import compute, records, run
from cdfsg.paper.compute import key_of
from cdfsg.paper.experiments import Job
from cdfsg.paper.run import run_jobs
from tests.paper.fakes import assert_same

JOB = Job("synthetic", "identity", 100, 2, "CDFSG", "reported", "grid", ((1, 1), (1, 2)), ((0.5, 0.02), (0.25, 0.01)))
JOBS = [replace(JOB, seeds=((order, 1), (order, 2))) for order in range(1, 31)]


@pytest.fixture(autouse=True)
def no_test_hangs():
    def late(*_):
        raise TimeoutError("still waiting after five minutes")

    plain = signal.signal(signal.SIGALRM, late)
    signal.alarm(300)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, plain)


def start_scheduler(folder):
    """A Dask scheduler in a process of its own, and its address."""
    process = dask(folder, "scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", "scheduler.json")
    return process, when(lambda: json.loads((folder / "scheduler.json").read_text())["address"])


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory):
    """Address of a scheduler."""
    process, address = start_scheduler(tmp_path_factory.mktemp("scheduler"))
    yield address
    end(process)


@pytest.fixture
def workers(scheduler, tmp_path):
    """Return a function that adds a worker process without a nanny and gives it."""
    started = []

    def add(*options, package=ROOT):
        folder = tmp_path / f"worker{len(started)}"
        folder.mkdir()
        options = options or ("--nthreads", "1")
        started.append(dask(folder, "worker", scheduler, "--no-nanny", *options, package=package))
        with Client(scheduler, set_as_default=False) as client:
            client.wait_for_workers(len(started), timeout=60)
        return started[-1]

    yield add
    for process in started:
        end(process)
    with Client(scheduler, set_as_default=False) as client:
        when(lambda: not client.nthreads() or 1 / 0)


def dask(folder, *arguments, package=ROOT):
    with open(folder / "log", "wb") as log:
        environment = os.environ | {"PYTHONPATH": str(package), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "dask", *arguments, "--no-dashboard"]
        return subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)


def end(process):
    process.kill()
    process.wait()


def when(look):
    """What `look` gives as soon as it gives something."""
    while True:
        try:
            return look()
        except (OSError, ValueError, ArithmeticError):
            time.sleep(0.05)


def test_a_worker_that_is_killed_loses_nothing(scheduler, workers, tmp_path, monkeypatch):
    processes = {process.pid: process for process in (workers(), workers())}
    lost = []

    def kill(frame, path):
        plain(frame, path)
        if not lost:
            with Client(scheduler, set_as_default=False) as client:
                under_way = client.processing()
                victim = max(under_way, key=lambda worker: len(under_way[worker]))
                lost.extend(under_way[victim])
                end(processes[client.run(os.getpid)[victim]])

    plain = records.write
    monkeypatch.setattr(records, "write", kill)
    with run.cluster(scheduler, 1) as client:
        found = run_jobs(JOBS, tmp_path / "cluster", client)
    assert lost and sum(process.poll() is None for process in processes.values()) == 1
    assert_same(found, run_jobs(JOBS, tmp_path / "here", 1))
    names = sorted(f"{key_of(job)}.csv" for job in JOBS)
    assert sorted(os.listdir(tmp_path / "cluster")) == names


def test_blocks_are_computed_by_the_only_worker_and_written_here(scheduler, workers, tmp_path, monkeypatch):
    def not_here(job):
        raise ValueError("computed by the process that asked")

    workers()
    monkeypatch.setattr(run, "compute", not_here)
    with run.cluster(scheduler, 1) as client:
        assert len(run_jobs(JOBS[:2], tmp_path / "runs", client)) == 2 * JOB.lanes
    assert len(os.listdir(tmp_path / "runs")) == 2


def test_a_block_that_fails_on_a_worker_is_named(scheduler, workers, tmp_path):
    workers()
    bad = replace(JOB, solver="Landing", settings=((-1.0, 1.0),))
    words = "p=2 Landing reported/grid.*positive values"
    with run.cluster(scheduler, 1) as client, pytest.raises(ValueError, match=words):
        run_jobs([bad], tmp_path, client)


def test_a_worker_with_other_numerics_is_refused_and_leaves_no_record(scheduler, workers, tmp_path):
    shutil.copytree(ROOT / "cdfsg", tmp_path / "other" / "cdfsg", ignore=shutil.ignore_patterns("__pycache__"))
    with open(tmp_path / "other" / "cdfsg" / "paper" / "compute.py", "a") as file:
        file.write("NUMERICS += 1\n")
    workers(package=tmp_path / "other")
    words = r"^synthetic .*CDFSG reported.* has numerics \d+, .*the process that asked has numerics \d+, .*same version"
    with run.cluster(scheduler, 1) as client, pytest.raises(ValueError, match=words):
        run_jobs([JOB], tmp_path / "runs", client)
    assert not (tmp_path / "runs").exists()


def test_a_job_on_other_data_than_those_of_the_process_that_asked_is_refused(monkeypatch):
    views = compute.views_of("synthetic")
    here = (*compute.origin(JOB), key_of(JOB))
    other = replace(views, provenance=replace(views.provenance, checksum="sha256:0"))
    monkeypatch.setattr(compute, "views_of", lambda *_: other)
    words = r"has numerics .*'sha256:0'.*the process that asked has numerics .*same data files"
    with pytest.raises(ValueError, match=words):
        run.compute_alone(JOB, here)


class Foreign:
    """What only this process can read, as a function that the cluster's version of the package has not got."""

    def __reduce__(self):
        return operator.truediv, (1, 0)


def test_a_block_that_dask_gives_up_ends_the_run_with_its_name(scheduler, workers):
    workers()
    words = "CDFSG reported.*: given up by Dask"
    with run.cluster(scheduler, 1) as client, pytest.raises(ValueError, match=words):
        list(run.on_cluster([(JOB, Foreign())], client))


def test_a_scheduler_that_is_lost_ends_the_run_and_keeps_what_was_finished(tmp_path, monkeypatch):
    (tmp_path / "worker").mkdir()
    process, address = start_scheduler(tmp_path)
    worker = dask(tmp_path / "worker", "worker", address, "--no-nanny", "--nthreads", "1")
    plain = records.write
    monkeypatch.setattr(records, "write", lambda *record: (plain(*record), end(process)))
    words = "connection to the Dask scheduler was lost; start it again, and the same command goes on"
    try:
        with pytest.raises(ValueError, match=words), run.cluster(address, 1) as client:
            run_jobs(JOBS, tmp_path / "runs", client)
    finally:
        end(process)
        end(worker)
    assert len(records.read((tmp_path / "runs").iterdir())) >= JOB.lanes


def test_a_cluster_of_no_worker_or_of_several_threads_in_one_is_refused(scheduler, workers, monkeypatch):
    monkeypatch.setattr(run, "_PATIENCE", 1)
    with pytest.raises(ValueError, match=f"no worker; .*dask worker {scheduler}"), run.cluster(scheduler, 1):
        pass
    workers("--nthreads", "2")
    words = "several threads: .*: 2}.* --nthreads 1 --nworkers"
    with pytest.raises(ValueError, match=words), run.cluster(scheduler, 1):
        pass


@pytest.mark.parametrize("address", ["127.0.0.1:9", "nowhere", "http://127.0.0.1:8787/status"])
def test_an_address_where_no_scheduler_answers_is_told_in_seconds(capsys, monkeypatch, address):
    monkeypatch.setattr(run, "_PATIENCE", 0.3)
    assert cli.main(["run", "--dask", address]) == 1
    assert f"cdfsg: no Dask scheduler at '{address}' (" in capsys.readouterr().err


def test_the_address_of_something_else_than_a_scheduler_is_told_as_such(scheduler, workers, monkeypatch):
    workers()
    with Client(scheduler, set_as_default=False) as client:
        (worker,) = client.nthreads()
    with pytest.raises(ValueError, match=rf"no Dask scheduler at '{worker}' \(Worker\)"), run.cluster(worker, 1):
        pass
    monkeypatch.setattr(run, "_PATIENCE", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(ValueError, match="no answer in 0.3 seconds"), run.cluster(address, 1):
            pass


def test_without_dask_the_option_says_what_to_install(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert cli.main(["quick", "--dask", "127.0.0.1:8786"]) == 1
    line = capsys.readouterr().err.splitlines()[-1]
    assert line == "cdfsg: --dask needs Dask, which is not installed; run pip install 'cdfsg[dask]'"
