r"""The default penalty parameter, step sizes and size of minibatches: no grid, no units.

In the coordinates used every view's minibatch covariance has 1 as its largest eigenvalue.

* **beta.**  Along a direction scaled by s, f(A(X)) falls like ``-g rho s^6 / 4`` and the penalty grows like
  ``beta s^6 / 6``, so that ``beta >= 3/2 g rho`` is needed.  Here ``rho <= m - 1`` is the largest eigenvalue of the
  pencil (cross-covariance, M), and g the largest slope of the merit.
* **alpha of CDFSG.**  Near a feasible point the curvature of the penalty is ``4 beta``, and that of f at most
  ``2 g (m - 1)``.  The longest step with which a gradient method is stable for certain is two over their sum.
* **alpha of CDFSG-Ada.**  A step moves each of the n entries of a column x by about alpha, hence ``M^(1/2) x``, which
  has length 1, by at most ``alpha (tr M + n)^(1/2)``.  The default makes that `REACH`.
* **decay.**  ``(1 + k / DECAY_STEPS)^(-1/2)`` after k minibatches: their total number need not be known.
"""

import numpy as np

from cdfsg.merits import Merit

PENALTY = 2.0  # the penalty parameter in units of g (m - 1); 3/2 is the least that bounds h below
REACH = 0.15  # how far a step of CDFSG-Ada moves a column, in units of its length
DECAY_STEPS = 4000  # minibatches after which the step sizes have fallen to 0.7 of the first
TRACKING = 0.2  # the step b of the tracker of X'MX
BATCH_SIZE = 100  # rows of a minibatch where the data have plenty, as in the paper's middle setting
STEPS_PER_PASS = 40  # with fewer minibatches in a pass they are made smaller, down to LEAST_BATCH rows
LEAST_BATCH = 20


def minibatch_size(batch_size: int | str, rows: int | None, p: int) -> int:
    """Rows of a minibatch for p components and so many rows in all; None if their number is not known."""
    if isinstance(batch_size, str):
        least = max(LEAST_BATCH, 2 * p)
        wanted = max(least, BATCH_SIZE if rows is None else min(BATCH_SIZE, rows // STEPS_PER_PASS))
        return wanted if rows is None else min(wanted, rows)
    if rows is not None and batch_size > rows:
        raise ValueError(f"batch_size={batch_size}, but there are {rows} rows: expected at most that; use 'auto'")
    return int(batch_size)


def largest_slope(merit: Merit) -> float:
    """The largest slope g of the merit for covariances in [0, 1]."""
    return float(np.abs(merit.slope(np.linspace(0.0, 1.0, 101))).max())


def penalty_parameter(merit: Merit, m: int) -> float:
    return PENALTY * largest_slope(merit) * (m - 1)


def gradient_step(merit: Merit, m: int, beta: float) -> float:
    """The first alpha of CDFSG at ``step_size=1``."""
    return 2 / (4 * beta + 2 * largest_slope(merit) * (m - 1))


def adaptive_step(trace: float, n: int) -> float:
    """The first alpha of CDFSG-Ada at ``step_size=1``, from tr M and the number n of columns that vary."""
    return float(REACH / np.sqrt(trace + n))


def decay(steps: float) -> float:
    """The factor after so many minibatches."""
    return float((1 + steps / DECAY_STEPS) ** -0.5)
