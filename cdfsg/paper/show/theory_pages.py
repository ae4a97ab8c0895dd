"""The statements and errata as parts of a page, and as text for the notebooks."""

import inspect
import textwrap
from collections.abc import Callable, Sequence
from html import escape
from importlib import import_module

from cdfsg.paper.show.pages import html_table
from cdfsg.theory import counterexamples
from cdfsg.theory.check import CORRECTED, FALSE, HOLDS, Counterexample
from cdfsg.theory.statements import Erratum, Recorded

_COLOURS = {HOLDS: "match", CORRECTED: "diverged-paper", FALSE: "worse"}
"""The colours of `figures.VERDICT_COLOURS` that these verdicts get."""
WIDTH = 100
"""Characters of a line in a notebook."""
_SIGNS = {HOLDS: "✓", CORRECTED: "✎", FALSE: "✗"}


def statement_table(rows: Sequence[Recorded]) -> str:
    """Every statement with its verdict, as HTML in Markdown."""
    counted = ", ".join(f"{sum(row.verdict == word for row in rows)} {word}" for word in _COLOURS)
    lines = []
    for row in rows:
        verdict = f'<td class="verdict v-{_COLOURS[row.verdict]}">{_SIGNS[row.verdict]} {row.verdict}</td>'
        place = f'<td class="words" title="{escape(row.statement)}">{escape(row.place)}</td>'
        lines.append(f'<tr>{place}<td class="words">{escape(row.says)}</td>{verdict}</tr>')
    text = ("place", "the paper says")
    return f"{len(rows)} statements: {counted}.\n\n{html_table((*text, 'verdict'), lines, words=text)}\n"


def errata_list(entries: Sequence[Erratum]) -> str:
    """Every erratum with its counterexample in numbers, as Markdown."""
    parts = []
    for entry in entries:
        shown_by = f"* counterexample: `{counterexample_of(entry)()}`\n" if entry.counterexample else ""
        parts.append(
            f"### {_plain(entry.place)}\n\n"
            f"*{entry.severity}*\n\n"
            f"* printed: `{entry.printed}`\n"
            f"* should be: `{entry.should_be}`\n"
            f"{shown_by}"
        )
    return "\n".join(parts)


def counterexample_of(entry: Erratum) -> Callable[[], Counterexample]:
    """The function that an erratum names, of `counterexamples` or, as ``module.function``, of another theory module.

    Raises
    ------
    ValueError
        If the erratum has none.
    """
    if not entry.counterexample:
        raise ValueError(f"{entry.place}: a {entry.severity} that no counterexample refutes")
    module, _, name = entry.counterexample.rpartition(".")
    home = import_module(f"cdfsg.theory.{module}") if module else counterexamples
    function: Callable[[], Counterexample] = getattr(home, name)
    return function


def shown(entry: Erratum) -> str:
    """An erratum, the code of its counterexample, and what that gives, for a notebook."""
    lines = [
        f"{entry.place} ({entry.severity})",
        *wrap("printed:   ", entry.printed),
        *wrap("should be: ", entry.should_be),
    ]
    if entry.counterexample:
        function = counterexample_of(entry)
        code = (f"    {text}" for text in inspect.getsource(function).rstrip().splitlines())
        lines += ["", *code, "", *wrap("", str(function()))]
    return "\n".join(lines)


def wrap(head: str, text: str) -> list[str]:
    """Lines of a text with a head, indented under it."""
    return textwrap.wrap(text, WIDTH, initial_indent=f"  {head}", subsequent_indent=" " * (2 + len(head)))


def _plain(text: str) -> str:
    return text.replace("_", r"\_")
