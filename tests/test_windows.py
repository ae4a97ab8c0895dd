"""What can be known about Windows elsewhere: names, locks, and that the commands ask for nothing of POSIX."""

import ast
import errno
import os
import re
import subprocess
import sys
import types
from pathlib import PureWindowsPath

import pytest

from cdfsg.files import ROOT
from cdfsg.lock import lock
from tests.project import python

fcntl = pytest.importorskip("fcntl", reason="stands in for msvcrt where there is none")

POSIX = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}
ONLY_POSIX = {
    "chown", "fchmod", "fchown", "fork", "forkpty", "getgid", "getpgid", "getuid", "killpg", "mkfifo", "nice", "pread",
    "pwrite", "sched_getaffinity", "setpgid", "setsid", "statvfs", "sysconf", "uname", "wait",
}  # fmt: skip


@pytest.fixture
def windows(monkeypatch):
    """Let files be locked as on Windows, where a lock is on bytes, which nobody else can read."""

    def locking(handle, mode, count):
        assert (mode, count) == (msvcrt.LK_NBLCK, 1) and os.lseek(handle, 0, os.SEEK_CUR) > 1 << 20
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OSError(errno.EACCES, "Permission denied") from None

    msvcrt = types.ModuleType("msvcrt")
    msvcrt.LK_NBLCK, msvcrt.locking = 2, locking
    monkeypatch.setitem(sys.modules, "msvcrt", msvcrt)
    monkeypatch.setitem(sys.modules, "fcntl", None)


def test_the_second_command_is_told_of_the_first_and_enters_after_it(tmp_path, windows):
    path, words = tmp_path / "lock", rf"^cdfsg run \(process {os.getpid()} "
    with lock(path, "cdfsg run"), pytest.raises(BlockingIOError, match=words), lock(path, "cdfsg quick"):
        pytest.fail("two at once")
    with lock(path, "cdfsg quick"):
        assert path.read_text().startswith("cdfsg quick (process ")


def tracked():
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, encoding="utf-8")
    if done.returncode:
        pytest.skip("no git here")
    return done.stdout.strip("\0").split("\0")


def test_every_file_has_a_name_that_windows_can_have_and_no_two_differ_by_case_alone():
    names = tracked()
    bad = [name for name in names for part in PureWindowsPath(name).parts
           if re.search(r'[<>:"|?*\\\x00-\x1f]|[. ]$', part) or PureWindowsPath(part).is_reserved()]  # fmt: skip
    assert not bad and len({name.lower() for name in names}) == len(names)
    assert max(map(len, names)) < 120  # of 260 with the folder


def test_text_is_the_same_bytes_in_a_checkout_on_windows_or_no_checksum_would_hold():
    assert (ROOT / ".gitattributes").read_text() == "* text=auto eol=lf\n"


def posix_calls(tree):
    """Names of POSIX in a module: functions of `os`, and modules imported at its top, where nothing catches."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os":
            yield from {node.attr} & ONLY_POSIX
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from {alias.name for alias in node.names} & POSIX | {getattr(node, "module", None)} & POSIX


def test_the_package_calls_nothing_that_only_posix_has():
    found = {path.name: calls for path in (ROOT / "cdfsg").rglob("*.py")
             if (calls := list(posix_calls(ast.parse(path.read_text(encoding="utf-8")))))}  # fmt: skip
    assert not found
    assert list(posix_calls(ast.parse("import os, fcntl\nfrom pwd import x\nos.fork()"))) == ["fork", "fcntl", "pwd"]


RUN = f"""
import os, sys, types
from pathlib import Path
from tests.torture import crashing  # other libraries are loaded as they are
sys.modules |= dict.fromkeys({sorted(POSIX - {"posix"})})
sys.modules["msvcrt"] = types.SimpleNamespace(LK_NBLCK=2, locking=lambda *_: None)
for name in {sorted(ONLY_POSIX)}:
    if hasattr(os, name):
        delattr(os, name)
crashing.redirect(Path(sys.argv[1]), "tiny")
print(crashing.cli.main(["quick", "--jobs", "1"]), crashing.cli.main(["status"]))
"""


def test_commands_run_without_what_only_posix_has_and_read_no_text_in_the_encoding_of_the_machine(tmp_path):
    done = python("-X", "warn_default_encoding", "-c", RUN, tmp_path, CDFSG_CACHE_DIR=str(tmp_path))
    assert done.stdout.endswith("0 0\n"), done.stdout + done.stderr
    assert "EncodingWarning" in done.stderr and not re.findall(rf"{ROOT / 'cdfsg'}.*EncodingWarning", done.stderr)
