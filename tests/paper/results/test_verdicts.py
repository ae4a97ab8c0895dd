import numpy as np
import pandas as pd
import pytest

from cdfsg.paper.experiments import EXPERIMENTS, Plan
from cdfsg.paper.protocols import GRID, OURS, entry_of
from cdfsg.paper.records import COLUMNS as RECORD
from cdfsg.paper.results.reported import DERIVED, INAPPLICABLE, load_table, tolerance_of, tolerances
from cdfsg.paper.results.verdicts import (
    COLUMNS,
    COUNTED,
    VERDICTS,
    attainability,
    chance,
    counted,
    equivalence,
    judge,
    verdicts,
)
from tests.paper.fakes import TINY, fake

EXPERIMENT = EXPERIMENTS["ta:pcctimemn"]
CHOSEN = (0.25, 0.01)
NAN = float("nan")
PCC, FEA, FEA_POST = (tolerances()[name].tolerance for name in ("pcc", "fea", "fea_post"))
FVAL = tolerances()["fval"].around(-4.0)


@pytest.mark.parametrize(
    "reported, reproduced, quantity, flag, word",
    [
        (0.90, 0.90, "pcc", "", "match"),
        (0.90, 0.90 + PCC, "pcc", "", "match"),  # the bound is inside
        (0.90, 0.90 + 1.01 * PCC, "pcc", "", "better"),
        (0.90, 0.90 - 1.01 * PCC, "pcc", "", "worse"),
        (0.20, 0.20 + FEA, "fea", "", "match"),
        (0.20, 0.20 - 1.01 * FEA, "fea", "", "better"),
        (0.20, 0.20 + 1.01 * FEA_POST, "fea_post", "", "worse"),
        (-4.0, -4.0 - FVAL, "fval", "", "match"),
        (-4.0, -4.0 - 1.01 * FVAL, "fval", "", "better"),  # Fval is minimised
        (-4.0, -4.0 + 1.01 * FVAL, "fval", "", "worse"),
        (0.90, 0.90, "pcc_orth", "", "derived"),
        (-4.0, NAN, "fval_post", "", "derived"),
        (NAN, NAN, "pcc", "", "diverged-both"),
        (0.9, NAN, "pcc", "", "diverged-ours"),
        (NAN, 0.9, "pcc", "", "diverged-paper"),
        (NAN, NAN, "fea", INAPPLICABLE, "n/a"),
        (0.90, 0.90, "pcc", "doubtful: copied", "not-comparable"),
        (1.00, 1.00, "time_s", "", "not-comparable"),
    ],
)
def test_a_number_is_judged_by_its_tolerance_its_direction_and_its_standing(reported, reproduced, quantity, flag, word):
    assert judge(reported, reproduced, quantity, flag) == word
    of_competitor = judge(reported, reproduced, quantity, flag, ours=False)
    above = "higher" if reproduced > reported else "lower"
    assert of_competitor == (above if word in ("better", "worse") else word)
    assert {word, of_competitor} <= set(VERDICTS)
    assert (word in COUNTED) == (word not in ("derived", "n/a", "not-comparable"))


@pytest.mark.parametrize(
    "reported, word", [(-4.0, "match"), (-3.0, "better"), (-5.0, "worse"), (NAN, "diverged-paper")]
)
def test_an_fval_below_the_optimum_is_never_a_match_nor_better(reported, word):
    assert judge(reported, -4.0, "fval", optimum=-4.0) == word
    beyond = word if np.isnan(reported) else "beyond-the-optimum"
    assert judge(reported, -4.0001, "fval", optimum=-4.0) == beyond
    assert judge(reported, -4.0001, "fval", optimum=-4.0, ours=False) == beyond


@pytest.mark.parametrize(
    "reproduced, std, runs, word",
    [
        (0.51, 0.01, 10, "equivalent"),
        (0.51, 0.05, 10, "undecided"),  # 0.01 apart, give or take 0.039
        (0.56, 0.05, 10, "undecided"),
        (0.56, 0.01, 10, "different"),
        (0.50, 0.00, 10, "equivalent"),
        (0.51, 0.01, 1, ""),  # one run has no spread
        (NAN, 0.01, 10, ""),
    ],
)
def test_two_averages_are_equivalent_different_or_undecided(reproduced, std, runs, word):
    assert equivalence(0.5, reproduced, std, runs, tolerance=0.03) == word


def rows(reported, reproduced=None):
    """Judged rows of one table and p: the Fea of CDFSG-Ada at a batch size each."""
    table = pd.DataFrame({"reported": reported, "reproduced": reported if reproduced is None else reproduced})
    return table.assign(table="t", p=5, solver="CDFSG-Ada", batch_size=range(len(table)), quantity="fea",
                        tolerance=0.05, verdict="match")  # fmt: skip


def test_equal_rows_always_match_by_chance_and_rows_far_apart_one_in_eight():
    assert chance(rows([0.1] * 8)) == (8, 8)
    mean, most = chance(rows(np.arange(8.0)))
    assert mean / 8 == pytest.approx(1 / 8, abs=0.02) and most < 8
    assert chance(rows(np.arange(8.0), np.arange(8.0) + 0.5)) == (0, 0)
    mixed = pd.concat([rows([0.1] * 8), rows([0.1] * 8).assign(verdict="derived")])
    assert chance(mixed) == (8, 8)  # what is not counted does not count here


def runs_of(experiment=EXPERIMENT, **numbers):
    """A complete run of the experiment, where tuning prefers `CHOSEN` and Landing's fifth point."""
    chosen = {
        (size, p, solver): CHOSEN if solver.startswith("CDFSG") else entry_of(solver).grid[4]
        for size in experiment.batch_sizes
        for p in experiment.ps
        for solver in experiment.solvers
    }
    near = {place: GRID for place in chosen if place[2] in OURS}  # the ten runs of every point
    runs = fake(*experiment.jobs(Plan(chosen, near)), **numbers)
    cdfsg, rsg_plus = runs["solver"].str.startswith("CDFSG"), runs["solver"] == "RSG+"
    picked = np.where(cdfsg, (runs["s1"] == CHOSEN[0]) & (runs["s2"] == CHOSEN[1]), runs["eta"] == 0.1)
    picked |= rsg_plus & (runs["eta_q"] == 0.1) & (runs["eta_t"] == 0.1)
    runs.loc[(runs["role"] == "tuning") & ~picked, "quality"] = 0.1
    runs.loc[runs["solver"] == "RSG+", [name for name in RECORD if name.startswith("fea")]] = np.nan
    return runs


@pytest.fixture(scope="module")
def complete():
    return runs_of()


def at(runs, **where):
    mask = pd.Series(True, index=runs.index)
    for name, value in where.items():
        mask &= runs[name] == value
    return mask


def one(table, **where):
    rows = table[at(table, **where)]
    assert len(rows) == 1
    return rows.iloc[0]


def test_every_printed_number_has_one_verdict(complete):
    table = verdicts(EXPERIMENT, complete)
    assert tuple(table.columns) == COLUMNS and len(table) == 192
    cell = ["batch_size", "p", "solver", "quantity"]
    paper = load_table("ta:pcctimemn")
    assert not table.duplicated(cell).any()
    pd.testing.assert_frame_equal(table[[*cell, "reported", "flag"]], paper[[*cell, "reported", "flag"]])
    assert set(table["verdict"]) <= set(VERDICTS)
    for row in table.itertuples():
        assert row.verdict == judge(row.reported, row.reproduced, row.quantity, row.flag, ours=row.solver in OURS)
        np.testing.assert_equal(row.tolerance, tolerance_of(row.quantity).around(row.reported))
    assert not set(counted(table)["quantity"]) & {"time_s", *DERIVED}
    assert set(counted(table[table["solver"] == "RSG+"])["quantity"]) == {"pcc"}
    assert set(table[~table["solver"].isin(OURS)]["verdict"]).isdisjoint({"better", "worse"})


def test_our_number_is_the_mean_of_the_ten_runs_at_the_selected_setting(complete):
    runs = complete.copy()
    mine = at(runs, role="reported", variant="grid", batch_size=20, p=5, solver="CDFSG", s1=CHOSEN[0], s2=CHOSEN[1])
    runs.loc[mine, "pcc"] = np.linspace(0.80, 0.89, 10)
    others = at(runs, role="reported", batch_size=20, p=5, solver="CDFSG") & ~mine
    runs.loc[others, "pcc"] = 0.99  # better, but tuning did not select them
    row = one(verdicts(EXPERIMENT, runs), batch_size=20, p=5, solver="CDFSG", quantity="pcc")
    assert row["reproduced"] == pytest.approx(0.845) and row["runs"] == 10
    assert row["std"] == pytest.approx(np.std(np.linspace(0.80, 0.89, 10), ddof=1))
    reach = 2.262157 * row["std"] / np.sqrt(10)  # Student's t with nine degrees of freedom
    assert (row["low"], row["high"]) == pytest.approx((0.845 - reach, 0.845 + reach))


def test_one_diverged_run_of_ten_or_nothing_eligible_makes_the_number_diverged(complete):
    runs = complete.copy()
    mine = at(runs, variant="grid", batch_size=200, p=5, solver="CDFSG", s1=CHOSEN[0], s2=CHOSEN[1], start=3)
    assert mine.sum() == 1
    runs.loc[mine, ["status", "pcc", "fea"]] = "diverged", np.nan, np.nan
    runs.loc[at(runs, role="tuning", batch_size=20, p=5, solver="CDFSG"), "fea"] = 2.0
    table = verdicts(EXPERIMENT, runs)
    for size, count in ((200, 10), (20, 0)):
        row = one(table, batch_size=size, p=5, solver="CDFSG", quantity="pcc")
        assert np.isnan(row["reproduced"]) and row["verdict"] == "diverged-ours" and row["runs"] == count


ROW = {"batch_size": 20, "p": 5, "solver": "CDFSG"}
CELL = ROW | {"role": "reported", "variant": "grid", "s1": 0.5, "s2": 0.05}


def targets():
    cells = load_table("ta:pcctimemn")
    cells = cells[at(cells, **ROW) & cells["quantity"].isin(["pcc", "fea", "fea_post"])]
    return dict(zip(cells["quantity"], cells["reported"], strict=True))


def far(runs, numbers, where=CELL):
    """The runs with all of the row's cells far from the paper's except one with these numbers."""
    runs = runs.copy()
    runs.loc[at(runs, **ROW, role="reported"), ["pcc", "fea"]] = [0.0, 9.0]
    for quantity, value in numbers.items():
        runs.loc[at(runs, **where), quantity] = value
    return one(attainability(EXPERIMENT, runs), **ROW)


def test_a_cell_with_the_printed_numbers_or_at_a_tolerance_is_found(complete):
    row = far(complete, targets())
    assert row["distance"] == pytest.approx(0, abs=1e-12) and row["attainable"]
    assert (row["s1"], row["s2"]) == (0.5, 0.05)
    row = far(complete, targets() | {"fea": targets()["fea"] + FEA})
    assert row["attainable"] and row["distance"] == pytest.approx(1)  # just at its tolerance


@pytest.mark.parametrize("quantity, heading", [("pcc", "PCC"), ("fea", "Fea"), ("fea_post", "Fea*")])
def test_the_farthest_number_is_named_with_its_distance_in_tolerances(complete, quantity, heading):
    numbers = targets()
    numbers[quantity] += 1.5 * tolerance_of(quantity).tolerance
    numbers["pcc_post"] = numbers["pcc_orth"] = 0.1  # which follow from PCC, and are not asked for
    row = far(complete, numbers)
    assert row["farthest"] == heading and row["distance"] == pytest.approx(1.5) and not row["attainable"]
    assert row["farthest_is"] == ("better" if quantity.startswith("pcc") else "worse")  # it is above the paper's


def test_a_cell_with_a_diverged_run_never_attains_however_near_the_others_are(complete):
    runs = complete.copy()
    runs.loc[at(runs, **CELL, start=1), "status"] = "diverged"
    row = far(runs, targets())
    assert not row["attainable"] and (row["s1"], row["s2"]) != (0.5, 0.05)
    runs.loc[at(runs, **ROW, role="reported"), "status"] = "diverged"
    row = far(runs, targets())
    assert not row["attainable"] and row["distance"] == np.inf


def test_a_tuning_run_attains_nothing_where_there_are_ten_runs(complete):
    runs = complete.copy()
    for quantity, value in targets().items():
        runs.loc[at(runs, **CELL | {"role": "tuning"}), quantity] = value
    assert not far(runs, {})["attainable"]


def test_attainability_has_a_row_for_each_printed_row_of_the_papers_solvers(complete):
    table = attainability(EXPERIMENT, complete)
    assert list(table.columns) == [*ROW, "s1", "s2", "distance", "farthest", "farthest_is", "attainable", "by_chance"]
    assert len(table) == 16 and set(table["solver"]) == {"CDFSG", "CDFSG-Ada"}


def test_an_experiment_that_the_paper_does_not_have_has_no_verdicts():
    runs = fake(*TINY.jobs())
    assert verdicts(TINY, runs).empty and tuple(verdicts(TINY, runs).columns) == COLUMNS
    assert attainability(TINY, runs).empty


def test_records_without_a_job_are_refused_and_not_taken_for_a_divergence(complete):
    gone = at(complete, batch_size=50, p=5, solver="CDFSG", role="reported", variant="grid")
    with pytest.raises(ValueError, match="lack 2 jobs, the first is mnist identity l=50 p=5 CDFSG reported/grid"):
        verdicts(EXPERIMENT, complete[~gone])
