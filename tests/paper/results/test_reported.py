import pandas as pd
import pytest

from cdfsg.files import PAPER
from cdfsg.paper.experiments import EXPERIMENTS
from cdfsg.paper.results.reported import INAPPLICABLE, QUANTITIES, load_table, tolerance_of, tolerances


@pytest.fixture(scope="module")
def raw():
    return pd.read_csv(PAPER / "tables.csv", dtype=str, keep_default_na=False)


def test_every_number_and_every_dash_of_the_paper_is_a_cell():
    cells = load_table("ta:pcctimemn")
    assert len(cells) == 4 * 2 * 4 * 6  # batch sizes, p, solvers, quantities
    everything = pd.concat([load_table(table) for table in EXPERIMENTS])
    assert (everything["reported"].notna().sum(), everything["reported"].isna().sum()) == (824, 136)


def test_what_rsg_plus_does_not_have_is_flagged_and_no_divergence():
    cells = load_table("ta:pcctimemn")
    mine = cells[cells["solver"] == "RSG+"]
    assert set(mine.loc[mine["flag"] == INAPPLICABLE, "quantity"]) == {"fea", "pcc_post", "fea_post", "pcc_orth"}
    assert mine.loc[mine["flag"] != INAPPLICABLE, "reported"].notna().all()


def test_the_cells_are_those_of_the_file_with_nothing_lost_or_changed(raw):
    for table in sorted(set(raw["table"])):
        mine = raw[raw["table"] == table]
        absent = (mine["solver"] == "RSG+") & (mine["value"] == "")
        mine = mine.assign(flag=mine["flag"].mask(absent, INAPPLICABLE))
        cells = load_table(table)
        assert list(cells["reported"].fillna(-1)) == [float(value or -1) for value in mine["value"]]
        for name in ("dataset", "merit", "solver", "quantity", "flag"):
            assert list(cells[name]) == list(mine[name])
        for name in ("batch_size", "p"):
            assert list(cells[name]) == [int(value) for value in mine[name]]


def test_a_dash_for_a_run_that_diverged_is_a_cell_without_a_number():
    cells = load_table("ta:pcctimemn")
    dashes = cells[cells["reported"].isna() & (cells["flag"] != INAPPLICABLE)]
    assert len(dashes) and set(dashes["solver"]) == {"Landing"} and (dashes["flag"] == "").all()
    assert dashes.groupby(["batch_size", "p"]).size().eq(6).all()


def test_the_cells_of_an_experiment_are_its_data_its_merit_its_sizes_and_its_solvers():
    for table, experiment in EXPERIMENTS.items():
        cells = load_table(table)
        assert experiment.table == table
        assert set(cells["dataset"]) == {experiment.dataset} and set(cells["merit"]) == {experiment.merit}
        assert set(cells["batch_size"]) == set(experiment.batch_sizes) and set(cells["p"]) == set(experiment.ps)
        assert set(cells["solver"]) == set(experiment.solvers)


def test_every_quantity_that_the_tables_print_has_a_heading_and_a_tolerance_with_its_reason(raw):
    assert set(raw["quantity"]) <= set(QUANTITIES)
    for quantity in set(raw["quantity"]):
        tolerance = tolerance_of(quantity)
        assert tolerance.reason.strip()
        assert tolerance.tolerance > 0 or not tolerance.comparable


def test_the_forms_after_post_processing_have_the_tolerance_of_their_metric_and_the_time_one_of_its_own():
    for metric in ("pcc", "fea", "fval"):
        for form in ("_post", "_orth"):
            assert tolerance_of(metric + form) is tolerances()[metric]
    assert tolerance_of("time_s") is tolerances()["time_s"] and not tolerance_of("time_s").comparable
    assert len({id(entry) for entry in tolerances().values()}) == 4


def test_the_tolerance_of_fval_is_relative_and_that_of_pcc_is_not():
    fval, pcc = tolerances()["fval"], tolerances()["pcc"]
    assert fval.around(-2.0) == pytest.approx(2 * fval.tolerance) and pcc.around(0.5) == pcc.tolerance
