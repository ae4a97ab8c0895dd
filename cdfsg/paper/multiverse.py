"""The runs of the multiverse: which protocols are screened, and the ten runs that confirm the leading ones.

`cdfsg.paper.results.multiverse` scores them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cdfsg import checksums
from cdfsg.files import say
from cdfsg.paper import protocols as choices
from cdfsg.paper.compute import key_of
from cdfsg.paper.experiments import Experiment, Place, Stage
from cdfsg.paper.protocols import FIRST, MU, OURS, Protocol, Setting
from cdfsg.paper.results import multiverse as scoring
from cdfsg.paper.results.reported import printed_rows
from cdfsg.paper.run import Workers, run_experiment, run_jobs
from cdfsg.paper.select import ROW, RULES, select, stands, summarise
from cdfsg.solvers.engine import MINIBATCHES

SCREENING_SEEDS = choices.TUNING_SEEDS[:2]
CONFIRMED = 10
"""How many protocols with a rule get ten runs at each selected point: the first, those chosen in a fold, the best.

One takes two to three minutes on two cores.
"""

HUBER: tuple[dict[str, Any], ...] = ({"mu": MU, "pairs": "ordered"}, {"mu": 0.1, "pairs": "unordered for huber"})
"""Both give the paper's levels of Fval within about a tenth."""


SCALES: tuple[dict[str, Any], ...] = tuple(
    {"scales": tuple(pair for pair in (("mediamill", factor), ("mnist", factor), ("nmnist", own)) if pair[1] != 1)}
    for factor, own in product((1, 2), (1, 0.5))
)
"""Factors on the data: 1 for pixels and labels in [0, 1], 2 for [-1, 1], with one of its own for n-MNIST."""

SINGLE: tuple[dict[str, Any], ...] = (
    *({"minibatches": value} for value in MINIBATCHES[1:]),
    {"share": 0.5},
    *({"tracking": value} for value in choices.TRACKING[1:]),
    {"centred": False},
    *({"constants": (("epsilon", value),)} for value in (1e-4, 1e-2)),
    *({"constants": (("eta2", value),)} for value in (0.9, 0.99)),
    {"pairs": choices.PAIRS[2]},
)
"""Choices that are changed one at a time, from each of `ANCHORS`."""

ANCHORS = (FIRST, replace(FIRST, start="views", **SCALES[3], **HUBER[1]))
"""The first protocol, and the one that the leads of the earlier search name."""


def protocols() -> list[Protocol]:
    """Every protocol that needs runs of its own, the first one first."""
    # Crossed is what an earlier search found to matter most.
    crossed = [
        replace(FIRST, start=start, **scale, **huber)
        for start, scale, huber in product(choices.STARTS, SCALES, HUBER)
    ]
    single = [replace(anchor, **change) for anchor in ANCHORS for change in SINGLE]
    return list(dict.fromkeys((FIRST, *crossed, *single)))


def tour(experiments: Sequence[Experiment], folder: Path, workers: Workers, records: Path) -> bool:
    """Screen every protocol, confirm the leading ones, and write ``multiverse*.csv``; whether one beats the first."""
    tried = protocols()
    targets = printed_rows([e.table for e in experiments], OURS)
    say(f"{len(tried)} protocols are screened on {len(experiments)} tables")
    table, values = scoring.variants(screen(experiments, tried, folder, workers), targets)
    screened = {left_out: scoring.search(table, values, targets, left_out) for left_out in ("table", "dataset")}
    leading = scoring.leading(table, values, targets, CONFIRMED, [*screened.values()])
    say(f"{len(leading)} protocols with a rule get ten runs at each selected point")
    parts = [confirm(experiments, tried[n], rule, folder, workers).assign(protocol=n, rule=rule) for n, rule in leading]
    rows, numbers = scoring.variants(pd.concat(parts), targets)
    ten = np.full_like(values, np.nan)
    ten[pd.MultiIndex.from_frame(table).get_indexer(pd.MultiIndex.from_frame(rows))] = numbers
    confirmed = {
        name: scoring.held_out(table, ten, targets, name, found.folds["chosen"].to_numpy(), found.null)
        for name, found in screened.items()
    }
    texts = {
        "multiverse.csv": scoring.specifications(table, values, ten, targets, tried),
        "multiverse-folds.csv": scoring.folds(table, screened, confirmed, tried),
        "multiverse-choices.csv": scoring.weights(table, values, targets, tried),
    }
    for name, frame in texts.items():
        checksums.write(records / name, frame.to_csv(index=False, lineterminator="\n", float_format="%.5g"))
    return scoring.adoption(texts["multiverse-folds.csv"])["met"]


def ours(experiment: Experiment, protocol: Protocol) -> Experiment:
    """Our algorithms in a table under a protocol: the tuning runs of the screening, and ten at each selected point."""
    return replace(
        experiment, table="", protocol=protocol, solvers=OURS, seeds=choices.REPORTED_SEEDS,
        tuning_seeds=SCREENING_SEEDS, betas=(), stages=(Stage("tuning", "grid"), Stage("reported", "selected")),
    )  # fmt: skip


def screen(
    experiments: Iterable[Experiment], tried: Sequence[Protocol], folder: Path, workers: Workers
) -> pd.DataFrame:
    """Numbers at the selected points: a row per protocol, rule and place, from the tuning runs themselves."""
    wanted = {(e, n): ours(e, protocol).jobs() for e in experiments for n, protocol in enumerate(tried)}
    runs = run_jobs(list(dict.fromkeys(job for some in wanted.values() for job in some)), folder, workers)
    by_key = dict(list(runs.groupby("key", sort=False)))
    found, chosen = [], {}  # protocols share runs: each set of them is judged once
    for (experiment, n), some in wanted.items():
        keys = tuple(key_of(job) for job in some)
        if keys not in chosen:
            own = pd.concat([by_key[key] for key in keys])
            chosen[keys] = pd.concat(
                [at_points(experiment, own, select(own, rule)).assign(rule=rule) for rule in RULES]
            )
        found.append(chosen[keys].assign(table=experiment.table, protocol=n))
    return pd.concat(found, ignore_index=True)


def confirm(
    experiments: Iterable[Experiment], protocol: Protocol, rule: str, folder: Path, workers: Workers
) -> pd.DataFrame:
    """Numbers from ten runs at the points that the rule selects in the screening: a row per place."""
    parts = []
    for experiment in experiments:
        runs = run_experiment(ours(experiment, replace(protocol, rule=rule)), folder, workers)[""]
        reported = runs[runs["role"] == "reported"]
        parts.append(at_points(experiment, reported, select(runs, rule)).assign(table=experiment.table))
    return pd.concat(parts)


def at_points(experiment: Experiment, runs: pd.DataFrame, selected: Mapping[Place, Setting]) -> pd.DataFrame:
    """Means of the runs at the selected point of every place; NaN where none is selected or a run diverged."""
    cells = summarise(runs)
    places = pd.MultiIndex.from_product([experiment.batch_sizes, experiment.ps, OURS], names=ROW)
    at = cells[stands(cells, selected)].set_index(ROW)
    return at[list(scoring.NUMBERS)].reindex(places).reset_index()
