"""Arrays out of MATLAB's files, which scipy reads in a process of its own.

scipy's reader is compiled code that believes a file: a damaged one can crash it, or make it ask for gigabytes.
So this file is run as a script, of bounded memory and time; the user's own script is not run again.
"""

import io
import json
import math
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress

import numpy as np

TIMEOUT = 60.0  # seconds; a file of n-MNIST takes one
MEMORY = 1 << 30  # bytes of address space; a file of n-MNIST takes a quarter of it


def read_matlab(content: bytes, largest: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Arrays of numbers in a MATLAB file up to format 7.

    `largest` has the variables to read, with the most values of each; the result has those that are there.
    A damaged file raises an error of nearly any kind, or may give another shape or type.
    """
    # -P keeps this file's neighbours from being taken for other modules.
    command = [sys.executable, "-P", "-W", "ignore", __file__, json.dumps(dict(largest))]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}  # threads would take address space
    done = subprocess.run(command, input=content, capture_output=True, env=environment, timeout=TIMEOUT)
    if done.returncode:
        told = done.stderr.decode(errors="replace").strip()
        last = told.rpartition("\n")[2]
        raise ValueError(last or f"its reader crashed with status {done.returncode}")
    with np.load(io.BytesIO(done.stdout), allow_pickle=False) as arrays:
        return dict(arrays)


def _child() -> None:
    """Read a file from standard input and write its arrays to standard output."""
    from scipy.io import loadmat, whosmat

    with suppress(ImportError, OSError, ValueError):  # no such limit here, or a lower one already
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash leaves no file behind
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    content, largest = io.BytesIO(sys.stdin.buffer.read()), json.loads(sys.argv[1])
    # First, as a few bytes can state any shape; a list, as a damaged file can have a name twice.
    for name, shape, kind in whosmat(content):
        number = kind in ("double", "single", "logical") or "int" in kind
        most = largest.get(name)
        if most and not (number and math.prod(map(int, shape)) <= most):
            raise ValueError(f"{name} is {kind} of shape {shape}, expected at most {most} numbers")
    content.seek(0)
    found = loadmat(content, variable_names=list(largest))
    np.savez(sys.stdout.buffer, **{name: found[name] for name in largest if name in found})


if __name__ == "__main__":
    _child()
