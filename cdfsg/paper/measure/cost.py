"""What one step of Algorithms 1 and 2 costs, beside the paper's Table ta:computation.

The letters are the paper's: n rows of X over all m views, p columns, l rows of a minibatch.
"""

import gc
import math
import tracemalloc
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
"""View sizes of the paper's data sets."""
BATCH_SIZES = (20, 50, 100, 200)
MIDDLE = {"n": 800, "batch_size": 20, "p": 10}
VARIED = {"n": (200, 400, 800, 1600, 3200, 6400, 12800), "batch_size": (20, 50, 100, 200, 400), "p": (5, 10, 20, 40)}
"""Sizes at which memory is measured: one varies, the others stay."""
MEMORY_NAME = "cost-memory.csv"

ORACLES = {"O_C": 2, "O_grad_f": 1, "O_grad_C": 1}
"""How often a step asks each."""
PARTS = (*ORACLES, "products", "entrywise")
"""What a step does: ask the oracles, multiply tall matrices by p-by-p ones, pass over entries."""
FORMULA, TEXTBOOK = "the paper's formula", "CDFSG, textbook"
SOLVERS: dict[str, type[CDFSG]] = {CDFSG.name: CDFSG, CDFSGAda.name: CDFSGAda}
FORMS = (*SOLVERS, TEXTBOOK)
"""The textbook form asks each oracle alone, and multiplies n-by-p matrices in place of scores."""
STEP = pd.DataFrame(
    {
        ("X", "entrywise"): ("n p", "3 n p", "n p"),
        ("Y", "entrywise"): ("p^2",) * 3,
        ("Y", "O_C"): ("2 l n p + 2 m l p^2 + 2 p^2",) * 3,
        ("D", "products"): ("4 m l p^2 + p^3", "4 m l p^2 + p^3", "4 n p^2 + p^3"),
        ("D", "entrywise"): ("4 p^2", "5 n p + 4 p^2", "4 p^2"),
        ("D", "O_grad_f"): ("2 l n p + m (m-1) l p",) * 3,
        ("D", "O_grad_C"): ("l n p + m l p", "l n p + m l p", "2 l n p + m l p"),
    },
    FORMS,
).T.rename_axis(["update", "part"])
"""Scalar multiplications, quotients and roots with the identity merit, by key update and part."""


def evaluate(formula: str, m: int, n: int, batch_size: int, p: int) -> int:
    """Value of a formula such as "4 m l p^2 + p^3" at given sizes."""
    expression = "+".join("*".join(term.split()) for term in formula.split(" + ")).replace("^", "**")
    return int(pd.eval(expression, engine="python", local_dict={"m": m, "n": n, "l": batch_size, "p": p}))


def load_printed_cost() -> pd.DataFrame:
    """The paper's table: ``update, quantity, term, coefficient``; NaN where it prints an order only."""
    return checksums.read_csv(PAPER / "computation.csv")


def printed_adds_up() -> bool:
    """Whether the printed total is the sum of the printed rows."""
    table = load_printed_cost()
    of_rows = table.groupby([table["update"] == "total", "quantity", "term"])["coefficient"].sum()
    return bool(of_rows[False].equals(of_rows[True]))


def beside_the_paper() -> pd.DataFrame:
    """`STEP`, and what the paper prints for each row; the "total" is the paper's alone."""
    table = load_printed_cost().query("quantity == 'cost'")
    count = table["coefficient"].map("{:g} ".format).replace("1 ", "")
    said = (count + table["term"]).where(table["coefficient"].notna(), "O(" + table["term"] + ")")
    part = table["term"].where(table["term"].isin(ORACLES), "products").mask(table["coefficient"].isna(), "entrywise")
    printed = said.groupby([table["update"], part.rename("part")]).agg(" + ".join)
    return STEP.reindex(STEP.index.union(printed.index, sort=False)).assign(printed=printed)


def totals(p: int) -> pd.DataFrame:
    """Multiplications of one step at one p, of every solver and of the paper's formula, by `PARTS`.

    The formula is read as multiplications, with the textbook's oracles and without its ``O(n p)``.
    """
    products = beside_the_paper().at[("total", "products"), "printed"]
    tables = []
    for sizes, batch_size in product(SIZES.values(), BATCH_SIZES):
        at = {"n": sum(sizes), "m": len(sizes), "batch_size": batch_size}
        table = STEP.map(lambda formula, at=at: evaluate(formula, p=p, **at)).groupby("part").sum().loc[list(PARTS)]
        table[FORMULA] = table[TEXTBOOK]
        table.loc[["products", "entrywise"], FORMULA] = evaluate(products, p=p, **at), 0
        tables.append(table.rename_axis(columns="solver").unstack().rename("multiplications").reset_index().assign(**at))
    return pd.concat(tables, ignore_index=True)[["n", "m", "batch_size", "solver", "part", "multiplications"]]


def memory(solver: CDFSG, n: int, batch_size: int, p: int) -> dict[str, int]:
    """Numbers (of 8 bytes) that the solver keeps on two views, and the most that a step allocates besides.

    The latter is rounded to hundreds: the interpreter's own objects vary.
    """
    rng = np.random.default_rng(0)
    samples, X0 = rng.standard_normal((2, batch_size, n)), rng.standard_normal((1, n, p)) / math.sqrt(n * p)
    problem = SampledGCCA((n // 2, n - n // 2), Identity())
    steps = {"s1": np.full((1, 1, p), 0.5), "s2": np.full((1, 1, p), 0.01)}
    state = solver.start(problem, X0, steps, samples[:1])
    tracemalloc.start()
    try:
        for _ in range(2):  # the first fills the interpreter's caches
            gc.collect()
            tracemalloc.reset_peak()
            start, _ = tracemalloc.get_traced_memory()
            solver.step(problem, state, samples)
        extra = tracemalloc.get_traced_memory()[1] - start
    finally:
        tracemalloc.stop()
    kept = {id(array): array.size for array in vars(state).values()}
    return {"state": sum(kept.values()), "minibatch": samples.size, "extra": round(extra / 800) * 100}


def memories(every: int = 1) -> pd.DataFrame:
    """`memory` of each solver where n, l and p vary one at a time, or `every` so many rows."""
    points = [MIDDLE | {name: value} for name, values in VARIED.items() for value in values]
    rows = [{"solver": name, "m": 2, **point} for name in SOLVERS for point in points]
    table = pd.DataFrame(rows).drop_duplicates(ignore_index=True).iloc[::every].reset_index(drop=True)
    found = [memory(SOLVERS[row.solver](), row.n, row.batch_size, row.p) for row in table.itertuples()]
    return table.join(pd.DataFrame(found))


def lines(table: pd.DataFrame, along: str) -> pd.DataFrame:
    """Rows of `memories` along which only n, ``batch_size`` or p varies, in its order."""
    others = [name for name in MIDDLE if name != along]
    return table[(table[others] == [MIDDLE[name] for name in others]).all(axis=1)].sort_values(along)


def slopes(table: pd.DataFrame) -> pd.DataFrame:
    """Exponents of n in the numbers kept, and in all that live at once in a step."""
    along = lines(table, "n").assign(peak=lambda t: t[["state", "minibatch", "extra"]].sum(axis=1))
    last = np.log(along.set_index("solver")[["n", "state", "peak"]]).groupby("solver").tail(2)
    steps = last.groupby("solver").diff().dropna()
    return steps[["state", "peak"]].div(steps["n"], axis=0).reset_index()


def publish(folder: Path = RECORDS) -> None:
    """Write the record of memory, some seconds of work."""
    checksums.write(folder / MEMORY_NAME, memories().to_csv(index=False, lineterminator="\n"))


def read_memory() -> pd.DataFrame:
    """Read the record of memory."""
    return checksums.read_record(RECORDS / MEMORY_NAME, "python -m cdfsg run")
