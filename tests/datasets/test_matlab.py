"""What scipy does to its process, crash, hang or fill the memory, arrives as an error in words."""

import io
import os
import subprocess
import sys
import zlib

import numpy as np
import pytest
from scipy.io import savemat

from cdfsg.datasets import matlab
from cdfsg.datasets.matlab import read_matlab

LARGEST = {"x": 12, "y": 12}
VALUES = np.uint32([2, 12]).tobytes()  # what stands before twelve values: their type, uint8, and their bytes


def written(content, packed=False):
    stream = io.BytesIO()
    savemat(stream, content, do_compression=packed)
    return stream.getvalue()


@pytest.mark.parametrize("packed", [False, True])
def test_arrays_of_numbers_come_back_as_they_were_written(packed):
    kinds = ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8"]
    arrays = {f"x_{kind}": np.arange(12).reshape(3, 4).astype(kind) for kind in kinds}
    found = read_matlab(written({"other": "a word", **arrays}, packed), dict.fromkeys([*arrays, "missing"], 12))
    assert set(found) == set(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype


@pytest.mark.parametrize(
    "content, found",
    [
        ({"y": np.zeros((3, 4)), "x": np.zeros((1, 13), np.uint8)}, r"x is uint8 of shape \(1, 13\)"),
        ({"x": "abc"}, "x is char"),
        ({"x": np.array([1, "abc"], object)}, "x is cell"),
        ({"x": {"y": 1}}, "x is struct"),
    ],
)
def test_a_variable_that_is_larger_or_no_array_of_numbers_is_refused(content, found):
    with pytest.raises(ValueError, match=f"{found}.*expected at most 12 numbers"):
        read_matlab(written(content), LARGEST)


def test_a_file_that_states_another_type_is_refused():
    """A type of values that does not exist: scipy 1.17 looks it up beyond the end of a table, and crashes."""
    content = written({"x": np.arange(12, dtype=np.uint8)})
    assert content.count(VALUES) == 1
    with pytest.raises(ValueError):
        read_matlab(content.replace(VALUES, np.uint32([0x8B02, 12]).tobytes()), LARGEST)


@pytest.mark.skipif(sys.platform != "linux", reason="the memory of a process has no bound here")
def test_a_file_that_states_gigabytes_is_refused():
    content = written({"x": np.arange(12, dtype=np.uint8)})
    packed = zlib.compress(content[128:].replace(VALUES, np.uint32([2, 3 << 30]).tobytes()))
    with pytest.raises(ValueError, match="MemoryError"):
        read_matlab(content[:128] + np.uint32([15, len(packed)]).tobytes() + packed, LARGEST)


@pytest.fixture
def plant(tmp_path, monkeypatch):
    """Return a function that lets the child find a module in place of `scipy.io`, in an empty working folder."""

    def planted(body):
        package = tmp_path / "planted" / "scipy" / "io"
        package.mkdir(parents=True)
        (package.parent / "__init__.py").touch()
        functions = f"def whosmat(_):\n    {body}\ndef loadmat(*_, **__):\n    return {{}}\n"
        (package / "__init__.py").write_text(f"import ctypes, os, time, warnings\n{functions}")
        (tmp_path / "here").mkdir()
        monkeypatch.chdir(tmp_path / "here")
        monkeypatch.setenv("PYTHONPATH", str(package.parents[1]), prepend=os.pathsep)

    return planted


@pytest.fixture
def core_files():
    """Let a process that crashes leave its memory in a file, as far as this machine does."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))


@pytest.mark.parametrize(
    "body, found",
    [
        ("ctypes.string_at(0)", r"its reader crashed with status -\d+"),
        ("os.abort()", r"its reader crashed with status -\d+"),
        ("raise RuntimeError('line 1\\nline 2')", "line 2"),
        ("raise RecursionError", "RecursionError"),
    ],
)
@pytest.mark.usefixtures("core_files")
def test_whatever_happens_to_the_reader_is_an_error_in_words_and_leaves_no_file_behind(plant, body, found):
    plant(body)
    with pytest.raises(ValueError, match=f"^{found}"):
        read_matlab(b"", LARGEST)
    assert os.listdir() == []


def test_a_reader_that_hangs_is_ended(plant, monkeypatch):
    plant("time.sleep(600)")
    monkeypatch.setattr(matlab, "TIMEOUT", 1)
    with pytest.raises(subprocess.TimeoutExpired, match="timed out after 1 seconds"):
        read_matlab(b"", LARGEST)


def test_warnings_are_no_errors_even_if_the_user_wants_them_to_be(plant, monkeypatch):
    monkeypatch.setenv("PYTHONWARNINGS", "error")
    plant("warnings.warn('odd'); return []")
    assert read_matlab(b"", LARGEST) == {}
