"""Every setting of every table and figure.

The choices that the paper leaves open are made here, each with its reason.  One choice lies with the data sets:
pixels/255, and Mediamill as in its file, minus the column mean of the full data, for every solver and every metric.
Raw pixels match some printed rows but not the paper's Landing rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product

from cdfsg.solvers import SOLVERS

BETA = 0.1
"""Penalty parameter (Section 5.2 of the paper)."""

MU = 0.05
"""Huber threshold.  The paper does not print it; this value is what its printed Fval levels imply."""

DIVERGED_FEA = 10.0
"""A run has diverged if an entry is not finite or the exact feasibility violation exceeds this."""

BETAS = (0.001, 0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
"""Penalty parameters of the robustness figures.  The paper does not print its own; these go from far below 3/2 times
the largest canonical correlation, where h is unbounded below (for the identity merit), to where the step sizes are too
long for the penalty's curvature."""

ELIGIBLE_FEA = 1.0
"""A grid cell is eligible only if every tuning run stays at or below this feasibility violation."""

GRID = tuple(product((1 / 2, 1 / 4, 1 / 8), (0.1, 0.01, 0.001, 0.5, 0.05, 0.005)))
"""(s1, s2) of CDFSG and CDFSG-Ada, the paper's 18 points; alpha = s2 and b = s2 / s1."""

LANDING_GRID = tuple(product((0.1, 0.01, 0.001, 0.5, 0.05, 0.005), (0.5, 1.0, 2.0)))
"""(eta, omega) of the tuned Landing: the same budget of 18 points; the authors' two omegas and a half."""

LANDING_FIXED = {"fixed": (0.01, 2.0), "authors": (0.16, 0.5)}
"""Landing with fixed settings.  "fixed": eta and omega as its authors print them, on pixels/255.  "authors": the
same step in our units, since scaling data by a turns (eta, omega) into (a^4 eta, omega / a^2), and theirs are
scaled to [-1, 1]."""

RSG_PLUS_PUBLISHED = (0.1, 0.01)
"""(eta_q, eta_t) of RSG+ as its authors print them."""

RSG_PLUS_GRID = tuple(product((0.5, 0.1, 0.05, 0.01, 0.005, 0.001), (0.1, 0.01, 0.001)))
"""(eta_q, eta_t) of the tuned RSG+: the same budget of 18 points around the published ones."""

Setting = tuple[float, ...]
"""A value of each of a solver's hyper-parameters."""


@dataclass(frozen=True)
class Protocol:
    """One value of each choice that the paper leaves open."""

    centred: bool = True  # whether the data's mean is subtracted
    shared: bool = False  # one minibatch for theta and xi
    in_file_order: bool = False  # rows at a stride through the file in place of a drawn order
    constants: tuple[tuple[str, float | str], ...] = ()  # parameters of the solver that differ from its defaults
    beta: float = BETA
    mu: float = MU


@dataclass(frozen=True)
class Entry:
    """How a solver takes part in the experiments.

    The first of the `given` settings stands for it in the verdicts; one without any is judged at the selected setting.
    """

    grid: tuple[Setting, ...]  # settings among which the rule selects
    given: Mapping[str, Setting] = field(default_factory=dict)  # by the name of the variant
    in_file_order: tuple[str, ...] = ()  # variants that read the rows at a stride through the file
    ours: bool = False  # whether the paper proposes it
    measures: tuple[str, ...] = ("pcc", "fval")  # of the tables in which it takes part
    raw: bool = True  # whether it treats data that are not centred

    @property
    def headline_variant(self) -> str:
        """The variant that stands for the solver in the verdicts; the others are shown beside it."""
        return next(iter(self.given), "grid")


ENTRIES = {
    "CDFSG": Entry(GRID, ours=True),
    "CDFSG-Ada": Entry(GRID, ours=True),
    "Landing": Entry(LANDING_GRID, LANDING_FIXED),
    "RSG+": Entry(
        RSG_PLUS_GRID, {"file": RSG_PLUS_PUBLISHED, "permuted": RSG_PLUS_PUBLISHED}, ("file",),
        measures=("pcc",), raw=False,
    ),
}  # fmt: skip
"""The paper's solvers.  RSG+ is judged as its authors' code reads the data, at a stride through the file."""

OURS = tuple(name for name, entry in ENTRIES.items() if entry.ours)
"""The paper's own algorithms."""

OTHERS = tuple(name for name in SOLVERS if name not in ENTRIES)
"""Registered solvers that the paper does not have."""


def entry_of(solver: str) -> Entry:
    """The entry of a solver; one that the paper does not have is treated like the paper's own, on its own grid."""
    if solver in ENTRIES:
        return ENTRIES[solver]
    kind = SOLVERS[solver]
    grid = tuple(tuple(point) for point in getattr(kind, "grid", ()))
    if not grid or any(len(point) != len(kind.settings) for point in grid):
        raise ValueError(
            f"the solver {solver!r} needs a class attribute `grid`, the settings to choose among: points with a value "
            f"for each of {kind.settings}; got {getattr(kind, 'grid', None)!r}"
        )
    return Entry(grid)


def headline_variant(solver: str) -> str:
    """The variant that stands for a solver in the verdicts."""
    return entry_of(solver).headline_variant


REPORTED_ORDER = 1
REPORTED_STARTS = tuple(range(1, 11))
"""The ten reported runs differ in the initial point, as in the paper; they share one data order."""

TUNING_SEEDS = ((101, 101), (102, 102), (103, 103))
"""(data order, initial point) of the tuning runs, disjoint from the reported ones."""

TRACE_POINTS = 60  # of a curve, spaced evenly over the pass
BETA_POINTS = 20  # the same under each penalty parameter, of which there are many

TIMING_STARTS = (1,)
"""A timing run is one lane alone in its process; more than one would cost minutes at l = 20."""

TREATMENTS: dict[str, Protocol] = {
    "raw": Protocol(centred=False),
    "shared": Protocol(shared=True),
    "file": Protocol(shared=True, in_file_order=True),
    "inverse": Protocol(constants=(("singular", "stop"),)),
    "ridge": Protocol(constants=(("singular", "ridge"),)),
    **{
        f"{name}={value:g}": Protocol(constants=((name, value),))
        for name, values in {"eta1": (0.0, 0.99), "eta2": (0.9, 0.99), "epsilon": (1e-4, 1e-2)}.items()
        for value in values
    },
}
"""Ablations: the data without centring; one minibatch for theta and xi; the same with the rows at a stride through the
file, which two independent streams cannot share; RSG+ with the published inverse of its blocks, and with a ridge, in
place of the pseudo-inverse; and each of Ada's constants on either side of 0.9, 0.999, 1e-8.  Step sizes are selected
anew under a treatment, by the same rule on the same grid; a competitor keeps its given settings."""

ORDERS = tuple(range(1, 11))
"""Data orders of the treatment "orders": one initial point and the selected settings, to see what the order does."""


def treats(treatment: str, solver: str) -> bool:
    """Whether a treatment changes something for a solver of the paper, and the solver can do it."""
    protocol, kind = TREATMENTS[treatment], SOLVERS[solver]
    return (
        all(hasattr(kind, name) for name, _ in protocol.constants)
        and (protocol.centred or entry_of(solver).raw)
        and (not protocol.shared or kind.samples_per_step == 2)
    )


