import re

import pandas as pd
import pytest

from cdfsg.paper import archive
from cdfsg.paper.experiments import EXPERIMENTS
from cdfsg.paper.protocols import OURS
from cdfsg.paper.report import summaries
from cdfsg.paper.results import conclusions
from cdfsg.paper.results.verdicts import VERDICTS, attainability, chance, counted, verdicts
from cdfsg.theory import statements
from cdfsg.theory.statement import PRINTED
from tests.paper.results.test_verdicts import runs_of

EXPERIMENT = EXPERIMENTS["ta:pcctimemn"]


@pytest.fixture(scope="module")
def complete():
    return runs_of()


@pytest.fixture
def alone(complete, monkeypatch):
    """The only experiment with records."""
    monkeypatch.setattr(archive, "exists", lambda experiment: experiment is EXPERIMENT)
    monkeypatch.setattr(archive, "runs_of", lambda experiment: complete)


def test_the_summary_says_how_many_numbers_match_beside_what_chance_gives(complete):
    table = verdicts(EXPERIMENT, complete)
    ours = counted(table[table["solver"].isin(OURS)])
    said, (mean, most) = summaries.summary(EXPERIMENT, table, complete), chance(ours)
    assert f"{len(ours)} independent numbers" in said and len(ours) == 4 * 2 * 2 * 3
    assert f"{(ours['verdict'] == 'match').sum()} match" in said
    assert f"{mean:.1f} match on average, at most {most:.0f} in 95 %" in said
    attained = attainability(EXPERIMENT, complete)
    assert f"gives: {attained['attainable'].sum()} of 16; of permuted rows {attained['by_chance'].sum():.1f}" in said


def test_the_table_by_solver_counts_every_independent_number_once(complete):
    table = verdicts(EXPERIMENT, complete)
    lines = summaries.verdicts_by_solver(table).splitlines()
    assert lines[0].startswith("| table | solver | numbers | match |") and len(lines) == 2 + 4
    for line in lines[2:]:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        rows = counted(table[table["solver"] == cells[1]])
        assert cells[0] == "Table 4" and int(cells[2]) == len(rows)
        assert [int(cell or 0) for cell in cells[3:]] == [int((rows["verdict"] == word).sum()) for word in VERDICTS]


def test_the_counts_by_data_set_and_the_endpoints_are_of_the_independent_numbers_of_our_algorithms(complete, alone):
    judged = verdicts(EXPERIMENT, complete)
    ours = counted(judged[judged["solver"].isin(OURS)])
    numbers = conclusions.by_dataset(judged)
    ends = conclusions.endpoints(judged, numbers)
    assert list(numbers["dataset"]) == ["mnist", ""] and set(numbers["numbers"]) == {48}
    words = ["match", "better", "worse", "beyond-the-optimum", "no result"]
    assert numbers[words].sum(axis=1).tolist() == [48, 48]
    assert ends["replication"]["count"] == (ours["verdict"] == "match").sum() and ends["replication"]["of"] == 48
    assert ends["accuracy"]["of"] == 8  # the places of CDFSG-Ada; in these runs nobody is ahead
    assert ends["accuracy"]["count"] == ends["accuracy"]["against"] == 0
    assert ends["post-processing"] == {"count": 0, "of": 16, "paper": 16, "with_result": 16}


def test_the_answer_has_what_is_not_reproduced_first_then_three_numbers_with_chance_and_the_picture(complete, alone):
    judged = verdicts(EXPERIMENT, complete)
    numbers = conclusions.by_dataset(judged)
    ends = conclusions.endpoints(judged, numbers)
    claim = {"claim": ["accuracy"], "holds": [7], "of": [8], "paper_holds": [6], "paper_of": [9]}
    text = summaries.answer(pd.DataFrame(claim), numbers, ends, statements.recorded().values())
    total, accuracy = numbers.iloc[-1], ends["accuracy"]
    words = [row.verdict for row in statements.recorded().values() if row.source == PRINTED]
    lost = f"{total['numbers'] - total['match']} of the {total['numbers']} "
    assert text.startswith(f"**The numbers are not reproduced.** {lost}")
    assert "in 7 of 8 comparisons; the paper has 6 of 9." in text
    big = re.findall(r"<strong>(.*?)</strong>", text)
    assert big == [f"{total['match']} of {total['numbers']}", f"{accuracy['count']} of {accuracy['of']}",
                   f"{words.count('holds')} of {len(words)}"]  # fmt: skip
    assert f"<em>chance alone gives {total['chance']:.0f}</em>" in text and "](figures/identity-line.svg)" in text


def test_a_text_replaces_the_old_one_in_the_readme_and_leaves_the_rest(tmp_path, monkeypatch, complete, alone):
    monkeypatch.setattr(summaries, "ROOT", tmp_path)
    begin, end = summaries.marks("numbers")
    (tmp_path / "README.md").write_text(f"before\n{begin}\nold\n{end}\nafter\n", encoding="utf-8")
    text = summaries.overview(conclusions.by_dataset(verdicts(EXPERIMENT, complete)))
    for _ in range(2):
        summaries.write_into_readme("numbers", text)
        assert (tmp_path / "README.md").read_text(encoding="utf-8") == f"before\n{begin}\n{text}\n{end}\nafter\n"


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
