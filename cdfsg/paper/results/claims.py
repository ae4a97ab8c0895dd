"""The claims of the paper and our questions, each counted in the paper's numbers and in ours.

A test looks at a `Source`, one table of the paper's numbers or of our runs, and returns instances.
"""

import operator
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from cdfsg import checksums
from cdfsg.files import PAPER, RECORDS
from cdfsg.paper import archive
from cdfsg.paper.experiments import Experiment
from cdfsg.paper.measure import cost
from cdfsg.paper.protocols import BETA, OURS, entry_of, headline_variant
from cdfsg.paper.records import SAME_RUN
from cdfsg.paper.results import tables
from cdfsg.paper.results.reported import load_table
from cdfsg.paper.select import ROW, rows_at, select, stands, summarise

Claim = dict[str, Any]
Instance = tuple[str, bool | None, bool | None]
"""A place; whether the claim holds there, None where one side has no number; and whether the 95 % interval of the
difference excludes 0."""


@dataclass(frozen=True)
class Source:
    """One table: ``cells`` has a row per place, solver and variant; ``runs`` are behind ours.

    Columns of ``cells``: `ROW`, variant, accuracy (PCC, or -Fval after exact normalisation), value and value_post (PCC
    or -Fval), fea, fea_post, seconds; NaN in all where a run diverged.  ``runs`` has those of a cell by its place and
    variant, with the start as their index.
    """

    experiment: Experiment
    cells: pd.DataFrame
    runs: Mapping[tuple[Any, ...], pd.DataFrame] | None = None

    def headline(self, *solvers: str) -> pd.DataFrame:
        """The cells that stand for some solvers, one after the other."""
        stand = self.cells[self.cells["variant"] == self.cells["solver"].map(headline_variant)]
        return pd.concat([stand[stand["solver"] == solver] for solver in solvers])

    def named(self, name: str) -> pd.DataFrame:
        """The cells of a solver and variant such as "Landing fixed", or those that stand for a solver.

        A given setting that equals the headline's at this scale of the data is not run again.
        """
        solver, _, variant = name.partition(" ")
        found = self.cells[(self.cells["solver"] == solver) & (self.cells["variant"] == variant)]
        if found.empty and variant in ("", *entry_of(solver).given):
            return self.headline(solver)
        return found

    def place(self, cell: Any, *more: str) -> str:
        """Where an instance is."""
        return ", ".join([f"{self.experiment.name}, l = {cell.batch_size}, p = {cell.p}", *more])


def printed(experiment: Experiment) -> Source:
    """The paper's own numbers."""
    wide = load_table(experiment.table).pivot(index=ROW, columns="quantity", values="reported").reset_index()
    wide["variant"] = wide["solver"].map(headline_variant)
    wide["seconds"] = wide["time_s"]
    return Source(experiment, _with_accuracy(experiment, wide))


def measured(experiment: Experiment, runs: pd.DataFrame) -> Source:
    """Our numbers: the cells that stand for the solvers, and every other variant under its name."""
    reported = runs[runs["role"] == "reported"]
    cells = summarise(reported)
    cells = cells[stands(cells, select(runs, experiment.protocol.rule))]
    behind = _with_accuracy(experiment, reported.merge(cells[SAME_RUN])).groupby([*ROW, "variant"])
    # A row of NaN where no point of the grid was eligible.
    places = product(experiment.batch_sizes, experiment.ps, OURS, ["grid"])
    cells = cells.merge(pd.DataFrame(places, columns=[*ROW, "variant"]), how="outer")
    by_cell = {place: part.set_index("start") for place, part in behind}
    return Source(experiment, _with_accuracy(experiment, cells), by_cell)


def load_claims() -> list[Claim]:
    """The claims and questions in ``data/paper/claims.toml``, each ``shown_by`` a test of this module."""
    return tomllib.loads(checksums.read(PAPER / "claims.toml").decode("utf-8"))["claim"]


def ledger() -> pd.DataFrame:
    """How often every claim holds, in the paper's own numbers and in ours."""
    paper = [printed(e) for e in archive.published()]
    ours = [measured(e, archive.runs_of(e)) for e in archive.published()]
    rows = []
    for claim in load_claims():
        test = globals()[claim["shown_by"]]
        theirs = [] if claim.get("unprinted") else [i for source in paper for i in test(claim, source)]
        found = list(dict.fromkeys(i for source in ours for i in test(claim, source)))  # memory is the same for all
        judged = [instance for instance in found if instance[1] is not None]
        failed = [place for place, holds, _ in judged if not holds]
        holds, said = len(judged) - len(failed), [holds for _, holds, _ in theirs if holds is not None]
        rows.append(
            {
                "claim": claim["id"], "who": claim["who"], "says": claim["says"], "place": claim.get("place", ""),
                "paper_holds": sum(said), "paper_of": len(said), "paper_no_result": len(theirs) - len(said),
                "holds": holds, "of": len(judged), "no_result": len(found) - len(judged),
                "clearly": sum(bool(holds and clear) for _, holds, clear in judged),
                "clearly_not": sum(bool(not holds and clear) for _, holds, clear in judged),
                "interval": any(clear is not None for *_, clear in judged),
                "verdict": verdict_of(holds, len(judged)), "where_not": "; ".join(failed),
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
    return checksums.read_record(RECORDS / "claims.csv", "python -m cdfsg verdict", keep_default_na=False)


def verdict_of(holds: int, of: int) -> str:
    """The verdict in words on a claim that holds in `holds` of `of` instances."""
    if not of:
        return "cannot be judged here"
    if holds == of:
        return "holds"
    return f"holds in {holds} of {of} cases" if holds else "does not hold"


def more_accurate(claim: Claim, source: Source) -> Iterator[Instance]:
    """Accuracy above that of each competitor."""
    yield from _compare(claim, source, "accuracy", operator.gt)


def more_feasible(claim: Claim, source: Source) -> Iterator[Instance]:
    """Fea below that of each competitor."""
    yield from _compare(claim, source, "fea", operator.lt)


def time_at_most(claim: Claim, source: Source) -> Iterator[Instance]:
    """Time at most `factor` times that of the competitor."""
    yield from _compare(claim, source, "seconds", operator.le, claim["factor"])


def post_processing_helps(claim: Claim, source: Source) -> Iterator[Instance]:
    """Fea* below Fea; with a `loss`, PCC* or Fval* no worse by more than that share too (PCC* is PCC).

    The interval is that of Fea* - Fea: it is clear against the claim only where Fea* is higher.
    """
    for cell in source.headline(*OURS).itertuples():
        lower = cell.fea_post < cell.fea
        kept = "loss" not in claim or cell.value_post >= (1 - claim["loss"]) * cell.value
        clear = False if lower and not kept else _clear(source, cell, cell, "fea", "fea_post")
        yield source.place(cell, cell.solver), _both(bool(lower and kept), cell.fea), clear


def robust_to_batch_size(claim: Claim, source: Source) -> Iterator[Instance]:
    """At every batch size the accuracy is within the relative `loss` of the solver's best over all batch sizes."""
    for (p, solver), group in source.headline(*OURS).groupby(["p", "solver"], sort=False):
        holds = group["accuracy"].min(skipna=False) >= (1 - claim["loss"]) * group["accuracy"].max()
        yield f"{source.experiment.name}, p = {p}, {solver}", bool(holds), None


def fails_at_small_batches(claim: Claim, source: Source) -> Iterator[Instance]:
    """A run of the competitor diverges at the batch size, in the paper a dash."""
    for name in claim["against"]:
        for cell in source.named(name).itertuples():
            if cell.batch_size in claim["sizes"]:
                yield source.place(cell, name), bool(np.isnan(cell.fea)), None


def worse_at_small_batches(claim: Claim, source: Source) -> Iterator[Instance]:
    """The competitor is less accurate at the batch size than at the largest, or diverges."""
    for name in claim["against"]:
        for _, group in source.named(name).groupby("p", sort=False):
            largest = group.loc[group["batch_size"].idxmax(), "accuracy"]
            for cell in group[group["batch_size"].isin(claim["sizes"])].itertuples():
                worse = np.isfinite(largest) and not cell.accuracy >= largest
                yield source.place(cell, name), bool(worse), None


def robust_to_beta(claim: Claim, source: Source) -> Iterator[Instance]:
    """Under every other penalty parameter no run diverges and the quality is within `loss` of that at the paper's."""
    for solver, ends in tables.beta_ends(archive.more(source.experiment, "betas")).groupby("solver", sort=False):
        own = np.isclose(ends["beta"], BETA)
        reference = ends.loc[own, "quality"].iloc[0]
        for end in ends[~own].itertuples():
            alike = abs(end.quality - reference) <= claim["loss"] * abs(reference)
            place = f"{source.experiment.name}, {solver}, beta = {end.beta:g}"
            yield place, bool(alike and end.n_diverged == 0), None


def reaches_sooner(claim: Claim, source: Source) -> Iterator[Instance]:
    """CDFSG-Ada reaches CDFSG's final median quality after fewer samples than CDFSG's whole pass."""
    for p, medians in _curves(source, "quality"):
        if set(medians) == set(OURS):
            plain, adaptive = medians["CDFSG"], medians["CDFSG-Ada"]
            reached = adaptive.index[adaptive >= plain.iloc[-1]]
            holds = len(reached) and reached[0] < plain.index[-1]
            yield f"{source.experiment.name}, p = {p}", bool(holds), None


def comes_near(claim: Claim, source: Source) -> Iterator[Instance]:
    """From a start with a median Fea above `above`, the pass ends with one below `below`."""
    for p, medians in _curves(source, "fea"):
        for solver, curve in medians.items():
            holds = curve.iloc[0] > claim["above"] and curve.iloc[-1] < claim["below"]
            yield f"{source.experiment.name}, p = {p}, {solver}", bool(holds), None


def keeps_p_by_p(claim: Claim, source: Source) -> Iterator[Instance]:
    """Kept from step to step are at most `tall` n-by-p and `small` p-by-p matrices, and no n-by-n one is ever made.

    The second is so where all that lives at once, but for the minibatch, is smaller than n-by-n.
    """
    for row in cost.read_memory().itertuples():
        state = row.state <= claim["tall"] * row.n * row.p + claim["small"] * row.p**2
        holds = state and row.state + row.extra < row.n**2
        yield f"{row.solver}, n = {row.n}, l = {row.batch_size}, p = {row.p}", bool(holds), None


def _compare(
    claim: Claim, source: Source, quantity: str, holds: Callable[[float, float], bool], factor: float = 1.0
) -> Iterator[Instance]:
    """Whether a quantity of ours and `factor` times that of each competitor are so related."""
    cells = source.headline(*OURS)
    if "ours" in claim:  # NaN where there is no such run
        cells = cells[ROW].merge(source.cells[source.cells["variant"] == claim["ours"]], on=ROW, how="left")
    for cell in cells.itertuples():
        for name in claim["against"]:
            place = cell.batch_size, cell.p, name.split(" ")[0]
            for rival in rows_at(source.named(name), place).itertuples():
                mine, theirs = getattr(cell, quantity), factor * getattr(rival, quantity)
                found = _both(bool(holds(mine, theirs)), mine, theirs)
                clear = _clear(source, cell, rival, quantity, quantity, factor)
                yield source.place(cell, f"{cell.solver} / {name}"), found, clear


def _both(holds: bool, *numbers: float) -> bool | None:
    """Whether a claim holds; None unless all numbers exist."""
    return holds if np.isfinite(numbers).all() else None


def _clear(source: Source, cell: Any, rival: Any, quantity: str, other: str, factor: float = 1.0) -> bool | None:
    """Whether the 95 % interval of `quantity` minus `factor` times the rival's `other` excludes 0.

    It is taken run by run, as two solvers' runs k share start and order.  None without runs.
    """
    if source.runs is None:
        return None
    mine, theirs = (source.runs.get((each.batch_size, each.p, each.solver, each.variant)) for each in (cell, rival))
    if mine is None or theirs is None:
        return False
    apart = (mine[quantity] - factor * theirs[other]).dropna()
    return len(apart) > 1 and bool(stats.ttest_1samp(apart, 0).pvalue < 0.05)


def _curves(source: Source, quantity: str) -> Iterator[tuple[int, dict[str, pd.Series]]]:
    """For each p the median curves of our algorithms by solver."""
    runs = archive.runs_of(source.experiment)
    traced = runs[(runs["role"] == "trace") & runs["solver"].isin(OURS)]
    for p, part in traced.groupby("p"):
        medians = part.groupby(["solver", "samples"])[quantity].median()
        yield int(p), {solver: medians[solver] for solver in medians.index.unique("solver")}


def _with_accuracy(experiment: Experiment, frame: pd.DataFrame) -> pd.DataFrame:
    if experiment.measure == "pcc":
        return frame.assign(accuracy=frame["pcc"], value=frame["pcc"], value_post=frame["pcc_post"])
    return frame.assign(accuracy=-frame["fval_orth"], value=-frame["fval"], value_post=-frame["fval_post"])
