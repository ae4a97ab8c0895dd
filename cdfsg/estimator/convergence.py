"""How far a fit has come, and whether more passes would add to it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from cdfsg.convention import Solution
from cdfsg.merits import Merit
from cdfsg.metrics import objective

FEW_STEPS = 50  # fewer in all are no convergence that would end a fit
MISSING = 0.01  # share of the exact solution that a converged fit may miss, if `tol` is 0


@dataclass(frozen=True)
class Progress:
    """The second argument of a callback."""

    epoch: int  # passes made, or the number of the call of `partial_fit`
    rows: int  # seen since the start, repeats included
    captured: float  # sum of the canonical correlations, of all rows or about the last 10,000
    step_size: float  # multiple of the default step, halved by each restart
    seconds: float  # since the call began


def captured_share(found: Solution, exact: Solution, merit: Merit) -> float:
    """Share of the exact solution's objective, at most 1: another merit than identity has many local optima."""
    best = float(objective(exact.K[:, :, None], merit)[0])
    return min(1.0, float(objective(found.K[:, :, None], merit)[0]) / best) if best else 1.0


def reason_for_doubt(share: float, fit: Any, passes: bool) -> str:
    """Why a `Fit` of this share, NaN if it is not known, has not converged; an empty string if it has."""
    if share >= 1 - (fit.parameters["tol"] or MISSING):
        return ""
    if np.isnan(share):
        if fit.exact is not None:
            why, remedy = "one pass leaves directions of very little variance to rounding", "fit"
        else:
            why, remedy = "data so wide, if read once or with Huber's merit, leave no certificate", "calibrate"
        return f"not known to have converged: {why}. Call {remedy} with rows that can be read several times"
    much = f"the weights capture {share:.1%} of the exact total correlation of these rows"
    if fit.algorithm == "exact":
        return f"not converged on these rows: {much}, since they were fitted to others"
    remedies = [f"raise n_epochs={fit.parameters['n_epochs']}"] * passes
    remedies += ["go on with partial_fit"] * (fit.exact is None or not passes)
    remedies += ["take algorithm='exact'"] * (fit.exact is not None)
    remedy = ", or ".join(remedies)
    return f"not converged after {fit.steps} steps: {much}. {remedy[0].upper()}{remedy[1:]}"
