"""What the checks of the theory notice: each relation of each statement is made wrong, and its check must fail.

    .venv/bin/python benchmarks/theory_mutations.py                  all statements, into theory_mutations.csv
    .venv/bin/python benchmarks/theory_mutations.py pro:saddle W     some, on the screen

A bound loses a share of its right side, an identity gains 1 % on it, a condition is negated.  The share begins with
1 %; where the bound is not as tight as that, it grows until the check fails.  A relation of a false statement is left
out, as it fails without a change, and so is one whose claim is printed beside.
"""

import csv
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cdfsg.files import ROOT
from cdfsg.theory.statement import BOUND, CONDITION, FALSE, Relation, Statement, Tally, numbered
from cdfsg.theory.statements import EVERY, labelled

TABLE = ROOT / "benchmarks" / "theory_mutations.csv"
SHARES = (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 2.0)  # the last changes the sign
COLUMNS = ("statement", "relation", "kind", "tightest", "noticed")


def changed(relation: Relation, share: float) -> Relation:
    """The relation with its right side off by a share of it, or of the scale where it is zero; or the negation."""
    if relation.kind == CONDITION:
        return replace(relation, lhs=1 - relation.lhs)
    size = np.abs(relation.rhs) if np.any(relation.rhs) else relation.scale
    return replace(relation, rhs=relation.rhs - share * (1.0 if size is None else size))


def rows(statement: Statement) -> Iterator[dict[str, str]]:
    """A row per relation: how tight it is, and the least share that its check notices, or nothing."""
    items = [item for item in statement.margins() if isinstance(item, tuple | Relation)]
    entries = [entry for item in items for entry in numbered(item)]
    false = statement.conclude(iter(items)).verdict == FALSE
    for key in dict.fromkeys(key for key, _, _ in entries if isinstance(key, str) or not false):
        mine, tally = [relation for number, relation, _ in entries if number == key], Tally()
        for relation in mine:
            tally.add(relation)
        shares = [share for share in SHARES if notices(statement, mine, share)]
        yield {
            "statement": statement.label, "relation": key if isinstance(key, str) else f"number {key[1] + 1}",
            "kind": tally.kind, "tightest": f"{(1 - tally.margin) * (1 + 1e-9):.2g}" if tally.kind == BOUND else "",
            "noticed": "" if not shares else "negation" if tally.kind == CONDITION else f"{shares[0]:.0%}",
        }  # fmt: skip


def notices(statement: Statement, relations: Sequence[Relation], share: float) -> bool:
    """Whether the check fails when this relation alone is changed in every instance."""
    tally = Tally()
    for relation in relations:
        tally.add(changed(relation, share))
    return not tally.holds(statement.rounding)


def main(labels: Sequence[str]) -> int:
    found: list[dict[str, Any]] = []
    for statement in labelled(labels) or EVERY:
        found += rows(statement)
        new = [row for row in found if row["statement"] == statement.label]
        print("\n".join(" | ".join(row.values()) for row in new), flush=True)
    if not labels:
        with TABLE.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(found)
    unnoticed = [row for row in found if not row["noticed"]]
    print(f"{len(found)} relations, {len(unnoticed)} of whose changes go unnoticed")
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
