import pytest

from cdfsg.paper import experiments
from cdfsg.paper.experiments import (
    EXPERIMENTS,
    GRID,
    OURS,
    QUICK,
    RSG_PLUS_PUBLISHED,
    TREATMENTS,
    entry_of,
    find,
)

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


def blocks_of(experiment):
    return [*experiment.first_stage(), *experiment.second_stage(selected(experiment))]


def test_the_grid_is_the_eighteen_points_of_the_paper():
    s1, s2 = (1 / 2, 1 / 4, 1 / 8), (0.1, 0.01, 0.001, 0.5, 0.05, 0.005)
    assert len(GRID) == 18 and set(GRID) == {(a, b) for a in s1 for b in s2}
    assert entry_of("CDFSG").grid == entry_of("CDFSG-Ada").grid == GRID


def test_landing_and_rsg_plus_are_tuned_on_as_many_points():
    assert len(set(entry_of("Landing").grid)) == len(set(entry_of("RSG+").grid)) == 18
    assert RSG_PLUS_PUBLISHED in entry_of("RSG+").grid


def test_the_parameters_of_the_paper_reach_every_block(experiment):
    assert {(block.beta, block.mu) for block in blocks_of(experiment)} == {(0.1, 0.05)}


def test_ten_reported_runs_share_one_data_order_and_differ_in_the_initial_point():
    for experiment in EXPERIMENTS.values():
        reported = [b for b in blocks_of(experiment) if b.role == "reported"]
        assert {len(set(b.starts)) for b in reported} == {10}
        assert {b.order for b in reported if b.variant != "file"} == {experiments.REPORTED_ORDER}


def test_no_tuning_run_shares_a_seed_with_a_run_that_is_shown(experiment):
    def seeds(tuning):
        chosen = [b for b in blocks_of(experiment) if (b.role == "tuning") == tuning]
        return {start for b in chosen for start in b.starts} | {b.order for b in chosen} - {None}

    assert seeds(True) and not seeds(True) & seeds(False)


def test_rsg_plus_can_run_at_every_batch_size_of_an_experiment(experiment):
    assert [(size, p) for size in experiment.batch_sizes for p in experiment.ps if size % p] == []


def test_the_figure_panels_are_at_a_batch_size_of_the_experiment(experiment):
    assert experiment.trace_batch_size in experiment.batch_sizes


def test_the_tuned_solvers_are_tuned_and_shown_on_the_same_grid(experiment):
    first = experiment.first_stage()
    for solver in ("CDFSG", "CDFSG-Ada"):
        mine = [b for b in first if b.solver == solver]
        assert {b.role for b in mine} == {"tuning", "reported"} and {b.settings for b in mine} == {GRID}
    landing = [b for b in first if b.solver == "Landing"]
    tuned_on = {b.settings for b in landing if b.role == "tuning"}
    assert tuned_on == {entry_of("Landing").grid}
    fixed = {b.variant: b.settings for b in landing if b.role == "reported"}
    assert fixed == {"fixed": ((0.01, 2.0),), "authors": ((0.16, 0.5),)}
    rsg_plus = [b for b in first if b.solver == "RSG+"]
    given = {b.variant: (b.order, b.settings) for b in rsg_plus if b.role == "reported"}
    both = {"file": (None, (RSG_PLUS_PUBLISHED,)), "permuted": (1, (RSG_PLUS_PUBLISHED,))}
    assert given == (both if experiment.measure == "pcc" else {})  # it is a method for classical CCA alone
    assert {b.settings for b in rsg_plus if b.role == "tuning"} == ({entry_of("RSG+").grid} if given else set())


def test_no_two_blocks_are_the_same_work(experiment):
    blocks = blocks_of(experiment)
    assert len(set(blocks)) == len(blocks)


def test_the_second_stage_runs_at_the_selected_settings_and_only_there(experiment):
    chosen = selected(experiment)
    second = experiment.second_stage(chosen)
    for block in second:
        if block.variant in ("grid", "tuned"):
            assert block.settings == (chosen[block.batch_size, block.p, block.solver],)
    assert {b.batch_size for b in second if b.role == "trace"} == {experiment.trace_batch_size}
    timed = {(b.batch_size, b.p, b.solver) for b in second if b.role == "timing"}
    assert timed >= set(chosen) and all(b.lanes == 1 for b in second if b.role == "timing")
    assert {b.variant for b in second if b.role == "timing"} <= {"grid", "fixed", "file"}
    assert {b.variant for b in second if b.role == "reported"} == {"tuned"}


def test_the_second_stage_skips_what_has_no_selected_setting(experiment):
    chosen = selected(experiment)
    size, p = experiment.trace_batch_size, experiment.ps[0]
    for solver in ("CDFSG", "Landing", "RSG+"):
        chosen.pop((size, p, solver), None)
    second = [b for b in experiment.second_stage(chosen) if (b.batch_size, b.p) == (size, p)]
    assert not [b for b in second if b.solver == "CDFSG" or b.variant == "tuned"]
    assert {b.variant for b in second if b.solver == "Landing"} == {"fixed", "authors"}
    assert {b.role for b in second if b.solver == "CDFSG-Ada"} == {"trace", "timing"}


def test_an_ablation_changes_what_its_name_says_and_nothing_else(experiment):
    chosen = selected(experiment)
    treated = {name: {key: entry_of(key[2]).grid[7] for key in chosen} for name in experiment.treatments}
    tuning, final = experiment.ablation_tuning(), experiment.ablation_runs(chosen, treated)
    assert len({*tuning, *final, *blocks_of(experiment)}) == len(tuning) + len(final) + len(blocks_of(experiment))
    first = [b for b in experiment.first_stage() if b.variant in ("grid", "fixed", "file")]
    plain = {(b.batch_size, b.p, b.solver): b for b in first}
    for block in (*tuning, *final):
        name = block.variant.split(" ")[0]
        differs = {key for key, value in vars(plain[block.batch_size, block.p, block.solver]).items()
                   if getattr(block, key) != value}  # fmt: skip
        expected = {"order"} if name == "orders" else set(TREATMENTS[name].changes)
        assert differs - {"role", "variant", "starts", "settings", "order"} == expected - {"order"}
    for block in final:
        key = (block.batch_size, block.p, block.solver)
        if block.solver in OURS:
            assert block.settings == ((chosen if block.variant == "orders" else treated[block.variant])[key],)
    assert {b.variant for b in tuning} == set(experiment.own_treatments)
    assert {b.order for b in tuning if b.variant == "file"} <= {None}


def test_an_ablation_without_an_eligible_cell_is_not_run():
    experiment = QUICK
    kept = experiment.ablation_runs({}, {"shared": {}})
    assert {(b.solver, b.variant) for b in kept} == {("Landing", "raw fixed"), ("Landing", "raw authors")}


def test_an_experiment_is_found_by_data_set_merit_and_profile():
    assert find("digits", "identity", "quick") is QUICK
    assert find("mnist", "identity", "full") is EXPERIMENTS["ta:pcctimemn"]


@pytest.mark.parametrize(
    "asked, words",
    [
        (("cifar", "identity", "full"), "known: .*dataset=mnist merit=identity"),
        (("mnist", "hubber", "full"), "merit='hubber'.*known: .*dataset=mnist merit=identity"),
        (("mnist", "identity", "quick"), "in profile quick; known: dataset=digits merit=identity"),
        (("mnist", "identity", "fast"), "unknown profile 'fast'; known profiles: full, quick"),
    ],
)
def test_what_is_not_there_is_answered_with_what_is(asked, words):
    with pytest.raises(ValueError, match=words):
        find(*asked)


def test_a_block_describes_itself_in_a_line(experiment):
    for block in blocks_of(experiment):
        words = block.describe()
        assert (
            f"{block.solver} {block.role}/{block.variant}, {block.lanes} lane" in words and "\n" not in words
        )
        assert words.endswith("lane") == (block.lanes == 1)
