import os
import re
import subprocess
import sys
from collections import Counter
from html import unescape
from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from cdfsg.files import FIGURES, ROOT
from cdfsg.paper import archive
from cdfsg.paper.experiments import EXPERIMENTS
from cdfsg.paper.protocols import headline_variant
from cdfsg.paper.report import figures
from cdfsg.paper.report.figures import SERIES, STYLE, VERDICT_COLOURS, finish, lines, panels, save, trace_bands
from cdfsg.paper.report.pages import SIGNS, number
from cdfsg.paper.results import verdicts
from cdfsg.paper.results.reported import PANELS
from cdfsg.paper.results.verdicts import COUNTED, VERDICTS


@pytest.fixture(autouse=True)
def closed():
    with plt.rc_context(STYLE):
        yield
    plt.close("all")


def traces(ps=(2, 4)):
    """Three runs of every series at each p and three points, PCC rising along the pass."""
    frames = []
    for place, (solver, variant) in enumerate(SERIES):
        for p in ps:
            for samples in (0, 900, 1700):
                pcc = 0.1 * place + samples / 4000 + np.array([0.0, 0.05, 0.02])
                run = {"role": "trace", "p": p, "solver": solver, "variant": variant, "samples": samples}
                frames.append(pd.DataFrame({**run, "pcc": pcc, "fea": 0.1 + pcc, "fval": -2.0, "bound": -2.2}))
    return pd.concat(frames, ignore_index=True)


def curves(bands, title):
    shown = bands[bands["quantity"] == "pcc"].assign(fea=bands["median"])
    figure, columns = figures.quality_panels(shown, "PCC", x="samples")
    for axes, part in columns:
        lines(axes, part, "samples", ("median", "fea"))
    return finish(figure, title)


def draw(folder):
    bands = trace_bands(traces(ps=(2,)))
    save(curves(bands, "curves"), "curves", bands, folder)
    return files_of(folder)


def files_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_plotted_numbers_and_the_picture_are_the_same_bytes_in_another_process_time_and_style(tmp_path):
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
    assert sorted(mine) == ["curves.csv", "curves.svg"]
    assert files_of(other) == mine and b"\r" not in mine["curves.csv"]
    found = pd.read_csv(other / "curves.csv")
    pd.testing.assert_frame_equal(found, trace_bands(traces(ps=(2,))), check_dtype=False, rtol=1e-5)


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
    figures.show(curves(bands, "title"), "x", bands, folder=tmp_path)
    assert [picture.data for picture in shown] == [figures.png(curves(bands, "title"))]
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
    assert set(bands[bands["solver"] == "RSG+"]["quantity"]) == {"pcc", "fval"}  # its constraint is another


def test_there_is_a_column_of_panels_per_p_with_a_line_per_series_that_has_numbers():
    bands = trace_bands(traces().query("solver != 'Landing'"))
    figure = curves(bands, "a title")
    assert [axis.get_title() for axis in figure.axes] == ["p = 2", "p = 4", "", ""]
    labels = ["CDFSG", "CDFSG-Ada", "RSG+", "RSG+, tuned like CDFSG"]
    assert [line.get_label() for line in figure.axes[0].lines] == labels
    assert [text.get_text() for text in figure.legends[0].get_texts()] == labels
    mine = bands.query("p == 4 and quantity == 'pcc' and solver == 'CDFSG'")
    assert figure.axes[1].lines[0].get_ydata().tolist() == mine["median"].tolist()


# Of linear RGB: what red- and green-blind people see (Machado, Oliveira and Fernandes 2009), and XYZ over white.
SIGHTS = {
    "normal": np.eye(3),
    "red-blind": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "green-blind": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
}
XYZ = np.array([[0.4340, 0.3763, 0.1899], [0.2127, 0.7152, 0.0722], [0.0178, 0.1095, 0.8729]])


def linear(colour):
    rgb = np.array(to_rgb(colour))
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def lab(colour, sight):
    x, y, z = np.cbrt(XYZ @ np.clip(SIGHTS[sight] @ linear(colour), 0, 1))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("sight", SIGHTS)
def test_verdicts_are_told_apart_by_colour_without_red_or_green_too_and_by_sign_and_black_is_legible_on_them(sight):
    assert set(VERDICT_COLOURS) == set(VERDICTS) and len({SIGNS[word] for word in COUNTED}) == len(COUNTED)
    colours = {VERDICT_COLOURS[word] for word in (*COUNTED, "derived")}
    for one, other in combinations(sorted(colours), 2):
        assert np.linalg.norm(lab(one, sight) - lab(other, sight)) > 15, (one, other)
    for colour in colours:
        assert (XYZ[1] @ linear(colour) + 0.05) / 0.05 > 7, colour


def texts_of(path):
    return [unescape(text) for text in re.findall(r"<text[^>]*>(.*?)</text>", path.read_text(encoding="utf-8"))]


def test_no_picture_has_a_label_of_the_papers_source_and_all_say_where_their_numbers_are_from():
    for path in (path for path in FIGURES.glob("*.svg") if not path.name.startswith("theory-")):
        texts = texts_of(path)
        assert not [text for text in texts if re.search(r"\b(ta|pro|eq|th|le|fig):", text)], path.name
        if path.name.startswith(tuple(e.name for e in EXPERIMENTS.values())):
            words = " ".join(texts)
            assert re.search(r"\((original|derived)\), .* merit: the paper's Table \d", words), path.name
            assert re.search(r"runs", words) and re.search(r"l = \d+|l is the batch size", words), path.name


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=lambda experiment: experiment.name)
def test_the_picture_of_a_table_has_each_number_of_ours_with_the_sign_of_its_verdict_above_the_papers(experiment):
    judged, texts = verdicts.read(), texts_of(FIGURES / f"{experiment.name}-verdicts.svg")
    wanted = Counter()
    for cell in judged[judged["table"] == experiment.table].itertuples():
        ours = "n/a" if cell.verdict == "n/a" else f"{number(cell.reproduced)} {SIGNS[cell.verdict]}".rstrip()
        wanted.update([ours, f"({number(cell.reported)})"])
    assert not wanted - Counter(texts)


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=lambda experiment: experiment.name)
def test_the_papers_panels_name_each_solver_that_lost_runs_or_has_no_eligible_point(experiment):
    words = " ".join(texts_of(FIGURES / f"{experiment.name}-curves.svg"))
    bands = trace_bands(archive.runs_of(experiment))
    assert f"the paper's {PANELS[experiment.table]}" in words and "the paper's end" in words
    last = bands[(bands["samples"] == bands["samples"].max()) & (bands["quantity"] == experiment.measure)]
    for solver in experiment.solvers:
        mine = last[(last["solver"] == solver) & (last["variant"] == headline_variant(solver))]
        label = SERIES[solver, headline_variant(solver)]["label"]
        assert words.count(f"{label}: no point of the grid is eligible") == len(experiment.ps) - len(mine)
        assert words.count("runs survive") >= (mine["diverged"] > 0).sum()


def test_what_panels_lack_is_written_below_their_lines():
    figure, ((left, right),) = panels(1, 2, sharey=True)
    left.plot([0, 1], [2.0, 4.0])
    right.plot([0, 1], [3.0, 6.0])
    figures.note({left: [("a", "red")], right: [("b", "blue"), ("c", "blue")]})
    low, high = left.get_ylim()
    room = 2.0 - low
    assert [text.get_text() for text in right.texts] == ["b", "c"] and high > 6
    assert all((text.get_position()[1] + 0.05) * (high - low) < room for axis in (left, right) for text in axis.texts)


def test_the_runs_that_survive_are_counted_at_the_end_of_the_pass_and_their_line_is_dotted():
    runs = traces(ps=(2,)).query("solver != 'RSG+'")
    lost = (runs["solver"] == "CDFSG") & (runs["samples"] == 1700) & (runs["pcc"] > 0.43)
    bands = trace_bands(runs.assign(pcc=runs["pcc"].mask(lost))).query("quantity == 'pcc'")
    shown = {key: style for key, style in SERIES.items() if key[1] != "tuned"}
    words = [text for text, _ in figures.survivors(bands, shown, ["solver", "variant"])]
    assert words == ["CDFSG: 1 of 3 runs survive", "RSG+: no point of the grid is eligible"]
    figure, ((axis,),) = panels(1, 1)
    lines([axis], bands, "samples", ["median"], shown)
    assert [line.get_linestyle() for line in axis.lines] == [":", "-", "-"]


def test_logarithmic_axes_have_plain_numbers_and_few_of_them():
    figure, axes = panels(1, 3)
    for axis, high in zip(axes[0], (8, 5e4, 1e9), strict=True):
        axis.plot([1, 2], [0.02, high])
        axis.set(yscale="log", ylim=(0.02, high))
    figures.plain_ticks(figure)
    figure.canvas.draw()
    shown = [[tick.get_text() for tick in axis.get_yticklabels()] for axis in axes[0]]
    assert {"0.05", "0.1", "0.2", "5"} < set(shown[0]) and {"0.1", "1", "10,000"} < set(shown[1])
    assert max(map(len, shown)) < 14
