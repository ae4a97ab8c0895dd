from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from cdfsg.paper.experiments import Job
from cdfsg.paper.select import RULES, select, summarise
from tests.paper.fakes import fake

GRID = ((0.5, 0.1), (0.25, 0.01), (0.125, 0.001))
TUNING = Job("digits", "identity", 100, 2, "CDFSG", "tuning", "grid", ((101, 101), (102, 102)), GRID)
KEY = (100, 2, "CDFSG")


def cells(job=TUNING, **numbers):
    """Fake runs of a job: a number per setting, or per start and setting."""
    runs = fake(job)
    for name, values in numbers.items():
        runs[name] = np.resize(np.array(values), len(runs))
    return runs


@pytest.mark.parametrize(
    "rule, picked",
    {
        "quality - fea": 2, "quality": 0, "quality - fea_post": 1, "lowest fval": 2,
        "lowest fea near the best quality": 1, "one point per p": 1, "one point per table": 0,
    }.items(),
)  # fmt: skip
def test_each_rule_picks_its_point_of_a_grid_of_three(rule, picked):
    here = cells(quality=[0.99, 0.97, 0.9], fea=[0.3, 0.2, 0.05], fea_post=[0.3, 0.02, 0.2], fval=[-1.0, -2.0, -3.0])
    small = cells(replace(TUNING, batch_size=20), quality=[0.9, 0.9, 0.2], fea=0.1)
    wide = cells(replace(TUNING, p=4), quality=[0.99, 0.2, 0.2], fea=0.0)
    chosen = select(pd.concat([here, small, wide], ignore_index=True), rule)
    assert chosen[KEY] == GRID[picked] and len(chosen) == 3
    if rule.startswith("one point"):
        assert chosen[20, 2, "CDFSG"] == GRID[picked]


def test_one_point_for_several_places_leaves_out_where_it_diverges():
    assert len(RULES) == 7
    runs = pd.concat([cells(quality=[0.9, 0.1, 0.1], fea=0.0), cells(replace(TUNING, batch_size=20))])
    runs = runs.reset_index(drop=True)
    runs.loc[runs["batch_size"] == 20, ["status", "quality"]] = "diverged", np.nan
    assert select(runs, "one point per table") == {KEY: GRID[0]}


def test_the_rule_averages_over_the_tuning_runs():
    runs = cells(quality=[0.9, 0.8, 0.0, 0.5, 0.8, 0.0], fea=0.1)  # the first setting has the best single run
    assert select(runs) == {KEY: (0.25, 0.01)}


def test_a_setting_with_one_run_of_fea_above_one_is_out_and_at_one_is_in():
    first_run, second_run = [1.001, 0.1, 0.1], [0.0, 0.1, 0.1]
    assert select(cells(quality=[0.99, 0.4, 0.3], fea=first_run + second_run)) == {KEY: (0.25, 0.01)}
    first_run[0] = 1.0
    assert select(cells(quality=[0.99, 0.1, 0.0], fea=first_run + second_run)) == {KEY: (0.5, 0.1)}


def test_nothing_is_selected_where_no_setting_is_eligible():
    other = replace(TUNING, batch_size=20)
    runs = pd.concat([cells(fea=1.5), cells(other, quality=[0.1, 0.2, 0.3])], ignore_index=True)
    assert select(runs) == {(20, 2, "CDFSG"): (0.125, 0.001)}
    assert select(cells(status="diverged", quality=np.nan, fea=np.nan)) == {}
    assert select(cells(status=["diverged"] * 3 + ["done"] * 3)) == {}


def test_the_order_of_the_rows_does_not_matter():
    rng = np.random.default_rng(0)
    jobs = [replace(TUNING, p=p, solver=solver) for p in (2, 4) for solver in ("CDFSG", "CDFSG-Ada", "Landing")]
    runs = fake(*jobs)
    runs = runs.assign(quality=rng.uniform(size=len(runs)), fea=rng.uniform(0, 1.2, size=len(runs)))
    expected = select(runs)
    assert len(expected) >= 5
    for seed in range(3):
        assert select(runs.sample(frac=1, random_state=seed)) == expected


@pytest.mark.parametrize("role", ["reported", "trace"])
def test_runs_that_are_shown_never_influence_the_selection(role):
    tuning = cells(quality=[0.5, 0.6, 0.4])
    shown = cells(replace(TUNING, role=role, seeds=((1, 1), (2, 2))), quality=[0.9, 0.0, 0.0], fea=[0.0, 2.0, 0.0])
    assert select(pd.concat([shown, tuning], ignore_index=True)) == select(tuning) == {KEY: (0.25, 0.01)}
    assert select(shown) == {}


def test_a_summary_has_mean_and_standard_deviation_of_each_cell():
    table = summarise(cells(quality=[0.9, 0.8, 0.1, 0.7, 0.8, 0.1], fea=[0.1, 0.2, 0.3, 0.5, 0.2, 0.3]))
    assert list(table["runs"]) == [2, 2, 2] and list(table["n_diverged"]) == [0, 0, 0]
    np.testing.assert_allclose(table["quality"], [0.8, 0.8, 0.1])
    np.testing.assert_allclose(table["quality_std"], [0.2 / np.sqrt(2), 0, 0], atol=1e-12)
    np.testing.assert_allclose(table["fea_worst"], [0.5, 0.2, 0.3])


def test_a_cell_with_one_diverged_run_has_no_mean_and_says_how_many_diverged():
    runs = cells()
    runs.loc[0, ["status", "quality", "fea", "fval"]] = ["diverged", np.nan, np.nan, np.nan]
    table = summarise(runs)
    assert list(table["n_diverged"]) == [1, 0, 0] and list(table["runs"]) == [2, 2, 2]
    assert table.loc[0, ["pcc", "fea", "fval", "pcc_orth"]].isna().all()
    assert table.loc[1:, ["pcc", "fea", "fval", "pcc_orth"]].notna().all(axis=None)


def test_a_solver_of_another_constraint_is_selected_by_quality_alone():
    settings = ((0.1, 0.01), (0.5, 0.01))
    rsg_plus = Job("digits", "identity", 100, 2, "RSG+", "tuning", "grid", ((101, 101),), settings)
    runs = fake(rsg_plus, fea=np.nan)
    runs["quality"] = [0.7, 0.8]
    assert select(runs) == {(100, 2, "RSG+"): (0.5, 0.01)}
