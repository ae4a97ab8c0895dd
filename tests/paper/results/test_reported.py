import pandas as pd
import pytest

from cdfsg.files import PAPER
from cdfsg.paper.experiments import EXPERIMENTS
from cdfsg.paper.results.reported import INAPPLICABLE, QUANTITIES, TABLES, load_table, table_name, tolerance_of


@pytest.fixture(scope="module")
def raw():
    return pd.read_csv(PAPER / "tables.csv", dtype=str, keep_default_na=False)


def test_every_number_and_every_dash_of_the_paper_is_a_cell():
    cells = load_table("ta:pcctimemn")
    assert len(cells) == 4 * 2 * 4 * 6  # batch sizes, p, solvers, quantities
    everything = pd.concat([load_table(table) for table in EXPERIMENTS])
    assert (everything["reported"].notna().sum(), everything["reported"].isna().sum()) == (824, 136)


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


def test_the_cells_of_an_experiment_are_of_its_data_merit_sizes_and_solvers():
    for table, experiment in EXPERIMENTS.items():
        cells = load_table(table)
        assert experiment.table == table
        assert set(cells["dataset"]) == {experiment.dataset} and set(cells["merit"]) == {experiment.merit}
        assert set(cells["batch_size"]) == set(experiment.batch_sizes) and set(cells["p"]) == set(experiment.ps)
        assert set(cells["solver"]) == set(experiment.solvers)


def test_every_printed_quantity_has_a_heading_and_a_tolerance_with_its_reason(raw):
    assert set(raw["quantity"]) <= set(QUANTITIES)
    for quantity in set(raw["quantity"]):
        tolerance = tolerance_of(quantity)
        assert tolerance.reason.strip()
        assert tolerance.tolerance > 0 or not tolerance.comparable


def test_the_tables_are_numbered_in_the_order_of_the_paper():
    with_results = [table for table in TABLES if table in EXPERIMENTS]
    assert with_results == list(dict.fromkeys(pd.read_csv(PAPER / "tables.csv")["table"])) == list(EXPERIMENTS)
    assert [table_name(table) for table in ("ta:computation", "ta:data", with_results[0])] == [
        "Table 1", "Table 2", "Table 3"]  # fmt: skip
