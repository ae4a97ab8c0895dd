import os

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from cdfsg import metrics
from cdfsg.datasets import DownloadError, Provenance, Views, make_views
from cdfsg.paper import archive
from cdfsg.paper.compute import covariance_of, eigenvalues_of, views_of
from cdfsg.paper.experiments import EXPERIMENTS
from cdfsg.paper.measure import data_table
from cdfsg.paper.show import data_figures


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture
def datasets():
    return data_table.published("datasets")


@pytest.fixture
def views():
    return data_table.published("views")


def here(name):
    """The data set, if it is to be had here and is what the records were made of."""
    try:
        found = views_of(name)
    except DownloadError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"{name} cannot be had: {error}")
    recorded = data_table.published("datasets").set_index("dataset").at[name, "checksum"]
    if recorded != found.provenance.checksum:
        pytest.skip(f"here {name} is {found.provenance.source}, the records are of other data")
    return found


def matrices(some):
    S = some.covariance
    return S, metrics.generalised_eigenvalues(S, some.sizes)


# --- facts -----------------------------------------------------------------------------------------------


def test_facts_of_data_with_a_known_answer():
    # Two views: x and 3 x, a constant column, and independent signs.
    x = np.array([1.0, -1, 1, -1])
    y = np.array([1.0, 1, -1, -1])
    data = np.column_stack([x, y, np.full(4, 7.0), 3 * x])
    some = Views("known", data, (3, 1), 0.5, centred=True, provenance=Provenance("here", "none:", "synthetic"))
    found = data_table.facts(some, *matrices(some))
    assert (found["features"], found["samples"], found["empty"], found["perfect"]) == (4, 4, 1, 1)
    assert found["condition"] == pytest.approx(9)  # variances 1/4, 1/4 and 9/4
    first, second = data_table.view_facts(some, some.covariance)
    assert (first["features"], first["constant"], first["rank"]) == (3, 1, 2)
    assert (second["constant"], second["rank"], second["zeros"]) == (0, 1, 0)
    assert first["mean"] == pytest.approx(0.5 * 7 / 3)
    assert second["deviation"] == pytest.approx(1.5)


def test_zeros_are_those_of_the_stored_values():
    data = np.array([[0, 5, 0], [0, 0, 2], [1, 0, 0]], dtype=np.uint8)
    some = Views("sparse", data, (2, 1), 1.0, centred=True, provenance=Provenance("here", "none:", "synthetic"))
    assert [row["zeros"] for row in data_table.view_facts(some, some.covariance)] == [4 / 6, 2 / 3]


def test_the_leading_variate_is_that_of_the_largest_correlation():
    some = make_views(500, (4, 3), (0.9, 0.3), seed=5, exact=True, condition=3.0)
    variate = data_table.leading_variate(some, some.covariance)
    assert (variate**2).mean() == pytest.approx(1) and abs(variate.mean()) < 1e-12
    # It is the sum of both views' canonical variates, whose correlations with it are equal.
    halves = [np.linalg.lstsq(some.data[:, s] - some.mean[s], variate, rcond=None)[0] for s in some.slices]
    fitted = [(some.data[:, s] - some.mean[s]) @ w for s, w in zip(some.slices, halves, strict=True)]
    assert np.corrcoef(*fitted)[0, 1] == pytest.approx(0.9)


def test_a_sample_that_no_other_is_like_carries_the_leading_variate():
    rng = np.random.default_rng(6)
    data = rng.standard_normal((400, 4))
    data[:, [0, 2]] = 0
    data[123, [0, 2]] = 5
    some = Views("lone", data, (2, 2), 1.0, centred=True, provenance=Provenance("here", "none:", "synthetic"))
    found = data_table.facts(some, *matrices(some))
    assert found["lone_sample"] == 123 and found["lone_share"] > 0.99 and found["perfect"] == 1


def test_spectra_start_at_one_and_hold_the_correlations():
    some = make_views(300, (4, 3), (0.9, 0.3), seed=7, exact=True, condition=10.0)
    table = data_table.spectra(some, *matrices(some))
    lines = {view: line["value"].to_numpy() for view, line in table.groupby("view")}
    np.testing.assert_allclose(lines[0][:2], (0.9, 0.3), rtol=1e-10)
    assert lines[1][0] == lines[2][0] == 1 and (len(lines[1]), len(lines[2])) == (4, 3)
    assert all((np.diff(line) <= 0).all() for line in lines.values())


def test_a_missed_leading_correlation_lowers_what_pcc_can_be():
    table = pd.DataFrame({"dataset": "d", "view": 0, "index": [1, 2, 3], "value": [1.0, 0.5, 0.1]})
    assert data_table.ceiling_without_first(table, "d", 2) == pytest.approx(0.6 / 1.5)
    with pytest.raises(ValueError, match="have all of the first"):
        data_table.ceiling_without_first(table, "d", 3)


# --- the paper's table -----------------------------------------------------------------------------------


def test_a_printed_number_is_equal_or_differs(datasets, views):
    verdicts = data_table.judged(datasets, views)
    differing = verdicts[verdicts["verdict"] == "differs"]
    assert list(differing["reported"]) == [6000] and list(differing["reproduced"]) == [60000]
    datasets.loc[datasets["dataset"] == "mediamill", "samples"] = 43907
    own = data_table.judged(datasets, views).query("dataset == 'mediamill' and quantity == 'samples'")
    assert set(own["verdict"]) == {"differs"}


def test_the_transcribed_table_has_every_view_and_sample_size():
    table = data_table.printed()
    cells = table[table["place"] == "ta:data"].groupby(["dataset", "quantity"]).size()
    assert cells.to_dict() == {
        ("mediamill", "features"): 2, ("mediamill", "samples"): 1, ("mnist", "features"): 2,
        ("mnist", "samples"): 1, ("nmnist", "features"): 3, ("nmnist", "samples"): 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    "spoil, words",
    [
        (lambda v, d, w: v.__setitem__("flag", ""), "the paper and the data differ"),
        (lambda v, d, w: w.__setitem__("features", w["features"] + 1), "do not have"),
        (lambda v, d, w: d.__setitem__("empty", d["empty"] + 1), "empty directions"),
    ],
)
def test_the_check_raises_where_the_records_do_not_bear_out_the_table(datasets, views, spoil, words):
    verdicts = data_table.judged(datasets, views)
    data_table.check(verdicts, datasets, views)
    spoil(verdicts, datasets, views)
    with pytest.raises(AssertionError, match=words):
        data_table.check(verdicts, datasets, views)


def test_the_denominator_falls_as_more_is_truncated_or_a_ridge_is_added_and_needs_two_views():
    views = make_views(2000, (12, 10), (0.9, 0.8, 0.6), seed=2)
    table = data_table.denominators(views, views.covariance).set_index(["treatment", "p"])["value"]
    exact = metrics.canonical_correlations(views.covariance, views.sizes)[:5].sum()
    assert table["truncated at 1e-10", 5] == pytest.approx(exact)
    ridges = [table[f"ridge {ridge:g}", 5] for ridge in data_table.RIDGES]
    assert (np.diff(ridges) < 0).all() and ridges[0] < exact
    assert len(data_table.denominators(make_views(500, (6, 5, 4), (0.5,), seed=2), np.eye(15))) == 0


# --- records ---------------------------------------------------------------------------------------------


def test_publishing_one_data_set_leaves_the_others_alone(tmp_path):
    data_table.publish(tmp_path, ("synthetic",))
    before = {path.name: path.read_text() for path in tmp_path.glob("*.csv")}
    assert set(before) == set(data_table.FILES.values())
    data_table.publish(tmp_path, ("digits",))
    for name, text in before.items():
        assert set(text.splitlines()) < set((tmp_path / name).read_text().splitlines())
    both = {path.name: path.read_text() for path in tmp_path.iterdir()}
    data_table.publish(tmp_path, ("digits",))
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == both


def test_missing_records_are_named_with_the_remedy(tmp_path, monkeypatch):
    monkeypatch.setattr(data_table, "RECORDS", tmp_path)
    with pytest.raises(FileNotFoundError, match=r"datasets\.csv is missing; make it with: python -m cdfsg run"):
        data_table.published("datasets")


@pytest.mark.parametrize("name", ["mediamill", "mnist"])
def test_the_published_facts_are_those_of_the_data(name, datasets, views):
    some = here(name)
    whole = data_table.facts(some, covariance_of(name), eigenvalues_of(name))
    single = data_table.view_facts(some, covariance_of(name))
    for fresh, table in (([whole], datasets), (single, views)):
        published = table[table["dataset"] == name].reset_index(drop=True)
        # The smallest eigenvalues, and so the condition numbers, hold to a few digits only.
        pd.testing.assert_frame_equal(published, pd.DataFrame(fresh), check_dtype=False, rtol=1e-3)


def test_the_published_optima_are_those_by_which_the_runs_were_judged(datasets):
    optima = datasets.set_index("dataset")
    for experiment in EXPERIMENTS.values():
        if experiment.merit != "identity":
            continue
        runs = archive.runs_of(experiment)
        if set(runs["provenance"]) != {optima.at[experiment.dataset, "provenance"]}:
            pytest.skip(f"the runs and the facts of {experiment.dataset} are of different data")
        for p, bounds in runs.groupby("p")["bound"]:
            np.testing.assert_allclose(bounds, optima.at[experiment.dataset, f"optimum_{p}"], rtol=1e-5)


# --- figures ---------------------------------------------------------------------------------------------


def test_the_published_samples_are_the_first_rows_of_the_data():
    some = here("mnist")
    for view, columns in enumerate(some.slices, start=1):
        found = data_figures._values(data_table.published("samples"), "mnist", view)
        np.testing.assert_array_equal(found, some.data[: data_figures.SHOWN, columns])


def test_derived_data_are_called_so_in_the_figures(datasets):
    labels = data_figures.labels_of(datasets)
    figure = data_figures.spectra(data_table.published("spectra"), labels, "t")
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert {"mediamill", "mnist", "nmnist (derived)"} <= set(texts)
    assert [len(axis.lines) for axis in figure.axes] == [7 + 1, 3]


def test_the_lone_image_has_rare_pixels_in_both_halves(datasets):
    here("mnist")
    sample = datasets.set_index("dataset").at["mnist", "lone_sample"]
    pixels = data_figures.lone_image(sample)
    rare = pixels[pixels["images"] <= data_figures.RARE]
    assert rare["column"].min() < 14 <= rare["column"].max()
    (axis,) = data_figures.lone(pixels, "t").axes
    assert len(axis.lines[-1].get_xdata()) == len(rare)
