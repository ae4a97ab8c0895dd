"""The world around it: disks that are full, checkouts that are read-only, odd paths, little memory, no home.

Either the command works, or it says in a sentence what to do, leaves nothing half-written, and goes on afterwards.
"""

import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from cdfsg.files import write_atomically
from tests.project import copy, python

ODD = "Käse und Brot"
BLOCKS = """
import sys
from cdfsg import __main__ as cli
from cdfsg.files import RUNS
from cdfsg.paper.experiments import QUICK
from cdfsg.paper.run import run_jobs
count, processes, room = map(int, sys.argv[1:])
if room:
    import resource
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (room << 20),) * 2)
def run(_):
    frame = run_jobs(QUICK.jobs()[:count], RUNS, processes)
    print(len(frame), repr(float(frame["pcc"].max())))
cli._COMMANDS["status"] = run, "", ""
sys.exit(cli.main(["status"]))
"""
"""The first blocks of `quick` as a command, so that its errors are told as those of every command.

Its arguments are their number, the processes, and the MB of memory that it may take, 0 for any number.
"""


def blocks(count=1, processes=1, room=0, **options):
    return python("-c", BLOCKS, count, processes, room, **options)


def in_words(done, *words):
    """Whether a command failed with one line for people that has the words."""
    told = done.stderr.strip().splitlines()
    return done.returncode == 1 and "Traceback" not in done.stderr and told and all(word in told[-1] for word in words)


@contextlib.contextmanager
def mounted(folder, *options):
    """A mount that is gone afterwards; the test is skipped where this user may not mount."""
    done = subprocess.run(["mount", *options, str(folder)], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"cannot mount here, which needs root: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 2 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    with mounted(folder, "-t", "tmpfs", "-o", "size=2m", "none"):
        yield folder


def fill(folder):
    """Leave no room; the file to delete later."""
    filler = folder / "filler"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as stream:
        while stream.write(bytes(1 << 12)):
            pass
    return filler


# --- a full disk -----------------------------------------------------------------------------------------


@pytest.mark.case("world: a full disk")
@pytest.mark.torture
def test_a_run_on_a_full_disk_says_so_leaves_nothing_half_written_and_goes_on(small_disk):
    filler = fill(small_disk)
    done = blocks(CDFSG_CACHE_DIR=str(small_disk))
    assert in_words(done, "No space left on device", str(small_disk), "make room"), done.stderr
    assert not [path for path in small_disk.rglob("*") if path.is_file() and path != filler]
    filler.unlink()
    done = blocks(CDFSG_CACHE_DIR=str(small_disk))
    assert done.returncode == 0 and len(list((small_disk / "runs").glob("*.csv"))) == 1, done.stderr
    assert not list(small_disk.rglob("*.tmp"))


@pytest.mark.case("world: a full disk")
@pytest.mark.parametrize("old", [None, b"old"])
def test_a_file_is_written_whole_or_not_at_all(small_disk, old):
    path = small_disk / "records" / "x.csv"
    path.parent.mkdir()
    if old:
        write_atomically(path, old)
    filler = fill(small_disk)
    with pytest.raises(OSError, match="make room"):
        write_atomically(path, bytes(1 << 16))
    assert path.read_bytes() == old if old else not path.exists()
    assert not list(small_disk.rglob("*.tmp"))
    filler.unlink()
    write_atomically(path, bytes(1 << 16))
    assert path.stat().st_size == 1 << 16


DOWNLOAD = """
import hashlib
from cdfsg.datasets.download import Source, obtain
data = bytes(1 << 20)
print(obtain("x", "md5:" + hashlib.md5(data).hexdigest(), [Source("mirror", lambda: data)]))
"""


# --- a read-only checkout --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    """A checkout in a folder with a space and a letter beyond ASCII, less what takes long to copy."""
    folders, files = "cdfsg data/paper data/records docs figures", "Makefile pyproject.toml requirements.lock README.md"
    return copy(tmp_path_factory.mktemp("world") / ODD / "repo", *folders.split(), *files.split())


@pytest.fixture
def read_only(odd):
    """The checkout as a mount that takes no files, which binds root, too."""
    with mounted(odd, "--bind", str(odd)):
        subprocess.run(["mount", "-o", "remount,bind,ro", str(odd)], check=True)
        yield odd


@pytest.mark.case("world: a read-only checkout")
@pytest.mark.torture
def test_a_read_only_checkout_runs_with_its_caches_elsewhere_and_says_so_without(read_only, tmp_path):
    with pytest.raises(OSError, match="Read-only"):
        (read_only / "x").touch()
    elsewhere = {"root": read_only, "PYTHONDONTWRITEBYTECODE": None}
    done = blocks(**elsewhere)
    assert in_words(done, "Read-only file system", "data/cache", "set CDFSG_CACHE_DIR"), done.stderr
    elsewhere |= {"CDFSG_CACHE_DIR": str(tmp_path / "cache"), "CDFSG_DATA_DIR": str(tmp_path / "raw")}
    done = blocks(**elsewhere)
    assert done.returncode == 0, done.stderr
    done = python("-c", DOWNLOAD, **elsewhere)
    assert done.returncode == 0 and (tmp_path / "raw" / "x").exists(), done.stderr


@pytest.mark.case("world: a read-only checkout")
@pytest.mark.torture
def test_the_commands_that_only_read_work_in_a_read_only_checkout(tally, read_only, tmp_path):
    elsewhere = {"root": read_only, "CDFSG_CACHE_DIR": str(tmp_path)}
    for command in (["status", "--only", "dataset=mediamill"], ["verdict", "--help"], ["theory", "--help"]):
        done = python("-m", "cdfsg", *command, **elsewhere)
        tally(done.returncode == 0 or pytest.fail(done.stderr))
    done = python("-m", "cdfsg", "verdict", **elsewhere)  # may find all as it is, or must say what it cannot write
    tally(done.returncode == 0 or in_words(done, "Read-only file system", "its folder writable"))


# --- paths, folders, homes, letters, cores ---------------------------------------------------------------


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """What the first block prints in an ordinary place."""
    done = blocks(CDFSG_CACHE_DIR=str(tmp_path_factory.mktemp("plain")))
    assert done.returncode == 0, done.stderr
    return done.stdout


SCENES = {
    "a path with a space and an umlaut": {},
    "another working folder": {"cwd": "/"},
    "no home": {"HOME": None, "XDG_CACHE_HOME": None, "XDG_CONFIG_HOME": None},
    "a home that takes no files": {"HOME": "/proc", "MPLCONFIGDIR": None},
    "the C locale": {"LC_ALL": "C", "LANG": "C"},
    "the C locale without UTF-8": {"LC_ALL": "C", "LANG": None, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "a terminal of ASCII": {"PYTHONIOENCODING": "ascii"},
    "no folder for temporary files": {"TMPDIR": "/nowhere", "JOBLIB_TEMP_FOLDER": "/nowhere"},
}
if sys.platform == "linux":
    SCENES["one core"] = {"limit": lambda: os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])}
FIRST, *LATER = SCENES  # each costs the start of a Python that imports all


@pytest.mark.case("world: odd paths, homes, letters, cores")
@pytest.mark.parametrize("scene", [FIRST, *(pytest.param(scene, marks=pytest.mark.torture) for scene in LATER)])
def test_a_block_gives_the_same_numbers_wherever_it_runs(odd, tmp_path, expected, scene):
    cache = tmp_path / ODD
    done = blocks(root=odd, CDFSG_CACHE_DIR=str(cache), **SCENES[scene])
    assert done.returncode == 0 and done.stdout == expected, done.stderr
    (record,) = (cache / "runs").glob("*.csv")
    assert len(pd.read_csv(record, comment="#")) == int(expected.split()[0])


@pytest.mark.case("world: odd paths, homes, letters, cores")
@pytest.mark.parametrize("scene", ["the C locale without UTF-8", "a terminal of ASCII"])
@pytest.mark.torture
def test_a_path_or_word_that_the_terminal_cannot_show_is_printed_otherwise(odd, tmp_path, scene):
    code = "import sys; from cdfsg import __main__ as cli; from cdfsg.files import ROOT\n" \
           "cli._COMMANDS['status'] = (lambda _: print(ROOT, 'Fval\\u22c6', '\\u03b2')), '', ''\n" \
           "sys.exit(cli.main(['status']))"  # fmt: skip
    done = python("-c", code, root=odd, cwd="/", **SCENES[scene])
    assert done.returncode == 0 and "\\u22c6 \\u03b2" in done.stdout, done.stderr


@pytest.mark.case("world: odd paths, homes, letters, cores")
@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_the_makefile_works_in_a_path_with_a_space_and_an_umlaut(tally, odd):
    outside = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}  # as if typed
    for target in ("setup", "data", "quick", "reproduce", "test", "clean"):
        command = ["make", "-n", "--no-print-directory", target, f"PYTHON={sys.executable}"]
        done = subprocess.run(command, cwd=odd, env=outside, capture_output=True, text=True)
        tally(done.returncode == 0 and ODD not in done.stdout or pytest.fail(done.stderr + done.stdout))
    listed = subprocess.run(["make", "help"], cwd=odd, env=outside, capture_output=True, text=True)
    tally("make quick" in listed.stdout and listed.returncode == 0)


# --- little memory ---------------------------------------------------------------------------------------


@pytest.mark.case("world: little memory")
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("room", [4, 16, 256])
@pytest.mark.torture
def test_with_little_memory_a_run_ends_well_or_in_words_and_does_not_hang(tmp_path, room, processes):
    done = blocks(2, processes, room, CDFSG_CACHE_DIR=str(tmp_path))
    if done.returncode:
        assert in_words(done, "cdfsg: "), (done.returncode, done.stderr)
    assert not list(tmp_path.rglob("*.tmp"))
    done = blocks(2, processes, 4096, CDFSG_CACHE_DIR=str(tmp_path))
    assert done.returncode == 0 and len(list((tmp_path / "runs").glob("*.csv"))) == 2, done.stderr
