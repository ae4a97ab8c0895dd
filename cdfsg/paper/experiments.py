"""The experiments: one per table of the paper, each a list of stages that become jobs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from cdfsg.paper import protocols as choices
from cdfsg.paper.protocols import ADOPTED, BETA, ENTRIES, OTHERS, OURS, Given, Protocol, Seeds, Setting, entry_of
from cdfsg.solvers import SOLVERS

Place = tuple[int, int, str]
"""Batch size, p and solver of a row of a table."""


@dataclass(frozen=True)
class Job:
    """Lanes that run together: the unit of work, of a file and of resumption."""

    dataset: str
    merit: str
    batch_size: int
    p: int
    solver: str
    role: str  # "tuning", "reported" or "trace"
    variant: str  # which settings: "grid", "tuned", or the name of given ones; or a treatment
    seeds: tuple[Seeds, ...]  # (data order, initial point) of its runs
    settings: tuple[Setting, ...]  # every run has a lane for each of them
    protocol: Protocol = Protocol()
    trace_points: int = 0  # points of a curve; 0 evaluates the last iterates only

    @property
    def lanes(self) -> int:
        """Number of lanes of all runs together."""
        return len(self.seeds) * len(self.settings)

    @property
    def cost(self) -> float:
        """Relative work, to start the longest jobs first."""
        return self.p * self.lanes * (1 + 40 / self.batch_size) + len(self.seeds) * 2000 / self.batch_size

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

    `selected` are settings by place, without those where no point of the grid was eligible; `near` are the points of
    the grid near a printed row, whose ten runs are wanted too.
    """

    selected: Mapping[Place, Setting] = field(default_factory=dict)
    near: Mapping[Place, tuple[Setting, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Stage:
    """Jobs of one kind: which settings run, and at which places.

    The settings are `at` all points of the "grid", for tuning; the "given" ones; the "selected" one; or those "near" a
    printed row.
    """

    role: str
    at: str
    name: str = ""  # of the variant, if it is not that of the settings
    changes: tuple[tuple[str, Any], ...] = ()  # to the experiment's protocol
    solvers: tuple[str, ...] = ()  # these alone
    panel: bool = False  # at the batch size of the figure panels alone
    smallest_p: bool = False  # at that alone
    trace_points: int = 0


TABLE = (
    Stage("tuning", "grid"),
    Stage("reported", "given"),
    Stage("reported", "selected"),
    Stage("reported", "near", solvers=OURS),
    Stage("reported", "selected", "half", (("share", 0.5),), solvers=OURS),
    Stage("trace", "given", panel=True, trace_points=choices.TRACE_POINTS),
    Stage("trace", "selected", panel=True, trace_points=choices.TRACE_POINTS),
)
"""The stages behind every table and its panels.  Our algorithms read two minibatches a step: after "half" a pass they
have seen N samples, as many as Landing after a whole one."""


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
    protocol: Protocol = ADOPTED
    seeds: tuple[Seeds, ...] = choices.REPORTED_SEEDS
    tuning_seeds: tuple[Seeds, ...] = choices.TUNING_SEEDS
    betas: tuple[float, ...] = ()  # penalty parameters of the robustness panels
    stages: tuple[Stage, ...] = TABLE  # behind the table itself

    @property
    def name(self) -> str:
        """Name of its record files and figures."""
        return f"{self.dataset}-{self.merit}"

    @property
    def parts(self) -> dict[str, tuple[Stage, ...]]:
        """Stages by file of records: the table's own, and those of the robustness panels."""
        panel = Stage("trace", "selected", solvers=OURS, panel=True, smallest_p=True, trace_points=choices.BETA_POINTS)
        betas = tuple(replace(panel, changes=(("beta", beta),)) for beta in self.betas)
        return {"": self.stages, "betas": betas} if betas else {"": self.stages}

    def jobs(self, plan: Plan | None = None, part: str = "") -> list[Job]:
        """The jobs of one of `parts`; without a plan, those that need none."""
        places = list(product(self.batch_sizes, self.ps, self.solvers))
        stages = self.parts.get(part, ())
        return [job for stage in stages for at in places for job in self._jobs(stage, at, plan or Plan())]

    def _jobs(self, stage: Stage, place: Place, plan: Plan) -> Iterator[Job]:
        batch_size, p, solver = place
        if (
            (stage.panel and batch_size != self.trace_batch_size)
            or (stage.smallest_p and p != min(self.ps))
            or (stage.solvers and solver not in stage.solvers)
        ):
            return
        entry = entry_of(solver)
        protocol = replace(self.protocol, **dict(stage.changes)).of(self.dataset, self.merit, SOLVERS[solver])
        base = Job(self.dataset, self.merit, *place, stage.role, "", self.seeds, (), protocol, stage.trace_points)
        if stage.at == "grid":
            for seed in self.tuning_seeds:
                yield replace(base, seeds=(seed,), settings=entry.grid, variant="grid")
        elif stage.at == "given":
            variants: dict[Given, str] = {}
            for variant, given in entry.given.items():
                variants.setdefault(given.at(protocol.scale), variant)  # two can be the same under this scale
            for given, variant in variants.items():
                seeds = tuple((None, start) for _, start in self.seeds) if given.in_file_order else self.seeds
                varied = replace(protocol, constants=(*protocol.constants, *given.constants))
                yield replace(base, seeds=seeds, settings=(given.setting,), variant=variant, protocol=varied)
        elif place in plan.selected and stage.at == "selected":
            variant = stage.name or ("tuned" if entry.given else "grid")
            yield replace(base, settings=(plan.selected[place],), variant=variant)
        elif stage.at == "near":
            others = tuple(point for point in plan.near.get(place, ()) if point != plan.selected.get(place))
            if others:
                yield replace(base, settings=others, variant="grid")


EXPERIMENTS = {
    table: Experiment(
        table, dataset, merit, measure, batch_sizes=(20, 50, 100, 200), ps=(5, 10), trace_batch_size=100,
        solvers=tuple(name for name in (*ENTRIES, *OTHERS) if measure in entry_of(name).measures),
        betas=choices.BETAS if dataset == "mnist" else (),
    )
    for table, dataset, merit, measure in (
        ("ta:pcctimemd", "mediamill", "identity", "pcc"),
        ("ta:pcctimemn", "mnist", "identity", "pcc"),
        ("ta:fvalnmni", "nmnist", "identity", "fval"),
        ("ta:fvalmd", "mediamill", "huber", "fval"),
        ("ta:fvalmn", "mnist", "huber", "fval"),
        ("ta:fvalnmnh", "nmnist", "huber", "fval"),
    )
}  # fmt: skip
"""The paper's experiments, by the label of the table; they differ in the data, the merit and what they print."""

QUICK = Experiment(
    table="", dataset="digits", merit="identity", measure="pcc", batch_sizes=(20, 100), ps=(2, 4),
    solvers=(*ENTRIES, *OTHERS), trace_batch_size=20, seeds=choices.REPORTED_SEEDS[:3],
    tuning_seeds=choices.TUNING_SEEDS[:1], betas=(0.01, 0.1, 1.0),
)  # fmt: skip
"""The same pipeline in seconds on a small real data set that the paper does not have."""


def find(dataset: str, merit: str, profile: str) -> Experiment:
    """The experiment of a data set, a merit and a profile, "full" or "quick"; else ValueError."""
    known = {(e.dataset, e.merit, "full" if e.table else "quick"): e for e in (*EXPERIMENTS.values(), QUICK)}
    if (dataset, merit, profile) not in known:
        names = "; ".join(map(", ".join, known))
        raise ValueError(f"no experiment with {dataset=}, {merit=}, {profile=}; there are: {names}")
    return known[dataset, merit, profile]
