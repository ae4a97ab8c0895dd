"""The valid values of the estimator's parameters, in one table, and the configuration that they give."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from cdfsg.checks import is_real, is_whole, require_positive
from cdfsg.estimator.inputs import ViewRows
from cdfsg.estimator.online import ALGORITHMS, Config
from cdfsg.estimator.steps import penalty_parameter
from cdfsg.merits import MERITS, make_merit


def _one_of(known: Mapping[str, Any]) -> tuple[Callable[[Any], bool], str]:
    return lambda value: isinstance(value, str) and value in known, f"one of {', '.join(map(repr, known))}"


def _is_random_state(value: Any) -> bool:
    try:
        return not isinstance(value, bool) and check_random_state(value) is not None
    except ValueError:
        return False


def _are_callbacks(value: Any) -> bool:
    return value is None or all(map(callable, value if isinstance(value, list | tuple) else [value]))


_FLAG = (lambda value: isinstance(value, bool | np.bool_), "True or False")
_COUNT = (lambda value: is_whole(value, 1), "a whole number of at least 1")

CONSTRAINTS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "n_components": _COUNT,
    "n_epochs": _COUNT,
    "batch_size": (
        lambda value: (isinstance(value, str) and value == "auto") or is_whole(value, 2),
        "a whole number of at least 2 or 'auto'",
    ),
    "center": _FLAG,
    "scale": _FLAG,
    "shuffle": _FLAG,
    "random_state": (_is_random_state, "None, a whole number in 0..2**32 - 1, or a numpy.random.RandomState"),
    "merit": _one_of(MERITS),
    "algorithm": _one_of(ALGORITHMS),
    "tracking": (lambda value: value <= 1, "at most 1; the tracker extrapolates beyond"),
    "tol": (lambda value: is_real(value) and 0 <= value < np.inf, "a number that is not negative; 0 never ends early"),
    "callbacks": (_are_callbacks, "callables, taking the estimator and progress"),
}
"""For each parameter a test and the words for the expected values; `require_valid` tests positive numbers before."""


def require_valid(parameters: Mapping[str, Any]) -> None:
    """Raise ValueError unless a fit can use every parameter; `view_sizes` is checked with the data."""
    names = ("mu", "step_size", "tracking", *(["penalty"] if parameters["penalty"] is not None else []))
    require_positive(**{name: parameters[name] for name in names})
    for name, (holds, expected) in CONSTRAINTS.items():
        if not holds(parameters[name]):
            raise ValueError(f"{name}={parameters[name]!r}: expected {expected}")


def make_config(estimator: Any, blocks: list[ViewRows]) -> Config:
    """The configuration of a fit by the estimator's parameters and the first minibatch."""
    sizes, p = tuple(int(block.shape[1]) for block in blocks), estimator.n_components
    if p > min(sizes):
        raise ValueError(
            f"n_components={p} with views of {sizes} columns: expected at most {min(sizes)}, the width of the "
            "narrowest view"
        )
    merit, given = make_merit(estimator.merit, estimator.mu), estimator.penalty
    return Config(
        sizes=sizes,
        n_components=int(p),
        merit=merit,
        algorithm=estimator.algorithm,
        batch_size=estimator.batch_size_,
        beta=penalty_parameter(merit, len(sizes)) if given is None else float(given),
        step_size=float(estimator.step_size),
        tracking=float(estimator.tracking),
        center=bool(estimator.center),
        dtype=blocks[0].dtype,
        seed=estimator._start_seed,
    )
