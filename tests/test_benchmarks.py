"""The parts of `make bench` on small sizes: that they still run, and write what the notebook reads."""

import importlib
import subprocess

import numpy as np
import pandas as pd
import pytest

from cdfsg.files import RECORDS, ROOT
from cdfsg.paper.measure import speed
from cdfsg.paper.select import select

SMALL = {
    "direct": {
        "DATASETS": ("digits",), "DIRECT_STEPS": {"digits": 3}, "BLOCK_STEPS": 4, "REPEATS": 2, "P": 2,
    },
    "roofline": {
        "DATASETS": ("digits",), "LANES": (1, 2), "BATCH_SIZES": (20,), "COLUMNS": (2,), "REPEATS": 1,
        "SQUARE": 32, "LARGE": 2**16, "SMALLEST": 2**12, "RUN_FLOPS": 1e6,
    },
    "growth": {
        "VALUES": {"n": (20, 30, 40)}, "UPPER": {"n": 20}, "OTHERWISE": {}, "REPEATS": 1,
    },
}  # fmt: skip
"""What is changed of each part so that it takes a second."""


@pytest.fixture
def results(monkeypatch):
    """Tables that a part would publish, by its name."""
    found = {}
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    monkeypatch.setattr(speed, "write", lambda part, table: found.setdefault(part, table) is None or ROOT / part)
    return found


@pytest.mark.parametrize("part", SMALL)
def test_a_part_of_the_benchmark_runs_and_writes_the_columns_that_are_published(part, results, monkeypatch):
    module = importlib.import_module(part)
    for name, value in SMALL[part].items():
        monkeypatch.setattr(module, name, value)
    if part == "growth":
        monkeypatch.setattr(module, "BASE", module.Sizes(n=20, N=300, p=2, batch_size=100))
    module.main()
    published = speed.published()[part]
    assert list(results[part].columns) == list(published.columns)
    kinds = {name: (results[part][name].dtype.kind, published[name].dtype.kind) for name in published}
    assert not {name: pair for name, pair in kinds.items() if ("O" in pair or "U" in pair) and len(set(pair)) > 1}
    assert results[part]["machine"].nunique() == 1 and not results[part].isna().any(axis=None)


def test_a_beginning_of_the_data_is_as_long_as_its_minibatches(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    common = importlib.import_module("common")
    part = common.beginning(common.random_views(6, 100), steps=3, batch_size=20)
    assert part.n_samples == 60 and part.batch_indices(20, 1).shape == (3, 20)


def test_lanes_count_for_the_steps_in_which_they_are_alive(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    direct = importlib.import_module("direct")
    outcome = pd.Series({"stopped_at": pd.array([-1, 3, -1]).to_numpy(), "steps": 10})
    assert direct.lane_steps(outcome) == 10 + 3 + 10


CELL = {"batch_size": 20, "p": 5, "solver": "CDFSG-Ada"}


def test_the_comparison_of_two_folders_of_records_finds_what_differs_of_them_and_nothing_else(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    compare = importlib.import_module("compare").compare
    runs, verdicts = (pd.read_csv(RECORDS / f"{name}.csv") for name in ("mnist-identity", "verdicts"))
    place = [runs[name] == value for name, value in CELL.items()]
    place.append(runs["status"] == "done")
    tuning, reported = (runs.index[np.logical_and.reduce([*place, runs["role"] == r])] for r in ("tuning", "reported"))
    settings = dict(zip(("s1", "s2"), select(runs)[20, 5, "CDFSG-Ada"], strict=True))
    best = tuning[(runs.loc[tuning, list(settings)] == settings).all(axis=1)]
    changed = runs.assign(fval=runs["fval"] * (1 + 1e-8), fea_orth=-runs["fea_orth"], block_seconds=1.0, key="0")
    changed.loc[reported[0], "status"] = "diverged"
    changed.loc[reported[1], "pcc"] *= 1.01
    changed.loc[reported[2], "pcc_post"] = np.nan
    changed.loc[best, "quality"] *= 0.9995
    changed = changed.drop(reported[3])
    for folder, table in {"old": runs, "new": changed.sample(frac=1, random_state=0)}.items():
        (tmp_path / folder).mkdir()
        table.to_csv(tmp_path / folder / "mnist-identity.csv", index=False)
        verdicts.to_csv(tmp_path / folder / "verdicts.csv", index=False)
        verdicts.loc[7, "verdict"] = "another word"
    found = compare(tmp_path / "old", tmp_path / "new")
    numbers = found["numbers"]["largest"]
    assert numbers["all", "fval"] == pytest.approx(1e-8, rel=1e-3) and numbers["all", "fea_orth"] < 1e-3
    assert numbers["CDFSG-Ada", "pcc"] == pytest.approx(0.01 / 1.01) and numbers["CDFSG", "pcc"] == 0
    odd = found["runs"]["why"].value_counts().to_dict()
    assert odd == {"another number": 2 + len(best), "another status": 1, "only in the old": 1}
    assert found["settings"][list(CELL)].to_dict("records") == [CELL]
    assert list(found["verdicts"]["verdict_new"]) == ["another word"]


@pytest.fixture
def kernels(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module("kernels")


def test_the_oldest_kernel_is_there_wherever_there_is_any_and_a_name_that_nobody_knows_is_not(kernels):
    known = [kernel for kernel in kernels.KERNELS if kernels.has(kernel)]
    assert not known or known[-1] == "Prescott"
    assert not kernels.has("Abacus")


def test_the_numerical_tests_and_notebooks_that_run_under_each_kernel_are_there(kernels):
    paths = [*kernels.PARTS["tests"], kernels.PARTS["notebooks"][-1]]
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_a_part_that_fails_under_one_kernel_fails_the_command_and_shows_why(kernels, monkeypatch, capsys):
    def told(command, *, env, **_):
        bad = env["OPENBLAS_CORETYPE"] == "Nehalem" and "notebooks" in command
        return subprocess.CompletedProcess(command, int(bad), "wrong digits\n1 failed\n" if bad else "2 passed\n", "")

    def lines():
        return [line.split(",")[0].split() for line in capsys.readouterr().out.splitlines() if line.strip()]

    monkeypatch.setattr(kernels.subprocess, "run", told)
    monkeypatch.setattr(kernels, "has", lambda kernel: kernel in ("Haswell", "Nehalem"))
    assert kernels.main(["--kernels", "Nehalem", "--parts", "tests"]) == 0
    assert lines() == [["Nehalem", "tests", "2", "passed"]]
    assert kernels.main([]) == 1
    assert [line[-2:] for line in lines()] == [["2", "passed"]] * 3 + [["wrong", "digits"]] + [["1", "failed"]] * 2
    with pytest.raises(SystemExit):
        kernels.main(["--kernels", "Prescott"])
    assert "this processor has Haswell Nehalem" in capsys.readouterr().err
    monkeypatch.setattr(kernels, "has", lambda kernel: False)
    assert kernels.main(["--kernels", "Haswell"]) == 0 and "no kernels to choose" in capsys.readouterr().out
