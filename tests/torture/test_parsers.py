"""The parsers get files that are damaged, absurd or hostile: an error in words or a correct parse, and little memory.

What is mutated is a valid file: bits flipped, pieces cut out, doubled or replaced by numbers beyond all measure. A few
hundred examples run with every test; `make torture` tries thousands of each.  MATLAB's files get fewer: each is read in
a process of its own, whose memory and time are bounded (`tests/datasets/test_matlab.py`).
"""

import bz2
import contextlib
import gzip
import io
import tracemalloc
from functools import partial

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.io import savemat

from cdfsg.datasets import mediamill_files, nmnist
from cdfsg.datasets.download import gunzip
from tests.datasets.builders import arff, svm

FEATURES, LABELS, ROWS = 6, 4, 12
LARGEST = 1 << 23
"""Bytes that no parse of these files of some kilobytes may reach; the readers' own modules are loaded before."""


def few_or_many(few, many):
    """So many examples with every test, and so many with ``--torture``."""
    return pytest.mark.parametrize(
        "examples", [pytest.param(few, id="few"), pytest.param(many, id="many", marks=pytest.mark.torture)]
    )


FEW_OR_MANY = few_or_many(200, 3_000)
FEW_OR_MANY_PROCESSES = few_or_many(10, 200)
"""Where each example starts Python and loads scipy anew."""

ABSURD = [b"4294967295", b"-1", b"1e999", b"nan", b"-inf", b"9" * 400, b"0x10", b"1_0", b"0.5", b"", b" ", b"\n", b"{",
          b"}", b":", b",", b"%", b"@data\n", b"\x00", b"\xff\xfe", b"\r", b"\x1a", b"2" * 5000,
          b"(", b"),)"]  # fmt: skip


@st.composite
def mutated(draw, valid):
    """A valid file with one to four harms done to it."""
    content = bytearray(valid)
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(["flip", "cut", "end", "double", "absurd", "bytes"]))
        at = draw(st.integers(0, max(len(content) - 1, 0)))
        if kind == "flip" and content:
            content[at] ^= 1 << draw(st.integers(0, 7))
        elif kind == "cut":
            del content[at : at + draw(st.integers(1, 40))]
        elif kind == "end":
            del content[at:]
        elif kind == "double":
            source = draw(st.integers(0, max(len(content) - 1, 0)))
            content[at:at] = content[source : source + draw(st.integers(1, 60))]
        elif kind == "absurd":
            content[at : at + draw(st.integers(0, 6))] = draw(st.sampled_from(ABSURD))
        else:
            piece = draw(st.binary(min_size=1, max_size=8))
            content[at : at + len(piece)] = piece
    return bytes(content)


@contextlib.contextmanager
def bounded():
    """Fail if what happens within takes more than `LARGEST` bytes."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < LARGEST
    finally:
        tracemalloc.stop()


@pytest.fixture
def fuzz(tally, examples):
    """Return a function that gives `examples` examples to a check and counts them."""

    def run(strategy, check):
        @settings(max_examples=examples, deadline=None, derandomize=True, database=None,
                  suppress_health_check=list(HealthCheck))  # fmt: skip
        @given(strategy)
        def each(example):
            with bounded():
                check(example)
            tally(True)

        each()

    return run


def parsed(read, path, content):
    """What a reader makes of a file; None where it refuses it in a sentence that names the file."""
    path.write_bytes(content)
    try:
        return read(path)
    except ValueError as error:
        assert str(path) in str(error) and len(str(error)) > len(str(path)) + 10
        return None


def read_text(path):
    return mediamill_files.read_text(str(path), path.read_bytes())


@pytest.fixture
def small(monkeypatch):
    """Few features, labels and rows."""
    for name, value in {"FEATURES": FEATURES, "LABELS": LABELS, "ROWS": ROWS}.items():
        monkeypatch.setattr(mediamill_files, name, value)
    monkeypatch.setattr(mediamill_files, "_LARGEST", 1 << 20)


@FEW_OR_MANY
@pytest.mark.parametrize(
    "name, write",
    [
        pytest.param("x.svm", svm, marks=pytest.mark.case("parsers: mutated LIBSVM")),
        pytest.param("x.arff", arff, marks=pytest.mark.case("parsers: mutated ARFF")),
        pytest.param("x.arff", partial(arff, sparse=True), marks=pytest.mark.case("parsers: mutated sparse ARFF")),
    ],
)
def test_a_mutated_text_file_is_refused_or_read_to_numbers_that_it_can_hold(fuzz, small, tmp_path, name, write):
    rng = np.random.default_rng(0)
    features = np.round(rng.normal(size=(ROWS, FEATURES)), 3).astype(np.float32)
    features[rng.random(features.shape) < 0.3] = 0
    rows = features, (rng.random((ROWS, LABELS)) < 0.3).astype(np.uint8)
    valid, path = write(*rows), tmp_path / name

    def check(content):
        found = parsed(read_text, path, content)
        if found is not None:
            assert found.shape[1] == FEATURES + LABELS and np.isfinite(found).all()
            assert np.isin(found[:, FEATURES:], (0, 1)).all()
            kept = found[found.any(axis=1)]  # LIBSVM's format has no row of zeros alone
            if len(kept):
                again = parsed(read_text, path, write(kept[:, :FEATURES], kept[:, FEATURES:]))
                np.testing.assert_array_equal(again, kept)

    np.testing.assert_array_equal(parsed(read_text, path, valid), np.hstack(rows))
    fuzz(mutated(valid), check)


@pytest.fixture
def few_images(monkeypatch):
    """Let three images stand for n-MNIST's."""
    monkeypatch.setattr(nmnist, "_IMAGES", 3)
    monkeypatch.setattr(nmnist, "_LARGEST", 1 << 18)
    return np.random.default_rng(0).integers(0, 256, (3, 784), dtype=np.uint8)


@FEW_OR_MANY_PROCESSES
@pytest.mark.case("parsers: mutated MATLAB file")
def test_a_mutated_matlab_file_is_refused_or_has_images(fuzz, few_images, tmp_path):
    content = {"train_x": few_images, "train_y": np.eye(3, 10)}
    plain, packed = io.BytesIO(), io.BytesIO()
    savemat(plain, content)
    savemat(packed, content, do_compression=True)

    def check(content):
        found = parsed(nmnist._read_mat, tmp_path / "x.mat", content)
        if found is not None:
            assert found[1]["train_x"].shape == (3, 784) and found[1]["train_x"].dtype == np.uint8

    head, rest = plain.getvalue()[:300], plain.getvalue()[300:]
    fuzz(st.one_of(mutated(head).map(lambda harmed: harmed + rest), mutated(packed.getvalue())), check)


# --- bombs -----------------------------------------------------------------------------------------------


HUGE = 1 << 26
"""Bytes that a bomb unpacks to: enough that to unpack it would be noticed, and that making it takes no time."""

BOMBS = {
    "lines": ("x.svm.bz2", lambda: bz2.compress(b"\n" * HUGE), read_text, r"x\.svm\.bz2: it has more than"),
    "one line": ("x.svm.bz2", lambda: bz2.compress(b"1" * HUGE), read_text, r"x\.svm\.bz2: it has more than"),
    "rows": ("x.svm.bz2", lambda: bz2.compress(b"1 1:1\n" * 10_000), read_text, r"x\.svm\.bz2: more than 12 rows"),
    "idx": ("x.gz", lambda: gzip.compress(bytes(HUGE), 1), lambda path: gunzip(path.read_bytes(), 1000),
            "it has more than"),
    "matlab, not packed": ("x.mat", lambda: bytes(1 << 21), nmnist._read_mat, r"x\.mat: .*more than the 262144 bytes"),
}  # fmt: skip


@pytest.mark.case("parsers: decompression bombs")
@pytest.mark.parametrize("kind", BOMBS)
def test_a_file_that_unpacks_to_far_more_than_is_expected_is_given_up(tmp_path, small, few_images, kind):
    name, content, read, words = BOMBS[kind]
    (tmp_path / name).write_bytes(content())
    with bounded(), pytest.raises(ValueError, match=words):
        read(tmp_path / name)
