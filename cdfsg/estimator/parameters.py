"""The valid values of the estimator's parameters."""

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from cdfsg.checks import is_real, is_whole, require_flag, require_not_negative, require_positive, require_whole
from cdfsg.estimator.online import ALGORITHMS
from cdfsg.merits import make_merit


def valid(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters, ridges as plain numbers; ValueError unless every one is valid."""
    given, algorithms = SimpleNamespace(**parameters), ("auto", "exact", *ALGORITHMS)
    require_whole("n_components", given.n_components, 1)
    require_whole("n_epochs", given.n_epochs, 1)
    require_positive(mu=given.mu, step_size=given.step_size)
    require_not_negative(tol=given.tol)
    require_flag(center=given.center, scale=given.scale, shuffle=given.shuffle)
    make_merit(given.merit, given.mu)
    if not (isinstance(given.algorithm, str) and given.algorithm in algorithms):
        raise ValueError(f"algorithm must be one of {', '.join(algorithms)}, got {given.algorithm!r}")
    if not (isinstance(given.batch_size, str) and given.batch_size == "auto"):
        require_whole("batch_size", given.batch_size, 2, what="or 'auto'")
    if given.penalty is not None:
        require_positive(penalty=given.penalty)
    if not (is_real(given.tracking) and 0 < given.tracking <= 1):
        raise ValueError(f"tracking must lie in (0, 1], got {given.tracking!r}")
    for ridge in given.ridge if isinstance(given.ridge, list | tuple) else np.atleast_1d(given.ridge).tolist():
        require_not_negative(ridge=ridge)
    if not (given.view_sizes is None or _are_sizes(given.view_sizes)):
        expected = "two or more widths, as (392, 392), 'halves' or None"
        raise ValueError(f"view_sizes must be {expected}, got {given.view_sizes!r}")
    try:
        check_random_state("True" if isinstance(given.random_state, bool) else given.random_state)
    except ValueError as error:
        expected = "None, a whole number in 0..2**32 - 1, or a RandomState"
        raise ValueError(f"random_state must be {expected}, got {given.random_state!r}") from error
    several = isinstance(given.callbacks, list | tuple)
    if not (given.callbacks is None or all(map(callable, given.callbacks if several else [given.callbacks]))):
        raise ValueError(f"callbacks must be callables, got {given.callbacks!r}")
    return {**parameters, "ridge": np.asarray(given.ridge).tolist()}


def _are_sizes(value: Any) -> bool:
    if isinstance(value, str):
        return value == "halves"
    return isinstance(value, Sequence | np.ndarray) and np.size(value) > 1 and all(is_whole(size, 1) for size in value)
