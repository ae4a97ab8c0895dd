"""Whatever happens to the records between two runs, in whatever order, a run ends with those of an undisturbed one."""

import os
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from cdfsg.files import read_if_intact, sweep
from cdfsg.paper import archive, records, run
from cdfsg.paper.run import key_of, run_jobs
from tests.datasets.builders import flip
from tests.paper.fakes import JOB, TINY, fake
from tests.project import replace_and

NOT_IN_CURVES = [name for name in records.METRICS if name not in ("quality", "pcc", "fval", "fea")]
ROLES = ("tuning", "tuning", "tuning", "trace")
JOBS = [replace(JOB, seeds=((k, 1), (k, 2)), role=role) for k, role in enumerate(ROLES, start=1)]
SOME = st.lists(st.sampled_from(JOBS), min_size=1, unique=True)


class Killed(BaseException):
    """Stands for a SIGKILL: nothing catches it."""


def made_up(job):
    """A record that takes no time and differs from job to job."""
    absent = {} if job.role == "tuning" else dict.fromkeys(NOT_IN_CURVES, np.nan)
    return fake(job, key=key_of(job), pcc=round(job.seeds[0][0] / 3, 8), seconds=0.1, **absent)


EXPECTED = {}
"""The record of each job as an undisturbed run has it."""


def undisturbed(jobs):
    return pd.concat([EXPECTED[job] for job in jobs], ignore_index=True)


class Records(RuleBasedStateMachine):
    """Runs, kills, damage, publication and unpacking in any order."""

    @initialize()
    def empty(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.folder = Path(self.scratch.name) / "runs"
        archive.QUICK = Path(self.scratch.name) / "quick"
        self.is_published = False

    def teardown(self):
        if hasattr(self, "scratch"):
            self.scratch.cleanup()

    @rule(jobs=SOME)
    def run_to_the_end(self, jobs):
        sweep(self.folder)  # as every command does first
        found = run_jobs(jobs, self.folder, 1)
        pd.testing.assert_frame_equal(found, undisturbed(jobs), check_exact=True)
        assert not list(self.folder.glob("*.tmp"))

    @rule(jobs=SOME, at=st.integers(1, 4), after=st.booleans())
    def run_until_killed(self, jobs, at, after):
        def kill():
            patch.setattr(Path, "unlink", lambda *_, **__: None)  # who is killed cleans nothing up
            raise Killed

        with pytest.MonkeyPatch.context() as patch, suppress(Killed):
            patch.setattr(os, "replace", replace_and(kill, at, not after))
            run_jobs(jobs, self.folder, 1)

    @rule(job=st.sampled_from(JOBS), share=st.floats(0, 0.999), harm=st.sampled_from(["flip", "cut", "delete"]))
    def damage(self, job, share, harm):
        path = self.folder / f"{key_of(job)}.csv"
        if not path.exists():
            return
        data = path.read_bytes()
        place = int(share * len(data))
        path.unlink()
        if harm != "delete" and data:
            path.write_bytes(flip(data, place) if harm == "flip" else data[:place])

    @rule()
    def publish(self):
        archive.publish(TINY, {"": run_jobs(JOBS, self.folder, 1)})
        self.is_published = True

    @precondition(lambda self: getattr(self, "is_published", False))
    @rule()
    def unpack(self):
        archive.unpack(TINY, self.folder)
        assert all(read_if_intact(self.folder / f"{key_of(job)}.csv") for job in JOBS)

    @precondition(lambda self: getattr(self, "is_published", False))
    @invariant()
    def what_is_published_reads_as_it_was(self):
        found = archive.runs_of(TINY)
        pd.testing.assert_frame_equal(found, undisturbed(JOBS), check_exact=True, check_dtype=False)


@pytest.mark.case("records: runs, kills, rot and publication in any order")
@pytest.mark.parametrize("examples", [10, pytest.param(100, marks=pytest.mark.torture)])
def test_no_order_of_runs_kills_damage_and_publication_changes_a_record(monkeypatch, tmp_path, tally, examples):
    monkeypatch.setattr(run, "compute", made_up)
    monkeypatch.setattr(archive, "QUICK", tmp_path)  # each machine sets its own
    for job in JOBS:
        records.write(made_up(job), tmp_path / "x.csv")
        EXPECTED[job] = records.read([tmp_path / "x.csv"])

    class Counted(Records):
        def teardown(self):
            super().teardown()
            tally(True)

    chosen = settings(max_examples=examples, stateful_step_count=12, deadline=None, derandomize=True, database=None,
                      suppress_health_check=list(HealthCheck))  # fmt: skip
    run_state_machine_as_test(Counted, settings=chosen)
