
import numpy as np
import pandas as pd
import pytest

from cdfsg.paper.experiments import EXPERIMENTS, Job
from cdfsg.paper.protocols import GRID
from cdfsg.paper.records import COLUMNS as RECORD
from cdfsg.paper.results.reasons import MISMATCHES, REASONS, UNEXPLAINED, counts, listing, norms, reasons
from cdfsg.paper.results.reported import QUANTITIES, load_table
from cdfsg.paper.results.verdicts import verdicts
from cdfsg.paper.select import METRICS
from tests.paper.fakes import fake
from tests.paper.results.test_verdicts import CHOSEN, at, runs_of

EXPERIMENT = EXPERIMENTS["ta:pcctimemn"]
HERE = {"batch_size": 100, "p": 10, "solver": "CDFSG"}
NOTHING = pd.DataFrame(columns=list(RECORD))


def as_printed(experiment=EXPERIMENT):
    """Runs that give the paper's numbers wherever it has any."""
    runs = runs_of(experiment)
    for cell in load_table(experiment.table).itertuples():
        if cell.quantity != "time_s" and cell.solver != "RSG+":
            here = at(runs, batch_size=cell.batch_size, p=cell.p, solver=cell.solver, role="reported")
            runs.loc[here, cell.quantity] = cell.reported
            runs.loc[here & np.isnan(cell.reported), "status"] = "diverged"
    runs["fea_spectral"], runs["fea_spectral_post"] = runs["fea"], runs["fea_post"]
    return runs


@pytest.fixture
def runs():
    return as_printed()


def explained(runs, ablated=NOTHING, experiment=EXPERIMENT, **where):
    table = reasons(experiment, verdicts(experiment, runs), runs, ablated)
    found = table[at(table, **where)]
    return found.iloc[0] if len(found) else None


def test_where_every_number_is_the_papers_nothing_differs(runs):
    table = reasons(EXPERIMENT, verdicts(EXPERIMENT, runs), runs, NOTHING)
    assert table.empty and listing(table) == "Nothing differs."


def test_every_mismatch_has_a_row_and_one_without_a_reason_is_unexplained(runs):
    runs.loc[at(runs, **HERE), "pcc"] = 0.5
    runs.loc[at(runs, batch_size=20, p=5, solver="Landing"), "status"] = "done"
    runs.loc[at(runs, batch_size=20, p=5, solver="Landing"), ["pcc", "fea"]] = 0.9, 0.1
    judged = verdicts(EXPERIMENT, runs)
    table = reasons(EXPERIMENT, judged, runs, NOTHING)
    assert len(table) == judged["verdict"].isin(MISMATCHES).sum() == 1 + 2
    assert set(table["reason"]) == {UNEXPLAINED}
    assert counts(table).loc["CDFSG", UNEXPLAINED] == 1
    assert "l = 100, p = 10, CDFSG: PCC 0.50, the paper 0.93\n    unexplained" in listing(table)


def test_a_violation_that_matches_in_the_spectral_norm_is_explained_by_the_norm(runs):
    runs.loc[at(runs, **HERE), ["fea", "fea_spectral"]] = 0.5, 0.21
    found = explained(runs, **HERE, quantity="fea")
    assert found["reason"] == "norm" and found["evidence"] == "norm: 0.21 in the spectral norm"
    runs.loc[at(runs, **HERE), "fea_spectral"] = 0.4
    assert explained(runs, **HERE, quantity="fea")["reason"] == UNEXPLAINED


def test_another_grid_point_that_gives_the_number_is_named_with_its_price(runs):
    point = at(runs, **HERE, role="reported", s1=0.125, s2=0.05)
    runs.loc[at(runs, **HERE) & ~point, "pcc"] = 0.5
    runs.loc[point, ["pcc", "quality", "fea"]] = 0.92, 0.92, 0.4
    found = explained(runs, **HERE, quantity="pcc")
    assert found["reason"] == "grid point"
    assert "0.92 at s1 = 0.125, s2 = 0.05 (quality 0.92, Fea 0.40; the paper's Fea 0.20)" in found["evidence"]


def test_only_an_fval_that_post_processing_does_not_move_is_explained_by_the_evaluation():
    experiment = EXPERIMENTS["ta:fvalnmni"]
    runs = as_printed(experiment)
    here = {"batch_size": 100, "p": 5, "solver": "CDFSG-Ada"}  # printed: -9.61 three times, Fea 0.14
    runs.loc[at(runs, **here), "fval_post"] = -9.0
    assert explained(runs, experiment=experiment, **here, quantity="fval_post")["reason"] == "evaluation"
    runs.loc[at(runs, **here), "fval_orth"] = -9.0
    assert explained(runs, experiment=experiment, **here, quantity="fval_post")["reason"] == UNEXPLAINED


def test_a_treatment_and_a_data_order_explain_what_they_give(runs):
    runs.loc[at(runs, **HERE), "pcc"] = 0.5
    plain = Job("mnist", "identity", 100, 10, "CDFSG", "reported", "grid", 1, tuple(range(1, 11)), GRID)
    shared = fake(plain, pcc=0.92, variant="shared")
    assert explained(runs, shared, **HERE, quantity="pcc")["reason"] == "protocol"
    orders = pd.concat([fake(plain, pcc=value, variant="orders") for value in (0.55, 0.6)], ignore_index=True)
    assert explained(runs, orders, **HERE, quantity="pcc")["reason"] == UNEXPLAINED
    orders.loc[0, "pcc"] = 0.92
    found = explained(runs, orders, **HERE, quantity="pcc")
    assert found["reason"] == "data order" and "0.55 to 0.92" in found["evidence"]


def test_a_baselines_other_setting_explains_its_number(runs):
    here = {"batch_size": 200, "p": 5, "solver": "Landing"}
    runs.loc[at(runs, **here, variant="fixed"), "pcc"] = 0.5
    assert explained(runs, **here, quantity="pcc")["reason"] == "baseline's setting"
    runs.loc[at(runs, **here), "pcc"] = 0.5
    assert explained(runs, **here, quantity="pcc")["reason"] == UNEXPLAINED


@pytest.mark.parametrize(
    "sizes, words",
    [
        ((20, 50), "baseline diverges: at l = 20, 50 alone with the setting authors"),
        ((20, 50, 100), "diverges elsewhere too: authors at l = 20, 50, 100"),
    ],
)
def test_a_dash_is_explained_by_a_setting_that_diverges_and_it_says_where_else(runs, sizes, words):
    for size in (20, 50):
        landing = at(runs, batch_size=size, p=5, solver="Landing")
        runs.loc[landing, ["status", *METRICS]] = ["done"] + [0.1 if "fea" in name else 0.9 for name in METRICS]
    for size in sizes:
        here = at(runs, batch_size=size, p=5, solver="Landing", variant="authors", role="reported")
        runs.loc[here, "status"] = "diverged"
    found = explained(runs, batch_size=20, p=5, solver="Landing", quantity="pcc")
    assert found["verdict"] == "diverged-paper" and found["reason"] == words.partition(":")[0]
    assert words in found["evidence"] and words in listing(pd.DataFrame([found]))


def test_every_printed_quantity_is_summarised_and_every_reason_says_what_it_tests():
    assert set(QUANTITIES) - {"time_s"} <= set(METRICS)
    assert all(test.__doc__ for test in REASONS.values())
    assert CHOSEN in EXPERIMENT.jobs()[0].settings


def test_an_fval_below_the_printed_one_explains_nothing():
    experiment = EXPERIMENTS["ta:fvalnmni"]
    runs = as_printed(experiment)
    here = {"batch_size": 100, "p": 5, "solver": "CDFSG-Ada"}
    runs.loc[at(runs, **here), ["fval_post", "fval_orth"]] = -9.0
    plain = Job("nmnist", "identity", 100, 5, "CDFSG-Ada", "reported", "grid", 1, tuple(range(1, 11)), (CHOSEN,))
    broken = fake(plain, fval_post=-20.0, variant="file")
    assert explained(runs, broken, experiment, **here, quantity="fval_post")["reason"] == UNEXPLAINED
    good = fake(plain, fval_post=-9.6, variant="file")
    assert explained(runs, good, experiment, **here, quantity="fval_post")["evidence"] == "protocol: -9.60 file"


def test_both_norms_are_judged_on_every_number_of_fea(runs):
    judged = verdicts(EXPERIMENT, runs)
    found = norms(judged, runs)
    printed_fea = judged[judged["quantity"].isin(["fea", "fea_post"]) & judged["reported"].notna()]
    assert found.loc["Frobenius"].tolist() == found.loc["spectral"].tolist() == [len(printed_fea), 0, 0]
    assert len(printed_fea) == 2 * (8 + 8 + 4)
    halved = norms(judged, runs.assign(fea_spectral=runs["fea_spectral"] - 0.3))
    assert halved.loc["spectral", "better"] >= len(printed_fea) / 2 and halved.loc["Frobenius", "better"] == 0
