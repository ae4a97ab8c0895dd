"""The merit of classical canonical correlation analysis."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cdfsg.linalg import Array


@dataclass(frozen=True)
class Identity:
    """The merit g(t) = t: classical (generalised) canonical correlation analysis."""

    name: ClassVar[str] = "identity"
    lipschitz: ClassVar[float | None] = 2.0

    def value(self, t: Array) -> Array:
        return t

    def slope(self, t: Array) -> Array:
        return np.ones_like(t)

    def curvature(self, t: Array) -> Array:
        return np.zeros_like(t)
