"""Merit functions g of generalised canonical correlation analysis: one file each, found by name."""

from dataclasses import fields
from typing import Any, ClassVar, Protocol

from cdfsg.linalg import Array
from cdfsg.merits.huber import Huber
from cdfsg.merits.identity import Identity


class Merit(Protocol):
    """A function g of a covariance of projections, evaluated entrywise.

    Attributes
    ----------
    name : str
        As registered in `MERITS`.
    lipschitz : float or None
        ``c`` such that the gradient of GCCA is Lipschitz with constant ``c || c_ij S_ij ||_2``; None where it is not
        globally Lipschitz.
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
    """Merit by name; `mu` goes to those that have a threshold.

    Raises
    ------
    ValueError
        If the name is not registered in `MERITS`.
    """
    if not isinstance(name, str) or name not in MERITS:
        raise ValueError(f"unknown merit {name!r}; known merits: {', '.join(MERITS)}")
    kind = MERITS[name]
    takes = {field.name for field in fields(kind)}
    merit: Merit = kind(**({"mu": mu} if "mu" in takes else {}))
    return merit


__all__ = ["MERITS", "Huber", "Identity", "Merit", "make_merit"]
