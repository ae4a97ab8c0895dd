"""What a check of one of the paper's statements reports."""

from collections.abc import Callable
from dataclasses import dataclass, field

HOLDS = "holds"
CORRECTED = "holds after a correction"
FALSE = "false"
VERDICTS = (HOLDS, CORRECTED, FALSE)
TINY = 1e-300
"""Keeps margins finite where both sides vanish."""


@dataclass(frozen=True)
class Check:
    """The outcome of one check.

    Attributes
    ----------
    statement : str
        Label of the statement in the paper's source.
    tested : str
        What was tested, in a sentence; after a correction, the corrected form.
    verdict : {"holds", "holds after a correction", "false"}
    instances : int
        Instances on which it was tested.
    margin : float
        The least relative margin by which the (corrected) statement holds over the instances: for an inequality
        ``a <= b`` it is ``(b - a) / scale``, for an identity minus the largest relative error.  Rounding makes it
        slightly negative at equality.
    witness : str
        Where the printed form fails: a counterexample in numbers of at most four digits.  Empty if it holds.
    """

    statement: str
    tested: str
    verdict: str
    instances: int
    margin: float
    witness: str = ""


@dataclass
class Tally:
    """Counts instances and keeps the least margin.

    Examples
    --------
    >>> tally = Tally()
    >>> tally.add(at_most(1.0, 2.0))
    >>> tally.add(at_most(1.0, 1.0))
    >>> tally
    Tally(instances=2, margin=0.0)
    >>> tally.holds()
    True
    """

    instances: int = 0
    margin: float = field(default=float("inf"))

    def add(self, *margins: float) -> None:
        """Count an instance with its margins, of which the least is kept; NaN counts as minus infinity."""
        self.instances += 1
        for margin in margins:
            self.margin = min(self.margin, margin if margin == margin else float("-inf"))

    def holds(self, rounding: float = 1e-9) -> bool:
        """Whether no instance falls short by more than rounding; false without any instance."""
        return self.instances > 0 and self.margin >= -rounding


@dataclass(frozen=True)
class Counterexample:
    """Numbers that refute what is printed.

    Attributes
    ----------
    setting : str
        The instance, such that a reader can set it up by hand.
    numbers : dict
        What is computed there, by name.
    refutes : bool
        Whether the numbers contradict the printed form.
    """

    setting: str
    numbers: dict[str, float]
    refutes: bool

    def __str__(self) -> str:
        """The setting and its numbers, of at most four digits."""
        return f"{self.setting}: " + ", ".join(f"{name} {value:.4g}" for name, value in self.numbers.items())


Statement = Callable[[], Check]
"""A function named after what the statement says."""


def concluded(
    statement: str, tested: str, tally: Tally, against: Counterexample | None = None, rounding: float = 1e-9
) -> Check:
    """The check that follows from a tally of the (corrected) statement and a counterexample to the printed one.

    A statement whose tally falls short is false; one that holds in the corrected form while its printed form is
    refuted holds after a correction.

    Parameters
    ----------
    statement, tested : str
        As in `Check`.
    tally : Tally
        Margins of the corrected form, or of the printed one if nothing corrects it.
    against : Counterexample, optional
        To the printed form.
    rounding : float
        By how much a margin may fall short.
    """
    refuted = against is not None and against.refutes
    verdict = FALSE if not tally.holds(rounding) else CORRECTED if refuted else HOLDS
    witness = str(against) if refuted else ""
    return Check(statement, tested, verdict, tally.instances, tally.margin, witness)


def at_most(a: float, b: float) -> float:
    """Relative margin of ``a <= b``.

    Examples
    --------
    >>> at_most(1.0, 4.0), at_most(4.0, 1.0)
    (0.75, -0.75)
    """
    return (b - a) / max(abs(a), abs(b), TINY)


def error(a: float, scale: float) -> float:
    """Margin of an identity: minus its error `a` relative to the scale of its terms."""
    return -abs(a) / max(scale, TINY)
