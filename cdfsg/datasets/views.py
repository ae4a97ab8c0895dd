"""Multi-view data kept in its small native type, served as centred floating-point batches."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from cdfsg.checks import require_flag, require_positive, require_sizes, require_whole
from cdfsg.linalg import sym, view_slices

KINDS = ("original", "derived", "synthetic")

# Rows looked at or turned to float64 at a time: 6 MB at MNIST's 784 columns.
_CHUNK = 1024


@dataclass(frozen=True)
class Provenance:
    """Where the numbers of a data set come from.

    The kind is one of `KINDS`: the data named, data computed from them, or drawn from a known model.
    """

    source: str  # a file, a package, a generator with its parameters
    checksum: str  # ``"algorithm:hex digest"`` of the file or of the data
    kind: str

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind={self.kind!r}: expected one of {', '.join(KINDS)}")


@dataclass(frozen=True, eq=False, repr=False)
class Views:
    """Samples of several views side by side, stored small and served as floating-point values.

    Row ``i`` stands for the values ``scale * data[i] - mean``, where the mean is that of all rows.

    Parameters
    ----------
    name : str
        Name of the data set, used in messages.
    data : ndarray, shape (N, n)
        Finite integers or floats, at least 2 rows. Kept without a copy if C-contiguous, and then not
        to be changed by the caller. It may be a memory-mapped file larger than memory, as of
        ``np.load(path, mmap_mode="r")``.
    sizes : tuple of int
        Number of columns of each view, from left to right; they sum to ``n``.
    scale : float
        Positive factor from stored to actual values, such as ``1 / 255`` for pixels.
    centred : bool
        Whether the mean is subtracted; ``dataclasses.replace`` gives the same data with and without.
    provenance : Provenance
        Where the data come from.
    """

    name: str
    data: np.ndarray
    sizes: tuple[int, ...]
    scale: float
    centred: bool
    provenance: Provenance

    def __post_init__(self) -> None:
        def require(condition: bool, text: str) -> None:
            if not condition:
                raise ValueError(f"{self.name}: {text}")

        data, shape = self.data, np.shape(self.data)
        plain = isinstance(data, np.ndarray) and not isinstance(data, np.ma.MaskedArray | np.matrix)
        advice = "expected a plain numpy array; drop masked rows, turn a sparse matrix into .toarray()"
        require(plain, f"data of type {type(data).__name__}: {advice}")
        advice = 'expected a Provenance, as Provenance("my measurements", "none", "original")'
        require(isinstance(self.provenance, Provenance), f"provenance={self.provenance!r}: {advice}")
        require_flag(centred=self.centred)
        rows = len(shape) == 2 and shape[0] >= 2
        require(rows, f"data of shape {shape}: expected (N, n) with N >= 2, one row per sample")
        require(data.dtype.kind in "iuf", f"data of type {data.dtype}: expected integers or floats; convert it first")
        require_sizes(self.sizes, shape[1])
        require_positive(scale=self.scale)
        data = np.ascontiguousarray(data).view()
        for start in range(0, len(data), _CHUNK) if data.dtype.kind == "f" else ():  # it may be larger than memory
            chunk = data[start : start + _CHUNK]
            for row, column in np.argwhere(~np.isfinite(chunk))[:1]:
                found = f"data[{start + row}, {column}] is {chunk[row, column]}"
                require(False, f"{found}: expected finite values; drop or fill in such rows")
        # The mean and the covariance are cached, so the data they describe must not change.
        data.flags.writeable = False
        object.__setattr__(self, "data", data)
        object.__setattr__(self, "sizes", tuple(map(int, self.sizes)))

    def __repr__(self) -> str:
        """One line: name, shape, type, view widths, scale, centring and kind."""
        views = "+".join(map(str, self.sizes))
        centred = "centred" if self.centred else "not centred"
        return (
            f"Views({self.name!r}, {self.n_samples} x {self.n_features} {self.data.dtype}, views {views}, "
            f"scale {self.scale:.4g}, {centred}, {self.provenance.kind})"
        )

    @property
    def n_samples(self) -> int:
        """Number ``N`` of rows."""
        return len(self.data)

    @property
    def n_features(self) -> int:
        """Number ``n`` of columns of all views together."""
        return int(self.data.shape[1])

    @property
    def n_views(self) -> int:
        """Number of views."""
        return len(self.sizes)

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """The columns of each view."""
        return view_slices(self.sizes)

    @cached_property
    def mean(self) -> np.ndarray:
        """What is subtracted from every scaled row: float64, shape (n,), zeros if not centred."""
        mean = np.zeros(self.n_features)
        if self.centred:
            mean = self.scale * (self.data.sum(axis=0, dtype=np.float64) / self.n_samples)
        mean.flags.writeable = False
        return mean

    @cached_property
    def covariance(self) -> np.ndarray:
        """Second moment ``sum_i row_i row_i' / N``, the covariance if centred: float64, shape (n, n)."""
        total = np.zeros((self.n_features, self.n_features))
        for start in range(0, self.n_samples, _CHUNK):
            chunk = self.rows(range(start, min(start + _CHUNK, self.n_samples)), np.float64)
            total += chunk.T @ chunk
        covariance = sym(total / self.n_samples)
        covariance.flags.writeable = False
        return covariance

    def rows(self, index: ArrayLike, dtype: DTypeLike = np.float32) -> np.ndarray:
        """Values ``scale * data[index] - mean`` of l rows, a new array of shape (l, n) of a floating-point type.

        The index is a list of row numbers in ``0..N-1``, in any order, repeats allowed.
        """
        chosen = np.asarray(index)
        if chosen.ndim != 1 or (chosen.size and chosen.dtype.kind not in "iu"):
            found = f"index of shape {chosen.shape} and type {chosen.dtype}"
            raise ValueError(f"{found}: expected a 1-d list of ints; np.flatnonzero turns a mask into one")
        outside = chosen[(chosen < 0) | (chosen >= self.n_samples)]
        if outside.size:
            raise IndexError(f"row {outside[0]} of {self.name!r}: expected 0..{self.n_samples - 1}")
        kind = np.dtype(dtype)
        if kind.kind != "f":
            raise ValueError(f"dtype={kind}: expected a floating-point type such as float32 or float64")
        # float64 data with a large mean would lose digits in a float32 subtraction; small integers do not.
        work = np.result_type(self.data.dtype, kind)
        stored = self.data.take(chosen.astype(np.intp, copy=False), axis=0)
        values = stored.astype(work)  # a cast and a product in place beat a casting product
        values *= work.type(self.scale)
        if self.centred:
            values -= self.mean.astype(work, copy=False)
        return values.astype(kind, copy=False)

    def batches(
        self, batch_size: int, seed: int | Sequence[int] | None, dtype: DTypeLike = np.float32
    ) -> Iterator[np.ndarray]:
        """One pass over the data: ``floor(N / l)`` new arrays of shape (l, n), see `batch_indices` and `rows`."""
        return (self.rows(index, dtype) for index in self.batch_indices(batch_size, seed))

    def batch_indices(self, batch_size: int, seed: int | Sequence[int] | None) -> np.ndarray:
        """Row numbers of the batches of one pass, shape (floor(N / l), l).

        Parameters
        ----------
        batch_size : int
            Rows ``l`` per batch, ``1..N``. The last ``N mod l`` rows of the order are left out.
        seed : int, sequence of int or None
            Consecutive rows of the permutation that ``numpy.random.default_rng(seed)`` draws. None: rows at
            a stride, as the authors of RSG+ read them; batch ``b`` of ``K`` has ``b, b + K, b + 2 K, ...``
        """
        require_whole("batch_size", batch_size, 1, self.n_samples, f"the rows of {self.name!r}")
        n, size = self.n_samples, int(batch_size)
        used = n // size * size
        if seed is None:
            return np.arange(used).reshape(size, -1).T
        try:
            order = np.random.default_rng(seed).permutation(n)
        except (TypeError, ValueError) as error:
            raise ValueError(f"seed={seed!r}: expected None or whole numbers of at least 0 ({error})") from error
        return order[:used].reshape(-1, size)
