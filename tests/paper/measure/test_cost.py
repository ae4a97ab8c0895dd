import tracemalloc
from collections import Counter

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from cdfsg.paper.measure.counting import CountedProblem, Ledger, counted
from cdfsg.solvers.draws import Draw

from cdfsg.merits import Huber, Identity
from cdfsg.paper.measure import cost
from cdfsg.paper.measure.cost import FORMS, Setting, Textbook, evaluate, memory, polynomials
from cdfsg.paper.show import cost_figures
from cdfsg.problems import SampledGCCA
from cdfsg.solvers.cdfsg import CDFSG, CDFSGAda

SMALL = {"sizes": (4, 3), "batch_size": 3, "p": 2}


@pytest.fixture
def ledger():
    return Ledger()


@pytest.fixture(scope="module")
def terms():
    return polynomials(cost.published())


def total(ledger):
    return sum(ledger.counts.values())


def ones(ledger, *shape):
    return counted(np.ones(shape), ledger)


# --- the counter -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "act, expected",
    [
        (lambda new: new(3, 4) @ np.ones((4, 5)), 3 * 4 * 5),
        (lambda new: np.ones((3, 4)) @ new(4, 5), 3 * 4 * 5),
        (lambda new: new(7, 3, 4) @ new(4, 5), 7 * 3 * 4 * 5),
        (lambda new: new(3, 4) * 2, 12),
        (lambda new: new(3, 4) * new(4), 12),
        (lambda new: new(3, 4) / new(3, 1), 12),
        (lambda new: np.sqrt(new(5)), 5),
        (lambda new: np.einsum("rc,rc->c", new(3, 4), new(3, 4)), 12),
        (lambda new: np.einsum("i,i,i->i", new(5), new(5), new(5)), 2 * 5),
        (lambda new: np.maximum(new(3), new(3)) + new(3) - np.abs(new(3)), 0),
        (lambda new: (new(2, 3) + 1).T[:, 1:].reshape(3, 1) * 2, 3),
        (lambda new: np.zeros_like(new(2, 3)) * 2, 6),
    ],
)
def test_a_product_counts_as_many_multiplications_as_it_has(ledger, act, expected):
    act(lambda *shape: ones(ledger, *shape))
    assert total(ledger) == expected


def test_work_in_place_is_counted_and_done(ledger):
    plain, watched = np.arange(6.0).reshape(2, 3), ones(ledger, 2, 3)
    watched *= plain
    np.matmul(watched, plain.T, out=watched[:, :2])
    assert total(ledger) == 6 + 2 * 3 * 2
    np.testing.assert_array_equal(np.asarray(watched)[:, :2], plain @ plain.T)


@pytest.mark.parametrize(
    "act, words",
    [
        (np.exp, "exp"),
        (np.linalg.inv, "inv"),
        (np.multiply.reduce, "multiply.reduce"),
        (lambda a: a @ np.ones(2), "matmul"),
        (lambda a: np.dot(a, a), "dot"),
    ],
)
def test_what_the_counter_does_not_know_it_refuses_by_name(ledger, act, words):
    with pytest.raises(NotImplementedError, match=words):
        act(ones(ledger, 2, 2))


def test_a_label_holds_inside_its_block_and_only_there(ledger):
    a = ones(ledger, 2)
    with ledger.during("D"):
        a * 1
        with ledger.during(part="O_C"):
            a * 1
        a * 1
    a * 1
    assert ledger.counts == Counter({("D", "algebra"): 4, ("D", "O_C"): 2, ("", "algebra"): 2})


class Scalar:
    """A number that counts its own multiplications: slow, and unable to miss one."""

    count = 0

    def __init__(self, value):
        self.value = value

    def __mul__(self, other):
        Scalar.count += 1
        return Scalar(self.value * _value(other))

    def __truediv__(self, other):
        Scalar.count += 1
        return Scalar(self.value / _value(other))

    def sqrt(self):
        Scalar.count += 1
        return Scalar(self.value**0.5)

    def __add__(self, other):
        return Scalar(self.value + _value(other))

    def __sub__(self, other):
        return Scalar(self.value - _value(other))

    def __rsub__(self, other):
        return Scalar(_value(other) - self.value)

    def __ge__(self, other):
        return self.value >= _value(other)

    __rmul__, __radd__ = __mul__, __add__


def _value(number):
    return number.value if isinstance(number, Scalar) else number


@pytest.mark.parametrize("solver", FORMS)
def test_numbers_that_count_themselves_agree_with_the_ledger(solver):
    setting = Setting(solver, **SMALL)
    method, problem, draw = cost._material(setting)
    state = cost._start(method, problem, setting, draw)
    for name, value in vars(state).items():
        if name not in ("alpha", "b"):
            setattr(state, name, np.vectorize(Scalar, otypes=[object])(value))
    Scalar.count = 0
    method.step(problem, state, draw, 0)
    assert Scalar.count == total(cost.count(setting)) > 0


# --- the step that is counted ----------------------------------------------------------------------------


def steps(solver, number=3):
    rng = np.random.default_rng(3)
    problem = SampledGCCA((6, 5), Identity())
    state = solver.start(
        problem, 0.3 * rng.standard_normal((11, 1, 2)), {"s1": np.array([0.5]), "s2": np.array([0.1])},
        rng.standard_normal((8, 11)),
    )  # fmt: skip
    for _ in range(number):
        solver.step(problem, state, Draw(rng.standard_normal((16, 11)), slice(0, 8), slice(8, None)), 0)
    return state


def test_the_textbook_form_has_the_iterates_of_the_solver():
    ours, textbook = steps(CDFSG(0.1)), steps(Textbook(0.1))
    for name in ("X", "Y", "D", "C"):
        np.testing.assert_allclose(getattr(textbook, name), getattr(ours, name), atol=1e-12)


@pytest.mark.parametrize("merit", [Identity(), Huber(0.05)])
def test_the_watched_problem_has_the_values_of_the_problem(ledger, merit):
    rng = np.random.default_rng(4)
    problem = SampledGCCA((4, 3), merit)
    Z, X = rng.standard_normal((6, 7)), rng.standard_normal((7, 2, 3))
    watched = CountedProblem(problem, ledger, Draw(Z, slice(0, 3), slice(3, None)))
    P = problem.project(Z, X)
    pairs = [
        (watched.project(Z, X), P),
        (watched.lift(Z, P), problem.lift(Z, P)),
        (watched.constraint(P), problem.constraint(P)),
        (watched.gradient_factor(P), problem.gradient_factor(P)),
        (watched.gradient(Z, X), problem.gradient(Z, X)),
        (watched.constraint_gradient(Z, X), problem.constraint_gradient(Z, X)),
    ]
    for found, expected in pairs:
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-12)


# --- polynomials and the paper's table -------------------------------------------------------------------


def test_the_published_counts_are_those_of_this_code():
    fresh = cost.counts(cost.count_settings())
    pd.testing.assert_frame_equal(cost.published(), fresh, check_dtype=False)


@pytest.mark.parametrize("solver", FORMS)
def test_a_polynomial_gives_the_count_at_sizes_that_it_was_not_made_from(terms, solver):
    own = terms[(terms["solver"] == solver) & (terms["merit"] == "huber")]
    setting = Setting(solver, (31, 11, 5, 2), 7, 3, "huber")
    assert evaluate(own, **setting.numbers) == total(cost.count(setting))


def test_the_direction_takes_four_products_with_projections_in_place_of_ten_with_x(terms):
    table = cost.beside_the_paper(terms).set_index(["update", "part"])
    row = table.loc["D", "algebra"]
    assert row["printed"] == "10 n p^2 + p^3 + O(n p)"
    assert row["CDFSG"] == "4 m l p^2 + p^3 + 4 p^2" and row["CDFSG, textbook"] == "4 n p^2 + p^3 + 4 p^2"
    assert table.loc[("Y", "O_C"), "printed"] == "2 O_C"


def test_projections_pay_where_a_minibatch_has_fewer_rows_over_all_views_than_x(terms):
    for m, n in ((2, 784), (3, 2352)):
        size = cost.break_even(terms, m, n)
        assert size == n / m
        lifted, direct = ("CDFSG", "CDFSG, textbook")
        for batch_size, cheaper in ((int(size) - 1, lifted), (int(size) + 1, direct)):
            costs = {}
            for solver in (lifted, direct):
                own = terms[(terms["solver"] == solver) & (terms["merit"] == "identity")]
                costs[solver] = evaluate(own[(own["update"] == "D") & (own["part"] == "algebra")], m, n, batch_size, 5)
            assert min(costs, key=costs.get) == cheaper


def test_a_polynomial_is_refused_where_the_counts_are_none():
    one = cost.published().query("solver == 'CDFSG' and merit == 'identity' and update == 'D' and part == 'algebra'")
    with pytest.raises(ValueError, match="vary n, l and p more"):
        cost.polynomial(one[one["p"] == 5])
    crooked = one.assign(multiplications=one["multiplications"] + (one["p"] == 10))
    with pytest.raises(ValueError, match="no polynomial with whole coefficients"):
        cost.polynomial(crooked)


def test_the_printed_total_is_the_sum_of_the_printed_rows(monkeypatch):
    assert cost.printed_adds_up()
    table = cost.printed_cost()
    table.loc[(table["update"] == "total") & (table["term"] == "n p^2"), "coefficient"] = 9
    monkeypatch.setattr(cost, "printed_cost", lambda: table)
    assert not cost.printed_adds_up()


def test_the_parts_of_a_step_sum_to_all_of_it():
    counts = cost.published()
    sums = cost.totals(counts, 10)
    rows = counts[(counts["merit"] == "identity") & (counts["p"] == 10) & (counts["n"] == 784)]
    for size in cost.BATCH_SIZES:
        for solver in FORMS:
            own = rows[(rows["solver"] == solver) & (rows["batch_size"] == size)]
            assert cost.total_of(sums, solver, 784, size) == own["multiplications"].sum()
        oracles = 6 * size * 784 * 10 + 2 * 2 * size * 100 + 2 * 100 + 2 * size * 10 + 2 * size * 10
        assert cost.total_of(sums, cost.FORMULA, 784, size) == oracles + 10 * 784 * 100 + 1000


# --- memory ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver, tall", [("CDFSG", 2), ("CDFSG-Ada", 4)])
@pytest.mark.parametrize("n, p", [(60, 3), (200, 7)])
def test_the_state_is_two_tall_matrices_or_four_with_the_moments(solver, tall, n, p):
    # Beyond the paper's Y it keeps C, by which the engine sees divergence, and two step sizes.
    assert memory(Setting(solver, (n // 2, n // 2), 5, p))["state"] == tall * n * p + 2 * p**2 + 2


@pytest.mark.parametrize("solver", ["CDFSG", "CDFSG-Ada"])
def test_no_n_by_n_matrix_is_ever_formed(solver):
    found = memory(Setting(solver, (1500, 1500), 10, 2))
    assert sum(found.values()) < 3000**2 / 20


def test_the_measure_sees_an_n_by_n_matrix(monkeypatch):
    class Careless(CDFSG):
        def _direct(self, problem, state, draw, P):
            M = draw.rows.T @ draw.rows
            super()._direct(problem, state, draw, P)
            del M

    monkeypatch.setitem(FORMS, "careless", Careless)
    assert memory(Setting("careless", (300, 300), 10, 2))["extra"] >= 600**2


def test_what_else_is_traced_does_not_enter():
    setting = Setting("CDFSG", (100, 100), 5, 3)
    alone = memory(setting)
    tracemalloc.start()
    try:
        kept = np.ones(10_000)
        np.ones(1_000_000)  # the peak of the trace, freed at once
        among = memory(setting)
        assert tracemalloc.is_tracing() and len(kept) == 10_000
    finally:
        tracemalloc.stop()
    assert among["state"] == alone["state"] and abs(among["extra"] - alone["extra"]) < 3000


def test_the_published_memory_is_that_of_this_code():
    published = cost.published(cost.MEMORY_NAME)
    fresh = cost.memories(cost.memory_settings()[::5])
    expected = published.iloc[::5].reset_index(drop=True)
    pd.testing.assert_frame_equal(fresh.drop(columns="extra"), expected.drop(columns="extra"))
    # Python's own objects are in it, whose sizes depend on its version.
    np.testing.assert_allclose(fresh["extra"], expected["extra"], rtol=0.1, atol=3000)


def test_memory_grows_no_faster_than_n():
    growth = cost.slopes(cost.published(cost.MEMORY_NAME))
    assert len(growth) == 2 and growth[["state", "peak"]].to_numpy().max() < 1.01


# --- records and check -----------------------------------------------------------------------------------


def test_missing_records_are_named_with_the_remedy(tmp_path, monkeypatch):
    monkeypatch.setattr(cost, "RECORDS", tmp_path)
    with pytest.raises(FileNotFoundError, match=r"cost\.csv is missing; make it with: python -m cdfsg run"):
        cost.published()


def test_records_are_written_where_they_are_wanted(tmp_path, monkeypatch):
    monkeypatch.setattr(cost, "count_settings", lambda: [Setting("CDFSG", **SMALL)])
    monkeypatch.setattr(cost, "memory_settings", lambda: [Setting("CDFSG", **SMALL)])
    cost.publish(tmp_path)
    assert sorted(path.name for path in tmp_path.glob("*.csv")) == [cost.MEMORY_NAME, cost.NAME]


@pytest.mark.parametrize(
    "spoil, words",
    [
        (lambda t, s, m: t.__setitem__("calls", t["calls"] + 1), "times a step"),
        (lambda t, s, m: s.__setitem__("multiplications", s["multiplications"] * (1 + (s["solver"] == "CDFSG"))),
         "the formula"),
        (lambda t, s, m: m.__setitem__("state", m["state"] + m["n"] * m["p"]), "numbers in the state"),
        (lambda t, s, m: m.__setitem__("extra", m["n"] ** 2), "grows faster than n"),
    ],
)  # fmt: skip
def test_the_check_raises_where_the_conclusion_does_not_hold(terms, spoil, words):
    tables = terms.copy(), cost.totals(cost.published(), 10), cost.published(cost.MEMORY_NAME)
    cost.check(*tables)
    spoil(*tables)
    with pytest.raises(AssertionError, match=words):
        cost.check(*tables)


def test_the_figures_show_every_bar_and_line():
    counts, table = cost.published(), cost.published(cost.MEMORY_NAME)
    bars = cost_figures.multiplications(cost.totals(counts, 10), "t").axes[1]
    highest = max(patch.get_y() + patch.get_height() for patch in bars.patches)
    assert len(bars.patches) == 2 * 4 * len(cost.PARTS)
    assert highest == pytest.approx(cost.total_of(cost.totals(counts, 10), cost.FORMULA, 784, 20) / 20e3)
    left, right = cost_figures.memory(table, "t").axes
    assert len(left.lines) == 5 and len(right.lines) == 3
    plt.close("all")


def test_algorithm_2_adds_seven_passes_over_x(terms):
    assert set(FORMS) == {CDFSG.name, CDFSGAda.name, Textbook.name}
    identity = terms[(terms["merit"] == "identity") & (terms["term"] == "n p")]
    sums = identity.groupby("solver")["coefficient"].sum()
    assert sums["CDFSG-Ada"] - sums["CDFSG"] == 7


def test_with_large_batches_a_step_needs_eight_projections_of_a_minibatch_besides():
    table = cost.published(cost.MEMORY_NAME)
    rows = table[table["batch_size"] == 400]
    np.testing.assert_allclose(rows["extra"], 8 * rows["m"] * rows["batch_size"] * rows["p"], rtol=0.03)
