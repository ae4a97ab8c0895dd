"""Steps that are too long, trackers that fail, and what is said about them."""

import numpy as np
import pytest

from cdfsg.estimator import steps
from cdfsg.estimator.online import HALVINGS
from cdfsg.merits import Huber, Identity
from tests.estimator.data import CORRELATIONS, online, stacked, synthetic

pytestmark = [pytest.mark.filterwarnings("ignore:not converged"), pytest.mark.usefixtures("numpy_raises")]


@pytest.mark.parametrize("algorithm, huge", [("cdfsg-ada", 300.0), ("cdfsg", 30.0)])
def test_a_huge_step_is_halved_with_a_warning_until_the_fit_goes_well(algorithm, huge):
    views = synthetic()
    with pytest.warns(match=r"after [\d,]+ rows; the fit goes on from .* with step_size=.* raise batch_size") as said:
        model = online(4, algorithm=algorithm, step_size=huge, n_epochs=8, random_state=0).fit(views)
    told = [str(warning.message) for warning in said if "goes on" in str(warning.message)]
    assert len(told) == len(model.restarts_) >= 2
    assert [restart.step_size for restart in model.restarts_] == [huge / 2 ** (k + 1) for k in range(len(told))]
    assert all(restart.why in words for restart, words in zip(model.restarts_, told, strict=True))
    assert model.score(views) > 0.95 * sum(CORRELATIONS)


def test_an_indefinite_tracker_makes_the_fit_go_on_from_the_average_with_half_the_step():
    views = synthetic()
    model = online(2, tracking=0.05, random_state=0).partial_fit([view[:1000] for view in views])
    before = model.score(views)
    model._fit.solver.state.Y[0, 0, 0] = -1
    words = r"tracked X'MX lost positive definiteness \(smallest eigenvalue -.*after 1,100 rows.*step_size=0.5"
    with pytest.warns(match=words):
        model.partial_fit([view[1000:1100] for view in views])
    assert np.linalg.eigvalsh(model._fit.solver.state.Y[0])[0] > 0.9
    assert model.score(views) == pytest.approx(before, abs=1e-9)  # the average has not moved yet
    model.partial_fit([view[1100:] for view in views])
    assert model.score(views) > before and len(model.restarts_) == 1


def test_the_fit_gives_up_after_many_restarts():
    views = synthetic()
    with pytest.warns(match="goes on"), pytest.raises(ValueError, match=f"after {HALVINGS} restarts, each with half"):
        online(2, step_size=1e30, n_epochs=50, random_state=0).fit(views)


def test_a_minibatch_of_rows_a_thousand_times_larger_does_not_spoil_the_weights():
    views = synthetic(6000)
    model = online(4, random_state=0).partial_fit([view[:3000] for view in views])
    before = stacked(model)
    with pytest.warns(match="left the neighbourhood of X'MX = I .* after 3,100 rows"):
        model.partial_fit([view[:100] * 1e3 for view in views])
    assert np.isfinite(stacked(model)).all() and np.isfinite(model.canonical_correlations_).all()
    assert np.abs(stacked(model)).max() < 10 * np.abs(before).max()


@pytest.mark.parametrize("algorithm", ["cdfsg-ada", "cdfsg"])
@pytest.mark.parametrize("sizes", [(8, 6), (8, 6, 7, 9)])
def test_the_default_steps_neither_diverge_nor_restart(algorithm, sizes):
    model = online(3, algorithm=algorithm, n_epochs=1, random_state=0).fit(synthetic(sizes=sizes))
    assert model.restarts_ == []


@pytest.mark.parametrize("merit, mu, slope", [("identity", 0.05, 1.0), ("huber", 0.05, 0.05), ("huber", 7.0, 1.0)])
def test_the_default_penalty_is_above_the_bound_and_goes_with_the_slope_of_the_merit(merit, mu, slope):
    for sizes in ((8, 6), (8, 6, 7)):
        views, threshold = synthetic(300, sizes), 1.5 * slope * (len(sizes) - 1)
        assert online(n_epochs=1, merit=merit, mu=mu).fit(views).penalty_ == pytest.approx(threshold / 0.75)
    assert online(n_epochs=1, merit=merit, mu=mu, penalty=5.0).fit(views).penalty_ == 5.0


def test_the_first_steps_are_inverse_to_curvature_and_to_the_root_of_the_trace():
    assert steps.gradient_step(Identity(), 2, 2.0) == pytest.approx(2 / (8 + 2))
    assert steps.gradient_step(Huber(0.05), 2, 0.1) == pytest.approx(2 / (0.4 + 0.1))
    assert steps.adaptive_step(40.0, 60) == pytest.approx(0.015)


def test_steps_fall_like_a_root_of_the_number_of_minibatches():
    solver = online(2, algorithm="cdfsg").partial_fit(synthetic(200))._fit.solver
    first, solver._steps_made = solver._alpha(), solver._steps_made + 3 * steps.DECAY_STEPS
    assert solver._alpha() == pytest.approx(first / 2, rel=1e-3)  # which had made two
