import errno
import os
import subprocess
import sys

import numpy as np
import pytest

from cdfsg import files
from cdfsg.files import write_atomically


def test_folders_lie_in_the_repository_and_caches_where_the_environment_says(tmp_path):
    assert (files.ROOT / "cdfsg" / "files.py").samefile(files.__file__)
    code = "from cdfsg import files; print(files.RUNS, files.KEPT, files.QUICK, files.RECORDS, sep='\\n')"
    for name, cache in (("", files.ROOT / "data" / "cache"), (str(tmp_path), tmp_path)):
        environment = {**os.environ, "CDFSG_CACHE_DIR": name, "PYTHONPATH": str(files.ROOT)}
        done = subprocess.run([sys.executable, "-c", code], env=environment, cwd="/", capture_output=True, text=True)
        expected = [*(str(cache / name) for name in ("runs", "kept", "quick")), str(files.ROOT / "data" / "records")]
        assert done.stdout.splitlines() == expected, done.stderr


@pytest.mark.parametrize("content", ["PCC⋆\n", "PCC⋆\n".encode(), ""])
def test_text_is_written_as_utf_8_and_bytes_as_they_are_into_new_folders(tmp_path, content):
    path = tmp_path / "new" / "folder" / "x.csv"
    write_atomically(path, content)
    assert path.read_bytes() == (content if isinstance(content, bytes) else content.encode("utf-8"))
    assert os.listdir(path.parent) == ["x.csv"] and path.stat().st_mode & 0o777 == 0o644


def test_equal_content_is_left_alone_and_a_reader_does_not_see_a_file_change(tmp_path):
    path = tmp_path / "x"
    write_atomically(path, "same")
    os.utime(path, (1, 1))
    before = path.stat()
    write_atomically(path, b"same")
    assert (path.stat().st_mtime, path.stat().st_ino) == (1, before.st_ino)
    with open(path) as reader:
        write_atomically(path, "other")
        assert reader.read() == "same"
    assert path.read_text() == "other" and path.stat().st_mtime > 1


@pytest.mark.parametrize("step", ["fdopen", "chmod", "replace"])
@pytest.mark.parametrize("old", ["old", None])
@pytest.mark.parametrize(
    "error",
    [OSError(errno.ENOSPC, "No space left on device"), OSError(errno.EFBIG, "File too large"), KeyboardInterrupt()],
)
def test_a_write_that_fails_keeps_the_old_content_and_says_what_to_do(tmp_path, monkeypatch, step, old, error):
    def fail(*_):
        raise error

    path = tmp_path / "file.csv"
    if old:
        write_atomically(path, old)
    monkeypatch.setattr(files.os, step, fail)
    words = r"(No space left on device|File too large): '.*file\.csv'; make room.*; then the same command|^$"
    with pytest.raises(type(error), match=words):
        write_atomically(path, "new")
    assert [(found.name, found.read_text()) for found in tmp_path.iterdir()] == ([("file.csv", old)] if old else [])


@pytest.mark.parametrize("step", ["mkdir", "mkstemp"])
@pytest.mark.parametrize("inside", [True, False])
def test_a_folder_that_takes_no_files_is_reported_with_the_way_out(tmp_path, monkeypatch, step, inside):
    def read_only(*_, **__):
        raise OSError(errno.EROFS, "Read-only file system", "a temporary name")

    monkeypatch.setattr(files, "CACHE", tmp_path if inside else tmp_path / "elsewhere")
    monkeypatch.setattr(*((os, "mkdir") if step == "mkdir" else (files.tempfile, "mkstemp")), read_only)
    with pytest.raises(OSError) as caught:
        write_atomically(tmp_path / "new" / "file.csv" if step == "mkdir" else tmp_path / "file.csv", "content")
    assert caught.value.errno == errno.EROFS and "file.csv'; make room, make its folder writable" in str(caught.value)
    assert ("or set CDFSG_CACHE_DIR" in str(caught.value)) == inside and "temporary name" not in str(caught.value)


def test_what_a_killed_writer_left_is_swept_away_if_it_is_old_enough_and_nothing_else(tmp_path):
    for name in ("new.cdfsg.tmp", "old.cdfsg.tmp", "mine.tmp", "x.csv"):
        (tmp_path / name).touch()
    os.utime(tmp_path / "old.cdfsg.tmp", (0, 0))
    files.sweep(tmp_path, age=3600)
    assert sorted(os.listdir(tmp_path)) == ["mine.tmp", "new.cdfsg.tmp", "x.csv"]
    files.sweep(tmp_path, tmp_path / "missing")
    assert sorted(os.listdir(tmp_path)) == ["mine.tmp", "x.csv"]


def test_a_file_that_is_swept_away_before_it_is_renamed_is_written_again(tmp_path, monkeypatch):
    plain, swept = os.replace, []

    def late(temporary, target):
        if not swept:
            files.sweep(tmp_path)
            swept.append(temporary)
        plain(temporary, target)

    monkeypatch.setattr(os, "replace", late)
    write_atomically(tmp_path / "x", "new")
    assert (tmp_path / "x").read_text() == "new" and os.listdir(tmp_path) == ["x"] and swept


@pytest.mark.parametrize("content", [b"", b"1,2\n", "PCC⋆\n", b"\x93NUMPY\x00# sha256:"])
def test_sealed_content_comes_back_and_every_flipped_or_missing_byte_is_noticed(tmp_path, content):
    path = tmp_path / "x"
    files.write_sealed(path, content)
    assert files.read_if_intact(path) is not None
    assert files.read_sealed(path) == (content if isinstance(content, bytes) else content.encode("utf-8"))
    data = path.read_bytes()
    for place in range(len(data)):
        for hurt in (data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :], data[:place]):
            path.write_bytes(hurt)
            assert files.read_if_intact(path) is None
            with pytest.raises(files.Damaged, match="x is not what the checksum in its last line says; delete it$"):
                files.read_sealed(path)
    path.unlink()
    assert files.read_if_intact(path) is None
    path.mkdir()
    with pytest.raises(files.Damaged, match="cannot be read"):
        files.read_sealed(path)


def test_a_kept_array_is_made_once_and_again_when_it_is_damaged(tmp_path, capsys):
    path, made, array = tmp_path / "x.npy", [], np.arange(5.0) / 3
    for _ in range(2):
        np.testing.assert_array_equal(files.kept_array(path, lambda: made.append(1) or array), array)
        assert len(made) == 1 and capsys.readouterr().err == ""
    np.testing.assert_array_equal(np.load(path), array)
    path.write_bytes(path.read_bytes()[:-3])
    np.testing.assert_array_equal(files.kept_array(path, lambda: made.append(1) or array), array)
    assert len(made) == 2 and "it is made anew" in capsys.readouterr().err and files.read_if_intact(path)
