"""Python in a process of its own, on this checkout or on a copy of it."""

import itertools
import os
import shutil
import subprocess
import sys

from cdfsg.files import ROOT

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def python(*arguments, root=ROOT, cwd=None, limit=None, **environment):
    """Run Python on the package in `root`; variables given as None are taken out of the environment."""
    merged = {**os.environ, **ONE_THREAD, "PYTHONPATH": str(root), **environment}
    return subprocess.run(
        [sys.executable, *map(str, arguments)], cwd=cwd or root, capture_output=True, encoding="utf-8",
        errors="replace", timeout=900, preexec_fn=limit,
        env={name: value for name, value in merged.items() if value is not None},
    )  # fmt: skip


def copy(target, *names):
    """Copy folders and files of the project, without compiled modules, into a folder."""
    for name in names:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, target)
    return target


def replace_and(act, number, before):
    """An `os.replace` that acts before or after the write of this number gets its name, as if it were killed there."""
    plain, calls = os.replace, itertools.count(1)

    def replaced(source, target):
        now = next(calls) == number
        if now and before:
            act()
        plain(source, target)
        if now and not before:
            act()

    return replaced
