"""The estimator: (generalised) canonical correlation analysis of two or more views by CDFSG or CDFSG-Ada."""

import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, check_random_state, metadata_routing
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted, validate_data

from cdfsg.checks import is_real, is_whole, require_positive
from cdfsg.estimator import steps
from cdfsg.estimator.convention import Settled, moments_of, total_correlation
from cdfsg.estimator.inputs import MEASURED_ROWS, Block, Source, Stream, dimensions, is_stream, read_views
from cdfsg.estimator.learner import ALGORITHMS, Learner, Plan, Restart
from cdfsg.linalg import Array, view_slices
from cdfsg.merits import MERITS, make_merit

BATCH_SIZE = 100
"""Rows of a minibatch where the data have plenty, as in the paper's middle setting."""
STEPS_PER_PASS = 40
"""Fewer minibatches in a pass than this, and they are made smaller, down to `LEAST_BATCH` rows."""
LEAST_BATCH = 20
ROUNDING = 1e-13
"""Deviation of a projection, relative to its largest value, that is rounding: the projection is constant."""
QUIET_SECONDS = 5.0
"""A pass that takes longer says in between how far it is, if verbose."""
PUBLISHED = ("weights_", "means_", "scales_", "canonical_correlations_", "explained_covariance_")
"""What `StochasticGCCA._publish` sets and depends on the weights."""
FEW_STEPS = 50
"""Passes of fewer steps in all have not converged, whatever they gained: a few minibatches say little of the next."""
STILL_GROWING = 0.05
"""A fit has not converged if the gains of its last passes promise to add more than this share."""


@dataclass(frozen=True)
class Progress:
    """What callbacks are told.

    Attributes
    ----------
    epoch : int
        Passes made; in `partial_fit` the number of the call.
    rows : int
        Rows seen since the start; a row seen twice counts twice.
    captured : float
        Sum of the canonical correlations, estimated from the last 10,000 rows, each projected before it moved the
        weights.
    step_size : float
        Multiple of the default step, halved by each restart.
    seconds : float
        Since the call began.
    """

    epoch: int
    rows: int
    captured: float
    step_size: float
    seconds: float


class StochasticGCCA(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    r"""(Generalised) canonical correlation analysis of data larger than memory, one minibatch at a time.

    Finds weights :math:`X = (X_1; \dots; X_m)` that maximise

    .. math:: \sum_r \sum_{i \ne j} g(x_r^{[i]\top} S_{ij} x_r^{[j]}) \quad\text{subject to}\quad
              \sum_i X_i^\top S_{ii} X_i = I_p,

    where :math:`S_{ij}` are the (cross-)covariances of the views, by Algorithm 1 (CDFSG) or 2 (CDFSG-Ada) of Jiang,
    Xiao and Liu.  The state is n-by-p and p-by-p; no covariance is formed, sparse rows are never made dense, and
    nothing grows with the number of rows.  The default step sizes need no tuning: see *Notes*.

    Parameters
    ----------
    n_components : int, default 1
        Number p of canonical directions, at most the width of the narrowest view.
    merit : {"identity", "huber"}, default "identity"
        The merit g.  The identity is classical CCA, for three or more views SUMCOR with a joint constraint.  Huber's
        levels large covariances, so that no pair of views and no component dominates; it is even, so that with two
        views a pair (a, b) can come twice, the second time as (a, -b) with a negative correlation.
    mu : float, default 0.05
        Threshold of the Huber merit, in units of a covariance of projections, which is at most 1/m.
    algorithm : {"cdfsg-ada", "cdfsg"}, default "cdfsg-ada"
        With Adam's step sizes per entry, or with one step size.
    batch_size : int or "auto", default "auto"
        Rows of a minibatch.  "auto": 100, or fewer, down to 20, where a pass would have less than 40 of them.
    n_epochs : int, default 5
        Passes over the data in `fit`, at most; an iterator that cannot be started again is read once.
    penalty : float or None, default None
        The penalty parameter beta.  None: ``2 g (m - 1)`` with g the largest slope of the merit (1 for the identity,
        mu for Huber).  Below ``3/2 g (m - 1)`` the penalty function can fall without bound.
    step_size : float, default 1.0
        Multiple of the default step, see *Notes*.
    tracking : float, default 0.2
        The step b of the tracker of X'MX, in (0, 1].
    center : bool, default True
        Subtract the mean, implicitly; it is estimated as the rows come.
    scale : bool, default False
        Let weights and `transform` refer to columns divided by their standard deviation.  The canonical correlations
        do not depend on it, nor does the fit, which scales columns by itself.
    tol : float, default 1e-3
        `fit` ends early after two passes in a row that each add less than this share to the captured correlation;
        0 for never.
    shuffle : bool, default True
        Visit the rows in random order in `fit`, another one in each pass.  Rows of an iterator are taken as they come.
    view_sizes : sequence of int, "halves" or None, default None
        Widths of the views in a single array with the views side by side; "halves": two views, the left and the right
        half of the columns.  None: the data are a list of views.
    random_state : int, RandomState or None, default None
        Of the start and of the order of the rows.
    verbose : int, default 0
        1 prints a line per pass, and one every five seconds.
    callbacks : callable, sequence of callables or None, default None
        Called as ``callback(estimator, progress)`` after each pass and each call of `partial_fit`, with a `Progress`;
        `fit` ends where one returns True.

    Attributes
    ----------
    weights_ : list of array (n_i, n_components), float64
        Canonical weights of each view, of its centred (and scaled) columns.  Convention: over the rows measured,
        ``sum_i w_i' S_ii w_i = I``; columns in descending order of the magnitude of `canonical_correlations_`; in each
        column the entry of the largest magnitude in the first view is positive.
    canonical_correlations_ : array (n_components,)
        Correlation of the views' projections per component; with three or more views the mean over their pairs.
        After `fit` over all training rows, by a last pass that changes nothing else; after `partial_fit`, and where
        `fit` read an iterator that cannot be started again, over about the last 10,000 rows, each projected before it
        moved the weights.
    explained_covariance_ : array (n_components,)
        Covariance of the views' projections along weights of unit length in the data's units (of standard deviations
        if `scale`), averaged over the pairs of views: what PLS would maximise.
    means_, scales_ : list of array (n_i,), float64
        What `transform` subtracts (zeros unless `center`) and divides by (ones unless `scale`).
    n_features_per_view_ : tuple of int
    n_features_in_ : int
        Columns of all views together.
    feature_names_in_ : array of str
        Names of all columns, view after view, where the data were DataFrames.
    n_samples_seen_ : int
        Rows seen by `partial_fit` or `fit`, repeats included.
    n_epochs_ : int
        Passes made by `fit`.
    converged_ : bool
        False if `fit` warned that the captured correlation was still growing, or that it made too few steps to tell.
    restarts_ : list of Restart
        Divergences: after how many rows, why, and the step size from there.
    penalty_, batch_size_ : float, int
        What the defaults came to.

    Notes
    -----
    **Step sizes.**  Every column is divided by its largest deviation from the mean so far, and every view by the root
    of its minibatch covariance's top eigenvalue, estimated on the first ten minibatches.  In these coordinates CDFSG
    takes the step ``2 step_size / (4 beta + 2 g (m - 1))``, two over the largest curvature, and CDFSG-Ada the step
    ``0.15 step_size / sqrt(tr M + n)``, which moves a column by at most 0.15 of its length.  After k minibatches
    both are multiplied by ``(1 + k / 4000)^(-1/2)``.  The result is an average of the iterates, in which late ones
    weigh more.  Scaling columns by any factors changes nothing but rounding.

    **Divergence.**  Where the tracked X'MX loses positive definiteness or grows beyond 10, the fit goes on from the
    average of its iterates with half the step size, and warns.

    References
    ----------
    L. Jiang, N. Xiao, X. Liu: Stochastic optimization over expectation-formulated generalized Stiefel manifold.
    The start and the averages are ours; so is the use of one minibatch as both of the algorithm's samples.

    Examples
    --------
    >>> from cdfsg import StochasticGCCA
    >>> from cdfsg.datasets import load_digits
    >>> digits = load_digits()
    >>> left, right = (digits.data[:, view] for view in digits.slices)
    >>> model = StochasticGCCA(n_components=2, random_state=0).fit([left, right])
    >>> z_left, z_right = model.transform([left, right])
    >>> z_left.shape
    (1797, 2)
    """

    # No metadata but the views: else scikit-learn would make methods to request them.
    __metadata_request__fit: ClassVar = {"views": metadata_routing.UNUSED}
    __metadata_request__partial_fit: ClassVar = {"views": metadata_routing.UNUSED}
    __metadata_request__transform: ClassVar = {"views": metadata_routing.UNUSED}
    __metadata_request__score: ClassVar = {"views": metadata_routing.UNUSED}

    def __init__(
        self,
        n_components: int = 1,
        *,
        merit: str = "identity",
        mu: float = 0.05,
        algorithm: str = "cdfsg-ada",
        batch_size: int | str = "auto",
        n_epochs: int = 5,
        penalty: float | None = None,
        step_size: float = 1.0,
        tracking: float = steps.TRACKING,
        center: bool = True,
        scale: bool = False,
        tol: float = 1e-3,
        shuffle: bool = True,
        view_sizes: Sequence[int] | str | None = None,
        random_state: Any = None,
        verbose: int = 0,
        callbacks: Callable[..., Any] | Sequence[Callable[..., Any]] | None = None,
    ) -> None:
        self.n_components = n_components
        self.merit = merit
        self.mu = mu
        self.algorithm = algorithm
        self.batch_size = batch_size
        self.n_epochs = n_epochs
        self.penalty = penalty
        self.step_size = step_size
        self.tracking = tracking
        self.center = center
        self.scale = scale
        self.tol = tol
        self.shuffle = shuffle
        self.view_sizes = view_sizes
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks

    # --- fitting -----------------------------------------------------------------------------------------

    def fit(self, views: Any, y: Any = None) -> Self:
        """Fit to all rows, in `n_epochs` passes and one more that only measures.

        Parameters
        ----------
        views : list of array_like (N, n_i), array_like (N, n), iterator or callable
            A list of views; or one array, if `view_sizes` is given.  A view is an array, a memory-mapped file, a
            DataFrame, a sparse matrix or a Dask array.  An iterator gives such lists or arrays, chunk by chunk, and
            is read once; a callable returns a new iterator for every pass.
        y : None
            Ignored.

        Returns
        -------
        StochasticGCCA

        Raises
        ------
        ValueError
            If a parameter or the data are not what they should be, the message names which; or if the fit diverged
            after 20 restarts.
        """
        self._check_parameters()
        began = time.perf_counter()
        data = self._stream(views, reset=True) if is_stream(views) else self._source(views, at_least=2, reset=True)
        rows = None if isinstance(data, Stream) else data.n_samples
        self._begin(self._minibatch(rows), None if isinstance(data, Stream) else data)
        order = np.random.default_rng(self._order_seed) if self.shuffle else None
        once = isinstance(data, Stream) and not data.again
        history: list[float] = []
        for epoch in range(1, 2 if once else self.n_epochs + 1):
            self._pass(data, order, epoch, rows, began)
            self.n_epochs_ = epoch
            history.append(self._running().captured)
            if self._tell(epoch, history[-1], began) or _has_settled(history, self.tol):
                break
        settled = self._running() if once else self._measured(data)
        self._publish(settled)
        self._judge(history, settled.captured)
        return self

    def partial_fit(self, views: Any, y: Any = None) -> Self:
        """Go on with the fit on the rows given, once, in their order.

        They are taken as minibatches of `batch_size` rows (100 if "auto"), of which the last may be smaller.  Over the
        same minibatches `fit` makes the same steps; its last pass, which makes the convention hold exactly, is here
        `calibrate`.

        Parameters
        ----------
        views : list of array_like (l, n_i), or array_like (l, n)
            As for `fit`, but no iterator.  The first call needs more rows than `n_components`; later ones may have
            a single row.
        y : None
            Ignored.

        Returns
        -------
        StochasticGCCA

        Raises
        ------
        ValueError
            As for `fit`.
        """
        self._check_parameters()
        began = time.perf_counter()
        source = self._source(views, at_least=1)
        blocks = source.take(slice(None))  # all are checked before the first of them moves anything
        if hasattr(self, "_learner"):
            self._require_unchanged()
        else:
            self._begin(self._minibatch(None), source)
        for batch in cut(blocks, self.batch_size_):
            self._advance(batch)
        settled = self._running()
        self._publish(settled)
        self._calls += 1
        self._tell(self._calls, settled.captured, began)
        return self

    def calibrate(self, views: Any) -> Self:
        """Make the convention hold exactly on the rows given, and take the canonical correlations from them.

        The spans of the weights stay what they are; `fit` ends with this on its own data.

        Parameters
        ----------
        views : as for `fit`

        Returns
        -------
        StochasticGCCA

        Raises
        ------
        ValueError
            If the views are not like those of the fit.
        """
        check_is_fitted(self)
        stream = is_stream(views)
        data = self._stream(views, reset=False) if stream else self._source(views, at_least=2, reset=False)
        self._publish(self._measured(data))
        return self

    # --- using the fit -----------------------------------------------------------------------------------

    def transform(self, views: Any) -> Any:
        """Project every view on its weights.

        Parameters
        ----------
        views : list of array_like (N, n_i), or array_like (N, n)

        Returns
        -------
        list of array (N, n_components), or array (N, m * n_components)
            A list for a list; for one array, the projections side by side.  float32 for float32 data.
        """
        check_is_fitted(self)
        source = self._source(views, at_least=1, reset=False)
        parts: list[list[Array]] = [[] for _ in source.sizes]
        for blocks in source.batches(MEASURED_ROWS):
            for part, scores in zip(parts, self._scores(blocks), strict=True):
                part.append(scores.astype(source.dtype, copy=False))
        projected = [np.concatenate(part) for part in parts]
        if len(source.tables) == 1:
            return np.concatenate(projected, axis=1)
        container = _get_output_config("transform", self)["dense"]
        if container != "default":
            raise ValueError(
                f"set_output(transform={container!r}) asks for one table, but a list of views gives a list of arrays: "
                "give one array and its view_sizes, or set_output(transform='default')"
            )
        return projected

    def score(self, views: Any, y: Any = None) -> float:
        """Total correlation captured on the rows given.

        Parameters
        ----------
        views : as for `transform`
        y : None
            Ignored.

        Returns
        -------
        float
            For two views the sum of the canonical correlations of their projections (the paper's TCC, at most
            `n_components`); for more the sum over the components of the mean correlation of two views.  If `center`,
            the projections are centred on these rows.
        """
        check_is_fitted(self)
        source = self._source(views, at_least=2, reset=False)
        rows, shift, largest, first, second = 0, np.zeros(1), np.zeros(1), np.zeros(1), np.zeros(1)
        with np.errstate(over="ignore", invalid="ignore"):
            for blocks in source.batches(MEASURED_ROWS):
                P = np.stack(self._scores(blocks), axis=1)
                largest = np.maximum(largest, np.abs(P).max(axis=0))
                if self.center:  # about a row: the square of a mean far from zero would cost all digits
                    shift = P[0] if not rows else shift
                    P = P - shift
                rows, first, second = rows + len(P), first + P.sum(axis=0), second + moments_of(P) * len(P)
            mean, K = first / rows, second / rows
            if self.center:
                K = K - np.einsum("ip,jq->ijpq", mean, mean)
        _require_finite_moments(K)
        varies = np.sqrt(np.maximum(np.einsum("iipp->ip", K), 0)) > ROUNDING * largest
        return total_correlation(K * varies[:, None, :, None] * varies[None, :, None, :])

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the projections, view after view: ``view0_0``, ``view0_1``, ...

        Parameters
        ----------
        input_features : None
            Ignored.

        Returns
        -------
        array of str, shape (m * n_components,)
        """
        check_is_fitted(self)
        widths = [weights.shape[1] for weights in self.weights_]
        return np.array([f"view{i}_{r}" for i, width in enumerate(widths) for r in range(width)], dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        """Whether there are weights."""
        return hasattr(self, "weights_")

    def __sklearn_tags__(self) -> Tags:
        """What scikit-learn asks about the input."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.two_d_array = self.view_sizes is not None
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    # --- data --------------------------------------------------------------------------------------------

    def _source(self, views: Any, *, at_least: int, reset: bool | None = None) -> Source:
        """Read views, and hold them against those of the fit unless a new one begins."""
        reset = not hasattr(self, "_learner") if reset is None else reset
        table = not isinstance(views, list | tuple) and dimensions(views) == 2
        if table and not reset:
            validate_data(self, views, reset=False, skip_check_array=True)  # number and names of the columns
        source = read_views(views, self.view_sizes, at_least=at_least)
        if table and reset:
            validate_data(self, views, reset=True, skip_check_array=True)
        names = _names(views) if isinstance(views, list | tuple) else None
        if reset:
            self.n_features_per_view_ = source.sizes
            self.n_features_in_ = sum(source.sizes)
            if isinstance(views, list | tuple):
                self.__dict__.pop("feature_names_in_", None)
            if names is not None:
                self.feature_names_in_ = names
            return source
        name = type(self).__name__
        if len(source.sizes) != len(self.n_features_per_view_):
            fitted = len(self.n_features_per_view_)
            raise ValueError(f"views has {len(source.sizes)} views, but {name} was fitted with {fitted}; give {fitted}")
        for i, (got, fitted) in enumerate(zip(source.sizes, self.n_features_per_view_, strict=True)):
            if got != fitted:
                raise ValueError(f"view {i} has {got} features, but {name} was fitted with {fitted}; give {fitted}")
        fitted_names = getattr(self, "feature_names_in_", None)
        if names is not None and fitted_names is not None and not np.array_equal(names, fitted_names):
            raise ValueError(
                f"the names of the columns, or their order, are not those that {name} was fitted with: expected "
                f"{', '.join(fitted_names[:5])}{', ...' * (len(fitted_names) > 5)}"
            )
        return source

    def _stream(self, make: Any, reset: bool) -> Stream:
        first = [reset]

        def read(chunk: Any) -> Source:
            return self._source(chunk, at_least=1, reset=first.pop() if first else False)

        if hasattr(make, "__next__"):
            return Stream(lambda: make, False, read)
        return Stream(lambda: _iterator_of(make()), True, read)

    def _scores(self, blocks: list[Block]) -> list[Array]:
        """Projections of the rows on the weights, one array (l, p) per view."""
        scaled = [weights / scale[:, None] for weights, scale in zip(self.weights_, self.scales_, strict=True)]
        triples = zip(blocks, scaled, self.means_, strict=True)
        return [np.asarray(block @ weights - mean @ weights) for block, weights, mean in triples]

    # --- a fit in progress -------------------------------------------------------------------------------

    def _begin(self, batch_size: int, source: Source | None) -> None:
        """Forget the fit there was; the data of the new one are known now, or with the first minibatch."""
        order, start = _random_state(self.random_state).randint(2**31 - 1, size=2)
        self._order_seed, self._start_seed = int(order), int(start)
        self.batch_size_ = batch_size
        self.restarts_: list[Restart] = []
        self.n_epochs_, self.converged_, self._calls = 0, True, 0
        for name in ("_learner", *PUBLISHED):  # a fit that fails leaves no mixture of two
            self.__dict__.pop(name, None)
        if source is not None:
            self._require_components(source.sizes)

    def _pass(self, data: Source | Stream, order: Any, epoch: int, rows: int | None, began: float) -> None:
        """One pass over the data, with a line now and then if it takes long."""
        said, done = time.perf_counter(), 0
        for blocks in data.batches(self.batch_size_, order):
            self._advance(blocks)
            done += blocks[0].shape[0]
            if self.verbose and time.perf_counter() - said > QUIET_SECONDS:
                said = time.perf_counter()
                part = f"{done:,} rows" + (f" of {rows:,} ({done / rows:.0%})" if rows else "")
                self._say(f"pass {epoch}: {part}, {said - began:.0f} s")
        if not done:
            raise ValueError("the iterator gave no rows; if it was read before, make a new one")

    def _advance(self, blocks: list[Block]) -> None:
        """One minibatch; warns where it led to a restart."""
        if not hasattr(self, "_learner"):
            learner = Learner(self._plan(blocks))
            learner.advance(blocks)  # where the first minibatch will not do, nothing of it is kept
            self._learner = learner
        else:
            self._learner.advance(blocks)
        found = self._learner.restarts
        for restart in found[len(self.restarts_) :]:
            self.restarts_ = list(found)
            warnings.warn(
                f"{restart.why} after {restart.rows:,} rows; the fit goes on from the average of its iterates with "
                f"step_size={restart.step_size:g}. If this comes again and again, raise batch_size "
                f"(now {self.batch_size_}) or begin with that step_size",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _plan(self, blocks: list[Block]) -> Plan:
        sizes = tuple(int(block.shape[1]) for block in blocks)
        self._require_components(sizes)
        merit = make_merit(self.merit, self.mu)
        penalty = steps.penalty_parameter(merit, len(sizes)) if self.penalty is None else float(self.penalty)
        return Plan(
            sizes=sizes,
            p=int(self.n_components),
            merit=merit,
            algorithm=self.algorithm,
            batch_size=self.batch_size_,
            beta=penalty,
            step_size=float(self.step_size),
            tracking=float(self.tracking),
            centred=bool(self.center),
            dtype=blocks[0].dtype,
            seed=self._start_seed,
        )

    def _minibatch(self, rows: int | None) -> int:
        """Rows of a minibatch for so many rows in all, None if that is not known."""
        if isinstance(self.batch_size, str):
            least = max(LEAST_BATCH, 2 * self.n_components)
            wanted = max(least, BATCH_SIZE if rows is None else min(BATCH_SIZE, rows // STEPS_PER_PASS))
            return wanted if rows is None else min(wanted, rows)
        if rows is not None and self.batch_size > rows:
            raise ValueError(
                f"batch_size={self.batch_size}, but there are {rows} rows: expected at most that; use 'auto'"
            )
        return int(self.batch_size)

    def _running(self) -> Settled:
        """The fit so far, by the running moments of its projections."""
        return self._learner.settled()

    def _measured(self, data: Source | Stream) -> Settled:
        """The fit so far, by the moments of its projections over all rows."""
        rows, K = 0, None
        for blocks in data.batches(MEASURED_ROWS):
            P = self._learner.project(blocks)
            part = moments_of(P) * len(P)
            rows, K = rows + len(P), part if K is None else K + part
        if K is None:
            raise ValueError("the iterator gave no rows; if it was read before, make a new one")
        _require_finite_moments(K)
        settled = self._learner.settled(K / rows)
        spanned = int((np.einsum("iipp->p", settled.K) > 0.5).sum())
        if spanned < len(settled.correlations):
            raise ValueError(
                f"the rows of every view span at most {spanned} directions, so that n_components={self.n_components} "
                f"projections cannot be made orthonormal: expected at most {spanned}; ask for fewer, or give more rows"
            )
        return settled

    def _publish(self, settled: Settled) -> None:
        """Set what users read."""
        learner = self._learner
        slices = view_slices(learner.plan.sizes)
        deviation = np.sqrt(learner.moments.variance)
        scale = np.where(deviation > 0, deviation, 1.0) if self.scale else np.ones_like(deviation)
        weights = settled.weights * scale[:, None]
        self.weights_ = [weights[view] for view in slices]
        self.means_ = [learner.mean[view].copy() for view in slices]
        self.scales_ = [scale[view] for view in slices]
        self.canonical_correlations_ = settled.correlations
        self.explained_covariance_ = _along_unit_weights(settled.K, self.weights_)
        self.penalty_ = learner.plan.beta
        self.n_samples_seen_ = learner.moments.rows

    def _tell(self, epoch: int, captured: float, began: float) -> bool:
        """Print a line and call the callbacks; whether one of them wants to stop."""
        learner = self._learner
        step_size = learner.plan.step_size * 0.5 ** len(learner.restarts)
        progress = Progress(epoch, learner.moments.rows, captured, step_size, time.perf_counter() - began)
        if self.verbose:
            self._say(
                f"pass {epoch}: {progress.rows:,} rows seen, correlation captured {captured:.4f}, "
                f"step_size {step_size:g}, {progress.seconds:.1f} s"
            )
        listed = [self.callbacks] if callable(self.callbacks) else (self.callbacks or [])
        answers = [callback(self, progress) for callback in listed]
        return any(answer is True for answer in answers)

    def _say(self, words: str) -> None:
        print(f"[{type(self).__name__}] {words}", file=sys.stdout, flush=True)

    def _judge(self, history: list[float], captured: float) -> None:
        """Warn where the captured correlation was still growing when the passes were used up, or the steps were few.

        What is known along the way lags behind, being of earlier iterates; `captured` is what the last pass found.
        """
        steps = self._learner.moments.rows // self.batch_size_
        if len(history) > 1 and steps < FEW_STEPS:  # who asks for a single pass is not told that it is few
            self.converged_ = False
            warnings.warn(
                f"not converged: {len(history)} passes over so few rows are {steps} steps, expected at least "
                f"{FEW_STEPS}. Raise n_epochs={self.n_epochs}, or go on with partial_fit; an exact method such as "
                "sklearn.cross_decomposition.CCA is no slower at this size",
                ConvergenceWarning,
                stacklevel=3,
            )
            return
        missing = still_to_come(history) - max(captured - history[-1], 0.0)
        if missing <= STILL_GROWING * history[-1]:
            return
        self.converged_ = False
        gain, share = (history[-1] - history[-2]) / history[-1], missing / history[-1]
        much = f"about {share:.0%}" if share < 0.5 else "more than half"
        warnings.warn(
            f"not converged after {len(history)} passes: the captured correlation grew by {gain:.1%} in the last one, "
            f"and {much} may be missing. Raise n_epochs={self.n_epochs}, or go on with "
            "partial_fit; where it stays slow, directions of little variance matter: drop near-copies of columns, or "
            "whiten small views by PCA first",
            ConvergenceWarning,
            stacklevel=3,
        )

    # --- parameters --------------------------------------------------------------------------------------

    def _require_components(self, sizes: tuple[int, ...]) -> None:
        if self.n_components > min(sizes):
            raise ValueError(
                f"n_components={self.n_components} with views of {sizes} columns: expected at most {min(sizes)}, the "
                "width of the narrowest view"
            )

    def _require_unchanged(self) -> None:
        """Refuse parameters that a fit in progress cannot follow."""
        plan = self._learner.plan
        for name, begun in (("n_components", plan.p), ("merit", plan.merit.name), ("algorithm", plan.algorithm)):
            if getattr(self, name) != begun:
                raise ValueError(
                    f"{name}={getattr(self, name)!r}, but the fit began with {begun!r}: expected no change; begin a "
                    "new fit with fit, or with partial_fit of a clone"
                )

    def _check_parameters(self) -> None:
        """Refuse what no fit can use; each message names the parameter, its value and what was expected."""
        for name, least in (("n_components", 1), ("n_epochs", 1)):
            _require_whole(name, getattr(self, name), least)
        if self.batch_size != "auto":
            _require_whole("batch_size", self.batch_size, 2, "or 'auto'")
        for name in ("center", "scale", "shuffle"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise ValueError(f"{name}={getattr(self, name)!r}: expected True or False")
        _random_state(self.random_state)
        for name, known in (("merit", MERITS), ("algorithm", ALGORITHMS)):
            if not isinstance(getattr(self, name), str) or getattr(self, name) not in known:
                raise ValueError(f"{name}={getattr(self, name)!r}: expected one of {', '.join(map(repr, known))}")
        for name in ("mu", "step_size", "penalty"):
            if name != "penalty" or self.penalty is not None:
                require_positive(**{name: getattr(self, name)})
        require_positive(tracking=self.tracking)
        if self.tracking > 1:
            raise ValueError(f"tracking={self.tracking!r}: expected at most 1; the tracker extrapolates beyond")
        if not (is_real(self.tol) and 0 <= self.tol < np.inf):
            raise ValueError(f"tol={self.tol!r}: expected a number that is not negative; 0 never ends early")
        callbacks = self.callbacks if isinstance(self.callbacks, list | tuple) else [self.callbacks]
        for callback in callbacks:
            if not callable(callback) and self.callbacks is not None:
                raise ValueError(f"callbacks={self.callbacks!r}: expected callables, taking the estimator and progress")


def cut(blocks: list[Block], size: int) -> Iterator[list[Block]]:
    """Minibatches of `size` consecutive rows; the last may be smaller."""
    for begin in range(0, blocks[0].shape[0], size):
        yield [block[begin : begin + size] for block in blocks]


def still_to_come(history: Sequence[float]) -> float:
    """What further passes promise to add, if the gains per pass go on to fall like a power of the number of passes.

    The power is that by which they fell from the second pass to the last one.  A geometric series would promise too
    little: the directions of little variance come late.

    Parameters
    ----------
    history : sequence of float
        Captured correlation after each pass.  From a single one nothing can be said, and 0 is returned.
    """
    passes = len(history)
    gains = np.diff(history)
    if passes < 2 or gains[-1] <= 0:
        return 0.0
    power = 3.0 if passes == 2 else np.log(max(gains[0] / gains[-1], 1.0)) / np.log(passes / 2)
    return float(gains[-1] * passes / (max(power, 1.2) - 1))


def _has_settled(history: Sequence[float], tol: float) -> bool:
    """Whether each of the last two passes added less than the share `tol`."""
    gains = np.diff(history)
    return tol > 0 and len(gains) >= 2 and bool((gains[-2:] < tol * history[-1]).all())


def _along_unit_weights(K: Array, weights: list[Array]) -> Array:
    """Covariances of the projections along weights of unit length, averaged over the pairs of views, shape (p,)."""
    t = np.diagonal(K, axis1=-2, axis2=-1)
    lengths = np.array([np.linalg.norm(part, axis=0) for part in weights])
    lengths[lengths == 0] = np.inf
    i, j = np.triu_indices(len(K), 1)
    mean: Array = (t[i, j] / (lengths[i] * lengths[j])).mean(axis=0)
    return mean


def _names(views: Sequence[Any]) -> Array | None:
    """Names of all columns, view after view, if every view is a DataFrame with names that are strings."""
    names = [getattr(view, "columns", None) for view in views]
    if any(part is None or not all(isinstance(name, str) for name in part) for part in names):
        return None
    return np.concatenate([np.asarray(part, dtype=object) for part in names])


def _iterator_of(made: Any) -> Iterator[Any]:
    """An iterator of what a function of the user returned."""
    if not isinstance(made, Iterable):
        raise ValueError(
            f"views is a function that returned {type(made).__name__}: expected one that returns an iterator of chunks "
            "whenever it is called"
        )
    return iter(made)


def _random_state(random_state: Any) -> np.random.RandomState:
    try:
        if isinstance(random_state, bool):
            raise ValueError("a truth value")
        state: np.random.RandomState = check_random_state(random_state)
    except ValueError as error:
        raise ValueError(
            f"random_state={random_state!r}: expected None, a whole number in 0..2**32 - 1, or a "
            "numpy.random.RandomState"
        ) from error
    return state


def _require_finite_moments(K: Array) -> None:
    if not np.isfinite(K).all():
        raise ValueError(
            "views has values so large that the squares of their projections overflow: expected values of the size of "
            "those of the fit; look at the largest ones"
        )


def _require_whole(name: str, value: Any, least: int, other: str = "") -> None:
    if not is_whole(value, least):
        raise ValueError(f"{name}={value!r}: expected a whole number of at least {least}{' ' * bool(other)}{other}")
