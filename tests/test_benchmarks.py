"""The parts of `make bench` on small sizes: that they still run, and write what the notebook reads."""

import importlib

import pandas as pd
import pytest

from cdfsg.files import ROOT
from cdfsg.paper.measure import speed

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
