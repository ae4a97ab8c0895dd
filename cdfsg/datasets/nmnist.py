"""n-MNIST: MNIST's training images degraded in three ways, one view each."""

from pathlib import Path

import numpy as np

from cdfsg.datasets.download import Source, obtain, sha256
from cdfsg.datasets.matlab import read_matlab
from cdfsg.datasets.mnist import load_images
from cdfsg.datasets.views import Provenance, Views
from cdfsg.files import named_folder, npy

ENVIRONMENT = "CDFSG_NMNIST_DIR"
FILES = ("mnist-with-awgn.mat", "mnist-with-motion-blur.mat", "mnist-with-reduced-contrast-and-awgn.mat")
FILE = "nmnist-train-views.npy"
FILE_CHECKSUM = "sha256:faaf6fdd77c23079c09ed35505dca4edd364403df76892a39a72d09f677e165e"
# Of the 60,000 x 2,352 pixels as bytes, row by row.
CHECKSUM = "sha256:bd76680c0ce8cdef93dee244ca497d4680c801d2b9689b9f5e584d8a990f3af8"
SEED = 2017

_SIDE, _DIGITS, _WHITE, _CHUNK = 28, 10, 255.0, 1000
_PIXELS, _IMAGES = _SIDE * _SIDE, 60_000


def load_nmnist() -> Views:
    """n-MNIST's training images as three views: noise, motion blur, and low contrast with noise.

    If the environment variable ``CDFSG_NMNIST_DIR`` names a folder with the three published files,
    ``mnist-with-awgn.mat``, ``mnist-with-motion-blur.mat`` and
    ``mnist-with-reduced-contrast-and-awgn.mat``, the kind is ``original``.
    Otherwise the views are made from MNIST in some seconds, see `degrade`, and the kind is ``derived``.
    They are kept in `cdfsg.datasets.download.data_dir` (141 MB) and mapped into memory.

    60,000 x (784 + 784 + 784) uint8, scale 1/255 to [0, 1], centred; each view lists its 28 x 28
    pixels row by row; row ``i`` of all views is image ``i`` of MNIST. Source: S. Basu et al., Learning
    sparse feature representations using probabilistic quadtrees and deep belief nets, Neural
    Processing Letters 45 (2017).
    """
    if chosen := named_folder(ENVIRONMENT):
        data, provenance = _read_published(chosen)
    else:
        how = f"MNIST (numpy {np.__version__} draws the noise; that of requirements.lock gives the checksum)"
        path = obtain(FILE, FILE_CHECKSUM, [Source(how, lambda: npy(degrade(load_images())))])
        data = np.load(path, mmap_mode="r")  # processes share its pages
        provenance = Provenance(f"made from MNIST's training images, seed {SEED}", CHECKSUM, "derived")
    return Views("nmnist", data, (_PIXELS,) * 3, 1 / _WHITE, centred=True, provenance=provenance)


def degrade(images: np.ndarray) -> np.ndarray:
    """The three degraded copies of each image, side by side.

    The authors describe n-MNIST in words: (1) white Gaussian noise with a signal-to-noise ratio of
    9.5; (2) linear motion by 5 pixels at 15 degrees counter-clockwise; (3) the contrast range halved
    and noise with a ratio of 12. The mean and deviation of all pixels of their files decide the rest:
    (1) 0.2294, 0.3054, (2) 0.1306, 0.2475 and (3) 0.1505, 0.2038, as here.
    So the ratios are decibels below a signal of power 1 with pixels in [0, 1], as MATLAB's ``awgn``
    assumes; the images were transposed when they were blurred (MATLAB fills matrices by columns),
    which is 75 degrees on the upright image; and halved pixels were rounded before noise was added.
    The choice matters: the sum of the five largest generalised eigenvalues of the three-view GCCA, the optimum of
    -Fval, is 9.709 here, and was 9.987 with the power of each image, upright blur and no such rounding.

    The images are uint8 of shape (N, 28, 28), upright on black; the result has shape (N, 2352).
    """
    n = len(images)
    result = np.empty((n, 3, _SIDE, _SIDE), np.uint8)
    # One stream per noisy view, so that neither depends on what the other draws.
    awgn, contrast = (np.random.Generator(np.random.PCG64([SEED, view])) for view in (1, 3))
    kernel = motion_kernel(5, 15)
    for start in range(0, n, _CHUNK):
        chunk = images[start : start + _CHUNK].astype(np.float64)
        part = result[start : start + _CHUNK]
        half = to_bytes(chunk / 2).astype(np.float64)
        part[:, 0] = to_bytes(with_noise(chunk, 9.5, awgn))
        part[:, 1] = to_bytes(blur(chunk, kernel.T))
        part[:, 2] = to_bytes(with_noise(half, 12, contrast))
    return result.reshape(n, 3 * _PIXELS)


def with_noise(images: np.ndarray, decibels: float, rng: np.random.Generator) -> np.ndarray:
    """Images plus white Gaussian noise of a ratio to the power of an all-white image."""
    return images + np.sqrt(_WHITE**2 * 10 ** (-decibels / 10)) * rng.standard_normal(images.shape)


def blur(images: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    """Correlate each image with a kernel, black beyond the border (MATLAB's ``imfilter``)."""
    from scipy import ndimage

    return ndimage.correlate(images, kernel[np.newaxis], mode="constant", cval=0.0)


def motion_kernel(length: float, degrees: float) -> np.ndarray:
    """Kernel of a linear motion, an anti-aliased line, as of MATLAB's ``fspecial('motion', ...)``.

    A pixel's weight is 1 less its distance, or 0, from a segment through the centre, `length` >= 1
    pixels long, at an angle in [0, 90) counter-clockwise from the horizontal.
    """
    half = (length - 1) / 2
    cos, sin = np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))
    tolerance = length * np.finfo(float).eps  # or rounding might add a row or column
    right, up = (int(half * part + 1 - tolerance) for part in (cos, sin))
    x, y = np.meshgrid(np.arange(-right, right + 1), np.arange(up, -up - 1, -1))
    across = y * cos - x * sin
    # Beyond the circle through the ends, MATLAB takes the distance from the nearer end.
    beyond = np.hypot(x, y) >= half
    along = half - np.abs((x + across * sin) / cos)
    kernel = np.maximum(1 - np.where(beyond, np.hypot(across, along), np.abs(across)), 0)
    return kernel / kernel.sum()


def to_bytes(values: np.ndarray) -> np.ndarray:
    """Pixels rounded, halves upwards, and clipped to 0..255."""
    return np.clip(np.floor(values + 0.5), 0, _WHITE).astype(np.uint8)


def _read_published(folder: Path) -> tuple[np.ndarray, Provenance]:
    files = [_read_mat(folder / name) for name in FILES]
    digits = [content["train_y"] for _, content in files if "train_y" in content]
    # A sample must be the same digit in all views, or their correlations mean nothing.
    if not all(np.array_equal(digits[0], other) for other in digits):
        raise ValueError(f"{folder}: train_y differs from file to file: expected the same row order")
    data = np.hstack([content["train_x"] for _, content in files])
    checksum = sha256(b"".join(raw for raw, _ in files))
    return data, Provenance(f"published n-MNIST, {', '.join(FILES)}", checksum, "original")


def _read_mat(path: Path) -> tuple[bytes, dict[str, np.ndarray]]:
    try:
        raw = path.read_bytes()
        content = read_matlab(raw, {"train_x": _IMAGES * _PIXELS, "train_y": _IMAGES * _DIGITS})
    except OSError as error:
        remedy = f"{ENVIRONMENT} should name a folder with {', '.join(FILES)}"
        raise OSError(f"{path}: {error.strerror}; {remedy}") from error
    except Exception as error:  # a damaged file can raise nearly anything
        remedy = f"get it anew, or unset {ENVIRONMENT} to make n-MNIST of MNIST"
        raise ValueError(f"{path}: not a MATLAB file that can be read ({error}); {remedy}") from error
    pixels = content.get("train_x")
    if pixels is None or pixels.shape != (_IMAGES, _PIXELS) or pixels.dtype != np.uint8:
        found = "no train_x" if pixels is None else f"train_x is {pixels.dtype} of shape {pixels.shape}"
        raise ValueError(f"{path}: {found}: expected uint8 of shape {(_IMAGES, _PIXELS)}; is it n-MNIST?")
    return raw, content
