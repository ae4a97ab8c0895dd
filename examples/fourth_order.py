"""A fifth solver in one file: CDFSG with the penalty ``beta/4 ||X'MX - I||^2``, of fourth order in X.

(CDFCP) adds a penalty of sixth order to f(A(X)); this one has the gradient ``beta M X (X'MX - I)``.  To have it in
every table, copy this file to ``cdfsg/solvers/``, import it in ``cdfsg/solvers/__init__.py`` and register it there:

    "Fourth-order": FourthOrder,
"""

from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

from cdfsg.linalg import eye_like, sym
from cdfsg.solvers.cdfsg import CDFSG


@dataclass(frozen=True)
class FourthOrder(CDFSG):
    """Algorithm 1 with ``W(X, Y) = G Q' + M X T``, ``Q = (3I - Y)/2`` and ``T = beta (Y - I) - sym(X'G)``."""

    name: ClassVar = "Fourth-order"
    grid: ClassVar = tuple(product((1 / 2, 1 / 4, 1 / 8), (0.1, 0.01, 0.001, 0.5, 0.05, 0.005)))  # pairs (s1, s2)

    def multiplier(self, XtG: Any, Y: Any) -> Any:
        """The matrix T, of shape (lanes, p, p)."""
        return self.beta * (sym(Y) - eye_like(Y)) - sym(XtG)
