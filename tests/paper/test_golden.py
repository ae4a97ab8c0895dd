"""A dozen small jobs whose numbers are on record: they tell when the numerics change.

``python -m tests.paper.test_golden`` writes the record anew, after `NUMERICS` or the version of a solver was raised.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cdfsg.paper.compute import compute
from cdfsg.paper.experiments import Job
from cdfsg.paper.protocols import Protocol
from cdfsg.paper.records import METRICS

RECORD = Path(__file__).parent / "golden.csv"
JOB = Job("synthetic", "identity", 100, 2, "CDFSG", "reported", "grid", ((1, 1), (1, 2)), ((0.5, 0.02),))
ADA = replace(JOB, solver="CDFSG-Ada", settings=((0.5, 0.01),))
LANDING = replace(JOB, solver="Landing", settings=((0.05, 1.0),))
RSG_PLUS = replace(  # at the published weight its inverses of blocks make rounding grow
    JOB, solver="RSG+", settings=((0.1, 0.01),), protocol=Protocol(constants=(("weight", 1e-3),))
)
JOBS = {
    "CDFSG": JOB, "CDFSG-Ada": ADA, "Landing": LANDING, "RSG+": RSG_PLUS,
    "Huber": replace(JOB, merit="huber"),
    "CDFSG-Ada, Huber": replace(ADA, merit="huber", p=3),
    "raw": replace(JOB, protocol=Protocol(centred=False)),
    "shared": replace(ADA, protocol=Protocol(minibatches="shared")),
    "in the order of the file": replace(LANDING, seeds=((None, 1), (None, 2))),
    "beta": replace(JOB, protocol=Protocol(beta=1.0)),
    "constants": replace(ADA, protocol=Protocol(constants=(("eta2", 0.9),))),
    "a curve": replace(JOB, role="trace", trace_points=3),
}  # fmt: skip


def found(name):
    frame = compute(JOBS[name])[["start", "samples", *METRICS]]
    return frame.assign(job=name)[["job", "start", "samples", *METRICS]]


@pytest.mark.parametrize("name", JOBS)
def test_the_numbers_of_a_small_job_are_those_on_record(name):
    expected = pd.read_csv(RECORD).query("job == @name")
    told = "raise NUMERICS in cdfsg/paper/compute.py, or the version of the solver, and run make reproduce"
    for column in ("start", "samples", *METRICS):  # single precision, and sums in another order on another processor
        np.testing.assert_allclose(
            found(name)[column], expected[column], rtol=1e-4, atol=1e-5, err_msg=f"{name}, {column}: {told}"
        )


if __name__ == "__main__":
    pd.concat([found(name) for name in JOBS]).to_csv(RECORD, index=False, lineterminator="\n")
