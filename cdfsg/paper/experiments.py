"""The experiments: one per table of the paper, each a list of stages that become jobs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product

from cdfsg.paper.protocols import (
    BETA,
    BETA_POINTS,
    BETAS,
    ENTRIES,
    ORDERS,
    OTHERS,
    OURS,
    REPORTED_ORDER,
    REPORTED_STARTS,
    TIMING_STARTS,
    TRACE_POINTS,
    TREATMENTS,
    TUNING_SEEDS,
    Protocol,
    Setting,
    entry_of,
    treats,
)


@dataclass(frozen=True)
class Job:
    """Lanes that run together: the unit of work, of a file and of resumption."""

    dataset: str
    merit: str
    batch_size: int
    p: int
    solver: str
    role: str  # "tuning", "reported", "trace" or "timing"
    variant: str  # which settings: "grid", "tuned", or the name of given ones; or a treatment
    order: int | None  # seed of the data order; None takes the rows at a stride through the file
    starts: tuple[int, ...]  # seeds of the initial points
    settings: tuple[Setting, ...]  # every start runs with each of them
    protocol: Protocol = Protocol()
    trace_points: int = 0  # points of a curve; 0 evaluates the last iterates only

    @property
    def lanes(self) -> int:
        """Number of runs in the job."""
        return len(self.starts) * len(self.settings)

    @property
    def cost(self) -> float:
        """Relative work, to start the longest jobs first."""
        return self.p * self.lanes * (1 + 40 / self.batch_size) + 2000 / self.batch_size

    def describe(self) -> str:
        """One line for a log."""
        lanes = f"{self.lanes} lane" + ("s" if self.lanes > 1 else "")
        beta = f" beta={self.protocol.beta:g}" if self.protocol.beta != BETA else ""
        return (
            f"{self.dataset} {self.merit} l={self.batch_size} p={self.p} {self.solver}{beta} "
            f"{self.role}/{self.variant}, {lanes}"
        )


@dataclass(frozen=True)
class Plan:
    """What the tuning runs decide.

    `selected` are settings by (treatment, batch size, p, solver), without those where no point of the grid was
    eligible; `near` are the points of the grid near a printed row, whose ten runs are wanted too.
    """

    selected: Mapping[tuple[str, int, int, str], Setting] = field(default_factory=dict)
    near: Mapping[tuple[int, int, str], tuple[Setting, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Stage:
    """Jobs of one kind: which settings run, under which protocol, at which places.

    The settings are `at` all points of the "grid", for tuning; the "given" ones; those "selected" by the tuning runs
    under the same treatment; or the "headline", those that stand for the solver in the verdicts.
    """

    role: str
    at: str
    name: str = ""  # treatment, or "orders"; empty for none
    protocol: Protocol = Protocol()
    ours: bool = False  # the paper's own algorithms alone
    panel: bool = False  # at the batch size of the figure panels alone
    smallest_p: bool = False  # at that alone
    trace_points: int = 0
    starts: tuple[int, ...] = ()  # in place of those of the experiment
    orders: tuple[int, ...] = (REPORTED_ORDER,)


TABLE = (
    Stage("tuning", "grid"),
    Stage("reported", "given"),
    Stage("reported", "selected"),
    Stage("trace", "given", panel=True, trace_points=TRACE_POINTS),
    Stage("trace", "selected", panel=True, trace_points=TRACE_POINTS),
    Stage("timing", "headline", starts=TIMING_STARTS),
)
"""The stages behind every table and its panels.  The time does not depend on the step sizes."""


@dataclass(frozen=True)
class Experiment:
    """One table of the paper with its figure panels."""

    table: str  # the paper's label; empty if the paper does not have it
    dataset: str
    merit: str
    measure: str  # what the table prints of the objective: "pcc" or "fval"
    batch_sizes: tuple[int, ...]
    ps: tuple[int, ...]
    solvers: tuple[str, ...]
    trace_batch_size: int  # that of the figure panels
    starts: tuple[int, ...] = REPORTED_STARTS
    tuning_seeds: tuple[tuple[int, int], ...] = TUNING_SEEDS
    betas: tuple[float, ...] = ()  # penalty parameters of the robustness panels
    treatments: tuple[str, ...] = ()  # ablations, by their name in `TREATMENTS`, or "orders"

    @property
    def name(self) -> str:
        """Name of its record files and figures."""
        return f"{self.dataset}-{self.merit}"

    @property
    def own_treatments(self) -> list[str]:
        """The treatments under which the paper's own algorithms run."""
        return [name for name in self.treatments if name in TREATMENTS and any(treats(name, s) for s in OURS)]

    @property
    def parts(self) -> tuple[str, ...]:
        """Files of its records: the table's own, and further ones."""
        return ("", *(("betas",) if self.betas else ()), *(("ablations",) if self.treatments else ()))

    def stages(self, part: str = "") -> tuple[Stage, ...]:
        """The plan of one of `parts`."""
        return {"": TABLE, "betas": self._beta_stages(), "ablations": self._ablation_stages()}[part]

    def _beta_stages(self) -> tuple[Stage, ...]:
        """Curves under every penalty parameter, at the settings selected for the paper's."""
        panel = Stage("trace", "selected", ours=True, panel=True, smallest_p=True, trace_points=BETA_POINTS)
        return tuple(replace(panel, protocol=Protocol(beta=beta)) for beta in self.betas)

    def _ablation_stages(self) -> tuple[Stage, ...]:
        """Tuning and reported runs under every treatment, and one run under each of `ORDERS` without any."""
        stages = []
        for name in self.treatments:
            treated = Stage("reported", "selected", name, ours=True, smallest_p=True)
            if name == "orders":
                stages.append(replace(treated, orders=ORDERS, starts=self.starts[:1]))
                continue
            # A solver's own constants are cheap to vary at every p.
            treated = replace(treated, protocol=TREATMENTS[name], smallest_p=not TREATMENTS[name].constants)
            stages += [replace(treated, role="tuning", at="grid"), treated, replace(treated, at="given", ours=False)]
        return tuple(stages)

    def jobs(self, plan: Plan | None = None, part: str = "") -> list[Job]:
        """The jobs of one of `parts`; without a plan, those that need none."""
        return [
            job for stage in self.stages(part) for base in self._bases(stage)
            for job in self._jobs(stage, base, plan or Plan())
        ]  # fmt: skip

    def _jobs(self, stage: Stage, base: Job, plan: Plan) -> Iterator[Job]:
        entry, place = entry_of(base.solver), (base.batch_size, base.p, base.solver)
        if stage.protocol.in_file_order:
            base = replace(base, order=None)
        if stage.at == "grid":
            for order, start in self.tuning_seeds:
                drawn = None if base.order is None else order
                yield replace(base, order=drawn, starts=(start,), settings=entry.grid, variant=stage.name or "grid")
        elif stage.at == "given" or (stage.at == "headline" and entry.given):
            for variant, setting in entry.given.items():
                if stage.at == "given" or variant == entry.headline_variant:
                    drawn = None if variant in entry.in_file_order else base.order
                    named = f"{stage.name} {variant}".strip()
                    yield replace(base, order=drawn, settings=(setting,), variant=named)
        else:
            treatment = stage.name if stage.name in TREATMENTS else ""
            chosen = [plan.selected[treatment, *place]] if (treatment, *place) in plan.selected else []
            if stage.role == "reported" and not stage.name and not entry.given:
                chosen += [point for point in plan.near.get(place, ()) if point not in chosen]
            variant = stage.name or ("tuned" if entry.given else "grid")
            for order in stage.orders if chosen else ():
                drawn = None if base.order is None else order
                yield replace(base, order=drawn, settings=tuple(chosen), variant=variant)

    def _bases(self, stage: Stage) -> Iterator[Job]:
        for l, p, solver in product(self.batch_sizes, self.ps, self.solvers):  # noqa: E741
            entry = entry_of(solver)
            if (
                (not stage.panel or l == self.trace_batch_size)
                and (not stage.smallest_p or p == min(self.ps))
                and (not stage.ours or entry.ours)
                and (stage.name not in TREATMENTS or (solver in ENTRIES and treats(stage.name, solver)))
            ):
                yield Job(
                    self.dataset, self.merit, l, p, solver, stage.role, "", REPORTED_ORDER,
                    stage.starts or self.starts, (), stage.protocol, stage.trace_points,
                )  # fmt: skip


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
    return Experiment(
        table=table,
        dataset=dataset,
        merit=merit,
        measure=measure,
        batch_sizes=(20, 50, 100, 200),
        ps=(5, 10),
        solvers=tuple(name for name in (*ENTRIES, *OTHERS) if measure in entry_of(name).measures),
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
    solvers=(*ENTRIES, *OTHERS),
    trace_batch_size=20,
    starts=(1, 2, 3),
    tuning_seeds=((101, 101),),
    betas=(0.01, 0.1, 1.0),
    treatments=("raw", "shared", "eta2=0.9", "orders"),
)
"""The same pipeline in seconds on a small real data set that the paper does not have."""


def find(dataset: str, merit: str, profile: str) -> Experiment:
    """Experiment by data set, merit and profile ("full" or "quick"); ValueError lists those that exist."""
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
