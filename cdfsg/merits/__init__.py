"""Merit functions g of generalised canonical correlation analysis: one file each, found by name."""

from dataclasses import fields
from typing import Any, ClassVar, Protocol

import numpy as np

from cdfsg.linalg import Array
from cdfsg.merits.huber import Huber
from cdfsg.merits.identity import Identity


class Merit(Protocol):
    """A function g of a covariance of projections, evaluated entrywise.

    Attributes
    ----------
    name : str
        As in `MERITS`.
    lipschitz : float or None
        ``c`` such that ``c || c_ij S_ij ||_2`` is a Lipschitz constant of the gradient of GCCA; None if there is none.
    """

    name: ClassVar[str]
    lipschitz: ClassVar[float | None]

    def value(self, t: Array) -> Array:
        """Return g(t)."""

    def slope(self, t: Array) -> Array:
        """Return g'(t)."""

    def curvature(self, t: Array) -> Array:
        """Return g''(t)."""


MERITS: dict[str, type[Any]] = {
    "identity": Identity,
    "huber": Huber,
}
"""Merits by name."""


def make_merit(name: str, mu: float) -> Merit:
    """Merit by a name in `MERITS`, else ValueError; `mu` goes to those that have a threshold."""
    if not isinstance(name, str) or name not in MERITS:
        raise ValueError(f"unknown merit {name!r}; known merits: {', '.join(MERITS)}")
    kind = MERITS[name]
    has_threshold = "mu" in {field.name for field in fields(kind)}
    return kind(mu) if has_threshold else kind()


def largest_slope(merit: Merit) -> float:
    """The largest slope g of the merit for covariances in [0, 1]."""
    return float(np.abs(merit.slope(np.linspace(0.0, 1.0, 101))).max())


__all__ = ["MERITS", "Huber", "Identity", "Merit", "largest_slope", "make_merit"]
