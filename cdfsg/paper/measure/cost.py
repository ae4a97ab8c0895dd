"""What one step of Algorithms 1 and 2 costs, counted, beside the paper's Table ta:computation.

Multiplications are counted in an instrumented step of the solvers (see `cdfsg.paper.measure.counting`); they depend
on the sizes only, and are therefore exact polynomials in them, which `polynomials` recovers.  Memory is what the
interpreter allocates (tracemalloc, to which numpy reports).  `publish` writes the records.

The letters are the paper's: n rows of X over all m views, p columns, l rows of a minibatch.
"""

import gc
import math
import tracemalloc
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import pandas as pd

from cdfsg import checksums
from cdfsg.files import PAPER, RECORDS
from cdfsg.linalg import Array, lane_gram, lane_product
from cdfsg.merits import MERITS, make_merit
from cdfsg.paper.experiments import BETA, MU
from cdfsg.paper.measure.counting import CountedProblem, Ledger, counted
from cdfsg.penalty import dissolving_factor, multiplier
from cdfsg.problems import SampledGCCA, SampledProblem
from cdfsg.solvers.cdfsg import CDFSG, CDFSGAda, TrackingState, track
from cdfsg.solvers.draws import Draw

SIZES = {"mediamill": (120, 101), "mnist": (392, 392), "nmnist": (784, 784, 784)}
"""View sizes of the paper's data sets; a count needs no more of them."""
BATCH_SIZES = (20, 50, 100, 200)
PAPER_COLUMNS = (5, 10)
COLUMNS = (*PAPER_COLUMNS, 20)
"""p: the paper's two and one more, so that powers of p can be told apart."""
MIDDLE = {"n": 800, "batch_size": 20, "p": 10}
VARIED = {"n": (200, 400, 800, 1600, 3200, 6400, 12800), "batch_size": (20, 50, 100, 200, 400), "p": (5, 10, 20, 40)}
"""Sizes at which memory is measured: one varies, the others stay."""
NAME, MEMORY_NAME = "cost.csv", "cost-memory.csv"

UPDATES = ("X", "Y", "D")
ORACLES = ("O_C", "O_grad_f", "O_grad_C")
TERMS: dict[str, Callable[[int, int, int, int], int]] = {
    "l n p": lambda m, n, size, p: size * n * p,
    "n p^2": lambda m, n, size, p: n * p**2,
    "m l p^2": lambda m, n, size, p: m * size * p**2,
    "p^3": lambda m, n, size, p: p**3,
    "n p": lambda m, n, size, p: n * p,
    "m l p": lambda m, n, size, p: m * size * p,
    "m (m-1) l p": lambda m, n, size, p: m * (m - 1) * size * p,
    "p^2": lambda m, n, size, p: p**2,
    "m (m-1) p": lambda m, n, size, p: m * (m - 1) * p,
}
"""Monomials that a count is made of, largest first for the paper's sizes."""
PARTS = (*ORACLES, "products", "entrywise")
"""What a step does: ask the oracles, multiply tall matrices by p-by-p ones, pass over the entries of X and Y."""
FORMULA = "the paper's formula"


class Textbook(CDFSG):
    """Algorithm 1 as the paper's table counts it: every oracle by itself, and products of n-by-p matrices.

    The iterates are those of `CDFSG`, which shares a projection between two oracles and multiplies the projections
    in place of the n-by-p matrices.
    """

    name: ClassVar = "CDFSG, textbook"

    def step(self, problem: SampledProblem, state: TrackingState, draw: Draw, number: int) -> None:
        """One iteration, as `CDFSG.step`."""
        theta = draw.rows[draw.theta]
        before = problem.constraint(problem.project(theta, state.X))
        self._move(state)  # eq:updatexoa
        state.C = problem.constraint(problem.project(theta, state.X))
        track(state, before)  # eq:updatey
        self._direct(problem, state, draw, state.X)  # eq:updated

    def _direct(self, problem: SampledProblem, state: TrackingState, draw: Draw, P: Array) -> None:
        """``W = G Q(Y)' + M_theta X T`` with ``G = grad f_xi(X Q(Y))``, as it stands in the paper."""
        sampled = cast(SampledGCCA, problem)
        X, Q = state.X, dissolving_factor(state.Y)
        G = sampled.gradient(draw.rows[draw.xi], lane_product(X, Q))
        MX = sampled.constraint_gradient(draw.rows[draw.theta], X)
        T = multiplier(lane_gram(X, G), state.Y, self.beta)
        state.D = lane_product(G, np.swapaxes(Q, -1, -2)) + lane_product(MX, T)


FORMS: dict[str, type[CDFSG]] = {kind.name: kind for kind in (CDFSG, CDFSGAda, Textbook)}
"""What is counted, by name."""


@dataclass(frozen=True)
class Setting:
    """The sizes of one step.

    Attributes
    ----------
    solver : str
        One of `FORMS`.
    sizes : tuple of int
        Rows of X in each view.
    batch_size, p : int
    merit : str
    """

    solver: str
    sizes: tuple[int, ...]
    batch_size: int
    p: int
    merit: str = "identity"

    @property
    def numbers(self) -> dict[str, int]:
        """m, n, l and p."""
        return {"m": len(self.sizes), "n": sum(self.sizes), "batch_size": self.batch_size, "p": self.p}


# --- multiplications -------------------------------------------------------------------------------------


def count(setting: Setting) -> Ledger:
    """Multiplications of the second step, on random minibatches; the first one has D = 0 but costs the same."""
    ledger = Ledger()
    solver, problem, draw = _material(setting)
    for name, update in (("_move", "X"), ("_direct", "D")):
        # On the instance, so that the algorithm which is derived from the other calls it unlabelled.
        object.__setattr__(solver, name, ledger.labelled(update, getattr(solver, name)))
    state = _start(solver, problem, setting, draw)
    watched = CountedProblem(problem, ledger, draw)
    for name in ("X", "D", "Y", "C", "B", "V"):
        if hasattr(state, name):
            setattr(state, name, counted(getattr(state, name), ledger))
    with ledger.during("Y"):
        solver.step(watched, state, draw, 0)
    return ledger


def counts(settings: Iterable[Setting]) -> pd.DataFrame:
    """One row per setting, key update and part of it (an oracle or the algebra around it).

    Returns
    -------
    DataFrame
        Columns ``solver, merit, m, n, batch_size, p, update, part, calls, multiplications``; `calls` is how often
        the step asks the oracle.
    """
    rows = []
    for setting in settings:
        ledger = count(setting)
        for (update, part), number in sorted(ledger.counts.items()):
            row: dict[str, Any] = {"solver": setting.solver, "merit": setting.merit, **setting.numbers}
            rows.append(
                {**row, "update": update, "part": part, "calls": ledger.calls[part], "multiplications": number}
            )
    return pd.DataFrame(rows)


def polynomial(rows: pd.DataFrame) -> dict[str, int]:
    """The polynomial in m, n, l, p that gives every count of one update and part exactly.

    Parameters
    ----------
    rows : DataFrame
        Counts of one solver, merit, update and part, at enough sizes to tell the terms of `TERMS` apart.

    Returns
    -------
    dict
        From a term to its coefficient, without those that are zero.

    Raises
    ------
    ValueError
        If the sizes do not tell the terms apart, or no polynomial with whole coefficients gives the counts.
    """
    sizes = rows[["m", "n", "batch_size", "p"]].to_numpy()
    design = np.array([[term(*map(int, size)) for term in TERMS.values()] for size in sizes])
    scale = design.max(axis=0)
    if np.linalg.matrix_rank(design / scale) < len(TERMS):
        raise ValueError(f"{len(rows)} counts do not tell {len(TERMS)} terms apart: vary n, l and p more, m as well")
    target = rows["multiplications"].to_numpy()
    solution = np.linalg.lstsq(design / scale, target, rcond=None)[0] / scale
    coefficients = np.rint(solution).astype(np.int64)
    if not np.array_equal(design @ coefficients, target):
        raise ValueError(
            f"the counts are no polynomial with whole coefficients in {', '.join(TERMS)}; the best one has "
            f"{np.round(solution, 3)}"
        )
    return {name: int(value) for name, value in zip(TERMS, coefficients, strict=True) if value}


def polynomials(table: pd.DataFrame) -> pd.DataFrame:
    """The polynomial of every solver, merit, update and part.

    Returns
    -------
    DataFrame
        Columns ``solver, merit, update, part, calls, term, coefficient``, one row per term.
    """
    rows = []
    for key, group in table.groupby(["solver", "merit", "update", "part"], sort=False):
        (calls,) = set(group["calls"])
        for term, coefficient in polynomial(group).items():
            rows.append((*key, calls, term, coefficient))
    return pd.DataFrame(rows, columns=["solver", "merit", "update", "part", "calls", "term", "coefficient"])


def written(terms: pd.DataFrame) -> str:
    """A polynomial in words, such as ``4 m l p^2 + p^3``."""
    sums = terms.groupby("term")["coefficient"].sum()
    parts = [f"{sums[name]} {name}" if sums[name] != 1 else name for name in TERMS if sums.get(name)]
    return " + ".join(parts) or "0"


def evaluate(terms: pd.DataFrame, m: int, n: int, batch_size: int, p: int) -> int:
    """Value of a polynomial at given sizes."""
    return sum(
        int(coefficient) * TERMS[term](m, n, batch_size, p)
        for term, coefficient in zip(terms["term"], terms["coefficient"], strict=True)
    )


# --- the paper's table -----------------------------------------------------------------------------------


def printed_cost() -> pd.DataFrame:
    """The paper's table: ``update, quantity, term, coefficient``; NaN where it prints an order only."""
    return checksums.read_csv(PAPER / "computation.csv")


def printed_adds_up() -> bool:
    """Whether the printed total is the sum of the printed rows."""
    table = printed_cost()
    of_rows = table[table["update"] != "total"].groupby(["quantity", "term"])["coefficient"].sum()
    total = table[table["update"] == "total"].set_index(["quantity", "term"])["coefficient"].fillna(0)
    return bool(of_rows.sort_index().equals(total.sort_index()))


def beside_the_paper(terms: pd.DataFrame, merit: str = "identity") -> pd.DataFrame:
    """What the paper prints for each key update, and what the solvers do there.

    Returns
    -------
    DataFrame
        One row per key update and part: ``update, part, printed`` and the polynomial of every solver; an oracle's
        with all its calls.
    """
    formula = printed_cost()
    rows = []
    for update, part in product(UPDATES, ("algebra", *ORACLES)):
        cells = terms[(terms["merit"] == merit) & (terms["update"] == update) & (terms["part"] == part)]
        said = formula[(formula["update"] == update) & (formula["quantity"] == "cost")]
        said = said[said["term"].isin(ORACLES) if part == "algebra" else said["term"] != part]
        said = formula.loc[(formula["update"] == update) & (formula["quantity"] == "cost")].drop(said.index)
        if cells.empty and said.empty:
            continue
        row = {"update": update, "part": part, "printed": " + ".join(map(_said, said["term"], said["coefficient"]))}
        rows.append(row | {name: written(cells[cells["solver"] == name]) for name in FORMS})
    return pd.DataFrame(rows)


def totals(table: pd.DataFrame, p: int) -> pd.DataFrame:
    """Multiplications of one step at one p with the identity merit, of every solver and of the paper's formula.

    The formula is read as multiplications, with its oracles as the textbook form counts them; what it prints as
    ``O(n p)`` is left out.

    Returns
    -------
    DataFrame
        Columns ``n, m, batch_size, solver, part, multiplications``; the parts are `PARTS`.
    """
    terms = polynomials(table[table["merit"] == "identity"])
    formula = printed_cost().query("update == 'total' and quantity == 'cost'").dropna()
    grouped = {name: _by_part(terms[terms["solver"] == name]) for name in FORMS}
    algebra = formula[formula["term"].isin(TERMS)]
    grouped[FORMULA] = grouped[Textbook.name] | {"products": algebra, "entrywise": algebra[:0]}
    sizes = table[["n", "m", "batch_size"]].drop_duplicates()
    return pd.DataFrame(
        [
            {**at, "solver": solver, "part": part, "multiplications": evaluate(groups[part], p=p, **at)}
            for at in sizes.to_dict("records")
            for solver, groups in grouped.items()
            for part in PARTS
        ]
    )


def break_even(terms: pd.DataFrame, m: int, n: int) -> float:
    """Batch size below which products with projections are cheaper than those with n-by-p matrices.

    It is where ``a m l p^2`` of the solver meets ``b n p^2`` of the textbook form.
    """
    own = terms[(terms["merit"] == "identity") & (terms["update"] == "D") & (terms["part"] == "algebra")]
    lifted = own[(own["solver"] == CDFSG.name) & (own["term"] == "m l p^2")]["coefficient"].sum()
    direct = own[(own["solver"] == Textbook.name) & (own["term"] == "n p^2")]["coefficient"].sum()
    return float(direct * n / (lifted * m))


# --- memory ----------------------------------------------------------------------------------------------


def memory(setting: Setting) -> dict[str, int]:
    """Numbers (of 8 bytes) that the solver keeps, and that a step allocates besides.

    Returns
    -------
    dict
        ``state``: kept from step to step, exactly; ``minibatch``: rows of theta and xi; ``extra``: the most that is
        allocated at once within a step beyond both, with a few hundred numbers' worth of Python objects.
    """
    solver, problem, draw = _material(setting)
    tracing = tracemalloc.is_tracing()
    if not tracing:
        tracemalloc.start()
    try:
        before = _numpy_bytes()
        state = _start(solver, problem, setting, draw)
        kept = _numpy_bytes() - before
        solver.step(problem, state, draw, 0)  # fills the interpreter's caches
        gc.collect()
        tracemalloc.reset_peak()
        start, _ = tracemalloc.get_traced_memory()
        solver.step(problem, state, draw, 0)
        extra = tracemalloc.get_traced_memory()[1] - start
    finally:
        if not tracing:
            tracemalloc.stop()
    return {"state": kept // 8, "minibatch": draw.rows.size, "extra": math.ceil(extra / 8)}


def memories(settings: Iterable[Setting]) -> pd.DataFrame:
    """`memory` of each setting, with its sizes."""
    return pd.DataFrame(
        [{"solver": setting.solver, **setting.numbers, **memory(setting)} for setting in settings]
    )


def slopes(table: pd.DataFrame) -> pd.DataFrame:
    """Exponents of n in the numbers kept, and in all numbers that live at once in a step, at the largest sizes.

    An n-by-n array anywhere would make the second 2.
    """
    rows = []
    for solver, line in lines(table, "n").groupby("solver"):
        ends = line.sort_values("n").iloc[-2:]
        peak = ends[["state", "minibatch", "extra"]].sum(axis=1)
        steps = np.diff(np.log(np.array([ends["n"], ends["state"], peak], dtype=float)))[:, 0]
        rows.append({"solver": solver, "state": steps[1] / steps[0], "peak": steps[2] / steps[0]})
    return pd.DataFrame(rows)


def lines(table: pd.DataFrame, along: str) -> pd.DataFrame:
    """Rows of `memories` along which only n, ``batch_size`` or p varies."""
    others = [name for name in MIDDLE if name != along]
    return table[np.logical_and.reduce([table[name] == MIDDLE[name] for name in others])]


# --- records ---------------------------------------------------------------------------------------------


def count_settings() -> list[Setting]:
    """The paper's sizes, with both merits."""
    return [
        Setting(solver, sizes, batch_size, p, merit)
        for solver, merit, sizes, batch_size, p in product(FORMS, MERITS, SIZES.values(), BATCH_SIZES, COLUMNS)
    ]


def memory_settings() -> list[Setting]:
    """Two views; n, l and p vary one at a time."""
    points = [MIDDLE | {name: value} for name, values in VARIED.items() for value in values]
    distinct = list(dict.fromkeys(tuple(point.values()) for point in points))
    solvers = (CDFSG.name, CDFSGAda.name)
    return [Setting(name, (n // 2, n // 2), size, p) for name in solvers for n, size, p in distinct]


def total_of(sums: pd.DataFrame, solver: str, n: int, batch_size: int) -> int:
    """Multiplications of one step in a table of `totals`."""
    chosen = (sums["solver"] == solver) & (sums["n"] == n) & (sums["batch_size"] == batch_size)
    return int(sums.loc[chosen, "multiplications"].sum())


def check(terms: pd.DataFrame, sums: pd.DataFrame, table: pd.DataFrame) -> None:
    """Raise unless a step costs at most what the paper prints, in the order of memory that it prints.

    Parameters
    ----------
    terms, sums : DataFrame
        `polynomials` and `totals` of the counts.
    table : DataFrame
        The records of memory.

    Raises
    ------
    AssertionError
        The message names what fails.
    """
    asked = terms[terms["part"].isin(ORACLES)].groupby(["solver", "part"])["calls"].agg(["min", "max"])
    formula = printed_cost().query("update == 'total' and quantity == 'cost'").set_index("term")["coefficient"]
    for (solver, oracle), row in asked.iterrows():
        if not row["min"] == row["max"] == formula[oracle]:
            raise AssertionError(f"{solver} asks {oracle} {row['max']} times a step, the paper {formula[oracle]:g}")
    for n, size in sums[["n", "batch_size"]].drop_duplicates().itertuples(index=False):
        ours, theirs = (total_of(sums, solver, n, size) for solver in (CDFSG.name, FORMULA))
        if ours > theirs:
            raise AssertionError(f"n = {n}, l = {size}: CDFSG multiplies {ours} times, the formula {theirs}")
    for row in table.to_dict("records"):
        tall = {CDFSG.name: 2, CDFSGAda.name: 4}[row["solver"]]
        small = row["state"] - tall * row["n"] * row["p"]
        if not 0 < small <= 3 * row["p"] ** 2:
            raise AssertionError(f"{row}: expected {tall} n p numbers in the state and a few times p^2")
    growth = slopes(table)
    if growth[["state", "peak"]].to_numpy().max() > 1.05:
        raise AssertionError(f"memory grows faster than n:\n{growth}")


def publish(folder: Path = RECORDS) -> None:
    """Write the records of counts and of memory, some seconds of work."""
    checksums.write(folder / NAME, counts(count_settings()).to_csv(index=False, lineterminator="\n"))
    checksums.write(folder / MEMORY_NAME, memories(memory_settings()).to_csv(index=False, lineterminator="\n"))


def published(name: str = NAME) -> pd.DataFrame:
    """Read the records of counts, or those of memory.

    Raises
    ------
    FileNotFoundError
        If they are missing; the message says how to make them.
    """
    if not (RECORDS / name).exists():
        raise FileNotFoundError(f"{RECORDS / name} is missing; make it with: python -m cdfsg run")
    return checksums.read_csv(RECORDS / name, "make it anew with: python -m cdfsg run")


def _by_part(terms: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Terms of one solver by `PARTS`."""
    algebra, entrywise = terms["part"] == "algebra", terms["term"].isin(("n p", "p^2"))
    groups = {part: terms[terms["part"] == part] for part in ORACLES}
    return groups | {"products": terms[algebra & ~entrywise], "entrywise": terms[algebra & entrywise]}


def _material(setting: Setting) -> tuple[CDFSG, SampledGCCA, Draw]:
    """Solver, problem and the minibatches of a step, whose first one also serves the start."""
    size = setting.batch_size
    rows = np.random.default_rng(0).standard_normal((2 * size, sum(setting.sizes)))
    problem = SampledGCCA(setting.sizes, make_merit(setting.merit, MU))
    return FORMS[setting.solver](BETA), problem, Draw(rows, slice(0, size), slice(size, None))


def _start(solver: CDFSG, problem: SampledGCCA, setting: Setting, draw: Draw) -> TrackingState:
    X0 = np.random.default_rng(1).standard_normal((sum(setting.sizes), 1, setting.p))
    X0 /= np.sqrt(X0.shape[0] * setting.p)
    steps: dict[str, Array] = {"s1": np.array([0.5]), "s2": np.array([0.01])}
    return solver.start(problem, X0, steps, draw.rows[draw.theta])


def _numpy_bytes() -> int:
    """Bytes of the array buffers allocated since tracing began."""
    gc.collect()
    only = tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)
    return sum(trace.size for trace in tracemalloc.take_snapshot().filter_traces([only]).traces)


def _said(term: str, coefficient: float) -> str:
    if math.isnan(coefficient):
        return f"O({term})"
    return term if coefficient == 1 else f"{coefficient:g} {term}"
