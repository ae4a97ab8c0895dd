"""Canonical correlations of data that do not fit in memory: 5 GB of rows, less than 1 GB of memory.

    python examples/out_of_core.py                     # a file of 5 GB in the temporary folder, deleted afterwards
    python examples/out_of_core.py --gigabytes 0.5
    python examples/out_of_core.py --stream            # no file: the rows are made as the fit asks for them

The views have three canonical pairs of known correlation, spread over all columns, and columns of very different scale.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from cdfsg import StochasticGCCA

WIDTHS = (500, 500)
CORRELATIONS = (0.9, 0.7, 0.5)
CHUNK = 5_000
"""Rows made at a time: 20 MB."""


def chunks(rows: int, seed: int = 0) -> Iterator[np.ndarray]:
    """Chunks of rows, float32, both views side by side; the same ones for the same seed."""
    fixed = np.random.default_rng(seed)
    mirrors = [fixed.standard_normal(width).astype(np.float32) for width in WIDTHS]
    mirrors = [mirror / np.linalg.norm(mirror) for mirror in mirrors]
    scales = [10 ** fixed.uniform(-2, 2, width).astype(np.float32) for width in WIDTHS]
    rho = np.array(CORRELATIONS, dtype=np.float32)
    for number, begin in enumerate(range(0, rows, CHUNK)):
        rng = np.random.default_rng([seed, number])
        size = min(CHUNK, rows - begin)
        shared = rng.standard_normal((size, len(rho)), dtype=np.float32)
        views = []
        for width, mirror, scale in zip(WIDTHS, mirrors, scales, strict=True):
            view = rng.standard_normal((size, width), dtype=np.float32)
            view[:, : len(rho)] *= np.sqrt(1 - rho)
            view[:, : len(rho)] += np.sqrt(rho) * shared
            view -= np.outer(view @ mirror, 2 * mirror)  # a reflection spreads the pairs over the columns
            views.append(view * scale + 5 * scale)
        yield np.hstack(views)


def write(path: Path, rows: int) -> None:
    """Write the rows into a ``.npy`` file chunk by chunk."""
    np.lib.format.open_memmap(path, "w+", np.float32, (rows, sum(WIDTHS)))
    begin = 0
    for chunk in chunks(rows):
        # Mapped anew each time, so that what was written does not stay in this process's memory.
        np.load(path, mmap_mode="r+")[begin : begin + len(chunk)] = chunk
        begin += len(chunk)


def peak_megabytes() -> float:
    """Peak memory of this process so far, nan on Windows."""
    if sys.platform == "win32":
        return float("nan")
    import resource

    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, kB elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def main() -> None:
    """Make the data, fit, and print what was found and what it took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=float, default=5.0, help="size of the data (default: 5)")
    parser.add_argument("--stream", action="store_true", help="make the rows on the fly, in one pass")
    options = parser.parse_args()
    rows = int(options.gigabytes * 1e9 / 4 / sum(WIDTHS))
    model = StochasticGCCA(3, view_sizes=WIDTHS, batch_size=500, n_epochs=1, random_state=0, verbose=1)
    print(f"{rows:,} rows of {sum(WIDTHS)} float32 columns, {options.gigabytes:g} GB", flush=True)
    began = time.perf_counter()
    with threadpool_limits(1), tempfile.TemporaryDirectory() as folder:
        if options.stream:
            model.fit(chunks(rows))
        else:
            path = Path(folder) / "data.npy"
            write(path, rows)
            print(f"written in {time.perf_counter() - began:.0f} s", flush=True)
            began = time.perf_counter()
            model.fit(np.load(path, mmap_mode="r"))
    print(f"fitted in {time.perf_counter() - began:.0f} s, peak memory {peak_megabytes():.0f} MB")
    print("canonical correlations", model.canonical_correlations_.round(3), "of the model", CORRELATIONS)


if __name__ == "__main__":
    main()
