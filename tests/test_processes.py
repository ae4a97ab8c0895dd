import os
import signal
import subprocess
import sys
import time

import pytest

from cdfsg import processes
from cdfsg.files import ROOT

pytestmark = pytest.mark.skipif(os.name == "nt", reason="sends a signal to a group of processes")


def test_results_come_in_the_order_of_the_tasks_or_as_they_are_finished_and_ctrl_c_works_afterwards():
    tasks, before = [(number,) for number in range(7)], signal.getsignal(signal.SIGINT)
    for jobs in (1, 2):
        assert list(processes.each(abs, tasks, jobs, ordered=True)) == list(range(7))
        assert sorted(processes.each(abs, tasks, jobs)) == list(range(7))
        assert signal.getsignal(signal.SIGINT) is before
    assert list(processes.each(abs, [], 2)) == []


def group(leader):
    """Processes of a group that are no zombies."""
    done = subprocess.run(["ps", "-o", "pid=,stat=", "-g", str(leader)], capture_output=True, text=True)
    return [line for line in done.stdout.splitlines() if "Z" not in line]


@pytest.mark.parametrize("after", ["jobs to run", "jobs to run+", "[ "])
def test_ctrl_c_ends_a_command_and_its_workers_with_one_line_and_the_status_of_an_interruption(tmp_path, after):
    line, late, _ = after.partition("+")
    process = subprocess.Popen(
        [sys.executable, "-m", "cdfsg", "quick", "--jobs", "2"], cwd=ROOT, start_new_session=True, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={**os.environ, "CDFSG_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    said = []
    while not said or line not in said[-1]:
        said.append(process.stdout.readline())
        assert said[-1], said
    time.sleep(0.4 * bool(late))  # the workers are starting at first, and at work later
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does, to the workers too
    rest, _ = process.communicate(timeout=60)
    told = [text for text in rest.splitlines() if not text.startswith("[")]  # without jobs that were done meanwhile
    assert told == ["cdfsg: stopped; the same command goes on from here"] and process.returncode == 130
    end = time.monotonic() + 20
    while group(process.pid) and time.monotonic() < end:
        time.sleep(0.1)
    assert not group(process.pid)
