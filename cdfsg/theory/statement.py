"""A statement of the paper as one function: a decorator has its words, its body yields margins.

In a decorator each line is one part of the words, so that the modules that use it are not formatted.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from typing import Any

import numpy as np

from cdfsg.linalg import Array

HOLDS = "holds"
CORRECTED = "holds after a correction"
FALSE = "false"
VERDICTS = (HOLDS, CORRECTED, FALSE)
SEVERITIES = ("typo", "wrong constant", "wrong formula", "gap in proof", "outside the assumptions")
BLANKET = "Assumption 1.1"
ABOVE = "Assumption 1.1, beta >= beta~"
EVERY = "M >= 0, every beta"
PRINTED, OURS = "printed", "ours"  # in the paper; a reading of Section 5 or of an implementation, or a remark of ours
PROOF, ALGEBRA, CERTIFICATE, SEARCH = "proof", "algebra", "certificate", "search"
"""How the verdict is known: by the proof in the docstring, whose steps are tested; for generic small n and p by computer
algebra (``tests/theory/test_algebra.py``); by an instance that decides it; or as no instance of a search fails."""
TINY = 1e-300  # keeps margins finite where both sides vanish

Margins = Iterator[float | Array | tuple[float, ...] | str]
"""One instance each, an array of them, several margins of one, or a note for the report."""


def at_most(a: Any, b: Any) -> Any:
    """Relative margin of ``a <= b``, entrywise.

    Examples
    --------
    >>> float(at_most(1.0, 4.0)), float(at_most(4.0, 1.0))
    (0.75, -0.75)
    """
    return (b - a) / np.maximum(np.maximum(np.abs(a), np.abs(b)), TINY)


def equal(a: Any, b: Any, scale: float) -> float:
    """Margin of ``a == b``: minus the norm of the difference over the scale of the terms."""
    return -norm(a - b) / max(scale, TINY)


def true(condition: object) -> float:
    """Margin of a condition: 0 if it holds, else -1."""
    return 0.0 if condition else -1.0


def norm(a: Any, kind: int | None = None) -> float:
    """Frobenius norm, or another of `numpy.linalg.norm`."""
    return float(np.linalg.norm(a, kind))


def norms(a: Array) -> Array:
    """Frobenius norm of each trailing matrix."""
    return np.linalg.norm(a, axis=(-2, -1))


def inner(a: Array, b: Array) -> float:
    return float(np.vdot(a, b))


@dataclass
class Tally:
    """Counts instances and keeps the least margin."""

    instances: int = 0
    margin: float = float("inf")

    def add(self, margin: float | Array | tuple[float, ...]) -> None:
        """Count one instance, or each entry of an array; NaN counts as minus infinity."""
        least = float(np.min(margin))
        self.instances += 1 if isinstance(margin, tuple) else np.size(margin)
        self.margin = min(self.margin, -np.inf if np.isnan(least) else least)

    def holds(self, rounding: float = 1e-9) -> bool:
        """Whether there is an instance, and none falls short by more than rounding."""
        return self.instances > 0 and self.margin >= -rounding

    def require(self, claim: str, rounding: float = 1e-9) -> None:
        """Raise ArithmeticError unless a side claim holds."""
        if not self.holds(rounding):
            margin = f"the least margin of {self.instances} cases is {self.margin:.3g}"
            raise ArithmeticError(f"expected that {claim}, but {margin}")


@dataclass(frozen=True)
class Counterexample:
    """Numbers that refute a printed form, on an instance to set up by hand."""

    setting: str
    numbers: dict[str, float]
    refutes: bool

    def __str__(self) -> str:
        numbers = (f"{name} {value:.4g}" for name, value in self.numbers.items())
        return f"{self.setting}: " + ", ".join(numbers)


Found = tuple[Any, dict[str, Any]]
"""Whether the printed form is refuted, and by which numbers."""


def counterexample(setting: str) -> Callable[[Callable[[], Found]], Callable[[], Counterexample]]:
    """Make a function that finds numbers in a setting one that returns a `Counterexample`."""

    def decorate(function: Callable[[], Found]) -> Callable[[], Counterexample]:
        @wraps(function)
        def found() -> Counterexample:
            refutes, numbers = function()
            return Counterexample(setting, {name: float(value) for name, value in numbers.items()}, bool(refutes))

        return found

    return decorate


@dataclass(frozen=True)
class Erratum:
    """What the paper prints and should print."""

    place: str
    printed: str
    corrected: str
    severity: str
    counterexample: Callable[[], Counterexample] | None = None
    proof: str = ""  # that the printed form is wrong, where no counterexample is code

    def __post_init__(self) -> None:
        if self.severity not in SEVERITIES:
            raise ValueError(f"{self.place!r} has the severity {self.severity!r}; use one of {SEVERITIES}")


@dataclass(frozen=True)
class Check:
    """The outcome of testing a statement, given by its label.

    The margin is the least relative one of the (corrected) statement, the witness a counterexample to
    the printed form.
    """

    statement: str
    verdict: str
    instances: int
    margin: float
    tested: str = ""
    witness: str = ""

    def __str__(self) -> str:
        text = f"{self.verdict:24s} {self.margin:9.1e} {self.instances:6d}  {self.statement}: {self.tested}"
        return text + (f" [{self.witness}]" if self.witness else "")


@dataclass(frozen=True)
class Statement:
    """A statement of the paper; calling it tests it."""

    margins: Callable[[], Margins]
    label: str  # in the paper's source
    place: str  # where a reader finds it
    says: str  # what the paper says
    assumes: str = ABOVE
    printed: str = ""  # a misprint and of which kind it is; they make an erratum
    severity: str = ""
    corrected: str = ""  # the form that is tested, if it is not what the paper says
    counterexample: Callable[[], Counterexample] | None = None  # refutes the printed form
    source: str = PRINTED  # or OURS
    known_by: str = SEARCH  # or PROOF, ALGEBRA, CERTIFICATE
    rounding: float = 1e-9  # by how much a margin may fall short
    slips: tuple[Erratum, ...] = ()  # more misprints of the place

    @property
    def errata(self) -> tuple[Erratum, ...]:
        if not self.printed:
            return self.slips
        place = f"{self.place}: {self.label}"
        return Erratum(place, self.printed, self.corrected, self.severity, self.counterexample), *self.slips

    def __call__(self) -> Check:
        """Test the statement: false if it falls short, corrected if its printed form is refuted."""
        tally, words = Tally(), self.says
        for margin in self.margins():
            if isinstance(margin, str):
                words += f" {margin}."
            else:
                tally.add(margin)
        against = self.counterexample() if self.counterexample else None
        refuted = against is not None and against.refutes
        verdict = FALSE if not tally.holds(self.rounding) else CORRECTED if refuted else HOLDS
        if verdict != HOLDS and self.corrected:
            words += f" Corrected: {self.corrected}."
        return Check(self.label, verdict, tally.instances, tally.margin, words, str(against) if refuted else "")


STATEMENTS: dict[str, Statement] = {}
"""Every statement by its label, in the order in which the modules of `cdfsg.theory` define them."""


def statement(label: str, place: str, **words: Any) -> Callable[[Callable[[], Margins]], Statement]:
    """Make a function that yields margins a `Statement` with these words, and register it."""

    def register(margins: Callable[[], Margins]) -> Statement:
        if label in STATEMENTS:
            raise ValueError(f"the statement {label!r} is defined twice; give each its own label")
        STATEMENTS[label] = Statement(margins, label, place, **words)
        return STATEMENTS[label]

    return register
