"""Every setting of every table and figure.

The choices that the paper leaves open are made here, each with its reason.  One choice lies with the data sets:
pixels/255, and Mediamill as in its file, minus the column mean of the full data, for every solver and every metric.
Raw pixels match some printed rows but not the paper's Landing rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
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

RSG_PLUS_GRID = tuple(product((0.5, 0.1, 0.05, 0.01, 0.005, 0.001), (0.1, 0.01, 0.001)))
"""(eta_q, eta_t) of the tuned RSG+: the same budget of 18 points around the published ones."""

LANDING_PUBLISHED, RSG_PLUS_PUBLISHED = (0.01, 2.0), (0.1, 0.01)
"""(eta, omega) of Landing and (eta_q, eta_t) of RSG+ as their authors print them."""

Setting = tuple[float, ...]
"""A value of each of a solver's hyper-parameters."""

Seeds = tuple[int | None, int]
"""Seeds of a run's data order, where None takes the rows at a stride through the file, and of its initial point."""


@dataclass(frozen=True)
class Protocol:
    """One value of each choice that the paper leaves open.

    The first value of each is that of our first protocol, which was fitted to printed rows of MNIST.
    """

    start: str = "gaussian"  # one of `STARTS`
    minibatches: str = "independent"  # one of `cdfsg.solvers.engine.MINIBATCHES`
    share: float = 1.0  # of the floor(N / l) steps of a pass
    tracking: str = "ratio"  # how (s1, s2) give the step sizes, one of `TRACKING`
    centred: bool = True  # whether the data's mean is subtracted
    scales: tuple[tuple[str, float], ...] = ()  # (data set, factor on its values); 1 where none is given
    pairs: str = "ordered"  # f sums over i != j, one of `PAIRS`
    constants: tuple[tuple[str, float | str], ...] = ()  # parameters of the solver that differ from its defaults
    beta: float = BETA
    mu: float = MU
    rule: str = "quality - fea"  # which point of the grid is reported, one of `cdfsg.paper.select.RULES`
    norm: str = "fea"  # column of a record that stands for Fea: "fea" (Frobenius) or "fea_spectral"
    pcc: str = "pcc"  # column that stands for PCC: "pcc" (canonical) or "pcc_paired" (column by column)

    def of(self, dataset: str, merit: str, solver: type) -> "Protocol":
        """The same for the runs of one solver: choices that do not reach them have the default value.

        So two protocols that differ elsewhere share their runs.
        """
        default = Protocol()
        two = getattr(solver, "samples_per_step", 1) == 2
        return replace(
            self,
            minibatches=self.minibatches if two or self.minibatches == "replacement" else default.minibatches,
            tracking=self.tracking if hasattr(solver, "beta") else default.tracking,
            scales=tuple((name, factor) for name, factor in self.scales if name == dataset and factor != 1),
            pairs="unordered" if self.pair_weight(merit) < 1 else default.pairs,
            constants=tuple((name, value) for name, value in self.constants if hasattr(solver, name)),
            mu=self.mu if merit == "huber" else default.mu,
            rule=default.rule, norm=default.norm, pcc=default.pcc,
        )  # fmt: skip

    def pair_weight(self, merit: str) -> float:
        """The weight c_ij of every ordered pair of views in f."""
        return 0.5 if self.pairs in ("unordered", f"unordered for {merit}") else 1.0

    @property
    def scale(self) -> float:
        """The factor on the values, of a protocol for the runs of one data set."""
        return self.scales[0][1] if self.scales else 1.0


STARTS = ("gaussian", "joint", "views")
"""X_0: the Q factor of a Gaussian matrix; that made feasible, ``X_0'MX_0 = I``; or made so in each view alike."""

PAIRS = ("ordered", "unordered for huber", "unordered")
"""Pairs of views in f: i != j as printed (p:GCCA), or i < j, which halves f; competitors keep their published scale."""

TRACKING = ("ratio", "clipped", "s1", "s2")
"""Readings of "alpha_k = s1 b_k = s2": alpha is s2 and b is ``s2 / s1``, that but at most 1, or s1; or b is s2 and
alpha is ``s1 s2``."""


@dataclass(frozen=True)
class Given:
    """A published setting of a competitor, and how its code reads the data."""

    setting: Setting
    scale: float | None = None  # factor on the data for which a step of Landing is meant; None takes it as it is
    in_file_order: bool = False  # rows at a stride through the file in place of a drawn order
    constants: tuple[tuple[str, float | str], ...] = ()  # parameters of the solver that differ from its defaults

    def at(self, scale: float) -> "Given":
        """The same step on data with another factor: data times a turn (eta, omega) into (a^4 eta, omega / a^2)."""
        if self.scale is None:
            return self
        (eta, omega), a = self.setting, self.scale / scale
        return replace(self, setting=(a**4 * eta, omega / a**2), scale=None)


@dataclass(frozen=True)
class Entry:
    """How a solver takes part in the experiments.

    The first of the `given` settings stands for it in the verdicts; one without any is judged at the selected setting.
    """

    grid: tuple[Setting, ...]  # settings among which the rule selects
    given: Mapping[str, Given] = field(default_factory=dict)  # by the name of the variant
    ours: bool = False  # whether the paper proposes it
    measures: tuple[str, ...] = ("pcc", "fval")  # of the tables in which it takes part


ENTRIES = {
    "CDFSG": Entry(GRID, ours=True),
    "CDFSG-Ada": Entry(GRID, ours=True),
    "Landing": Entry(LANDING_GRID, {
        "fixed": Given(LANDING_PUBLISHED),
        "authors": Given(LANDING_PUBLISHED, scale=2.0),
        "unit": Given(LANDING_PUBLISHED, scale=1.0),
    }),
    "RSG+": Entry(RSG_PLUS_GRID, {
        "file": Given(RSG_PLUS_PUBLISHED, in_file_order=True),
        "permuted": Given(RSG_PLUS_PUBLISHED),
        "inverse": Given(RSG_PLUS_PUBLISHED, in_file_order=True, constants=(("singular", "stop"),)),
    }, measures=("pcc",)),
}  # fmt: skip
"""The paper's solvers.

Landing's "fixed" settings are eta and omega as its authors print them, whatever the scale of the data.  "authors" is
their step on their own data, scaled to [-1, 1], in our units; "unit" is that on data in [0, 1].  RSG+ is
judged as its authors' code reads the data, at a stride through the file; "inverse" is its published inverse of
blocks of p rows, which may be singular, in place of the pseudo-inverse.
"""

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
    """The variant that stands for a solver in the verdicts; the others are shown beside it."""
    return next(iter(entry_of(solver).given), "grid")


REPORTED_SEEDS = tuple((k, k) for k in range(1, 11))
"""(data order, initial point) of the ten reported runs, which also seeds the minibatch of Landing's post-processing."""

TUNING_SEEDS = ((101, 101), (102, 102), (103, 103))
"""The same of the tuning runs, disjoint from the reported ones."""

TRACE_POINTS = 60  # of a curve, spaced evenly over the pass
BETA_POINTS = 20  # the same under each penalty parameter, of which there are many

FIRST = Protocol()
"""The protocol of this suite's first version: its start, minibatches and mu were fitted to printed rows of MNIST."""

ADOPTED = FIRST
"""The protocol of every table, figure and claim."""
