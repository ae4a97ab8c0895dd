"""The parts of `make bench` on small sizes: that they still run, and write what the notebook reads."""

import re
import subprocess

import common
import compare
import direct
import growth
import kernels
import numpy as np
import pandas as pd
import pytest
import roofline

from cdfsg import checksums
from cdfsg.datasets import load
from cdfsg.files import RECORDS, ROOT
from cdfsg.paper.records import JOB
from cdfsg.paper.select import select

SMALL = {
    direct: {"DATASETS": ("digits",), "DIRECT_STEPS": {"digits": 3}, "BLOCK_STEPS": 4, "REPEATS": 2, "P": 2},
    roofline: {
        "DATASETS": ("digits",), "LANES": (1, 2), "BATCH_SIZES": (20,), "COLUMNS": (2,), "REPEATS": 1,
        "SQUARE": 32, "LARGE": 2**16, "SMALLEST": 2**12, "RUN_FLOPS": 1e6,
    },
    growth: {
        "VALUES": {"n": (20, 30, 40)}, "UPPER": {"n": 20}, "OTHERWISE": {}, "REPEATS": 1,
        "BASE": growth.BASE | {"n": 20, "N": 300, "p": 2},
    },
}  # fmt: skip
"""What is changed of each part so that it takes a second."""


@pytest.mark.parametrize("part", SMALL, ids=lambda part: part.__name__)
def test_a_part_of_the_benchmark_runs_and_writes_the_columns_that_are_published(part, monkeypatch, tmp_path):
    for name, value in SMALL[part].items():
        monkeypatch.setattr(part, name, value)
    monkeypatch.setattr(common, "RECORDS", tmp_path)
    part.main()
    file = f"speed-{part.__name__}.csv"
    found, published = (checksums.read_csv(folder / file) for folder in (tmp_path, RECORDS))
    assert list(found.columns) == list(published.columns)
    kinds = {name: (found[name].dtype.kind, published[name].dtype.kind) for name in published}
    assert not {name: pair for name, pair in kinds.items() if ("O" in pair or "U" in pair) and len(set(pair)) > 1}
    assert found["machine"].nunique() == 1 and not found.isna().any(axis=None)


def test_lanes_count_for_the_steps_in_which_they_are_alive():
    result = pd.Series({"stopped_at": pd.array([-1, 3, -1]).to_numpy(), "steps": 10})
    assert direct.lane_steps(result) == 10 + 3 + 10


@pytest.mark.parametrize("name", ["CDFSG", "CDFSG-Ada"])
def test_the_form_with_dense_matrices_and_the_engine_give_the_same_iterates(name, monkeypatch):
    monkeypatch.setattr(direct, "SETTINGS", dict.fromkeys(direct.SETTINGS, (0.5, 0.05)))
    apart = direct.agreement(name, load("synthetic"), steps=40)
    assert apart["float64"] < 1e-12 and apart["float32"] < 1e-4


@pytest.mark.parametrize(
    "solver, flops, stored, working",
    [
        # n = 10, l = 4, p = 3, two lanes: a product is 2 * 4 * 10 * 6 flops; X has 60 entries, a minibatch 40.
        ("CDFSG", 5 * 480, 80, 4 * (2 * 80 + 2 * 60)),
        ("CDFSG-Ada", 5 * 480, 80, 4 * (2 * 80 + 6 * 60)),
        ("Landing", 4 * 480, 40, 4 * (2 * 40 + 2 * 60)),
    ],
)
def test_a_step_counts_the_products_with_the_data_and_the_least_bytes(solver, flops, stored, working):
    work = roofline.Work(solver, n=10, batch_size=4, p=3, lanes=2)
    assert (work.flops, work.stored_bytes, work.working_bytes) == (flops, stored, working)
    assert work.intensity == flops / (stored + working)
    assert work.seconds(peak=1.0, memory=1e9, cache=1e9) == flops
    assert work.seconds(peak=1e30, memory=2.0, cache=4.0) == pytest.approx(stored / 2 + working / 4)


CELL = {"batch_size": 20, "p": 5, "solver": "CDFSG-Ada"}


def test_the_comparison_of_two_folders_finds_what_differs_and_nothing_else(tmp_path):
    runs, verdicts = (compare.read(RECORDS / f"{name}.csv") for name in ("mnist-identity", "verdicts"))
    place = [runs[name] == value for name, value in CELL.items()]
    place.append(runs["status"] == "done")
    tuning, reported = (runs.index[np.logical_and.reduce([*place, runs["role"] == r])] for r in ("tuning", "reported"))
    settings = dict(zip(("s1", "s2"), select(runs)[20, 5, "CDFSG-Ada"], strict=True))
    best = tuning[(runs.loc[tuning, list(settings)] == settings).all(axis=1)]
    changed = runs.assign(fval=runs["fval"] * (1 + 1e-8), fea_orth=-runs["fea_orth"])
    changed.loc[reported[0], "status"] = "diverged"
    changed.loc[reported[1], "pcc"] *= 1.01
    changed.loc[reported[2], "pcc_post"] = np.nan
    changed.loc[best, "quality"] *= 0.9995
    changed = changed.drop(reported[3])
    jobs = [name for name in compare.RUN if name in JOB]
    for folder, table in {"old": runs, "new": changed.sample(frac=1, random_state=0)}.items():
        (tmp_path / folder).mkdir()
        table = table.assign(key=table.groupby(jobs, dropna=False).ngroup(), file="mnist-identity.csv")
        table[["key", "file", *jobs]].drop_duplicates("key").to_csv(tmp_path / folder / "index.csv", index=False)
        table.drop(columns=[*jobs, "file"]).to_csv(tmp_path / folder / "mnist-identity.csv", index=False)
        verdicts.to_csv(tmp_path / folder / "verdicts.csv", index=False)
        verdicts.loc[7, "verdict"] = "another word"
    found = compare.compare(tmp_path / "old", tmp_path / "new")
    numbers = found["numbers"]["largest"]
    assert numbers["all", "fval"] == pytest.approx(1e-8, rel=1e-3) and numbers["all", "fea_orth"] < 1e-3
    assert numbers["CDFSG-Ada", "pcc"] == pytest.approx(0.01 / 1.01) and numbers["CDFSG", "pcc"] == 0
    odd = found["runs"]["why"].value_counts().to_dict()
    assert odd == {"another number": 2 + len(best), "another status": 1, "only in the old": 1}
    assert found["settings"][list(CELL)].to_dict("records") == [CELL]
    assert list(found["verdicts"]["verdict_new"]) == ["another word"]


def test_a_part_that_fails_under_one_kernel_fails_the_command_and_shows_why(monkeypatch, capsys):
    def told(command, *, env, **_):
        bad = env["OPENBLAS_CORETYPE"] == "Nehalem" and "notebooks" in command
        return subprocess.CompletedProcess(command, int(bad), "wrong digits\n1 failed\n" if bad else "2 passed\n", "")

    def lines():
        return [line.split(",")[0].split() for line in capsys.readouterr().out.splitlines() if line.strip()]

    paths = [*kernels.PARTS["tests"], kernels.PARTS["notebooks"][-1]]
    assert all((ROOT / path).exists() for path in paths) and not kernels.has("Abacus")
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


def test_make_bench_runs_scripts_that_exist_and_are_described():
    parts = re.search(r"for part in (.*?);", (ROOT / "Makefile").read_text())[1].split()
    described = (ROOT / "benchmarks/README.md").read_text()
    assert all((ROOT / f"benchmarks/{part}.py").is_file() and f"`{part}.py`" in described for part in parts)
