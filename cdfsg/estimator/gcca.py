"""The estimator: (generalised) canonical correlation analysis by CDFSG or CDFSG-Ada."""

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, check_random_state, metadata_routing
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted

from cdfsg.estimator import convention, steps
from cdfsg.estimator.convention import moments_of, require_finite_moments, total_correlation, variances
from cdfsg.estimator.convergence import Progress, has_stalled, reason_for_doubt
from cdfsg.estimator.inputs import MEASURED_ROWS, Source, Stream, ViewRows, is_stream, rebatch
from cdfsg.estimator.online import NO_ROWS, OnlineSolver, Restart
from cdfsg.estimator.parameters import require_valid
from cdfsg.estimator.tables import read_chunk, read_features
from cdfsg.linalg import Array
from cdfsg.merits import make_merit

ROUNDING = 1e-13  # a projection that deviates less, relative to its largest value, is constant
QUIET_SECONDS = 5.0  # between the lines that a long pass prints, if verbose
VIEWS = {"views": metadata_routing.UNUSED}  # else scikit-learn would make methods to request them as metadata


@dataclass(eq=False, repr=False)
class StochasticGCCA(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    r"""(Generalised) canonical correlation analysis, one minibatch at a time.

    It maximises

    .. math:: \sum_r \sum_{i \ne j} g(x_r^{[i]\top} S_{ij} x_r^{[j]}) \quad\text{subject to}\quad
              \sum_i X_i^\top S_{ii} X_i = I_p

    over weights :math:`X = (X_1; \dots; X_m)`, with :math:`S_{ij}` the covariances of the views, by the paper's
    Algorithm 1 or 2.  No covariance is formed, sparse rows stay sparse, and memory does not grow with their number.

    Parameters
    ----------
    n_components : int, default 1
        Number p of components, at most the width of the narrowest view.
    merit : {"identity", "huber"}, default "identity"
        The merit g: classical CCA, for three or more views SUMCOR with a joint constraint; or one that levels large
        covariances, and is even, so that a pair (a, b) can come again as (a, -b).
    mu : float, default 0.05
        Threshold of the Huber merit, in units of a covariance of projections, which is at most 1/m.
    algorithm : {"cdfsg-ada", "cdfsg"}, default "cdfsg-ada"
        CDFSG-Ada, with Adam's step sizes per entry, or CDFSG, with one step size.
    batch_size : int or "auto", default "auto"
        Rows of a minibatch.  "auto": 100, or fewer, down to 20, where a pass has less than 40 of them.
    n_epochs : int, default 5
        Most passes of `fit` over the data; it reads an iterator once.
    penalty : float or None, default None
        The parameter beta; None for ``2 g (m - 1)``, g the largest slope of the merit.  The penalty function can fall
        without bound below ``3/2 g (m - 1)``.
    step_size : float, default 1.0
        Multiple of the default step.
    tracking : float, default 0.2
        The step b of the tracker of X'MX, in (0, 1].
    center, scale : bool, default True and False
        Subtract the running mean; let weights and `transform` refer to columns of unit standard deviation.
    tol : float, default 1e-3
        `fit` ends after two passes that each add less than this share to the captured correlation; 0 for never.
    shuffle : bool, default True
        Visit the rows of `fit`, but of no iterator, in another random order in each pass.
    view_sizes : sequence of int, "halves" or None, default None
        Widths of the views in one array; "halves" for two of half its columns.  None: the data are a list of views.
    random_state : int, RandomState or None, default None
        Of the start and of the order of the rows.
    verbose : int, default 0
        1 prints a line per pass, and one every five seconds.
    callbacks : callable, sequence of callables or None, default None
        Called with the estimator and a `Progress` after each pass or `partial_fit`; one that returns True ends `fit`.

    Attributes
    ----------
    weights_ : list of array (n_i, n_components), float64
        Weights of the centred (and scaled) columns, as in `cdfsg.estimator.convention`.
    canonical_correlations_ : array (n_components,)
        Mean correlation of two views' projections: after `fit` over all rows; after `partial_fit`, or a fit to an
        iterator, over about the last 10,000.
    explained_covariance_ : array (n_components,)
        Mean covariance of two views' projections along weights of unit length.
    means_, scales_ : list of array (n_i,), float64
        What `transform` subtracts (zeros unless `center`) and divides by (ones unless `scale`).
    n_features_per_view_, n_features_in_ : tuple of int, int
        Columns of each view, and of all.
    n_samples_seen_, n_epochs_ : int
        Rows seen, repeats included; passes of `fit`.
    converged_ : bool
        False if `fit` warned that the captured correlation still grew, or that it made too few steps to tell.
    restarts_ : list of Restart
        Divergences, from which the fit went on, with a warning, from the average of its iterates with half the step.
    penalty_, batch_size_ : float, int
        The values used.

    Examples
    --------
    >>> from cdfsg import StochasticGCCA
    >>> from cdfsg.datasets import load_digits
    >>> digits = load_digits()
    >>> views = [digits.data[:, view] for view in digits.slices]
    >>> model = StochasticGCCA(n_components=2, random_state=0).fit(views)
    >>> [scores.shape for scores in model.transform(views)]
    [(1797, 2), (1797, 2)]
    """

    n_components: int = 1
    _: KW_ONLY
    merit: str = "identity"
    mu: float = 0.05
    algorithm: str = "cdfsg-ada"
    batch_size: int | str = "auto"
    n_epochs: int = 5
    penalty: float | None = None
    step_size: float = 1.0
    tracking: float = 0.2
    center: bool = True
    scale: bool = False
    tol: float = 1e-3
    shuffle: bool = True
    view_sizes: Sequence[int] | str | None = None
    random_state: Any = None
    verbose: int = 0
    callbacks: Callable[..., Any] | Sequence[Callable[..., Any]] | None = None

    __metadata_request__fit: ClassVar = VIEWS
    __metadata_request__partial_fit: ClassVar = VIEWS
    __metadata_request__transform: ClassVar = VIEWS
    __metadata_request__score: ClassVar = VIEWS

    def fit(self, views: Any, y: Any = None) -> Self:
        """Fit to all rows, in `n_epochs` passes and one more that only measures.

        Parameters
        ----------
        views : list of array_like (N, n_i), array_like (N, n), iterator or callable
            Arrays, mapped files, DataFrames, sparse matrices or Dask arrays: a list, or one with `view_sizes`.  An
            iterator gives chunks of such data, once; a callable returns a new iterator for every pass.
        y : None
            Ignored.

        Raises
        ------
        ValueError
            If a parameter or the data are not as expected, or after 20 restarts.
        """
        require_valid(self.get_params(deep=False))
        began = time.perf_counter()
        data = self._read(views, reset=True)
        self._forget(data.n_samples)
        order = np.random.default_rng(self._order_seed) if self.shuffle else None
        history: list[float] = []
        for epoch in range(1, self.n_epochs + 1 if data.again else 2):
            self._pass(data, order, epoch, began)
            self.n_epochs_ = epoch
            history.append(self._solver.solution().captured)
            if self._report(epoch, history[-1], began) or has_stalled(history, self.tol):
                break
        solution = self._solver.solution_on(data) if data.again else self._solver.solution()
        self._publish(solution)
        made = self._solver.moments.rows // self.batch_size_
        doubt = reason_for_doubt(history, solution.captured, made, self.n_epochs)
        if doubt:
            self.converged_ = False
            warnings.warn(doubt, ConvergenceWarning, stacklevel=2)
        return self

    def partial_fit(self, views: Any, y: Any = None) -> Self:
        """Go on with the fit on these rows, once, in their order, by minibatches of 100 if `batch_size` is "auto".

        `views` are as for `fit`, but no iterator; the first call needs more rows than `n_components`.  `calibrate`
        stands for the last pass of `fit`.
        """
        parameters = self.get_params(deep=False)
        require_valid(parameters)
        began = time.perf_counter()
        first = not hasattr(self, "_solver")
        source = read_chunk(self, views, reset=first)
        blocks = source.take(slice(None))  # all are checked before any moves the fit
        if first:
            self._forget(None)
        else:
            self._solver.require_unchanged(parameters)
        for batch in rebatch([blocks], self.batch_size_):
            self._advance(batch)
        solution = self._solver.solution()
        self._publish(solution)
        self._calls += 1
        self._report(self._calls, solution.captured, began)
        return self

    def calibrate(self, views: Any) -> Self:
        """Make the convention hold exactly on these rows, as `fit` does at its end; the spans stay the same."""
        check_is_fitted(self)
        self._publish(self._solver.solution_on(self._read(views, reset=False)))
        return self

    def transform(self, views: Any) -> Any:
        """Project every view on its weights; in a list, views may be None.

        Returns
        -------
        list of array (N, n_components) or None, or array (N, m * n_components)
            A list for a list; for one array, the projections side by side.  float32 for float32 data.
        """
        check_is_fitted(self)
        source = read_features(self, views, at_least=1, some=True)
        scores = (self._scores(blocks, source.dtype, source.views) for blocks in source.batches(MEASURED_ROWS))
        projected = [np.concatenate(parts) for parts in zip(*scores, strict=True)]
        if len(source.tables) < len(source.views):
            return np.concatenate(projected, axis=1)
        container = _get_output_config("transform", self)["dense"]
        if container != "default":
            raise ValueError(f"set_output(transform={container!r}) needs one array and view_sizes, not a list of views")
        given = iter(projected)
        return [next(given) if size else None for size in source.sizes]

    def score(self, views: Any, y: Any = None) -> float:
        """Total correlation captured on these rows, centred on them if `center`.

        For two views the paper's TCC of their projections; for more the sum of the mean correlations of two views.
        """
        check_is_fitted(self)
        source = read_features(self, views, at_least=2, reset=False)
        rows, shift, largest, mean, K = 0, np.zeros(1), np.zeros(1), np.zeros(1), np.zeros(1)
        with np.errstate(over="ignore", invalid="ignore"):
            for blocks in source.batches(MEASURED_ROWS):
                P = np.stack(self._scores(blocks, np.float64, source.views), axis=1)
                largest = np.maximum(largest, np.abs(P).max(axis=0))
                if self.center and not rows:  # the square of a mean far from zero would cost all digits
                    shift = P[0]
                P -= shift
                rows, mean, K = rows + len(P), mean + P.sum(axis=0), K + moments_of(P) * len(P)
            mean, K = mean / rows, K / rows
            if self.center:
                K -= np.einsum("ip,jq->ijpq", mean, mean)
        require_finite_moments(K)
        constant = np.sqrt(variances(K)) <= ROUNDING * largest
        K[constant[:, None, :, None] | constant[None, :, None, :]] = 0
        return total_correlation(K)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the projections, view after view: ``view0_0``, ``view0_1``, ..."""
        check_is_fitted(self)
        components = range(len(self.canonical_correlations_))
        return np.array([f"view{i}_{r}" for i in range(len(self.weights_)) for r in components], dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "weights_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.two_d_array = self.view_sizes is not None
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _read(self, views: Any, reset: bool) -> Source | Stream:
        """Views that passes can be made over; with `reset`, those of a new fit."""
        if not is_stream(views):
            return read_features(self, views, at_least=2, reset=reset)
        resets = iter([reset])  # with the first chunk of the first pass alone
        return Stream(views, lambda chunk: read_chunk(self, chunk, reset=next(resets, False)))

    def _scores(self, blocks: list[ViewRows], dtype: Any, views: Sequence[int]) -> list[Array]:
        W = [self.weights_[i] / self.scales_[i][:, None] for i in views]
        return [np.asarray(Z @ w - self.means_[i] @ w, dtype) for Z, w, i in zip(blocks, W, views, strict=True)]

    def _forget(self, rows: int | None) -> None:
        """Begin anew, so that a fit that fails leaves no mixture of two."""
        self.batch_size_ = steps.minibatch_size(self.batch_size, rows, self.n_components)
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=2)
        self._order_seed, self._start_seed = map(int, seeds)
        self.restarts_: list[Restart] = []
        self.n_epochs_, self.converged_, self._calls = 0, True, 0
        for name in ("_solver", "weights_", "means_", "scales_", "canonical_correlations_", "explained_covariance_"):
            self.__dict__.pop(name, None)

    def _pass(self, data: Source | Stream, order: np.random.Generator | None, epoch: int, began: float) -> None:
        """One pass over the data, with a line now and then."""
        said, done, rows = time.perf_counter(), 0, data.n_samples
        for blocks in data.batches(self.batch_size_, order):
            self._advance(blocks)
            done += blocks[0].shape[0]
            if self.verbose and time.perf_counter() - said > QUIET_SECONDS:
                said = time.perf_counter()
                part = f"{done:,} rows" + (f" of {rows:,} ({done / rows:.0%})" if rows else "")
                self._print(epoch, f"{part}, {said - began:.0f} s")
        if not done:
            raise ValueError(NO_ROWS)

    def _advance(self, blocks: list[ViewRows]) -> None:
        """One minibatch; if the first of a fit is refused, nothing of it is kept."""
        solver = getattr(self, "_solver", None) or self._begin(blocks)
        solver.advance(blocks)
        self._solver, self.restarts_ = solver, solver.restarts

    def _begin(self, blocks: list[ViewRows]) -> OnlineSolver:
        sizes, merit = self.n_features_per_view_, make_merit(self.merit, self.mu)
        if self.n_components > min(sizes):
            raise ValueError(f"n_components={self.n_components}: expected at most {min(sizes)}, the narrowest width")
        penalty = float(self.penalty or steps.penalty_parameter(merit, len(sizes)))
        same = {name: getattr(self, name) for name in ("algorithm", "n_components", "tracking", "center")}
        step, seed = float(self.step_size), self._start_seed
        return OnlineSolver(sizes, blocks[0].dtype, merit, penalty, self.batch_size_, step, seed, **same)

    def _publish(self, solution: convention.Solution) -> None:
        solver = self._solver
        deviation = np.sqrt(solver.moments.variance)
        scale = np.where(deviation > 0, deviation, 1.0) if self.scale else np.ones_like(deviation)
        weights = solution.weights * scale[:, None]
        mean, slices = solver.mean.copy(), solver.problem.slices
        self.weights_, self.means_, self.scales_ = ([a[view] for view in slices] for a in (weights, mean, scale))
        self.canonical_correlations_ = solution.correlations
        self.explained_covariance_ = convention.covariances_along_unit_weights(solution.K, self.weights_)
        self.penalty_, self.n_samples_seen_ = solver.penalty, solver.moments.rows

    def _report(self, epoch: int, captured: float, began: float) -> bool:
        """Print a line and call the callbacks; whether one returns True."""
        solver = self._solver
        rows, step, seconds = solver.moments.rows, solver.step_size, time.perf_counter() - began
        progress = Progress(epoch, rows, captured, step, seconds)
        if self.verbose:
            words = f"correlation captured {captured:.4f}, step_size {step:g}, {seconds:.1f} s"
            self._print(epoch, f"{rows:,} rows seen, {words}")
        listed = [self.callbacks] if callable(self.callbacks) else (self.callbacks or [])
        return any([callback(self, progress) is True for callback in listed])

    def _print(self, epoch: int, words: str) -> None:
        print(f"[{type(self).__name__}] pass {epoch}: {words}", flush=True)
