"""The paper's Table ta:data from the data themselves, with what a reader wants to know besides.

The facts are records, made by `publish`: one row per data set, one per view, the first samples, and the spectra
thinned for a picture.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cdfsg import checksums, metrics
from cdfsg.datasets import Views, mediamill_files
from cdfsg.files import PAPER, RECORDS
from cdfsg.linalg import Array
from cdfsg.merits import Identity
from cdfsg.paper.compute import covariance_of, eigenvalues_of, views_of
from cdfsg.paper.experiments import EXPERIMENTS

NAMES = tuple(dict.fromkeys(experiment.dataset for experiment in EXPERIMENTS.values()))
"""The paper's data sets."""
FILES = {
    "datasets": "datasets.csv",
    "views": "dataset-views.csv",
    "spectra": "dataset-spectra.csv",
    "denominators": "dataset-denominators.csv",
    "samples": "dataset-samples.csv",
}
SHOWN, ROWS = 8, {"mediamill": 40}
"""Samples of a data set that are kept for a picture, and those of a data set that has another number of them."""
RTOLS = (1e-12, 1e-10, 1e-8, 1e-6, 1e-4)
RIDGES = (1e-6, 1e-4, 1e-3, 1e-2)
"""Truncations of the spectra, and ridges in units of a view's mean eigenvalue, for PCC's denominator."""
VERDICTS = ("equal", "differs")
PERFECT = 1e-8
"""A canonical correlation is 1, or a generalised eigenvalue m - 1, if it is no farther from it, relatively."""
EXACT_POINTS, THINNED_POINTS = 20, 60
_CHUNK = 4096


# --- what the data are -----------------------------------------------------------------------------------


def facts(views: Views, covariance: Array, eigenvalues: Array) -> dict[str, Any]:
    """One row of facts on a data set.

    Parameters
    ----------
    views : Views
    covariance : array (n, n)
    eigenvalues : array (n,)
        Generalised eigenvalues in descending order, see `cdfsg.metrics.generalised_eigenvalues`.

    Returns
    -------
    dict
        Among others ``condition``: the condition number of M on its numerical range; ``empty``: the directions
        outside of it; ``perfect``: how many eigenvalues have the largest value that is possible, m - 1;
        ``lone_sample`` and ``lone_share``: the sample that has most of the variance of the leading canonical variate;
        ``optimum_p``: the least value of the objective over ``X'MX = I`` with the identity merit.
    """
    spectra = [kept_spectrum(covariance[view, view]) for view in views.slices]
    top = views.n_views - 1
    ps = sorted({p for experiment in EXPERIMENTS.values() for p in experiment.ps if p <= views.n_features})
    return {
        "dataset": views.name,
        "provenance": views.provenance.kind,
        "source": views.provenance.source,
        "checksum": views.provenance.checksum,
        "features": views.n_features,
        "samples": views.n_samples,
        "available": _available(views),
        "dtype": str(views.data.dtype),
        "bytes": views.data.nbytes,
        "scale": views.scale,
        "labels_per_sample": _labels_per_sample(views),
        "condition": max(s[0] for s in spectra) / min(s[-1] for s in spectra),
        "empty": views.n_features - sum(map(len, spectra)),
        "largest": float(eigenvalues[0]),
        **_lone_sample(views, covariance),
        "perfect": int((eigenvalues >= top * (1 - PERFECT)).sum()),
        **{f"optimum_{p}": metrics.objective_bound(eigenvalues, p, views.n_views, Identity()) for p in ps},
    }


def view_facts(views: Views, covariance: Array) -> list[dict[str, Any]]:
    """One row of facts per view: widths, constant columns, rank, and the values before the mean is subtracted."""
    zeros, total, squares = _sums(views)
    rows = []
    for number, view in enumerate(views.slices, start=1):
        block, entries = covariance[view, view], views.n_samples * (view.stop - view.start)
        mean = views.scale * total[view].sum() / entries
        power = views.scale**2 * squares[view].sum() / entries
        spectrum = kept_spectrum(block)
        rows.append(
            {
                "dataset": views.name,
                "view": number,
                "features": view.stop - view.start,
                "constant": int((views.data[:, view] == views.data[0, view]).all(axis=0).sum()),
                "rank": len(spectrum),
                "condition": spectrum[0] / spectrum[-1],
                "zeros": zeros[view].sum() / entries,
                "mean": mean,
                "deviation": np.sqrt(max(power - mean**2, 0)),
            }
        )
    return rows


def kept_spectrum(block: Array) -> Array:
    """Eigenvalues of a view's covariance on its numerical range, in descending order."""
    values = np.linalg.eigvalsh(block)[::-1]
    kept: Array = values[values > metrics.SPECTRUM_RTOL * values[0]]
    return kept


def spectra(views: Views, covariance: Array, eigenvalues: Array) -> pd.DataFrame:
    """Spectra for a picture: the first values and then some of the others.

    Returns
    -------
    DataFrame
        Columns ``dataset, view, index, value``: per view the eigenvalues of its covariance over the largest; view 0
        has the positive generalised eigenvalues over m - 1, the most that they can be.
    """
    lines = {0: eigenvalues[eigenvalues > metrics.SPECTRUM_RTOL] / (views.n_views - 1)}
    for number, view in enumerate(views.slices, start=1):
        spectrum = kept_spectrum(covariance[view, view])
        lines[number] = spectrum / spectrum[0]
    frames = []
    for number, line in lines.items():
        index = _thinned(len(line))
        frames.append(
            pd.DataFrame({"dataset": views.name, "view": number, "index": index, "value": line[index - 1]})
        )
    return pd.concat(frames, ignore_index=True)


def denominators(views: Views, covariance: Array) -> pd.DataFrame:
    """The largest attainable sum of correlations under other truncations of the spectra and under ridges.

    Returns
    -------
    DataFrame
        Columns ``dataset, treatment, p, value``: the sum of the p largest canonical correlations, which is the
        denominator of PCC.  No rows for more than two views, where there is no PCC.
    """
    columns = ["dataset", "treatment", "p", "value"]
    if views.n_views != 2:
        return pd.DataFrame(columns=columns)
    ps = sorted({p for experiment in EXPERIMENTS.values() for p in experiment.ps})
    treatments = {f"truncated at {rtol:g}": (covariance, rtol) for rtol in RTOLS}
    ridged = {r: metrics.ridged(covariance, views.sizes, r) for r in RIDGES}
    treatments |= {f"ridge {r:g}": (matrix, metrics.SPECTRUM_RTOL) for r, matrix in ridged.items()}
    rows = []
    for words, (matrix, rtol) in treatments.items():
        values = metrics.canonical_correlations(matrix, views.sizes, rtol=rtol)
        rows += [(views.name, words, p, values[:p].sum()) for p in ps]
    return pd.DataFrame(rows, columns=columns)


def samples(views: Views) -> pd.DataFrame:
    """The first samples as they are stored.

    Returns
    -------
    DataFrame
        Columns ``dataset, view, sample, values``, the values as text with blanks between them.
    """
    rows = views.data[: ROWS.get(views.name, SHOWN)]
    return pd.DataFrame(
        [
            {
                "dataset": views.name, "view": number, "sample": sample,
                "values": " ".join(f"{value:.4g}" for value in row),
            }
            for number, view in enumerate(views.slices, start=1)
            for sample, row in enumerate(rows[:, view])
        ]
    )  # fmt: skip


def leading_variate(views: Views, covariance: Array) -> Array:
    """The leading canonical variate of each sample, summed over the views and of unit mean square, shape (N,)."""
    direction = metrics.minimiser(covariance, views.sizes, 1)[:, 0]
    parts = [
        views.rows(np.arange(start, min(start + _CHUNK, views.n_samples)), np.float64) @ direction
        for start in range(0, views.n_samples, _CHUNK)
    ]
    variate = np.concatenate(parts)
    scaled: Array = variate / np.sqrt((variate**2).mean())
    return scaled


# --- records ---------------------------------------------------------------------------------------------


def publish(folder: Path = RECORDS, names: Iterable[str] = NAMES) -> None:
    """Write the records of some data sets; those of the others stay as they are."""
    names = tuple(names)
    made: dict[str, list[pd.DataFrame]] = {kind: [] for kind in FILES}
    for name in names:
        views, covariance, eigenvalues = views_of(name), covariance_of(name), eigenvalues_of(name)
        made["datasets"].append(pd.DataFrame([facts(views, covariance, eigenvalues)]))
        made["views"].append(pd.DataFrame(view_facts(views, covariance)))
        made["spectra"].append(spectra(views, covariance, eigenvalues))
        made["denominators"].append(denominators(views, covariance))
        made["samples"].append(samples(views))
    for kind, frames in made.items():
        path = folder / FILES[kind]
        if path.exists() and not set(names) >= set(NAMES):
            old = checksums.read_csv(path)
            frames = [old[~old["dataset"].isin(names)], *frames]
        order = {name: place for place, name in enumerate(NAMES)}
        table = pd.concat([frame for frame in frames if len(frame)], ignore_index=True)
        table = table.sort_values("dataset", key=lambda column: column.map(order), kind="stable")
        # Six digits hold on every machine, which the last ones of an eigenvalue do not.
        checksums.write(path, table.to_csv(index=False, float_format="%.6g", lineterminator="\n"))


def published(kind: str) -> pd.DataFrame:
    """Read the records of a kind of `FILES`.

    Raises
    ------
    FileNotFoundError
        If they are missing; the message says how to make them.
    """
    path = RECORDS / FILES[kind]
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing; make it with: python -m cdfsg run")
    return checksums.read_csv(path, "make it anew with: python -m cdfsg run")


def ceiling_without_first(table: pd.DataFrame, dataset: str, p: int) -> float:
    """The highest PCC that misses the leading canonical correlation, from the published spectra.

    Raises
    ------
    ValueError
        If the spectra do not have all of the first p + 1 values.
    """
    line = table[(table["dataset"] == dataset) & (table["view"] == 0)].sort_values("index")
    if list(line["index"][: p + 1]) != list(range(1, p + 2)):
        raise ValueError(f"p = {p}: the published spectra have all of the first {EXACT_POINTS} values only")
    values = line["value"].to_numpy()
    return float(values[1 : p + 1].sum() / values[:p].sum())


# --- the paper's table -----------------------------------------------------------------------------------


def printed() -> pd.DataFrame:
    """What the paper prints: ``dataset, quantity, view, reported, place, flag``; view 0 is all of them."""
    return checksums.read_csv(PAPER / "datasets.csv", keep_default_na=False)


def judged(datasets: pd.DataFrame, views: pd.DataFrame) -> pd.DataFrame:
    """Every number that the paper prints of its data, with ours and a verdict of `VERDICTS`."""
    table = printed()
    whole = datasets.set_index("dataset")
    single = views.set_index(["dataset", "view"])
    found = [
        single.at[(row.dataset, row.view), row.quantity] if row.view else whole.at[row.dataset, row.quantity]
        for row in table.itertuples()
    ]
    return table.assign(reproduced=found, verdict=np.where(table["reported"] == found, "equal", "differs"))


def check(verdicts: pd.DataFrame, datasets: pd.DataFrame, views: pd.DataFrame) -> None:
    """Raise unless the table's numbers are those of the data, and the records agree with each other.

    Raises
    ------
    AssertionError
        The message names what fails.
    """
    unexplained = verdicts[(verdicts["verdict"] == "differs") & (verdicts["flag"] == "")]
    if len(unexplained):
        raise AssertionError(f"the paper and the data differ:\n{unexplained.to_string(index=False)}")
    counted = views.groupby("dataset")[["features", "rank"]].sum()
    for row in datasets.itertuples():
        if counted.at[row.dataset, "features"] != row.features:
            raise AssertionError(f"{row.dataset}: its views do not have {row.features} features together")
        if counted.at[row.dataset, "rank"] != row.features - row.empty:
            raise AssertionError(f"{row.dataset}: the ranks of its views do not leave {row.empty} empty directions")


def _lone_sample(views: Views, covariance: Array) -> dict[str, Any]:
    share = leading_variate(views, covariance) ** 2 / views.n_samples
    return {"lone_sample": int(share.argmax()), "lone_share": float(share.max())}


def _available(views: Views) -> int:
    """Samples that the data set has; the paper leaves out the last ones of Mediamill."""
    return mediamill_files.ROWS if views.name == "mediamill" else views.n_samples


def _labels_per_sample(views: Views) -> float:
    """Label cardinality where the last view consists of labels, else NaN."""
    if views.name != "mediamill":
        return float("nan")
    return float(views.data[:, views.slices[-1]].sum(dtype=np.float64) / views.n_samples)


def _sums(views: Views) -> tuple[Array, Array, Array]:
    """Per column: the number of zeros, the sum and the sum of squares of the stored values."""
    zeros, total, squares = np.zeros((3, views.n_features))
    for start in range(0, views.n_samples, _CHUNK):
        chunk = views.data[start : start + _CHUNK]
        zeros += (chunk == 0).sum(axis=0)
        chunk = chunk.astype(np.float64)
        total += chunk.sum(axis=0)
        squares += np.einsum("rc,rc->c", chunk, chunk)
    return zeros, total, squares


def _thinned(length: int) -> Array:
    """Indices from 1: all of the first ones, then geometrically spaced ones up to the last."""
    spaced = np.rint(np.geomspace(1, length, THINNED_POINTS)).astype(int)
    return np.union1d(np.arange(1, min(EXACT_POINTS, length) + 1), spaced)
