import os
import re
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_limits

from cdfsg.files import ROOT
from cdfsg.paper import records, run
from cdfsg.paper.compute import compute, key_of, origin
from cdfsg.paper.experiments import Job
from cdfsg.paper.run import run_experiment, run_jobs
from cdfsg.paper.select import plan
from tests.paper.fakes import TINY, assert_same

JOB = Job("digits", "identity", 100, 2, "CDFSG", "reported", "grid", ((1, 1), (3, 2)), ((0.5, 0.02), (0.25, 0.01)))
JOBS = [replace(JOB, seeds=((order, 1), (order, 2))) for order in range(1, 21)]


@pytest.fixture(autouse=True)
def one_thread():
    with threadpool_limits(1):  # as every worker process has
        yield


@pytest.fixture
def computed(monkeypatch):
    """Blocks that were computed, in order."""
    seen = []
    plain = run.compute
    monkeypatch.setattr(run, "compute", lambda job: seen.append(job) or plain(job))
    return seen


def test_a_job_gives_one_row_per_run_and_setting_with_what_identifies_it():
    frame = compute(JOB)
    assert tuple(frame.columns) == records.COLUMNS
    rows = list(frame[["order", "start", "s1", "s2"]].itertuples(index=False, name=None))
    assert rows == [(1, 1, 0.5, 0.02), (1, 1, 0.25, 0.01), (3, 2, 0.5, 0.02), (3, 2, 0.25, 0.01)]
    for name in ("dataset", "merit", "batch_size", "p", "solver", "role", "variant", "lanes"):
        assert set(frame[name]) == {getattr(JOB, name)}
    assert set(frame["key"]) == {key_of(JOB)} and set(frame["provenance"]) == {"original"}
    assert set(frame["samples"]) == {1700} and set(frame["status"]) == {"done"}
    assert frame[["eta", "omega"]].isna().all(axis=None) and frame["pcc"].is_unique
    alone = pd.concat([compute(replace(JOB, seeds=(seed,))) for seed in JOB.seeds], ignore_index=True)
    # Each run has its own order.
    np.testing.assert_allclose(frame[list(records.METRICS)], alone[list(records.METRICS)], rtol=1e-4, atol=1e-12)


@pytest.mark.parametrize("solver, setting", [("CDFSG", (0.5, 50.0)), ("Landing", (50.0, 2.0))])
def test_a_run_that_diverges_has_no_metrics_and_leaves_its_neighbours_alone(solver, setting, numpy_raises):
    good = {"CDFSG": (0.5, 0.02), "Landing": (0.05, 1.0)}[solver]
    frame = compute(replace(JOB, solver=solver, seeds=((1, 1),), settings=(setting, good)))
    assert list(frame["status"]) == ["diverged", "done"]
    assert frame["stopped_at"].iloc[0] > 0 and frame["stopped_at"].iloc[1] == -1
    metrics = frame.loc[:, "pcc":"fval_orth"]
    assert metrics.iloc[0].isna().all() and metrics.iloc[1].notna().all()


def test_a_run_that_overflows_in_its_last_step_has_diverged(numpy_raises):
    settings = ((1e38, 1e3), (0.05, 1.0))  # X becomes infinite in single precision
    frame = compute(replace(JOB, solver="Landing", batch_size=1797, seeds=((1, 1),), settings=settings))
    assert list(frame["status"]) == ["diverged", "done"] and set(frame["stopped_at"]) == {-1}
    assert frame.loc[0, "pcc":"fval_orth"].isna().all() and frame.loc[1, "pcc":"fval_orth"].notna().all()


def test_a_run_that_ends_too_far_from_the_constraint_has_diverged(monkeypatch):
    monkeypatch.setattr("cdfsg.paper.compute.DIVERGED_FEA", 0.0)
    frame = compute(JOB)
    assert set(frame["status"]) == {"diverged"} and set(frame["stopped_at"]) == {-1}
    assert frame.loc[:, "pcc":"fval_orth"].isna().all(axis=None)


def test_only_what_is_missing_is_computed_and_records_keep_the_order_asked_for(tmp_path, computed, capfd):
    first = run_jobs(JOBS[:2], tmp_path, 1)
    assert set(computed) == set(JOBS[:2])
    capfd.readouterr()
    every = run_jobs(JOBS[:3][::-1], tmp_path, 1)
    assert computed[2:] == [JOBS[2]] and capfd.readouterr().err.startswith("1 of 3 jobs to run, 2 kept\n")
    assert list(every["key"].unique()) == [key_of(job) for job in JOBS[:3][::-1]]
    again = run_jobs(JOBS[:2], tmp_path, 1)
    assert len(computed) == 3 and capfd.readouterr() == ("", "")
    pd.testing.assert_frame_equal(again, first, check_exact=True)


def test_a_block_that_fails_leaves_no_file_and_keeps_what_was_finished(tmp_path, monkeypatch):
    plain = run.compute

    def sometimes(job):
        if job == JOBS[2]:
            raise ValueError("the sky fell")
        return plain(job)

    monkeypatch.setattr(run, "compute", sometimes)
    with pytest.raises(ValueError, match="the sky fell"):
        run_jobs(JOBS[:3], tmp_path, 1)
    assert sorted(os.listdir(tmp_path)) == sorted(f"{key_of(job)}.csv" for job in JOBS[:2])


def test_a_block_that_needs_too_much_memory_is_named(monkeypatch):
    def starve(_):
        raise MemoryError("Unable to allocate 9 GiB")

    monkeypatch.setattr(run, "compute", starve)
    with pytest.raises(MemoryError, match=r"digits.*: Unable to allocate 9 GiB"):
        run.compute_alone(JOB, (*origin(JOB), key_of(JOB)))


def test_one_process_and_two_give_the_same_records(tmp_path):
    others = [("RSG+", (0.1, 0.01)), ("Landing", (0.05, 1.0)), ("CDFSG-Ada", (0.5, 0.01))]
    jobs = [JOB, *(replace(JOB, solver=solver, settings=(setting,)) for solver, setting in others)]
    assert_same(run_jobs(jobs, tmp_path / "two", 2), run_jobs(jobs, tmp_path / "one", 1))
    assert len(os.listdir(tmp_path / "two")) == 4


def test_an_experiment_runs_at_the_settings_that_its_tuning_runs_select(tmp_path):
    runs = run_experiment(TINY, tmp_path, 1)[""]
    keys = {key_of(job) for job in TINY.jobs(plan(TINY, runs))}
    assert set(runs["key"]) == keys == {path.stem for path in tmp_path.iterdir()}
    assert {"tuning", "reported", "trace"} == set(runs["role"])
    half = runs[runs["variant"] == "half"]  # of the 17 steps of a pass over the digits
    assert set(half["samples"]) == {800} and set(half["solver"]) == {"CDFSG"}


def test_progress_is_whole_lines_on_stderr_that_say_what_is_left(tmp_path, capfd, monkeypatch):
    clock = iter(range(0, 10**6, 3))  # each look at the clock is 3 s later
    monkeypatch.setattr(run.time, "monotonic", lambda: next(clock))
    run_jobs(JOBS[:3], tmp_path, 1)
    out, err = capfd.readouterr()
    assert out == "" and "\r" not in err and err.endswith("\n")
    head, *lines = err.splitlines()
    assert head == "3 of 3 jobs to run"
    assert [line[:8].strip() for line in lines] == ["[  1/3]", "[  2/3]", "[  3/3]"]
    for line in lines:
        assert re.fullmatch(r"\[ *\d/3\] +\d+ s, about +\d+ s left: (.*), \d+\.\d s", line)[1] == JOB.describe()
    left = [int(re.search(r"about +(\d+) s left", line)[1]) for line in lines]
    assert left[0] > left[-1] == 0


def test_a_curve_whose_lanes_all_diverge_keeps_its_later_points():
    frame = compute(replace(JOB, role="trace", trace_points=4, settings=((0.5, 50.0),)))
    assert sorted(set(frame["samples"])) == [0, 400, 800, 1300, 1700]
    assert set(frame[frame["samples"] == 1700]["status"]) == {"diverged"}


MATHEMATICS = ("linalg.py", "metrics.py", "penalty.py", "problems.py", "checks.py", "merits/")


def test_a_job_passes_at_most_49_functions_of_ours_besides_the_mathematics(tmp_path):
    compute(JOB)  # the data are loaded once for all jobs
    passed = set()

    def note(frame, event, _):
        file, name = frame.f_code.co_filename, frame.f_code.co_qualname
        place = file.partition(f"{ROOT}/cdfsg/")[2]
        if event == "call" and place and "<" not in name and not place.startswith(MATHEMATICS):
            passed.add((place, name))

    sys.setprofile(note)
    try:
        run_jobs([JOB], tmp_path, 1)
    finally:
        sys.setprofile(None)
    assert len(passed) <= 49, sorted(passed)
