"""n-MNIST: MNIST's training images degraded in three ways, one view each."""

import hashlib
import io
import time
from pathlib import Path

import numpy as np

from cdfsg.datasets.download import data_dir, say, verify
from cdfsg.datasets.matlab import read_matlab
from cdfsg.datasets.mnist import load_images
from cdfsg.datasets.views import Provenance, Views
from cdfsg.files import named_folder, write_atomically

ENVIRONMENT = "CDFSG_NMNIST_DIR"
FILES = ("mnist-with-awgn.mat", "mnist-with-motion-blur.mat", "mnist-with-reduced-contrast-and-awgn.mat")
CACHE = "nmnist-train-views.npy"
# Of the 60,000 x 2,352 pixels as bytes, row by row.
CHECKSUM = "sha256:bd76680c0ce8cdef93dee244ca497d4680c801d2b9689b9f5e584d8a990f3af8"
SEED = 2017

_SIDE, _DIGITS, _WHITE, _CHUNK = 28, 10, 255.0, 1000
_PIXELS, _IMAGES = _SIDE * _SIDE, 60_000
# Of a published file: 70,000 images, and ten float64 for each.
_LARGEST = 70_000 * (_PIXELS + 8 * _DIGITS) + (1 << 16)


def load_nmnist() -> Views:
    """n-MNIST's training images as three views: noise, motion blur, and low contrast with noise.

    If the environment variable ``CDFSG_NMNIST_DIR`` names a folder with the three published files
    (``mnist-with-awgn.mat``, ``mnist-with-motion-blur.mat``,
    ``mnist-with-reduced-contrast-and-awgn.mat``), they are read, and the kind is ``original``.
    Otherwise the views are made from MNIST in some seconds, see `degrade`, and the kind is ``derived``.
    The result, 141 MB, is kept in `cdfsg.datasets.download.data_dir` and mapped into memory.

    60,000 x (784 + 784 + 784) uint8, scale 1/255 (so pixels lie in [0, 1] before the mean is subtracted), centred;
    each view lists its 28 x 28 pixels row by row; row ``i`` of all views is image ``i`` of MNIST.

    References
    ----------
    S. Basu et al.: Learning sparse feature representations using probabilistic quadtrees and deep
    belief nets, Neural Processing Letters 45 (2017).
    """
    chosen = named_folder(ENVIRONMENT)
    data, provenance = _read_published(chosen) if chosen else _make_or_map()
    return Views("nmnist", data, (_PIXELS,) * 3, 1 / _WHITE, centred=True, provenance=provenance)


def degrade(images: np.ndarray, literal: bool = False) -> np.ndarray:
    """The three degraded copies of each image, side by side.

    Its authors describe n-MNIST in words: (1) white Gaussian noise with a signal-to-noise ratio of
    9.5; (2) linear motion by 5 pixels at 15 degrees counter-clockwise; (3) the contrast range halved
    and noise with a ratio of 12. The mean and standard deviation of all pixels in [0, 1] of their published files
    decide the rest:

    ===================  ===============  ==============  ==============
    pixels               published files  here            if `literal`
    ===================  ===============  ==============  ==============
    (1) noise            0.2294, 0.3054   0.2294, 0.3054  0.1627, 0.2919
    (2) motion blur      0.1306, 0.2475   0.1306, 0.2475  0.1307, 0.2443
    (3) contrast, noise  0.1505, 0.2038   0.1505, 0.2038  0.0787, 0.1512
    ===================  ===============  ==============  ==============

    So the ratios are decibels below a signal of power 1 with pixels in [0, 1] (what MATLAB's ``awgn``
    assumes unless it is told to measure the signal); the images were transposed when they were blurred
    (MATLAB fills matrices column by column), which is 75 degrees on the upright image; and the halved
    pixels were rounded before noise was added. The choice matters: the sum of the five largest
    generalised eigenvalues of the three-view GCCA, the optimum of -Fval, is 9.709 here and 9.987 if
    `literal`; for ten it is 19.12 and 19.96.

    The images are uint8 of shape (N, 28, 28), upright on a background of 0, the result uint8 of shape (N, 2352). If
    `literal`, the words are read naively: the power is measured for each image, the upright image blurred, nothing
    rounded before the end.
    """
    n = len(images)
    result = np.empty((n, 3, _SIDE, _SIDE), np.uint8)
    # One stream per noisy view, so that neither depends on what the other draws.
    awgn, contrast = (np.random.Generator(np.random.PCG64([SEED, view])) for view in (1, 3))
    kernel = motion_kernel(5, 15)
    began = told = time.monotonic()
    for start in range(0, n, _CHUNK):
        chunk = images[start : start + _CHUNK].astype(np.float64)
        part = result[start : start + _CHUNK]
        half = chunk / 2 if literal else to_bytes(chunk / 2).astype(np.float64)
        part[:, 0] = to_bytes(with_noise(chunk, 9.5, awgn, measured=literal))
        part[:, 1] = to_bytes(blur(chunk, kernel if literal else kernel.T))
        part[:, 2] = to_bytes(with_noise(half, 12, contrast, measured=literal))
        now = time.monotonic()
        if now - told > 5:
            say(f"making n-MNIST: {start + len(chunk)} of {n} images, {now - began:.0f} s")
            told = now
    return result.reshape(n, 3 * _PIXELS)


def with_noise(images: np.ndarray, decibels: float, rng: np.random.Generator, measured: bool) -> np.ndarray:
    """Images plus white Gaussian noise of a given signal-to-noise ratio.

    The power of the signal is the mean square of each image, or if it is not measured that of an all-white image.
    """
    power = (images**2).mean(axis=(1, 2), keepdims=True) if measured else _WHITE**2
    return images + np.sqrt(power * 10 ** (-decibels / 10)) * rng.standard_normal(images.shape)


def blur(images: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    """Correlate each image with a kernel, black beyond the border (MATLAB's ``imfilter``)."""
    from scipy import ndimage

    return ndimage.correlate(images, kernel[np.newaxis], mode="constant", cval=0.0)


def motion_kernel(length: float, degrees: float) -> np.ndarray:
    """Kernel of a linear motion, an anti-aliased line: what MATLAB's ``fspecial('motion', ...)`` gives.

    A pixel's weight falls linearly from 1 to 0 with its distance, up to 1, from a line segment through the centre. The
    length is in pixels; the angle counter-clockwise from the horizontal, at least 0, below 90.
    """
    if not (length >= 1 and 0 <= degrees < 90):
        raise ValueError(f"length={length}, degrees={degrees}: expected at least 1, and an angle in [0, 90)")
    half = (length - 1) / 2
    cos, sin = np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))
    # One half of the line, seen from the centre; y counts upwards.
    tolerance = length * np.finfo(float).eps  # keeps a row or column that only rounding would add out
    x, y = np.meshgrid(*(np.arange(int(half * part + 1 - tolerance) + 1) for part in (cos, sin)))
    across = y * cos - x * sin
    # The end counts for the pixels beyond the circle through it: MATLAB's rule, which makes the weight of
    # some of them a little smaller than the distance from the segment would.
    beyond = np.hypot(x, y) >= half
    along = half - np.abs((x + across * sin) / cos)
    quarter = np.maximum(1 - np.where(beyond, np.hypot(across, along), np.abs(across)), 0)
    rows, columns = quarter.shape
    kernel = np.zeros((2 * rows - 1, 2 * columns - 1))
    kernel[rows - 1 :, : columns] = quarter[:, ::-1]
    kernel[:rows, columns - 1 :] = quarter[::-1]
    return kernel / kernel.sum()


def to_bytes(values: np.ndarray) -> np.ndarray:
    """Pixels rounded, halves upwards, and clipped to 0..255."""
    return np.clip(np.floor(values + 0.5), 0, _WHITE).astype(np.uint8)


def _make_or_map() -> tuple[np.ndarray, Provenance]:
    provenance = Provenance(f"made from MNIST's training images, seed {SEED}", CHECKSUM, "derived")
    path = data_dir() / CACHE
    if path.exists():
        try:
            return _map(path), provenance
        except (OSError, ValueError) as error:
            say(f"{path} is damaged or was made otherwise, and is made anew: {error}")
    data = degrade(load_images())
    try:
        verify(data.data.cast("B"), CHECKSUM)
    except ValueError as error:
        remedy = f"numpy {np.__version__} may draw other normal numbers: install the versions of requirements.lock"
        found = f"n-MNIST as made here differs from what it was when this code was written: {error}"
        raise ValueError(f"{found}; {remedy}") from error
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(data))
    try:
        # Joined once: a buffer would hold a second copy.
        write_atomically(path, b"".join((header.getvalue(), data.data.cast("B"))))
    except OSError as error:
        say(f"{path} cannot be written, so n-MNIST will be made again next time: {error}")
        return data, provenance
    say(f"{path} is in place, {data.nbytes} bytes")
    return _map(path), provenance


def _map(path: Path) -> np.ndarray:
    """The verified array of the cache, read-only, its pages shared with other processes."""
    try:
        with path.open("rb") as stream:
            # The header of a later version may state gigabytes, for which numpy makes room.
            if (version := np.lib.format.read_magic(stream)) != (1, 0):
                raise ValueError(f"version {version}, expected (1, 0)")
        data = np.lib.format.open_memmap(path, mode="r")
    except Exception as error:  # a damaged header can raise nearly anything
        raise ValueError(f"it has no readable header: {str(error) or repr(error)}") from error
    if data.dtype != np.uint8 or data.shape != (_IMAGES, 3 * _PIXELS) or not data.flags.c_contiguous:
        raise ValueError(f"{data.dtype} of shape {data.shape}, expected uint8 of shape {(_IMAGES, 3 * _PIXELS)}")
    verify(data.data.cast("B"), CHECKSUM)
    return data


def _read_published(folder: Path) -> tuple[np.ndarray, Provenance]:
    data = np.empty((_IMAGES, 3, _PIXELS), np.uint8)
    digest = hashlib.sha256()
    digits: list[np.ndarray] = []
    for view, name in enumerate(FILES):
        raw, content = _read_mat(folder / name)
        digest.update(raw)
        data[:, view] = content["train_x"]
        digits += [content["train_y"]] if "train_y" in content else []
        # A sample must be the same digit in all views, or their correlations mean nothing.
        if digits and not np.array_equal(digits[0], digits[-1]):
            raise ValueError(f"{folder / name}: train_y differs from that of {FILES[0]}: expected the same row order")
    source = f"published n-MNIST, {', '.join(FILES)}"
    return data.reshape(_IMAGES, 3 * _PIXELS), Provenance(source, f"sha256:{digest.hexdigest()}", "original")


def _read_mat(path: Path) -> tuple[bytes, dict[str, np.ndarray]]:
    try:
        with path.open("rb") as stream:
            raw = stream.read(_LARGEST + 1)
    except OSError as error:
        expected = f"{ENVIRONMENT} should name a folder with {', '.join(FILES)}"
        remedy = "unset it to have n-MNIST made from MNIST"
        raise FileNotFoundError(f"{path}: {error.strerror}: {expected}; {remedy}") from error
    try:
        if len(raw) > _LARGEST:
            raise ValueError(f"it has more than {_LARGEST} bytes")
        content = read_matlab(raw, {"train_x": _IMAGES * _PIXELS, "train_y": _IMAGES * _DIGITS})
    except ValueError as error:
        raise ValueError(f"{path}: not a MATLAB file that can be read ({error}); get it anew") from error
    pixels, digits = content.get("train_x"), content.get("train_y")
    if pixels is None or pixels.shape != (_IMAGES, _PIXELS) or pixels.dtype != np.uint8:
        found = "no train_x" if pixels is None else f"train_x is {pixels.dtype} of shape {pixels.shape}"
        raise ValueError(f"{path}: {found}: expected uint8 of shape {(_IMAGES, _PIXELS)}; is it n-MNIST?")
    if digits is not None and digits.shape[:1] != (_IMAGES,):
        raise ValueError(f"{path}: train_y is of shape {digits.shape}: expected a row per image; is it n-MNIST?")
    return raw, content
