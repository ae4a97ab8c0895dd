"""The guard of the command line: it needs the repository and the packages of the extra `suite`."""

import sys
from importlib.util import find_spec

from cdfsg.files import PAPER

PACKAGES = ("httpx2", "ipywidgets", "jinja2", "matplotlib", "nbformat", "pandas", "papermill", "unearth")

_NEEDS = "cdfsg: python -m cdfsg needs"
if not PAPER.is_dir():
    work = "the estimator, the solvers and the theory work without"
    sys.exit(f"{_NEEDS} a checkout of the repository, prepared by `make setup`; {work}")
if absent := [name for name in PACKAGES if find_spec(name) is None]:
    remedy = "run `make setup`, or `pip install -e '.[suite]'`"
    sys.exit(f"{_NEEDS} {', '.join(absent)}: {remedy}")
