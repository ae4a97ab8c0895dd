import errno
import os

import pytest

from cdfsg import files
from cdfsg.files import write_atomically


def fail(*_):
    raise OSError(28, "No space left on device")


def test_every_folder_of_the_project_lies_in_the_repository_whatever_the_working_directory():
    assert (files.ROOT / "cdfsg" / "files.py").samefile(files.__file__)
    folders = (files.PAPER, files.RECORDS, files.RUNS, files.QUICK, files.FIGURES, files.NOTEBOOKS)
    assert all(folder.is_absolute() and folder.is_relative_to(files.ROOT) for folder in folders)


@pytest.mark.parametrize("content", ["PCC⋆\n", "PCC⋆\n".encode(), ""])
def test_text_is_written_as_utf_8_and_bytes_as_they_are_into_folders_that_are_made(tmp_path, content):
    path = tmp_path / "new" / "folder" / "x.csv"
    write_atomically(path, content)
    assert path.read_bytes() == (content if isinstance(content, bytes) else content.encode("utf-8"))
    assert os.listdir(path.parent) == ["x.csv"]


def test_everyone_may_read_a_file_that_was_written(tmp_path):
    write_atomically(tmp_path / "x", "new")
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o644


def test_a_file_with_equal_content_is_left_alone(tmp_path):
    path = tmp_path / "x"
    write_atomically(path, "same")
    os.utime(path, (1, 1))
    before = path.stat()
    write_atomically(path, b"same")
    assert (path.stat().st_mtime, path.stat().st_ino) == (1, before.st_ino)
    write_atomically(path, "other")
    assert path.read_text() == "other" and path.stat().st_mtime > 1


def test_whoever_reads_a_file_while_it_is_replaced_does_not_see_it_change(tmp_path):
    path = tmp_path / "x"
    write_atomically(path, "old")
    with open(path) as reader:
        write_atomically(path, "new")
        assert reader.read() == "old"
    assert path.read_text() == "new"


@pytest.mark.parametrize("step", ["fdopen", "chmod", "replace"])
def test_a_write_that_fails_keeps_the_old_content_and_leaves_nothing_else(tmp_path, monkeypatch, step):
    path = tmp_path / "x"
    write_atomically(path, "old")
    monkeypatch.setattr(files.os, step, fail)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, "new")
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["x"]


def test_a_write_that_the_user_interrupts_leaves_no_file_at_all(tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(files.os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "x", "new")
    assert os.listdir(tmp_path) == []


def test_a_full_disk_is_reported_with_the_file_that_could_not_be_written(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match=r"No space left on device: '.*file\.csv'"):
        write_atomically(tmp_path / "file.csv", "content")
    assert not list(tmp_path.iterdir())
