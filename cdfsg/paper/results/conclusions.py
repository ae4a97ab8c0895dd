"""What the records say: counts beside their nulls, the primary endpoints, the open choices."""

from typing import Any

import numpy as np
import pandas as pd

from cdfsg import checksums
from cdfsg.files import RECORDS
from cdfsg.paper import archive
from cdfsg.paper.protocols import ADOPTED, OURS
from cdfsg.paper.results import claims
from cdfsg.paper.results.multiverse import describe
from cdfsg.paper.results.verdicts import attainability, chance, counted

_COMMAND = "make multiverse"
NO_RESULT = ("diverged-ours", "diverged-paper", "diverged-both")
CHOICES = {
    "start": "Is X_0 a Q factor of a Gaussian matrix, or feasible?",
    "scales": "Which range do the values of each data set have: [0, 1] or [-1, 1]?",
    "centred": "Are the data centred?",
    "minibatches": "How are theta and xi drawn?",
    "share": "How many steps are one pass, N / l or N / (2 l)?",
    "tracking": "Which step sizes does \"alpha_k = s1 b_k = s2\" mean?",
    "constants": "What are epsilon, eta1 and eta2 of CDFSG-Ada?",
    "huber": "What is the threshold mu of the Huber merit, and does f sum over all i != j, or over i < j?",
    "rule": "Which of the 18 grid points is reported, and is it one per row?",
    "norm": "Which norm is Fea?",
    "pcc": "Is PCC the sum of canonical correlations, or of those of the paired columns?",
}
"""The question to the authors behind each choice of a protocol."""


def by_dataset(judged: pd.DataFrame) -> pd.DataFrame:
    """Counts of our algorithms' numbers per data set and in all, with what permuted rows give."""
    ours = counted(judged[judged["solver"].isin(OURS)])
    parts = [attainability(e, archive.runs_of(e)).assign(dataset=e.dataset) for e in archive.published()]
    attained = pd.concat([*parts, pd.concat(parts).assign(dataset="")])
    rows = []
    for name, part in pd.concat([ours, ours.assign(dataset="")]).groupby("dataset", sort=False):
        grid = attained[attained["dataset"] == name]
        rows.append(
            {
                "dataset": name, "provenance": " and ".join(dict.fromkeys(part["provenance"])), **counts(part),
                "rows": len(grid), "attained": int(grid["attainable"].sum()),
                "attained_by_chance": float(grid["by_chance"].sum()),
            }
        )  # fmt: skip
    return pd.DataFrame(rows)


def counts(part: pd.DataFrame) -> dict[str, Any]:
    """The number of each verdict in a part of the counted ones, and the matches that permuted rows give."""
    mean, most = chance(part)
    words = part["verdict"].value_counts()
    return {
        "numbers": len(part),
        **{word: int(words.get(word, 0)) for word in ("match", "better", "worse", "beyond-the-optimum")},
        "no result": int(words[words.index.isin(NO_RESULT)].sum()),
        "equivalent": int((part["equivalence"] == "equivalent").sum()), "chance": mean, "chance_95": most,
    }  # fmt: skip


def endpoints(judged: pd.DataFrame, numbers: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """The primary endpoints that the criterion names; `numbers` are those of `by_dataset`."""
    total = numbers.iloc[-1]
    wide = judged[judged["solver"].isin(OURS)].pivot(
        index=["table", "batch_size", "p", "solver"], columns="quantity", values=["reported", "reproduced"]
    )
    half = {"ours": "half", "against": ["Landing fixed"]}
    sources = [claims.measured(e, archive.runs_of(e)) for e in archive.published()]
    instances = [found for source in sources for found in claims.more_accurate(half, source)]
    adaptive = [(holds, clear) for place, holds, clear in instances if f", {OURS[1]} / " in place]
    lower = {side: wide[side, "fea_post"] < wide[side, "fea"] for side in ("reported", "reproduced")}
    return {
        "replication": {"count": int(total["match"]), "of": int(total["numbers"]), "chance": total["chance"],
                        "chance_95": total["chance_95"]},
        "accuracy": {"count": sum(bool(holds and clear) for holds, clear in adaptive), "of": len(adaptive),
                     "against": sum(bool(not holds and clear) for holds, clear in adaptive)},
        "post-processing": {"count": int(lower["reproduced"].sum()), "of": len(wide),
                            "with_result": int(wide["reproduced", "fea"].notna().sum()),
                            "paper": int(lower["reported"].sum())},
    }  # fmt: skip


def folds() -> pd.DataFrame:
    """The published results with one table or data set left out, with their nulls."""
    return checksums.read_record(RECORDS / "multiverse-folds.csv", _COMMAND)


def choices() -> pd.DataFrame:
    """The published weights of every value of every choice."""
    return checksums.read_record(RECORDS / "multiverse-choices.csv", _COMMAND, dtype={"value": str})


def specifications() -> pd.DataFrame:
    """The published scores of every variant, the best first; mu and pairs varied together."""
    table = checksums.read_record(RECORDS / "multiverse.csv", _COMMAND)
    if "mu" in table:
        table["huber"] = "mu = " + table["mu"].astype(str) + ", " + table["pairs"]
    return table


def questions() -> pd.DataFrame:
    """What we take for each open choice, and how many numbers match under each other answer.

    Variants count that differ from the adopted protocol in this choice alone; where none was tried, the best one with
    that answer stands for it, and `alone` is false.
    """
    table, rows = specifications(), []
    weights = choices().set_index(["choice", "value"])["weight"].to_dict()
    names = [name for name in CHOICES if name in table]
    adopted = adopted_row(table)
    for name in names:
        others = [other for other in names if other != name]
        alike = (table[others].astype(str) == adopted[others].astype(str)).all(axis=1)
        for value, part in table.groupby(table[name].astype(str), sort=False):
            alone = part[alike[part.index]]
            row = (alone if len(alone) else part).iloc[0]
            rows.append(
                {
                    "choice": name, "answer": value, "ours": value == str(adopted[name]), "alone": bool(len(alone)),
                    "matches": int(row["matches"]), "change": int(row["matches"] - adopted["matches"]),
                    "misfit": row["misfit"], "weight": weights.get((name, value), np.nan),
                }
            )  # fmt: skip
    return pd.DataFrame(rows)


def adopted_row(table: pd.DataFrame) -> pd.Series:
    """The adopted variant among the tried ones."""
    mine = (table["protocol"] == describe(ADOPTED)) & (table["rule"] == ADOPTED.rule)
    for name in ("norm", "pcc"):
        mine &= table[name] == getattr(ADOPTED, name) if name in table else True
    return table[mine].iloc[0]
