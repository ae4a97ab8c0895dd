"""A fit in progress: its solver, the rows that wait for it, and what it knows of the exact solution."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from cdfsg import metrics
from cdfsg.convention import Solution, normalise, with_ridge
from cdfsg.estimator import steps
from cdfsg.estimator.convergence import MISSING, captured_share
from cdfsg.estimator.inputs import MEASURED_ROWS, Source, Stream
from cdfsg.estimator.online import OnlineSolver
from cdfsg.exact import WIDEST, ExactSolver
from cdfsg.linalg import Array, view_slices
from cdfsg.merits import make_merit
from cdfsg.refinement import refine
from cdfsg.streamed import Samples, ViewRows, absurd_rows, dense, most_absurd
from cdfsg.structure import Structure, streamed_structure

BLOCK = 2**23  # numbers of a dense block of rows that wide views are refined by
FREE = ("n_epochs", "scale", "tol", "shuffle", "view_sizes", "random_state", "verbose", "callbacks")
"""Parameters that may change during a fit."""


class Fit:
    """The solver of a fit, and the exact one, which may be the same, where covariances can be kept.

    Attributes
    ----------
    algorithm : {"exact", "cdfsg-ada", "cdfsg"}
    solver : ExactSolver or OnlineSolver
        What gives the weights.
    exact : ExactSolver or None
        What gives the certificate.
    """

    def __init__(self, parameters: Mapping[str, Any], sizes: tuple[int, ...], rows: int | None, seed: int) -> None:
        n, p, asked = sum(sizes), parameters["n_components"], parameters["algorithm"]
        if p > min(sizes):
            raise ValueError(f"n_components={p}: expected at most {min(sizes)}, the narrowest width")
        self.parameters, self.sizes, self.slices, self.seed = dict(parameters), sizes, view_slices(sizes), seed
        self.algorithm = {"auto": "exact" if n <= WIDEST else "cdfsg-ada"}.get(asked, asked)
        self.merit = make_merit(parameters["merit"], parameters["mu"])
        self.penalty = float(parameters["penalty"] or steps.penalty_parameter(self.merit, len(sizes)))
        ridges = np.atleast_1d(parameters["ridge"]).astype(float)
        if len(ridges) not in (1, len(sizes)):
            raise ValueError(f"ridge={parameters['ridge']}: expected one number, or {len(sizes)}, one per view")
        self.ridge = np.repeat(np.broadcast_to(ridges, len(sizes)), sizes)
        self.batch_size = steps.minibatch_size(parameters["batch_size"], rows, n, p)
        self.rows_at_once = MEASURED_ROWS if self.algorithm == "exact" else self.batch_size
        self.exact = self._new_exact() if n <= WIDEST or self.algorithm == "exact" else None
        if self.exact is not None:
            self.exact.single = rows is not None  # they can be read again
        self.solver: Any = self.exact if self.algorithm == "exact" else None
        self.waiting: list[list[ViewRows]] = []
        self.wide_structure: Structure | None = None  # of the weights, if a pass was made for it
        self.n_outliers, self.report = 0, ""  # of rows left out

    @property
    def rows(self) -> int:
        """Rows seen, repeats included, without those that wait; 0 before the first step."""
        begun = hasattr(self.solver, "state") if isinstance(self.solver, OnlineSolver) else self.solver
        return int(self.solver.moments.rows) if begun else 0

    @property
    def steps(self) -> int:
        """Minibatches taken in."""
        return self.rows // self.batch_size

    def require_unchanged(self, parameters: Mapping[str, Any]) -> None:
        """Raise ValueError if parameters have changed that a fit cannot follow."""
        for name in sorted(parameters.keys() - set(FREE)):
            if parameters[name] != self.parameters[name]:
                began = f"the fit began with {self.parameters[name]!r}"
                raise ValueError(f"{name}={parameters[name]!r}, but {began}; call fit instead")

    def take(self, batch: list[ViewRows]) -> None:
        """Advance by a whole minibatch, or let fewer rows wait."""
        self.waiting = []
        first = 0 if self.rows else steps.LEAST_BATCH  # among fewer rows an absurd one does not stand out
        if batch[0].shape[0] >= (first if self.algorithm == "exact" else self.batch_size):
            self.advance(batch)
        else:
            self.waiting = [[block.copy() for block in batch]]

    def use_waiting(self) -> bool:
        """Advance by the rows that wait, if they are worth a step or the first ones; whether it did."""
        least = steps.LEAST_BATCH if self.rows else 1
        if not self.waiting or self.waiting[0][0].shape[0] < least:
            return False
        batch, self.waiting = self.waiting[0], []
        self.advance(batch)
        return True

    def advance(self, blocks: list[ViewRows], epoch: int = 1) -> None:
        """Take in some rows, one block (l, n_i) per view, in the first pass for the exact solution, too."""
        solver, self.wide_structure = self.solver or self._new_online(blocks[0].dtype), None
        blocks = self._without_outliers(blocks, self.exact or solver, epoch)
        if not blocks[0].shape[0]:
            return
        if solver is not self.exact:
            solver.advance(blocks)
        if self.exact is not None and epoch == 1:
            self.exact.advance(blocks)
        self.solver = solver

    def resolve(self, data: Source | Stream) -> None:
        """Read the rows of the first pass again if that leaves directions of little variance to rounding.

        ValueError if it did not let the solver begin.
        """
        self.solver.moments.require_varied(self.slices, self.solver.mean)
        if isinstance(self.solver, OnlineSolver):
            self.solver.require_begun()
        if self.exact is not None and data.again:
            self._resolve(self.exact, data)

    def solution(self, latest: bool = False) -> tuple[Solution, float]:
        """The solution and its share of the exact one, NaN if that is not known.

        It has the moments of all rows where covariances are kept; with `latest` those of about the last 10,000.
        """
        if isinstance(self.solver, ExactSolver):
            known = self.solver.basis or self.solver.is_resolved(self.solver.noise)
            return self._best(self.solver), 1.0 if known else np.nan
        return self._judged(self.exact) if self.exact and not latest else (self.solver.solution(), np.nan)

    def solution_on(self, data: Source | Stream, improve: bool = False) -> tuple[Solution, float]:
        """The weights in the convention over all rows of the data, and their share of the exact solution there.

        Wide views are refined for that; `improve` keeps the refined weights, if the algorithm was left open.
        """
        if self.exact is not None:
            exact, self.n_outliers = self._new_exact(), 0
            for blocks in self._kept(data, MEASURED_ROWS, exact, epoch=1):
                exact.advance(blocks)
            self._resolve(exact, data)
            return self._judged(exact)
        solver, rows = self.solver, max(self.batch_size, min(MEASURED_ROWS, BLOCK // sum(self.sizes)))

        def kept() -> Iterator[list[ViewRows]]:
            return self._kept(data, rows, solver) if self.n_outliers else data.batches(rows)

        def batches() -> Iterator[Samples]:
            return map(solver.samples, kept())

        moments = solver.moments
        variance = (moments.variance + (moments.mean - solver.mean) ** 2 + self.ridge) / solver.scale**2
        tol = (self.parameters["tol"] or MISSING) / 4
        found = refine(solver.problem, batches, solver.average[0].astype(np.float64), variance, tol, self.seed)
        if improve and self.parameters["algorithm"] == "auto" and self.merit.name == "identity":
            solver.average[0], K = found.X, found.K
        else:
            K = found.K_given
        K = with_ridge(K, solver.weights, self.slices, -self.ridge)  # which `normalise` adds
        solution = normalise(solver.weights, self.slices, K, self.merit, self.ridge)
        self.wide_structure = streamed_structure(kept(), solver.mean, solution.weights, self.slices)
        if self.merit.name != "identity":
            return solution, np.nan
        return solution, min(1.0, -float(metrics.objective(solution.K[:, :, None], self.merit)[0]) / found.optimum)

    def structure(self, weights: Array) -> Structure:
        """Moments of the columns with the projections on weights (n, p), over the rows of the fit."""
        if self.exact is not None:
            return self.exact.structure(weights)
        if self.wide_structure is None:
            raise ValueError("columns and projections were not read together: call calibrate on all rows")
        return self.wide_structure

    def _judged(self, exact: ExactSolver) -> tuple[Solution, float]:
        weights = self.solver.weights
        K = metrics.cross_moments(weights[None], exact.covariance, self.sizes)[:, :, 0]
        found = normalise(weights, self.slices, K, self.merit, self.ridge)
        known = exact.basis or exact.is_resolved(exact.noise)
        return found, captured_share(found, self._best(exact), self.merit) if known else np.nan

    def _best(self, exact: ExactSolver) -> Solution:
        weights, K = exact.best
        return normalise(weights, self.slices, K, self.merit, self.ridge)

    def _resolve(self, exact: ExactSolver, data: Source | Stream) -> None:
        exact.moments.require_varied(self.slices, exact.mean)
        if exact.single and not exact.is_resolved():
            exact.restart()
            for blocks in self._kept(data, MEASURED_ROWS, exact):
                exact.advance(blocks)
        if not exact.is_resolved():
            for blocks in self._kept(data, MEASURED_ROWS, exact):
                exact.resolve(blocks)

    def _new_exact(self) -> ExactSolver:
        p, center = self.parameters["n_components"], self.parameters["center"]
        return ExactSolver(self.sizes, self.merit, p, center, self.ridge)

    def _new_online(self, dtype: np.dtype[Any]) -> OnlineSolver:
        same = {name: self.parameters[name] for name in ("n_components", "tracking", "center", "step_size")}
        return OnlineSolver(
            self.sizes, dtype, self.merit, self.ridge, self.penalty, self.batch_size, self.seed, self.algorithm, **same
        )

    def _kept(self, data: Source | Stream, rows: int, solver: Any, epoch: int = 0) -> Iterator[list[ViewRows]]:
        """The data in batches, without outliers."""
        batches = (self._without_outliers(blocks, solver, epoch) for blocks in data.batches(rows))
        return (blocks for blocks in batches if blocks[0].shape[0])

    def _without_outliers(self, blocks: list[ViewRows], solver: Any, epoch: int = 0) -> list[ViewRows]:
        """The rows but those that outweigh all others together, which are counted in the first pass."""
        marked = absurd_rows(blocks, solver.moments)
        if not marked.any():
            return blocks
        if epoch == 1:
            found, rows = self.n_outliers + int(marked.sum()), solver.moments.rows + len(marked)
            if found > most_absurd(rows, rows):
                return blocks
            self.n_outliers = found
            row = [dense(block[np.flatnonzero(marked)[:1]]).ravel() for block in blocks]
            view = int(np.argmax([np.abs(part).max() for part in row]))
            column = int(np.abs(row[view]).argmax())
            self.report = (
                f"rows that outweigh all others together were left out, {self.n_outliers} so far; one has the value "
                f"{row[view][column]:.3g} in column {column} of view {view}. Correct or drop such rows in all views"
            )
        return [block[~marked] for block in blocks]
