"""Held-out correlations and the permutation test."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.stats import binom
from sklearn.model_selection import GroupKFold, LeaveOneOut, ShuffleSplit

from cdfsg.estimator import StochasticGCCA, permutation_test
from tests.estimator.data import synthetic

pytestmark = pytest.mark.filterwarnings("ignore:not converged")
QUICK = {"n_permutations": 20, "random_state": 0}


def noise(rows, *widths, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(rows, width)) for width in widths]


def test_a_p_value_is_the_share_of_permutations_with_as_high_a_correlation_and_never_falls():
    found = permutation_test(StochasticGCCA(3), synthetic(60), cv=2, n_permutations=9, level=0.1, random_state=0)
    shares = [(1 + (found.permuted[:, r] >= found.correlations[r]).sum()) / 10 for r in range(3)]
    np.testing.assert_array_equal(found.p_values, np.maximum.accumulate(shares))
    assert found.n_components == (found.p_values <= 0.1).sum()


@pytest.mark.parametrize("cv", [2, ShuffleSplit(1, test_size=0.5, random_state=0)])
def test_noise_is_significant_no_more_often_than_the_level_says(cv):
    tries, level = 50, 0.2
    p_values = [
        permutation_test(
            StochasticGCCA(1, n_epochs=1, random_state=0), noise(40, 3, 2, seed=seed), cv=cv, n_permutations=9,
            random_state=seed,
        ).p_values[0]
        for seed in range(tries)
    ]  # fmt: skip
    # The test is exact: the number below the level is binomial, and the seeds are fixed.
    assert binom.cdf((np.array(p_values) <= level).sum(), tries, level) < 0.999
    assert 0.35 < np.mean(p_values) < 0.75


@pytest.mark.parametrize("cv", [2, ShuffleSplit(1, test_size=0.4, random_state=0)])
@pytest.mark.parametrize("sizes", [(6, 5), (6, 5, 4)])
def test_as_many_components_are_found_as_the_views_share(sizes, cv):
    views = synthetic(600, sizes=sizes, condition=1.0)
    both = [np.hstack([view, extra]) for view, extra in zip(views, noise(600, *[3] * len(sizes)), strict=True)]
    found = permutation_test(StochasticGCCA(6, random_state=0), both, cv=cv, **QUICK)
    assert found.n_components == 4
    # Half the rows leave a standard error of 0.02, and a fit to the others loses a little.
    np.testing.assert_allclose(found.correlations[:2], (0.9, 0.8), atol=0.07)
    assert np.abs(found.correlations[4:]).max() < 0.2


def test_where_columns_outnumber_rows_noise_correlates_in_the_fit_and_not_in_rows_held_out():
    views = noise(60, 80, 70)
    model = StochasticGCCA(1, n_epochs=50, random_state=0)
    assert model.fit(views).canonical_correlations_[0] > 0.8
    found = permutation_test(model, views, cv=ShuffleSplit(1, test_size=0.5, random_state=0), **QUICK)
    assert abs(found.correlations[0]) < 0.5 and found.n_components == 0


def test_frames_sparse_views_and_one_array_give_what_arrays_give():
    views = [np.round(view) for view in synthetic(300)]
    model = StochasticGCCA(2, n_epochs=1, random_state=0)
    plain = permutation_test(model, views, cv=2, **QUICK)
    forms = [
        (model, [pd.DataFrame(view).add_prefix(name) for view, name in zip(views, "ab", strict=True)]),
        (StochasticGCCA(2, n_epochs=1, random_state=0, view_sizes=(8, 6)), np.hstack(views)),
        (model, [sparse.csr_array(views[0]), views[1]]),
    ]
    for one, given in forms:
        found = permutation_test(one, given, cv=2, **QUICK)
        np.testing.assert_allclose(found.permuted, plain.permuted, atol=1e-7)
    assert not hasattr(model, "weights_")


def test_groups_of_rows_may_be_held_out_together(capsys, monkeypatch):
    views, groups = synthetic(300), np.arange(300) // 50
    splits = GroupKFold(3).split(views[0], groups=groups)
    monkeypatch.setattr("cdfsg.estimator.inference.QUIET_SECONDS", 0.0)
    found = permutation_test(StochasticGCCA(n_epochs=1, verbose=1), views, cv=splits, n_permutations=2)
    assert found.permuted.shape == (2, 1)
    assert capsys.readouterr().out.splitlines()[1].startswith("[permutation_test] 2 of 2")


def test_views_that_cannot_be_split_are_refused():
    with pytest.raises(ValueError, match="n_permutations must be a whole number of at least 1, got 0"):
        permutation_test(StochasticGCCA(), synthetic(300), n_permutations=0)
    with pytest.raises(ValueError, match="cv cannot split 4 rows: Cannot have number of splits n_splits=5 greater"):
        permutation_test(StochasticGCCA(), [view[:4] for view in synthetic(300)])
    with pytest.raises(ValueError, match="views of type generator"):
        permutation_test(StochasticGCCA(), (view for view in synthetic(300)))


@pytest.mark.parametrize(
    "options, words",
    [
        ({"cv": 40}, r"cv has 40 fold\(s\), the smallest with 1 row\(s\) held out: expected folds of at least 3"),
        ({"cv": LeaveOneOut()}, r"the smallest with 1 row\(s\)"),
        ({"cv": ShuffleSplit(1, test_size=1)}, r"the smallest with 1 row\(s\)"),
        ({"cv": [(range(20), range(20, 40)), (range(38), range(38, 40))]}, r"the smallest with 2 row\(s\)"),
        ({"cv": [1, 2]}, "cv cannot split 40 rows"),
    ],
)
def test_folds_that_give_no_correlation_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        permutation_test(StochasticGCCA(), noise(40, 3, 2), n_permutations=1, **options)


def test_folds_may_be_masks_of_rows():
    views, first = noise(40, 3, 2), np.arange(40) < 20
    found = [
        permutation_test(StochasticGCCA(), views, cv=[(half(first), half(~first))], n_permutations=5, random_state=0)
        for half in (np.asarray, np.flatnonzero)
    ]
    np.testing.assert_array_equal(found[0].permuted, found[1].permuted)
