import os
import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from cdfsg.files import ROOT
from cdfsg.paper.experiments import EXPERIMENTS, Block
from cdfsg.paper.results import tables
from cdfsg.paper.results.verdicts import VERDICTS
from cdfsg.paper.results.verdicts import attainability as attainability_table
from cdfsg.paper.results.verdicts import verdicts as verdicts_table
from cdfsg.paper.show.figures import (
    SERIES,
    VERDICT_COLOURS,
    attainability,
    curves,
    landing,
    match_share,
    save,
    show,
    times,
    trace_bands,
    trade_off,
    treatments,
    tuned,
    verdict_map,
)
from cdfsg.paper.show.figures import claims as claims_figure
from tests.paper.fakes import fake
from tests.paper.results.test_verdicts import runs_of

TRACE = Block(
    "digits", "identity", 100, 2, "CDFSG", "trace", "grid", 1, (1, 2, 3), ((0.5, 0.1),), trace_points=2
)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def traces(ps=(2, 4)):
    """Three runs of every series at each p and three points, PCC rising along the pass."""
    frames = []
    for number, (solver, variant) in enumerate(SERIES):
        for p in ps:
            block = Block(
                "digits",
                "identity",
                100,
                p,
                solver,
                "trace",
                variant,
                1,
                (1, 2, 3),
                ((0.5, 0.1),),
                trace_points=2,
            )
            for samples in (0, 900, 1700):
                pcc = 0.1 * number + samples / 4000 + np.array([0.0, 0.05, 0.02])
                frames.append(fake(block, samples=samples).assign(pcc=pcc, fea=0.1 + pcc))
    return pd.concat(frames, ignore_index=True)


def judged():
    """A small table with every verdict."""
    words = [*VERDICTS, "match"]
    rows = [(size, p, "CDFSG", quantity) for size in (20, 50) for p in (5, 10) for quantity in ("pcc", "fea")]
    table = pd.DataFrame(rows, columns=["batch_size", "p", "solver", "quantity"])
    table["reported"] = [0.01 * k + 0.1 for k in range(8)]
    table["reproduced"] = [0.01 * k + 0.5 for k in range(7)] + [np.nan]
    return table.assign(verdict=words)


def draw(folder):
    bands = trace_bands(traces(ps=(2,)))
    save(curves(bands, "curves"), "curves", bands, folder)
    save(verdict_map(judged(), "verdicts"), "verdicts", judged(), folder)
    return files_of(folder)


def files_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_band_has_the_median_the_lowest_and_the_highest_run():
    runs = pd.concat([fake(TRACE, samples=0), fake(TRACE, samples=1700)], ignore_index=True)
    runs["pcc"] = [0.1, 0.3, 0.2, 0.9, 0.5, 0.8]
    runs["fval"] = [-1.0, -3.0, -2.0, -4.0, -5.0, -9.0]
    bands = trace_bands(runs).set_index(["quantity", "samples"])
    assert bands.loc[("pcc", 0), ["median", "low", "high"]].tolist() == [0.2, 0.1, 0.3]
    assert bands.loc[("pcc", 1700), ["median", "low", "high"]].tolist() == [0.8, 0.5, 0.9]
    assert bands.loc[("fval", 1700), ["median", "low", "high"]].tolist() == [-5.0, -9.0, -4.0]
    assert set(bands["runs"]) == {3} and set(bands["diverged"]) == {0}


def test_a_run_that_diverged_is_counted_and_does_not_enter_the_band():
    runs = fake(TRACE, pcc=0.8, fea=0.1)
    runs.loc[2, ["status", "pcc", "fea", "fval"]] = ["diverged", np.nan, np.nan, np.nan]
    runs.loc[1, "pcc"] = 0.6
    band = trace_bands(runs).set_index("quantity").loc["pcc"]
    assert band[["runs", "diverged"]].tolist() == [3, 1]
    assert band[["median", "low", "high"]].tolist() == pytest.approx([0.7, 0.6, 0.8])


def test_bands_come_from_traces_alone_and_rsg_plus_has_none_of_feasibility():
    runs = traces()
    other = runs.assign(role="reported", pcc=9.0)
    bands = trace_bands(pd.concat([other, runs], ignore_index=True))
    assert bands["high"].max() < 9 and len(bands) == 6 * 2 * 3 * 3 - 2 * 2 * 3
    assert set(bands[bands["solver"] == "RSG+"]["quantity"]) == {"pcc", "fval"}


def test_the_curves_show_the_median_of_every_series_in_a_column_of_panels_per_p():
    bands = trace_bands(traces())
    figure = curves(bands, "a title")
    assert figure.get_suptitle() == "a title" and len(figure.axes) == 4
    for column, p in enumerate((2, 4)):
        for row, quantity in enumerate(("pcc", "fea")):
            panel = figure.axes[2 * row + column]
            lines = {line.get_label(): line for line in panel.lines}
            assert len(lines) == (6 if quantity == "pcc" else 4) == len(panel.collections)
            mine = bands.query(f"p == {p} and quantity == '{quantity}' and solver == 'CDFSG'")
            assert lines["CDFSG"].get_xdata().tolist() == [0, 900, 1700]
            assert lines["CDFSG"].get_ydata().tolist() == mine["median"].tolist()
        assert figure.axes[column].get_title() == f"p = {p}"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        s["label"] for s in SERIES.values()
    ]


def test_a_series_without_runs_is_left_out():
    bands = trace_bands(traces().query("solver != 'Landing' and p == 2"))
    figure = curves(bands, "")
    assert [line.get_label() for line in figure.axes[0].lines] == [
        "CDFSG",
        "CDFSG-Ada",
        "RSG+",
        "RSG+, tuned like CDFSG",
    ]


def test_every_verdict_has_a_colour_of_its_own():
    assert set(VERDICT_COLOURS) == set(VERDICTS) and len(set(VERDICT_COLOURS.values())) == len(VERDICTS)


def test_the_map_shows_both_numbers_of_each_cell_on_the_colour_of_its_verdict():
    table = judged()
    axis = verdict_map(table, "").axes[0]
    assert [tick.get_text() for tick in axis.get_xticklabels()] == ["PCC", "Fea", "PCC", "Fea"]
    assert [tick.get_text() for tick in axis.get_yticklabels()] == ["l = 20   CDFSG", "l = 50   CDFSG"]
    texts = {text.get_position(): text.get_text() for text in axis.texts}
    patches = {patch.get_xy(): plt.matplotlib.colors.to_hex(patch.get_facecolor()) for patch in axis.patches}
    assert len(patches) == 8
    for cell in table.itertuples():
        x, y = (
            [(5, "pcc"), (5, "fea"), (10, "pcc"), (10, "fea")].index((cell.p, cell.quantity)),
            cell.batch_size // 50,
        )
        ours = "–" if np.isnan(cell.reproduced) else f"{cell.reproduced:.2f}"
        assert texts[x + 0.5, y + 0.5] == f"{ours}\n({cell.reported:.2f})"
        assert patches[x, y] == VERDICT_COLOURS[cell.verdict]


def test_the_same_numbers_give_the_same_bytes_in_another_process(tmp_path):
    script = "import sys, pathlib; from tests.paper.show.test_figures import draw; draw(pathlib.Path(sys.argv[1]))"
    other = tmp_path / "other"
    environment = os.environ | {"PYTHONHASHSEED": "7", "SOURCE_DATE_EPOCH": "0", "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", script, str(other)], cwd=ROOT, env=environment, check=True)
    mine = draw(tmp_path / "mine")
    assert sorted(mine) == [
        f"{name}.{kind}" for name in ("curves", "verdicts") for kind in ("csv", "png", "svg")
    ]
    assert files_of(other) == mine


def test_the_bytes_do_not_depend_on_the_time_or_on_the_users_own_style(tmp_path, monkeypatch):
    first = draw(tmp_path / "first")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1000000000")
    with plt.rc_context({"svg.hashsalt": "other", "svg.fonttype": "none"}):
        assert draw(tmp_path / "second") == first


def test_the_numbers_beside_a_picture_are_the_plotted_ones(tmp_path):
    draw(tmp_path)
    found = pd.read_csv(tmp_path / "curves.csv")
    pd.testing.assert_frame_equal(found, trace_bands(traces(ps=(2,))), check_dtype=False, rtol=1e-5)
    assert b"\r" not in (tmp_path / "curves.csv").read_bytes()


def test_equal_figures_are_left_alone_and_changed_ones_replaced(tmp_path):
    bands = trace_bands(traces(ps=(2,)))
    save(curves(bands, "title"), "x", bands, tmp_path)
    for path in tmp_path.iterdir():
        os.utime(path, (1, 1))
    save(curves(bands, "title"), "x", bands, tmp_path)
    assert {path.stat().st_mtime for path in tmp_path.iterdir()} == {1}
    save(curves(bands.assign(median=0.5), "title"), "x", bands, tmp_path)
    assert {path.suffix for path in tmp_path.glob("x.*") if path.stat().st_mtime != 1} == {".svg", ".png"}


def test_what_another_processor_rounds_otherwise_changes_no_byte(tmp_path):
    bands = trace_bands(traces(ps=(2,))).assign(zero=1e-17)
    save(curves(bands, "title"), "x", bands, tmp_path)
    before = files_of(tmp_path)
    floats = bands.select_dtypes("floating")
    noise = np.random.default_rng(0).uniform(-1, 1, floats.shape)
    other = bands.assign(**floats * (1 + 1e-7 * noise)).assign(zero=-3e-16)
    assert other.to_csv(float_format="%.6g") != bands.to_csv(float_format="%.6g")
    save(curves(other, "title"), "x", other, tmp_path)
    assert files_of(tmp_path) == before


@pytest.mark.parametrize("change", ["colour", "word", "limit", "number", "missing number"])
def test_a_change_that_can_be_seen_is_saved(tmp_path, change):
    bands = trace_bands(traces(ps=(2,)))
    save(curves(bands, "title"), "x", bands, tmp_path)
    before = files_of(tmp_path)
    figure = curves(bands, "tilte" if change == "word" else "title")
    if change == "colour":
        figure.axes[0].lines[0].set_color("#0072B3")
    if change == "limit":
        figure.axes[0].set_ylim(0, 1.04)
    numbers = {"number": bands.assign(runs=4), "missing number": bands.assign(runs=np.nan)}
    save(figure, "x", numbers.get(change, bands), tmp_path)
    after = files_of(tmp_path)
    assert {name for name in after if after[name] != before[name]} >= {"x.csv" if change in numbers else "x.svg"}


def test_a_notebook_displays_the_saved_picture_and_not_the_new_one(tmp_path, monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", shown.append)
    bands = trace_bands(traces(ps=(2,)))
    show(curves(bands, "title"), "x", bands, tmp_path)
    with plt.rc_context({"savefig.dpi": 50}):
        show(curves(bands * 1, "title"), "x", bands, tmp_path)
    assert [picture.data for picture in shown] == [(tmp_path / "x.png").read_bytes()] * 2
    assert not plt.get_fignums()


EXPERIMENT = EXPERIMENTS["ta:pcctimemn"]


@pytest.fixture(scope="module")
def complete():
    return runs_of()


def drawn(axis, colour):
    """Points of the lines of one colour on an axis."""
    lines = [line for line in axis.get_lines() if line.get_color() == colour]
    return [(float(x), float(y)) for line in lines for x, y in line.get_xydata()]


def test_the_trade_off_has_a_panel_per_place_with_every_grid_point_and_the_papers_star(complete):
    figure = trade_off(tables.trade_off(EXPERIMENT, complete), "title")
    assert len(figure.axes) == 4 * 2
    panel = next(axis for axis in figure.axes if axis.get_title() == "l = 100, p = 10")
    points = drawn(panel, SERIES["CDFSG", "grid"]["color"])
    assert points.count((0.1, 0.9)) == 18  # the fake runs are all alike; the ring has no line colour of its own
    assert (0.2, 0.93) in points


def test_attainability_has_a_line_per_row_and_names_the_farthest_number(complete):
    rows = attainability_table(EXPERIMENT, complete)
    (axis,) = attainability(rows, "title").axes
    assert [text.get_text() for text in axis.get_yticklabels()][0] == "CDFSG  l = 20, p = 5"
    assert [text.get_text() for text in axis.texts] == list(rows["farthest"])


def test_landing_is_drawn_three_ways_and_diverged_runs_are_counted_in_words(complete):
    runs = complete.copy()
    lost = (runs["variant"] == "authors") & (runs["batch_size"] == 20)
    runs.loc[lost, "status"] = "diverged"
    figure = landing(tables.landing_three_ways(EXPERIMENT, runs), "title")
    assert len(figure.axes) == 4 and len(figure.axes[0].get_lines()) == 4
    assert [text.get_text() for text in figure.axes[0].texts] == ["10 of 10\ndiverged"]


def test_times_are_drawn_as_ratios_ours_solid_and_the_papers_dashed(complete):
    figure = times(tables.solver_times(EXPERIMENT, complete), "title")
    styles = [line.get_linestyle() for line in figure.axes[0].get_lines()]
    assert styles.count("-") == styles.count("--") == 4


def test_the_claims_are_drawn_with_their_verdicts():
    table = pd.DataFrame({"claim": ["a", "b"], "holds": [2, 0], "of": [3, 0], "derived": [1, 0]})
    table["verdict"] = ["holds in 2 of 3 cases", "cannot be judged"]
    (axis,) = claims_figure(table, "title").axes
    words = [text.get_text() for text in axis.texts]
    assert words == ["holds in 2 of 3 cases (1 on derived data)", "cannot be judged"]
    widths = sorted(round(bar.get_width(), 2) for bar in axis.patches)
    assert widths == [0.0, 0.67, 1.0, 1.0, 1.0]


def test_the_match_share_rises_with_the_tolerance_to_one_where_all_is_better(complete):
    shares = tables.match_share(verdicts_table(EXPERIMENT, complete))
    assert (np.diff(shares["near"]) >= 0).all() and (shares["near_or_better"] >= shares["near"]).all()
    at_one = shares[np.isclose(shares["multiple"], 1)]["near"].iloc[0]
    judged = verdicts_table(EXPERIMENT, complete)
    ours = judged[judged["solver"].str.startswith("CDFSG") & (judged["quantity"] != "time_s")]
    assert at_one == pytest.approx((ours["verdict"] == "match").mean())
    diverged = judged.assign(reproduced=judged["reproduced"].mask(judged["solver"] == "CDFSG"))
    assert tables.match_share(diverged)["near_or_better"].max() == (ours["solver"] != "CDFSG").mean()
    assert len(match_share(shares, "title").axes) == 2


def test_the_tuned_figure_draws_given_settings_solid_and_tuned_ones_dashed():
    table = pd.DataFrame(
        [
            {"batch_size": size, "p": 5, "solver": solver, "variant": variant, "quality": 0.5, "fea": 0.1}
            for solver, variant in SERIES
            for size in (20, 50)
        ]
    )
    table.loc[table["solver"] == "RSG+", "fea"] = np.nan
    figure = tuned(table, "")
    lines = {line.get_label(): line.get_linestyle() for line in figure.axes[0].lines}
    assert lines == {s["label"]: s.get("linestyle", "-") for s in SERIES.values()}
    assert len(figure.axes[1].lines) == len(SERIES) - 2


def test_the_treatments_are_drawn_where_there_are_any_with_the_range_of_the_data_orders():
    rows = [("protocol", "CDFSG"), ("raw", "CDFSG"), ("protocol", "CDFSG-Ada"), ("protocol", "Landing")]
    rows += [("eta1=0", "CDFSG-Ada"), ("eta1=0.99", "CDFSG-Ada")]
    table = pd.DataFrame(
        [
            {"treatment": name, "batch_size": size, "p": 5, "solver": solver, "quality": 0.5, "fea": 0.1}
            for name, solver in rows
            for size in (20, 50)
        ]
    )
    orders = pd.DataFrame({"batch_size": [20], "p": [5], "solver": ["CDFSG"], "quality_low": [0.4],
                           "quality_high": [0.6], "fea_low": [0.1], "fea_high": [0.2]})  # fmt: skip
    figure = treatments(table, orders, "")
    assert [axis.get_title() for axis in figure.axes[:2]] == ["CDFSG, p = 5", "CDFSG-Ada, p = 5"]
    assert [len(axis.lines) for axis in figure.axes] == [2, 3, 2, 3]
    assert [path.vertices.tolist() for path in figure.axes[0].collections[0].get_paths()] == [[[20, 0.4], [20, 0.6]]]
    first, second = figure.axes[1].lines[1:]
    assert first.get_color() == second.get_color() and first.get_linestyle() != second.get_linestyle()


def test_the_exact_solver_is_a_dotted_line_among_the_times():
    table = pd.DataFrame({"batch_size": [20, 50] * 2, "p": 5, "solver": ["CDFSG"] * 2 + [tables.EXACT] * 2,
                          "ratio": [1, 1, 3, 4.0], "reported_ratio": np.nan})  # fmt: skip
    lines = {line.get_label(): line for line in times(table, "").axes[0].lines}
    assert lines[tables.EXACT].get_linestyle() == ":" and lines[tables.EXACT].get_ydata().tolist() == [3, 4]


def test_the_lowest_feasible_value_stands_beside_the_verdicts_on_fval():
    words = [text.get_text() for text in verdict_map(judged(), "", {5: -9.71, 10: -19.12}).axes[0].texts]
    assert sum("no feasible Fval below -" in text for text in words) == 2
    assert not any("feasible" in text.get_text() for text in verdict_map(judged(), "").axes[0].texts)
