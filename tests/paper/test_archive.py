import contextlib
import os

import pandas as pd
import pytest

from cdfsg.paper import archive
from cdfsg.paper.experiments import EXPERIMENTS
from cdfsg.paper.results import verdicts
from tests.paper.fakes import TINY, fake

EXPERIMENT = EXPERIMENTS["ta:pcctimemn"]


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "RECORDS", tmp_path / "records")
    monkeypatch.setattr(archive, "QUICK", tmp_path / "quick")
    monkeypatch.setattr(verdicts, "RECORDS", tmp_path / "records")
    return tmp_path


def test_records_are_published_with_index_curves_and_times_in_files_of_their_own(folders):
    runs = fake(*TINY.jobs())
    archive.publish(TINY, {"": runs})
    assert sorted(path.name for path in (folders / "quick" / "records").glob("*.csv")) == [
        "digits-identity-curves.csv", "digits-identity.csv", "index.csv", "times.csv",
    ]  # fmt: skip
    index = pd.read_csv(folders / "quick" / "records" / "index.csv")
    assert list(index["key"]) == list(dict.fromkeys(index["key"])) and set(index["key"]) == set(runs["key"])
    assert list(pd.read_csv(folders / "quick" / "records" / "times.csv")) == ["key", "order", "start", "seconds"]
    assert set(index.loc[index["file"] == "digits-identity-curves.csv", "role"]) == {"trace"}


@pytest.mark.parametrize("experiment, make", [(EXPERIMENT, "make reproduce"), (TINY, "make quick")])
def test_records_that_are_missing_are_named_with_the_command_that_makes_them(folders, experiment, make):
    with pytest.raises(FileNotFoundError, match=rf"{experiment.name}\.csv is missing; make it with: {make}"):
        archive.runs_of(experiment)
    archive.publish(TINY, {"": fake(*TINY.jobs())})
    (folders / "quick" / "records" / "digits-identity-curves.csv").unlink()
    with pytest.raises(FileNotFoundError, match=r"digits-identity-curves\.csv is missing"):
        archive.runs_of(TINY)


def test_a_rerun_that_changes_no_number_changes_no_file_but_the_times(folders):
    runs = fake(*TINY.jobs())
    archive.publish(TINY, {"": runs})
    before = {path.name: path.read_bytes() for path in (folders / "quick" / "records").glob("*.csv")}
    archive.publish(TINY, {"": runs.assign(seconds=2.0)})
    after = {path.name: path.read_bytes() for path in (folders / "quick" / "records").glob("*.csv")}
    assert {name for name in before if before[name] != after[name]} == {"times.csv"}


@pytest.mark.parametrize("at", range(1, 9))
def test_a_kill_while_records_are_published_leaves_old_or_new_ones_of_every_file(folders, monkeypatch, at):
    old = fake(*TINY.jobs(), pcc=0.5)
    new = old.assign(pcc=0.75, key=old["key"].str[::-1])
    archive.publish(TINY, {"": old})
    plain, calls = os.replace, iter(range(1, 100))

    def replaced(source, target):
        if next(calls) == at:
            raise KeyboardInterrupt
        plain(source, target)

    monkeypatch.setattr(os, "replace", replaced)
    with contextlib.suppress(KeyboardInterrupt):
        archive.publish(TINY, {"": new})
    monkeypatch.setattr(os, "replace", plain)
    assert len(archive.runs_of(TINY)) == len(old)
    archive.publish(TINY, {"": new})
    assert set(archive.runs_of(TINY)["pcc"]) == {0.75}
    assert set(pd.read_csv(folders / "quick" / "records" / "index.csv")["key"]) == set(new["key"])
