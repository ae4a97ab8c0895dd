import os
import subprocess
import sys

import pytest

from cdfsg import lock as module
from cdfsg.files import ROOT
from cdfsg.lock import Busy, lock

HOLD = """
import sys
from pathlib import Path
from cdfsg.lock import lock
with lock(Path(sys.argv[1]), "cdfsg run"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "cache" / "lock")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert process.stdout.readline() == b"held\n"
    yield process
    process.kill()
    process.communicate()


def test_a_second_command_is_told_which_process_is_at_work_and_a_killed_one_holds_nothing(tmp_path, holder):
    words = rf"^cdfsg run \(process {holder.pid} on .*, since .*\) is at work .* cdfsg verdict would "
    with pytest.raises(Busy, match=words), lock(tmp_path / "cache" / "lock", "cdfsg verdict"):
        pytest.fail("two at once")
    holder.kill()
    holder.wait()
    with lock(tmp_path / "cache" / "lock", "cdfsg verdict"):
        pass


def test_a_command_that_ends_or_fails_lets_the_next_one_in(tmp_path):
    with pytest.raises(ValueError), lock(tmp_path / "lock", "first"):
        raise ValueError
    with lock(tmp_path / "lock", "second"):
        assert (tmp_path / "lock").read_text().startswith("second (process ")


def test_where_there_are_no_locks_this_is_said_and_the_command_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(module, "try_lock", lambda handle: None)
    with lock(tmp_path / "lock", "cdfsg run"):
        pass
    assert "cannot be locked on this file system" in capsys.readouterr().err
