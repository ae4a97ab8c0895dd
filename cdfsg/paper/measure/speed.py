"""How fast the engine is: the model that it is held against, and the records of `make bench` as tables.

`benchmarks/` measures and writes the records; here stands what is counted and what is concluded.  The letters are the
paper's: n rows of X over all m views, p columns, l rows of a minibatch, N samples; L lanes run together.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from cdfsg import checksums
from cdfsg.files import RECORDS
from cdfsg.paper.experiments import EXPERIMENTS
from cdfsg.paper.results.reported import printed
from cdfsg.solvers import SOLVERS

PARTS = ("direct", "others", "roofline", "growth")
"""The parts of `make bench`; each writes ``speed-<part>.csv``."""
LEVELS = (0.90, 0.95)
"""PCC to which the time is taken."""
PAPERS_MACHINE = "MATLAB R2019b on an Intel Xeon Silver 4110 at 2.1 GHz"
"""Where the paper's seconds were measured (its Section 5)."""

DATA_PRODUCTS = {"CDFSG": 5, "CDFSG-Ada": 5, "Landing": 4}
"""Products of a minibatch with n-by-p matrices per step: three projections and two lifts; Landing has two of each."""
STATE_PASSES = {"CDFSG": 2, "CDFSG-Ada": 6, "Landing": 2}
"""Reads and writes of n-by-p arrays per step: X, and the two moment estimates of CDFSG-Ada."""
FLOAT = 4
"""Bytes of the numbers that the engine computes with."""


# --- the model -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Work:
    """The sizes of one step of all lanes.

    Attributes
    ----------
    solver : str
        One of `DATA_PRODUCTS`.
    n, batch_size, p, lanes : int
    stored : int
        Bytes of a stored value of the data.
    """

    solver: str
    n: int
    batch_size: int
    p: int
    lanes: int
    stored: int = 1

    @property
    def rows(self) -> int:
        """Rows of all minibatches of a step."""
        return SOLVERS[self.solver].streams * self.batch_size

    @property
    def flops(self) -> int:
        """Additions and multiplications of the products with the data, as the algorithm is written.

        Left out are the p-by-p algebra and passes over the entries, and whatever an engine does to need fewer.
        """
        return 2 * DATA_PRODUCTS[self.solver] * self.batch_size * self.n * self.lanes * self.p

    @property
    def stored_bytes(self) -> int:
        """Bytes read of the data as they are stored, which come from memory: a minibatch has rows at random."""
        return self.rows * self.n * self.stored

    @property
    def working_bytes(self) -> int:
        """Least bytes moved besides, at floating-point type.

        Every value of a minibatch is written once as it is converted and read once again: the lift needs the whole
        projection, while the projection can use a value as it is converted.  X, and the moments of CDFSG-Ada, are
        read and written once.  Projections and D are taken to stay in registers.
        """
        minibatch = 2 * self.rows * self.n
        state = STATE_PASSES[self.solver] * self.n * self.lanes * self.p
        return FLOAT * (minibatch + state)

    @property
    def working_set(self) -> int:
        """Bytes that are live during a step, which decide how fast they move."""
        state = STATE_PASSES[self.solver] // 2 * self.n * self.lanes * self.p
        return FLOAT * (self.rows * self.n + state)

    @property
    def intensity(self) -> float:
        """Flops per byte."""
        return self.flops / (self.stored_bytes + self.working_bytes)


def roofline_seconds(work: Work, peak: float, memory: float, cache: float) -> float:
    """Least seconds of a step: those of the flops or those of the bytes, whichever are more.

    Parameters
    ----------
    work : Work
    peak : float
        Flops per second.
    memory, cache : float
        Bytes per second from memory, and within an array of the size of the working set.
    """
    return max(work.flops / peak, work.stored_bytes / memory + work.working_bytes / cache)


# --- growth ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fit:
    """A power law ``scale * x^exponent``, with the half width of the exponent's 95 % interval."""

    exponent: float
    half_width: float
    scale: float
    points: int

    def at(self, x: np.ndarray) -> np.ndarray:
        """Value of the law."""
        value: np.ndarray = self.scale * x**self.exponent
        return value


def fit(x: Iterable[float], y: Iterable[float]) -> Fit:
    """Least squares in logarithms.

    Raises
    ------
    ValueError
        With fewer than three points, from which no interval follows, or values that have no logarithm.
    """
    xs, ys = (np.asarray(list(values), dtype=float) for values in (x, y))
    if len(xs) < 3 or min(xs.min(), ys.min()) <= 0:
        raise ValueError(f"a power law needs three or more points with positive values, got x = {xs}, y = {ys}")
    line = stats.linregress(np.log(xs), np.log(ys))
    half = float(stats.t.ppf(0.975, len(xs) - 2) * line.stderr)
    return Fit(float(line.slope), half, math.exp(line.intercept), len(xs))


def exponents(table: pd.DataFrame) -> pd.DataFrame:
    """Exponents of time and peak memory along each axis, over the whole range and over its upper part.

    The upper part is where the term that grows outweighs what a step costs at any size; the benchmark marks its
    points `upper`.

    Returns
    -------
    DataFrame
        Columns ``solver, axis, quantity, part, exponent, half_width, scale, points, low, high``.
    """
    rows = []
    for (solver, axis), line in table.groupby(["solver", "axis"], sort=False):
        for quantity, (part, kept) in product(
            ("seconds", "peak_bytes"), (("whole", line), ("upper", line[line["upper"]]))
        ):
            found = fit(kept["value"], kept[quantity])
            rows.append(
                {"solver": solver, "axis": axis, "quantity": quantity, "part": part, **vars(found),
                 "low": kept["value"].min(), "high": kept["value"].max()}
            )  # fmt: skip
    return pd.DataFrame(rows)


# --- other methods ---------------------------------------------------------------------------------------


def reached(curves: pd.DataFrame, levels: Iterable[float] = LEVELS) -> pd.DataFrame:
    """When each method reaches which PCC.

    Returns
    -------
    DataFrame
        One row per method and setting: ``seconds_to_0.90`` and so on, NaN where it is not reached; the PCC after
        one pass and its seconds; the last PCC and its seconds.
    """
    rows = []
    for (method, setting), line in curves.groupby(["method", "setting"], sort=False):
        line = line.sort_values("seconds")
        first = line[line["passes"] >= 1].iloc[0]
        row = {"method": method, "setting": setting}
        for level in levels:
            there = line.loc[line["pcc"] >= level, "seconds"]
            row[f"seconds_to_{level:.2f}"] = there.iloc[0] if len(there) else np.nan
        row |= {"pcc_pass": first["pcc"], "seconds_pass": first["seconds"]}
        rows.append(row | {"passes": line["passes"].iloc[-1], "pcc_end": line["pcc"].iloc[-1],
                           "seconds_end": line["seconds"].iloc[-1]})  # fmt: skip
    return pd.DataFrame(rows)


# --- the paper's seconds ---------------------------------------------------------------------------------


def beside_the_paper(roofline: pd.DataFrame) -> pd.DataFrame:
    """The paper's CPU seconds of a pass beside ours of one lane, with the identity merit.

    Returns
    -------
    DataFrame
        Columns ``dataset, batch_size, p, solver, paper, ours``; `ours` follows from the steps that were timed.
    """
    cells = pd.concat([printed(table) for table, experiment in EXPERIMENTS.items() if experiment.merit == "identity"])
    cells = cells[cells["quantity"] == "time_s"]
    keys = ["dataset", "batch_size", "p", "solver"]
    mine = roofline[roofline["lanes"] == 1].assign(ours=roofline["step_seconds"] * roofline["pass_steps"])
    both = mine[[*keys, "ours"]].merge(cells[[*keys, "reported"]].dropna(), on=keys)
    return both.rename(columns={"reported": "paper"})[[*keys, "paper", "ours"]]


# --- targets ---------------------------------------------------------------------------------------------


def _direct(lanes: int, dtype: str) -> Callable[[dict[str, pd.DataFrame]], float]:
    def lowest(records: dict[str, pd.DataFrame]) -> float:
        table = records["direct"]
        kept = table[(table["dataset"] == "nmnist") & (table["dtype"] == dtype) & (table["lanes"] == lanes)]
        return float(kept["ratio"].min())

    return lowest


def _share(dataset: str | None, lanes: int) -> Callable[[dict[str, pd.DataFrame]], float]:
    def lowest(records: dict[str, pd.DataFrame]) -> float:
        table = records["roofline"]
        kept = table[(table["lanes"] == lanes) & (table["batch_size"] >= 100)]
        kept = kept[kept["solver"] != "Landing"]
        return float((kept if dataset is None else kept[kept["dataset"] == dataset])["share"].min())

    return lowest


def _exponent(axis: str) -> Callable[[dict[str, pd.DataFrame]], float]:
    def farthest(records: dict[str, pd.DataFrame]) -> float:
        found = exponents(records["growth"])
        kept = found[(found["axis"] == axis) & (found["quantity"] == "seconds") & (found["part"] == "upper")]
        return float((kept["exponent"] - 1).abs().max())

    return farthest


def _dense_share(records: dict[str, pd.DataFrame]) -> float:
    table = records["growth"]
    largest = table[(table["axis"] == "n") & (table["value"] == table["n"].max())]
    return float((largest["peak_bytes"] / largest["dense_bytes"]).max())


@dataclass(frozen=True)
class Target:
    """Something to be measured, worst over CDFSG and CDFSG-Ada.

    Attributes
    ----------
    says : str
    wanted : float
    at_least : bool
        Whether more is better.
    measure : callable
        From the records by part to the number.
    """

    says: str
    wanted: float
    at_least: bool
    measure: Callable[[dict[str, pd.DataFrame]], float]


TARGETS = (
    *(
        Target(f"n-MNIST, {words}: direct form in {dtype} / engine", wanted, True, _direct(lanes, dtype))
        for words, lanes, wanted in (("one lane", 1, 50), ("per lane of 180", 180, 300))
        for dtype in ("float32", "float64")
    ),
    Target("180 lanes, l >= 100: share of the roofline", 0.50, True, _share(None, 180)),
    Target("n-MNIST, one lane, l >= 100: share of the roofline", 0.25, True, _share("nmnist", 1)),
    *(
        Target(f"growth in {axis}: |exponent of time - 1|", 0.10, False, _exponent(axis))
        for axis in ("n", "N", "p")
    ),
    Target("largest n: peak memory / one n-by-n array", 0.25, False, _dense_share),
)
"""Set before the engine was tuned."""


def targets(records: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Each target beside what was measured.

    Returns
    -------
    DataFrame
        Columns ``says, wanted, measured, met``.
    """
    rows = []
    for target in TARGETS:
        measured = target.measure(records)
        met = measured >= target.wanted if target.at_least else measured <= target.wanted
        sign = ">=" if target.at_least else "<="
        rows.append({"says": target.says, "wanted": f"{sign} {target.wanted:g}", "measured": measured, "met": met})
    return pd.DataFrame(rows)


def check(records: dict[str, pd.DataFrame]) -> None:
    """Raise unless the records are sound: both forms agree, no lane was lost, and no n-by-n array was made.

    Raises
    ------
    AssertionError
        The message names what fails.
    """
    worst = records["direct"].groupby("dtype")["difference"].max()
    if not worst["float64"] < 1e-8 or not worst["float32"] < 1e-2:
        raise AssertionError(f"the direct form and the engine differ by more than rounding: {worst.to_dict()}")
    for part in ("roofline", "growth"):
        if not (records[part]["stopped"] == 0).all():
            raise AssertionError(f"{part}: a lane diverged, so its steps cost nothing; take shorter steps")
    if not _dense_share(records) < 1:
        raise AssertionError(f"the peak memory at the largest n is {_dense_share(records):.2g} n-by-n arrays")


# --- files -----------------------------------------------------------------------------------------------


def write(part: str, table: pd.DataFrame, folder: Path = RECORDS) -> Path:
    """Write the records of one part, six significant digits."""
    path = folder / f"speed-{part}.csv"
    checksums.write(path, table.to_csv(index=False, float_format="%.6g", lineterminator="\n"))
    return path


def published(folder: Path = RECORDS) -> dict[str, pd.DataFrame]:
    """Read the records of all parts.

    Raises
    ------
    FileNotFoundError
        If one is missing; the message says how to make it.
    """
    found = {}
    for part in PARTS:
        path = folder / f"speed-{part}.csv"
        if not path.exists():
            raise FileNotFoundError(f"{path} is missing; make it with: make bench")
        found[part] = checksums.read_csv(path, f"{checksums.REMEDY}, or make it anew with: make bench")
    return found


def machines(records: dict[str, pd.DataFrame]) -> str:
    """On which processors the records were measured."""
    return ", ".join(sorted({name for table in records.values() for name in table["machine"]}))
