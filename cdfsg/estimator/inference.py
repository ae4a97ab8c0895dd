"""How many components are more than chance: correlations of rows held out, and a permutation test."""

import time
import warnings
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, check_cv
from sklearn.utils import Bunch, check_random_state

from cdfsg.checks import is_whole, require_share, require_whole
from cdfsg.convention import moments_of, pairwise_correlations
from cdfsg.estimator.gcca import QUIET_SECONDS, StochasticGCCA
from cdfsg.estimator.tables import read_views
from cdfsg.linalg import Array


def permutation_test(
    model: StochasticGCCA, views: Any, *, cv: Any = 5, n_permutations: int = 100, level: float = 0.05,
    random_state: Any = None,
) -> Bunch:  # fmt: skip
    """Correlations of rows held out, per component, beside those after the rows of one view were permuted.

    Rows must be exchangeable, as those of a time series are not.  With three or more views all but the first are
    permuted.

    Parameters
    ----------
    model : StochasticGCCA
        Its parameters count, and it stays as it is; no more than its `n_components` are tested.
    views : list of array_like (N, n_i), or array_like (N, n) for a model with `view_sizes`
        They are read into memory.
    cv : int, splitter of scikit-learn or iterable of (train, test), default 5
        How rows are held out, three or more in each fold.  With a single split, as by ``ShuffleSplit(1)``, only the
        rows held out are permuted, which takes one fit in all; else every permutation takes one per fold.
    n_permutations, level : int, float, default 100 and 0.05
        The least p-value is ``1 / (n_permutations + 1)``; components up to a p-value of `level` count.
    random_state : int, RandomState or None, default None
        Of the folds and permutations.

    Returns
    -------
    Bunch
        ``correlations`` (p,): mean over the folds, and over pairs of views; ``permuted`` (n_permutations, p);
        ``p_values`` (p,), each at least the one before; and ``n_components``.

    Examples
    --------
    >>> from cdfsg.datasets import make_views
    >>> from cdfsg.estimator import StochasticGCCA, permutation_test
    >>> drawn = make_views(400, (5, 4), (0.8, 0.5), seed=0)
    >>> views = [drawn.data[:, view] for view in drawn.slices]
    >>> permutation_test(StochasticGCCA(3), views, n_permutations=20, random_state=0).n_components
    2
    """
    require_whole("n_permutations", n_permutations, 1)
    require_share(level=level)
    rng, began = check_random_state(random_state), time.perf_counter()
    blocks = read_views(views, model.view_sizes, at_least=2).take(slice(None))
    folds = KFold(cv, shuffle=True, random_state=rng) if is_whole(cv, 2) else check_cv(cv)
    rows = np.arange(blocks[0].shape[0])
    try:
        splits = [(rows[train], rows[test]) for train, test in folds.split(rows[:, None])]
    except (TypeError, ValueError, IndexError) as error:
        pairs = "give pairs (train, test), as by cv=list(splitter.split(X, groups=groups))"
        raise ValueError(f"cv cannot split {len(rows)} rows: {error}; {pairs}") from error
    least = min((len(test) for _, test in splits), default=0)
    if least < 3:
        held = f"cv has {len(splits)} fold(s), the smallest with {least} row(s) held out"
        raise ValueError(f"{held}: expected folds of at least 3, since any two correlate perfectly; give other folds")
    quiet, said = clone(model).set_params(view_sizes=None, callbacks=None, verbose=0), began

    def held_out(blocks: Any) -> Any:
        fits = [clone(quiet).fit([block[train] for block in blocks]) for train, _ in splits]
        return [fit.transform([block[test] for block in blocks]) for fit, (_, test) in zip(fits, splits, strict=True)]

    def shuffled(blocks: Any) -> Any:
        return [blocks[0], *(block[rng.permutation(block.shape[0])] for block in blocks[1:])]

    found = [held_out(blocks)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of fits to noise
        for k in range(n_permutations):
            once = len(splits) == 1  # the weights do not depend on the rows held out
            found.append([shuffled(found[0][0])] if once else held_out(shuffled(blocks)))
            if model.verbose and time.perf_counter() - said > QUIET_SECONDS:
                said = time.perf_counter()
                print(f"[permutation_test] {k + 1} of {n_permutations}, {said - began:.0f} s", flush=True)
    correlations, *others = [np.mean([_correlations(Z) for Z in folds], axis=0) for folds in found]
    permuted = np.array(others)
    p_values = np.maximum.accumulate((1 + (permuted >= correlations).sum(axis=0)) / (1 + n_permutations))
    n_components = int((p_values <= level).sum())
    return Bunch(correlations=correlations, permuted=permuted, p_values=p_values, n_components=n_components)


def _correlations(projected: list[Array]) -> Array:
    P = np.stack(projected, axis=1).astype(np.float64)
    return pairwise_correlations(moments_of(P - P.mean(axis=0)))
