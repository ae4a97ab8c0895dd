import numpy as np
import pandas as pd
import pytest

from cdfsg.paper import archive
from cdfsg.paper.experiments import EXPERIMENTS
from cdfsg.paper.results import claims
from tests.paper.fakes import fake, planned
from tests.paper.results.test_verdicts import CHOSEN, at, runs_of

EXPERIMENT = EXPERIMENTS["ta:pcctimemn"]
HERE = {"batch_size": 100, "p": 10, "role": "reported"}
OURS = {**HERE, "solver": "CDFSG", "s1": CHOSEN[0], "s2": CHOSEN[1]}
AGAINST = {"against": ["Landing fixed"]}


@pytest.fixture
def runs():
    runs = runs_of()
    runs.loc[at(runs, solver="Landing"), ["quality", "fea"]] = 0.5, 0.4
    return runs


def failing(instances):
    return [place for place, holds in instances if not holds]


@pytest.mark.parametrize("show, quantity, value", [("more_accurate", "quality", 0.4), ("more_feasible", "fea", 0.6)])
def test_a_comparison_fails_in_the_place_where_the_competitor_is_as_good_or_better(runs, show, quantity, value):
    test = claims.SHOWN_BY[show]
    assert len(test(AGAINST, EXPERIMENT, runs)) == 4 * 2 * 2 and not failing(test(AGAINST, EXPERIMENT, runs))
    runs.loc[at(runs, **OURS), quantity] = value
    assert failing(test(AGAINST, EXPERIMENT, runs)) == ["mnist-identity, l = 100, p = 10, CDFSG / Landing fixed"]


def test_a_diverged_competitor_is_beaten_and_a_diverged_run_of_ours_beats_nobody(runs):
    lost = at(runs, **HERE, solver="Landing", variant="fixed")
    runs.loc[lost, ["status", "quality", "fea"]] = "diverged", np.nan, np.nan
    assert not failing(claims.more_accurate(AGAINST, EXPERIMENT, runs))
    runs.loc[at(runs, **OURS), ["status", "quality", "fea"]] = "diverged", np.nan, np.nan
    assert len(failing(claims.more_accurate(AGAINST, EXPERIMENT, runs))) == 1


def test_a_place_without_an_eligible_grid_point_of_ours_is_a_case_in_which_a_claim_does_not_hold(runs):
    runs = runs[~at(runs, batch_size=100, p=10, role="tuning", solver="CDFSG")]  # nothing to select from
    here = "mnist-identity, l = 100, p = 10, CDFSG"
    runs["fea_post"] = 0.05
    for show in ("more_accurate", "more_feasible"):
        assert failing(claims.SHOWN_BY[show](AGAINST, EXPERIMENT, runs)) == [f"{here} / Landing fixed"]
    assert failing(claims.post_processing_helps({"loss": 0.03}, EXPERIMENT, runs)) == [here]
    assert failing(claims.robust_to_batch_size({"loss": 0.09}, EXPERIMENT, runs)) == ["mnist-identity, p = 10, CDFSG"]


def test_post_processing_must_lower_fea_and_keep_the_accuracy(runs):
    runs["fea_post"] = 0.05
    test, claim = claims.post_processing_helps, {"loss": 0.03}
    assert not failing(test(claim, EXPERIMENT, runs))
    runs.loc[at(runs, **OURS), "pcc_post"] = 0.9 * 0.96
    assert failing(test(claim, EXPERIMENT, runs)) == ["mnist-identity, l = 100, p = 10, CDFSG"]
    runs.loc[at(runs, **OURS), ["pcc_post", "fea_post"]] = 0.9, 0.11
    assert failing(test(claim, EXPERIMENT, runs)) == ["mnist-identity, l = 100, p = 10, CDFSG"]


def test_times_are_compared_as_a_multiple_where_both_were_measured(runs):
    claim = {"against": ["RSG+ file"], "factor": 0.5}
    runs.loc[at(runs, role="timing", solver="RSG+"), "seconds"] = 2.0
    assert not failing(claims.time_at_most(claim, EXPERIMENT, runs))
    runs.loc[at(runs, role="timing", solver="CDFSG", p=5, batch_size=20), "seconds"] = 1.01
    assert failing(claims.time_at_most(claim, EXPERIMENT, runs)) == ["mnist-identity, l = 20, p = 5, CDFSG / RSG+ file"]


@pytest.mark.parametrize("worst", [0.8, np.nan])
def test_a_batch_size_that_loses_much_or_diverges_breaks_the_robustness(runs, worst):
    claim = {"loss": 0.09}
    assert not failing(claims.robust_to_batch_size(claim, EXPERIMENT, runs))
    runs.loc[at(runs, **OURS), ["quality", "status"]] = worst, "done" if worst == 0.8 else "diverged"
    assert failing(claims.robust_to_batch_size(claim, EXPERIMENT, runs)) == ["mnist-identity, p = 10, CDFSG"]


def test_landing_fails_at_a_small_batch_size_where_a_run_diverges(runs):
    claim = {"against": ["Landing authors"], "sizes": [20, 50]}
    lost = at(runs, solver="Landing", variant="authors", batch_size=20, p=5) & (runs["start"] == 3)
    runs.loc[lost, "status"] = "diverged"
    found = claims.fails_at_small_batches(claim, EXPERIMENT, runs)
    assert [place for place, holds in found if holds] == ["mnist-identity, l = 20, p = 5, Landing authors"]
    assert len(found) == 4


def test_consistency_over_beta_is_measured_from_the_papers_beta(monkeypatch, runs):
    curves = fake(*EXPERIMENT.jobs(planned({(100, 5, "CDFSG"): CHOSEN}), "betas"))
    monkeypatch.setattr(archive, "more", lambda experiment, what: curves)
    claim = {"loss": 0.03}
    assert not failing(claims.robust_to_beta(claim, EXPERIMENT, runs))
    curves.loc[curves["beta"] == 10, "quality"] = 0.8
    assert failing(claims.robust_to_beta(claim, EXPERIMENT, runs)) == ["mnist-identity, CDFSG, beta = 10"]


def test_the_adaptive_algorithm_is_sooner_if_it_reaches_the_others_end_before_its_end(runs):
    traces = runs[runs["role"] == "trace"]
    first = traces.assign(samples=100, quality=0.1)
    together = pd.concat([runs, first], ignore_index=True)
    late = failing(claims.reaches_sooner({}, EXPERIMENT, together))
    assert late == ["mnist-identity, p = 5", "mnist-identity, p = 10"]  # both reach it at the end
    ada = at(together, solver="CDFSG-Ada", samples=100, p=5)
    together.loc[ada, "quality"] = 0.95
    assert failing(claims.reaches_sooner({}, EXPERIMENT, together)) == ["mnist-identity, p = 10"]


@pytest.mark.parametrize(
    "holds, of, words",
    [(0, 0, "cannot be judged here"), (3, 3, "holds"), (2, 3, "holds in 2 of 3 cases"), (0, 3, "does not hold")],
)
def test_the_verdict_on_a_claim_follows_from_counting(holds, of, words):
    assert claims.verdict_of(holds, of) == words


def test_every_claim_names_a_test_that_finds_instances(monkeypatch, runs):
    monkeypatch.setattr(archive, "exists", lambda experiment: experiment is EXPERIMENT)
    monkeypatch.setattr(archive, "runs_of", lambda experiment: runs)
    curves = fake(*EXPERIMENT.jobs(planned({(100, 5, "CDFSG"): CHOSEN}), "betas"))
    monkeypatch.setattr(archive, "more", lambda experiment, what: curves)
    table = claims.ledger()
    assert (table["of"] > 0).all() and table["says"].str.endswith(".").all() and not table["derived"].any()
    runs["provenance"] = "derived"
    table = claims.ledger()
    here = table["claim"] != "p-by-p memory"  # which no data set shows
    assert list(table.loc[here, "derived"]) == list(table.loc[here, "of"]) and not table.loc[~here, "derived"].any()


def test_memory_is_p_by_p_unless_the_state_or_a_step_grows_with_n_squared():
    memory = pd.DataFrame(
        {"solver": "CDFSG", "n": [200, 400], "batch_size": 20, "p": 10, "state": [4202, 8202], "extra": [3900, 4700]}
    )
    claim = {"tall": 4, "small": 3}
    assert not failing(claims.keeps_p_by_p(claim, memory))
    assert failing(claims.keeps_p_by_p(claim, memory.assign(state=[4202, 8202 + 400**2]))) == [
        "CDFSG, n = 400, l = 20, p = 10"
    ]
    assert len(failing(claims.keeps_p_by_p(claim, memory.assign(extra=memory["n"] ** 2)))) == 2
