"""The multiverse: variants of the protocol scored on whole tables, and on permuted rows.

A *variant* is a protocol with a rule, a norm and a form of PCC, which cost no run.  The criterion is data,
``data/paper/criterion.toml``, committed before the first screening run.
"""

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from cdfsg import checksums
from cdfsg.files import PAPER
from cdfsg.linalg import Array
from cdfsg.paper.protocols import FIRST, Protocol
from cdfsg.paper.results.reported import INDEPENDENT, gaps
from cdfsg.paper.select import ROW, RULES

PLACE = ["table", *ROW]
FREE = {"rule": tuple(RULES), "norm": ("fea", "fea_spectral"), "pcc": ("pcc", "pcc_paired")}
"""Choices that need no run of their own."""
NUMBERS = ("pcc", "pcc_paired", "fval", "fea", "fea_spectral", "fea_post", "fea_spectral_post")
"""Columns of a record from which those choose."""


@dataclass(frozen=True)
class Search:
    """The variants chosen with one group of tables left out at a time, and what they give on it.

    ``folds`` has a row per group: left_out, chosen (row of the variant), misfit and matches on it, first (the first
    protocol's misfit) and numbers.  ``null`` has the misfits for permuted rows, (permutations, groups).
    """

    folds: pd.DataFrame
    null: Array
    gain_level: float  # sign-flip level of the gain over the first protocol, over the blocks


def criterion() -> dict[str, Any]:
    """The rule by which protocols are compared, as committed before the first run."""
    return tomllib.loads(checksums.read(PAPER / "criterion.toml").decode("utf-8"))


def variants(numbers: pd.DataFrame, targets: pd.DataFrame) -> tuple[pd.DataFrame, Array]:
    """All variants, and their numbers at the rows of `targets`: (variants, rows, quantities).

    `targets` has the columns `PLACE`, ``measure`` ("pcc" or "fval") and `INDEPENDENT`.
    """
    rows, found = [], []
    measures = targets["measure"].to_numpy()
    for (protocol, rule), part in numbers.groupby(["protocol", "rule"], sort=False):
        at = targets[PLACE].merge(part, on=PLACE, how="left")
        for norm, pcc in product(FREE["norm"], FREE["pcc"]):
            accuracy = np.where(measures == "pcc", at[pcc], at["fval"])
            found.append(np.stack([accuracy, at[norm], at[f"{norm}_post"]], axis=1))
            rows.append({"protocol": protocol, "rule": rule, "norm": norm, "pcc": pcc})
    return pd.DataFrame(rows), np.array(found)


def search(table: pd.DataFrame, values: Array, targets: pd.DataFrame, left_out: str = "table") -> Search:
    """Choose a variant with each group of tables left out in turn, and do the same for permuted rows.

    The groups are those of a column of `targets`, "table" or "dataset"; `FIRST` must be among the variants.
    """
    blocks, (_, own, others) = _blocks(targets), _weights(targets, left_out)
    # Each of our rows against each printed row of its block: (variants, our rows, printed rows).
    pairs = [_misfit(gaps(values[:, rows, None], targets.iloc[rows])) for rows in blocks]

    def choose(orders: list[Array]) -> tuple[Array, Array]:
        """For each group the variant of least misfit on the others, and its misfit on this one."""
        paired = zip(pairs, orders, strict=True)
        misfit = np.stack([pair[:, np.arange(len(order)), order].mean(axis=-1) for pair, order in paired])
        chosen = _means(others, misfit).argmin(axis=1)
        return chosen, _means(own, misfit)[np.arange(len(chosen)), chosen]

    rng, null = np.random.default_rng(1), []
    for _ in range(criterion()["permutations"]):
        _, misfit = choose([rng.permutation(len(rows)) for rows in blocks])
        null.append(misfit)
    chosen, _ = choose([np.arange(len(rows)) for rows in blocks])
    return held_out(table, values, targets, left_out, chosen, np.array(null))


def held_out(
    table: pd.DataFrame, values: Array, targets: pd.DataFrame, left_out: str, chosen: Array, null: Array
) -> Search:
    """What the variants chosen without a group give on it, by the numbers in `values`."""
    first, matched = first_of(table), _matched(values, targets)
    misfit = _of_blocks(values, targets)
    misfit[:, np.isnan(values).all(axis=(1, 2))] = np.nan  # a variant that was not run
    groups, own, _ = _weights(targets, left_out)
    of_groups = _means(own, misfit)
    inside = [(targets[left_out] == group).to_numpy() for group in groups]
    found = pd.DataFrame(
        {
            "left_out": groups, "chosen": chosen, "misfit": of_groups[np.arange(len(groups)), chosen],
            "first": of_groups[:, first],
            "matches": [int(matched[n, rows].sum()) for n, rows in zip(chosen, inside, strict=True)],
            "numbers": [matched[0, rows].size for rows in inside],
        }
    )  # fmt: skip
    of_block = chosen[own.argmax(axis=0)]
    return Search(found, null, _sign_flip(misfit[:, first] - misfit[np.arange(len(misfit)), of_block]))


def adoption(folds: pd.DataFrame) -> dict[str, Any]:
    """The three numbers of the criterion of adoption, of a table of `folds`, and whether they meet it."""
    mean, rule = folds[(folds["by"] == "table") & (folds["left_out"] == "mean")].set_index("runs"), criterion()
    gain = float(mean.loc["ten", "first"] - mean.loc["ten", "misfit"])
    level, gain_level = float(mean.loc["screening", "level"]), float(mean.loc["ten", "gain_level"])
    met = level <= rule["level"] and gain >= rule["least_gain"] and gain_level <= rule["level"]
    return {"level": level, "gain": gain, "gain_level": gain_level, "met": met}


def leading(
    table: pd.DataFrame, values: Array, targets: pd.DataFrame, count: int, searches: Sequence[Search]
) -> list[tuple[int, str]]:
    """Protocol and rule of the `count` to confirm: the first, those of the folds, the best ones."""
    folds = (int(n) for found in searches for n in found.folds["chosen"])
    order = [first_of(table), *folds, *map(int, by_table(values, targets).mean(axis=1).argsort())]
    sets = dict.fromkeys((int(row.protocol), str(row.rule)) for row in table.iloc[order].itertuples())
    return list(sets)[:count]


def by_table(values: Array, targets: pd.DataFrame) -> pd.DataFrame:
    """The misfit of each variant on each table, a column per table."""
    tables, own, _ = _weights(targets, "table")
    return pd.DataFrame(_means(own, _of_blocks(values, targets)).T, columns=tables)


def specifications(
    table: pd.DataFrame, values: Array, ten: Array, targets: pd.DataFrame, tried: Sequence[Protocol]
) -> pd.DataFrame:
    """Every variant with choices, misfit, matches and mean signed gaps; confirmed ones by ten runs, too."""
    misfit, apart, cap = by_table(values, targets), gaps(values, targets), criterion()["cap"]
    found = table.assign(protocol=[describe(tried[n]) for n in table["protocol"]])
    for name in (field.name for field in fields(Protocol)):
        if name not in FREE:
            found[name] = [value_of(tried[n], name) for n in table["protocol"]]
    found["misfit"], found["matches"] = misfit.mean(axis=1), _matched(values, targets).sum(axis=(1, 2))
    for n, name in enumerate(INDEPENDENT):
        found[f"bias_{name}"] = np.nanmean(np.clip(apart[..., n], -cap, cap), axis=1)
    confirmed = ~np.isnan(ten).all(axis=(1, 2))
    again = by_table(ten, targets)
    again[~confirmed] = np.nan
    found["misfit_of_ten"] = again.mean(axis=1)
    found["matches_of_ten"] = np.where(confirmed, _matched(ten, targets).sum(axis=(1, 2)), np.nan)
    # What chance alone gives: the screening's numbers against the ten runs of the same variant.
    itself = _misfit(apart - gaps(ten, targets)).mean(axis=-1)
    found["misfit_to_itself"] = np.where(confirmed, itself, np.nan)
    for name in misfit:
        found[name], found[f"{name} of ten"] = misfit[name], again[name]
    return found.loc[:, found.nunique(dropna=False) > 1].sort_values("misfit")


def folds(
    table: pd.DataFrame, screened: dict[str, Search], confirmed: dict[str, Search], tried: Sequence[Protocol]
) -> pd.DataFrame:
    """The results with a table or a data set left out, by both kinds of runs, and their means."""
    rows = []
    for by in screened:
        for runs, found in (("screening", screened[by]), ("ten", confirmed[by])):
            total = found.folds[["matches", "numbers"]].sum().to_dict()
            mean = {"left_out": "mean", **found.folds[["misfit", "first"]].mean(), **total,
                    "gain_level": found.gain_level}  # fmt: skip
            null = np.column_stack([found.null, found.null.mean(axis=1)])
            for fold, misfits in zip([*found.folds.to_dict("records"), mean], null.T, strict=True):
                row = {"by": by, "runs": runs, **fold}
                if "chosen" in fold:
                    variant = table.iloc[fold["chosen"]]
                    row |= {"chosen": describe(tried[variant["protocol"]]), **variant[list(FREE)]}
                if runs == "screening":
                    row |= {"null_5": np.quantile(misfits, 0.05), "null_median": np.median(misfits),
                            "level": _level(fold["misfit"], misfits)}  # fmt: skip
                rows.append(row)
    return pd.DataFrame(rows)


def first_of(table: pd.DataFrame) -> int:
    """The row of the first protocol with its own rule, norm and form of PCC."""
    own = (table["protocol"] == 0) & (table[list(FREE)] == [getattr(FIRST, name) for name in FREE]).all(axis=1)
    return int(np.flatnonzero(own)[0])


def weights(table: pd.DataFrame, values: Array, targets: pd.DataFrame, tried: Sequence[Protocol]) -> pd.DataFrame:
    """The least misfit with each value of a choice, and its weight.

    That is the share of draws of the blocks, with replacement, in which the best variant has it.
    """
    misfit, draws = _of_blocks(values, targets), criterion()["permutations"]
    drawn = np.random.default_rng(1).multinomial(len(misfit), np.full(len(misfit), 1 / len(misfit)), size=draws)
    winners, mean, found = (drawn @ misfit).argmin(axis=1), misfit.mean(axis=0), []
    for name in [field.name for field in fields(Protocol)]:
        words = [value_of(protocol, name) for protocol in tried]
        of = table[name] if name in FREE else table["protocol"].map(dict(enumerate(words)))
        for value in of.unique():
            found.append(
                {"choice": name, "value": value, "variants": int((of == value).sum()),
                 "least_misfit": mean[of == value].min(), "weight": (of[winners] == value).mean()}
            )  # fmt: skip
    choices = pd.DataFrame(found)
    return choices[choices.groupby("choice")["value"].transform("size") > 1].reset_index(drop=True)


def value_of(protocol: Protocol, name: str) -> str:
    """A choice of a protocol in words."""
    value = getattr(protocol, name)
    none = {"scales": "1", "constants": "eta1=0.9 eta2=0.999 epsilon=1e-08"}
    return (" ".join(_pairs(name, value)) or none[name]) if isinstance(value, tuple) else str(value)


def describe(protocol: Protocol) -> str:
    """The differences of a protocol from the first, such as ``start=views, share=0.5``."""
    words = []
    for name, value in vars(protocol).items():
        if value != getattr(FIRST, name):
            words += _pairs(name, value if isinstance(value, tuple) else ((name, value),))
    return ", ".join(words) or "first"


def _pairs(name: str, value: Iterable[tuple[str, Any]]) -> list[str]:
    label = "{} x {:g}" if name == "scales" else "{}={}"
    return [label.format(*pair) for pair in value]


def _misfit(apart: Array) -> Array:
    """Mean over the quantities of |gap|, at most the cap, and the cap where there is no number."""
    cap = criterion()["cap"]
    return np.minimum(np.nan_to_num(np.abs(apart), nan=cap), cap).mean(axis=-1)


def _blocks(targets: pd.DataFrame) -> list[Array]:
    """The rows of `targets` by table and p."""
    return list(targets.groupby(["table", "p"], sort=False).indices.values())


def _of_blocks(values: Array, targets: pd.DataFrame) -> Array:
    """The misfit of every variant on each block, (blocks, variants)."""
    misfit = _misfit(gaps(values, targets))
    return np.stack([misfit[:, rows].mean(axis=1) for rows in _blocks(targets)])


def _weights(targets: pd.DataFrame, left_out: str) -> tuple[list[str], Array, Array]:
    """The groups, and the weights of the blocks in the mean over their own tables and over the others."""
    heads = targets.iloc[[rows[0] for rows in _blocks(targets)]]
    share = 1 / heads.groupby("table")["p"].transform("size").to_numpy()
    groups = list(heads[left_out].unique())
    own = np.stack([np.where(heads[left_out] == group, share, 0) for group in groups])
    others = share - own
    return groups, own / own.sum(axis=1, keepdims=True), others / others.sum(axis=1, keepdims=True)


def _means(weights: Array, misfit: Array) -> Array:
    """Means over blocks, (groups, variants); BLAS would round equal columns differently."""
    return (weights[:, :, None] * misfit).sum(axis=1)


def _matched(values: Array, targets: pd.DataFrame) -> Array:
    """Whether each number is within its tolerance, (variants, rows, quantities)."""
    return np.abs(gaps(values, targets)) <= 1 + 1e-9


def _level(score: float, null: Array) -> float:
    return float((1 + (null <= score).sum()) / (1 + len(null)))


def _sign_flip(gains: Array) -> float:
    """Share of all flips of signs with a mean at least as large: an exact one-sided level."""
    flips = {"permutation_type": "samples", "n_resamples": np.inf}
    return float(stats.permutation_test((gains,), np.sum, alternative="greater", **flips).pvalue)
