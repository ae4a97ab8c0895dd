"""The claims ledger: the paper's assertions in words, each with a test over the records that gives its verdict.

A test returns *instances*, a list of ``(place, holds)``.
"""

import tomllib
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from cdfsg import checksums
from cdfsg.files import PAPER, RECORDS
from cdfsg.paper import archive
from cdfsg.paper.experiments import EXPERIMENTS, Experiment
from cdfsg.paper.measure import cost
from cdfsg.paper.protocols import BETA, OURS
from cdfsg.paper.results import tables
from cdfsg.paper.results.verdicts import final_cells, timing
from cdfsg.paper.select import ROW, summarise

Instances = list[tuple[str, bool]]
Claim = dict[str, Any]


def load_claims() -> list[Claim]:
    """The claims in ``data/paper/claims.toml``, in the paper's order."""
    return tomllib.loads(checksums.read(PAPER / "claims.toml").decode("utf-8"))["claim"]


def ledger() -> pd.DataFrame:
    """The verdict on every claim."""
    evidence = [(e, archive.runs_of(e)) for e in EXPERIMENTS.values() if archive.exists(e)]
    rows = []
    for claim in load_claims():
        name = claim["shown_by"]
        if name in SHOWN_BY_COST:
            cases = [("original", SHOWN_BY_COST[name](claim, cost.read_memory()))]
        else:
            cases = [(runs["provenance"].iloc[0], SHOWN_BY[name](claim, e, runs)) for e, runs in evidence]
        instances = [instance for _, found in cases for instance in found]
        failed = [place for place, holds in instances if not holds]
        holds = len(instances) - len(failed)
        rows.append(
            {
                "claim": claim["id"], "says": claim["says"], "place": claim["place"],
                "holds": holds, "of": len(instances),
                "derived": sum(len(found) for kind, found in cases if kind == "derived"),
                "verdict": verdict_of(holds, len(instances)), "where_not": "; ".join(failed),
            }
        )  # fmt: skip
    return pd.DataFrame(rows)


def write() -> pd.DataFrame:
    """Judge every claim and write ``data/records/claims.csv``."""
    table = ledger()
    checksums.write(RECORDS / "claims.csv", table.to_csv(index=False, lineterminator="\n"))
    return table


def read() -> pd.DataFrame:
    """The published ``data/records/claims.csv``."""
    remedy = "make it anew with: python -m cdfsg verdict"
    return checksums.read_csv(RECORDS / "claims.csv", remedy, keep_default_na=False)


def verdict_of(holds: int, of: int) -> str:
    """The verdict in words on a claim that holds in `holds` of `of` instances.

    Examples
    --------
    >>> verdict_of(3, 4), verdict_of(4, 4)
    ('holds in 3 of 4 cases', 'holds')
    """
    if not of:
        return "cannot be judged here"
    if holds == of:
        return "holds"
    return f"holds in {holds} of {of} cases" if holds else "does not hold"


def more_accurate(claim: Claim, experiment: Experiment, runs: pd.DataFrame) -> Instances:
    """Quality above that of each competitor; a diverged competitor is beaten by any run that ends."""
    return _compare(claim, experiment, runs, "quality", lambda ours, theirs: ours > theirs)


def more_feasible(claim: Claim, experiment: Experiment, runs: pd.DataFrame) -> Instances:
    """Fea below that of each competitor; a diverged competitor is beaten by any run that ends."""
    return _compare(claim, experiment, runs, "fea", lambda ours, theirs: ours < theirs)


def post_processing_helps(claim: Claim, experiment: Experiment, runs: pd.DataFrame) -> Instances:
    """Fea* below Fea, and PCC* or Fval* no worse than by the claim's relative `loss`."""
    found = []
    for cell in _ours(experiment, runs).to_dict("records"):
        before, after = abs(cell[experiment.measure]), abs(cell[f"{experiment.measure}_post"])
        holds = cell["fea_post"] < cell["fea"] and after >= (1 - claim["loss"]) * before
        found.append((_place(experiment, cell), bool(holds)))
    return found


def time_at_most(claim: Claim, experiment: Experiment, runs: pd.DataFrame) -> Instances:
    """Time at most `factor` times that of the competitor, where both were timed."""
    seconds = timing(runs)
    found = []
    for (size, p, solver, _), ours in seconds.items():
        for name in claim["against"] if solver in OURS else ():
            theirs = seconds.get((size, p, *name.split(" ")))
            if theirs is not None:
                place = f"{experiment.name}, l = {size}, p = {p}, {solver} / {name}"
                found.append((place, bool(ours <= claim["factor"] * theirs)))
    return found


def robust_to_batch_size(claim: Claim, experiment: Experiment, runs: pd.DataFrame) -> Instances:
    """At every batch size the quality is within the relative `loss` of the solver's best over all batch sizes."""
    found = []
    for (p, solver), group in _ours(experiment, runs).groupby(["p", "solver"], sort=False):
        holds = group["quality"].min(skipna=False) >= (1 - claim["loss"]) * group["quality"].max()
        found.append((f"{experiment.name}, p = {p}, {solver}", bool(holds)))
    return found


def fails_at_small_batches(claim: Claim, experiment: Experiment, runs: pd.DataFrame) -> Instances:
    """A run of the competitor diverges at the batch size."""
    cells = summarise(runs[runs["role"] == "reported"])
    small = cells[cells["batch_size"].isin(claim["sizes"])]
    found = []
    for name in claim["against"]:
        for cell in small[small["solver"] + " " + small["variant"] == name].to_dict("records"):
            place = _place(experiment, cell | {"solver": name})
            found.append((place, cell["n_diverged"] > 0))
    return found


def robust_to_beta(claim: Claim, experiment: Experiment, runs: pd.DataFrame) -> Instances:
    """Under every penalty parameter no run diverges and the quality is within `loss` of that at the paper's."""
    if not experiment.betas:
        return []
    found = []
    for solver, ends in tables.beta_ends(archive.more(experiment, "betas")).groupby("solver", sort=False):
        reference = ends.loc[np.isclose(ends["beta"], BETA), "quality"].iloc[0]
        for end in ends.itertuples():
            alike = abs(end.quality - reference) <= claim["loss"] * abs(reference)
            place = f"{experiment.name}, {solver}, beta = {end.beta:g}"
            found.append((place, bool(alike and end.n_diverged == 0)))
    return found


def reaches_sooner(claim: Claim, experiment: Experiment, runs: pd.DataFrame) -> Instances:
    """CDFSG-Ada reaches CDFSG's final median quality after fewer samples than CDFSG's whole pass."""
    traced = runs[(runs["role"] == "trace") & runs["solver"].isin(OURS)]
    medians = traced.groupby(["p", "solver", "samples"])["quality"].median()
    found = []
    for p in sorted(traced["p"].unique()):
        if set(medians[p].index.get_level_values("solver")) == set(OURS):
            plain, adaptive = medians[p, "CDFSG"], medians[p, "CDFSG-Ada"]
            reached = adaptive.index[adaptive >= plain.iloc[-1]]
            found.append((f"{experiment.name}, p = {p}", bool(len(reached) and reached[0] < plain.index[-1])))
    return found


def keeps_p_by_p(claim: Claim, memory: pd.DataFrame) -> Instances:
    """Kept from step to step are at most `tall` n-by-p and `small` p-by-p matrices, and no n-by-n one is ever made.

    The second is so where all that lives at once, but for the minibatch, is smaller than n-by-n.
    """
    found = []
    for row in memory.itertuples():
        state = row.state <= claim["tall"] * row.n * row.p + claim["small"] * row.p**2
        holds = state and row.state + row.extra < row.n**2
        found.append((f"{row.solver}, n = {row.n}, l = {row.batch_size}, p = {row.p}", bool(holds)))
    return found


SHOWN_BY_COST: dict[str, Callable[[Claim, pd.DataFrame], Instances]] = {"keeps_p_by_p": keeps_p_by_p}
SHOWN_BY: dict[str, Callable[[Claim, Experiment, pd.DataFrame], Instances]] = {
    test.__name__: test
    for test in (
        more_accurate, more_feasible, post_processing_helps, time_at_most, robust_to_batch_size,
        fails_at_small_batches, robust_to_beta, reaches_sooner,
    )
}  # fmt: skip


def _ours(experiment: Experiment, runs: pd.DataFrame) -> pd.DataFrame:
    """The cells of CDFSG and CDFSG-Ada at every place of the table; NaN where no point of the grid was eligible."""
    places = pd.MultiIndex.from_product([experiment.batch_sizes, experiment.ps, OURS], names=ROW)
    return final_cells(runs).set_index(ROW).reindex(places).reset_index()


def _place(experiment: Experiment, cell: dict[Any, Any]) -> str:
    return f"{experiment.name}, l = {cell['batch_size']}, p = {cell['p']}, {cell['solver']}"


def _compare(
    claim: Claim, experiment: Experiment, runs: pd.DataFrame, quantity: str, better: Callable[[float, float], bool]
) -> Instances:
    rivals = summarise(runs[runs["role"] == "reported"])
    rivals["name"] = rivals["solver"] + " " + rivals["variant"]
    rivals = rivals[rivals["name"].isin(claim["against"])]
    found = []
    for cell in _ours(experiment, runs).to_dict("records"):
        here = rivals[(rivals["batch_size"] == cell["batch_size"]) & (rivals["p"] == cell["p"])]
        for name, theirs in zip(here["name"], here[quantity], strict=True):
            holds = np.isfinite(cell[quantity]) and (not np.isfinite(theirs) or better(cell[quantity], theirs))
            found.append((f"{_place(experiment, cell)} / {name}", bool(holds)))
    return found
