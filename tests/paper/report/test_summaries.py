import re

import pytest

from cdfsg.paper import archive
from cdfsg.paper.experiments import EXPERIMENTS
from cdfsg.paper.protocols import OURS
from cdfsg.paper.report import summaries
from cdfsg.paper.results import claims, conclusions
from cdfsg.paper.results.verdicts import attainability, chance, counted, verdicts
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
    text = summaries.texts(judged, claims.read())["answer"]
    theory, total = statements.recorded().values(), numbers.iloc[-1]
    words = [row["verdict"] for row in theory if row["source"] == PRINTED]
    assert text.startswith("**The numbers are not reproduced, ")
    assert f"{total['numbers'] - total['match']} of the {total['numbers']} printed numbers" in text
    accurate = claims.read().set_index("claim").loc["accuracy"]
    assert f"| {accurate['paper_holds']} of {accurate['paper_of']} | {accurate['holds']} of {accurate['of']} |" in text
    shares = [int(holds) / int(of) for holds, of in re.findall(r"(\d+) of (\d+) \| [^|\n]*\|$", text, re.MULTILINE)]
    assert len(shares) == (claims.read()["who"] == "paper").sum() and shares == sorted(shares)
    assert re.findall(r"<strong>(.*?)</strong>", text) == [
        f"{total['match']} of {total['numbers']}", f"{accurate['holds']} of {accurate['of']}",
        f"{words.count('holds')} of {len(words)}",
    ]  # fmt: skip
    assert f"<em>chance alone gives {total['chance']:.0f}</em>" in text and "](figures/identity-line.svg)" in text


def test_a_text_replaces_the_old_one_in_the_readme_and_leaves_the_rest_or_names_the_marks_to_put_back(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(summaries, "ROOT", tmp_path)
    monkeypatch.setattr(summaries, "texts", lambda *_: {"report": "the report", "numbers": "a\nb"})
    (begin, end), readme = summaries.marks("numbers"), tmp_path / "README.md"
    readme.write_text(f"before\n{begin}\nold\n{end}\nafter\n", encoding="utf-8")
    for _ in range(2):
        summaries.write(None, None)
        assert readme.read_text(encoding="utf-8") == f"before\n{begin}\na\nb\n{end}\nafter\n"
    assert (tmp_path / "REPORT.md").read_text(encoding="utf-8") == "the report\n"
    readme.write_text(begin)
    with pytest.raises(ValueError, match="<!-- numbers, written by .* put them back"):
        summaries.write(None, None)


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
