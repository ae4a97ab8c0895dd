"""Commands that are killed by SIGKILL and given again, or given twice at once, end with the records of one alone."""

import io
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cdfsg import checksums
from cdfsg.files import ROOT, read_sealed
from tests.project import ONE_THREAD
from tests.torture.crashing import do

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="needs Linux: /proc, and a process that may fork after it has computed"
)

WALL_TIMES = ["seconds", "seconds_covariance", "seconds_eigen"]


def crash(folder, tally, *arguments):
    """Do it and count: a kill went well if the run that it belongs to ended like the undisturbed one."""
    numbers = [line.split()[1] for line in do(*arguments).splitlines()]
    whole = contents(folder / "0")
    same = {number: differences(whole, contents(folder / number)) for number in set(numbers)}
    for number in numbers:
        tally(not same[number])
    assert not any(same.values()), same
    return len(numbers)


def contents(folder):
    """Every file by its name: tables without what differs between two runs, the others as they are."""
    found = {}
    for path in filter(lambda path: path.is_file() and path.name not in ("lock", checksums.LIST), folder.rglob("*")):
        read = {"runs": read_sealed, "records": checksums.read}.get(path.parent.name, Path.read_bytes)
        content = read(path)
        if path.suffix == ".csv":
            content = pd.read_csv(io.BytesIO(content)).drop(columns=WALL_TIMES, errors="ignore").to_csv()
        found[str(path.relative_to(folder))] = content
    return found


def differences(expected, found):
    """Names of files that one side lacks or that differ, temporary ones included."""
    return sorted(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))


LONG = pytest.mark.torture
TINY, DIGITS, ALONE = (
    pytest.mark.case(f"kills: at random moments, {words}") for words in ("tiny", "digits", "the workers go on")
)


@pytest.mark.parametrize(
    "experiment, kills, jobs, workers_too, seed",
    [
        pytest.param("tiny", 5, 1, True, 1, marks=TINY),
        pytest.param("tiny", 5, 2, True, 1, marks=TINY),
        pytest.param("tiny", 5, 2, False, 3, marks=[ALONE, LONG]),
        pytest.param("digits", 30, 1, True, 1, marks=[DIGITS, LONG]),
        pytest.param("digits", 20, 2, True, 2, marks=[DIGITS, LONG]),
    ],
)
def test_a_storm_of_kills_changes_no_record(tmp_path, tally, experiment, kills, jobs, workers_too, seed):
    assert crash(tmp_path, tally, "storm", tmp_path, experiment, kills, jobs, workers_too, seed) == kills


@pytest.mark.case("kills: before and after every write")
def test_a_kill_before_or_after_any_write_changes_no_record(tmp_path, tally):
    # Each run writes two cached arrays, its blocks, and three files of records with their list.
    assert crash(tmp_path, tally, "writes", tmp_path, "tiny") >= 30


@pytest.mark.case("concurrency: two commands at once in a checkout")
@pytest.mark.parametrize("second", ["quick", pytest.param("verdict", marks=pytest.mark.torture)])
def test_a_second_command_is_refused_with_the_name_of_the_first(tmp_path, second):
    do("race", tmp_path, second)
    assert not differences(contents(tmp_path / "0"), contents(tmp_path / "1"))


@pytest.mark.case("kills: downloads at once, one killed")
def test_downloads_at_once_all_succeed_and_remove_what_a_killed_one_left(tmp_path, tally):
    for status in do("downloads", tmp_path, 4).split():
        tally(status == "0")
    assert os.listdir(tmp_path) == ["x"]


SHOW_TIMES = {"quick/40_gcca.ipynb", *(f"quick/digits-identity-times.{kind}" for kind in ("csv", "svg", "png"))}
"""What `quick` writes that differs between two undisturbed runs."""


def quick(cache, seconds=None):
    """`quick` with its notebooks; killed with all of its group after some seconds, if these are given."""
    running = subprocess.Popen(
        [sys.executable, "-m", "cdfsg", "quick", "--jobs", "2"], cwd=ROOT, start_new_session=True,
        env={**os.environ, **ONE_THREAD, "PYTHONPATH": str(ROOT), "CDFSG_CACHE_DIR": str(cache)},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        return running.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(running.pid, signal.SIGKILL)
        return running.wait()


def processes_on(cache):
    """Whether there still is a process that was started with this cache, as a notebook's kernel."""
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if str(cache).encode() in path.read_bytes():
                return True
    return False


def gone_soon(cache, seconds=20):
    """Kernels look once a second whether the process that started them is there."""
    until = time.monotonic() + seconds
    while processes_on(cache) and time.monotonic() < until:
        time.sleep(0.2)
    return not processes_on(cache)


@pytest.mark.torture
@pytest.mark.case("kills: at random moments, notebooks included")
def test_a_kill_while_notebooks_run_leaves_them_whole_and_no_kernel_behind(tmp_path, tally):
    whole, killed = tmp_path / "0", tmp_path / "1"
    began = time.monotonic()
    assert quick(whole) == 0
    usual = time.monotonic() - began
    for moment in np.random.default_rng(0).uniform(0.3, 1.0, size=4) * usual:
        status = quick(killed, moment)
        cut = [path for path in killed.rglob("*.ipynb") if not path.read_text().endswith("}\n")]
        tally(status in (0, -signal.SIGKILL) and not cut and gone_soon(killed))
    assert quick(killed) == 0
    assert set(differences(contents(whole), contents(killed))) <= SHOW_TIMES
