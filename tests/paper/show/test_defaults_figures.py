import pandas as pd
import pytest

from cdfsg.paper.show import defaults_figures
from cdfsg.paper.show.defaults_figures import DEFAULT, GOAL, RIVAL, explain, published, shares, silent


def records(**changes):
    rows = [
        ("digits", "original", "identity", DEFAULT, 0.97, ""),
        ("digits", "original", "identity", "cdfsg", 0.90, "not converged"),
        ("digits", "original", "identity", RIVAL, 0.40, ""),
        ("digits", "original", "huber", DEFAULT, 1.10, ""),
    ]
    table = pd.DataFrame(rows, columns=["dataset", "provenance", "merit", "algorithm", "share", "warned"])
    for place, (column, value) in changes.items():
        table.loc[int(place[1:]), column] = value
    return table


def test_mediamill_alone_misses_the_goal_in_silence_as_the_notebook_and_the_guide_say():
    (found,) = silent(published())
    assert found.startswith(f"mediamill, identity merit, {DEFAULT}: 0.9")


def test_a_missing_record_is_named_with_the_command_that_makes_it(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"defaults\.csv is missing; make it with: make bench"):
        published(tmp_path)


def test_a_point_is_drawn_per_data_set_and_method_of_the_identity_merit_hollow_where_it_warned():
    axis = shares(records(), "title").axes[0]
    points = [line for line in axis.lines if line.get_marker() != "None"]
    assert [float(line.get_xdata()[0]) for line in points] == [0.97, 0.90, 0.40]
    assert [line.get_markerfacecolor() == "none" for line in points] == [False, True, False]
    assert [text.get_text() for text in axis.get_yticklabels()] == ["digits (original)"]
    assert [line.get_xdata()[0] for line in axis.lines if line not in points] == [GOAL]


def test_the_words_count_what_reaches_the_goal_and_what_warned():
    assert explain(records()).splitlines() == [
        "cdfsg-ada: 1 of 1 at 0.95 or more, least 0.970; of the others 0 of 0 with a warning",
        "cdfsg: 0 of 1 at 0.95 or more, least 0.900; of the others 1 of 1 with a warning",
        "CCA-EY, cca-zoo: 0 of 1 at 0.95 or more, least 0.400; of the others 0 of 1 with a warning",
    ]


@pytest.mark.parametrize(
    "change, found",
    [
        ({"_0": ("share", 0.94)}, "digits, identity merit, cdfsg-ada: 0.94"),
        ({"_1": ("warned", "")}, "digits, identity merit, cdfsg: 0.90"),
        ({"_3": ("share", 0.9)}, "digits, huber merit, cdfsg-ada: 0.90"),
        ({"_0": ("share", float("nan"))}, "digits, identity merit, cdfsg-ada: nan"),
    ],
)
def test_a_share_below_the_goal_without_a_warning_is_noticed(change, found):
    assert silent(records()) == [] and silent(records(**change)) == [found]


def test_every_method_of_the_records_has_a_mark_of_its_own():
    assert set(published()["algorithm"]) == set(defaults_figures._METHODS)
    assert len(set(defaults_figures._METHODS.values())) == 3
