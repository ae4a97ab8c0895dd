from dataclasses import replace

import pandas as pd
import pytest

from cdfsg.paper import report
from cdfsg.paper.experiments import EXPERIMENTS
from cdfsg.paper.reported import INAPPLICABLE
from tests.paper.fakes import TINY, fake
from tests.paper.test_verdicts import runs_of

EXPERIMENT = EXPERIMENTS["ta:pcctimemn"]


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "RECORDS", tmp_path / "records")
    monkeypatch.setattr(report, "QUICK", tmp_path / "quick")
    return tmp_path


@pytest.fixture(scope="module")
def complete():
    return runs_of()


def test_published_records_come_back_the_curves_from_a_file_of_their_own(folders):
    runs = fake(*TINY.first_stage(), *TINY.second_stage({}), pcc=1 / 3)
    report.publish(TINY, runs)
    assert sorted(path.name for path in (folders / "quick" / "records").iterdir()) == [
        "digits-identity-curves.csv", "digits-identity.csv",
    ]  # fmt: skip
    curves = pd.read_csv(folders / "quick" / "records" / "digits-identity-curves.csv")
    assert set(curves["role"]) == {"trace"}
    found = report.published(TINY)
    key = ["role", "solver", "variant", "start", "s1", "s2", "eta", "omega"]
    expected = runs.sort_values(key, ignore_index=True)
    pd.testing.assert_frame_equal(found.sort_values(key, ignore_index=True), expected, check_exact=True)


def test_only_the_papers_own_experiments_are_published_in_the_repository(folders):
    assert report.folder_of(EXPERIMENT) == folders / "records"
    assert report.folder_of(TINY) == folders / "quick" / "records"


@pytest.mark.parametrize("experiment, make", [(EXPERIMENT, "make reproduce"), (TINY, "make quick")])
def test_records_that_are_missing_are_named_with_the_command_that_makes_them(experiment, make):
    with pytest.raises(FileNotFoundError, match=rf"{experiment.name}\.csv is missing; make it with: {make}"):
        report.published(experiment)


def test_curves_that_are_missing_are_missed_too(folders, complete):
    report.publish(EXPERIMENT, complete)
    (folders / "records" / "mnist-identity-curves.csv").unlink()
    with pytest.raises(FileNotFoundError, match=r"mnist-identity-curves\.csv is missing"):
        report.published(EXPERIMENT)


def test_verdicts_without_any_records_say_how_to_make_them():
    with pytest.raises(FileNotFoundError, match="make reproduce"):
        report.write_verdicts()


def test_the_verdicts_are_written_as_they_are_returned(folders, complete):
    report.publish(EXPERIMENT, complete)
    table = report.write_verdicts()
    assert len(table) == 192
    found = pd.read_csv(
        folders / "records" / "verdicts.csv", keep_default_na=False, na_values={"reported": [""]}
    )
    assert list(found.columns) == list(table.columns)
    for name in ("verdict", "flag", "solver", "quantity", "runs"):
        assert list(found[name]) == list(table[name])


def test_the_counts_of_verdicts_add_up_per_solver(complete):
    table = report.verdicts(EXPERIMENT, complete)
    counts = report.count_verdicts(table)
    assert counts.sum(axis=1).to_dict() == table["solver"].value_counts().to_dict()
    assert list(counts.columns) == [word for word in report.VERDICTS if word in set(table["verdict"])]
    landing = table.query("solver == 'Landing' and verdict == 'diverged-paper'")
    assert counts.loc["Landing", "diverged-paper"] == len(landing) > 0


def test_the_summary_says_how_many_numbers_match_and_how_many_rows_are_attained(complete):
    table = report.verdicts(EXPERIMENT, complete)
    ours = table[table["solver"].isin(["CDFSG", "CDFSG-Ada"]) & (table["quantity"] != "time_s")]
    good = int(ours["verdict"].isin(["match", "better"]).sum())
    words = report.summary(EXPERIMENT, table, complete)
    assert f"{good} of 80 match or better" in words and "ta:pcctimemn: 136 printed numbers, 56 dashes" in words
    attained = report.attainability(EXPERIMENT, complete)["attainable"].sum()
    assert f"a grid point attains: {attained} of 16" in words


def test_a_summary_of_runs_that_cover_no_printed_row_has_none_attained():
    part = replace(EXPERIMENT, batch_sizes=(25,), trace_batch_size=25)
    runs = fake(*part.first_stage(), *part.second_stage({}), pcc=0.5, fea=5.0)
    words = report.summary(part, report.verdicts(part, runs), runs)
    assert "0 of 80 match or better" in words and "attains: 0 of 0" in words


def test_an_experiment_that_the_paper_does_not_have_is_summed_up_without_a_judgement():
    runs = fake(*TINY.first_stage())
    words = report.summary(TINY, report.verdicts(TINY, runs), runs)
    assert words == f"digits-identity: {len(runs)} records; the paper has no table to judge them by"
    report.check(TINY, report.verdicts(TINY, runs), runs)


def test_the_ledger_counts_every_judged_number_once(complete):
    table = report.verdicts(EXPERIMENT, complete)
    lines = report.ledger(table).splitlines()
    assert lines[0].startswith("| table | solver | numbers | match |") and len(lines) == 2 + 4
    for line in lines[2:]:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        rows = table[(table["solver"] == cells[1]) & (table["quantity"] != "time_s")]
        rows = rows[rows["flag"] != INAPPLICABLE]
        assert cells[0] == "ta:pcctimemn" and int(cells[2]) == len(rows)
        expected = [int((rows["verdict"] == word).sum()) for word in report.VERDICTS]
        assert [int(cell or 0) for cell in cells[3:]] == expected


def test_the_ledger_replaces_the_old_one_in_the_readme_and_leaves_the_rest(folders, monkeypatch, complete):
    monkeypatch.setattr(report, "ROOT", folders)
    begin, end = report.marks("ledger")
    (folders / "README.md").write_text(f"before\n{begin}\nold\n{end}\nafter\n", encoding="utf-8")
    table = report.verdicts(EXPERIMENT, complete)
    for _ in range(2):
        report.write_into_readme("ledger", report.ledger(table))
        expected = f"before\n{begin}\n{report.ledger(table)}\n{end}\nafter\n"
        assert (folders / "README.md").read_text(encoding="utf-8") == expected


def test_a_readme_without_the_marks_is_refused_with_the_lines_to_put_back(folders, monkeypatch):
    monkeypatch.setattr(report, "ROOT", folders)
    (folders / "README.md").write_text("nothing")
    with pytest.raises(ValueError, match="<!-- claims, written by .* put them back"):
        report.write_into_readme("claims", "text")


@pytest.mark.parametrize(
    "change, words",
    [
        ({"pcc": 1.2}, "PCC lies outside"),
        ({"fea_orth": 1e-3}, "leaves a feasibility violation of 1.0e-03"),
        ({"status": "diverged"}, "no reported run ended"),
        (
            {"pcc": 0.1, "pcc_post": 0.1, "pcc_orth": 0.1, "fea": 0.9, "fea_post": 0.9},
            "only 0% of the numbers",
        ),
    ],
)
def test_records_that_are_not_sound_or_do_not_bear_out_the_conclusion_fail_the_check(complete, change, words):
    good = complete.assign(pcc=1.0, pcc_post=1.0, pcc_orth=1.0, fea=0.0, fea_post=0.0, fea_orth=0.0)
    report.check(EXPERIMENT, report.verdicts(EXPERIMENT, good), good)
    bad = good.assign(**change)
    with pytest.raises(AssertionError, match=words):
        report.check(EXPERIMENT, report.verdicts(EXPERIMENT, bad), bad)


def test_a_printed_number_without_a_verdict_fails_the_check(complete):
    good = complete.assign(pcc=1.0, pcc_post=1.0, pcc_orth=1.0, fea=0.0, fea_post=0.0, fea_orth=0.0)
    with pytest.raises(AssertionError, match="not every printed number"):
        report.check(EXPERIMENT, report.verdicts(EXPERIMENT, good).iloc[1:], good)
