import numpy as np
import pandas as pd
import pytest

from cdfsg.paper.experiments import EXPERIMENTS, QUICK
from cdfsg.paper.protocols import ORDERS
from cdfsg.paper.results import ablations
from tests.paper.fakes import fake, planned
from tests.paper.results.test_verdicts import CHOSEN, at, runs_of

EXPERIMENT = EXPERIMENTS["ta:pcctimemn"]


def ablated_of(experiment, settings=(0.5, 0.1), **numbers):
    """Complete ablations where tuning prefers `settings` under every treatment."""
    chosen = {
        (size, p, solver): settings
        for size in experiment.batch_sizes for p in experiment.ps for solver in ("CDFSG", "CDFSG-Ada")
    }  # fmt: skip
    jobs = [*experiment.jobs(planned(chosen, experiment.treatments), "ablations")]
    runs = fake(*jobs, **numbers)
    picked = (runs["s1"] == settings[0]) & (runs["s2"] == settings[1])
    runs.loc[(runs["role"] == "tuning") & ~picked, "quality"] = 0.1
    return runs


@pytest.fixture(scope="module")
def runs():
    return runs_of()


def test_each_treatment_is_shown_at_the_settings_that_were_selected_under_it(runs):
    ablated = ablated_of(EXPERIMENT)
    ablated.loc[at(ablated, variant="shared", role="reported"), ["quality", "pcc"]] = 0.7
    table = ablations.by_treatment(EXPERIMENT, runs, ablated)
    shared = table[table["treatment"] == "shared"]
    assert len(shared) == 4 * 2 and set(shared["p"]) == {5}
    assert set(zip(shared["s1"], shared["s2"], strict=True)) == {(0.5, 0.1)} and set(shared["quality"]) == {0.7}
    plain = table[table["treatment"] == ablations.PROTOCOL]
    assert len(plain) == 4 * 2 * 2
    assert set(zip(plain["s1"], plain["s2"], strict=True)) == {CHOSEN} and set(plain["quality"]) == {0.9}
    assert set(table.loc[table["treatment"] == "eta1=0", "solver"]) == {"CDFSG-Ada"}


def test_the_printed_numbers_that_a_treatment_meets_are_counted(runs):
    ablated = ablated_of(EXPERIMENT, pcc=1.0, pcc_post=1.0, pcc_orth=1.0, fea=0.0, fea_post=0.0)
    table = ablations.by_treatment(EXPERIMENT, runs, ablated)
    shared = table[table["treatment"] == "shared"]
    assert set(shared["near"]) == set(shared["numbers"]) == {5}
    assert "shared: 0 of 8 rows without a result" in ablations.explain_treatments(table)
    assert "; 40 of 40 printed numbers match or are better" in ablations.explain_treatments(table)


def test_a_treatment_without_an_eligible_cell_has_no_result_and_says_how_much_of_the_grid_is_lost(runs):
    ablated = ablated_of(EXPERIMENT)
    lost = at(ablated, variant="raw", role="tuning", batch_size=20)
    ablated.loc[lost, ["status", "quality"]] = "diverged", np.nan
    table = ablations.by_treatment(EXPERIMENT, runs, ablated)
    row = table[at(table, treatment="raw", batch_size=20, solver="CDFSG")].iloc[0]
    assert np.isnan(row["quality"]) and np.isnan(row["s1"]) and row["lost"] == 1
    assert "raw: 2 of 8 rows without a result" in ablations.explain_treatments(table)


def test_what_the_data_order_does_is_the_range_over_ten_orders():
    ablated = ablated_of(QUICK)
    here = at(ablated, variant="orders", batch_size=20, solver="CDFSG")
    ablated.loc[here, "fea"] = np.linspace(0.1, 0.4, len(ORDERS))
    row = ablations.orders(ablated).iloc[0]
    assert (row["fea_low"], row["fea_high"], row["runs"]) == (0.1, 0.4, 10)


def test_tuned_competitors_are_counted_apart_from_given_ones(runs):
    runs = runs.copy()
    runs.loc[at(runs, solver="Landing", variant="tuned", p=5), "quality"] = 0.95
    runs.loc[at(runs, solver="RSG+", variant="file"), "quality"] = 0.2
    runs.loc[at(runs, solver="RSG+", variant="tuned"), "quality"] = 0.3
    runs.loc[at(runs, solver="Landing", variant="fixed"), "quality"] = 0.5
    runs.loc[at(runs, solver="Landing", variant="tuned", p=10), "quality"] = 0.6
    table = ablations.tuned(runs)
    assert len(table) == 4 * 2 * 6
    words = ablations.explain_tuning(table)
    assert "most accurate at 8 of 8 (l, p) with the competitors' given settings, and at 4 of 8" in words
    diverged = table.assign(quality=table["quality"].mask(table["solver"] == "CDFSG"))
    assert "at 8 of 8" in ablations.explain_tuning(diverged)  # CDFSG-Ada still wins
    none = pd.concat([table[~table["solver"].str.startswith("CDFSG")]])
    assert "most accurate at 0 of 8" in ablations.explain_tuning(none)
