"""A statement of the paper as one function: a decorator has its words, its body yields margins."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from cdfsg.linalg import Array

HOLDS = "holds"
CORRECTED = "holds after a correction"
FALSE = "false"
SEVERITIES = ("typo", "wrong constant", "wrong formula", "wrong claim", "gap in proof", "outside the assumptions")
BLANKET = "Assumption 1.1"
ABOVE = "Assumption 1.1, beta >= beta~"
SMOOTH = "Assumptions 1.1 and 3.4"  # hess f exists
SMOOTH_ABOVE = SMOOTH + ", beta >= beta~"
EVERY = "M >= 0, every beta"
PRINTED, OURS = "printed", "ours"  # in the paper; a reading of Section 5 or of an implementation, or a remark of ours
KNOWN_BY = ("proof", "algebra", "counterexample", "search")
"""How a verdict is known: by the proof in the docstring, whose steps are tested; by computer algebra for generic small
n and p (``tests/theory/test_algebra.py``); by an instance that decides it; or as no instance of a search fails."""
BOUND, IDENTITY, CONDITION = "bound", "identity", "condition"
LOOSE = 0.1  # largest lhs/rhs from which a bound is called loose
TINY = 1e-300  # keeps margins finite where both sides vanish


@dataclass(frozen=True)
class Relation:
    """``lhs <= rhs`` (a bound), ``lhs = rhs`` (an identity) or a condition, on an instance or an array of them."""

    kind: str
    lhs: Any
    rhs: Any
    scale: Any = None  # of an error; for bounds the larger side, unless given
    claim: str = ""  # beside the statement; the check raises where it fails

    @property
    def margins(self) -> Array:
        """Relative margin of each instance, negative where the relation fails."""
        scale = np.maximum(np.abs(self.lhs), np.abs(self.rhs)) if self.scale is None else self.scale
        gap = np.asarray(self.rhs - self.lhs)
        if self.kind == IDENTITY:
            gap = -np.linalg.norm(gap.reshape(*np.shape(scale), -1), axis=-1)
        return np.asarray(gap / np.maximum(scale, TINY))


def at_most(a: Any, b: Any, scale: Any = None, claim: str = "") -> Relation:
    """``a <= b``, entrywise."""
    return Relation(BOUND, a, b, scale, claim)


def equal(a: Any, b: Any, scale: Any, claim: str = "") -> Relation:
    """``a = b`` up to rounding of the scale of the terms; a scale with axes has one per instance."""
    return Relation(IDENTITY, a, b, scale, claim)


def true(condition: object, claim: str = "") -> Relation:
    return Relation(CONDITION, float(not condition), 0.0, 1.0, claim)


@dataclass(frozen=True)
class Searches:
    """How many searches were made for instances, how many of them failed, and all instances found."""

    made: int = 0
    failed: int = 0
    found: Sequence[Any] = ()


Margins = Iterator[Relation | tuple[Any, ...] | str]
"""A relation, an instance with one or more, or a note for the report."""

norm: Any = partial(np.linalg.norm, axis=(-2, -1))
"""Frobenius norm of each trailing matrix, or another of `numpy.linalg.norm`."""
inner: Any = np.vdot


@dataclass
class Tally:
    """Counts the instances of one relation; keeps the least margin and the instance that has it."""

    kind: str = ""
    tested: int = 0
    margin: float = float("inf")
    instance: str = ""

    def add(self, relation: Relation, instance: object = "") -> None:
        """Count each entry; NaN counts as minus infinity.  An instance gives way to one that is clearly tighter."""
        least = float(np.min(relation.margins))
        least = -np.inf if np.isnan(least) else least
        if least < self.margin - 1e-6:
            self.instance = str(instance)
        self.kind = relation.kind
        self.tested += np.size(relation.margins)
        self.margin = min(self.margin, least)

    def holds(self, rounding: float = 1e-9) -> bool:
        """Whether there is an instance, and none falls short by more than rounding."""
        return self.tested > 0 and self.margin >= -rounding


Found = tuple[Any, dict[str, Any]]
"""Whether the printed form is refuted, and by which numbers."""


@dataclass(frozen=True)
class Counterexample:
    """Numbers that refute a printed form, found by a function on an instance to set up by hand."""

    setting: str
    find: Callable[[], Found]

    @property
    def refutes(self) -> bool:
        return bool(self.find()[0])

    @property
    def numbers(self) -> dict[str, float]:
        return {name: float(value) for name, value in self.find()[1].items()}

    def __str__(self) -> str:
        return f"{self.setting}: " + ", ".join(f"{name} {value:.4g}" for name, value in self.numbers.items())


def counterexample(setting: str) -> Callable[[Callable[[], Found]], Counterexample]:
    """Make a function that finds numbers in a setting a `Counterexample`."""
    return partial(Counterexample, setting)


@dataclass(frozen=True, kw_only=True)
class Erratum:
    """What the paper prints and should print."""

    place: str  # where a reader finds it
    printed: str = ""  # a misprint
    corrected: str = ""
    severity: str = ""  # of SEVERITIES
    counterexample: Counterexample | None = None  # refutes the printed form
    proof: str = ""  # that the printed form is wrong, where no counterexample is code


@dataclass(frozen=True)
class Check:
    """The outcome of testing a statement, given by its label.

    The margin is the least relative one of the (corrected) statement, the witness a counterexample to
    the printed form.  `tightest` is the largest lhs/rhs of a bound, of several that of the loosest, and `instance` has
    it; for a false statement it is of what is claimed beside; ``equality`` where there are identities alone.
    """

    statement: str
    verdict: str
    instances: int
    margin: float
    tested: str = ""
    witness: str = ""
    tightest: str = ""
    instance: str = ""
    searches: int = 0
    failed: int = 0

    def __str__(self) -> str:
        numbers = f"{self.margin:9.1e} {self.instances:6d} {self.tightest:>9s}"
        text = f"{self.verdict:24s} {numbers}  {self.statement}: {self.tested}"
        text += f" Tightest: {self.instance}." if self.instance else ""
        text += f" Searches: {self.searches}, {self.failed} failed." if self.searches else ""
        return text + (f" [{self.witness}]" if self.witness else "")


@dataclass(frozen=True)
class Statement(Erratum):
    """A statement of the paper, an erratum if it has a printed form that is wrong; calling it tests it."""

    margins: Callable[[], Margins]
    label: str  # in the paper's source
    says: str  # what the paper says; `corrected`, if any, is tested in its place
    assumes: str = ABOVE
    source: str = PRINTED  # or OURS
    known_by: str = "proof"  # of KNOWN_BY
    rounding: float = 1e-9  # by how much a margin may fall short
    searches: Callable[[], Searches] = Searches  # for the instances

    def __call__(self) -> Check:
        """Test the statement: false if it falls short, corrected if its printed form is refuted."""
        return self.conclude(self.margins())

    def conclude(self, margins: Margins) -> Check:
        """What the relations and notes of a check say; ArithmeticError where a claim beside fails."""
        tallies: dict[str | tuple[str, int], Tally] = {}
        words, searches = self.says, self.searches()
        for item in margins:
            if isinstance(item, str):
                words += f" {item}."
            else:
                for key, relation, instance in numbered(item):
                    tallies.setdefault(key, Tally()).add(relation, instance)
        own = [tally for key, tally in tallies.items() if isinstance(key, tuple)]
        sound = [tally for tally in tallies.values() if tally.holds(self.rounding)]
        for claim, tally in tallies.items():
            if isinstance(claim, str) and tally not in sound:
                cases = f"the least margin of {tally.tested} cases is {tally.margin:.3g}"
                raise ArithmeticError(f"{self.label}: expected that {claim}, but {cases}")
        refuted = self.counterexample is not None and self.counterexample.refutes
        verdict = FALSE if not own or any(t not in sound for t in own) else CORRECTED if refuted else HOLDS
        if verdict != HOLDS and self.corrected:
            words += f" Corrected: {self.corrected}."
        bounds = [t for t in (own if verdict != FALSE else sound) if t.kind == BOUND]
        loosest = max(bounds, key=lambda t: t.margin, default=Tally(margin=1.0))
        tightest = "equality" if verdict != FALSE and any(t.kind == IDENTITY for t in own) else ""
        if bounds:
            # Ratios such as 1/16 are exact: on every processor the tie is rounded up.
            tightest = f"{(1 - loosest.margin) * (1 + 1e-9):.2g}" + (" (loose)" if loosest.margin > 1 - LOOSE else "")
        return Check(
            self.label, verdict, max((t.tested for t in own), default=0), min((t.margin for t in own), default=np.inf),
            words, str(self.counterexample) if refuted else "", tightest, loosest.instance,
            searches.made, searches.failed,
        )


def numbered(item: Relation | tuple[Any, ...]) -> Iterator[tuple[str | tuple[str, int], Relation, object]]:
    """The claim of each relation, or its kind and number; the relation; the instance that may come first."""
    items = item if isinstance(item, tuple) else (item,)
    instance, relations = ("", items) if isinstance(items[0], Relation) else (items[0], items[1:])
    for number, relation in enumerate(relations):
        yield relation.claim or (relation.kind, number), relation, instance


def statement(label: str, place: str, **words: Any) -> Callable[[Callable[[], Margins]], Statement]:
    """Make a function that yields margins a `Statement` with these words."""
    return partial(Statement, label=label, place=place, **words)
