"""The records in the repository against the code beside them."""

import os

import numpy as np
import pytest

from cdfsg.datasets import DownloadError
from cdfsg.paper import report
from cdfsg.paper.experiments import EXPERIMENTS
from cdfsg.paper.run import compute, key_of, views_of
from cdfsg.paper.select import METRICS, select
from cdfsg.paper.verdicts import verdicts

EXPERIMENT = EXPERIMENTS["ta:pcctimemn"]


@pytest.fixture(scope="module")
def published():
    return report.published(EXPERIMENT)


@pytest.fixture(scope="module")
def blocks(published):
    return [*EXPERIMENT.first_stage(), *EXPERIMENT.second_stage(select(published))]


@pytest.fixture(scope="module")
def mnist():
    try:
        return views_of("mnist")
    except DownloadError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"MNIST cannot be had: {error}")


def test_every_run_of_the_experiment_is_published_once(published, blocks):
    what = ["batch_size", "p", "solver", "role", "variant"]
    found = (
        published.drop_duplicates([*what, "order", "start", "s1", "s2", "eta", "omega"]).groupby(what).size()
    )
    expected = {}
    for block in blocks:
        cell = tuple(getattr(block, name) for name in what)
        expected[cell] = expected.get(cell, 0) + block.lanes
    assert found.to_dict() == expected


def test_the_published_records_are_those_of_this_code_and_these_data(published, blocks, mnist):
    stale = set(published["key"]) != {key_of(block) for block in blocks}
    assert not stale, "the code or the data changed since data/records was made: run make reproduce"


@pytest.mark.parametrize("solver", ["CDFSG", "CDFSG-Ada"])
def test_a_published_run_comes_out_again(published, blocks, mnist, solver):
    (block,) = [
        b for b in blocks
        if (b.role, b.batch_size, b.p, b.solver, b.starts) == ("timing", 200, 5, solver, (1,))
    ]  # fmt: skip
    same = [
        published[name] == getattr(block, name) for name in ("role", "batch_size", "p", "solver", "variant")
    ]
    (expected,) = published[np.logical_and.reduce(same)].to_dict("records")
    (found,) = compute(block).to_dict("records")
    assert (found["s1"], found["s2"], found["start"]) == (expected["s1"], expected["s2"], expected["start"])
    assert (found["status"], found["provenance"]) == (expected["status"], expected["provenance"])
    for name in METRICS:  # float32, and sums in another order on another processor
        np.testing.assert_allclose(found[name], expected[name], atol=2e-3, err_msg=name)


def test_the_published_verdicts_are_those_of_the_published_records(published):
    text = (report.RECORDS / "verdicts.csv").read_text()
    assert text == verdicts(EXPERIMENT, published).to_csv(index=False, lineterminator="\n"), (
        "run make reproduce"
    )
