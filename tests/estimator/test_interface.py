"""What scikit-learn asks of an estimator, progress, and the cost of importing the package."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import cdfsg
from cdfsg import StochasticGCCA
from cdfsg.estimator import Progress, gcca
from tests.estimator.data import chunks, digits, online, stacked, synthetic

pytestmark = pytest.mark.filterwarnings("ignore:not converged")


@pytest.mark.filterwarnings("ignore:.*goes on from the average")
@parametrize_with_checks(
    [StochasticGCCA(view_sizes="halves"), StochasticGCCA(view_sizes="halves", algorithm="cdfsg", merit="huber")]
)
def test_scikit_learn_finds_nothing_wrong(estimator, check):
    check(estimator)


def test_it_stands_in_a_pipeline_and_names_its_projections():
    both = np.hstack(synthetic())
    model = make_pipeline(StandardScaler(), StochasticGCCA(2, view_sizes=(8, 6), random_state=0))
    names = model.set_output(transform="pandas").fit_transform(both).columns
    assert names.tolist() == ["view0_0", "view0_1", "view1_0", "view1_1"]


def test_other_seeds_give_other_orders_and_the_same_seed_the_same():
    views = digits()
    one, same, other = (online(2, n_epochs=3, random_state=seed).fit(views) for seed in (0, 0, 1))
    np.testing.assert_array_equal(stacked(one), stacked(same))
    assert not np.array_equal(stacked(one), stacked(other))
    np.testing.assert_allclose(one.canonical_correlations_, other.canonical_correlations_, atol=0.05)


def test_callbacks_follow_passes_and_calls_and_may_end_the_fit():
    told = []
    views = synthetic()
    settings = {"n_epochs": 4, "tol": 0, "random_state": 0}
    model = online(2, callbacks=lambda *given: told.append(given), **settings).fit(views)
    models, progress = zip(*told, strict=True)
    assert [(one.epoch, one.rows) for one in progress] == [(1, 2000), (2, 4000), (3, 6000), (4, 8000)]
    assert {id(one) for one in models} == {id(model)} and isinstance(progress[0], Progress)
    assert progress[-1].captured == pytest.approx(model.canonical_correlations_.sum(), rel=0.05)
    assert progress[-1].step_size == 1.0 and progress[-1].seconds > 0
    ended = online(2, callbacks=[lambda model, progress: np.bool_(progress.epoch == 2), lambda *_: None], **settings)
    assert ended.fit(views).n_epochs_ == 2
    calls = []
    model = online(1, callbacks=[lambda model, progress: calls.append((progress.epoch, progress.rows))])
    for chunk in chunks(synthetic(300), 100):
        model.partial_fit(chunk)
    assert calls == [(1, 100), (2, 200), (3, 300)]


def test_a_fit_ends_once_it_has_made_fifty_steps_and_misses_less_than_the_tolerance():
    model = online(1, n_epochs=50, tol=0.01, random_state=0).fit(synthetic())
    assert 2 <= model.n_epochs_ < 20 and model.captured_ >= 0.99 and model.converged_
    loose = online(1, n_epochs=50, tol=0.9, batch_size=100, random_state=0).fit(synthetic(1000))
    assert loose.n_epochs_ == 5  # of ten steps each
    assert online(1, n_epochs=8, tol=0, random_state=0).fit(synthetic()).n_epochs_ == 8


def test_verbose_prints_a_line_per_pass_and_more_in_long_ones(capsys, monkeypatch):
    online(1, n_epochs=2, verbose=1, random_state=0).fit(synthetic())
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 and lines[1].startswith("[StochasticGCCA] pass 2: 4,000 rows seen, correlation captured 0.")
    monkeypatch.setattr(gcca, "QUIET_SECONDS", 0.0)
    online(1, n_epochs=1, batch_size=500, verbose=1, random_state=0).fit(synthetic())
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5 and "pass 1: 1,000 rows of 2,000 (50%)" in lines[1]
    online(1, n_epochs=1, random_state=0).fit(synthetic())
    assert capsys.readouterr().out == ""


def test_the_package_loads_the_estimator_only_when_asked():
    code = "import cdfsg, sys; print(*sorted({'sklearn', 'pandas', 'scipy', 'matplotlib'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "\n"


def test_the_package_has_nothing_else_to_import():
    with pytest.raises(AttributeError, match="module 'cdfsg' has no attribute 'GCCA'"):
        _ = cdfsg.GCCA


def test_one_view_alone_is_projected_as_beside_the_others():
    views = synthetic(sizes=(8, 6, 7))
    model = StochasticGCCA(2, n_epochs=1, random_state=0).fit(views)
    first, second, third = model.transform(views)
    alone, *others = model.transform([views[0], None, None])
    np.testing.assert_array_equal(alone, first)
    assert others == [None, None]
    two = model.transform([None, sparse.csr_array(views[1]), views[2].astype(np.float32)])
    assert two[0] is None
    np.testing.assert_allclose(two[1:], [second, third], atol=1e-6)
    in_one = StochasticGCCA(2, n_epochs=1, random_state=0, view_sizes=(8, 6, 7)).fit(np.hstack(views))
    np.testing.assert_array_equal(in_one.transform([None, None, views[2]])[2], third)


def test_one_view_alone_must_have_the_columns_of_the_fit():
    left, right = (pd.DataFrame(view).add_prefix(name) for view, name in zip(synthetic(), "ab", strict=True))
    model = StochasticGCCA(n_epochs=1, random_state=0).fit([left, right])
    assert model.transform([None, right])[1].shape == (2000, 1)
    for views, words in [
        ([right, None], "view 0 has 6 features, but StochasticGCCA was fitted with 8"),
        ([left[left.columns[::-1]], None], "view 0 has the column 'a7', where StochasticGCCA was fitted with 'a0'"),
        ([None, right.set_axis(list("uvwxyz"), axis=1)], "view 1 has the column 'u', where .* fitted with 'b0'"),
        ([None, right.assign(b2=np.nan)], "view 1 contains NaN"),
        ([None, left.astype(str)], "view 1 has the column 'a0'"),
        ([left], r"1 view\(s\)"),
        ([None, None], r"only views \[\] are given: expected at least one"),
        ([left, None, None], "views has 3 views, but StochasticGCCA was fitted with 2"),
    ]:
        with pytest.raises(ValueError, match=words):
            model.transform(views)
    for call in (model.fit, model.partial_fit, model.score, model.calibrate):
        with pytest.raises(ValueError, match=r"only views \[1\] are given: expected all"):
            call([None, right])
