import numpy as np
import pandas as pd
import pytest

from cdfsg import metrics
from cdfsg.datasets import Provenance, Views, make_views
from cdfsg.paper import archive
from cdfsg.paper.compute import covariance_of, eigenvalues_of, views_of
from cdfsg.paper.experiments import EXPERIMENTS
from cdfsg.paper.measure import data_table
from tests.datasets.builders import to_be_had


@pytest.fixture
def datasets():
    return data_table.read("datasets")


@pytest.fixture
def views():
    return data_table.read("views")


def here(name):
    """The data set, if it is to be had here."""
    with to_be_had():
        return views_of(name)


def made(data, sizes, scale=1.0):
    """Some views, their covariance and their generalised eigenvalues."""
    some = Views("made", data, sizes, scale, centred=True, provenance=Provenance("here", "none:", "synthetic"))
    return some, some.covariance, metrics.generalised_eigenvalues(some.covariance, some.sizes)


def test_facts_of_data_with_a_known_answer():
    # Two views: x and 3 x, a constant column, and independent signs.
    x = np.array([1.0, -1, 1, -1])
    y = np.array([1.0, 1, -1, -1])
    some = made(np.column_stack([x, y, np.full(4, 7.0), 3 * x]), (3, 1), 0.5)
    found = data_table.facts(*some)
    assert (found["features"], found["samples"], found["empty"], found["perfect"]) == (4, 4, 1, 1)
    assert found["condition"] == pytest.approx(9)  # variances 1/4, 1/4 and 9/4
    first, second = data_table.view_facts(*some[:2])
    assert (first["features"], first["constant"], first["rank"]) == (3, 1, 2)
    assert (second["constant"], second["rank"], second["zeros"]) == (0, 1, 0)
    assert first["mean"] == pytest.approx(0.5 * 7 / 3)
    assert second["deviation"] == pytest.approx(1.5)
    integers = made(np.array([[0, 5, 0], [0, 0, 2], [1, 0, 0]], dtype=np.uint8), (2, 1))
    assert [row["zeros"] for row in data_table.view_facts(*integers[:2])] == pytest.approx([4 / 6, 2 / 3])


def test_a_sample_that_no_other_is_like_carries_the_leading_variate():
    data = np.random.default_rng(6).standard_normal((400, 4))
    data[:, [0, 2]] = 0
    data[123, [0, 2]] = 5
    found = data_table.facts(*made(data, (2, 2)))
    assert found["lone_sample"] == 123 and 0.99 < found["lone_share"] <= 1 and found["perfect"] == 1


def test_spectra_start_at_one_and_hold_the_correlations():
    table = data_table.spectra(*made(make_views(300, (4, 3), (0.9, 0.3), 7, exact=True, condition=10.0).data, (4, 3)))
    lines = {view: line["value"].to_numpy() for view, line in table.groupby("view")}
    np.testing.assert_allclose(lines[0][:2], (0.9, 0.3), rtol=1e-10)
    assert lines[1][0] == lines[2][0] == 1 and (len(lines[1]), len(lines[2])) == (4, 3)
    assert all((np.diff(line) <= 0).all() for line in lines.values())


def test_the_denominator_falls_as_a_ridge_is_added_and_needs_two_views():
    views = make_views(2000, (12, 10), (0.9, 0.8, 0.6), seed=2)
    table = data_table.denominators(views, views.covariance).set_index(["treatment", "p"])["value"]
    exact = metrics.canonical_correlations(views.covariance, views.sizes)[:5].sum()
    assert table["truncated at 1e-10", 5] == pytest.approx(exact)
    ridges = [table[f"ridge {ridge:g}", 5] for ridge in data_table.RIDGES]
    assert (np.diff(ridges) < 0).all() and ridges[0] < exact
    assert len(data_table.denominators(make_views(500, (6, 5, 4), (0.5,), seed=2), np.eye(15))) == 0


def test_a_printed_number_is_equal_or_differs(datasets, views):
    verdicts = data_table.judge(datasets, views)
    differing = verdicts[verdicts["verdict"] == "differs"]
    assert list(differing["reported"]) == [6000] and list(differing["reproduced"]) == [60000]
    datasets.loc[datasets["dataset"] == "mediamill", "samples"] = 43907
    own = data_table.judge(datasets, views).query("dataset == 'mediamill' and quantity == 'samples'")
    assert set(own["verdict"]) == {"differs"}


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


@pytest.mark.parametrize("name", ["mediamill", "mnist"])
def test_the_published_facts_are_those_of_the_data(name, datasets, views):
    some = here(name)
    covariance, eigenvalues = covariance_of(name), eigenvalues_of(name)
    for fresh, table in (
        (pd.DataFrame([data_table.facts(some, covariance, eigenvalues)]), datasets),
        (pd.DataFrame(data_table.view_facts(some, covariance)), views),
        (data_table.samples(some), data_table.read("samples")),
    ):
        published = table[table["dataset"] == name].reset_index(drop=True)
        # The smallest eigenvalues, and so the condition numbers, hold to a few digits only.
        pd.testing.assert_frame_equal(published, fresh, check_dtype=False, rtol=1e-3)


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
