from collections import Counter
from math import prod

import numpy as np
import pandas as pd
import pytest

from cdfsg.merits import Identity
from cdfsg.paper.measure import cost
from cdfsg.paper.measure.cost import FORMULA, STEP, TEXTBOOK, memory
from cdfsg.penalty import dissolving_factor, multiplier
from cdfsg.problems import SampledGCCA
from cdfsg.solvers.cdfsg import CDFSG, CDFSGAda, track

SIZES = {"m": 3, "n": 18, "batch_size": 7, "p": 2}


class Counted(np.ndarray):
    """An array that counts the multiplications of its products, squares, quotients and roots."""

    total = 0

    def __array_ufunc__(self, ufunc, method, *inputs, out=(), **options):
        shapes = [np.asarray(value).shape for value in inputs]
        if ufunc is np.matmul:
            (*left, rows, inner), (*right, _, columns) = shapes
            Counted.total += prod(np.broadcast_shapes(tuple(left), tuple(right))) * rows * inner * columns
        elif ufunc in (np.multiply, np.divide, np.sqrt, np.square):
            Counted.total += prod(np.broadcast_shapes(*shapes))
        plain = [value.view(np.ndarray) if isinstance(value, Counted) else value for value in (*inputs, *out)]
        into = {"out": tuple(plain[len(inputs) :])} if out else {}
        result = getattr(ufunc, method)(*plain[: len(inputs)], **into, **options)
        return out[0] if out else result.view(Counted)


class Watched:
    """A problem that takes and gives counted arrays, and counts its calls."""

    def __init__(self, problem):
        self.problem, self.calls = problem, Counter()

    def __getattr__(self, name):
        def watched(*arrays):
            self.calls[name] += 1
            return getattr(self.problem, name)(*(array.view(Counted) for array in arrays)).view(Counted)

        return watched


class Textbook(CDFSG):
    """Algorithm 1 as the paper's table counts it: every oracle by itself, and products of n-by-p matrices."""

    def direction(self, problem, samples, P, Y):
        (theta, xi), X, Q = (samples[:1], samples[1:]), self.state.X, dissolving_factor(Y)
        G = problem.adjoint(xi, problem.raw_gradient(problem.scores(xi, X @ Q)[0])[None])
        MX = problem.adjoint(theta, problem.constraint_factor(problem.scores(theta, X)[0])[None])
        return G @ Q.mT + MX @ multiplier(X.mT @ G, Y, self.beta)

    def step(self, problem, state, samples):
        object.__setattr__(self, "state", state)
        before = problem.constraint(problem.scores(samples[:1], state.X)[0])
        self.move(state)
        state.C = problem.constraint(problem.scores(samples[:1], state.X)[0])
        track(state, before)
        state.D = self.direction(problem, samples, None, state.Y)


FORMS = {"CDFSG": CDFSG, "CDFSG-Ada": CDFSGAda, TEXTBOOK: Textbook}


def stepped(solver, m, n, batch_size, p, watch=lambda problem: problem):
    """A solver's state after three steps, and its problem; the multiplications are those of the last step."""
    rng = np.random.default_rng(3)
    problem = watch(SampledGCCA((n // m,) * m, Identity()))
    settings = {"s1": np.full((1, 1, p), 0.5), "s2": np.full((1, 1, p), 0.1)}
    first = rng.standard_normal((1, batch_size, n))
    state = solver.start(problem, 0.1 * rng.standard_normal((1, n, p)), settings, first)
    for name, array in vars(state).items():
        setattr(state, name, array.view(Counted) if isinstance(problem, Watched) else array)
    for _ in range(3):
        Counted.total = 0
        if isinstance(problem, Watched):
            problem.calls.clear()
        solver.step(problem, state, rng.standard_normal((2, batch_size, n)))
    return state, problem


@pytest.mark.parametrize("name", FORMS)
def test_a_step_multiplies_and_asks_each_oracle_as_often_as_is_stated(name):
    _, problem = stepped(FORMS[name](), **SIZES, watch=Watched)
    assert Counted.total == sum(cost.evaluate(formula, **SIZES) for formula in STEP[name])
    asked = [problem.calls[oracle] for oracle in ("constraint", "raw_gradient", "constraint_factor")]
    assert asked == list(cost.ORACLES.values())


def test_the_textbook_form_has_the_iterates_of_the_solver():
    (ours, _), (textbook, _) = stepped(CDFSG(), **SIZES), stepped(Textbook(), **SIZES)
    for name in ("X", "Y", "D", "C"):
        np.testing.assert_allclose(getattr(textbook, name), getattr(ours, name), atol=1e-12)


def test_what_is_stated_stands_beside_what_the_paper_prints():
    table = cost.beside_the_paper()
    assert table.at[("D", "products"), "CDFSG"] == "4 m l p^2 + p^3"
    assert table.loc["D", "printed"].to_dict() == {
        "products": "10 n p^2 + p^3", "entrywise": "O(n p)", "O_grad_f": "O_grad_f", "O_grad_C": "O_grad_C",
    }  # fmt: skip
    assert list(table["printed"])[:3] == ["O(n p)", "O(n p)", "2 O_C"]


@pytest.mark.parametrize("m, n", [(2, 784), (3, 2352)])
def test_scores_pay_where_a_minibatch_has_fewer_rows_over_all_views_than_x(m, n):
    for batch_size, cheaper in ((n // m - 1, "CDFSG"), (n // m + 1, TEXTBOOK)):
        costs = {name: cost.evaluate(STEP.at[("D", "products"), name], m, n, batch_size, 5) for name in FORMS}
        assert costs[cheaper] == min(costs.values()) < max(costs.values())


def test_the_parts_of_a_step_sum_to_all_of_it():
    total = cost.totals(10).groupby(["n", "batch_size", "solver"])["multiplications"].sum()[784]
    for size in cost.BATCH_SIZES:
        for solver in FORMS:
            assert total[size, solver] == sum(cost.evaluate(formula, 2, 784, size, 10) for formula in STEP[solver])
        oracles = 6 * size * 784 * 10 + 2 * 2 * size * 100 + 2 * 100 + 2 * size * 10 + 2 * size * 10
        assert total[size, FORMULA] == oracles + 10 * 784 * 100 + 1000


def test_no_n_by_n_matrix_is_ever_formed_and_one_would_be_seen():
    class Careless(CDFSG):
        def direction(self, problem, samples, P, Y):
            M = samples[0].T @ samples[0]
            return super().direction(problem, samples, P, Y) + 0 * M[0, 0]

    for name in ("CDFSG", "CDFSG-Ada"):
        assert sum(memory(FORMS[name](), 3000, 10, 2).values()) < 3000**2 / 20
    assert memory(Careless(), 600, 10, 2)["extra"] >= 600**2


def test_the_published_memory_is_that_of_this_code_and_grows_no_faster_than_n():
    published = cost.read_memory()
    fresh = cost.memories(every=5)
    expected = published.iloc[::5].reset_index(drop=True)
    pd.testing.assert_frame_equal(fresh.drop(columns="extra"), expected.drop(columns="extra"))
    # Python's own objects are in it, whose sizes depend on its version.
    np.testing.assert_allclose(fresh["extra"], expected["extra"], rtol=0.1, atol=3000)
    growth = cost.slopes(published)
    assert len(growth) == 2 and growth[["state", "peak"]].to_numpy().max() < 1.01
    spoiled = cost.slopes(published.assign(extra=published["n"] ** 2))
    assert spoiled["peak"].min() > 1.9
