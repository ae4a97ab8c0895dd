"""Whether the tests notice what is wrong: formulas, rules, data files, published records, printed numbers.

Each change is made in a copy of the project, and the tests that `make test` has for it must fail there; before, they
pass.
"""

import os
import re
import shutil

import nbformat
import pandas as pd
import pytest

from cdfsg import checksums
from cdfsg.files import ROOT
from cdfsg.paper import archive
from cdfsg.paper.experiments import EXPERIMENTS
from cdfsg.paper.records import SETTINGS
from tests.paper.test_published_records import SAMPLED, sample
from tests.project import python

pytestmark = [pytest.mark.torture, pytest.mark.case("honesty: what is wrong makes a test fail")]

NOT_COPIED = shutil.ignore_patterns(
    ".git", ".venv", "raw", "cache", "site", "mutants", "__pycache__", ".*_cache", ".hypothesis", "*.egg-info"
)


MUTANTS = {
    "data: n-MNIST's noise half a decibel stronger": (
        "cdfsg/datasets/nmnist.py", "with_noise(chunk, 9.5,", "with_noise(chunk, 9.0,",
        ("tests/datasets/test_nmnist.py", "-k", "noise or views_are"),
    ),
    "data: the mean over N - 1 rows": (
        "cdfsg/datasets/views.py", "dtype=np.float64) / self.n_samples)", "dtype=np.float64) / (self.n_samples - 1))",
        ("tests/datasets/test_views.py", "-k", "mean and (digits or synthetic)"),
    ),
    "verdict: better and worse exchanged": (
        "cdfsg/paper/results/verdicts.py", '"better" if (reproduced > reported) ==',
        '"better" if (reproduced > reported) !=', ("tests/paper/results/test_verdicts.py", "-k", "judged"),
    ),
    "tolerance: that of the violation doubled": (
        "data/paper/tolerances.toml", "tolerance = 0.035", "tolerance = 0.07",
        ("tests/paper/test_published_records.py", "-k", "verdicts"),
    ),
    "selection: infeasible settings preferred": (
        "cdfsg/paper/select.py", 'return cells["quality"] - cells["fea"]', 'return cells["quality"] + cells["fea"]',
        ("tests/paper/test_select.py",),
    ),
    "numerics: another post-processing without another version": (
        "cdfsg/paper/compute.py", 'factors["_post"] = metrics.orthogonalise(tracker)',
        'factors["_post"] = metrics.orthogonalise(metrics.constraint(K))', ("tests/paper/test_golden.py",),
    ),
}  # fmt: skip
"""A file, a part of a line, what comes in its place, and the tests that must notice; formulas have `make mutants`."""


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the project with the same data behind it."""
    folder = tmp_path_factory.mktemp("honesty") / "project"
    shutil.copytree(ROOT, folder, ignore=NOT_COPIED)
    raw = ROOT / "data" / "raw"
    if raw.exists():
        (folder / "data" / "raw").symlink_to(raw.resolve())
    return folder


@pytest.fixture
def changed(copy):
    """Return a function that changes a file of the copy; what it was comes back afterwards."""
    before = {}

    def change(file, new):
        path = copy / file
        before[path] = path.read_bytes()
        path.write_text(new, encoding="utf-8")

    yield change
    for path, content in before.items():
        path.write_bytes(content)


def noticed(copy, *arguments, **environment):
    """Whether tests run in the copy fail, and what they print; it is an error if none is collected."""
    environment |= {name: None for name in os.environ if name.startswith("PYTEST_")} | {"PYTHONDONTWRITEBYTECODE": "1"}
    done = python("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *arguments, root=copy, **environment)
    assert done.returncode in (0, 1), done.stdout[-3000:] + done.stderr[-3000:]
    return done.returncode == 1, done.stdout


def moved(path, place):
    """A file of records with the PCC of one row larger by a thousandth."""
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    table.loc[place, "pcc"] = repr(float(table.loc[place, "pcc"]) + 1e-3)
    return table.to_csv(index=False, lineterminator="\n")


def plant(copy, changed, file, place):
    """Change a published number and the checksum of its file, so that it is not noticed by that alone."""
    for name in (file, f"data/records/{checksums.LIST}"):  # both come back afterwards
        changed(name, (copy / name).read_text())
    checksums.write(copy / file, moved(copy / file, place))


@pytest.mark.parametrize("tests", sorted({tests for *_, tests in MUTANTS.values()}), ids=" ".join)
def test_unchanged_the_same_tests_pass(copy, tests):
    failed, out = noticed(copy, *tests)
    assert not failed, out[-3000:]


@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_fault_is_noticed(copy, changed, name):
    file, old, new, tests = MUTANTS[name]
    text = (copy / file).read_text(encoding="utf-8")
    assert text.count(old) == 1 and "\n" not in old
    changed(file, text.replace(old, new))
    assert noticed(copy, *tests)[0]


@pytest.mark.parametrize("turn", range(3), ids=["runs", "curves", "betas"])
def test_a_published_number_off_by_a_thousandth_fails_where_the_sample_has_it(copy, changed, turn):
    """For each of the files in turn, the first day whose run ended well and takes but seconds."""
    experiment = EXPERIMENTS["ta:pcctimemn"]
    published = archive.runs_of(experiment)
    for day in range(turn, 999, 3):
        suffix, block, rows = sample(experiment, published, day)
        if (rows["status"] == "done").all() and block.batch_size >= 100:
            break
    tests = ("tests/paper/test_published_records.py", "-k", f"from_day_to_day and {experiment.name}")
    failed, out = noticed(copy, *tests, **{SAMPLED: str(day)})
    if "1 skipped" in out:
        pytest.skip("the data set is not to be had here")
    assert not failed, out[-3000:]
    file = f"data/records/{experiment.name}{suffix}.csv"
    row, names = rows.iloc[-1], ["key", "start", "samples", *SETTINGS]
    read = pd.read_csv(copy / file, dtype={"key": str})
    (place,) = read.index[(read[names].fillna(-1) == row[names].fillna(-1)).all(axis=1)]
    plant(copy, changed, file, place)
    failed, out = noticed(copy, *tests, **{SAMPLED: str(day)})
    assert failed and "AssertionError" in out and "pcc: " in out, out[-3000:]


def test_a_published_number_behind_a_verdict_fails_every_day(copy, changed):
    """The means that are judged are held to the records in every run of the tests, whatever the sample is."""
    experiment = EXPERIMENTS["ta:pcctimemn"]
    file = f"data/records/{experiment.name}.csv"
    runs = archive.runs_of(experiment)
    shown = runs[(runs["variant"] == "fixed") & (runs["role"] == "reported") & (runs["status"] == "done")]
    place = pd.read_csv(copy / file, dtype={"key": str})["key"].eq(shown["key"].iloc[0]).idxmax()
    plant(copy, changed, file, place)
    assert noticed(copy, "tests/paper/test_published_records.py", "-k", "verdicts")[0]


def test_a_notebook_with_another_number_fails(copy, changed):
    file = "notebooks/00_start.ipynb"
    tests = ("--nbval", "--nbval-current-env", "--nbval-cell-timeout=300", file)
    failed, out = noticed(copy, *tests)
    assert not failed, out[-3000:]
    notebook = nbformat.read(copy / file, as_version=4)
    outputs = [out for cell in notebook.cells if cell.cell_type == "code" for out in cell.outputs]
    printed = next(out for out in outputs if out.get("name") == "stdout" and re.search(r"\d\.\d", out["text"]))
    digit = re.search(r"\d\.(\d)", printed["text"])
    other = str((int(digit.group(1)) + 1) % 10)
    printed["text"] = printed["text"][: digit.start(1)] + other + printed["text"][digit.end(1) :]
    changed(file, nbformat.writes(notebook) + "\n")
    assert noticed(copy, *tests)[0]
