"""Records made up for tests: the columns of a real run with numbers that the test chooses."""

import hashlib

import pandas as pd

from cdfsg.paper import records
from cdfsg.paper.experiments import Experiment, Job
from cdfsg.solvers import SOLVERS

TINY = Experiment(
    table="", dataset="digits", merit="identity", measure="pcc", batch_sizes=(100,), ps=(2,),
    solvers=("CDFSG", "Landing", "RSG+"), trace_batch_size=100, seeds=((1, 1), (2, 2)), tuning_seeds=((101, 101),),
)  # fmt: skip
"""All the pipeline in a second."""

JOB = Job("digits", "identity", 100, 2, "CDFSG", "tuning", "grid", ((101, 101), (102, 102)), ((0.5, 0.1), (0.25, 0.01)))

GOOD = {
    "status": "done", "stopped_at": -1, "samples": 1700, "provenance": "original", "seconds": 1.0,
    "quality": 0.9, "bound": -2.2, "pcc": 0.9, "pcc_paired": 0.9, "fval": -2.0, "fea": 0.1,
    "fea_spectral": 0.08, "fea_spectral_post": 0.08,
    "pcc_post": 0.9, "fea_post": 0.1, "fval_post": -2.0, "pcc_orth": 0.9, "fea_orth": 0.0, "fval_orth": -2.0,
}  # fmt: skip


def assert_same(found, expected):
    """The same records but for the wall times."""
    steady = [frame.drop(columns="seconds") for frame in (found, expected)]
    pd.testing.assert_frame_equal(*steady, check_exact=True)


def fake(*jobs, **numbers):
    """One row per run of the jobs, in the order in which `run.compute` has them; quality is PCC, as in CCA."""
    numbers.setdefault("quality", numbers.get("pcc", GOOD["pcc"]))
    rows = [
        {
            **{name: value for name, value in vars(job).items() if name in records.JOB}, "order": order, "start": start,
            **dict(zip(SOLVERS[job.solver].settings, setting, strict=True)), "beta": job.protocol.beta,
            "lanes": job.lanes, **GOOD, "key": hashlib.sha256(repr(job).encode()).hexdigest()[:16], **numbers,
        }
        for job in jobs
        for order, start in job.seeds
        for setting in job.settings
    ]  # fmt: skip
    frame = pd.DataFrame(rows).reindex(columns=list(records.COLUMNS))
    return frame.astype({name: float for name in ("order", *records.SETTINGS)})
