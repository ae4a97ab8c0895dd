"""Scalar multiplications counted while the code runs: arrays that keep a ledger of what is done with them.

A product of an (a, b) with a (b, c) matrix is ``a b c`` multiplications, as in the paper's Table ta:computation; a
quotient and a square root are one each, sums and comparisons none.  What the counter does not know it refuses, so
that nothing goes uncounted in silence.  Arithmetic between plain numbers, or with the identity matrix, is no part
of the count.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from cdfsg.linalg import Array
from cdfsg.problems import SampledGCCA
from cdfsg.solvers.draws import Draw

_COUNTED = (np.multiply, np.divide, np.sqrt, np.square, np.reciprocal)
_FREE = (
    np.add, np.subtract, np.negative, np.absolute, np.maximum, np.minimum, np.clip, np.isfinite, np.conjugate,
    np.greater, np.greater_equal, np.less, np.less_equal, np.equal, np.not_equal,
)  # fmt: skip
_FREE_NAMES = {"clip"} | {ufunc.__name__ for ufunc in _FREE}
_FREE_FUNCTIONS = (
    np.zeros_like, np.ones_like, np.empty_like, np.copyto, np.repeat, np.swapaxes, np.transpose, np.clip, np.where,
    np.concatenate, np.stack,
)  # fmt: skip


class Ledger:
    """Multiplications by the key update and the part of it under which they were done.

    Attributes
    ----------
    counts : Counter
        From ``(update, part)`` to a number of multiplications.
    calls : Counter
        From the name of an oracle to how often it was asked.
    """

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self.calls: Counter[str] = Counter()
        self._label = ("", "algebra")

    def add(self, number: int) -> None:
        """Count under the present label."""
        if number:
            self.counts[self._label] += number

    @contextmanager
    def during(self, update: str = "", part: str = "") -> Iterator[None]:
        """Label what happens inside; what is not named stays as it is outside."""
        before = self._label
        self._label = (update or before[0], part or before[1])
        try:
            yield
        finally:
            self._label = before

    def labelled(self, update: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, counted under that update."""

        def inside(*arguments: Any, **named: Any) -> Any:
            with self.during(update):
                return function(*arguments, **named)

        return inside


class Counted(np.ndarray):
    """An array whose arithmetic enters a ledger, and so does that of all results."""

    ledger: Ledger | None

    def __array_finalize__(self, obj: Any) -> None:
        """Inherit the ledger of the array that this one comes from."""
        self.ledger = getattr(obj, "ledger", None)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Count, then compute on plain arrays."""
        ledger = _ledger_of((*inputs, *kwargs.get("out", ())))
        ledger.add(multiplications(ufunc, method, [_shape(value) for value in inputs]))
        out = kwargs.pop("out", None)
        if out is not None:
            kwargs["out"] = tuple(_plain(array) for array in out)
        result = getattr(ufunc, method)(*(_plain(value) for value in inputs), **kwargs)
        if out is not None:
            return out[0]
        return counted(result, ledger) if isinstance(result, np.ndarray) else result

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Count einsum; let pass what multiplies nothing.

        Raises
        ------
        NotImplementedError
            For a function of unknown cost; the message names it.
        """
        if func is np.einsum:
            ledger = _ledger_of(args)
            ledger.add(einsum_multiplications(args[0], [_shape(operand) for operand in args[1:]]))
            return counted(np.einsum(args[0], *(_plain(operand) for operand in args[1:]), **kwargs), ledger)
        if func not in _FREE_FUNCTIONS:
            raise NotImplementedError(
                f"np.{func.__name__} on a counted array: expected one of "
                f"{', '.join(known.__name__ for known in _FREE_FUNCTIONS)}, einsum; say in counting.py what it costs"
            )
        return super().__array_function__(func, types, args, kwargs)


def counted(array: Array, ledger: Ledger) -> Counted:
    """The array, not copied, with a ledger."""
    view = array.view(Counted)
    view.ledger = ledger
    return view


def multiplications(ufunc: np.ufunc, method: str, shapes: list[tuple[int, ...]]) -> int:
    """Multiplications of a universal function on operands of the given shapes.

    Raises
    ------
    NotImplementedError
        For a function or a method (such as ``reduce``) of unknown cost; the message names it.
    """
    if ufunc.__name__ in _FREE_NAMES:
        return 0
    if method == "__call__" and ufunc is np.matmul and min(map(len, shapes)) >= 2:
        (*left, rows, inner), (*right, _, columns) = shapes
        return math.prod(np.broadcast_shapes(tuple(left), tuple(right))) * rows * inner * columns
    if method == "__call__" and ufunc in _COUNTED:
        return math.prod(np.broadcast_shapes(*shapes))
    raise NotImplementedError(
        f"{ufunc.__name__}.{method} on operands of shapes {shapes}: its multiplications are unknown; say in "
        "counting.py what it costs"
    )


def einsum_multiplications(subscripts: str, shapes: list[tuple[int, ...]]) -> int:
    """Multiplications of einsum: one for each further operand and each value of all indices together."""
    extent: dict[str, int] = {}
    for letters, shape in zip(subscripts.split("->")[0].split(","), shapes, strict=True):
        extent.update(zip(letters, shape, strict=True))
    return math.prod(extent.values()) * (len(shapes) - 1)


class CountedProblem:
    """Sampled GCCA whose oracles label what they multiply, and give arrays that go on counting.

    `project` and `lift` treat the rows of theta and xi one after the other, where the solver has them in one
    product: the same multiplications, told apart.

    Parameters
    ----------
    problem : SampledGCCA
    ledger : Ledger
    draw : Draw
        The minibatches of the step that is counted.
    """

    def __init__(self, problem: SampledGCCA, ledger: Ledger, draw: Draw) -> None:
        self.sizes, self.n = problem.sizes, problem.n
        self._problem, self._ledger = problem, ledger
        self._both, self._theta, self._xi = len(draw.rows), draw.theta, draw.xi

    def project(self, Z: Array, X: Array) -> Array:
        """Projections; those on theta belong to C_theta, those on xi to the gradient of f."""
        if len(Z) < self._both:
            with self._ledger.during("Y", "O_C"):
                return self._project(Z, X)
        P = np.empty((len(Z), len(self.sizes), *X.shape[1:]), dtype=X.dtype)
        with self._ledger.during("Y", "O_C"):
            P[self._theta] = self._project(Z[self._theta], X)
        with self._ledger.during("D", "O_grad_f"):
            P[self._xi] = self._project(Z[self._xi], X)
        return counted(P, self._ledger)

    def lift(self, Z: Array, R: Array, out: Array | None = None) -> Array:
        """Adjoint of `project`; theta belongs to the gradient of C_theta, xi to that of f."""
        with self._ledger.during("D", "O_grad_C"):
            of_theta = self._problem.lift(Z[self._theta], self._counted(R[self._theta]))
        with self._ledger.during("D", "O_grad_f"):
            of_xi = self._problem.lift(Z[self._xi], self._counted(R[self._xi]))
        return counted(np.add(of_theta, of_xi, out=out), self._ledger)

    def constraint(self, P: Array) -> Array:
        """``C_theta(X)``."""
        self._ledger.calls["O_C"] += 1
        with self._ledger.during(part="O_C"):
            return self._problem.constraint(self._counted(P))

    def constraint_factor(self, P: Array) -> Array:
        """The factor of ``M_theta X``."""
        self._ledger.calls["O_grad_C"] += 1
        with self._ledger.during(part="O_grad_C"):
            return self._problem.constraint_factor(self._counted(P))

    def gradient_factor(self, P: Array) -> Array:
        """The factor of ``grad f_xi(X)``."""
        self._ledger.calls["O_grad_f"] += 1
        with self._ledger.during(part="O_grad_f"):
            return self._counted(self._problem.gradient_factor(self._counted(P)))

    def gradient(self, Z: Array, X: Array) -> Array:
        """``grad f_xi(X)`` by itself."""
        self._ledger.calls["O_grad_f"] += 1
        with self._ledger.during(part="O_grad_f"):
            factor = self._problem.gradient_factor(self._project(Z, X))
            return self._counted(self._problem.lift(Z, self._counted(factor)))

    def constraint_gradient(self, Z: Array, X: Array) -> Array:
        """``M_theta X`` by itself."""
        self._ledger.calls["O_grad_C"] += 1
        with self._ledger.during(part="O_grad_C"):
            factor = self._problem.constraint_factor(self._project(Z, X))
            return self._counted(self._problem.lift(Z, self._counted(factor)))

    def _project(self, Z: Array, X: Array) -> Array:
        # The library writes products into plain arrays that it made itself, which must not end the count.
        return self._counted(self._problem.project(Z, self._counted(X)))

    def _counted(self, array: Array) -> Array:
        return counted(array, self._ledger)


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, Counted) else value


def _ledger_of(values: Any) -> Ledger:
    ledgers = [value.ledger for value in values if isinstance(value, Counted) and value.ledger is not None]
    return ledgers[0]


def _shape(value: Any) -> tuple[int, ...]:
    # Not np.shape, which asks a counted array first.
    return tuple(getattr(value, "shape", ()))
