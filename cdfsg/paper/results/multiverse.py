"""The multiverse: variants of the protocol scored on whole tables, beside the same score for permuted rows.

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

from cdfsg import checksums
from cdfsg.files import PAPER
from cdfsg.linalg import Array
from cdfsg.paper.protocols import FIRST, Protocol
from cdfsg.paper.select import ROW, RULES

QUANTITIES = ("accuracy", "fea", "fea_post")
PLACE = ["table", *ROW]
FREE = {"rule": tuple(RULES), "norm": ("fea", "fea_spectral"), "pcc": ("pcc", "pcc_paired")}
"""Choices that need no run of their own."""
NUMBERS = ("pcc", "pcc_paired", "fval", "fea", "fea_spectral", "fea_post", "fea_spectral_post")
"""Columns of a record from which those choose."""


@dataclass(frozen=True)
class Search:
    """The variants chosen with one group of tables left out at a time, and what they give on it.

    ``folds`` has a row per group: left_out, chosen (row of the variant), misfit and matches on the group, first (the
    first protocol's misfit there) and numbers.  ``null`` has the misfits for permuted rows, (permutations, groups).
    """

    folds: pd.DataFrame
    null: Array
    gain_level: float  # sign-flip level of the gain over the first protocol, over the blocks

    @property
    def score(self) -> float:
        """Mean misfit on the groups left out."""
        return float(self.folds["misfit"].mean())

    @property
    def level(self) -> float:
        """Share of permutations, the true pairing among them, whose score is at least as good."""
        return _level(self.score, self.null.mean(axis=1))

    @property
    def levels(self) -> list[float]:
        """The same for each group alone."""
        return [_level(misfit, column) for misfit, column in zip(self.folds["misfit"], self.null.T, strict=True)]

    @property
    def gain(self) -> float:
        """How much lower the score is than the first protocol's on the same tables."""
        return float(self.folds["first"].mean() - self.score)


def criterion() -> dict[str, Any]:
    """The rule by which protocols are compared, as committed before the first run."""
    return tomllib.loads(checksums.read(PAPER / "criterion.toml").decode("utf-8"))


def variants(numbers: pd.DataFrame, targets: pd.DataFrame) -> tuple[pd.DataFrame, Array]:
    """All variants, and their numbers at the rows of `targets`: (variants, rows, quantities).

    `targets` has the columns `PLACE`, ``measure`` ("pcc" or "fval") and `QUANTITIES`.
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


def gaps(values: Array, targets: pd.DataFrame) -> Array:
    """Differences of values (..., rows, quantities) to the printed rows in tolerances; NaN where there is no number."""
    return (values - targets[list(QUANTITIES)].to_numpy()) / _tolerances(targets)


def search(table: pd.DataFrame, values: Array, targets: pd.DataFrame, left_out: str = "table", seed: int = 1) -> Search:
    """Choose a variant with each group of tables left out in turn, and do the same for permuted rows.

    Parameters
    ----------
    table, values
        From `variants`; the variant `FIRST` must be among them.
    targets : DataFrame
        Printed numbers with their tolerances; `left_out` names the column of the groups, "table" or "dataset".
    """
    rule, blocks = criterion(), _Blocks.of(targets, left_out)
    # Each of our rows against each printed row of its block: (variants, our rows, printed rows).
    pairs = [_misfit(gaps(values[:, rows, None], targets.iloc[rows]), rule["cap"]) for rows in blocks.rows]
    chosen, _ = blocks.leave_out(np.stack([pair.diagonal(axis1=1, axis2=2).mean(axis=-1) for pair in pairs]))
    rng, null = np.random.default_rng(seed), []
    for _ in range(rule["permutations"]):
        orders = [rng.permutation(len(rows)) for rows in blocks.rows]
        permuted = [
            pair[:, np.arange(len(order)), order].mean(axis=-1) for pair, order in zip(pairs, orders, strict=True)
        ]
        null.append(blocks.leave_out(np.stack(permuted))[1])
    return held_out(table, values, targets, left_out, chosen, np.array(null))


def held_out(
    table: pd.DataFrame, values: Array, targets: pd.DataFrame, left_out: str, chosen: Iterable[int], null: Array
) -> Search:
    """What the variants chosen without a group give on it, by the numbers in `values`."""
    chosen = list(chosen)
    blocks, first, matched = _Blocks.of(targets, left_out), first_of(table), _matched(values, targets)
    misfit = _of_blocks(values, targets, blocks)
    misfit[:, np.isnan(values).all(axis=(1, 2))] = np.nan  # a variant that was not run
    by_group, names = blocks.of_groups(misfit), list(dict.fromkeys(blocks.groups))
    rows = []
    for n, name in enumerate(names):
        mine = matched[chosen[n], targets[left_out] == name]
        rows.append(
            {
                "left_out": name, "chosen": int(chosen[n]), "misfit": by_group[chosen[n], n],
                "first": by_group[first, n],
                "matches": int(mine.sum()), "numbers": mine.size,
            }
        )  # fmt: skip
    gains = [misfit[b, first] - misfit[b, chosen[names.index(group)]] for b, group in enumerate(blocks.groups)]
    return Search(pd.DataFrame(rows), null, _sign_flip(np.array(gains)))


def is_met(level: float, gain: float, gain_level: float) -> bool:
    """Whether the level of a search, its gain over the first protocol and that gain's level meet the criterion."""
    rule = criterion()
    return level <= rule["level"] and gain >= rule["least_gain"] and gain_level <= rule["level"]


def leading(
    table: pd.DataFrame, values: Array, targets: pd.DataFrame, count: int, searches: Sequence[Search]
) -> list[tuple[int, str]]:
    """Protocol and rule of what is confirmed: the first, those chosen in the folds, the best ones; `count` in all."""
    _, misfit = by_table(values, targets)
    folds = (int(n) for found in searches for n in found.folds["chosen"])
    order = [first_of(table), *folds, *map(int, misfit.mean(axis=1).argsort())]
    sets = dict.fromkeys((int(row.protocol), str(row.rule)) for row in table.iloc[order].itertuples())
    return list(sets)[:count]


def by_table(values: Array, targets: pd.DataFrame) -> tuple[list[str], Array]:
    """The tables, and the misfit of each variant on each, (variants, tables)."""
    blocks = _Blocks.of(targets, "table")
    return list(dict.fromkeys(blocks.tables)), blocks.of_groups(_of_blocks(values, targets, blocks))


def specifications(
    table: pd.DataFrame, values: Array, ten: Array, targets: pd.DataFrame, tried: Sequence[Protocol]
) -> pd.DataFrame:
    """Every variant with its choices, misfit, matches and mean signed gaps; of confirmed ones also by ten runs."""
    (tables, misfit), apart, cap = by_table(values, targets), gaps(values, targets), criterion()["cap"]
    found = table.assign(protocol=[describe(tried[n]) for n in table["protocol"]])
    for name in (field.name for field in fields(Protocol)):
        if name not in FREE:
            found[name] = [value_of(tried[n], name) for n in table["protocol"]]
    found["misfit"], found["matches"] = misfit.mean(axis=1), _matched(values, targets).sum(axis=(1, 2))
    for n, name in enumerate(QUANTITIES):
        found[f"bias_{name}"] = np.nanmean(np.clip(apart[..., n], -cap, cap), axis=1)
    confirmed = ~np.isnan(ten).all(axis=(1, 2))
    _, again = by_table(ten, targets)
    found["misfit_of_ten"] = np.where(confirmed, again.mean(axis=1), np.nan)
    found["matches_of_ten"] = np.where(confirmed, _matched(ten, targets).sum(axis=(1, 2)), np.nan)
    # What chance alone gives: the screening's numbers against the ten runs of the same variant.
    itself = _misfit((values - ten) / _tolerances(targets), cap).mean(axis=-1)
    found["misfit_to_itself"] = np.where(confirmed, itself, np.nan)
    for n, name in enumerate(tables):
        found[name], found[f"{name} of ten"] = misfit[:, n], np.where(confirmed, again[:, n], np.nan)
    return found.loc[:, found.nunique(dropna=False) > 1].sort_values("misfit")


def folds(
    table: pd.DataFrame, screened: dict[str, Search], confirmed: dict[str, Search], tried: Sequence[Protocol]
) -> pd.DataFrame:
    """The results with a table or a data set left out, by the screening and by ten runs, and their mean, with nulls."""
    rows = []
    for by in screened:
        for runs, found in (("screening", screened[by]), ("ten", confirmed[by])):
            null = found.null if runs == "screening" else np.full_like(found.null, np.nan)
            for n, fold in enumerate(found.folds.to_dict("records")):
                variant = table.iloc[fold["chosen"]]
                rows.append(
                    {"by": by, "runs": runs, **fold, "chosen": describe(tried[variant["protocol"]]),
                     **{name: variant[name] for name in FREE}, "null_5": np.quantile(null[:, n], 0.05),
                     "null_median": np.median(null[:, n]), "level": found.levels[n] if runs == "screening" else np.nan}
                )  # fmt: skip
            mean = null.mean(axis=1)
            rows.append(
                {"by": by, "runs": runs, "left_out": "mean", "misfit": found.score,
                 "first": found.folds["first"].mean(), "matches": found.folds["matches"].sum(),
                 "numbers": found.folds["numbers"].sum(),
                 "null_5": np.quantile(mean, 0.05), "null_median": np.median(mean),
                 "level": found.level if runs == "screening" else np.nan, "gain_level": found.gain_level}
            )  # fmt: skip
    return pd.DataFrame(rows)


def first_of(table: pd.DataFrame) -> int:
    """The row of the first protocol with its own rule, norm and form of PCC."""
    own = (table["protocol"] == 0) & (table[list(FREE)] == [getattr(FIRST, name) for name in FREE]).all(axis=1)
    return int(np.flatnonzero(own)[0])


def weights(
    table: pd.DataFrame, values: Array, targets: pd.DataFrame, tried: Sequence[Protocol], seed: int = 1
) -> pd.DataFrame:
    """How settled each choice is: the least misfit with each value, and how often it wins when blocks are redrawn.

    The blocks of a table and p are drawn with replacement; the weight of a value is the share of draws in which the
    best variant has it.
    """
    misfit, draws = _of_blocks(values, targets, _Blocks.of(targets, "table")), criterion()["permutations"]
    drawn = np.random.default_rng(seed).multinomial(len(misfit), np.full(len(misfit), 1 / len(misfit)), size=draws)
    winners, mean, found = (drawn @ misfit).argmin(axis=1), misfit.mean(axis=0), []
    for name in [field.name for field in fields(Protocol)]:
        of = [str(row[name]) if name in FREE else value_of(tried[row["protocol"]], name) for _, row in table.iterrows()]
        labels = np.array(of)
        for value in dict.fromkeys(of):
            found.append(
                {"choice": name, "value": value, "variants": int((labels == value).sum()),
                 "least_misfit": mean[labels == value].min(), "weight": (labels[winners] == value).mean()}
            )  # fmt: skip
    choices = pd.DataFrame(found)
    return choices[choices.groupby("choice")["value"].transform("size") > 1].reset_index(drop=True)


def value_of(protocol: Protocol, name: str) -> str:
    """A choice of a protocol in words."""
    value = getattr(protocol, name)
    if name == "scales":
        return " ".join(f"{dataset} x {factor:g}" for dataset, factor in value) or "1"
    if isinstance(value, tuple):
        return " ".join(f"{key}={part}" for key, part in value) or "eta1=0.9 eta2=0.999 epsilon=1e-08"
    return str(value)


def describe(protocol: Protocol) -> str:
    """A protocol as its differences from the first, such as ``start=views, share=0.5``; "first" for none."""
    changed = {
        field.name: getattr(protocol, field.name)
        for field in fields(Protocol)
        if getattr(protocol, field.name) != getattr(FIRST, field.name)
    }
    words = []
    for name, value in changed.items():
        pairs = value if isinstance(value, tuple) else ((name, value),)
        label = "{} x {:g}" if name == "scales" else "{}={}"
        words += [label.format(key, part) for key, part in pairs]
    return ", ".join(words) or "first"


def _misfit(apart: Array, cap: float) -> Array:
    """Mean over the quantities of |gap|, at most `cap`, and `cap` where there is no number."""
    return np.minimum(np.nan_to_num(np.abs(apart), nan=cap), cap).mean(axis=-1)


def _of_blocks(values: Array, targets: pd.DataFrame, blocks: "_Blocks") -> Array:
    """The misfit of every variant on each block, (blocks, variants)."""
    cap = criterion()["cap"]
    return np.stack([_misfit(gaps(values[:, rows], targets.iloc[rows]), cap).mean(axis=-1) for rows in blocks.rows])


def _matched(values: Array, targets: pd.DataFrame) -> Array:
    """Whether each number is within its tolerance, (variants, rows, quantities)."""
    return np.abs(gaps(values, targets)) <= 1 + 1e-9


def _tolerances(targets: pd.DataFrame) -> Array:
    return targets[[f"{name}_tolerance" for name in QUANTITIES]].to_numpy()


@dataclass(frozen=True)
class _Blocks:
    """The rows of `targets` by table and p, with the table and the group of each block."""

    rows: list[Array]
    tables: list[str]
    groups: list[str]

    @classmethod
    def of(cls, targets: pd.DataFrame, left_out: str) -> "_Blocks":
        rows = list(targets.groupby(["table", "p"], sort=False).indices.values())
        heads = targets.iloc[[index[0] for index in rows]]
        return cls(rows, list(heads["table"]), list(heads[left_out]))

    def of_groups(self, misfit: Array) -> Array:
        """Mean over the tables of each group from one value per block and variant, (variants, groups)."""
        of = dict(zip(self.tables, self.groups, strict=True))
        by_table = {t: misfit[[name == t for name in self.tables]].mean(axis=0) for t in of}
        return np.stack(
            [np.mean([by_table[t] for t in of if of[t] == group], axis=0) for group in dict.fromkeys(self.groups)],
            axis=1,
        )

    def leave_out(self, misfit: Array) -> tuple[Array, Array]:
        """For each group the variant of least misfit on the others, and its misfit on this one."""
        sizes = np.array([len({t for t, g in zip(self.tables, self.groups, strict=True) if g == group})
                          for group in dict.fromkeys(self.groups)])  # fmt: skip
        scores = self.of_groups(misfit)
        others = (scores * sizes).sum(axis=1, keepdims=True) - scores * sizes
        chosen = others.argmin(axis=0)
        return chosen, scores[chosen, np.arange(scores.shape[1])]


def _level(score: float, null: Array) -> float:
    return float((1 + (null <= score).sum()) / (1 + len(null)))


def _sign_flip(gains: Array) -> float:
    """Share of all flips of the signs of the gains with a mean at least as large: a one-sided exact level."""
    signs = np.array(list(product((1, -1), repeat=len(gains))))
    return float(((signs @ gains) >= gains.sum() - 1e-12).mean())
