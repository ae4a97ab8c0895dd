"""How far a fit has come, and whether more passes would add to it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

FEW_STEPS = 50  # fewer in all are no convergence, whatever they gained
STILL_GROWING = 0.05  # a fit has not converged if further passes promise more than this share


@dataclass(frozen=True)
class Progress:
    """The second argument of a callback."""

    epoch: int  # passes made, or the number of the call of `partial_fit`
    rows: int  # seen since the start, repeats included
    captured: float  # sum of the canonical correlations of about the last 10,000 rows
    step_size: float  # multiple of the default step, halved by each restart
    seconds: float  # since the call began


def still_to_come(history: Sequence[float]) -> float:
    """Estimate how much further passes add, if gains fall like a power of the number of passes.

    A geometric series would promise too little: directions of little variance come late.
    """
    passes = len(history)
    gains = np.diff(history)
    if passes < 2 or gains[-1] <= 0:
        return 0.0
    power = 3.0 if passes == 2 else np.log(max(gains[0] / gains[-1], 1.0)) / np.log(passes / 2)
    return float(gains[-1] * passes / (max(power, 1.2) - 1))


def has_stalled(history: Sequence[float], tol: float) -> bool:
    """Whether each of the last two passes added less than the share `tol`."""
    gains = np.diff(history)
    return tol > 0 and len(gains) >= 2 and bool((gains[-2:] < tol * history[-1]).all())


def reason_for_doubt(history: Sequence[float], captured: float, steps: int, n_epochs: int) -> str:
    """Why a fit has probably not converged; an empty string if it has.

    The correlations after each pass, `history`, lag behind `captured`, of the pass that only measured.
    """
    passes, remedy = len(history), f"Raise n_epochs={n_epochs}, or go on with partial_fit"
    if passes > 1 and steps < FEW_STEPS:  # who asks for a single pass knows that it is short
        return (
            f"not converged: {passes} passes over so few rows are {steps} steps, expected at least {FEW_STEPS}. "
            f"{remedy}; sklearn.cross_decomposition.CCA is exact, and no slower at this size"
        )
    missing = still_to_come(history) - max(captured - history[-1], 0.0)
    if missing <= STILL_GROWING * history[-1]:
        return ""
    gain, share = (history[-1] - history[-2]) / history[-1], missing / history[-1]
    much = f"about {share:.0%}" if share < 0.5 else "more than half"
    return (
        f"not converged after {passes} passes: the captured correlation grew by {gain:.1%} in the last one, and {much} "
        f"may be missing. {remedy}; where it stays slow, directions of little variance matter: drop near-copies of "
        "columns, or whiten small views by PCA first"
    )
