"""The registry: every check in the paper's order, what is recorded of it, and the errata."""

import csv
import io
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from cdfsg import checksums
from cdfsg.files import PAPER
from cdfsg.theory import (
    adaptive,
    assumptions,
    definitions,
    derivatives,
    first_order,
    near_feasible,
    rates,
    sampling,
    second_order,
    surrogate,
    tracker,
)
from cdfsg.theory.check import VERDICTS, Check, Statement

MODULES: tuple[tuple[Statement, ...], ...] = (
    assumptions.CHECKS,
    definitions.CHECKS,
    derivatives.CHECKS,
    first_order.CHECKS + second_order.CHECKS,  # together, as they share the search for stationary points
    near_feasible.CHECKS,
    surrogate.CHECKS,
    sampling.CHECKS,
    tracker.CHECKS,
    adaptive.CHECKS,
    rates.CHECKS,
)
"""The checks in the paper's order, in parts that can run at the same time."""
CHECKS: dict[str, Statement] = {check.__name__: check for module in MODULES for check in module}
"""Every check by its name."""
SEVERITIES = ("typo", "wrong constant", "wrong formula", "gap in proof", "outside the assumptions")


@dataclass(frozen=True)
class Recorded:
    """A row of ``data/paper/statements.csv``.

    Attributes
    ----------
    statement : str
        Label in the paper's source; that of the check.
    place : str
        Where a reader finds it.
    says : str
        What the paper says, in words.
    verdict : {"holds", "holds after a correction", "false"}
    """

    statement: str
    place: str
    says: str
    verdict: str


@dataclass(frozen=True)
class Erratum:
    """An entry of ``data/paper/errata.toml``.

    Attributes
    ----------
    place, printed, should_be : str
    severity : str
        One of `SEVERITIES`.
    check : str
        Name of the check that shows it, a key of `CHECKS`.
    counterexample : str
        Name of a function that shows it in a few lines; empty if the printed form is not refuted, only not derived.
    """

    place: str
    printed: str
    should_be: str
    severity: str
    check: str
    counterexample: str = ""


def recorded(path: Path = PAPER / "statements.csv") -> dict[str, Recorded]:
    """The recorded statements by their label, in the paper's order.

    Raises
    ------
    ValueError
        If a label occurs twice, a verdict is unknown, or the checksum is another one than `cdfsg.checksums` lists.
    """
    rows: dict[str, Recorded] = {}
    for row in csv.DictReader(io.StringIO(checksums.read(path).decode("utf-8"), newline="")):
        entry = Recorded(**row)
        if entry.statement in rows:
            raise ValueError(f"{path.name} has the statement {entry.statement!r} twice; keep one row of it")
        if entry.verdict not in VERDICTS:
            raise ValueError(
                f"{path.name} gives {entry.statement!r} the verdict {entry.verdict!r}; use one of {VERDICTS}"
            )
        rows[entry.statement] = entry
    return rows


def errata(path: Path = PAPER / "errata.toml") -> list[Erratum]:
    """The errata in the paper's order.

    Raises
    ------
    ValueError
        If an entry lacks a field or has one too many, its severity is unknown, no check has its name, or the file's
        checksum is another one than `cdfsg.checksums` lists.
    """
    names = {field.name for field in fields(Erratum)}
    entries = tomllib.loads(checksums.read(path).decode("utf-8"))["erratum"]
    for entry in entries:
        what = f"{path.name}: {entry.get('place')!r}"
        if set(entry) | {"counterexample"} != names:
            raise ValueError(f"{what} has {sorted(entry)}, expected {sorted(names)}")
        if entry["severity"] not in SEVERITIES:
            raise ValueError(f"{what} has the severity {entry['severity']!r}; use one of {SEVERITIES}")
        if entry["check"] not in CHECKS:
            raise ValueError(f"{what} names the unknown check {entry['check']!r}")
    return [Erratum(**entry) for entry in entries]


def line(check: Check) -> str:
    """One line on a check, for people."""
    text = f"{check.verdict:24s} {check.margin:9.1e} {check.instances:6d}  {check.statement}: {check.tested}"
    return text + (f" [{check.witness}]" if check.witness else "")


def differences(checks: Sequence[Check], rows: dict[str, Recorded]) -> list[str]:
    """In words where the checks and the record differ; empty if nowhere.

    A recorded statement without a check counts, and so does a check without a record.
    """
    found = {check.statement: check.verdict for check in checks}
    wrong = [
        f"{name} is recorded as {rows[name].verdict!r} but found to be {verdict!r}"
        for name, verdict in found.items()
        if name in rows and rows[name].verdict != verdict
    ]
    wrong += [f"{name} has no row in data/paper/statements.csv; add one" for name in found if name not in rows]
    wrong += [f"{name} is recorded but no check reports it" for name in rows if name not in found]
    return wrong
