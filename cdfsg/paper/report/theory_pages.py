"""The statements and errata as parts of a page, and as text for the notebook."""

import inspect
import textwrap
from collections.abc import Sequence

from cdfsg.paper.report.pages import render
from cdfsg.theory.statement import CORRECTED, FALSE, HOLDS, Erratum
from cdfsg.theory.statements import Recorded

_SIGNS = {HOLDS: ("✓", "match"), CORRECTED: ("✎", "diverged-paper"), FALSE: ("✗", "worse")}
"""By verdict its sign, and the verdict of `figures.VERDICT_COLOURS` that has its colour."""


def statement_table(rows: Sequence[Recorded]) -> str:
    """Every statement with its hypothesis and verdict, as HTML in Markdown."""
    return render("statements.html", rows=rows, signs=_SIGNS)


def errata_list(entries: Sequence[Erratum]) -> str:
    """Every erratum with its counterexample in numbers, as Markdown."""
    return render("errata.md", errata=entries)


def shown(entry: Erratum) -> str:
    """An erratum, the code of its counterexample, and what that gives."""
    lines = [f"{entry.place} ({entry.severity})", *_wrapped("printed:   ", entry.printed)]
    lines += _wrapped("should be: ", entry.corrected)
    if entry.counterexample:
        code = textwrap.indent(inspect.getsource(entry.counterexample).rstrip(), "    ")
        lines += ["", code, "", *_wrapped("", str(entry.counterexample()))]
    return "\n".join(lines)


def _wrapped(head: str, text: str) -> list[str]:
    return textwrap.wrap(text, 100, initial_indent=f"  {head}", subsequent_indent=" " * (2 + len(head)))
