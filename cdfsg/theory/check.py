"""What a check of one of the paper's statements reports."""

from collections.abc import Callable
from dataclasses import dataclass, field

HOLDS = "holds"
CORRECTED = "holds after a correction"
FALSE = "false"
VERDICTS = (HOLDS, CORRECTED, FALSE)


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
    """Counts instances and keeps the least margin."""

    instances: int = 0
    margin: float = field(default=float("inf"))

    def add(self, margin: float) -> None:
        """Count an instance with its margin; NaN counts as minus infinity."""
        self.instances += 1
        self.margin = min(self.margin, margin if margin == margin else float("-inf"))

    def holds(self, rounding: float = 1e-9) -> bool:
        """Whether no instance falls short by more than rounding; false without any instance."""
        return self.instances > 0 and self.margin >= -rounding


Statement = Callable[[], Check]
"""A function named after what the statement says."""
