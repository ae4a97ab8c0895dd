"""What scipy does to its process, crash, hang or fill the memory, arrives as an error in words."""

import io
import os
import struct
import sys
import zlib

import numpy as np
import pytest
from scipy.io import savemat

from cdfsg.datasets import matlab
from cdfsg.datasets.matlab import read_matlab

LARGEST = {"x": 12, "y": 12}
VALUES = struct.pack("<II", 2, 12)  # what stands before twelve values: their type, uint8, and their bytes
LIMITED = pytest.mark.skipif(sys.platform != "linux", reason="the memory of a process has no bound here")


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


@pytest.mark.parametrize(
    "stated, words",
    [
        (None, None),  # a value type that does not exist: scipy 1.17 looks it up beyond the end of a table, and crashes
        pytest.param(3 << 30, "MemoryError", marks=LIMITED),
    ],
)
def test_a_file_that_states_another_type_or_gigabytes_is_refused(stated, words):
    content = written({"x": np.arange(12, dtype=np.uint8)})
    assert content.count(VALUES) == 1
    if stated:
        packed = zlib.compress(content[128:].replace(VALUES, struct.pack("<II", 2, stated)))
        content = content[:128] + struct.pack("<II", 15, len(packed)) + packed
    else:
        content = content.replace(VALUES, struct.pack("<II", 0x8B02, 12))
    with pytest.raises(ValueError, match=words):
        read_matlab(content, LARGEST)


@pytest.fixture
def plant(tmp_path, monkeypatch):
    """Return a function that lets the child find a module in place of `scipy.io`."""

    def planted(**functions):
        package = tmp_path / "planted" / "scipy" / "io"
        package.mkdir(parents=True)
        (package.parent / "__init__.py").touch()
        bodies = {"whosmat": "return []", "loadmat": "return {}", **functions}
        lines = [f"def {name}(*_, **__):\n    {body}\n" for name, body in bodies.items()]
        (package / "__init__.py").write_text("import ctypes, os, time, warnings\nimport numpy as np\n" + "".join(lines))
        monkeypatch.setenv("PYTHONPATH", str(package.parents[1]), prepend=os.pathsep)

    return planted


@pytest.mark.parametrize(
    "body, found",
    [
        ("ctypes.string_at(0)", "its reader crashed: Segmentation fault"),
        ("os.abort()", "its reader crashed: Abort"),  # Linux goes on with "ed", macOS with " trap: 6"
        ("raise RuntimeError('line 1\\nline 2')", "line 2"),
        ("raise RecursionError", "RecursionError"),
        ("os._exit(3)", "its reader ended with 3"),
        ("os._exit(0)", "its reader gave no arrays"),
        pytest.param("bytes(1 << 32)", "MemoryError", marks=LIMITED),
    ],
)
@pytest.mark.parametrize("function", ["whosmat", "loadmat"])
def test_whatever_happens_to_the_reader_is_an_error_in_words(plant, function, body, found):
    plant(**{function: body})
    with pytest.raises(ValueError, match=f"^{found}"):
        read_matlab(b"", LARGEST)


def test_a_reader_that_hangs_is_ended_and_a_pickle_is_not_loaded(plant, monkeypatch):
    plant(whosmat="return [] if b'p' in _[0].getvalue() else time.sleep(600)",
          loadmat="return {'x': np.array([print], object)}")  # fmt: skip
    with pytest.raises(ValueError, match="gave no arrays: Object arrays cannot be loaded"):
        read_matlab(b"p", LARGEST)
    monkeypatch.setattr(matlab, "TIMEOUT", 1)
    with pytest.raises(ValueError, match="it takes more than 1 s to read"):
        read_matlab(b"", LARGEST)


def test_a_crash_leaves_no_file_behind(plant, tmp_path, monkeypatch):
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    plant(whosmat="ctypes.string_at(0)")
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    try:
        with pytest.raises(ValueError, match="crashed"):
            read_matlab(b"", LARGEST)
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))
    assert os.listdir() == []


def test_warnings_are_no_errors_even_if_the_user_wants_them_to_be(plant, monkeypatch):
    monkeypatch.setenv("PYTHONWARNINGS", "error")
    plant(whosmat="warnings.warn('odd'); return []", loadmat="return {'x': np.ones(3), 'z': np.ones(3)}")
    assert {name: array.tolist() for name, array in read_matlab(b"", LARGEST).items()} == {"x": [1, 1, 1]}
