"""A solver that the paper does not have: one file and its registration, in a copy of the package."""

import shutil

import pytest

from cdfsg.files import ROOT
from tests import project

IMPORTS, SOLVERS = "from cdfsg.solvers.rsg_plus import RSGPlus\n", '    "RSG+": RSGPlus,\n'
REGISTRATION = {
    IMPORTS: IMPORTS + "from cdfsg.solvers.fourth_order import FourthOrder\n",
    SOLVERS: SOLVERS + '    "Fourth-order": FourthOrder,\n',
}

TABLES = """
import sys
from dataclasses import replace
from pathlib import Path

from cdfsg.paper import experiments
from cdfsg.paper.experiments import EXPERIMENTS, Plan
from cdfsg.paper.protocols import entry_of
from cdfsg.paper.results import tables, verdicts
from cdfsg.paper.run import run_experiment
from cdfsg.paper.report import figures
from tests.paper.fakes import fake

if __name__ == "__main__":
    small = replace(
        experiments.QUICK, batch_sizes=(100,), ps=(2,), trace_batch_size=100, seeds=((1, 1), (2, 2)), betas=()
    )
    runs = run_experiment(small, Path(sys.argv[1]), 1)[""]
    found = {
        "selected": tables.selected(small, runs),
        "trade_off": tables.trade_off(small, runs),
        "times": tables.solver_times(small, runs),
        "tuned": tables.tuned(small, runs),
        "curves": figures.trace_bands(runs).rename(columns={"median": "quality"}),
    }
    for experiment in EXPERIMENTS.values():
        chosen = {
            (size, p, solver): entry_of(solver).grid[0]
            for size in experiment.batch_sizes for p in experiment.ps for solver in experiment.solvers
        }
        made_up = fake(*experiment.jobs(Plan(chosen)), fea_post=0.9)  # near no printed row
        found[experiment.table] = verdicts.verdicts(experiment, made_up)
    for name, table in found.items():
        mine = table[table["solver"] == "Fourth-order"]
        words = set(mine["verdict"]) if "verdict" in mine else "-"
        print(name, len(mine), words, mine.filter(["s1", "quality", "seconds", "reproduced"]).notna().any(axis=None))
    assert figures.colour_of("Fourth-order") == figures.SERIES["Fourth-order", "grid"]["color"]
    assert found["tuned"].set_index("solver").loc["Fourth-order", "quality"] > 0.8, "it must work"
"""


@pytest.fixture
def copy(tmp_path):
    """A copy of the project in which the example solver has its file and its registration."""
    solvers = project.copy(tmp_path, "cdfsg", "tests", "data/paper") / "cdfsg" / "solvers"
    shutil.copy(ROOT / "examples" / "fourth_order.py", solvers)
    text = (solvers / "__init__.py").read_text()
    for old, new in REGISTRATION.items():
        assert text.count(old) == 1
        text = text.replace(old, new)
    (solvers / "__init__.py").write_text(text)
    return tmp_path


def python(copy, *arguments):
    done = project.python(*arguments, root=copy)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_a_solver_of_one_file_and_its_registration_is_in_every_table(copy):
    (copy / "tables.py").write_text(TABLES)
    lines = dict(line.split(" ", 1) for line in python(copy, "tables.py", "runs").splitlines())
    assert len(lines) == 11
    for name in ("selected", "trade_off", "times", "tuned", "curves"):
        assert lines[name].endswith("True") and not lines[name].startswith("0 "), name
    for name in ("ta:pcctimemd", "ta:pcctimemn", "ta:fvalnmni", "ta:fvalmd", "ta:fvalmn", "ta:fvalnmnh"):
        assert lines[name].endswith("{'not-comparable'} True") and not lines[name].startswith("0 "), name


def test_a_solver_of_one_file_and_its_registration_is_held_to_the_contract(copy):
    chosen = "Fourth-order and (reaches or alone or callback)"
    out = python(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/solvers/test_solvers.py", "-k", chosen)
    assert "3 passed" in out
