from unittest import mock

import pytest

from cdfsg import lock as module
from cdfsg.lock import lock


def test_a_command_that_ends_or_fails_lets_the_next_one_in(tmp_path):
    with pytest.raises(ValueError), lock(tmp_path / "new" / "lock", "first"):
        raise ValueError
    with lock(tmp_path / "new" / "lock", "second"):
        assert (tmp_path / "new" / "lock").read_text().startswith("second (process ")
        with pytest.raises(BlockingIOError, match=r"^second \(process .* since .*\) is at work .* third would "):
            lock(tmp_path / "new" / "lock", "third").__enter__()


def test_where_there_are_no_locks_this_is_said_and_the_command_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(module, "acquire", mock.Mock(side_effect=OSError("no locks available")))
    with lock(tmp_path / "lock", "cdfsg run"):
        pass
    assert "cannot be locked on this file system" in capsys.readouterr().err
