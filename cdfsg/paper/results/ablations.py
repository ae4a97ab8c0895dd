"""Beyond the paper: what other readings of the setting and tuned baselines change."""

import numpy as np
import pandas as pd

from cdfsg.paper.experiments import Experiment
from cdfsg.paper.protocols import ENTRIES, OURS
from cdfsg.paper.results.reported import load_rows, load_table
from cdfsg.paper.results.verdicts import judge
from cdfsg.paper.select import ROW, rows_at, select, stands, summarise

PROTOCOL = "protocol"
"""Name of the setting without any treatment."""
RIVALS = tuple(entry.headline_variant for entry in ENTRIES.values() if entry.given)
"""Variants that stand for a competitor with given settings."""


def by_treatment(experiment: Experiment, runs: pd.DataFrame, ablated: pd.DataFrame) -> pd.DataFrame:
    """CDFSG and CDFSG-Ada under every treatment, each with its own selection of step sizes.

    `lost` is the share of the grid's cells with a diverged tuning run, `near` how many of the printed `numbers` match
    or are better.
    """
    named = [(PROTOCOL, runs[(runs["variant"] == "grid") & runs["solver"].isin(OURS)])]
    ours = ablated[ablated["solver"].isin(OURS)]
    named += [(name, ours[ours["variant"] == name]) for name in experiment.own_treatments]
    printed = load_rows(experiment.table) if experiment.table else {}
    return pd.DataFrame([row for name, part in named for row in _selected_rows(name, part, printed)])


def _selected_rows(
    name: str, part: pd.DataFrame, printed: dict[tuple[int, int, str], pd.Series]
) -> list[dict[str, object]]:
    chosen = select(part)
    tuning = summarise(part[part["role"] == "tuning"])
    final = summarise(part[part["role"] == "reported"])
    rows = []
    for key, cells in tuning.groupby(ROW, sort=False):
        s1, s2 = chosen.get(key, (np.nan, np.nan))
        here = rows_at(final, key)
        found = here[(here["s1"] == s1) & (here["s2"] == s2)]
        means = found.iloc[0] if len(found) else pd.Series(dtype=float)
        targets = printed.get(key, pd.Series(dtype=float))
        words = [judge(target, means.get(q, np.nan), q) for q, target in targets.items()]
        rows.append(
            {
                "treatment": name, **dict(zip(ROW, key, strict=True)), "s1": s1, "s2": s2,
                **{q: means.get(q, np.nan) for q in ("quality", "fea", "fea_post")},
                "lost": (cells["n_diverged"] > 0).mean(),
                "near": sum(word in ("match", "better") for word in words), "numbers": len(words),
            }
        )  # fmt: skip
    return rows


def readings(experiment: Experiment, runs: pd.DataFrame, ablated: pd.DataFrame, solver: str) -> pd.DataFrame:
    """The table's measure of a competitor by p and variant, below what the paper prints; NaN where a run diverged."""
    both = pd.concat([part[(part["role"] == "reported") & (part["solver"] == solver)] for part in (runs, ablated)])
    cells = summarise(both)
    if experiment.table:
        target = load_table(experiment.table)
        target = target[(target["solver"] == solver) & (target["quantity"] == experiment.measure)]
        target = target.rename(columns={"reported": experiment.measure}).assign(variant="the paper")
        cells = pd.concat([target, cells], ignore_index=True)
    return cells.pivot(index=["p", "variant"], columns="batch_size", values=experiment.measure)


def orders(ablated: pd.DataFrame) -> pd.DataFrame:
    """What the data order alone does: the range over ten orders from one initial point."""
    ordered = ablated[ablated["variant"] == "orders"]
    groups = ordered.assign(diverged=ordered["status"] == "diverged").groupby(ROW)
    columns = {
        "quality_low": ("quality", "min"),
        "quality_high": ("quality", "max"),
        "fea_low": ("fea", "min"),
        "fea_high": ("fea", "max"),
        "runs": ("fea", "size"),
        "n_diverged": ("diverged", "sum"),
    }
    return groups.agg(**columns).reset_index()


def tuned(runs: pd.DataFrame) -> pd.DataFrame:
    """Means of every solver at given and at tuned settings; CDFSG and CDFSG-Ada at their selected ones alone."""
    cells = summarise(runs[runs["role"] == "reported"])
    kept = cells[stands(cells, runs) & cells["variant"].isin(["grid", "tuned", *RIVALS])]
    return kept[[*ROW, "variant", "quality", "fea", "n_diverged"]].reset_index(drop=True)


def explain_tuning(table: pd.DataFrame) -> str:
    """A sentence per quantity: in how many places ours is best against given settings, and against tuned ones."""
    lines = []
    for quantity, words, sign in (("quality", "most accurate", 1), ("fea", "nearest to the constraint", -1)):
        counts = [_best(table, quantity, sign, variants) for variants in (RIVALS, ("tuned",))]
        places = len(table.drop_duplicates(["batch_size", "p"]))
        lines.append(
            f"CDFSG or CDFSG-Ada is {words} at {counts[0]} of {places} (l, p) with the competitors' given settings, "
            f"and at {counts[1]} of {places} when they are tuned like it."
        )
    return "\n".join(lines)


def _best(table: pd.DataFrame, quantity: str, sign: int, rivals: tuple[str, ...]) -> int:
    """Places where the best of ours beats every rival of the variants; one that diverged or has no such value loses."""
    count = 0
    for _, place in table.groupby(["batch_size", "p"]):
        ours = sign * place.loc[place["solver"].isin(OURS), quantity]
        theirs = sign * place.loc[place["variant"].isin(rivals), quantity]
        count += bool(ours.notna().any() and not (theirs >= ours.max()).any())
    return count


def explain_treatments(table: pd.DataFrame) -> str:
    """A line per treatment: what it does to quality, to Fea and to the match with the paper."""
    base = table[table["treatment"] == PROTOCOL].set_index(ROW)
    lines = []
    for name, rows in table.groupby("treatment", sort=False):
        mine = rows.set_index(ROW)
        beside = base.loc[mine.index]
        both = mine["quality"].notna() & beside["quality"].notna()
        gains = (mine["quality"] - beside["quality"])[both]
        ratio = (mine["fea"] / beside["fea"])[both]
        line = f"{name}: {mine['quality'].isna().sum()} of {len(mine)} rows without a result"
        if name != PROTOCOL and both.any():
            line += f"; quality changes by {gains.median():+.3f} (median), Fea by a factor {ratio.median():.2f}"
        if counted := mine["numbers"].sum():
            line += f"; {mine['near'].sum()} of {counted} printed numbers match or are better"
            line += f" (protocol: {beside['near'].sum()})" if name != PROTOCOL else ""
        lines.append(line)
    return "\n".join(lines)
