"""Facts on the paper's data sets as records, and its Table ta:data beside them."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cdfsg import checksums, metrics
from cdfsg.datasets import Views, mediamill
from cdfsg.files import PAPER, RECORDS
from cdfsg.linalg import Array
from cdfsg.merits import Identity
from cdfsg.paper.compute import covariance_of, eigenvalues_of, views_of
from cdfsg.paper.experiments import EXPERIMENTS

NAMES = tuple(dict.fromkeys(experiment.dataset for experiment in EXPERIMENTS.values()))
PS = sorted({p for experiment in EXPERIMENTS.values() for p in experiment.ps})
FILES = {"datasets": "datasets.csv"}
FILES |= {kind: f"dataset-{kind}.csv" for kind in ("views", "spectra", "denominators", "samples")}
SHOWN = {"mediamill": 40}
"""Samples that are kept for a picture, 8 of other data sets."""
RTOLS, RIDGES = (1e-12, 1e-10, 1e-8, 1e-6, 1e-4), (1e-6, 1e-4, 1e-3, 1e-2)
"""For PCC's denominator; ridges in units of a view's mean eigenvalue."""
PERFECT = 1e-8
"""Relative distance up to which a generalised eigenvalue counts as m - 1."""
EXACT_POINTS, THINNED_POINTS = 20, 60


def facts(views: Views, covariance: Array, eigenvalues: Array) -> dict[str, Any]:
    """One row of facts on a data set.

    ``condition`` is that of M on its numerical range, ``empty`` counts the directions outside, ``perfect`` the
    eigenvalues m - 1; ``lone_sample`` has most of the variance of the leading canonical variate.
    """
    spectra = [_spectrum(covariance[view, view]) for view in views.slices]
    direction = metrics.minimiser(covariance, views.sizes, 1)[:, 0]
    chunks = np.array_split(np.arange(views.n_samples), 20)  # for the memory
    share = np.concatenate([(views.rows(rows, np.float64) @ direction) ** 2 for rows in chunks])
    is_mediamill = views.name == "mediamill"
    labels = views.data[:, views.slices[-1]].sum(dtype=np.float64) if is_mediamill else np.nan
    m, n = views.n_views, views.n_features
    optima = {p: metrics.objective_bound(eigenvalues, p, m, Identity()) for p in PS if p <= n}
    return {
        "dataset": views.name, "provenance": views.provenance.kind, "source": views.provenance.source,
        "checksum": views.provenance.checksum, "features": n, "samples": views.n_samples,
        "available": mediamill.ROWS if is_mediamill else views.n_samples,
        "dtype": str(views.data.dtype), "bytes": views.data.nbytes, "scale": views.scale,
        "labels_per_sample": float(labels / views.n_samples),
        "condition": max(s[0] for s in spectra) / min(s[-1] for s in spectra),
        "empty": n - sum(map(len, spectra)), "largest": float(eigenvalues[0]),
        "lone_sample": int(share.argmax()), "lone_share": float(share.max() / share.sum()),
        "perfect": int((eigenvalues >= (m - 1) * (1 - PERFECT)).sum()),
        **{f"optimum_{p}": optimum for p, optimum in optima.items()},
    }  # fmt: skip


def view_facts(views: Views, covariance: Array) -> list[dict[str, Any]]:
    """One row of facts per view; values are those before the mean is subtracted."""
    rows = []
    for number, view in enumerate(views.slices, start=1):
        block, spectrum = views.data[:, view], _spectrum(covariance[view, view])
        rows.append(
            {
                "dataset": views.name, "view": number, "features": block.shape[1],
                "constant": int((block == block[0]).all(axis=0).sum()), "rank": len(spectrum),
                "condition": spectrum[0] / spectrum[-1], "zeros": 1 - np.count_nonzero(block) / block.size,
                "mean": views.scale * block.mean(dtype=np.float64),
                "deviation": views.scale * block.std(dtype=np.float64),
            }
        )  # fmt: skip
    return rows


def _spectrum(block: Array) -> Array:
    """Eigenvalues of a view's covariance on its numerical range, in descending order."""
    values = np.linalg.eigvalsh(block)[::-1]
    return values[values > metrics.SPECTRUM_RTOL * values[0]]


def spectra(views: Views, covariance: Array, eigenvalues: Array) -> pd.DataFrame:
    """Spectra per view, over the largest; view 0 has the generalised eigenvalues, over m - 1."""
    joint = eigenvalues[eigenvalues > metrics.SPECTRUM_RTOL] / (views.n_views - 1)
    blocks, frames = (_spectrum(covariance[view, view]) for view in views.slices), []
    for number, line in enumerate([joint, *(block / block[0] for block in blocks)]):
        spaced = np.rint(np.geomspace(1, len(line), THINNED_POINTS)).astype(int)
        index = np.union1d(np.arange(1, min(EXACT_POINTS, len(line)) + 1), spaced)
        frames.append(pd.DataFrame({"dataset": views.name, "view": number, "index": index, "value": line[index - 1]}))
    return pd.concat(frames, ignore_index=True)


def denominators(views: Views, covariance: Array) -> pd.DataFrame:
    """PCC's denominator under truncations and ridges."""
    treatments = {f"truncated at {rtol:g}": (covariance, rtol) for rtol in RTOLS}
    for ridge in RIDGES:
        treatments[f"ridge {ridge:g}"] = metrics.ridged(covariance, views.sizes, ridge), metrics.SPECTRUM_RTOL
    rows = []
    for words, (matrix, rtol) in treatments.items() if views.n_views == 2 else ():  # else there is no PCC
        values = metrics.canonical_correlations(matrix, views.sizes, rtol=rtol)
        rows += [(views.name, words, p, values[:p].sum()) for p in PS]
    return pd.DataFrame(rows, columns=["dataset", "treatment", "p", "value"])


def samples(views: Views) -> pd.DataFrame:
    """The first samples as stored: ``dataset, view, sample, values``."""
    shown = views.data[: SHOWN.get(views.name, 8)]
    return pd.DataFrame(
        {"dataset": views.name, "view": number, "sample": sample, "values": " ".join(map("{:.4g}".format, row))}
        for number, view in enumerate(views.slices, start=1)
        for sample, row in enumerate(shown[:, view])
    )


def tables(name: str) -> dict[str, pd.DataFrame]:
    """All records of a data set, by the kinds of `FILES`."""
    views, covariance, eigenvalues = views_of(name), covariance_of(name), eigenvalues_of(name)
    return {
        "datasets": pd.DataFrame([facts(views, covariance, eigenvalues)]),
        "views": pd.DataFrame(view_facts(views, covariance)),
        "spectra": spectra(views, covariance, eigenvalues),
        "denominators": denominators(views, covariance),
        "samples": samples(views),
    }


def publish(folder: Path = RECORDS, names: Iterable[str] = NAMES) -> None:
    """Write the records of some data sets, and keep those of the others."""
    made = {name: tables(name) for name in names}
    for kind, file in FILES.items():
        path, frames = folder / file, [found[kind] for found in made.values()]
        if path.exists() and not set(made) >= set(NAMES):
            old = checksums.read_csv(path)
            frames.insert(0, old[~old["dataset"].isin(made)])
        table = pd.concat([frame for frame in frames if len(frame)]).sort_values("dataset", kind="stable")
        # Six digits hold on every machine, which the last ones of an eigenvalue do not.
        checksums.write(path, table.to_csv(index=False, float_format="%.6g", lineterminator="\n"))


def read(kind: str) -> pd.DataFrame:
    """The published records of a kind of `FILES`."""
    return checksums.read_record(RECORDS / FILES[kind], "python -m cdfsg run")


def read_paper_table() -> pd.DataFrame:
    """The paper's ``dataset, quantity, view, reported, place, flag``; view 0 is all views."""
    return checksums.read_csv(PAPER / "datasets.csv", keep_default_na=False)


def judge(datasets: pd.DataFrame, views: pd.DataFrame) -> pd.DataFrame:
    """Every number that the paper prints of its data beside ours, ``equal`` or ``differs``."""
    table, whole, single = read_paper_table(), datasets.set_index("dataset"), views.set_index(["dataset", "view"])
    found = [
        single.at[(row.dataset, row.view), row.quantity] if row.view else whole.at[row.dataset, row.quantity]
        for row in table.itertuples()
    ]
    return table.assign(reproduced=found, verdict=np.where(table["reported"] == found, "equal", "differs"))
