import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from joblib import Parallel, delayed

from cdfsg.datasets import DATASETS, Provenance, Views, load
from cdfsg.merits import Identity
from cdfsg.problems import SampledGCCA
from cdfsg.solvers import SOLVERS
from cdfsg.solvers.engine import initial_points, run

SOMEWHERE = Provenance("a test", "sha256:0", "synthetic")
LARGE = {"mnist", "nmnist"}  # these have their own files
SMALL = [name for name in DATASETS if name not in LARGE]


def make(data, sizes, scale=1.0, centred=True):
    return Views("toy", data, sizes, scale, centred, SOMEWHERE)


def pixels(n=50):
    return make(np.random.default_rng(0).integers(0, 256, (n, 5), dtype=np.uint8), (2, 3), 1 / 255)


def direct(views):
    values = views.scale * views.data.astype(np.float64)
    return values - values.mean(axis=0) if views.centred else values


@pytest.fixture(params=SMALL, scope="module")
def dataset(request):
    return load(request.param)


@pytest.fixture(params=[True, False], ids=["centred", "not centred"])
def views(request, dataset):
    return replace(dataset, centred=request.param)


def test_every_dataset_is_centred_multi_view_data_under_its_registered_name(dataset):
    assert load(dataset.name).name == dataset.name
    assert dataset.centred and dataset.n_views >= 2
    assert dataset.data.shape == (dataset.n_samples, dataset.n_features)
    parts = [np.arange(dataset.n_features)[part] for part in dataset.slices]
    assert tuple(map(len, parts)) == dataset.sizes
    np.testing.assert_array_equal(np.concatenate(parts), np.arange(dataset.n_features))


def test_rows_are_the_scaled_data_less_the_mean(views):
    index = np.random.default_rng(0).integers(0, views.n_samples, 77)
    expected = direct(views)[index]
    np.testing.assert_allclose(views.rows(index, np.float64), expected, rtol=0, atol=1e-13)
    np.testing.assert_allclose(views.rows(index), expected, rtol=0, atol=1e-6)


def test_covariance_is_the_second_moment_over_n_and_exactly_symmetric(views):
    values = direct(views)
    np.testing.assert_allclose(views.covariance, values.T @ values / len(values), rtol=0, atol=1e-12)
    assert np.array_equal(views.covariance, views.covariance.T) and views.covariance.dtype == np.float64
    np.testing.assert_array_equal(replace(views, centred=False).mean, np.zeros(views.n_features))


def test_a_pass_covers_all_rows_but_the_remainder_once_each(views):
    size = 256
    batches = list(views.batches(size, seed=3, dtype=np.float64))
    assert [batch.shape for batch in batches] == [(size, views.n_features)] * (views.n_samples // size)
    order = np.random.default_rng(3).permutation(views.n_samples)[: size * len(batches)]
    np.testing.assert_array_equal(np.vstack(batches), views.rows(order, np.float64))
    assert len(set(order)) == size * (views.n_samples // size)


def test_without_a_seed_the_rows_of_a_batch_lie_at_a_stride_in_the_file():
    np.testing.assert_array_equal(pixels(11).batch_indices(3, None), [[0, 3, 6], [1, 4, 7], [2, 5, 8]])
    (only,) = pixels(10).batches(10, None)
    np.testing.assert_array_equal(only, pixels(10).rows(range(10)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_and_batches_are_new_contiguous_arrays_of_the_type_asked_for(dtype):
    views = pixels()
    for array in (views.rows([3, 1], dtype), next(views.batches(2, 0, dtype))):
        assert array.dtype == dtype and array.flags.c_contiguous and array.flags.writeable
    assert views.rows([], dtype).shape == (0, 5)
    before = views.rows([3])
    views.rows([3])[:] = 7
    np.testing.assert_array_equal(views.rows([3]), before)


def test_float32_rows_of_float64_data_with_a_large_mean_keep_their_digits():
    noise = np.random.default_rng(0).standard_normal((40, 2))
    views = make(noise + 1e6, (1, 1))
    rows = views.rows(range(40))
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, noise - noise.mean(axis=0), rtol=0, atol=1e-6)


def test_the_data_stay_in_their_small_type_without_a_copy_and_cannot_be_changed():
    data = np.ones((3, 4), np.uint8)
    views = make(data, (2, 2))
    assert views.data.dtype == np.uint8 and np.shares_memory(views.data, data)
    assert np.shares_memory(replace(views, centred=False).data, data)
    for array in (views.data, views.mean, views.covariance):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 2
    data[0] = 5  # the caller's own array is left as it was


def mapped(path, rows):
    """A file of 4 kB per row, nothing but zeros beyond its first rows, so that it takes no room on the disk."""
    data = np.lib.format.open_memmap(path, "w+", np.float32, (rows, 1000))
    data[:2000] = np.random.default_rng(0).standard_normal((2000, 1000))
    data.flush()
    return make(np.load(path, mmap_mode="r"), (500, 500))


def peak_of_a_pass(path, rows):
    """Largest memory in use while the data are opened, centred, read once and given to a solver."""
    tracemalloc.start()
    try:
        views = mapped(path, rows)
        assert views.mean.any() and sum(len(batch) for batch in views.batches(500, 1)) > rows - 500
        solver, problem = SOLVERS["CDFSG"](), SampledGCCA(views.sizes, Identity())
        X0 = initial_points(solver, views.n_features, 1, [1])
        settings = {name: np.ones(1) for name in solver.settings}
        assert run(solver, problem, views, X0, settings, 1000, 1).steps == rows // 1000
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_the_memory_of_a_pass_over_a_mapped_file_does_not_grow_with_the_file(tmp_path):
    small, large = (peak_of_a_pass(tmp_path / f"{rows}.npy", rows) for rows in (10_000, 100_000))
    # 360 MB more on disk; the data orders take 8 bytes per row, and the solver has four of them.
    assert large - small < 50 * 90_000


def mapped_from(views):
    return getattr(views.data, "filename", None) or getattr(views.data.base, "filename", None)


def test_a_worker_process_maps_the_same_file_and_is_not_sent_its_rows(tmp_path):
    views = mapped(tmp_path / "data.npy", 10_000)
    assert Parallel(n_jobs=2)([delayed(mapped_from)(views)]) == [tmp_path / "data.npy"]
