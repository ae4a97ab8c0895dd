import pandas as pd
import pytest

from cdfsg.paper import archive
from cdfsg.paper.experiments import EXPERIMENTS
from cdfsg.paper.results import verdicts
from tests.paper.fakes import TINY, fake
from tests.paper.results.test_verdicts import runs_of

EXPERIMENT = EXPERIMENTS["ta:pcctimemn"]


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "RECORDS", tmp_path / "records")
    monkeypatch.setattr(archive, "QUICK", tmp_path / "quick")
    monkeypatch.setattr(verdicts, "RECORDS", tmp_path / "records")
    return tmp_path


@pytest.fixture(scope="module")
def complete():
    return runs_of()


def test_published_records_come_back_the_curves_from_a_file_of_their_own(folders):
    runs = fake(*TINY.first_stage(), *TINY.second_stage({}), pcc=1 / 3)
    archive.publish(TINY, runs)
    assert sorted(path.name for path in (folders / "quick" / "records").glob("*.csv")) == [
        "digits-identity-curves.csv", "digits-identity.csv",
    ]  # fmt: skip
    curves = pd.read_csv(folders / "quick" / "records" / "digits-identity-curves.csv")
    assert set(curves["role"]) == {"trace"}
    found = archive.runs_of(TINY)
    key = ["role", "solver", "variant", "start", "s1", "s2", "eta", "omega"]
    expected = runs.sort_values(key, ignore_index=True)
    pd.testing.assert_frame_equal(found.sort_values(key, ignore_index=True), expected, check_exact=True)


def test_only_the_papers_own_experiments_are_published_in_the_repository(folders):
    assert archive.folder_of(EXPERIMENT) == folders / "records"
    assert archive.folder_of(TINY) == folders / "quick" / "records"


@pytest.mark.parametrize("experiment, make", [(EXPERIMENT, "make reproduce"), (TINY, "make quick")])
def test_records_that_are_missing_are_named_with_the_command_that_makes_them(experiment, make):
    with pytest.raises(FileNotFoundError, match=rf"{experiment.name}\.csv is missing; make it with: {make}"):
        archive.runs_of(experiment)


def test_curves_that_are_missing_are_missed_too(folders, complete):
    archive.publish(EXPERIMENT, complete)
    (folders / "records" / "mnist-identity-curves.csv").unlink()
    with pytest.raises(FileNotFoundError, match=r"mnist-identity-curves\.csv is missing"):
        archive.runs_of(EXPERIMENT)


def test_verdicts_without_any_records_say_how_to_make_them():
    with pytest.raises(FileNotFoundError, match="make reproduce"):
        verdicts.write()


def test_the_verdicts_are_written_as_they_are_returned(folders, complete):
    archive.publish(EXPERIMENT, complete)
    table = verdicts.write()
    assert len(table) == 192
    found = pd.read_csv(
        folders / "records" / "verdicts.csv", keep_default_na=False, na_values={"reported": [""]}
    )
    assert list(found.columns) == list(table.columns)
    for name in ("verdict", "flag", "solver", "quantity", "runs"):
        assert list(found[name]) == list(table[name])
