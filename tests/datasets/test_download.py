import gzip
import hashlib
import os
import socket
import threading
import time
import tracemalloc
from pathlib import Path

import pytest

from cdfsg.datasets import download
from cdfsg.datasets.download import DownloadError, Source, data_dir, gunzip, http, obtain, verify

pytestmark = pytest.mark.case("world: mirrors that hang, drip, lie or are gone")

GOOD = b"the right bytes" * 1000
MD5 = "md5:" + hashlib.md5(GOOD).hexdigest()
SHA = "sha256:" + hashlib.sha256(GOOD).hexdigest()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("CDFSG_DATA_DIR", str(tmp_path / "new" / "raw"))
    return tmp_path / "new" / "raw"


def gives(data, describe="a mirror"):
    return Source(describe, lambda: data)


def never():
    raise AssertionError("this source was not to be asked")


NEVER = Source("never", never)


def failed(*args):
    with pytest.raises(DownloadError) as caught:
        obtain(*args)
    return str(caught.value)


def test_a_file_is_fetched_into_a_folder_that_is_made_and_nothing_else_is_left(serve, folder):
    path = obtain("x", MD5, [http(serve(GOOD))])
    assert path == folder / "x" and path.read_bytes() == GOOD
    assert os.listdir(folder) == ["x"]


def test_the_bytes_served_are_transformed_before_they_are_verified(serve, folder):
    assert obtain("x", SHA, [http(serve(gzip.compress(GOOD)), gzip.decompress)]).read_bytes() == GOOD


def test_a_file_of_this_machine_is_no_mirror(tmp_path, folder):
    (tmp_path / "x").write_bytes(GOOD)
    assert " protocol" in failed("x", MD5, [http((tmp_path / "x").as_uri())])


def test_a_file_in_place_is_used_without_asking_any_source(folder):
    obtain("x", MD5, [gives(GOOD)])
    assert obtain("x", MD5, [NEVER]) == folder / "x"


def test_a_placed_file_is_as_readable_as_the_umask_allows(folder):
    old = os.umask(0o022)
    try:
        assert obtain("x", MD5, [gives(GOOD)]).stat().st_mode & 0o777 == 0o644
    finally:
        os.umask(old)


def test_a_damaged_file_is_reported_and_fetched_anew(folder, capfd):
    folder.mkdir(parents=True)
    (folder / "x").write_bytes(GOOD[:-1])
    assert obtain("x", MD5, [gives(GOOD)]).read_bytes() == GOOD
    assert f"{folder / 'x'} is damaged and will be fetched anew" in capfd.readouterr().err


def test_whoever_reads_a_file_while_it_is_replaced_does_not_see_it_change(folder):
    folder.mkdir(parents=True)
    (folder / "x").write_bytes(b"old")
    with open(folder / "x", "rb") as reader:
        obtain("x", MD5, [gives(GOOD)])
        assert reader.read() == b"old"


def test_a_damaged_file_that_cannot_be_fetched_anew_is_not_used(folder):
    folder.mkdir(parents=True)
    (folder / "x").write_bytes(GOOD[:-1])
    assert "could not get x" in failed("x", MD5, [gives(b"also wrong")])


def test_wrong_bytes_are_never_placed_and_the_next_source_is_asked(serve, folder):
    seen = []

    def look():
        seen.extend(path.name for path in folder.glob("x*"))
        return GOOD

    assert obtain("x", MD5, [http(serve(b"wrong")), Source("next", look)]).read_bytes() == GOOD
    assert seen == []


@pytest.mark.parametrize("served", [GOOD[:500], b""])
def test_a_download_that_is_cut_off_is_refused_with_its_length(serve, folder, served):
    message = failed("x", MD5, [http(serve(served, length=len(GOOD)))])
    assert f"received {len(served)} bytes, expected {len(GOOD)}" in message
    assert os.listdir(folder) == []


def test_a_download_of_unstated_length_that_is_cut_off_is_refused_by_its_checksum(serve, folder):
    assert "500 bytes with md5" in failed("x", MD5, [http(serve(GOOD[:500], length=None))])


def test_a_cut_off_archive_falls_to_the_next_source(serve, folder):
    cut = http(serve(gzip.compress(os.urandom(9999))[:5000]), gzip.decompress)
    assert obtain("x", MD5, [cut, gives(GOOD)]).read_bytes() == GOOD


def test_a_mirror_out_of_reach_falls_to_the_next_and_says_so(serve, folder, capfd):
    missing = serve(GOOD) + "nowhere"
    dead = "http://127.0.0.1:1/x"  # nothing listens on port 1
    assert obtain("x", MD5, [http(dead), http(missing), gives(GOOD)]).read_bytes() == GOOD
    told = capfd.readouterr().err
    assert f"no success with {dead}: " in told and "404" in told


def test_a_mirror_that_is_silent_is_given_up_after_the_timeout(folder, monkeypatch):
    monkeypatch.setattr(download, "TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/x"
        start = time.monotonic()
        assert "timed out" in failed("x", MD5, [http(url)])
        assert time.monotonic() - start < 2


def test_when_all_fails_one_error_lists_each_reason_and_what_to_place_where(serve, folder):
    def broken():
        raise OSError("the cable is cut")

    message = failed("x", MD5, [Source("mirror A", broken), gives(b"wrong", "mirror B")])
    assert "mirror A: the cable is cut" in message
    assert f"mirror B: 5 bytes with md5 {hashlib.md5(b'wrong').hexdigest()}" in message
    assert str(folder / "x") in message and MD5 in message and "CDFSG_DATA_DIR" in message


def test_a_folder_that_cannot_be_made_is_told_before_anything_is_fetched(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("CDFSG_DATA_DIR", str(tmp_path / "file" / "raw"))
    message = failed("x", MD5, [NEVER])
    assert "cannot write to the data folder" in message and "CDFSG_DATA_DIR" in message


def test_a_read_only_folder_is_told_before_anything_is_fetched(tmp_path, monkeypatch):
    read_only = tmp_path / "raw"
    read_only.mkdir(mode=0o555)
    if os.access(read_only, os.W_OK):  # permissions do not bind root, but /proc takes no files of anyone
        read_only = Path("/proc")
    monkeypatch.setenv("CDFSG_DATA_DIR", str(read_only))
    message = failed("x", MD5, [NEVER])
    assert f"cannot write to the data folder {read_only}" in message and "CDFSG_DATA_DIR" in message


def test_a_file_that_cannot_be_read_is_told(folder):
    (folder / "x").mkdir(parents=True)
    assert f"cannot read {folder / 'x'}" in failed("x", MD5, [NEVER])


def test_a_full_disk_is_told_and_leaves_nothing_half_written(folder, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    message = failed("x", MD5, [gives(GOOD)])
    assert f"cannot write {folder / 'x'}" in message and "No space left" in message
    assert os.listdir(folder) == []


def test_two_downloads_of_one_file_at_once_do_not_disturb_each_other(folder):
    # The second one runs from start to end while the first is under way.
    def overlapped():
        assert obtain("x", MD5, [gives(GOOD)]).read_bytes() == GOOD
        return GOOD

    assert obtain("x", MD5, [Source("slow", overlapped)]).read_bytes() == GOOD
    assert os.listdir(folder) == ["x"]


@pytest.mark.parametrize("known_length", [True, False])
def test_progress_is_a_few_whole_lines_on_stderr(serve, folder, capfd, known_length):
    big = bytes(5_000_000)
    url = serve(big, -1 if known_length else None)
    obtain("x", "md5:" + hashlib.md5(big).hexdigest(), [http(url)])
    out, err = capfd.readouterr()
    assert out == "" and "\r" not in err and err.endswith("\n")
    assert err.count("5000000 (") == (10 if known_length else 0)


def test_a_slow_download_of_unknown_length_reports_now_and_then(serve, folder, capfd, monkeypatch):
    clock = iter(range(0, 10**6, 3))  # each look at the clock is 3 s later
    monkeypatch.setattr(download.time, "monotonic", lambda: next(clock))
    failed("x", MD5, [http(serve(bytes(10 * 65536), length=None))])
    assert capfd.readouterr().err.count("bytes\n") >= 3


@pytest.mark.parametrize("checksum", ["crc32:00", "00", "md5"])
def test_a_checksum_without_a_known_algorithm_is_refused(checksum):
    with pytest.raises(ValueError, match="expected 'md5:...' or 'sha256:...'"):
        verify(b"", checksum)


def test_the_data_folder_is_the_one_in_the_environment_or_in_the_repository_or_the_users_cache(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CDFSG_DATA_DIR", "~/mine")
    assert data_dir() == tmp_path / "mine"
    monkeypatch.delenv("CDFSG_DATA_DIR")
    monkeypatch.setattr(download, "__file__", str(tmp_path / "repo/cdfsg/datasets/download.py"))
    assert data_dir() == tmp_path / ".cache" / "cdfsg"
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo/pyproject.toml").touch()
    assert data_dir() == tmp_path / "repo" / "data" / "raw"


# --- mirrors that mean no good ---------------------------------------------------------------------------


def drip(head, piece):
    """An answer that is never complete and never silent."""

    def answer(connection, stop):
        connection.sendall(head)
        while not stop.wait(0.02):
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
def test_a_mirror_that_drips_is_given_up_after_a_time(folder, dialogue, monkeypatch, where, capfd):
    monkeypatch.setattr(download, "TIMEOUT", 30.0)
    monkeypatch.setattr(download, "TOTAL_TIMEOUT", 0.5)
    slow = http(dialogue(drip(*DRIPS[where])))
    assert obtain("x", MD5, [slow, gives(GOOD)]).read_bytes() == GOOD
    assert "it is not complete after 0.5 s" in capfd.readouterr().err


def test_a_download_that_was_given_up_stops_reading_and_ends_its_thread(folder, dialogue, monkeypatch):
    monkeypatch.setattr(download, "TOTAL_TIMEOUT", 0.3)
    before = set(threading.enumerate())
    failed("x", MD5, [http(dialogue(drip(*DRIPS["body"])))])
    (left,) = [thread for thread in threading.enumerate() if thread not in before and "run" in thread.name]
    left.join(30)
    assert not left.is_alive()


def test_a_stated_length_beyond_what_is_expected_is_refused_before_a_byte_is_read(folder, dialogue):
    sent = []

    def answer(connection, stop):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n")
        sent.append(connection.recv(1))  # the client hangs up

    message = failed("x", MD5, [http(dialogue(answer), most=len(GOOD))])
    assert f"a length of 99999999999 bytes, more than the {len(GOOD)} expected" in message


@pytest.mark.parametrize("head", [b"", b"Transfer-Encoding: chunked\r\n"])
def test_a_mirror_that_never_ends_is_given_up_once_it_has_sent_too_much(folder, dialogue, head):
    piece = b"x" * 4096
    piece = b"1000\r\n" + piece + b"\r\n" if head else piece

    def answer(connection, stop):
        connection.sendall(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n")
        while not stop.is_set():
            connection.sendall(piece)

    assert f"sends more than the {len(GOOD)} bytes" in failed("x", MD5, [http(dialogue(answer), most=len(GOOD))])


def test_a_mirror_that_redirects_in_a_circle_is_given_up(folder, dialogue, capfd):
    def answer(connection, stop):
        connection.sendall(b"HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    assert obtain("x", MD5, [http(dialogue(answer)), gives(GOOD)]).read_bytes() == GOOD
    assert "Exceeded maximum allowed redirects" in capfd.readouterr().err


def test_a_mirror_cannot_redirect_to_a_file_of_this_machine(tmp_path, folder, dialogue):
    (tmp_path / "x").write_bytes(GOOD)
    location = (tmp_path / "x").as_uri().encode()

    def answer(connection, stop):
        connection.sendall(b"HTTP/1.1 302 Found\r\nLocation: " + location + b"\r\nContent-Length: 0\r\n\r\n")

    assert " protocol" in failed("x", MD5, [http(dialogue(answer))])


@pytest.mark.parametrize("transform", [bytes, gunzip])
def test_a_page_of_html_in_place_of_the_file_falls_to_the_next_source(serve, folder, transform):
    login = serve(b"<!DOCTYPE html><title>Log in to this network</title>")
    assert obtain("x", MD5, [http(login, transform), gives(GOOD)]).read_bytes() == GOOD


def test_an_archive_that_unpacks_to_too_much_is_given_up_before_it_fills_the_memory(serve, folder):
    bomb = gzip.compress(bytes(1 << 26))
    assert len(bomb) < 1 << 17
    tracemalloc.start()
    try:
        message = failed("x", MD5, [http(serve(bomb), lambda packed: gunzip(packed, len(GOOD)))])
        assert tracemalloc.get_traced_memory()[1] < 1 << 22
    finally:
        tracemalloc.stop()
    assert f"unpacks to more than the {len(GOOD)} bytes expected" in message


def test_an_archive_of_exactly_the_size_expected_is_unpacked():
    assert gunzip(gzip.compress(GOOD), len(GOOD)) == GOOD
    with pytest.raises(ValueError, match="more than the"):
        gunzip(gzip.compress(GOOD), len(GOOD) - 1)
