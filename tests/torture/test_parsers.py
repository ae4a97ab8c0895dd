"""The parsers get files that are damaged, absurd or hostile: an error in words or a correct parse, and little memory.

What is mutated is a valid file: pieces cut out, doubled, or replaced by a flipped bit or by numbers beyond all measure.
A few hundred examples run with every test; `make torture` tries thousands of each.  MATLAB's files get fewer: each is
read in a process of its own, whose memory and time are bounded (`tests/datasets/test_matlab.py`).
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

from cdfsg.datasets import download, mediamill, nmnist
from cdfsg.datasets.download import gunzip
from cdfsg.datasets.mediamill import read_text
from tests.datasets.builders import arff, flip, svm

FEATURES, LABELS, ROWS = 6, 4, 12
LARGEST = 1 << 23
"""Bytes that no parse of these files of some kilobytes may reach; the readers' own modules are loaded before."""


def few_or_many(few, many):
    """So many examples with every test, and so many with ``--torture``."""
    return pytest.mark.parametrize(
        "examples", [pytest.param(few, id="few"), pytest.param(many, id="many", marks=pytest.mark.torture)]
    )


ABSURD = [b"4294967295", b"-1", b"1e999", b"nan", b"-inf", b"9" * 400, b"0x10", b"1_0", b"0.5", b"", b" ", b"\n", b"{",
          b"}", b":", b",", b"%", b"@data\n", b"\x00", b"\xff\xfe", b"\r", b"\x1a", b"2" * 5000,
          b"(", b"),)"]  # fmt: skip


@st.composite
def mutated(draw, valid):
    """A valid file with one to four harms done to it."""
    content = bytearray(valid)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(content)))
        stop = draw(st.one_of(st.integers(start, start + 40), st.none()))  # none: to the end
        piece = content[start:stop]
        changed = [b"", piece * 2, flip(piece) if piece else b"", *ABSURD]
        content[start:stop] = draw(st.one_of(st.sampled_from(changed), st.binary(max_size=8)))
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
    """Return a function that gives `examples` files to a reader and counts them.

    A file is read, and what was read checked, or it is refused in a sentence that begins with its name.
    """

    def run(strategy, read, check):
        @settings(max_examples=examples, deadline=None, derandomize=True, database=None,
                  suppress_health_check=list(HealthCheck))  # fmt: skip
        @given(strategy)
        def each(content):
            with bounded():
                try:
                    found = read(content)
                except ValueError as error:
                    name, _, words = str(error).partition(": ")
                    assert name.endswith((".svm", ".arff", ".mat")) and len(words) > 10
                else:
                    check(found)
            tally(True)

        each()

    return run


@pytest.fixture
def small(monkeypatch):
    """Few features, labels and rows."""
    for name, value in {"FEATURES": FEATURES, "LABELS": LABELS, "ROWS": ROWS}.items():
        monkeypatch.setattr(mediamill, name, value)


@few_or_many(200, 3_000)
@pytest.mark.parametrize(
    "name, write",
    [
        pytest.param("x.svm", svm, marks=pytest.mark.case("parsers: mutated LIBSVM")),
        pytest.param("x.arff", arff, marks=pytest.mark.case("parsers: mutated ARFF")),
        pytest.param("x.arff", partial(arff, sparse=True), marks=pytest.mark.case("parsers: mutated sparse ARFF")),
    ],
)
def test_a_mutated_text_file_is_refused_or_read_to_numbers_that_it_can_hold(fuzz, small, name, write):
    rng = np.random.default_rng(0)
    features = np.round(rng.normal(size=(ROWS, FEATURES)), 3).astype(np.float32)
    features[rng.random(features.shape) < 0.3] = 0
    rows = features, (rng.random((ROWS, LABELS)) < 0.3).astype(np.uint8)

    def check(found):
        assert found.shape[1] == FEATURES + LABELS and np.isfinite(found).all()
        assert np.isin(found[:, FEATURES:], (0, 1)).all()
        kept = found[found.any(axis=1)]  # LIBSVM's format has no row of zeros alone
        if len(kept):
            again = read_text(name, write(kept[:, :FEATURES], kept[:, FEATURES:]))
            np.testing.assert_array_equal(again, kept)

    np.testing.assert_array_equal(read_text(name, write(*rows)), np.hstack(rows))
    fuzz(mutated(write(*rows)), partial(read_text, name), check)


@few_or_many(10, 200)  # where each example starts Python and loads scipy anew
@pytest.mark.case("parsers: mutated MATLAB file")
def test_a_mutated_matlab_file_is_refused_or_has_images(fuzz, monkeypatch, tmp_path):
    monkeypatch.setattr(nmnist, "_IMAGES", 3)
    content = {"train_x": np.random.default_rng(0).integers(0, 256, (3, 784), np.uint8), "train_y": np.eye(3, 10)}
    plain, packed = io.BytesIO(), io.BytesIO()
    savemat(plain, content)
    savemat(packed, content, do_compression=True)

    def read(content):
        (tmp_path / "x.mat").write_bytes(content)
        return nmnist._read_mat(tmp_path / "x.mat")[1]["train_x"]

    def check(found):
        assert found.shape == (3, 784) and found.dtype == np.uint8

    head, rest = plain.getvalue()[:300], plain.getvalue()[300:]
    fuzz(st.one_of(mutated(head).map(lambda harmed: harmed + rest), mutated(packed.getvalue())), read, check)


HUGE = 1 << 26
"""Bytes that a bomb unpacks to: enough that to unpack it would be noticed, and that making it takes no time."""

BOMBS = {
    "lines": ("x.svm.bz2", lambda: bz2.compress(b"\n" * HUGE), r"x\.svm\.bz2: it has more than 1000000 bytes"),
    "one line": ("x.svm.bz2", lambda: bz2.compress(b"1" * HUGE), r"x\.svm\.bz2: it has more than 1000000 bytes"),
    "rows": ("x.svm.bz2", lambda: bz2.compress(b"1 1:1\n" * 10_000), r"x\.svm\.bz2: more than 12 rows"),
    "idx": ("x.gz", lambda: gzip.compress(bytes(HUGE), 1), "it has more than 1000000 bytes"),
}


@pytest.mark.case("parsers: decompression bombs")
@pytest.mark.parametrize("kind", BOMBS)
def test_a_file_that_unpacks_to_far_more_than_is_expected_is_given_up(small, monkeypatch, kind):
    monkeypatch.setattr(download, "MOST", 10**6)
    name, packed, words = BOMBS[kind]
    content = packed()
    with bounded(), pytest.raises(ValueError, match=words):
        gunzip(content) if name == "x.gz" else read_text(name, content)
