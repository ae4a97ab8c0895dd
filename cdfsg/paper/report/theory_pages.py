"""The statements and errata as parts of a page, and as text for the notebook."""

import inspect
import textwrap
from collections.abc import Sequence
from html import escape

from cdfsg.paper.report.pages import html_table
from cdfsg.theory.statement import CORRECTED, FALSE, HOLDS, Erratum
from cdfsg.theory.statements import Recorded

_SIGNS = {HOLDS: ("✓", "match"), CORRECTED: ("✎", "diverged-paper"), FALSE: ("✗", "worse")}
"""By verdict its sign, and the verdict of `figures.VERDICT_COLOURS` that has its colour."""


def statement_table(rows: Sequence[Recorded]) -> str:
    """Every statement with its hypothesis and verdict, as HTML in Markdown."""
    counted = ", ".join(f"{sum(row.verdict == word for row in rows)} {word}" for word in _SIGNS)
    lines = []
    for row in rows:
        sign, colour = _SIGNS[row.verdict]
        words = "".join(f'<td class="words">{escape(text)}</td>' for text in (row.place, row.assumes, row.says))
        lines.append(f'<tr>{words}<td class="verdict v-{colour}">{sign} {row.verdict}</td></tr>')
    heads = ("place", "assumes", "the paper says")
    return f"{len(rows)} statements: {counted}.\n\n{html_table((*heads, 'verdict'), lines, words=heads)}\n"


def errata_list(entries: Sequence[Erratum]) -> str:
    """Every erratum with its counterexample in numbers, as Markdown."""
    parts = []
    for entry in entries:
        lines = [f"* printed: `{entry.printed}`", f"* should be: `{entry.corrected}`"]
        if entry.counterexample:
            lines.append(f"* counterexample: `{entry.counterexample()}`")
        heading = entry.place.replace("_", r"\_")
        parts.append("\n".join([f"### {heading}\n\n*{entry.severity}*\n", *lines, ""]))
    return "\n".join(parts)


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
