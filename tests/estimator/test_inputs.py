"""Forms in which data may come."""

import subprocess
import sys
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from cdfsg import StochasticGCCA
from cdfsg.estimator.inputs import RUNS_AT_ONCE, rebatch
from cdfsg.estimator.tables import read_views
from cdfsg.merits import Identity
from cdfsg.problems import SampledGCCA
from cdfsg.streamed import Moments, StreamedGCCA, centre_and_scale
from tests.estimator.data import chunks, stacked, synthetic

pytestmark = [pytest.mark.filterwarnings(f"ignore:{words}") for words in ("not converged", "not known to")]
SETTINGS = {"n_epochs": 2, "random_state": 0}


def counts(n_samples=1500, seed=0):
    """Views of counts, most of them zero, that share their topics."""
    rng = np.random.default_rng(seed)
    topics = rng.gamma(0.3, size=(n_samples, 3))
    return [rng.poisson(topics @ rng.gamma(0.2, size=(3, n))).astype(float) for n in (20, 15)]


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("form", ["csr_array", "csr_matrix", "csc_array", "coo_array"])
def test_sparse_views_equal_dense_ones(form, center):
    views = counts()
    dense = StochasticGCCA(2, center=center, scale=True, **SETTINGS).fit(views)
    thin = [getattr(sparse, form)(view) for view in views]
    model = StochasticGCCA(2, center=center, scale=True, **SETTINGS).fit(thin)
    # Both subtract the mean, one from the rows and one from the products: rounding, over thirty steps.
    np.testing.assert_allclose(model.canonical_correlations_, dense.canonical_correlations_, atol=1e-8)
    np.testing.assert_allclose(stacked(model), stacked(dense), atol=1e-8)
    np.testing.assert_allclose(model.transform(thin)[1], dense.transform(views)[1], atol=1e-8)
    assert model.score(thin) == pytest.approx(dense.score(views), abs=1e-8)


def test_sparse_views_may_stand_beside_dense_ones_or_side_by_side():
    views = counts()
    dense = StochasticGCCA(2, **SETTINGS).fit(views)
    mixed = StochasticGCCA(2, **SETTINGS).fit([sparse.csr_array(views[0]), views[1]])
    cut = StochasticGCCA(2, view_sizes=(20, 15), **SETTINGS).fit(sparse.csr_array(np.hstack(views)))
    np.testing.assert_allclose(stacked(mixed), stacked(dense), atol=1e-8)
    np.testing.assert_allclose(stacked(cut), stacked(dense), atol=1e-8)


def test_sparse_views_are_never_made_dense():
    # Dense, the views would take 20 GB each; products, moments and sixty columns of weights take 90 MB.
    rng = np.random.default_rng(0)
    rows, columns = np.repeat(np.arange(10_000), 3), rng.integers(0, 50, 30_000)
    columns[::10] = rng.integers(0, 50_000, 3000)
    view = sparse.csr_array((np.ones(30_000, np.float32), (rows, columns)), shape=(10_000, 50_000))
    tracemalloc.start()
    StochasticGCCA(1, n_epochs=1, batch_size=200, random_state=0).fit([view, view.copy()])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 150e6


def test_one_array_equals_the_list_of_its_views_and_gives_one_array():
    views = synthetic(sizes=(7, 7))
    both = np.hstack(views)
    listed = StochasticGCCA(2, **SETTINGS).fit(views)
    for view_sizes in ((7, 7), "halves"):
        one = StochasticGCCA(2, view_sizes=view_sizes, **SETTINGS).fit(both)
        np.testing.assert_array_equal(stacked(one), stacked(listed))
        np.testing.assert_array_equal(one.transform(both), np.hstack(listed.transform(views)))
        assert one.transform(both).shape == (2000, 4) and one.n_features_in_ == 14
        assert one.n_features_per_view_ == listed.n_features_per_view_ == (7, 7)


def test_lists_whole_numbers_objects_and_booleans_are_taken_as_numbers():
    views = [np.round(4 * view) for view in synthetic(300)]
    weights = stacked(StochasticGCCA(2, **SETTINGS).fit(views))
    for form in (np.ndarray.tolist, lambda view: view.astype(int), lambda view: view.astype(object)):
        fitted = StochasticGCCA(2, **SETTINGS).fit([form(view) for view in views])
        np.testing.assert_allclose(stacked(fitted), weights, atol=1e-10)
    signs = [view > 0 for view in views]
    as_floats = [view.astype(np.float32) for view in signs]
    fits = [stacked(StochasticGCCA(2, **SETTINGS).fit(some)) for some in (signs, as_floats)]
    np.testing.assert_allclose(*fits, atol=1e-5)


@pytest.mark.parametrize("types, expected", [("f4 f4", "f4"), ("u1 f4", "f4"), ("i2 f2", "f4"), ("i4 f4", "f8")])
def test_a_fit_is_in_single_precision_where_that_holds_the_data_exactly(types, expected):
    assert read_views([np.ones((3, 2), dtype=kind) for kind in types.split()], None).dtype == np.dtype(expected)


def mapped(view, folder, mode="r"):
    """The file of a view, mapped."""
    path = folder / f"{view.shape[1]}.npy"
    np.save(path, view)
    return np.load(path, mmap_mode=mode)


def lazy(view, folder):
    return pytest.importorskip("dask.array").from_array(view, chunks=(300, 5))


@pytest.mark.parametrize("form", [mapped, lazy])
def test_mapped_files_and_dask_arrays_equal_arrays_in_their_order(form, tmp_path):
    views, both = synthetic(), np.hstack(synthetic())
    settings = {**SETTINGS, "shuffle": False}
    plain = StochasticGCCA(2, **settings).fit(views)
    given = [form(view, tmp_path) for view in views]
    model = StochasticGCCA(2, **settings).fit(given)
    np.testing.assert_array_equal(stacked(model), stacked(plain))
    np.testing.assert_array_equal(model.transform(given)[1], plain.transform(views)[1])
    one = StochasticGCCA(2, view_sizes=(8, 6), **settings).fit(form(both, tmp_path))
    np.testing.assert_array_equal(stacked(one), stacked(plain))


def test_a_mapped_file_is_shuffled_in_runs_and_every_row_comes_once(tmp_path):
    rows = 70_000
    data = np.arange(rows * 40, dtype=np.float32).reshape(rows, 40)
    source = read_views(mapped(data, tmp_path), (20, 20))
    seen = [np.hstack(blocks) for blocks in source.batches(100, np.random.default_rng(0))]
    order = np.concatenate(seen)[:, 0] / 40
    np.testing.assert_array_equal(np.sort(order), np.arange(rows))
    assert {len(part) for part in seen} == {100}
    # A batch draws from most of the runs that are shuffled together, of 3,276 rows each.
    assert len(np.unique(order[:100] // 3276)) > RUNS_AT_ONCE / 2
    np.testing.assert_array_equal(np.concatenate(seen), data[order.astype(int)])


def test_what_was_written_to_a_copy_on_write_mapping_is_not_lost(tmp_path):
    view = synthetic()[0]
    copied = mapped(view, tmp_path, "c")
    copied[:] = 2 * view
    source = read_views([copied, view], None)
    for _ in range(2):
        assert all((left == 2 * right).all() for left, right in source.batches(100))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets go of pages at once")
def test_memory_does_not_grow_with_the_length_of_a_mapped_file(tmp_path):
    code = """
import resource, sys
import numpy as np
from cdfsg import StochasticGCCA
from cdfsg.estimator.inputs import _release
rows, path = int(sys.argv[1]), sys.argv[2]
data = np.lib.format.open_memmap(path, "w+", np.float32, (rows, 200))
rng = np.random.default_rng(0)
for k in range(0, rows, 5000):
    shared = rng.standard_normal((5000, 1), dtype=np.float32)
    data[k : k + 5000] = shared + rng.standard_normal((5000, 200), dtype=np.float32)
    data.flush()
    _release(data)
data = np.load(path, mmap_mode="r")
StochasticGCCA(1, view_sizes=(100, 100), n_epochs=1, random_state=0).fit(data[:5000])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
StochasticGCCA(1, view_sizes=(100, 100), n_epochs=1, random_state=0, batch_size=1000).fit(data)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    # 48 MB and 144 MB, written through the mapping, so that all of it was in memory.
    commands = [[sys.executable, "-c", code, rows, tmp_path / "data.npy"] for rows in ("60000", "180000")]
    done = [subprocess.run(command, capture_output=True, text=True) for command in commands]
    assert not any(one.returncode for one in done), [one.stderr for one in done]
    grown = [int(one.stdout) for one in done]
    # In kB: a shuffled read takes 16 MB and copies; 96 MB more of data must not show.
    assert grown[1] < grown[0] + 30_000


def test_the_chunks_of_a_dask_array_are_shuffled_and_every_row_comes_once():
    da = pytest.importorskip("dask.array")
    data = np.arange(4000.0).reshape(2000, 2)
    source = read_views(da.from_array(data, chunks=(150, -1)), (1, 1))
    order = np.concatenate([left[:, 0] for left, _ in source.batches(64, np.random.default_rng(0))]) / 2
    assert len(np.unique(order[:64] // 150)) > 5
    np.testing.assert_array_equal(np.sort(order), np.arange(2000))


def test_frames_give_names_of_columns_and_others_are_refused():
    views = synthetic()
    frames = [pd.DataFrame(view).add_prefix(name) for name, view in zip("ab", views, strict=True)]
    model = StochasticGCCA(2, **SETTINGS).fit(frames)
    assert list(model.feature_names_in_) == [*frames[0].columns, *frames[1].columns]
    np.testing.assert_array_equal(stacked(model), stacked(StochasticGCCA(2, **SETTINGS).fit(views)))
    with pytest.raises(ValueError, match="view 0 has the column 'a7', where StochasticGCCA was fitted with 'a0'"):
        model.transform([frames[0][frames[0].columns[::-1]], frames[1]])
    assert not hasattr(model.fit(views), "feature_names_in_")
    frame = pd.DataFrame(np.hstack(views)).add_prefix("x")
    model = StochasticGCCA(2, view_sizes=(8, 6), **SETTINGS).fit(frame)
    assert list(model.feature_names_in_) == list(frame.columns)
    with pytest.raises(ValueError, match="feature names should match"):
        model.transform(frame.rename(columns={"x3": "y"}))


def refilled(views, size):
    """Chunks in the same arrays, which are filled anew."""
    buffers = [np.empty((size, view.shape[1])) for view in views]
    for begin in range(0, len(views[0]), size):
        for buffer, view in zip(buffers, views, strict=True):
            buffer[:] = view[begin : begin + size]
        yield buffers


@pytest.mark.parametrize("algorithm", ["exact", "cdfsg"])
@pytest.mark.parametrize("size", [10, 400, 1000])
def test_chunks_may_come_in_arrays_that_are_filled_anew(algorithm, size):
    views = synthetic()
    model = StochasticGCCA(2, algorithm=algorithm, batch_size=150, shuffle=False, n_epochs=1, random_state=0)
    expected = stacked(model.fit(views))
    np.testing.assert_allclose(stacked(model.fit(lambda: refilled(views, size))), expected, atol=1e-9)
    batches = [left.copy() for left, _ in rebatch(refilled(views, size), 150)]
    np.testing.assert_array_equal(np.concatenate(batches), views[0])


@pytest.mark.parametrize("algorithm", ["exact", "cdfsg"])
@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_array])
def test_entries_of_a_sparse_view_that_come_in_parts_are_their_sum_and_stay_as_they_are(form, algorithm):
    views = counts()
    whole = form(views[0])
    parts = form((np.repeat(whole.data / 2, 2), np.repeat(whole.indices, 2), 2 * whole.indptr), shape=whole.shape)
    model = StochasticGCCA(2, algorithm=algorithm, n_epochs=1, random_state=0)
    expected = stacked(model.fit(views))
    np.testing.assert_allclose(stacked(model.fit([parts, views[1]])), expected, atol=1e-8)
    both = sparse.hstack([parts, form(views[1])], format=parts.format)
    np.testing.assert_allclose(stacked(model.set_params(view_sizes=(20, 15)).fit(both)), expected, atol=1e-8)
    assert parts.nnz == 2 * whole.nnz


def test_a_masked_dask_array_is_refused():
    da = pytest.importorskip("dask.array")
    views = synthetic(300)
    masked = da.from_array(np.ma.masked_less(views[1], 0), chunks=(100, -1))
    with pytest.raises(ValueError, match="view 1 has masked values: drop those rows in all views together"):
        StochasticGCCA().fit([views[0], masked])


def test_a_sparse_frame_is_taken_where_what_it_leaves_out_is_zero():
    views = [np.where(view > 0, view, 0) for view in synthetic(300)]
    expected = stacked(StochasticGCCA().fit(views))
    thin = pd.DataFrame(views[0]).astype(pd.SparseDtype(float, 0))
    np.testing.assert_allclose(stacked(StochasticGCCA().fit([thin, views[1]])), expected, atol=1e-9)
    other = pd.DataFrame(views[0]).astype(pd.SparseDtype(float, np.nan))
    words = r"view 0 has the column 0 of type Sparse.*: expected a fill value of 0; give view.sparse.to_dense"
    with pytest.raises(ValueError, match=words):
        StochasticGCCA().fit([other, views[1]])
    np.testing.assert_allclose(stacked(StochasticGCCA().fit([other.sparse.to_dense(), views[1]])), expected, atol=1e-9)


@pytest.mark.parametrize("size", [1, 7, 50, 1000])
def test_batches_do_not_depend_on_chunks(size):
    views = synthetic(230)
    batches = list(rebatch(chunks(views, size), 50))
    assert [len(left) for left, _ in batches] == [50, 50, 50, 50, 30]
    np.testing.assert_array_equal(np.concatenate([right for _, right in batches]), views[1])


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_moments_of_batches_are_those_of_all_rows(form, offset):
    rng = np.random.default_rng(0)
    data = offset * (rng.uniform(size=6) < 0.7) + rng.standard_normal((500, 6)) * (rng.uniform(size=(500, 6)) < 0.4)
    moments = Moments(6)
    for k in range(0, 500, 70):
        part = data[k : k + 70]
        moments.update([form(part[:, :2]), form(part[:, 2:])])
    np.testing.assert_allclose(moments.mean, data.mean(axis=0), rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(moments.variance, data.var(axis=0), rtol=1e-8 if offset else 1e-12)
    np.testing.assert_array_equal(moments.low, data.min(axis=0))
    np.testing.assert_array_equal(moments.high, data.max(axis=0))


def test_products_with_sparse_rows_are_those_with_centred_and_scaled_ones():
    rng = np.random.default_rng(0)
    views = [part[:40] for part in counts()]
    n = 35
    mean, scale = rng.standard_normal(n), rng.uniform(0.5, 2, n)
    X, R = rng.standard_normal((1, n, 3)), rng.standard_normal((1, 1, 80, 3))
    plain, streamed = SampledGCCA((20, 15), Identity()), StreamedGCCA((20, 15), Identity())
    Z = ((np.hstack(views) - mean) / scale)[None]
    for blocks in (views, [sparse.csr_array(view) for view in views]):
        samples = centre_and_scale(blocks, mean, scale)
        np.testing.assert_allclose(streamed.scores(samples, X), plain.scores(Z, X), atol=1e-12)
        np.testing.assert_allclose(streamed.adjoint(samples, R), plain.adjoint(Z, R), atol=1e-12)
