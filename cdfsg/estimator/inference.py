"""How many components are more than chance: correlations of rows held out, and a permutation test."""

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, check_cv
from sklearn.utils import check_random_state

from cdfsg.checks import is_whole, require_whole
from cdfsg.estimator.convention import moments_of, pairwise_correlations
from cdfsg.estimator.gcca import QUIET_SECONDS, StochasticGCCA
from cdfsg.estimator.tables import read_views
from cdfsg.linalg import Array


@dataclass(frozen=True)
class HeldOut:
    """Held-out correlations (p,), as `permutation_test` finds them, and (n_permutations, p) `permuted` ones."""

    correlations: Array
    permuted: Array

    @property
    def p_values(self) -> Array:
        """Share of the permutations with as high a correlation; no less than that of an earlier component."""
        as_high = 1 + (self.permuted >= self.correlations).sum(axis=0)
        return np.maximum.accumulate(as_high / (1 + len(self.permuted)))

    def n_components(self, level: float = 0.05) -> int:
        """How many components have a p-value of at most `level`."""
        return int((self.p_values <= level).sum())


def permutation_test(
    model: StochasticGCCA, views: Any, *, cv: Any = 5, n_permutations: int = 100, random_state: Any = None
) -> HeldOut:
    """Correlations of rows held out, per component, beside those after the rows of one view were permuted.

    Per component the mean over the folds, and over the pairs of views.  With three or more views all but the first are
    permuted.  Rows must be exchangeable; those of a time series are not.

    Parameters
    ----------
    model : StochasticGCCA
        Its parameters count, and it stays as it is; no more than its `n_components` are tested.
    views : list of array_like (N, n_i), or array_like (N, n) for a model with `view_sizes`
        They are read into memory.
    cv : int, splitter of scikit-learn or iterable of (train, test), default 5
        How rows are held out.  With a single split, as by ``ShuffleSplit(1)``, only the rows held out are permuted,
        which takes one fit in all; else every permutation takes one per fold.
    n_permutations : int, default 100
        The least p-value is 1 over one more than this.
    random_state : int, RandomState or None, default None
        Of the folds and permutations.

    Examples
    --------
    >>> from cdfsg.datasets import make_views
    >>> from cdfsg.estimator import StochasticGCCA, permutation_test
    >>> drawn = make_views(400, (5, 4), (0.8, 0.5), seed=0)
    >>> views = [drawn.data[:, view] for view in drawn.slices]
    >>> model = StochasticGCCA(3, n_epochs=20, random_state=0)
    >>> permutation_test(model, views, n_permutations=20, random_state=0).n_components()
    2
    """
    require_whole("n_permutations", n_permutations, 1)
    rng, began = check_random_state(random_state), time.perf_counter()
    blocks = read_views(views, model.view_sizes, at_least=2).take(slice(None))
    folds = KFold(cv, shuffle=True, random_state=rng) if is_whole(cv, 2) else check_cv(cv)
    splits = list(folds.split(np.empty((blocks[0].shape[0], 0))))
    quiet, said = clone(model).set_params(view_sizes=None, callbacks=None, verbose=0), began

    def held_out(blocks: Any) -> Any:
        fits = [clone(quiet).fit([block[train] for block in blocks]) for train, _ in splits]
        return [fit.transform([block[test] for block in blocks]) for fit, (_, test) in zip(fits, splits, strict=True)]

    def permuted(blocks: Any) -> Any:
        return [blocks[0], *(block[rng.permutation(block.shape[0])] for block in blocks[1:])]

    found = [held_out(blocks)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of fits to noise
        for k in range(n_permutations):
            once = len(splits) == 1  # the weights do not depend on the rows held out
            found.append([permuted(found[0][0])] if once else held_out(permuted(blocks)))
            if model.verbose and time.perf_counter() - said > QUIET_SECONDS:
                said = time.perf_counter()
                print(f"[permutation_test] {k + 1} of {n_permutations}, {said - began:.0f} s", flush=True)
    correlations = [np.mean([_correlations(Z) for Z in folds], axis=0) for folds in found]
    return HeldOut(correlations[0], np.array(correlations[1:]))


def _correlations(projected: list[Array]) -> Array:
    P = np.stack(projected, axis=1).astype(np.float64)
    return pairwise_correlations(moments_of(P - P.mean(axis=0)))
