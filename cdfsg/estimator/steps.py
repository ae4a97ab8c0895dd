r"""The default penalty parameter, step sizes and size of minibatches: no grid, no units.

In the coordinates used every view's minibatch covariance has 1 as its largest eigenvalue.

* **beta.**  Along a direction scaled by s, f(A(X)) falls like ``-g rho s^6 / 4`` and the penalty grows like
  ``beta s^6 / 6``: ``beta >= 3/2 g rho`` is needed, with ``rho <= m - 1`` the largest eigenvalue of the pencil
  (cross-covariance, M), and g the largest slope of the merit.
* **alpha of CDFSG.**  Near a feasible point the curvature of the penalty is ``4 beta``, and that of f at most
  ``2 g (m - 1)``.  A gradient method is stable for certain up to two over their sum.
* **alpha of CDFSG-Ada.**  A step moves each of the n entries of a column x by about alpha, hence ``M^(1/2) x``, which
  has length 1, by at most ``alpha (tr M + n)^(1/2)``.  The default makes that `REACH`.
* **decay.**  ``(1 + k / DECAY_STEPS)^(-1/2)`` after k minibatches: their total number need not be known.
"""

import numpy as np

from cdfsg.merits import Merit, largest_slope

PENALTY = 2.0  # beta in units of g (m - 1); 3/2 is the least that bounds h below
REACH = 0.15  # how far a step of CDFSG-Ada moves a column, in units of its length
DECAY_STEPS = 4000  # minibatches after which steps are 0.7 of the first
BATCH_SIZE = 100  # rows of a minibatch where there are plenty, as in the paper's middle setting
COLUMNS_PER_ROW = 500  # with more columns than so many times the rows, a step's passes over the weights cost most
STEPS_PER_PASS = 40  # with fewer minibatches they are made smaller, down to LEAST_BATCH rows
LEAST_BATCH = 20


def minibatch_size(batch_size: int | str, rows: int | None, n: int, p: int) -> int:
    """Rows of a minibatch for n columns and p components; `rows` in all, None if unknown."""
    if isinstance(batch_size, str):
        wanted = max(BATCH_SIZE, n // COLUMNS_PER_ROW)
        wanted = wanted if rows is None else min(wanted, rows // STEPS_PER_PASS)
        wanted = max(LEAST_BATCH, 2 * p, wanted)
        return wanted if rows is None else min(wanted, rows)
    if rows is not None and batch_size > rows:
        raise ValueError(f"batch_size={batch_size}: expected at most the number of rows, {rows}; use 'auto'")
    return int(batch_size)


def penalty_parameter(merit: Merit, m: int) -> float:
    """The default beta for m views."""
    return PENALTY * largest_slope(merit) * (m - 1)


def gradient_step(merit: Merit, m: int, beta: float) -> float:
    """The first alpha of CDFSG."""
    return 2 / (4 * beta + 2 * largest_slope(merit) * (m - 1))


def adaptive_step(trace: float, n: int) -> float:
    """The first alpha of CDFSG-Ada, from tr M and the number n of columns that vary."""
    return float(REACH / np.sqrt(trace + n))
