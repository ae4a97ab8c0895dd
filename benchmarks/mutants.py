"""What the tests notice: one small change of the numerical code at a time, counted by module.

``make mutants`` lets mutmut make the changes and run the tests, then calls this.  It writes ``mutants.md``, and fails
where a change that no test notices has no reason in ``survivors.csv``, or where too few are noticed.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from mutmut.mutation.diff_apply import get_diff_for_mutant

from cdfsg.files import ROOT, write_atomically

MUTANTS = ROOT / "mutants"
REASONS = ROOT / "benchmarks" / "survivors.csv"
REPORT = ROOT / "benchmarks" / "mutants.md"
LEAST = 0.96
"""Share of the mutants that the tests must kill."""

TIMEOUTS = (24, -24, 36)
STATUS = {0: "survived", 1: "killed", 3: "killed", 5: "untested", 33: "untested"}
STATUS |= dict.fromkeys(TIMEOUTS, "killed")
"""By exit code of the tests; a mutant that never ends is noticed too."""

KINDS = {
    "equivalent": "the numbers are the same for every input, or for every input that can occur",
    "performance": "the same numbers, at another cost in time or memory",
    "rounding": "another number within rounding, or a guard against rounding moved by less than it guards against",
    "gap": "a test could notice it, and none does",
}

INTRODUCTION = """# What the tests notice

Written by `make mutants`, which makes one small change (a mutant) of the numerical code at a time and runs the quick
tests of these modules. A mutant that none of them notices survives; each survivor stands here with its reason, which is
kept in `survivors.csv`.
Not changed are the words of errors, and properties, which mutmut leaves alone.
"""

KEY = ["module", "function", "before", "after"]
"""What the reason of a mutant is found by; it outlives changes elsewhere in the file."""


def mutants() -> Iterator[tuple[str, str, str, str, str]]:
    """`KEY` and status of all mutants of the last run; the lines are read for the survivors alone."""
    for meta in sorted(MUTANTS.rglob("*.py.meta")):
        module = str(meta.relative_to(MUTANTS).with_suffix(""))
        for name, code in json.loads(meta.read_text("utf-8"))["exit_code_by_key"].items():
            status = STATUS.get(code, "not run")
            before, after = changed_lines(name, module) if status in ("survived", "untested") else ("", "")
            yield module, function_of(name), before, after, status


def function_of(name: str) -> str:
    """``Penalty.value`` of mutmut's ``cdfsg.penalty.xǁPenaltyǁvalue__mutmut_3``, ``sym`` of ``x_sym__mutmut_1``."""
    mangled = name.rpartition(".")[2].rpartition("__mutmut_")[0]
    return mangled.removeprefix("xǁ").replace("ǁ", ".") if "ǁ" in mangled else mangled.removeprefix("x_")


def changed_lines(name: str, module: str) -> tuple[str, str]:
    """The lines that a mutant takes out and puts in, each joined by a space."""
    diff = get_diff_for_mutant(name, path=Path(module)).splitlines()[2:]
    before, after = (" ".join(line[1:].strip() for line in diff if line.startswith(sign)) for sign in "-+")
    return before, after


def counts(found: pd.DataFrame) -> list[str]:
    """The table of how many were killed, by module."""
    lines = ["| module | mutants | killed | survived | killed |", "|---|--:|--:|--:|--:|"]
    for module, group in [*found.groupby("module", sort=False), ("all", found)]:
        killed = (group["status"] == "killed").sum()
        lines.append(f"| {module} | {len(group)} | {killed} | {len(group) - killed} | {killed / len(group):.1%} |")
    return lines


def listed(survivors: pd.DataFrame) -> list[str]:
    """The survivors, by kind and reason."""
    lines: list[str] = []
    for kind, meaning in KINDS.items():
        part = survivors[survivors["kind"] == kind]
        if len(part):
            lines += ["", f"## {kind} ({len(part)})", "", f"{meaning[0].upper()}{meaning[1:]}."]
        for reason, group in part.groupby("reason", sort=False):
            lines += ["", f"* {reason}"]
            for m in group.itertuples():
                lines.append(f"  * `{m.module}`, `{m.function}`: `{m.before or '(nothing)'}` → `{m.after}`")
    return lines


def main() -> None:
    """Write the report, or say which survivors still need a reason."""
    found = pd.DataFrame(mutants(), columns=[*KEY, "status"])
    missing = (found["status"] == "not run").sum()
    if missing or found.empty:
        sys.exit(f"{missing} of {len(found)} mutants have no result; `python -m mutmut run` goes on where it stopped")
    reasons = pd.read_csv(REASONS, keep_default_na=False)
    survivors = found[found["status"] != "killed"].merge(reasons, on=KEY, how="left")
    open_ones = survivors[survivors["kind"].isna()]
    if len(open_ones):
        print(open_ones[[*KEY, "status", "reason"]].to_csv(index=False, header=False, na_rep=""))
        sys.exit(f"{len(open_ones)} survivors have no reason: kill them by a test, or add them to {REASONS.name}")
    write_atomically(REPORT, "\n".join([INTRODUCTION, *counts(found), *listed(survivors)]) + "\n")
    share = 1 - len(survivors) / len(found)
    print(f"{share:.1%} of {len(found)} mutants are killed; {REPORT.relative_to(ROOT)} lists the others")
    if share < LEAST:
        sys.exit(f"at least {LEAST:.0%} are wanted")


if __name__ == "__main__":
    main()
