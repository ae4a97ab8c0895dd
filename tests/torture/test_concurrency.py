"""Two commands at once: one works, the other is told by whom; downloads do not disturb each other."""

import os
import subprocess

import pytest

from cdfsg.files import ROOT
from tests.torture.crashing import command, environment
from tests.torture.test_crash import LINUX, contents, differences

pytestmark = LINUX


def told(*arguments):
    done = subprocess.run(
        [*command(), *map(str, arguments)], cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return dict(line.split(maxsplit=1) for line in done.stdout.splitlines()), done.stdout


@pytest.mark.case("concurrency: two commands at once in a checkout")
@pytest.mark.parametrize("second", ["quick", pytest.param("verdict", marks=pytest.mark.torture)])
def test_a_second_command_is_refused_with_the_name_of_the_first_whose_records_are_whole(tmp_path, second):
    lines, _ = told("race", tmp_path, second)
    status, first = lines["meanwhile"].split()
    log = (tmp_path / "1.log").read_text()
    assert status == "1" and lines["first"] == "0"
    assert f"cdfsg: cdfsg quick (process {first} on " in log and f"and cdfsg {second} would write" in log
    assert lines["again"] == "0"
    assert not differences(contents(tmp_path / "0"), contents(tmp_path / "1"))


@pytest.mark.case("kills: downloads at once, one killed")
def test_downloads_of_one_file_at_once_all_succeed_and_remove_what_a_killed_one_left(tmp_path, tally):
    _, text = told("downloads", tmp_path, 4)
    assert text.startswith("left 1\n")
    for line in text.splitlines()[1:]:
        tally.count(line == "status 0")
    assert os.listdir(tmp_path) == ["x"] and tally.tried == 4
