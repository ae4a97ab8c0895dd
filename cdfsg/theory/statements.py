"""All statements in the paper's order, what is on record of them, and the errata."""

import csv
import io
import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path

from cdfsg import checksums, processes
from cdfsg.files import PAPER
from cdfsg.theory.statement import Check, Erratum, Statement

from cdfsg.theory import (  # isort: skip
    adaptive, approximate, assumptions, counterexamples, definitions, derivatives, first_order, near_feasible, rates,
    sampling, second_order, tracker,
)

MODULES = (assumptions, definitions, derivatives, first_order, second_order, near_feasible, approximate, sampling,
           tracker, adaptive, rates)
EVERY = tuple(entry for module in MODULES for entry in vars(module).values() if isinstance(entry, Statement))
"""The statements in the paper's order."""
STATEMENTS = {statement.label: statement for statement in EVERY}
NAME, ERRATA = "statements.csv", "errata.toml"
MISPRINTS = Path(__file__).with_name("misprints.toml")
COLUMNS = ("statement", "place", "says", "verdict", "assumes", "source", "known_by", "tightest", "instance",
           "searches", "failed")
"""Of the record: attributes of `Statement` and of `Check`."""


def errata() -> list[Erratum]:
    """Those of statements, then those of ``misprints.toml``, section by section."""
    found: list[Erratum] = [statement for statement in EVERY if statement.printed]
    for words in tomllib.loads(MISPRINTS.read_text("utf-8"))["erratum"]:
        name = words.pop("counterexample", "")
        found.append(Erratum(**words, counterexample=getattr(counterexamples, name) if name else None))
    return sorted(found, key=lambda erratum: re.findall(r"Section ([^,:;]*)", erratum.place))


def recorded(path: Path = PAPER / NAME) -> dict[str, dict[str, str]]:
    """The rows of ``data/paper/statements.csv`` by the labels of the statements."""
    rows = csv.DictReader(io.StringIO(checksums.read(path).decode("utf-8"), newline=""))
    return {row["statement"]: row for row in rows}


def check_all(jobs: int = 1, chosen: Sequence[Statement] = EVERY) -> Iterator[Check]:
    """The outcomes in order, each as soon as it is known."""
    yield from processes.each(_check, [(statement.label,) for statement in chosen], jobs, ordered=True)


def _check(label: str) -> Check:
    return STATEMENTS[label]()


def labelled(labels: Sequence[str]) -> list[Statement]:
    """The statements of these labels; ValueError, with the nearest labels, where there is none."""
    for label in (label for label in labels if label not in STATEMENTS):
        near = [name for name in STATEMENTS if label in name] + get_close_matches(label, STATEMENTS, 5, 0.4)
        raise ValueError(f"there is no statement {label!r}; near it are: {'; '.join(dict.fromkeys(near)) or 'none'}")
    return [STATEMENTS[label] for label in dict.fromkeys(labels)]


def differences(checks: Sequence[Check], rows: dict[str, dict[str, str]]) -> list[str]:
    """Where the checks and the record differ, in words."""
    found = {check.statement: check.verdict for check in checks}
    told = {name: row["verdict"] for name, row in rows.items()}
    return [
        f"{name}: {told.get(name, 'nothing')} on record, {found.get(name, 'nothing')} found"
        for name in dict.fromkeys([*found, *told]) if found.get(name) != told.get(name)
    ]


def as_csv(checks: Sequence[Check]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for check in checks:
        counts = {} if check.searches else {"searches": "", "failed": ""}
        writer.writerow(vars(STATEMENTS[check.statement]) | vars(check) | counts)
    return out.getvalue()


def as_toml() -> str:
    parts = ["# What the paper prints and should print; written from cdfsg/theory by python -m cdfsg theory --write\n"]
    for entry in errata():
        words = {key: getattr(entry, key) for key in ("place", "printed", "corrected", "severity", "proof")}
        words["counterexample"] = entry.counterexample and entry.counterexample.find.__name__
        lines = (f"{key} = {json.dumps(text)}\n" for key, text in words.items() if text)
        parts.append("[[erratum]]\n" + "".join(lines))
    return "\n".join(parts)


def report(jobs: int, write: bool = False, only: Sequence[str] = ()) -> None:
    """Test and print the statements, all or some; write the record, or raise ValueError where it differs."""
    if only and write:
        raise ValueError("--write needs every statement; leave out --only")
    chosen, checks, rows = labelled(only) or EVERY, [], recorded()
    print(f"{'':7s} {'verdict':24s} {'margin':>9s} {'tested':>6s} {'tightest':>9s}  statement")
    for number, check in enumerate(check_all(jobs, chosen), start=1):
        checks.append(check)
        print(f"{number:3d}/{len(chosen):3d} {check}", flush=True)
    if write:
        checksums.write(PAPER / NAME, as_csv(checks))
        checksums.write(PAPER / ERRATA, as_toml())
        rows = recorded()
    rows = {label: row for label, row in rows.items() if not only or label in only}
    if wrong := differences(checks, rows):
        remedy = "where the checks are right, write it with: python -m cdfsg theory --write"
        raise ValueError(f"the checks differ from data/paper/{NAME}: {'; '.join(wrong)}; {remedy}")
    print(f"{len(checks)} statements, all as recorded in data/paper.")
