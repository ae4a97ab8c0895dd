"""The minibatches that a solver is given: of one step, or of several in a row."""

from collections.abc import Iterator
from dataclasses import dataclass

from cdfsg.linalg import Array


@dataclass(frozen=True)
class Draw:
    """The minibatches of one step: rows (r, n), of which `theta` and `xi` name the two samples.

    With independent minibatches theta is the first half and xi the second; with a shared one both are all.
    """

    rows: Array
    theta: slice
    xi: slice


@dataclass(frozen=True)
class Draws:
    """The minibatches of consecutive steps, stacked: rows (s r, n), step k has the rows from ``k r`` on."""

    rows: Array
    size: int
    theta: slice
    xi: slice

    def __len__(self) -> int:
        """Number of steps s."""
        return len(self.rows) // self.size

    def __iter__(self) -> Iterator[Draw]:
        """The minibatches of each step."""
        for part in self.parts():
            yield Draw(self.rows[part], self.theta, self.xi)

    def parts(self) -> list[slice]:
        """The rows of each step among the stacked ones."""
        return [slice(k, k + self.size) for k in range(0, len(self.rows), self.size)]
