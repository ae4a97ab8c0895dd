import dataclasses

import numpy as np
import pandas as pd
import pytest

from cdfsg.datasets import load
from cdfsg.linalg import truncated_inv_sqrt
from cdfsg.merits import Huber, Identity
from cdfsg.paper.compute import eigenvalues_of
from cdfsg.paper.experiments import EXPERIMENTS, QUICK, Plan
from cdfsg.paper.protocols import MU
from cdfsg.paper.results import tables
from cdfsg.penalty import Penalty
from cdfsg.problems import GCCA
from tests.paper.fakes import TINY, fake
from tests.paper.results.test_verdicts import CHOSEN, at, one, runs_of

EXPERIMENT = EXPERIMENTS["ta:pcctimemn"]
HERE = {"batch_size": 100, "p": 10, "solver": "CDFSG"}


@pytest.fixture
def runs():
    return runs_of()


def test_the_selected_settings_are_listed_with_those_that_a_solver_has(runs):
    table = tables.selected(EXPERIMENT, runs)
    assert len(table) == 4 * 2 * 4
    assert one(table, **HERE)["s1"] == CHOSEN[0] and np.isnan(one(table, **HERE)["eta"])
    assert one(table, **(HERE | {"solver": "Landing"}))["eta"] == 0.1


def test_the_trade_off_has_every_grid_point_one_of_them_selected(runs):
    table = tables.trade_off(EXPERIMENT, runs)
    assert len(table) == 4 * 2 * 2 * 18
    assert (table.groupby(["batch_size", "p", "solver"])["selected"].sum() == 1).all()
    row = one(table, **HERE, selected=True)
    assert (row["s1"], row["s2"]) == CHOSEN
    assert (row["reported_quality"], row["reported_fea"]) == (0.93, 0.2)  # the paper's table ta:pcctimemn


def test_landing_is_shown_in_every_way_with_the_papers_numbers_and_its_dashes(runs):
    runs.loc[at(runs, solver="Landing", variant="authors", batch_size=20), ["status", "quality"]] = "diverged", np.nan
    table = tables.landing_ways(EXPERIMENT, runs)
    assert len(table) == 4 * 2 * 3
    row = one(table, batch_size=20, p=5, variant="authors")
    assert row["n_diverged"] == 10 and np.isnan(row["quality"]) and np.isnan(row["reported_quality"])
    assert one(table, batch_size=100, p=5, variant="fixed")["reported_quality"] == 0.87


def test_times_are_shown_as_multiples_of_cdfsg_in_the_same_place(runs):
    runs.loc[at(runs, solver="RSG+", variant="file", batch_size=50, p=5), "seconds"] = 3.0
    cdfsg = at(runs, solver="CDFSG", variant="grid", batch_size=50, p=5, s1=CHOSEN[0], s2=CHOSEN[1], role="reported")
    runs.loc[cdfsg, "seconds"] = np.linspace(0.8, 1.2, 10)
    row = one(tables.solver_times(EXPERIMENT, runs), batch_size=50, p=5, solver="RSG+")
    assert (row["seconds"], row["ratio"]) == pytest.approx((3.0, 3.0))
    reach = 1.96 * 3 * np.linspace(0.8, 1.2, 10).std(ddof=1) / np.sqrt(10)
    assert (row["low"], row["high"]) == pytest.approx((3 - reach, 3 + reach))
    assert row["reported_ratio"] == pytest.approx(31.84 / 1.77)  # the paper's seconds


def test_the_exact_solver_stands_among_the_times_of_the_merit_that_it_solves(runs):
    exact = pd.DataFrame({"p": [5, 10], "seconds": [4.0, 5.0]})
    row = one(tables.solver_times(EXPERIMENT, runs, exact), batch_size=50, p=10, solver=tables.EXACT)
    assert (row["seconds"], row["ratio"]) == (5.0, 5.0) and np.isnan(row["reported_seconds"])
    huber = EXPERIMENTS["ta:fvalmn"]
    assert tables.EXACT not in set(tables.solver_times(huber, runs_of(huber), exact)["solver"])


@pytest.mark.parametrize("make", [tables.trade_off, tables.landing_ways])
def test_an_experiment_without_a_printed_table_has_nothing_beside_its_numbers(make):
    table = make(TINY, runs_of(TINY))
    assert len(table) and table["reported_quality"].isna().all()


@pytest.mark.parametrize("merit, slope", [(Identity(), 1.0), (Huber(MU), MU)])
def test_h_is_unbounded_below_under_that_penalty_parameter_and_not_above_it(merit, slope):
    views = load("digits")
    experiment = dataclasses.replace(QUICK, merit=merit.name)
    assert experiment.protocol.mu == MU
    limit = tables.unbounded_below(experiment)
    assert limit == pytest.approx(1.5 * slope * eigenvalues_of("digits")[0])
    problem = GCCA(views.covariance, views.sizes, merit)
    roots = [truncated_inv_sqrt(views.covariance[v, v], 1e-10) for v in views.slices]
    left, right = views.slices
    U, _, Vt = np.linalg.svd(roots[0] @ views.covariance[left, right] @ roots[1])
    w = np.concatenate([roots[0] @ U[:, 0], roots[1] @ Vt[0]])[:, None] / np.sqrt(2)
    far = {share: Penalty(problem, problem.M, share * limit).value(1e3 * w) for share in (0.99, 1.01)}
    assert far[0.99] < -1e10 and far[1.01] > 1e10


def test_runs_under_each_beta_end_in_a_row_with_the_diverged_counted():
    jobs = QUICK.jobs(Plan({(20, 2, "CDFSG"): (0.5, 0.1)}), "betas")
    assert [job.protocol.beta for job in jobs] == list(QUICK.betas)
    frames = [fake(job, beta=job.protocol.beta, quality=0.5 + job.protocol.beta, fea=job.protocol.beta) for job in jobs]
    runs = pd.concat(frames, ignore_index=True)
    runs.loc[0, ["status", "quality", "fea"]] = "diverged", np.nan, np.nan
    ends = tables.beta_ends(runs)
    assert list(ends["n_diverged"]) == [1, 0, 0] and list(ends["runs"]) == [3, 3, 3]
    assert list(ends["quality"]) == pytest.approx([0.51, 0.6, 1.5])
    medians = tables.beta_medians(QUICK, runs)
    assert sorted(medians["beta"].unique()) == list(QUICK.betas)
