"""The estimator: (generalised) canonical correlation analysis by CDFSG or CDFSG-Ada."""

import copy
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, check_random_state, metadata_routing
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted

from cdfsg import convention
from cdfsg.estimator.convergence import FEW_STEPS, Progress, reason_for_doubt
from cdfsg.estimator.fitting import Fit
from cdfsg.estimator.inputs import MEASURED_ROWS, Source, Stream, is_stream, rebatch
from cdfsg.estimator.parameters import valid
from cdfsg.estimator.tables import read_chunk, read_features
from cdfsg.exact import streamed_moments
from cdfsg.linalg import Array
from cdfsg.streamed import ViewRows
from cdfsg.structure import Structure

LAZY = ["weights_", "means_", "scales_", "canonical_correlations_", "explained_covariance_", "captured_", "converged_"]
QUIET_SECONDS = 5.0  # between the lines that a long pass prints, if verbose
VIEWS = {"views": metadata_routing.UNUSED}  # else scikit-learn would make methods to request them as metadata


@dataclass(eq=False, repr=False)
class StochasticGCCA(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    r"""(Generalised) canonical correlation analysis, one minibatch at a time.

    It maximises

    .. math:: \sum_r \sum_{i \ne j} g(x_r^{[i]\top} S_{ij} x_r^{[j]}) \quad\text{subject to}\quad
              \sum_i X_i^\top S_{ii} X_i = I_p

    over weights :math:`X = (X_1; \dots; X_m)`, with :math:`S_{ij}` the covariances of the views.  Memory does not grow
    with the number of rows.

    Parameters
    ----------
    n_components : int, default 1
        Number p of components, at most the width of the narrowest view.
    ridge : float or sequence of float, default 0
        The r_i, one for all views or one each, in the constraint ``sum_i X_i' (S_ii + r_i I) X_i = I``.
    merit : {"identity", "huber"}, default "identity"
        The merit g: classical CCA, for three or more views SUMCOR with a joint constraint; or one that levels large
        covariances, and is even, so that a pair (a, b) can come again as (a, -b).
    mu : float, default 0.05
        Threshold of the Huber merit, in units of a covariance of projections, which is at most 1/m.
    algorithm : {"auto", "exact", "cdfsg-ada", "cdfsg"}, default "auto"
        "exact": eigenvectors of the covariances, which one pass sums up; with another merit than identity a local
        optimum from there.  "cdfsg-ada", with Adam's step sizes per entry, and "cdfsg", with one step size, are the
        paper's, for wide or endless data.  "auto": exact up to 4,000 columns in all, else "cdfsg-ada".
    batch_size : int or "auto", default "auto"
        Rows of a minibatch of the paper's algorithms.  "auto": 100 or, if that is more, a 500th of the number of
        columns; fewer, down to 20 or twice `n_components`, where a pass would have less than 40 of them.
    n_epochs : int, default 5
        Most passes of the paper's algorithms over the data; `fit` reads an iterator once.
    penalty : float or None, default None
        The parameter beta; None for ``2 g (m - 1)``, g the largest slope of the merit.  The penalty function can fall
        without bound below ``3/2 g (m - 1)``.
    step_size : float, default 1.0
        Multiple of the default step.
    tracking : float, default 0.2
        The step b of the tracker of X'MX, in (0, 1].
    center, scale : bool, default True and False
        Subtract the running mean; let weights and `transform` refer to columns of unit standard deviation.
    tol : float, default 0.01
        A fit has converged, and ends after 50 minibatches or more, where it misses at most this share of the exact
        total correlation.  0: it makes all passes, and is judged by 0.01.
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
        Weights of the centred (and scaled) columns, as in `cdfsg.convention`.
    canonical_correlations_ : array (n_components,)
        Mean correlation of two views' projections: after `fit` over all rows; after `partial_fit`, or a fit to an
        iterator, over about the last 10,000; always over all if `algorithm_` is "exact".
    explained_covariance_ : array (n_components,)
        Mean covariance of two views' projections along weights of unit length.
    means_, scales_ : list of array (n_i,), float64
        What `transform` subtracts (zeros unless `center`) and divides by (ones unless `scale`).
    n_features_per_view_, n_features_in_ : tuple of int, int
        Columns of each view, and of all.
    n_samples_seen_, n_epochs_ : int
        Rows seen, repeats included; passes of `fit`.
    captured_ : float
        The certificate: share of the objective of the exact solution, over the rows of `fit`, `calibrate` or all calls
        of `partial_fit`; NaN if it is not known.
    converged_ : bool
        Whether `captured_` is at least ``1 - tol``; if not, there was a warning.
    n_outliers_ : int
        Rows left out, with a warning: alone they outweigh all others together.
    restarts_ : list of Restart
        Divergences, from which the fit went on, with a warning, from the average of its iterates with half the step.
    algorithm_, penalty_, batch_size_ : str, float, int
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
    >>> model.predict_views([views[0], None])[1].shape, StochasticGCCA(ridge=[1, 100]).fit(views).loadings_[0].shape
    ((1797, 32), (32, 1))
    """

    n_components: int = 1
    _: KW_ONLY
    ridge: float | Sequence[float] = 0.0
    merit: str = "identity"
    mu: float = 0.05
    algorithm: str = "auto"
    batch_size: int | str = "auto"
    n_epochs: int = 5
    penalty: float | None = None
    step_size: float = 1.0
    tracking: float = 0.2
    center: bool = True
    scale: bool = False
    tol: float = 1e-2
    shuffle: bool = True
    view_sizes: Sequence[int] | str | None = None
    random_state: Any = None
    verbose: int = 0
    callbacks: Callable[..., Any] | Sequence[Callable[..., Any]] | None = None

    __metadata_request__fit = __metadata_request__partial_fit = VIEWS
    __metadata_request__transform = __metadata_request__score = VIEWS

    def fit(self, views: Any, y: Any = None) -> Self:
        """Fit to all rows.

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
        valid(self.get_params(deep=False))
        began, data = time.perf_counter(), self._read(views, reset=True)
        self._forget()
        order = np.random.default_rng(self._order_seed) if self.shuffle else None
        for epoch in range(1, self.n_epochs + 1 if data.again else 2):
            self._pass(data, order, epoch, began)
            self.n_epochs_ = epoch
            solution, share = self._fit.solution()
            enough = self._fit.steps >= FEW_STEPS and share > 1 - self.tol
            if self._report(epoch, solution.captured, began) or enough or self.algorithm_ == "exact":
                break
        if self._fit.exact is None and data.again:
            solution, share = self._fit.solution_on(data, improve=True)
        self._publish(solution, share)
        return self

    def partial_fit(self, views: Any, y: Any = None) -> Self:
        """Go on with the fit on these rows, once, in their order.

        `views` are as for `fit`, but no iterator.  Rows wait until there are enough for a minibatch, if `algorithm_` is
        "exact" the first 20; `calibrate`, `transform`, `score` and pickling use up the first rows, or 20 and more.
        """
        began, parameters = time.perf_counter(), valid(self.get_params(deep=False))
        first = not hasattr(self, "_fit")
        blocks = read_chunk(self, views, reset=first).take(slice(None))  # all are checked before any moves the fit
        if first:
            self._forget()
            self._begin_fit(None)
        else:
            self._fit.require_unchanged(parameters)
            self._fit.parameters.update(parameters)
        try:
            for batch in rebatch([*self._fit.waiting, blocks], self._fit.rows_at_once):
                self._fit.take(batch)
        except ValueError:
            if first:
                del self._fit
            raise
        self._calls += 1
        self._follow(began)
        return self

    def calibrate(self, views: Any) -> Self:
        """Make the convention hold exactly on these rows, as `fit` does at its end; the spans stay the same."""
        self._require_fitted()
        parameters = valid(self.get_params(deep=False))
        self._fit.require_unchanged(parameters)
        self._fit.parameters.update(parameters)
        self._publish(*self._fit.solution_on(self._read(views, reset=False)))
        return self

    def transform(self, views: Any) -> Any:
        """Project every view on its weights; in a list, views may be None.

        Returns
        -------
        list of array (N, n_components) or None, or array (N, m * n_components)
            A list for a list; for one array, the projections side by side.  float32 for float32 data.
        """
        source, scores = self._projections(views)
        if len(source.tables) < len(source.views):
            return np.hstack(list(scores.values()))
        if (container := _get_output_config("transform", self)["dense"]) != "default":
            raise ValueError(f"set_output(transform={container!r}) needs one array and view_sizes, not a list of views")
        return [scores.get(i) for i in range(len(source.sizes))]

    def predict_views(self, views: Any) -> list[Array | None]:
        """Predict each view, (N, n_i), from the others given, by least squares on their projections.

        Views may be None, as is the prediction of a view without others.
        """
        (_, scores), structure = self._projections(views, np.float64), self._structure
        gaps = [structure.predict(scores, i) for i in range(len(self.means_))]
        return [None if gap is None else mean + gap for gap, mean in zip(gaps, self.means_, strict=True)]

    @property
    def _structure(self) -> Structure:
        self._require_fitted()
        return self._fit.structure(np.concatenate(self.weights_) / np.concatenate(self.scales_)[:, None])

    @property
    def loadings_(self) -> list[Array]:
        """Correlation of each column with its view's projections, (n_i, n_components) per view."""
        return self._structure.loadings()

    @property
    def explained_variance_ratio_(self) -> Array:
        """Share of each view's variance that its projection explains, (m, n_components)."""
        return self._structure.explained_variance_ratio(np.concatenate(self.scales_))

    def score(self, views: Any, y: Any = None) -> float:
        """Total correlation captured on these rows, centred on them if `center`.

        For two views the paper's TCC of their projections; for more the sum of the mean correlations of two views.
        """
        self._require_fitted()
        source, fit = read_features(self, views, at_least=2, reset=False), self._fit
        projected = (self._scores(blocks, np.float64, source.views) for blocks in source.batches(MEASURED_ROWS))
        return convention.total_correlation(streamed_moments(projected, fit.parameters["center"]), fit.merit)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the projections, view after view: ``view0_0``, ``view0_1``, ..."""
        self._require_fitted()
        return np.array([f"view{i}_{r}" for i, w in enumerate(self.weights_) for r in range(w.shape[1])], dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_fit") and self._fit.rows > 0

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.two_d_array = self.view_sizes is not None
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _read(self, views: Any, reset: bool) -> Source | Stream:
        """Views that passes can be made over; with `reset`, those of a new fit."""
        if is_stream(views):
            return Stream(views, lambda chunk: read_chunk(self, chunk, reset=not hasattr(self, "_fit"), at_least=0))
        return read_features(self, views, at_least=2, reset=reset)

    def _scores(self, blocks: list[ViewRows], dtype: Any, views: Sequence[int]) -> list[Array]:
        W = [self.weights_[i] / self.scales_[i][:, None] for i in views]
        return [np.asarray(Z @ w - self.means_[i] @ w, dtype) for Z, w, i in zip(blocks, W, views, strict=True)]

    def _projections(self, views: Any, dtype: Any = None) -> tuple[Source, dict[int, Array]]:
        """The data, and by the number of each view that is given its projections (N, p)."""
        self._require_fitted()
        source = read_features(self, views, at_least=1, some=True)
        parts = (self._scores(blocks, dtype or source.dtype, source.views) for blocks in source.batches(MEASURED_ROWS))
        return source, dict(zip(source.views, map(np.concatenate, zip(*parts, strict=True)), strict=True))

    def _forget(self) -> None:
        """Begin anew, so that a fit that fails leaves no mixture of two."""
        self._order_seed, self._start_seed = check_random_state(self.random_state).randint(2**31 - 1, size=2).tolist()
        self.n_epochs_ = self._calls = self._due = 0
        for name in ("_fit", *LAZY):
            self.__dict__.pop(name, None)

    def _begin_fit(self, rows: int | None) -> None:
        self._fit = Fit(valid(self.get_params(deep=False)), self.n_features_per_view_, rows, self._start_seed)
        self.algorithm_, self.penalty_, self.batch_size_ = self._fit.algorithm, self._fit.penalty, self._fit.batch_size

    def _pass(self, data: Source | Stream, order: np.random.Generator | None, epoch: int, began: float) -> None:
        """One pass over the data, with a line now and then."""
        said, done, rows = time.perf_counter(), 0, data.n_samples

        def size() -> int:
            if not hasattr(self, "_fit"):
                self._begin_fit(rows)
            return self._fit.rows_at_once

        if rows is not None and size() and self.algorithm_ == "exact":
            order = None  # sums need none
        for blocks in data.batches(size, order):
            self._fit.advance(blocks, epoch)
            done += blocks[0].shape[0]
            if self.verbose and time.perf_counter() - said > QUIET_SECONDS:
                said = time.perf_counter()
                part = f"{done:,} rows" + (f" of {rows:,} ({done / rows:.0%})" if rows else "")
                print(f"[{type(self).__name__}] pass {epoch}: {part}, {said - began:.0f} s", flush=True)
        if epoch == 1:
            self._fit.resolve(data)

    def _require_fitted(self) -> None:
        """Use up the rows that wait; NotFittedError if there never were any."""
        if hasattr(self, "_fit") and self._fit.use_waiting():
            self._follow(time.perf_counter())
        check_is_fitted(self)

    def _follow(self, began: float) -> None:
        """Publish after a call of `partial_fit`, and judge whenever the rows have doubled."""
        fit = self._fit
        self._count()
        later = fit.algorithm == "exact" and not (self.callbacks or self.verbose)
        for name in LAZY if later else LAZY[-2:]:  # `__getattr__` solves, or judges, when one is asked for
            self.__dict__.pop(name, None)
        if fit.rows and not later:
            solution, due = fit.solution(latest=True)[0], fit.rows >= self._due
            self._due = 2 * fit.rows if due else self._due
            self._publish(solution, fit.solution()[1] if due else None)
            self._report(self._calls, solution.captured, began)

    def __getattr__(self, name: str) -> Any:
        """Solve, or judge, what `partial_fit` has left to the first use."""
        fit = vars(self).get("_fit") if name in LAZY else None
        if not fit or not (fit.rows or (fit.algorithm == "exact" and fit.use_waiting())):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self._publish(fit.solution(latest=self._calls > 0)[0], fit.solution()[1])
        return vars(self)[name]

    def __copy__(self) -> Self:
        """Share the parameters alone, since `partial_fit` changes all else in place."""
        return copy.deepcopy(self, {id(value): value for value in self.get_params(deep=False).values()})

    def __getstate__(self) -> Any:
        if hasattr(self, "_fit") and self._fit.use_waiting():
            self._follow(time.perf_counter())
        return super().__getstate__()

    def _publish(self, solution: convention.Solution, share: float | None = None) -> None:
        """Set the attributes of a model, and warn if its share of the exact solution is too small, or not known."""
        fit, deviation = self._fit, np.sqrt(self._fit.solver.moments.variance)
        scale = np.where((deviation > 0) & fit.parameters["scale"], deviation, 1.0)
        weights, mean = solution.weights * scale[:, None], fit.solver.mean.copy()
        self.weights_, self.means_, self.scales_ = ([a[view] for view in fit.slices] for a in (weights, mean, scale))
        self.canonical_correlations_ = solution.correlations
        self.explained_covariance_ = convention.covariances_along_unit_weights(solution.K, self.weights_)
        self._count()
        if share is not None:
            doubt = reason_for_doubt(share, fit, self.n_epochs_ > 0)
            self.captured_, self.converged_ = share, not doubt
            if doubt:
                warnings.warn(doubt, ConvergenceWarning, stacklevel=3)

    def _count(self) -> None:
        self.n_samples_seen_, self.n_outliers_ = self._fit.rows, self._fit.n_outliers
        self.restarts_ = getattr(self._fit.solver, "restarts", [])
        if self._fit.report:
            warnings.warn(self._fit.report, stacklevel=4)
            self._fit.report = ""

    def _report(self, epoch: int, captured: float, began: float) -> bool:
        """Print a line and call the callbacks; whether one returns True."""
        step, seconds = getattr(self._fit.solver, "step_size", 1.0), time.perf_counter() - began
        if self.verbose:
            words = f"correlation captured {captured:.4f}, step_size {step:g}, {seconds:.1f} s"
            print(f"[{type(self).__name__}] pass {epoch}: {self._fit.rows:,} rows seen, {words}", flush=True)
        progress = Progress(epoch, self._fit.rows, captured, step, seconds)
        listed = [self.callbacks] if callable(self.callbacks) else (self.callbacks or [])
        answers = [callback(self, progress) for callback in listed]
        return any(isinstance(answer, bool | np.bool_) and answer for answer in answers)
