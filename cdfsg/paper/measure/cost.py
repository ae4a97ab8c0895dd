"""What one step of Algorithms 1 and 2 costs, beside the paper's Table ta:computation.

The letters are the paper's: n rows of X over all m views, p columns, l rows of a minibatch.
"""

import gc
import math
import tracemalloc
from collections.abc import Callable, Iterable
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from cdfsg import checksums
from cdfsg.files import PAPER, RECORDS
from cdfsg.merits import Identity
from cdfsg.problems import SampledGCCA
from cdfsg.solvers.cdfsg import CDFSG, CDFSGAda

SIZES = {"mediamill": (120, 101), "mnist": (392, 392), "nmnist": (784, 784, 784)}
"""View sizes of the paper's data sets; a count needs no more of them."""
BATCH_SIZES = (20, 50, 100, 200)
MIDDLE = {"n": 800, "batch_size": 20, "p": 10}
VARIED = {"n": (200, 400, 800, 1600, 3200, 6400, 12800), "batch_size": (20, 50, 100, 200, 400), "p": (5, 10, 20, 40)}
"""Sizes at which memory is measured: one varies, the others stay."""
MEMORY_NAME = "cost-memory.csv"

TERMS: dict[str, Callable[..., int]] = {
    "l n p": lambda m, n, batch_size, p: batch_size * n * p,
    "n p^2": lambda m, n, batch_size, p: n * p**2,
    "m l p^2": lambda m, n, batch_size, p: m * batch_size * p**2,
    "p^3": lambda m, n, batch_size, p: p**3,
    "n p": lambda m, n, batch_size, p: n * p,
    "m l p": lambda m, n, batch_size, p: m * batch_size * p,
    "m (m-1) l p": lambda m, n, batch_size, p: m * (m - 1) * batch_size * p,
    "p^2": lambda m, n, batch_size, p: p**2,
}
"""Monomials that a count is made of, largest first for the paper's sizes."""
ORACLES = {"O_C": 2, "O_grad_f": 1, "O_grad_C": 1}
"""How often a step asks each."""
PARTS = (*ORACLES, "products", "entrywise")
"""What a step does: ask the oracles, multiply tall matrices by p-by-p ones, pass over the entries of X and Y."""
FORMULA, TEXTBOOK = "the paper's formula", "CDFSG, textbook"
SOLVERS: dict[str, type[CDFSG]] = {CDFSG.name: CDFSG, CDFSGAda.name: CDFSGAda}
FORMS = (*SOLVERS, TEXTBOOK)
"""The textbook form asks every oracle by itself, and multiplies n-by-p matrices where the solver multiplies scores."""
STEP: dict[tuple[str, str], dict[str, str]] = {
    ("X", "algebra"): {CDFSG.name: "n p", CDFSGAda.name: "3 n p", TEXTBOOK: "n p"},
    ("Y", "algebra"): dict.fromkeys(FORMS, "p^2"),
    ("Y", "O_C"): dict.fromkeys(FORMS, "2 l n p + 2 m l p^2 + 2 p^2"),
    ("D", "algebra"): {
        CDFSG.name: "4 m l p^2 + p^3 + 4 p^2",
        CDFSGAda.name: "4 m l p^2 + p^3 + 5 n p + 4 p^2",
        TEXTBOOK: "4 n p^2 + p^3 + 4 p^2",
    },
    ("D", "O_grad_f"): dict.fromkeys(FORMS, "2 l n p + m (m-1) l p"),
    ("D", "O_grad_C"): {**dict.fromkeys(FORMS, "l n p + m l p"), TEXTBOOK: "2 l n p + m l p"},
}
"""Scalar multiplications with the identity merit, by key update and part; quotients and square roots count as one."""


def terms_of(formula: str) -> dict[str, int]:
    """Coefficients of a formula.

    Examples
    --------
    >>> terms_of("4 m l p^2 + p^3")
    {'m l p^2': 4, 'p^3': 1}
    """
    pairs = (part.split(" ", 1) if part[0].isdigit() else (1, part) for part in formula.split(" + "))
    return {str(term): int(count) for count, term in pairs}


def evaluate(formula: str, m: int, n: int, batch_size: int, p: int) -> int:
    """Value of a formula at given sizes."""
    return sum(count * TERMS[term](m, n, batch_size, p) for term, count in terms_of(formula).items())


def load_printed_cost() -> pd.DataFrame:
    """The paper's table: ``update, quantity, term, coefficient``; NaN where it prints an order only."""
    return checksums.read_csv(PAPER / "computation.csv")


def printed_adds_up() -> bool:
    """Whether the printed total is the sum of the printed rows."""
    table = load_printed_cost()
    of_rows = table.groupby([table["update"] == "total", "quantity", "term"])["coefficient"].sum()
    return bool(of_rows[False].equals(of_rows[True]))


def beside_the_paper() -> pd.DataFrame:
    """What the paper prints for each key update and part, and the formula of every solver, over all calls."""
    table = load_printed_cost().query("quantity == 'cost'")
    part_of = table["term"].where(table["term"].isin(ORACLES), "algebra")
    said = [_said(*pair) for pair in zip(table["term"], table["coefficient"], strict=True)]
    printed = pd.Series(said, index=[table["update"], part_of]).groupby(level=[0, 1]).agg(" + ".join)
    return pd.DataFrame(
        [{"update": at[0], "part": at[1], "printed": printed.get(at, ""), **forms} for at, forms in STEP.items()]
    )


def totals(p: int) -> pd.DataFrame:
    """Multiplications of one step at one p, of every solver and of the paper's formula, by `PARTS`.

    The formula is read as multiplications, with its oracles as the textbook form counts them; what it prints as
    ``O(n p)`` is left out.
    """
    formula = load_printed_cost().query("update == 'total' and quantity == 'cost'").dropna()
    algebra = formula[formula["term"].isin(TERMS)]
    rows = []
    for sizes, batch_size in product(SIZES.values(), BATCH_SIZES):
        at = {"n": sum(sizes), "m": len(sizes), "batch_size": batch_size}
        counted = {solver: _by_part(solver, {**at, "p": p}) for solver in FORMS}
        printed = sum(int(row.coefficient) * TERMS[row.term](**at, p=p) for row in algebra.itertuples())
        counted[FORMULA] = counted[TEXTBOOK] | {"products": printed, "entrywise": 0}
        rows += [(*at.values(), solver, part, parts[part]) for solver, parts in counted.items() for part in PARTS]
    return pd.DataFrame(rows, columns=[*at, "solver", "part", "multiplications"])


def total_of(sums: pd.DataFrame, solver: str, n: int, batch_size: int) -> int:
    """Multiplications of one step in a table of `totals`."""
    chosen = (sums["solver"] == solver) & (sums["n"] == n) & (sums["batch_size"] == batch_size)
    return int(sums.loc[chosen, "multiplications"].sum())


def break_even(m: int, n: int) -> float:
    """Batch size up to which products with scores are cheaper: ``a m l p^2`` meets ``b n p^2`` of the textbook form."""
    forms = STEP["D", "algebra"]
    return terms_of(forms[TEXTBOOK])["n p^2"] * n / (terms_of(forms[CDFSG.name])["m l p^2"] * m)


def _by_part(solver: str, sizes: dict[str, int]) -> dict[str, int]:
    """Multiplications of a step by `PARTS`."""
    found = dict.fromkeys(PARTS, 0)
    for (_, part), forms in STEP.items():
        for term, count in terms_of(forms[solver]).items():
            algebra = "entrywise" if term in ("n p", "p^2") else "products"
            found[algebra if part == "algebra" else part] += count * TERMS[term](**sizes)
    return found


def _said(term: str, coefficient: float) -> str:
    if math.isnan(coefficient):
        return f"O({term})"
    return term if coefficient == 1 else f"{coefficient:g} {term}"


def memory(solver: CDFSG, n: int, batch_size: int, p: int) -> dict[str, int]:
    """Numbers (of 8 bytes) that the solver keeps on two views, and the most that a step allocates besides.

    The latter is rounded to hundreds, as the interpreter's own few objects vary.
    """
    rng = np.random.default_rng(0)
    samples, X0 = rng.standard_normal((2, batch_size, n)), rng.standard_normal((1, n, p)) / math.sqrt(n * p)
    problem = SampledGCCA((n // 2, n - n // 2), Identity())
    steps = {"s1": np.full((1, 1, p), 0.5), "s2": np.full((1, 1, p), 0.01)}
    state = solver.start(problem, X0, steps, samples[:1])
    tracing = tracemalloc.is_tracing()
    if not tracing:
        tracemalloc.start()
    try:
        for _ in range(2):  # the first fills the interpreter's caches
            gc.collect()
            tracemalloc.reset_peak()
            start, _ = tracemalloc.get_traced_memory()
            solver.step(problem, state, samples)
        extra = tracemalloc.get_traced_memory()[1] - start
    finally:
        if not tracing:
            tracemalloc.stop()
    kept = {id(array): array.size for array in vars(state).values()}
    return {"state": sum(kept.values()), "minibatch": samples.size, "extra": round(extra / 800) * 100}


def memories(settings: Iterable[tuple[str, int, int, int]]) -> pd.DataFrame:
    """`memory` of each solver, n, l and p."""
    table = pd.DataFrame(settings, columns=["solver", "n", "batch_size", "p"])
    found = [memory(SOLVERS[name](), *sizes) for name, *sizes in table.itertuples(index=False)]
    table.insert(1, "m", 2)
    return table.join(pd.DataFrame(found))


def memory_settings() -> list[tuple[str, int, int, int]]:
    """Two views; n, l and p vary one at a time."""
    points = [MIDDLE | {name: value} for name, values in VARIED.items() for value in values]
    distinct = dict.fromkeys((point["n"], point["batch_size"], point["p"]) for point in points)
    return [(name, *point) for name in SOLVERS for point in distinct]


def lines(table: pd.DataFrame, along: str) -> pd.DataFrame:
    """Rows of `memories` along which only n, ``batch_size`` or p varies."""
    others = [name for name in MIDDLE if name != along]
    return table[np.logical_and.reduce([table[name] == MIDDLE[name] for name in others])]


def slopes(table: pd.DataFrame) -> pd.DataFrame:
    """Exponents of n in the numbers kept, and in all that live at once in a step; an n-by-n array would make them 2."""
    along = lines(table, "n").assign(peak=lambda t: t[["state", "minibatch", "extra"]].sum(axis=1))
    logs = np.log(along.set_index(["solver", "n"])[["state", "peak"]].sort_index())
    ends = logs.groupby("solver").tail(2).groupby("solver").diff().dropna()
    step = np.log(VARIED["n"][-1] / VARIED["n"][-2])
    return (ends / step).reset_index("n", drop=True).reset_index()


def publish(folder: Path = RECORDS) -> None:
    """Write the record of memory, some seconds of work."""
    checksums.write(folder / MEMORY_NAME, memories(memory_settings()).to_csv(index=False, lineterminator="\n"))


def read_memory() -> pd.DataFrame:
    """Read the record of memory."""
    path = RECORDS / MEMORY_NAME
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing; make it with: python -m cdfsg run")
    return checksums.read_csv(path, "make it anew with: python -m cdfsg run")


def check(sums: pd.DataFrame, table: pd.DataFrame) -> None:
    """Raise AssertionError unless a step costs at most what the paper prints, by the `totals` and the memory table."""
    formula = load_printed_cost().query("update == 'total' and quantity == 'cost'").set_index("term")["coefficient"]
    for oracle, calls in ORACLES.items():
        if calls != formula[oracle]:
            raise AssertionError(f"a step asks {oracle} {calls} times, the paper {formula[oracle]:g}")
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
