import numpy as np
import pytest
from scipy.linalg import eigh
from sklearn.cross_decomposition import CCA

from cdfsg import metrics
from cdfsg.linalg import inv_sqrt
from cdfsg.merits import Huber, Identity
from cdfsg.problems import GCCA

SIZES = (5, 4)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((300, 2)) @ rng.standard_normal((2, 9)) + rng.standard_normal((300, 9))
    rows -= rows.mean(axis=0)
    return rows, rows.T @ rows / 300


def test_the_metrics_from_compressed_matrices_are_those_of_their_definitions(data):
    rows, S = data
    X = np.random.default_rng(1).standard_normal((3, 9, 2))
    K = metrics.cross_moments(X, S, SIZES)
    for merit in (Identity(), Huber(0.3)):
        exact = GCCA(S, SIZES, merit)
        for lane in range(3):
            x = X[lane]
            assert metrics.feasibility(K)[lane] == pytest.approx(np.linalg.norm(x.T @ exact.M @ x - np.eye(2)))
            assert metrics.objective(K, merit)[lane] == pytest.approx(exact.value(x))
    left, right = rows[:, :5] @ X[0, :5], rows[:, 5:] @ X[0, 5:]
    paired = sum(abs(np.corrcoef(left[:, r], right[:, r])[0, 1]) for r in range(2))
    assert metrics.paired_correlations(K)[0] == pytest.approx(paired)


def test_canonical_correlations_agree_with_scikit_learn(data):
    rows, S = data
    ours = metrics.canonical_correlations(S, SIZES)[:2]
    left, right = CCA(n_components=2, tol=1e-12, max_iter=10000).fit_transform(rows[:, :5], rows[:, 5:])
    theirs = [np.corrcoef(left[:, r], right[:, r])[0, 1] for r in range(2)]
    np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_captured_correlations_are_cosines_between_the_projected_spaces(data):
    rows, S = data
    X = np.random.default_rng(1).standard_normal((3, 9, 2))
    found = metrics.tcc(metrics.cross_moments(X, S, SIZES))
    for lane in range(3):
        left, right = (np.linalg.qr(rows[:, view] @ X[lane, view])[0] for view in (slice(0, 5), slice(5, 9)))
        assert found[lane] == pytest.approx(np.linalg.svd(left.T @ right, compute_uv=False).sum(), rel=1e-10)


@pytest.mark.parametrize("block", [(0, 0), (1, 1), (0, 1)])
def test_captured_correlations_are_nan_where_a_lane_is_not_finite(data, block):
    K = metrics.cross_moments(np.random.default_rng(1).standard_normal((2, 9, 2)), data[1], SIZES)
    K[block][0, 0, 0] = np.nan
    np.testing.assert_array_equal(np.isnan(metrics.tcc(K)), [True, False])


def test_canonical_correlations_leave_out_directions_below_the_tolerance(data):
    S = data[1].copy()
    scale = np.ones(9)
    scale[0] = 1e-4  # its variance is near 1e-8 of the others'
    kept, dropped = (metrics.canonical_correlations(scale[:, None] * S * scale, SIZES, rtol) for rtol in (1e-12, 1e-6))
    np.testing.assert_allclose(kept, metrics.canonical_correlations(S, SIZES), rtol=1e-6)
    np.testing.assert_allclose(dropped[:4], metrics.canonical_correlations(S[1:, 1:], (4, 4)), rtol=1e-6)


def test_the_correlations_captured_do_not_change_under_regular_column_transforms(data):
    X = np.random.default_rng(1).standard_normal((1, 9, 2))
    K = metrics.cross_moments(X, data[1], SIZES)
    N = np.array([[[1.0, 2], [-0.5, 3]]])
    assert metrics.tcc(metrics.congruence(K, N)) == pytest.approx(metrics.tcc(K))
    assert metrics.paired_correlations(metrics.congruence(K, N)) != pytest.approx(metrics.paired_correlations(K))


def test_transforming_the_compressed_matrices_is_transforming_x(data):
    X = np.random.default_rng(1).standard_normal((1, 9, 2))
    N = np.array([[[1.0, 2], [-0.5, 3]]])
    direct = metrics.cross_moments(X @ N, data[1], SIZES)
    np.testing.assert_allclose(metrics.congruence(metrics.cross_moments(X, data[1], SIZES), N), direct, atol=1e-12)


def test_the_exact_orthogonalisation_makes_every_regular_point_feasible(data):
    X = np.random.default_rng(1).standard_normal((4, 9, 2))
    K = metrics.cross_moments(X, data[1], SIZES)
    N, defined = metrics.orthogonalise(metrics.constraint(K))
    assert defined.all()
    np.testing.assert_allclose(metrics.feasibility(metrics.congruence(K, N)), 0, atol=1e-12)


def test_a_tracker_with_an_error_leaves_the_feasibility_at_that_error(data):
    X = np.random.default_rng(1).standard_normal((1, 9, 2))
    K = metrics.cross_moments(X, data[1], SIZES)
    C = metrics.constraint(K)
    error = 1e-3 * np.array([[[1.0, 0.5], [0.5, -1.0]]])
    half = inv_sqrt(C[0])
    N, _ = metrics.orthogonalise(C + error)
    left = metrics.feasibility(metrics.congruence(K, N))[0]
    assert left == pytest.approx(np.linalg.norm(half @ error[0] @ half), rel=0.05)


def test_an_indefinite_tracker_gives_no_post_processing_and_says_so():
    N, defined = metrics.orthogonalise(np.stack([np.eye(2), np.diag([1.0, -1])]))
    assert list(defined) == [True, False]
    assert np.isnan(N[1]).all() and not np.isnan(N[0]).any()


def test_a_diverged_lane_gives_nan_and_leaves_the_others_alone(data, numpy_raises):
    X = np.random.default_rng(1).standard_normal((4, 9, 2))
    X[1], X[2, :2] = np.nan, [[np.inf], [-np.inf]]
    X[3] *= 1e100  # the square of X'MX is beyond the largest number
    K = metrics.cross_moments(X, data[1], SIZES)
    assert not np.isfinite(metrics.cross_moments(1e200 * X[:1], data[1], SIZES)).any()
    np.testing.assert_array_equal(metrics.tcc(K) > 0, [True, False, False, True])
    for measured in (K, metrics.congruence(K, X[:, :2])):  # in lane 3 beyond the largest number, too
        np.testing.assert_array_equal(np.isfinite(metrics.feasibility(measured)), [True, False, False, False])


def test_generalised_eigenvalues_of_three_views_agree_with_scipy(data):
    _, S = data
    sizes = (3, 4, 2)
    M = GCCA(S, sizes, Identity()).M
    np.testing.assert_allclose(metrics.generalised_eigenvalues(S, sizes), eigh(S - M, M)[0][::-1], atol=1e-10)


@pytest.mark.parametrize("sizes", [(5, 4), (3, 4, 2)])
def test_the_bound_of_fval_is_attained_by_the_identity_merit_and_never_passed(data, sizes):
    _, S = data
    values = metrics.generalised_eigenvalues(S, sizes)
    exact = GCCA(S, sizes, Identity())
    X = eigh(S - exact.M, exact.M)[1][:, ::-1][:, :2]  # M-orthonormal
    assert exact.value(X) == pytest.approx(metrics.objective_bound(values, 2, len(sizes), Identity()))
    rng = np.random.default_rng(2)
    for merit in (Identity(), Huber(0.05), Huber(0.2)):
        problem, bound = GCCA(S, sizes, merit), metrics.objective_bound(values, 2, len(sizes), merit)
        points = [rng.standard_normal((9, 2)) for _ in range(50)] + [X]
        feasible = [P @ inv_sqrt(P.T @ problem.M @ P) for P in points]
        assert min(problem.value(P) for P in feasible) >= bound - 1e-12


def test_perfectly_correlated_views_attain_the_bound_of_the_huber_merit():
    rng = np.random.default_rng(0)
    one = rng.standard_normal((400, 2))
    one -= one.mean(axis=0)
    S = np.tile(one.T @ one / 400, (3, 3))  # three times the same view
    problem = GCCA(S, (2, 2, 2), Huber(0.05))
    X = np.tile(inv_sqrt(one.T @ one / 400) / np.sqrt(3), (3, 1))
    np.testing.assert_allclose(X.T @ problem.M @ X, np.eye(2), atol=1e-12)
    bound = metrics.objective_bound(metrics.generalised_eigenvalues(S, (2, 2, 2)), 2, 3, Huber(0.05))
    assert problem.value(X) == pytest.approx(bound)


def test_a_covariance_with_a_correlation_above_one_is_refused():
    with pytest.raises(ValueError, match="a correlation of 1.5 above 1"):
        metrics.generalised_eigenvalues(np.array([[1.0, 1.5], [1.5, 1.0]]), (1, 1))


def test_a_ridge_is_in_units_of_each_views_mean_variance(data):
    _, S = data
    shift = metrics.ridged(S, SIZES, 0.1) - S
    np.testing.assert_allclose(np.diag(shift)[:5], 0.1 * np.diag(S)[:5].mean())
    np.testing.assert_allclose(np.diag(shift)[5:], 0.1 * np.diag(S)[5:].mean())
    assert np.count_nonzero(shift - np.diag(np.diag(shift))) == 0


@pytest.mark.parametrize("sizes, weights", [((5, 4), None), ((4, 3, 2), None), ((4, 3, 2), "given")])
def test_the_minimiser_is_feasible_and_attains_the_bound_of_the_identity_merit(sizes, weights):
    n = sum(sizes)
    root = np.random.default_rng(7).standard_normal((3 * n, n))
    covariance = root.T @ root / len(root)
    c = np.array([[0, 2, 1], [2, 0, 0.5], [1, 0.5, 0.0]]) if weights else None
    values = metrics.generalised_eigenvalues(covariance, sizes, c)
    for p in (1, 3, n):
        K = metrics.cross_moments(metrics.minimiser(covariance, sizes, p, c)[None], covariance, sizes)
        assert metrics.feasibility(K)[0] < 1e-10
        np.testing.assert_allclose(metrics.objective(K, Identity(), c), -values[:p].sum(), rtol=1e-10, atol=1e-12)


def test_eigenvalues_do_not_depend_on_the_unit_and_a_constant_view_has_none(data):
    _, S = data
    values = metrics.generalised_eigenvalues(S, SIZES)
    np.testing.assert_allclose(metrics.generalised_eigenvalues(1e-12 * S, SIZES), values, atol=1e-10)
    S[5:] = S[:, 5:] = 0
    assert not metrics.generalised_eigenvalues(S, SIZES).any()


def test_the_minimiser_begins_with_the_largest_correlation_and_leaves_out_directions_below_the_truncation():
    S = np.diag([1, 0.01, 1, 0.01])
    S[[0, 2], [2, 0]], S[[1, 3], [3, 1]] = 0.5, 0.009
    for rtol, rows in ((1e-10, [[0, 1], [1, 0]]), (0.1, [[1, 1], [0, 0]])):
        X = metrics.minimiser(S, (2, 2), 2, rtol=rtol)
        np.testing.assert_array_equal(abs(X) > 1e-9, rows * 2)


def test_a_part_that_is_rounding_of_its_column_gives_no_weight():
    Y = np.array([[1, 1e3, 1, 1e6], [0, 0, 0, 0], [20 * np.finfo(float).eps, 1e-12, 1e-10, 1], [0, 0, 0, 0]])
    X = metrics.unwhitened(Y, [np.eye(2), np.eye(2)])
    Y[2, :2] = 0
    np.testing.assert_array_equal(X, Y)


def test_the_spectral_violation_is_the_largest_eigenvalue():
    C = np.stack([np.diag([1.5, 0.2, 1.0]), np.diag([np.nan, 1, 1]), np.eye(3)])
    K = (C / 2)[None, None].repeat(2, 0).repeat(2, 1)
    np.testing.assert_allclose(metrics.spectral_feasibility(K), [0.8, np.nan, 0.0], atol=1e-15)
    np.testing.assert_allclose(metrics.feasibility(K)[0], np.hypot(0.5, 0.8))
