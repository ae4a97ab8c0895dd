"""Figures and words on speed."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from cdfsg.paper.measure import speed
from cdfsg.paper.show import speed_figures, speed_words


@pytest.fixture(scope="module")
def records():
    return speed.published()


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_the_bars_are_the_recorded_ratios_labelled_with_their_number(records):
    direct = records["direct"]
    axes = speed_figures.ratios(direct, "t").axes
    heights = [bar.get_height() for axis in axes for bar in axis.patches]
    np.testing.assert_allclose(sorted(heights), sorted(direct["ratio"]))
    assert sorted(text.get_text() for axis in axes for text in axis.texts) == sorted(
        f"{ratio:.0f}" for ratio in direct["ratio"]
    )


def test_every_method_has_a_curve_or_a_point_and_an_entry_in_the_legend(records):
    others = records["others"]
    figure = speed_figures.curves(others, "t")
    labels = {text.get_text() for text in figure.legends[0].get_texts()}
    for method in others["method"].unique():
        assert any(label.startswith(method) for label in labels), method
    drawn = [line.get_ydata() for line in figure.axes[0].lines]
    for _, line in others[others["seconds"] > 0].groupby(["method", "setting"]):
        assert any(len(y) == len(line) and np.allclose(y, line["pcc"]) for y in drawn)


def test_no_point_of_the_roofline_figure_is_left_out(records):
    table = records["roofline"]
    axes = speed_figures.roofline(table, "t").axes
    datasets = table["dataset"].nunique()
    marks = [line for axis in axes[:datasets] for line in axis.lines if line.get_marker() in ("o", "s", "^")]
    assert sum(len(line.get_xdata()) for line in marks) == len(table)


def test_the_lines_of_growth_are_the_fits_over_the_filled_points(records):
    axis = speed_figures.growth(records["growth"], "t").axes[0]
    found = speed.exponents(records["growth"]).set_index(["solver", "axis", "quantity", "part"])
    for solver in ("CDFSG", "CDFSG-Ada"):
        law = found.loc[(solver, "n", "seconds", "upper")]
        words = f"{solver}: {law['exponent']:.2f} ± {law['half_width']:.2f}"
        (line,) = [line for line in axis.lines if line.get_label() == words]
        x, y = line.get_xdata(), line.get_ydata()
        np.testing.assert_allclose(np.diff(np.log(y)) / np.diff(np.log(x)), law["exponent"])


def test_words_on_ratios_give_the_range_over_the_solvers(records):
    direct = records["direct"].assign(ratio=50.0, engine_pass_seconds=0.5)
    direct.loc[direct["solver"] == "CDFSG", "ratio"] = 60.0
    first = speed_words.ratios(direct).splitlines()[0]
    assert first == (
        "MNIST, 1 lane: 50 to 60 times as fast as in float32, 50 to 60 times as fast as in float64; "
        "a pass takes 0.5 s per lane"
    )


def test_words_on_shares_give_the_worst(records):
    table = records["roofline"].assign(share=0.8)
    table.loc[(table["batch_size"] == 100) & (table["solver"] == "CDFSG"), "share"] = 0.3
    first = speed_words.shares(table).splitlines()[0]
    assert first == "MNIST, 1 lane: l = 20: 80%, l = 50: 80%, l = 100: 30%, l = 200: 80%"


def test_words_on_methods_say_never_where_a_level_is_not_reached(records):
    low = records["others"].assign(pcc=0.92)
    for line in speed_words.methods(low).splitlines():
        assert "PCC 0.95 never" in line and "PCC 0.920 after one pass" in line


def test_words_on_growth_give_both_exponents(records):
    found = speed.exponents(records["growth"])
    found = found.assign(exponent=np.where(found["part"] == "upper", 1.0, 0.5), half_width=0.01)
    lines = speed_words.exponents(found).splitlines()
    assert len(lines) == 10 and all("1.00 +- 0.01; from" in line and line.endswith("0.50 +- 0.01") for line in lines)


def test_words_on_targets_count_those_that_are_met(records):
    table = speed.targets(records)
    assert speed_words.targets(table.assign(met=True)).endswith(f"{len(table)} of {len(table)} are met")
    assert speed_words.targets(table.assign(met=False)).count("not met") == len(table)


def test_words_on_the_papers_seconds_name_every_data_set_and_solver(records):
    both = speed.beside_the_paper(records["roofline"])
    lines = speed_words.paper(both).splitlines()
    assert len(lines) == len(both[["dataset", "solver"]].drop_duplicates())
    assert lines[0].startswith("MNIST, CDFSG: the paper ")
