"""Every setting of every table and figure, frozen.

What the paper leaves unsaid is decided here, each choice with its reason, before any result is seen.  One choice lies
with the data sets: pixels/255, and Mediamill as in its file, minus the column mean of the full data, for every solver
and every metric.  Raw pixels match some printed rows but not the paper's Landing rows.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product

from cdfsg.solvers import SOLVERS

# --- protocol -------------------------------------------------------------------------------------------

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

OURS = ("CDFSG", "CDFSG-Ada")
"""The paper's own algorithms."""

Setting = tuple[float, ...]
"""A value of each of a solver's hyper-parameters."""


@dataclass(frozen=True)
class Entry:
    """How a solver takes part in the experiments.

    Attributes
    ----------
    grid : tuple of tuples
        Settings among which the rule selects.  A solver without given settings reports runs at all of them.
    given : mapping of str to tuple
        Given settings by the name of the variant; the first stands for the solver in the verdicts.
    in_file_order : tuple of str
        Variants that read the rows at a stride through the file; the others draw an order.
    """

    grid: tuple[Setting, ...]
    given: Mapping[str, Setting] = field(default_factory=dict)
    in_file_order: tuple[str, ...] = ()

    @property
    def stands(self) -> str:
        """The variant that stands for the solver in the verdicts; the others are shown beside it."""
        return next(iter(self.given), "grid")


ENTRIES = {
    "CDFSG": Entry(GRID),
    "CDFSG-Ada": Entry(GRID),
    "Landing": Entry(LANDING_GRID, LANDING_FIXED),
    "RSG+": Entry(RSG_PLUS_GRID, {"file": RSG_PLUS_PUBLISHED, "permuted": RSG_PLUS_PUBLISHED}, ("file",)),
}
"""The paper's solvers.  RSG+ is judged as its authors' code reads the data, at a stride through the file."""

OTHERS = tuple(name for name in SOLVERS if name not in ENTRIES)
"""Registered solvers that the paper does not have."""


def entry_of(solver: str) -> Entry:
    """The entry of a solver; one that the paper does not have is treated like the paper's own, on its own grid.

    Raises
    ------
    ValueError
        If such a solver has no `grid`, or one whose points are not a value per setting.
    """
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


def stands_for(solver: str) -> str:
    """The variant that stands for a solver in the verdicts."""
    return entry_of(solver).stands

REPORTED_ORDER = 1
REPORTED_STARTS = tuple(range(1, 11))
"""The ten reported runs differ in the initial point, as in the paper; they share one data order."""

TUNING_SEEDS = ((101, 101), (102, 102), (103, 103))
"""(data order, initial point) of the tuning runs, disjoint from the reported ones."""

TRACE_POINTS = 60
"""Points of a curve, spaced evenly over the pass."""

BETA_POINTS = 20
"""The same for the curves under each penalty parameter, of which there are many."""

TIMING_STARTS = (1,)
"""A timing run is one lane alone in its process; more than one would cost minutes at l = 20."""


@dataclass(frozen=True)
class Treatment:
    """One other reading of the setting: what is changed of the protocol, and for which solvers.

    Step sizes are selected anew under a treatment, by the same rule on the same grid.  A competitor keeps its given
    settings.

    Attributes
    ----------
    changes : dict
        Fields of `Block` and their values.
    solvers : tuple of str
    every_p : bool
        Whether it runs at every p of an experiment, or at the smallest only.
    """

    changes: dict[str, object]
    solvers: tuple[str, ...] = OURS
    every_p: bool = False


TREATMENTS: dict[str, Treatment] = {
    "raw": Treatment({"centred": False}, (*OURS, "Landing")),
    "shared": Treatment({"shared": True}),
    "file": Treatment({"shared": True, "order": None}),
    **{
        name: Treatment({"constants": (("singular", value),)}, ("RSG+",), every_p=True)
        for name, value in {"inverse": "stop", "ridge": "ridge"}.items()
    },
    **{
        f"{name}={value:g}": Treatment({"constants": ((name, value),)}, ("CDFSG-Ada",), every_p=True)
        for name, values in {"eta1": (0.0, 0.99), "eta2": (0.9, 0.99), "epsilon": (1e-4, 1e-2)}.items()
        for value in values
    },
}
"""Ablations: the data without centring; one minibatch for theta and xi; the same with the rows at a stride through the
file, which two independent streams cannot share; RSG+ with the published inverse of its blocks, and with a ridge, in
place of the pseudo-inverse; and each of Ada's constants on either side of 0.9, 0.999, 1e-8."""

ORDERS = tuple(range(1, 11))
"""Data orders of the treatment "orders": one initial point and the selected settings, to see what the order does."""


@dataclass(frozen=True)
class Block:
    """Lanes that run together: the unit of work, of a file and of resumption.

    Attributes
    ----------
    dataset, merit, solver : str
        Registered names.
    batch_size, p : int
    role : str
        ``tuning``, ``reported``, ``trace`` or ``timing``.
    variant : str
        Which settings: ``grid``, ``fixed``, ``authors``, ``tuned``, ``permuted``, ``file``; or a treatment.
    order : int or None
        Seed of the data order; None takes the rows at a stride through the file, see `Views.batch_indices`.
    starts : tuple of int
        Seeds of the initial points.
    settings : tuple of tuples
        The solver's hyper-parameters; every start runs with each of them.
    shared : bool
        One minibatch for theta and xi.
    centred : bool
        Whether the data's mean is subtracted.
    constants : tuple of (str, float or str)
        Parameters of the solver that differ from its defaults, each a pair of its name and its value.
    """

    dataset: str
    merit: str
    batch_size: int
    p: int
    solver: str
    role: str
    variant: str
    order: int | None
    starts: tuple[int, ...]
    settings: tuple[tuple[float, ...], ...]
    shared: bool = False
    centred: bool = True
    constants: tuple[tuple[str, float | str], ...] = ()
    beta: float = BETA
    mu: float = MU
    trace_points: int = 0

    @property
    def lanes(self) -> int:
        """Number of runs in the block."""
        return len(self.starts) * len(self.settings)

    @property
    def cost(self) -> float:
        """Relative work, to start the longest blocks first."""
        return self.p * self.lanes * (1 + 40 / self.batch_size) + 2000 / self.batch_size

    def describe(self) -> str:
        """One line for a log."""
        lanes = f"{self.lanes} lane" + ("s" if self.lanes > 1 else "")
        beta = f" beta={self.beta:g}" if self.beta != BETA else ""
        return (
            f"{self.dataset} {self.merit} l={self.batch_size} p={self.p} {self.solver}{beta} "
            f"{self.role}/{self.variant}, {lanes}"
        )


@dataclass(frozen=True)
class Experiment:
    """One table of the paper with its figure panels.

    Attributes
    ----------
    table : str
        The paper's label; empty for an experiment that the paper does not have.
    measure : {"pcc", "fval"}
        What the table prints of the objective.
    trace_batch_size : int
        Batch size of the figure panels.
    betas : tuple of float
        Penalty parameters of the robustness panels, none if the paper has no such panels.
    treatments : tuple of str
        Ablations, by their name in `TREATMENTS`, or "orders".
    """

    table: str
    dataset: str
    merit: str
    measure: str
    batch_sizes: tuple[int, ...]
    ps: tuple[int, ...]
    solvers: tuple[str, ...]
    trace_batch_size: int
    starts: tuple[int, ...] = REPORTED_STARTS
    tuning_seeds: tuple[tuple[int, int], ...] = TUNING_SEEDS
    betas: tuple[float, ...] = ()
    treatments: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Name of its record files and figures."""
        return f"{self.dataset}-{self.merit}"

    @property
    def own_treatments(self) -> list[str]:
        """The treatments under which CDFSG or CDFSG-Ada run."""
        return [name for name in self.treatments if name in TREATMENTS and set(OURS) & set(TREATMENTS[name].solvers)]

    def first_stage(self) -> list[Block]:
        """Blocks that need no earlier result: tuning and the reported runs with given settings."""
        return [block for base in self._bases() for block in _first_stage(self, base)]

    def second_stage(self, selected: dict[tuple[int, int, str], tuple[float, ...]]) -> list[Block]:
        """Blocks at selected settings: the tuned Landing, the curves and the timing runs.

        Parameters
        ----------
        selected : dict
            (batch size, p, solver) to the selected settings; a missing key means that no grid cell was
            eligible, and then nothing is run there.
        """
        blocks = []
        for base in self._bases():
            for final in _final(base, selected):
                if final.variant == "tuned":
                    blocks.append(final)
                if base.batch_size == self.trace_batch_size:
                    blocks.append(replace(final, role="trace", trace_points=TRACE_POINTS))
                if final.variant == stands_for(base.solver):  # the time does not depend on the step sizes
                    blocks += [replace(final, role="timing", starts=(start,)) for start in TIMING_STARTS]
        return blocks

    def ablation_tuning(self) -> list[Block]:
        """Tuning runs of CDFSG and CDFSG-Ada under every treatment."""
        return [
            block
            for name, base in self._treated()
            if base.solver in OURS
            for block in _tuning(self, replace(base, variant=name))
        ]

    def ablation_runs(
        self,
        selected: dict[tuple[int, int, str], tuple[float, ...]],
        treated: dict[str, dict[tuple[int, int, str], tuple[float, ...]]],
    ) -> list[Block]:
        """Reported runs under every treatment, and one run under each of `ORDERS` without any.

        Parameters
        ----------
        selected : dict
            Settings selected without a treatment, as for `second_stage`.
        treated : dict
            Treatment to the settings selected under it.
        """
        blocks = []
        for name, base in self._treated():
            key = (base.batch_size, base.p, base.solver)
            if base.solver not in OURS:
                blocks += [replace(given, variant=f"{name} {given.variant}") for given in _given(base)]
            elif key in treated.get(name, {}):
                blocks.append(replace(base, variant=name, settings=(treated[name][key],)))
        if "orders" in self.treatments:
            blocks += [
                replace(base, variant="orders", order=order, starts=base.starts[:1], settings=(selected[key],))
                for base in self._bases()
                for key in [(base.batch_size, base.p, base.solver)]
                for order in ORDERS
                if base.solver in OURS and base.p == min(self.ps) and key in selected
            ]
        return blocks

    def beta_stage(self, selected: dict[tuple[int, int, str], tuple[float, ...]]) -> list[Block]:
        """Curves of CDFSG and CDFSG-Ada under every penalty parameter of `betas`, at the settings selected for `BETA`.

        They are at the batch size of the figure panels and the smallest p.
        """
        return [
            replace(
                base, role="trace", variant="grid", settings=(selected[key],), trace_points=BETA_POINTS, beta=beta
            )
            for base in self._bases()
            for key in [(base.batch_size, base.p, base.solver)]
            for beta in self.betas
            if base.solver in OURS and key in selected
            and base.batch_size == self.trace_batch_size and base.p == min(self.ps)
        ]  # fmt: skip

    def _treated(self) -> Iterator[tuple[str, Block]]:
        for name, base in product([n for n in self.treatments if n in TREATMENTS], self._bases()):
            treatment = TREATMENTS[name]
            if base.solver in treatment.solvers and (treatment.every_p or base.p == min(self.ps)):
                yield name, replace(base, **treatment.changes)  # type: ignore[arg-type]

    def _bases(self) -> Iterator[Block]:
        for l, p, solver in product(self.batch_sizes, self.ps, self.solvers):  # noqa: E741
            yield Block(
                self.dataset, self.merit, l, p, solver, "reported", "grid", REPORTED_ORDER, self.starts, ()
            )


def _first_stage(experiment: Experiment, base: Block) -> list[Block]:
    reported = _given(base) or [replace(base, settings=entry_of(base.solver).grid)]
    return _tuning(experiment, base) + reported


def _given(base: Block) -> list[Block]:
    """Runs at the given settings of a solver; none where it has a grid alone."""
    entry = entry_of(base.solver)
    return [
        replace(
            base, variant=variant, settings=(setting,), order=None if variant in entry.in_file_order else base.order
        )
        for variant, setting in entry.given.items()
    ]


def _tuning(experiment: Experiment, base: Block) -> list[Block]:
    """The whole grid from each tuning seed; where a treatment draws no order, at its stride through the file."""
    return [
        replace(
            base,
            role="tuning",
            order=None if base.order is None else order,
            starts=(start,),
            settings=entry_of(base.solver).grid,
        )
        for order, start in experiment.tuning_seeds
    ]


def _final(base: Block, selected: dict[tuple[int, int, str], tuple[float, ...]]) -> list[Block]:
    """Runs at the given settings of a solver and at the selected ones, if there are any."""
    given = _given(base)
    variant = "tuned" if given else "grid"
    key = (base.batch_size, base.p, base.solver)
    return given + ([replace(base, variant=variant, settings=(selected[key],))] if key in selected else [])


_TREATED = {
    ("mediamill", "identity"): (*TREATMENTS, "orders"),
    ("mnist", "identity"): (*(name for name in TREATMENTS if name not in ("inverse", "ridge")), "orders"),
    ("nmnist", "identity"): ("raw", "shared", "file", "epsilon=0.01", "orders"),
    ("mediamill", "huber"): ("raw",),
    ("mnist", "huber"): ("raw",),
    ("nmnist", "huber"): ("raw",),
}
"""Ablations cost as much as a table each: all where the paper has most to compare with, fewer elsewhere."""


def _of_paper(table: str, dataset: str, merit: str, measure: str) -> Experiment:
    """One of the paper's result tables; they differ in the data, the merit and what they print."""
    solvers = ("CDFSG", "CDFSG-Ada", "Landing")
    return Experiment(
        table=table,
        dataset=dataset,
        merit=merit,
        measure=measure,
        batch_sizes=(20, 50, 100, 200),
        ps=(5, 10),
        solvers=(*solvers, *(("RSG+",) if measure == "pcc" else ()), *OTHERS),
        trace_batch_size=100,
        betas=BETAS if dataset == "mnist" else (),
        treatments=_TREATED.get((dataset, merit), ()),
    )


EXPERIMENTS: dict[str, Experiment] = {
    experiment.table: experiment
    for experiment in (
        _of_paper("ta:pcctimemd", "mediamill", "identity", "pcc"),
        _of_paper("ta:pcctimemn", "mnist", "identity", "pcc"),
        _of_paper("ta:fvalnmni", "nmnist", "identity", "fval"),
        _of_paper("ta:fvalmd", "mediamill", "huber", "fval"),
        _of_paper("ta:fvalmn", "mnist", "huber", "fval"),
        _of_paper("ta:fvalnmnh", "nmnist", "huber", "fval"),
    )
}
"""The paper's experiments, by the label of the table."""

QUICK = Experiment(
    table="",
    dataset="digits",
    merit="identity",
    measure="pcc",
    batch_sizes=(20, 100),
    ps=(2, 4),
    solvers=("CDFSG", "CDFSG-Ada", "Landing", "RSG+", *OTHERS),
    trace_batch_size=20,
    starts=(1, 2, 3),
    tuning_seeds=((101, 101),),
    betas=(0.01, 0.1, 1.0),
    treatments=("raw", "shared", "eta2=0.9", "orders"),
)
"""The same pipeline in seconds on a small real data set that the paper does not have."""


def find(dataset: str, merit: str, profile: str) -> Experiment:
    """Experiment by data set, merit and profile ("full" or "quick").

    Raises
    ------
    ValueError
        If there is none; the message lists what exists.
    """
    if profile not in ("full", "quick"):
        raise ValueError(f"unknown profile {profile!r}; known profiles: full, quick")
    known = [QUICK] if profile == "quick" else list(EXPERIMENTS.values())
    for experiment in known:
        if (experiment.dataset, experiment.merit) == (dataset, merit):
            return experiment
    names = ", ".join(f"dataset={e.dataset} merit={e.merit}" for e in known)
    raise ValueError(
        f"no experiment with dataset={dataset!r}, merit={merit!r} in profile {profile}; known: {names}"
    )
