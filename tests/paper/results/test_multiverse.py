"""The multiverse finds the protocol that made the numbers, and nothing in permuted ones."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from cdfsg.paper import multiverse
from cdfsg.paper.experiments import QUICK
from cdfsg.paper.protocols import FIRST, OURS, Protocol
from cdfsg.paper.results import multiverse as scoring
from cdfsg.paper.results.reported import INDEPENDENT, printed_rows, tolerance_of

TABLES = tuple(
    replace(QUICK, table=merit, merit=merit, batch_sizes=(20, 50, 100), solvers=OURS) for merit in ("identity", "huber")
)
TRIED = (
    FIRST,
    replace(FIRST, start="views"),
    replace(FIRST, start="views", scales=(("digits", 2.0),)),
    replace(FIRST, minibatches="shared"),
)
TRUE = 2
ACCURACY = {"identity": "pcc", "huber": "fval"}


@pytest.fixture(scope="module")
def screened(tmp_path_factory):
    """The screening of six protocols on two small tables of the digits."""
    folder = tmp_path_factory.mktemp("runs")
    return folder, multiverse.screen(TABLES, TRIED, folder, 1)


@pytest.fixture(scope="module")
def printed(screened):
    """Numbers as a paper would print them: ten runs of the true protocol at its points, to two decimals."""
    folder, numbers = screened
    at = numbers[(numbers["protocol"] == TRUE) & (numbers["rule"] == FIRST.rule)]
    rows = at[scoring.PLACE].assign(dataset=at["table"], measure=at["table"].map(ACCURACY))
    ten = multiverse.confirm(TABLES, TRIED[TRUE], FIRST.rule, folder, 1).assign(protocol=TRUE, rule=FIRST.rule)
    values = scoring.variants(ten, rows)[1][0]  # the norm and the PCC of the first protocol come first
    return with_tolerances(rows.assign(**dict(zip(INDEPENDENT, values.round(2).T, strict=True))))


def with_tolerances(rows):
    for quantity in INDEPENDENT:
        rows[f"{quantity}_tolerance"] = [
            tolerance_of(row["measure"] if quantity == "accuracy" else quantity).around(row[quantity])
            for _, row in rows.iterrows()
        ]
    return rows


def adoption_of(table, found):
    """The criterion where one search stands for the screening and for the ten runs."""
    searches = {"table": found}
    return scoring.adoption(scoring.folds(table, searches, searches, TRIED))


def test_the_protocol_that_made_the_numbers_is_chosen_on_every_table_left_out(screened, printed):
    table, values = scoring.variants(screened[1], printed)
    found = scoring.search(table, values, printed)
    assert set(table["protocol"].iloc[found.folds["chosen"]]) == {TRUE}
    adoption = adoption_of(table, found)
    assert adoption["level"] <= scoring.criterion()["level"]
    assert adoption["gain"] >= scoring.criterion()["least_gain"]


def test_with_permuted_rows_no_protocol_beats_the_null(screened, printed):
    rng, levels = np.random.default_rng(0), []
    for _ in range(5):
        parts = [block[[*scoring.PLACE, "dataset", "measure"]].reset_index(drop=True).join(
            block[list(INDEPENDENT)].sample(frac=1, random_state=rng).reset_index(drop=True))
            for _, block in printed.groupby(["table", "p"])]  # fmt: skip
        permuted = with_tolerances(pd.concat(parts, ignore_index=True))
        table, values = scoring.variants(screened[1], permuted)
        found = scoring.search(table, values, permuted)
        adoption = adoption_of(table, found)
        levels.append(adoption["level"])
        assert not adoption["met"] or adoption["level"] > 0.01
    assert np.median(levels) > scoring.criterion()["level"]


def test_a_number_that_we_lack_counts_as_the_worst_misfit(printed):
    misfit = scoring.by_table(np.full((1, len(printed), 3), np.nan), printed)
    assert (misfit == scoring.criterion()["cap"]).all(axis=None)


def test_competitors_and_dashes_never_enter_the_score():
    rows = printed_rows(["ta:pcctimemd", "ta:fvalnmnh"], OURS)
    assert set(rows["solver"]) == set(OURS)
    assert rows[list(INDEPENDENT)].notna().all(axis=None)
    assert len(rows) == 32


def test_protocols_share_the_runs_that_a_choice_does_not_reach():
    epsilon = replace(FIRST, constants=(("epsilon", 1e-2),), mu=0.1, rule="quality")
    jobs = multiverse.ours(TABLES[0], epsilon).jobs()
    plain, adaptive = ({job.protocol for job in jobs if job.solver == name} for name in OURS)
    assert plain == {Protocol()}
    assert adaptive == {replace(FIRST, constants=(("epsilon", 1e-2),))}


def test_protocols_are_tried_once_and_the_first_comes_first():
    tried = multiverse.protocols()
    assert tried[0] == FIRST
    assert len(set(map(scoring.describe, tried))) == len(tried) == len(set(tried))
