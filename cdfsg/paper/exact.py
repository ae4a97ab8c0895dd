"""The exact solution for the identity merit by a batch eigensolver, timed."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from cdfsg import checksums, metrics
from cdfsg.files import Damaged, say
from cdfsg.merits import Identity
from cdfsg.paper.compute import NUMERICS, data_key, eigenvalues_of, views_of


def solve(dataset: str, ps: Sequence[int]) -> pd.DataFrame:
    """Solve a data set exactly on one core; `of` names the data and code."""
    views = replace(views_of(dataset))  # a copy without the kept covariance
    with threadpool_limits(1):
        began = time.perf_counter()
        covariance = views.covariance
        middle = time.perf_counter()
        X = metrics.minimiser(covariance, views.sizes, max(ps))
        end = time.perf_counter()
    found = {p: metrics.cross_moments(X[None, :, :p], covariance, views.sizes) for p in ps}
    total = eigenvalues_of(dataset)
    return pd.DataFrame(
        {
            "dataset": dataset, "p": p, "fval": metrics.objective(K, Identity())[0], "fea": metrics.feasibility(K)[0],
            "pcc": metrics.tcc(K)[0] / total[:p].sum() if views.n_views == 2 else np.nan,
            "seconds_covariance": middle - began, "seconds_eigen": end - middle, "seconds": end - began,
            "provenance": views.provenance.kind, "of": data_and_code(dataset),
        }
        for p, K in found.items()
    )  # fmt: skip


def data_and_code(dataset: str) -> str:
    """Words that tell the data and the numerical code of a row from any others."""
    return f"{data_key(views_of(dataset))} numerics {NUMERICS}"


def update(path: Path, dataset: str, ps: Sequence[int]) -> None:
    """Solve a data set and replace its rows in a file, unless they are of these data and code."""
    kept = pd.DataFrame(columns=["dataset", "p", "of"])
    try:
        kept = checksums.read_csv(path, "it is made anew")
    except Damaged as error:
        say(str(error))
    except FileNotFoundError:
        pass
    mine = kept[(kept["dataset"] == dataset) & kept["p"].isin(ps) & (kept["of"] == data_and_code(dataset))]
    if len(mine) < len(ps):
        frames = [part for part in (kept[kept["dataset"] != dataset], solve(dataset, ps)) if len(part)]
        table = pd.concat(frames, ignore_index=True).sort_values(["dataset", "p"])
        checksums.write(path, table.to_csv(index=False, lineterminator="\n"))
