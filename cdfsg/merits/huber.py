"""The merit that the paper's second set of experiments uses."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cdfsg.checks import require_positive
from cdfsg.linalg import Array


@dataclass(frozen=True)
class Huber:
    """The Huber merit, a smooth form of mu |t|: t^2/2 up to the threshold mu, then mu (|t| - mu/2).

    The gradient of GCCA with it is not globally Lipschitz, since t grows with X.

    Attributes
    ----------
    mu : float
        Threshold, in units of a covariance of projections; positive.
    """

    mu: float
    name: ClassVar[str] = "huber"
    lipschitz: ClassVar[float | None] = None

    def __post_init__(self) -> None:
        require_positive(mu=self.mu)

    def value(self, t: Array) -> Array:
        return np.where(np.abs(t) <= self.mu, t**2 / 2, self.mu * (np.abs(t) - self.mu / 2))

    def slope(self, t: Array) -> Array:
        """Return g'(t), which is t clipped to [-mu, mu]."""
        return np.clip(t, -self.mu, self.mu)

    def curvature(self, t: Array) -> Array:
        """Return g''(t), taken as 1 at the kinks |t| = mu, where it does not exist."""
        return (np.abs(t) <= self.mu).astype(t.dtype)
