"""The valid values of the estimator's parameters, in one table."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from cdfsg.checks import is_real, is_whole
from cdfsg.estimator.online import ALGORITHMS
from cdfsg.merits import MERITS

Constraint = tuple[Callable[[Any], bool], str]  # a test, and the words for the values that pass it


def valid(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters, ridges as plain numbers; ValueError unless every one is valid."""
    for name, (holds, expected) in CONSTRAINTS.items():
        if not holds(parameters[name]):
            raise ValueError(f"{name}={parameters[name]!r}: expected {expected}")
    return {**parameters, "ridge": np.asarray(parameters["ridge"]).tolist()}


def _is_positive(value: Any) -> bool:
    return is_real(value) and 0 < value < np.inf


def _is_random_state(value: Any) -> bool:
    try:
        return not isinstance(value, bool) and check_random_state(value) is not None
    except ValueError:
        return False


def _are_sizes(value: Any) -> bool:
    if value is None or isinstance(value, str):
        return value in (None, "halves")
    sizes = value.tolist() if isinstance(value, np.ndarray) else value
    return isinstance(sizes, Sequence) and len(sizes) > 1 and all(is_whole(size, 1) for size in sizes)


def _are_ridges(value: Any) -> bool:
    values = value if isinstance(value, list | tuple) else np.atleast_1d(value)
    return all(is_real(ridge) and 0 <= ridge < np.inf for ridge in values)


def _are_callbacks(value: Any) -> bool:
    return value is None or all(map(callable, value if isinstance(value, list | tuple) else [value]))


def _one_of(known: Iterable[str]) -> Constraint:
    return lambda value: isinstance(value, str) and value in known, f"one of {', '.join(map(repr, known))}"


_FLAG: Constraint = (lambda value: isinstance(value, bool | np.bool_), "True or False")
_COUNT: Constraint = (lambda value: is_whole(value, 1), "a whole number of at least 1")
_POSITIVE: Constraint = (_is_positive, "a positive finite number")

CONSTRAINTS: dict[str, Constraint] = {
    "n_components": _COUNT,
    "ridge": (_are_ridges, "a finite number of at least 0, or a list of one per view"),
    "merit": _one_of(MERITS),
    "mu": _POSITIVE,
    "algorithm": _one_of(["auto", "exact", *ALGORITHMS]),
    "batch_size": (
        lambda value: value == "auto" if isinstance(value, str) else is_whole(value, 2),
        "'auto' or a whole number of at least 2",
    ),
    "n_epochs": _COUNT,
    "penalty": (lambda value: value is None or _is_positive(value), "None or a positive finite number"),
    "step_size": _POSITIVE,
    "tracking": (lambda value: _is_positive(value) and value <= 1, "a number in (0, 1]"),
    "center": _FLAG,
    "scale": _FLAG,
    "tol": (lambda value: is_real(value) and 0 <= value < np.inf, "a finite number of at least 0"),
    "shuffle": _FLAG,
    "view_sizes": (_are_sizes, "two or more widths, as (392, 392), 'halves' or None"),
    "random_state": (_is_random_state, "None, a whole number in 0..2**32 - 1, or a RandomState"),
    "callbacks": (_are_callbacks, "callables"),
}
