"""Checks: each ``require_`` raises ValueError with the argument, its value and what was expected."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def is_real(value: object) -> bool:
    """Whether the value is a real number, not a bool."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def is_whole(value: object, least: int) -> bool:
    """Whether the value is a whole number of at least `least`, not a bool."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(value >= least)


def require_positive(**numbers: float) -> None:
    _require_each(numbers, lambda value: is_real(value) and 0 < value < np.inf, "be a positive finite number")


def require_not_negative(**numbers: float) -> None:
    _require_each(numbers, lambda value: is_real(value) and 0 <= value < np.inf, "be a finite number of at least 0")


def require_share(**numbers: float) -> None:
    _require_each(numbers, lambda value: is_real(value) and 0 <= value < 1, "lie in [0, 1)")


def require_flag(**flags: bool) -> None:
    _require_each(flags, lambda value: isinstance(value, bool | np.bool_), "be True or False")


def _require_each(values: Mapping[str, Any], fits: Callable[[Any], bool], what: str) -> None:
    for name, value in values.items():
        if not fits(value):
            raise ValueError(f"{name} must {what}, got {value!r}")


def require_whole(name: str, value: int, least: int, most: int | None = None, what: str = "") -> None:
    """The value is a whole number in ``least..most``; `what` names the things it counts."""
    if not (is_whole(value, least) and (most is None or value <= most)):
        within = f"of at least {least}" if most is None else f"in {least}..{most}"
        raise ValueError(f"{name} must be a whole number {within}{what and ', '}{what}, got {value!r}")


def require_seeds(seeds: Sequence[int]) -> None:
    """At least one seed, each of which seeds a random generator."""
    if not (np.iterable(seeds) and len(seeds) and all(is_whole(seed, 0) for seed in seeds)):
        raise ValueError(f"seeds must be a list of whole numbers of at least 0, one per lane, got {seeds!r}")


def require_sizes(sizes: Sequence[int], total: int | None = None) -> None:
    """Sizes of views, which sum to `total`, if it is given."""
    whole = np.iterable(sizes) and len(sizes) and all(is_whole(size, 1) for size in sizes)
    if not whole or (total is not None and sum(sizes) != total):
        meant = "" if total is None else f" and sum to {total}"
        raise ValueError(f"view sizes must be positive whole numbers{meant}, one per view, got {sizes!r}")


def require_merit(merit: object, method: str) -> None:
    """A merit function that has the method."""
    if isinstance(merit, type | str) or not hasattr(merit, method):
        raise ValueError(f"merit must be a merit function, got {merit!r}; make one by cdfsg.merits.make_merit")


def require_real(name: str, a: Array) -> None:
    kind = np.asarray(a).dtype
    if kind.kind not in "biuf":
        raise ValueError(f"{name} must hold real numbers, got type {kind}; use astype(float)")


def require_finite(name: str, a: Array) -> None:
    require_real(name, a)
    if not (finite := np.isfinite(a)).all():
        place = np.argwhere(~finite)[0].tolist()
        found = f"{np.asarray(a)[tuple(place)]} at {place}"
        raise ValueError(f"{name} must be finite, got {found}; look at the data behind it")


def require_floats(name: str, a: Array) -> None:
    """An array of floats: with integers a computation would lose decimals."""
    if not isinstance(a, np.ndarray) or a.dtype.kind != "f":
        kind = getattr(a, "dtype", type(a).__name__)
        raise ValueError(f"{name} must be an array of floats, got {kind}; use np.asarray({name}, dtype=float)")


def require_shape(name: str, a: Array, shape: tuple[int | str, ...], what: str = "") -> None:
    """The array has the shape, in which a letter is any number; `what` says where it is from."""
    found = np.shape(a)
    fits = len(found) == len(shape) and all(isinstance(k, str) or k == n for k, n in zip(shape, found, strict=True))
    if not fits:
        raise ValueError(f"{name} must have shape ({', '.join(map(str, shape))}){what and ', '}{what}, got {found}")


def require_square(name: str, a: Array, ndim: int = 0) -> None:
    """Real square matrices ``(..., p, p)``, with `ndim` axes if it is given."""
    shape = np.shape(a)
    if len(shape) < 2 or shape[-1] != shape[-2] or 0 in shape or ndim not in (0, len(shape)):
        raise ValueError(f"{name} must be a square matrix, got shape {shape}")
    require_real(name, a)


def require_symmetric(name: str, a: Array, rtol: float = 1e-10) -> None:
    """A finite matrix, symmetric up to `rtol` times its largest entry."""
    require_square(name, a, ndim=2)
    require_finite(name, a)
    a = np.asarray(a, dtype=float)
    gap = np.abs(a - a.T).max()
    if gap > rtol * np.abs(a).max():
        raise ValueError(f"{name} must be symmetric, got entries {gap:.3g} apart; use (a + a.T) / 2")


def require_semidefinite(name: str, a: Array, rtol: float = 1e-10) -> None:
    """A symmetric positive semidefinite matrix, as far as its entries tell."""
    require_symmetric(name, a, rtol)
    if (least := np.diagonal(a).min()) < 0:
        raise ValueError(f"{name} must be positive semidefinite, got {least:.3g} on its diagonal")


def require_covariance(name: str, a: Array, rtol: float = 1e-10) -> None:
    """A matrix of second moments in floats, as far as its entries tell."""
    require_floats(name, a)
    require_semidefinite(name, a, rtol)


def require_compressed(K: Array) -> None:
    """An array as `cdfsg.metrics.cross_moments` makes it."""
    require_shape("K", K, ("m", "m", "lanes", "p", "p"), "as cross_moments makes it")


def require_solver(solver: Any) -> None:
    if isinstance(solver, type | str) or not (hasattr(solver, "settings") and hasattr(solver, "start")):
        raise ValueError(f"solver must be a solver, got {solver!r}; make one, as by CDFSG()")


def require_run(solver: Any, problem: Any, views: Any, X0: Any, settings: Any, order: Any, dtype: type) -> None:
    """`cdfsg.solvers.engine.run` can begin with these arguments."""
    require_solver(solver)
    if not hasattr(views, "batch_indices"):
        raise ValueError(f"views must be a Views, got {type(views).__name__}; make one of the table")
    if isinstance(problem, type | str) or not hasattr(problem, "raw_gradient"):
        made = "make one, as by SampledGCCA(views.sizes, Identity())"
        raise ValueError(f"problem must be a sampled problem, got {type(problem).__name__}; {made}")
    if dtype is None or np.dtype(dtype).kind != "f":
        raise ValueError(f"dtype must be a type of floats such as np.float32, got {dtype!r}")
    masked, X0 = np.ma.is_masked(X0), np.asarray(X0)
    if masked or X0.ndim != 3 or X0.dtype.kind != "f" or min(X0.shape) < 1 or not np.isfinite(X0).all():
        found = "masked values" if masked else f"shape {X0.shape} and type {X0.dtype}"
        made = "make one by initial_points"
        raise ValueError(f"X0 must be an array of finite floats of shape (lanes, n, p), got {found}; {made}")
    lanes, n, p = X0.shape
    if n != problem.n or p > n:
        raise ValueError(f"X0 must have n = {problem.n} rows for this problem and p <= n columns, got {n} and {p}")
    if not isinstance(settings, Mapping):
        raise ValueError(f"settings must map names to arrays with a value per lane, got {settings!r}")
    if set(settings) != set(solver.settings):
        raise ValueError(f"{solver.name} has the settings {sorted(solver.settings)}, got {sorted(settings)}")
    for name, given in settings.items():
        value = np.asarray(given)
        if value.dtype.kind not in "iuf" or value.shape != (lanes,) or not (np.isfinite(value) & (value > 0)).all():
            raise ValueError(f"setting {name} needs {lanes} positive values, one per lane, got {given}")
    if order is not None:
        require_whole("order", order, 0, what="or None")
