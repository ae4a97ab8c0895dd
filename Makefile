# `make help` lists the targets. Needs make, a POSIX shell and Python 3.11 or later; the rest goes into .venv.

PYTHON ?= python3
PY := .venv/bin/python

# One thread per process and a fixed hash seed: the numbers must not depend on the machine's core count.
export OMP_NUM_THREADS = 1
export OPENBLAS_NUM_THREADS = 1
export MKL_NUM_THREADS = 1
export VECLIB_MAXIMUM_THREADS = 1
export PYTHONHASHSEED = 0
# No display is needed. A notebook asks for its pictures itself, with `%matplotlib inline`.
export MPLBACKEND = Agg

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup data reproduce multiverse quick report lab test kernels mutants torture bench clean

# .venv is made anew for a PYTHON that is given and is not its own.
WHICH := import sys; print(sys.base_prefix, sys.version)
ifeq ($(origin PYTHON),command line)
ifneq ($(shell "$(PYTHON)" -c '$(WHICH)'),$(shell test -x $(PY) && $(PY) -c '$(WHICH)'))
.PHONY: .venv/ready
endif
endif

# Install a dependency group of pyproject.toml; the pip of Python 3.11 cannot do it by itself.
define install-group
$(PY) -m pip install --quiet --disable-pip-version-check $$($(PY) -c 'import tomllib; \
  print(*tomllib.load(open("pyproject.toml", "rb"))["dependency-groups"]["$(1)"])')
endef

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{ printf "%-17s %s\n", $$1, $$2 }'
	@echo "Another interpreter for .venv: make setup PYTHON=/path/to/python3"

setup: .venv/ready ## make .venv with the locked packages and this one

data: setup ## download and check the data sets (a minute)
	$(PY) -m cdfsg data

# ONLY=table=4, or dataset=..., merit=..., keeps some of the tables.
ONLY ?=
reproduce: setup ## run all of the paper's tables and figures, judge them, execute the notebooks (18 minutes)
	$(PY) -m cdfsg reproduce --only "$(ONLY)"

multiverse: setup ## score every reading of what the paper leaves open on whole tables (75 minutes)
	$(PY) -m cdfsg multiverse

quick: setup ## the same on a small scale (half a minute)
	$(PY) -m cdfsg quick

report: setup ## build the site of tables, figures, claims and notebooks from what is published (half a minute)
	$(PY) -m cdfsg report

lab: setup ## open the notebooks in JupyterLab
	$(PY) -m jupyter lab notebooks

test: setup ## lint, types, tests, examples in docstrings, and the notebooks run again against their stored outputs (9 minutes)
	$(PY) -m ruff check .
	$(PY) -m mypy cdfsg
	$(PY) -m pytest -n 2 --dist loadfile --doctest-modules tests cdfsg
	$(PY) -m pytest -n 2 --dist loadfile --nbval --nbval-current-env --nbval-cell-timeout=300 -p no:cacheprovider notebooks

# KERNELS="Prescott Haswell" takes some of the kernels, PARTS=tests leaves out the notebooks.
PARTS ?= tests notebooks
kernels: setup ## the numerical tests and the notebooks under each BLAS kernel that this processor has
	$(PY) benchmarks/kernels.py --parts $(PARTS) --kernels $(KERNELS)

mutants: setup ## change the numerical code a little at a time: do the tests notice? (not in CI)
	$(call install-group,mutants)
	rm -rf mutants
	$(PY) -m mutmut run --max-children 1
	$(PY) benchmarks/mutants.py

torture: setup ## kill, starve, corrupt and misuse it for a quarter of an hour: what does it survive? (not in CI)
	$(PY) -m pytest -n 2 --dist loadfile --torture --publish tests/torture tests/datasets/test_download.py

bench: setup ## time the runs beside other ways to do the same; fit data of many natures (45 minutes)
	$(call install-group,bench)
	for part in direct others roofline growth gallery battery; do $(PY) benchmarks/$$part.py || exit 1; done

clean: ## remove caches and derived data; downloads, records and .venv stay
	find figures notebooks data -name '*.tmp' -delete
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis mutants build dist *.egg-info data/cache
	find . -path ./.venv -prune -o -path ./.git -prune -o -path ./data/raw -prune -o \
	  -type d \( -name __pycache__ -o -name .ipynb_checkpoints \) -prune -exec rm -rf {} +

.venv/ready: requirements.lock pyproject.toml
	@command -v "$(PYTHON)" >/dev/null || { \
	  echo "No '$(PYTHON)' on the PATH. Install Python 3.11 or later, or name one: make PYTHON=/path/to/python3" >&2; \
	  exit 1; }
	@"$(PYTHON)" -c 'import sys; v = sys.version.split()[0]; sys.exit(sys.version_info < (3, 11) and \
	  "$(PYTHON) is Python " + v + "; 3.11 or later is needed. Name one: make PYTHON=/path/to/python3")'
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "$(PYTHON) cannot make a virtual environment: its venv or ensurepip module is missing." \
	    "On Debian and Ubuntu, install the package python3-venv." >&2; \
	  exit 1; }
	"$(PYTHON)" -m venv --clear .venv
	@echo "Installing the locked packages into .venv; this takes two or three minutes."
	$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(PY) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@
