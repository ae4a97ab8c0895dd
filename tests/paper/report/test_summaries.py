import pytest

from cdfsg.paper.experiments import EXPERIMENTS
from cdfsg.paper.report import summaries
from cdfsg.paper.results.reported import INAPPLICABLE
from cdfsg.paper.results.verdicts import VERDICTS, attainability, verdicts
from tests.paper.results.test_verdicts import runs_of

EXPERIMENT = EXPERIMENTS["ta:pcctimemn"]


@pytest.fixture(scope="module")
def complete():
    return runs_of()


def test_the_summary_says_how_many_numbers_match_and_how_many_rows_are_attained(complete):
    table = verdicts(EXPERIMENT, complete)
    ours = table[table["solver"].isin(["CDFSG", "CDFSG-Ada"]) & (table["quantity"] != "time_s")]
    good = int(ours["verdict"].isin(["match", "better"]).sum())
    said = summaries.summary(EXPERIMENT, table, complete)
    assert f"{good} of 80 match or better" in said and "ta:pcctimemn: 136 printed numbers, 56 dashes" in said
    attained = attainability(EXPERIMENT, complete)["attainable"].sum()
    assert f"a grid point attains: {attained} of 16" in said



def test_the_table_by_solver_counts_every_judged_number_once(complete):
    table = verdicts(EXPERIMENT, complete)
    lines = summaries.verdicts_by_solver(table).splitlines()
    assert lines[0].startswith("| table | solver | numbers | match |") and len(lines) == 2 + 4
    for line in lines[2:]:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        rows = table[(table["solver"] == cells[1]) & (table["quantity"] != "time_s")]
        rows = rows[rows["flag"] != INAPPLICABLE]
        assert cells[0] == "ta:pcctimemn" and int(cells[2]) == len(rows)
        expected = [int((rows["verdict"] == word).sum()) for word in VERDICTS]
        assert [int(cell or 0) for cell in cells[3:]] == expected


def test_the_overview_replaces_the_old_one_in_the_readme_and_leaves_the_rest(tmp_path, monkeypatch, complete):
    monkeypatch.setattr(summaries, "ROOT", tmp_path)
    begin, end = summaries.marks("numbers")
    (tmp_path / "README.md").write_text(f"before\n{begin}\nold\n{end}\nafter\n", encoding="utf-8")
    table = verdicts(EXPERIMENT, complete)
    for _ in range(2):
        summaries.write_into_readme("numbers", summaries.overview(table))
        expected = f"before\n{begin}\n{summaries.overview(table)}\n{end}\nafter\n"
        assert (tmp_path / "README.md").read_text(encoding="utf-8") == expected


def test_a_readme_without_the_marks_is_refused_with_the_lines_to_put_back(tmp_path, monkeypatch):
    monkeypatch.setattr(summaries, "ROOT", tmp_path)
    (tmp_path / "README.md").write_text("nothing")
    with pytest.raises(ValueError, match="<!-- claims, written by .* put them back"):
        summaries.write_into_readme("claims", "text")


@pytest.mark.parametrize(
    "change, said",
    [
        ({"pcc": 1.2}, "PCC lies outside"),
        ({"fea_orth": 1e-3}, "leaves a feasibility violation of 1.0e-03"),
        ({"status": "diverged"}, "no reported run ended"),
    ],
)
def test_records_that_are_not_sound_or_lack_a_verdict_fail_the_check(complete, change, said):
    good = complete.assign(pcc=1.0, pcc_post=1.0, pcc_orth=1.0, fea=0.0, fea_post=0.0, fea_orth=0.0)
    summaries.check(EXPERIMENT, verdicts(EXPERIMENT, good), good)
    bad = good.assign(**change)
    with pytest.raises(AssertionError, match=said):
        summaries.check(EXPERIMENT, verdicts(EXPERIMENT, bad), bad)
    with pytest.raises(AssertionError, match="not every printed number"):
        summaries.check(EXPERIMENT, verdicts(EXPERIMENT, good).iloc[1:], good)
