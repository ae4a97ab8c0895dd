"""The numerical tests and the notebooks under each kernel of OpenBLAS that this processor has; `make kernels`.

    .venv/bin/python benchmarks/kernels.py                                     all kernels, tests and notebooks
    .venv/bin/python benchmarks/kernels.py --parts tests --kernels Prescott    the tests under one of them

A kernel is OpenBLAS's code for one family of processors.  Kernels add in other orders, some with fused multiplications,
so a test that passes under all of them does not hang on the last digits of one processor.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence

from cdfsg.files import ROOT

CORETYPE = "OPENBLAS_CORETYPE"
KERNELS = ("SkylakeX", "Haswell", "Sandybridge", "Nehalem", "Prescott")
"""From the newest to the oldest; an x86-64 processor has those from its own on."""
NAMES = {"Haswell": {"Haswell", "Zen"}, "Zen": {"Haswell", "Zen"}, "Prescott": {"Prescott", "Katmai"}}
"""What OpenBLAS says of a kernel in force, where that may be another name than the one it was asked by."""
TESTS = (
    "test_linalg.py", "test_metrics.py", "test_penalty.py", "test_problems.py", "test_eigenproblems.py",
    "solvers", "theory", "estimator", "torture/test_numbers.py", "paper/test_run.py", "paper/test_exact.py",
    "test_benchmarks.py", "paper/report/test_explore.py",
)  # fmt: skip
"""The tests that compare numbers out of BLAS, within ``tests``."""
PARTS = {
    "tests": [f"tests/{name}" for name in TESTS],
    "notebooks": ["--nbval", "--nbval-current-env", "--nbval-cell-timeout=300", "notebooks"],
}
_ASK = """
import json, numpy, scipy.linalg, threadpoolctl
print(json.dumps([b["architecture"] for b in threadpoolctl.threadpool_info() if b["internal_api"] == "openblas"]))
"""


def has(kernel: str) -> bool:
    """Whether numpy and scipy get this kernel here; OpenBLAS silently takes another for one that it lacks."""
    told = set(json.loads(subprocess.check_output([sys.executable, "-c", _ASK], env=os.environ | {CORETYPE: kernel})))
    return bool(told) and told <= NAMES.get(kernel, {kernel})


def passes(kernel: str, part: str) -> bool:
    """Run a part under a kernel and say how it went; all that pytest says is shown where it failed."""
    began = time.monotonic()
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadfile", "-p", "no:cacheprovider"]
    environment = os.environ | {CORETYPE: kernel}
    told = subprocess.run([*command, *PARTS[part]], cwd=ROOT, env=environment, capture_output=True, text=True)
    if told.returncode:
        print(told.stdout, told.stderr)
    print(f"{kernel:12}{part:10}{told.stdout.strip().rpartition(chr(10))[2]}, {time.monotonic() - began:.0f} s in all")
    sys.stdout.flush()
    return told.returncode == 0


def main(arguments: Sequence[str]) -> int:
    """Run the parts under the kernels; 0 if all pass, or if BLAS has no kernels to choose from."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", nargs="*", default=[], help="those to take; by default all that are here")
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=PARTS)
    given = parser.parse_args(arguments)
    known = [kernel for kernel in KERNELS if has(kernel)]
    if not known:
        print("BLAS has no kernels to choose from here: it is not OpenBLAS for x86-64.")
    elif not set(given.kernels) <= set(known):
        parser.error(f"--kernels {' '.join(given.kernels)}: this processor has {' '.join(known)}")
    chosen = [kernel for kernel in known if kernel in (given.kernels or known)]
    return int(not all([passes(kernel, part) for kernel in chosen for part in given.parts]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
