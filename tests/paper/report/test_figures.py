import os
import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from cdfsg.files import ROOT
from cdfsg.paper.report.figures import (
    SERIES,
    STYLE,
    VERDICT_COLOURS,
    finish,
    lines,
    png,
    quality_panels,
    save,
    show,
    trace_bands,
    verdict_map,
)
from cdfsg.paper.results.verdicts import COUNTED, VERDICTS


@pytest.fixture(autouse=True)
def closed():
    with plt.rc_context(STYLE):
        yield
    plt.close("all")


def traces(ps=(2, 4)):
    """Three runs of every series at each p and three points, PCC rising along the pass."""
    frames = []
    for number, (solver, variant) in enumerate(SERIES):
        for p in ps:
            for samples in (0, 900, 1700):
                pcc = 0.1 * number + samples / 4000 + np.array([0.0, 0.05, 0.02])
                place = {"role": "trace", "p": p, "solver": solver, "variant": variant, "samples": samples}
                frames.append(pd.DataFrame({**place, "pcc": pcc, "fea": 0.1 + pcc, "fval": -2.0, "bound": -2.2}))
    return pd.concat(frames, ignore_index=True)


def judged():
    """A small table with every verdict."""
    rows = [(size, p, "CDFSG", quantity) for size in (20, 50) for p in (5, 10) for quantity in ("pcc", "fea")]
    table = pd.DataFrame(rows, columns=["batch_size", "p", "solver", "quantity"])
    table["reported"] = [0.01 * k + 0.1 for k in range(8)]
    table["reproduced"] = [0.01 * k + 0.5 for k in range(7)] + [np.nan]
    return table.assign(verdict=[*VERDICTS, *["match"] * 8][:8])


def curves(bands, title):
    shown = bands[bands["quantity"] == "pcc"].assign(fea=bands["median"])
    figure, columns = quality_panels(shown, "PCC", x="samples")
    for axes, part in columns:
        lines(axes, part, "samples", ("median", "fea"))
    return finish(figure, title)


def draw(folder):
    bands = trace_bands(traces(ps=(2,)))
    save(curves(bands, "curves"), "curves", bands, folder)
    save(verdict_map(judged(), "verdicts"), "verdicts", judged(), folder)
    return files_of(folder)


def files_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_same_numbers_give_the_same_bytes_in_another_process_at_another_time_and_style(tmp_path, monkeypatch):
    script = """
import pathlib, sys
import matplotlib.pyplot as plt
from cdfsg.paper.report.figures import STYLE
from tests.paper.report.test_figures import draw

plt.style.use(STYLE | {"svg.hashsalt": "other", "svg.fonttype": "path", "savefig.dpi": 50})
draw(pathlib.Path(sys.argv[1]))
"""
    other = tmp_path / "other"
    environment = os.environ | {"PYTHONHASHSEED": "7", "SOURCE_DATE_EPOCH": "0", "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", script, str(other)], cwd=ROOT, env=environment, check=True)
    mine = draw(tmp_path / "mine")
    assert sorted(mine) == ["curves.csv", "curves.svg", "verdicts.csv", "verdicts.svg"]
    assert files_of(other) == mine


def test_the_numbers_beside_a_picture_are_the_plotted_ones(tmp_path):
    draw(tmp_path)
    found = pd.read_csv(tmp_path / "curves.csv")
    pd.testing.assert_frame_equal(found, trace_bands(traces(ps=(2,))), check_dtype=False, rtol=1e-5)
    assert b"\r" not in (tmp_path / "curves.csv").read_bytes()


def test_what_another_processor_rounds_otherwise_changes_no_byte(tmp_path):
    bands = trace_bands(traces(ps=(2,))).assign(zero=1e-17)
    save(curves(bands, "title"), "x", bands, tmp_path)
    for path in tmp_path.iterdir():
        os.utime(path, (1, 1))
    floats = bands.select_dtypes("floating")
    noise = np.random.default_rng(0).uniform(-1, 1, floats.shape)
    other = bands.assign(**floats * (1 + 1e-7 * noise)).assign(zero=-3e-16)
    assert other.to_csv(float_format="%.6g") != bands.to_csv(float_format="%.6g")
    save(curves(other, "title"), "x", other, tmp_path)
    assert {path.stat().st_mtime for path in tmp_path.iterdir()} == {1}


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


def test_a_notebook_displays_the_picture_that_it_saves(tmp_path, monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", shown.append)
    bands = trace_bands(traces(ps=(2,)))
    show(curves(bands, "title"), "x", bands, folder=tmp_path)
    assert [picture.data for picture in shown] == [png(curves(bands, "title"))]
    assert len(files_of(tmp_path)) == 2


def test_a_band_has_the_median_and_the_range_of_the_traces_and_counts_what_diverged():
    runs = traces(ps=(2,))
    here = (runs["solver"] == "CDFSG") & (runs["samples"] == 1700)
    runs.loc[here, ["pcc", "fval"]] = [[0.9, -4.0], [0.5, -5.0], [np.nan, np.nan]]
    bands = trace_bands(pd.concat([runs.assign(role="reported", pcc=9.0), runs], ignore_index=True))
    assert bands["high"].max() < 9
    mine = bands[(bands["solver"] == "CDFSG") & (bands["samples"] == 1700)].set_index("quantity")
    assert mine.loc["pcc", ["median", "low", "high"]].tolist() == [0.7, 0.5, 0.9]
    assert mine.loc["fval", ["median", "low", "high"]].tolist() == [-4.5, -5.0, -4.0]
    assert mine.loc["pcc", ["runs", "diverged"]].tolist() == [3, 1] and mine.loc["fea", "diverged"] == 0


def test_rsg_plus_has_no_band_of_feasibility_since_its_constraint_is_another():
    bands = trace_bands(traces())
    assert len(bands) == 6 * 2 * 3 * 3 - 2 * 2 * 3
    assert set(bands[bands["solver"] == "RSG+"]["quantity"]) == {"pcc", "fval"}


def test_there_is_a_column_of_panels_per_p_with_a_line_per_series_that_has_numbers():
    bands = trace_bands(traces().query("solver != 'Landing'"))
    figure = curves(bands, "a title")
    assert [axis.get_title() for axis in figure.axes] == ["p = 2", "p = 4", "", ""]
    labels = ["CDFSG", "CDFSG-Ada", "RSG+", "RSG+, tuned like CDFSG"]
    assert [line.get_label() for line in figure.axes[0].lines] == labels
    assert [text.get_text() for text in figure.legends[0].get_texts()] == labels
    mine = bands.query("p == 4 and quantity == 'pcc' and solver == 'CDFSG'")
    assert figure.axes[1].lines[0].get_ydata().tolist() == mine["median"].tolist()


def test_every_verdict_that_is_counted_has_a_colour_of_its_own():
    assert set(VERDICT_COLOURS) == set(VERDICTS)
    colours = [VERDICT_COLOURS[word] for word in COUNTED]
    assert len(set(colours)) == len(colours) and not set(colours) & {VERDICT_COLOURS["derived"], VERDICT_COLOURS["n/a"]}


def test_the_map_shows_both_numbers_of_each_cell_on_the_colour_of_its_verdict():
    table = judged()
    axis = verdict_map(table, "").axes[0]
    assert [tick.get_text() for tick in axis.get_xticklabels()] == ["PCC", "Fea", "PCC", "Fea"]
    assert [tick.get_text() for tick in axis.get_yticklabels()] == ["l = 20   CDFSG", "l = 50   CDFSG"]
    texts = {text.get_position(): text.get_text() for text in axis.texts}
    patches = {patch.get_xy(): plt.matplotlib.colors.to_hex(patch.get_facecolor()) for patch in axis.patches}
    places = [(5, "pcc"), (5, "fea"), (10, "pcc"), (10, "fea")]
    for cell in table.itertuples():
        x, y = places.index((cell.p, cell.quantity)), cell.batch_size // 50
        ours = "–" if np.isnan(cell.reproduced) else f"{cell.reproduced:.2f}"
        assert texts[x + 0.5, y + 0.5] == f"{ours}\n({cell.reported:.2f})"
        assert patches[x, y] == VERDICT_COLOURS[cell.verdict]


def test_the_lowest_feasible_value_stands_beside_the_verdicts_on_fval():
    words = [text.get_text() for text in verdict_map(judged(), "", {5: -9.71, 10: -19.12}).axes[0].texts]
    assert sum("no feasible Fval below -" in text for text in words) == 2
    assert not any("feasible" in text.get_text() for text in verdict_map(judged(), "").axes[0].texts)
