import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cdfsg.solvers.cdfsg import CDFSG
from cdfsg.theory.finite import Run, least_penalty, random_pencil


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32), n=st.integers(1, 4), p=st.integers(1, 4), beta=st.floats(1e-2, 1e2))
def test_the_gradient_of_h_in_lanes_is_that_of_the_exact_penalty(seed, n, p, beta):
    p = min(n, p)
    rng = np.random.default_rng(seed)
    toy, X = random_pencil(rng, n, 3), rng.standard_normal((2, n, p))
    exact = np.stack([toy.penalty(beta).gradient(x) for x in X])
    np.testing.assert_allclose(toy.gradient_of_h(X, beta), exact, rtol=0, atol=1e-11 * np.abs(exact).max() + 1e-12)


def test_the_mean_over_all_paths_agrees_with_a_loop_over_them_by_hand():
    toy, beta, s1, alpha, x0 = random_pencil(np.random.default_rng(0), 1, 2), 0.8, 0.5, 0.1, 0.6
    a, m = toy.A_xi.ravel(), toy.M_theta.ravel()

    def W(x, y, a, m):
        q = (3 - y) / 2
        return a * x * q * q + m * x * (beta * (y * y - 1) - x * a * x * q)

    def after(x, y, d, steps):
        """All x after some steps, one per path."""
        if steps == 0:
            return [x]
        moved = x - alpha * d
        ends = []
        for theta in m:
            tracked = y - alpha / s1 * (y - theta * x * x) + theta * (moved**2 - x**2)
            for xi in a:
                ends += after(moved, tracked, W(moved, tracked, xi, theta), steps - 1)
        return ends

    expected = [end for theta in m for end in after(x0, theta * x0 * x0, 0.0, 3)]
    run = Run(CDFSG(beta), toy, 3, s1, alpha * 3**0.5)
    *_, last = run.every_path(run.start_everywhere(np.array([[x0]])))
    twice = np.repeat(np.sort(expected), 2)  # for the two xi at k = 0, which D_0 = 0 does not see
    np.testing.assert_allclose(np.sort(last.X.ravel()), twice, rtol=1e-12)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32), n=st.integers(1, 4), excess=st.sampled_from([0.1, 0.3, 1, 10]))
def test_h_comes_no_lower_than_its_computed_minimum_and_gets_there(seed, n, excess):
    rng = np.random.default_rng(seed)
    toy = random_pencil(rng, n, 4)
    A, M = toy.A_xi.mean(axis=0), toy.M_theta.mean(axis=0)
    lam = np.linalg.eigvals(np.linalg.solve(M, A)).real
    beta = float(max(-0.75 * lam.min(), 0) + excess * np.abs(lam).max())
    penalty, low = toy.penalty(beta), least_penalty(toy, beta, 1)
    values, vectors = np.linalg.eig(np.linalg.solve(M, A))
    best = np.inf
    for vector in vectors.T.real:
        unit = (vector / np.sqrt(vector @ M @ vector))[:, None]
        best = min([best, *(penalty.value(unit * t) for t in np.linspace(0, 2.5, 400))])
    assert low - 1e-9 * abs(low) <= best <= low + 1e-3 * max(abs(low), beta)
    assert all(penalty.value(rng.standard_normal((n, 1)) * t) >= low - 1e-9 * abs(low) for t in (0.1, 1, 10))
