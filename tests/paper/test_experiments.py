from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from cdfsg.datasets import load
from cdfsg.paper.compute import compute, initial_point, make_solver, step_sizes
from cdfsg.paper.experiments import EXPERIMENTS, QUICK, Plan
from cdfsg.paper.protocols import GRID, OURS, RSG_PLUS_PUBLISHED, TRACKING, Protocol, entry_of
from cdfsg.solvers import SOLVERS
from tests.paper.fakes import JOB

ALL = [*EXPERIMENTS.values(), QUICK]
DOUBLED = replace(QUICK, protocol=Protocol(scales=(("digits", 2.0),)))


@pytest.fixture(params=ALL, ids=lambda experiment: experiment.name)
def experiment(request):
    return request.param


def selected(experiment):
    """Some selected setting for every solver."""
    places = [(l, p, s) for l in experiment.batch_sizes for p in experiment.ps for s in experiment.solvers]  # noqa: E741
    return {place: entry_of(place[2]).grid[4] for place in places}


def jobs_of(experiment):
    return experiment.jobs(Plan(selected(experiment)))


def test_the_grid_has_the_papers_eighteen_points_and_competitors_as_many():
    s1, s2 = (1 / 2, 1 / 4, 1 / 8), (0.1, 0.01, 0.001, 0.5, 0.05, 0.005)
    assert len(GRID) == 18 and set(GRID) == {(a, b) for a in s1 for b in s2}
    assert entry_of("CDFSG").grid == entry_of("CDFSG-Ada").grid == GRID
    assert len(set(entry_of("Landing").grid)) == len(set(entry_of("RSG+").grid)) == 18
    assert RSG_PLUS_PUBLISHED in entry_of("RSG+").grid


def test_the_parameters_of_the_protocol_reach_every_job(experiment):
    for job in jobs_of(experiment):
        own = experiment.protocol.of(experiment.dataset, experiment.merit, SOLVERS[job.solver])
        assert replace(job.protocol, share=own.share, constants=own.constants) == own and own.beta == 0.1


def test_each_of_ten_reported_runs_has_a_start_and_an_order_of_its_own():
    for experiment in EXPERIMENTS.values():
        for job in (job for job in jobs_of(experiment) if job.role == "reported"):
            orders, starts = map(set, zip(*job.seeds, strict=True))
            assert len(job.seeds) == len(starts) == 10
            in_file_order = getattr(entry_of(job.solver).given.get(job.variant), "in_file_order", False)
            assert orders == {None} if in_file_order else len(orders) == 10


def test_no_tuning_run_shares_a_seed_with_a_run_that_is_shown(experiment):
    def seeds(tuning):
        chosen = [job for job in jobs_of(experiment) if (job.role == "tuning") == tuning]
        return {seed for job in chosen for pair in job.seeds for seed in pair} - {None}

    assert seeds(True) and not seeds(True) & seeds(False)


def test_every_solver_is_tuned_on_its_grid(experiment):
    tuned = [job for job in experiment.jobs() if job.role == "tuning"]
    assert {job.solver for job in tuned} == set(experiment.solvers)
    assert all(job.settings == entry_of(job.solver).grid for job in tuned)
    assert ("RSG+" in experiment.solvers) == (experiment.measure == "pcc")  # it is a method for two views


@pytest.mark.parametrize(
    "experiment, landing",
    [
        (QUICK, {"fixed": (0.01, 2.0), "authors": (0.16, 0.5)}),
        (DOUBLED, {"fixed": (0.01, 2.0), "unit": (0.01 / 16, 8.0)}),
    ],
)
def test_a_given_setting_that_equals_another_at_this_scale_is_not_run_twice(experiment, landing):
    shown = [job for job in experiment.jobs() if job.role == "reported" and (job.batch_size, job.p) == (20, 2)]
    assert {job.variant: job.settings for job in shown if job.solver == "Landing"} == {
        name: (setting,) for name, setting in landing.items()
    }
    of_rsg_plus = {job.variant: (job.seeds[0], job.protocol.constants) for job in shown if job.solver == "RSG+"}
    assert of_rsg_plus == {
        "file": ((None, 1), ()), "permuted": ((1, 1), ()), "inverse": ((None, 1), (("singular", "stop"),)),
    }  # fmt: skip


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_the_same_step_of_landing_on_scaled_data_gives_the_scaled_iterates(factor):
    """X on data Z is X / a on a Z, and eta and omega turn so that the steps agree."""
    given = entry_of("Landing").given["unit"]
    ends = []
    for scale in (1.0, factor):
        protocol = Protocol(start="views", scales=(("digits", scale),))
        ends.append(compute(replace(JOB, solver="Landing", settings=(given.at(scale).setting,), protocol=protocol)))
    np.testing.assert_allclose(ends[0][["fval", "fea", "pcc"]], ends[1][["fval", "fea", "pcc"]], rtol=1e-3)


def waiting(experiment, plan):
    """The jobs that the plan adds."""
    return [job for job in experiment.jobs(plan) if job not in set(experiment.jobs())]


def test_jobs_that_wait_for_the_selection_run_at_the_selected_settings_alone(experiment):
    chosen = selected(experiment)
    found = waiting(experiment, Plan(chosen))
    assert all(job.settings == (chosen[job.batch_size, job.p, job.solver],) for job in found)
    assert {job.batch_size for job in found if job.role == "trace"} == {experiment.trace_batch_size}
    assert {job.variant for job in found if job.role == "reported"} == {"grid", "tuned", "half"}
    half = [job for job in found if job.variant == "half"]
    assert {(job.batch_size, job.p, job.solver) for job in half} == {place for place in chosen if place[2] in OURS}
    assert {job.protocol.share for job in half} == {0.5}


def test_without_a_selected_setting_a_place_has_the_given_settings_alone(experiment):
    chosen = selected(experiment)
    size, p = experiment.trace_batch_size, experiment.ps[0]
    for solver in ("CDFSG", "Landing", "RSG+"):
        chosen.pop((size, p, solver), None)
    found = [j for j in experiment.jobs(Plan(chosen)) if (j.batch_size, j.p) == (size, p) and j.role != "tuning"]
    assert not [j for j in found if j.solver == "CDFSG" or j.variant == "tuned"]
    assert {j.variant for j in found if j.solver == "Landing"} <= set(entry_of("Landing").given)
    assert {j.role for j in found if j.solver == "CDFSG-Ada"} == {"reported", "trace"}


def test_points_near_a_printed_row_have_ten_runs_and_nothing_else(experiment):
    place = (experiment.trace_batch_size, experiment.ps[0], "CDFSG")
    near = (GRID[3], GRID[4])
    for chosen, expected in (({place: GRID[4]}, [(GRID[4],), (GRID[3],)]), ({}, [near])):
        mine = waiting(experiment, Plan(chosen, {place: near}))
        assert [job.settings for job in mine if (job.role, job.variant) == ("reported", "grid")] == expected
        selected_alone = {job.settings for job in mine if job.variant == "half" or job.role == "trace"}
        assert selected_alone == ({(GRID[4],)} if chosen else set())


def test_curves_under_every_beta_are_at_the_settings_selected_for_the_papers():
    chosen = selected(QUICK)
    found = QUICK.jobs(Plan(chosen), "betas")
    assert {(j.protocol.beta, j.solver) for j in found} == {(beta, s) for beta in QUICK.betas for s in OURS}
    assert all(j.settings == (chosen[j.batch_size, j.p, j.solver],) and j.role == "trace" for j in found)


@pytest.mark.parametrize("start, share", [("joint", None), ("views", 1 / 2)])
@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_a_start_is_feasible_on_all_data_and_a_start_by_views_in_each_alike(start, share, scale):
    job = replace(JOB, p=3, protocol=Protocol(start=start, scales=(("digits", scale),), centred=False))
    X = initial_point(job, make_solver("CDFSG", job.protocol), 1)[0]
    views = replace(load("digits"), centred=False)
    parts = [scale**2 * X[v].T @ views.covariance[v, v] @ X[v] for v in views.slices]
    np.testing.assert_allclose(sum(parts), np.eye(3), atol=1e-8)
    for part in parts if share else ():
        np.testing.assert_allclose(part, share * np.eye(3), atol=1e-8)


@pytest.mark.parametrize("tracking", TRACKING)
@pytest.mark.parametrize("s1, s2", [(0.5, 0.1), (0.125, 0.5)])
def test_every_reading_of_thestep_sizes_gives_its_alpha_and_b(tracking, s1, s2):
    stated = {"ratio": (s2, s2 / s1), "clipped": (s2, min(s2 / s1, 1)), "s1": (s2, s1), "s2": (s1 * s2, s2)}
    given = step_sizes(pd.DataFrame({"s1": [s1], "s2": [s2]}), tracking)
    alpha, b = given["s2"][0], given["s2"][0] / given["s1"][0]  # as the solver takes them
    assert (alpha, b) == pytest.approx(stated[tracking])
