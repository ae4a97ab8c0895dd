import numpy as np
import pandas as pd
import pytest

from cdfsg.paper import archive
from cdfsg.paper.experiments import EXPERIMENTS, Plan
from cdfsg.paper.measure import cost
from cdfsg.paper.results import claims
from cdfsg.paper.results.claims import measured, printed
from tests.paper.fakes import fake
from tests.paper.results.test_verdicts import CHOSEN, at, runs_of

EXPERIMENT = EXPERIMENTS["ta:pcctimemn"]
HERE = {"batch_size": 100, "p": 10, "role": "reported"}
OWN = {**HERE, "solver": "CDFSG", "variant": "grid", "s1": CHOSEN[0], "s2": CHOSEN[1]}
AGAINST = {"against": ["Landing fixed"]}


@pytest.fixture(scope="module")
def complete():
    runs = runs_of()
    rng = np.random.default_rng(0)
    for name in ("pcc", "fea", "fea_post", "pcc_post", "fval_orth", "seconds"):  # runs that scatter a little
        runs[name] += 1e-3 * rng.standard_normal(len(runs))
    runs.loc[at(runs, solver="Landing"), "pcc"] -= 0.4
    runs.loc[at(runs, solver="Landing"), "fea"] += 0.3
    return runs


@pytest.fixture
def curves():
    return fake(*EXPERIMENT.jobs(Plan({(100, 5, "CDFSG"): CHOSEN}), "betas"))


@pytest.fixture
def runs(complete, curves, monkeypatch):
    runs = complete.copy()
    monkeypatch.setattr(archive, "exists", lambda experiment: experiment is EXPERIMENT)
    monkeypatch.setattr(archive, "runs_of", lambda experiment: runs)
    monkeypatch.setattr(archive, "more", lambda experiment, what: curves)
    return runs


def failing(instances):
    return [place for place, holds, _ in instances if holds is False]


def shown_by(name, claim, runs):
    return list(getattr(claims, name)(claim, measured(EXPERIMENT, runs)))


@pytest.mark.parametrize("test, quantity, value", [("more_accurate", "pcc", 0.4), ("more_feasible", "fea", 0.6)])
def test_a_comparison_fails_where_the_competitor_is_as_good_or_better(runs, test, quantity, value):
    found = shown_by(test, AGAINST, runs)
    assert len(found) == 4 * 2 * 2 and not failing(found) and all(clear for *_, clear in found)
    runs.loc[at(runs, **OWN), quantity] = value
    assert failing(shown_by(test, AGAINST, runs)) == ["mnist-identity, l = 100, p = 10, CDFSG / Landing fixed"]


def test_a_difference_within_the_scatter_of_the_paired_runs_is_not_clear(runs):
    runs.loc[at(runs, **OWN), "pcc"] = runs.loc[at(runs, **HERE, solver="Landing", variant="fixed"), "pcc"].mean()
    runs.loc[at(runs, **OWN), "pcc"] += 1e-6
    unclear = [place for place, holds, clear in shown_by("more_accurate", AGAINST, runs) if holds and not clear]
    assert unclear == ["mnist-identity, l = 100, p = 10, CDFSG / Landing fixed"]


def test_at_equal_samples_the_runs_of_half_a_pass_are_compared(runs):
    claim = {**AGAINST, "ours": "half"}
    assert len(shown_by("more_accurate", claim, runs)) == 16 and not failing(shown_by("more_accurate", claim, runs))
    runs.loc[at(runs, **{**OWN, "variant": "half"}), "pcc"] = 0.4
    assert len(failing(shown_by("more_accurate", claim, runs))) == 1
    assert not failing(shown_by("more_accurate", AGAINST, runs))


def without(instances):
    return [place for place, holds, _ in instances if holds is None]


def test_a_place_where_one_side_has_no_number_is_no_case(runs):
    runs.loc[at(runs, **HERE, solver="Landing", variant="fixed"), ["status", "pcc", "fea"]] = "diverged", np.nan, np.nan
    found = shown_by("more_accurate", AGAINST, runs)
    here = [f"mnist-identity, l = 100, p = 10, {solver} / Landing fixed" for solver in ("CDFSG", "CDFSG-Ada")]
    assert without(found) == here and not failing(found) and len(found) == 16


def test_a_place_without_an_eligible_point_is_no_case_and_breaks_the_robustness(runs):
    runs = runs[~at(runs, batch_size=100, p=10, role="tuning", solver="CDFSG")]  # nothing to select from
    here = "mnist-identity, l = 100, p = 10, CDFSG"
    runs["fea_post"] = 0.05
    for test in ("more_accurate", "more_feasible"):
        assert without(shown_by(test, AGAINST, runs)) == [f"{here} / Landing fixed"]
    assert without(shown_by("post_processing_helps", {"loss": 0.03}, runs)) == [here]
    assert failing(shown_by("robust_to_batch_size", {"loss": 0.09}, runs)) == ["mnist-identity, p = 10, CDFSG"]


def test_post_processing_must_lower_fea_and_keep_the_accuracy(runs):
    here = ["mnist-identity, l = 100, p = 10, CDFSG"]
    runs["fea_post"] = 0.05
    assert not failing(shown_by("post_processing_helps", {"loss": 0.03}, runs))
    runs.loc[at(runs, **OWN), "pcc_post"] = 0.9 * 0.96
    assert failing(shown_by("post_processing_helps", {"loss": 0.03}, runs)) == here
    assert not failing(shown_by("post_processing_helps", {}, runs))
    runs.loc[at(runs, **OWN), ["pcc_post", "fea_post"]] = 0.9, 0.11
    assert failing(shown_by("post_processing_helps", {}, runs)) == here


def test_times_are_compared_as_a_multiple_where_both_were_measured(runs):
    claim = {"against": ["RSG+"], "factor": 0.5}
    runs.loc[at(runs, solver="RSG+"), "seconds"] *= 2.2
    assert not failing(shown_by("time_at_most", claim, runs))
    runs.loc[at(runs, solver="CDFSG", p=5, batch_size=20), "seconds"] *= 1.2
    assert failing(shown_by("time_at_most", claim, runs)) == ["mnist-identity, l = 20, p = 5, CDFSG / RSG+"]


@pytest.mark.parametrize("worst", [0.8, np.nan])
def test_a_batch_size_that_loses_much_or_diverges_breaks_the_robustness(runs, worst):
    claim = {"loss": 0.09}
    assert not failing(shown_by("robust_to_batch_size", claim, runs))
    runs.loc[at(runs, **OWN), ["pcc", "status"]] = worst, "done" if worst == 0.8 else "diverged"
    assert failing(shown_by("robust_to_batch_size", claim, runs)) == ["mnist-identity, p = 10, CDFSG"]


def test_landing_fails_where_a_run_diverges_and_is_poor_where_it_is_less_accurate(runs):
    claim = {"against": ["Landing authors"], "sizes": [20, 50]}
    landing = {"solver": "Landing", "variant": "authors", "p": 5, "role": "reported"}
    runs.loc[at(runs, solver="Landing", variant="authors", role="reported"), "pcc"] = 0.5
    runs.loc[at(runs, **landing, batch_size=20, start=3), "status"] = "diverged"
    runs.loc[at(runs, **landing, batch_size=50), "pcc"] = 0.4
    lost, poor = "mnist-identity, l = 20, p = 5, Landing authors", "mnist-identity, l = 50, p = 5, Landing authors"
    for test, expected in {"fails_at_small_batches": [lost], "worse_at_small_batches": [lost, poor]}.items():
        found = shown_by(test, claim, runs)
        assert [place for place, holds, _ in found if holds] == expected and len(found) == 4


def test_consistency_over_beta_is_measured_from_the_papers_beta(runs, curves):
    claim = {"loss": 0.03}
    assert not failing(shown_by("robust_to_beta", claim, runs))
    curves.loc[curves["beta"] == 10, "quality"] = 0.8
    assert failing(shown_by("robust_to_beta", claim, runs)) == ["mnist-identity, CDFSG, beta = 10"]


def test_a_curve_is_sooner_if_it_reaches_the_others_end_and_near_if_its_end_is(monkeypatch, runs):
    traces = runs[runs["role"] == "trace"]
    middle = [traces.assign(samples=samples, quality=0.1, fea=fea) for samples, fea in ((0, 9.0), (100, 0.2))]
    together = pd.concat([runs, *middle], ignore_index=True)
    monkeypatch.setattr(archive, "runs_of", lambda experiment: together)
    late = failing(shown_by("reaches_sooner", {}, runs))
    assert late == ["mnist-identity, p = 5", "mnist-identity, p = 10"]  # both reach it at the end
    ada = at(together, solver="CDFSG-Ada", samples=100, p=5)
    together.loc[ada, ["quality", "fea"]] = 0.95, 0.6
    assert failing(shown_by("reaches_sooner", {}, runs)) == ["mnist-identity, p = 10"]
    together.loc[at(together, role="trace", solver="CDFSG-Ada", p=5) & (together["samples"] > 100), "fea"] = 0.3
    near = shown_by("comes_near", {"above": 0.5, "below": 1 / 6}, runs)
    assert len(near) == 4 and failing(near) == ["mnist-identity, p = 5, CDFSG-Ada"]


@pytest.mark.parametrize(
    "holds, of, words",
    [(0, 0, "cannot be judged here"), (3, 3, "holds"), (2, 3, "holds in 2 of 3 cases"), (0, 3, "does not hold")],
)
def test_the_verdict_on_a_claim_follows_from_counting(holds, of, words):
    assert claims.verdict_of(holds, of) == words


def test_a_claim_is_counted_in_the_papers_printed_numbers_by_the_same_test():
    """The paper prints a Fea* below Fea in each of its rows, and dashes for Landing at l = 20 and 50."""
    source = printed(EXPERIMENT)
    found = list(claims.post_processing_helps({}, source))
    assert len(found) == 16 and not failing(found) and {clear for *_, clear in found} == {None}
    dashes = list(claims.fails_at_small_batches({**AGAINST, "sizes": [20, 50]}, source))
    assert len(dashes) == 4 and not failing(dashes)
    row = source.headline("CDFSG").set_index(["batch_size", "p"]).loc[(100, 10)]
    assert (row["accuracy"], row["fea"]) == (0.93, 0.2)


def test_every_claim_has_instances_in_our_numbers_and_where_printed_in_the_papers(runs):
    table, known = claims.ledger(), {claim["id"]: claim for claim in claims.load_claims()}
    assert list(table["claim"]) == list(known) and table["says"].str.endswith(".").all()
    assert (table["of"] > 0).all() and set(table["who"]) == {"paper", "ours"}
    for row in table.itertuples():
        assert (row.paper_of > 0) == ("unprinted" not in known[row.claim])
        assert row.paper_holds <= row.paper_of and row.holds <= row.of
        assert row.clearly <= row.holds and row.clearly_not <= row.of - row.holds
    assert set(table[table["interval"]]["claim"]) >= {"accuracy", "feasibility", "post-processing"}


def test_memory_is_p_by_p_unless_the_state_or_a_step_grows_with_n_squared(monkeypatch):
    memory = pd.DataFrame(
        {"solver": "CDFSG", "n": [200, 400], "batch_size": 20, "p": 10, "state": [4202, 8202], "extra": [3900, 4700]}
    )
    spoiled = {
        (): memory,
        ("CDFSG, n = 400, l = 20, p = 10",): memory.assign(state=[4202, 8202 + 400**2]),
        ("CDFSG, n = 200, l = 20, p = 10", "CDFSG, n = 400, l = 20, p = 10"): memory.assign(extra=memory["n"] ** 2),
    }
    for expected, table in spoiled.items():
        monkeypatch.setattr(cost, "read_memory", lambda table=table: table)
        assert failing(claims.keeps_p_by_p({"tall": 4, "small": 3}, printed(EXPERIMENT))) == list(expected)


def test_a_place_where_our_run_is_missing_counts_as_no_result():
    row = claims.read().set_index("claim").loc["accuracy at equal samples"]
    assert row["of"] + row["no_result"] == 96  # the rows of both algorithms
