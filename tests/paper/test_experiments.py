import pytest

from cdfsg.paper import protocols
from cdfsg.paper.experiments import EXPERIMENTS, QUICK, Plan, find
from cdfsg.paper.protocols import ENTRIES, GRID, OURS, RSG_PLUS_PUBLISHED, TREATMENTS, Protocol, entry_of
from tests.paper.fakes import planned

ALL = [*EXPERIMENTS.values(), QUICK]


@pytest.fixture(params=ALL, ids=lambda experiment: experiment.name)
def experiment(request):
    return request.param


def selected(experiment):
    """Some selected setting for every solver that has a grid."""
    return {
        (size, p, solver): entry_of(solver).grid[4]
        for size in experiment.batch_sizes
        for p in experiment.ps
        for solver in experiment.solvers
        if entry_of(solver).grid
    }


def jobs_of(experiment):
    return experiment.jobs(planned(selected(experiment)))


def test_the_grid_is_the_eighteen_points_of_the_paper_and_competitors_have_as_many():
    s1, s2 = (1 / 2, 1 / 4, 1 / 8), (0.1, 0.01, 0.001, 0.5, 0.05, 0.005)
    assert len(GRID) == 18 and set(GRID) == {(a, b) for a in s1 for b in s2}
    assert entry_of("CDFSG").grid == entry_of("CDFSG-Ada").grid == GRID
    assert len(set(entry_of("Landing").grid)) == len(set(entry_of("RSG+").grid)) == 18
    assert RSG_PLUS_PUBLISHED in entry_of("RSG+").grid


def test_the_parameters_of_the_paper_reach_every_job(experiment):
    assert {(job.protocol.beta, job.protocol.mu) for job in jobs_of(experiment)} == {(0.1, 0.05)}


def test_ten_reported_runs_share_one_data_order_and_differ_in_the_initial_point():
    for experiment in EXPERIMENTS.values():
        reported = [b for b in jobs_of(experiment) if b.role == "reported"]
        assert {len(set(b.starts)) for b in reported} == {10}
        assert {b.order for b in reported if b.variant != "file"} == {protocols.REPORTED_ORDER}


def test_no_tuning_run_shares_a_seed_with_a_run_that_is_shown(experiment):
    def seeds(tuning):
        chosen = [b for b in jobs_of(experiment) if (b.role == "tuning") == tuning]
        return {start for b in chosen for start in b.starts} | {b.order for b in chosen} - {None}

    assert seeds(True) and not seeds(True) & seeds(False)


def test_every_solver_is_tuned_on_its_grid_and_competitors_are_shown_at_given_settings(experiment):
    without_plan = experiment.jobs()
    assert {job.solver for job in without_plan if job.role == "tuning"} == set(experiment.solvers)
    assert all(job.settings == entry_of(job.solver).grid for job in without_plan if job.role == "tuning")
    for solver in experiment.solvers:
        given = {j.variant: (j.order, j.settings) for j in without_plan if j.solver == solver and j.role == "reported"}
        expected = {
            name: (None if name in entry_of(solver).in_file_order else 1, (setting,))
            for name, setting in entry_of(solver).given.items()
        }
        assert given == expected
    assert ENTRIES["Landing"].given == {"fixed": (0.01, 2.0), "authors": (0.16, 0.5)}
    assert ENTRIES["RSG+"].given == dict.fromkeys(("file", "permuted"), RSG_PLUS_PUBLISHED)
    assert ("RSG+" in experiment.solvers) == (experiment.measure == "pcc")  # it is a method for two views


def waiting(experiment, plan):
    """The jobs that the plan adds."""
    return [job for job in experiment.jobs(plan) if job not in set(experiment.jobs())]


def test_jobs_that_wait_for_the_selection_run_at_the_selected_settings_and_only_there(experiment):
    chosen = selected(experiment)
    found = waiting(experiment, planned(chosen))
    for job in found:
        if job.variant in ("grid", "tuned"):
            assert job.settings == (chosen[job.batch_size, job.p, job.solver],)
    assert {j.batch_size for j in found if j.role == "trace"} == {experiment.trace_batch_size}
    timed = [j for j in found if j.role == "timing"]
    assert {(j.batch_size, j.p, j.solver) for j in timed} >= {(*key[:2], s) for key in chosen for s in OURS}
    assert all(j.lanes == 1 and j.variant == entry_of(j.solver).headline_variant for j in timed)
    assert {j.variant for j in found if j.role == "reported"} == {"grid", "tuned"}


def test_without_a_selected_setting_a_place_has_the_given_settings_alone(experiment):
    chosen = selected(experiment)
    size, p = experiment.trace_batch_size, experiment.ps[0]
    for solver in ("CDFSG", "Landing", "RSG+"):
        chosen.pop((size, p, solver), None)
    found = [j for j in experiment.jobs(planned(chosen)) if (j.batch_size, j.p) == (size, p) and j.role != "tuning"]
    assert not [j for j in found if j.solver == "CDFSG" or j.variant == "tuned"]
    assert {j.variant for j in found if j.solver == "Landing"} == {"fixed", "authors"}
    assert {j.role for j in found if j.solver == "CDFSG-Ada"} == {"reported", "trace", "timing"}


def test_points_near_a_printed_row_have_their_ten_runs_beside_the_selected_one_and_nothing_else(experiment):
    place = (experiment.trace_batch_size, experiment.ps[0], "CDFSG")
    near = (GRID[3], GRID[4])
    for chosen, expected in ({place: GRID[4]}, (GRID[4], GRID[3])), ({}, near):
        plan = Plan(planned(chosen).selected, {place: near})
        mine = [j for j in waiting(experiment, plan) if (j.batch_size, j.p, j.solver) == place]
        assert [j.settings for j in mine if j.role == "reported"] == [expected]
        assert {j.settings for j in mine if j.role != "reported"} == ({(GRID[4],)} if chosen else set())


def test_an_ablation_changes_what_its_name_says_and_nothing_else(experiment):
    chosen = selected(experiment)
    treated = {(name, *key): entry_of(key[2]).grid[7] for name in experiment.treatments for key in chosen}
    plan = Plan({**planned(chosen).selected, **treated})
    found = experiment.jobs(plan, "ablations")
    assert len({*found, *jobs_of(experiment)}) == len(found) + len(jobs_of(experiment))
    for job in found:
        name = job.variant.split(" ")[0]
        assert job.protocol == (Protocol() if name == "orders" else TREATMENTS[name])
        if job.role == "reported" and job.solver in OURS:
            at = ("" if name == "orders" else name, job.batch_size, job.p, job.solver)
            assert job.settings == (plan.selected[at],)
    assert {j.variant for j in found if j.role == "tuning"} == set(experiment.own_treatments)
    assert {j.order for j in found if j.variant == "file"} <= {None}


def test_an_ablation_without_an_eligible_point_is_not_run():
    kept = [job for job in QUICK.jobs(part="ablations") if job.role == "reported"]
    assert {(j.solver, j.variant) for j in kept} == {("Landing", "raw fixed"), ("Landing", "raw authors")}


def test_curves_under_every_penalty_parameter_are_at_the_settings_selected_for_the_papers():
    chosen = selected(QUICK)
    found = QUICK.jobs(planned(chosen), "betas")
    assert {(j.protocol.beta, j.solver) for j in found} == {(beta, s) for beta in QUICK.betas for s in OURS}
    assert all(j.settings == (chosen[j.batch_size, j.p, j.solver],) and j.role == "trace" for j in found)


def test_an_experiment_is_found_by_data_set_merit_and_profile():
    assert find("digits", "identity", "quick") is QUICK
    assert find("mnist", "identity", "full") is EXPERIMENTS["ta:pcctimemn"]
