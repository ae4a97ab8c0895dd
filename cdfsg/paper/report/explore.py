"""One run at any settings along its pass: the numbers, the picture and the sliders of ``70_explore``."""

import asyncio
import base64
import html
import time
from collections.abc import Mapping
from typing import Any

import ipywidgets
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from threadpoolctl import threadpool_limits

from cdfsg import metrics
from cdfsg.checks import require_positive
from cdfsg.datasets import DownloadError
from cdfsg.linalg import Array, sym
from cdfsg.merits import MERITS, make_merit
from cdfsg.paper import compute
from cdfsg.paper.experiments import Job
from cdfsg.paper.protocols import BETA, MU, Protocol
from cdfsg.paper.report.figures import STYLE, finish, panels, plain_ticks, png
from cdfsg.penalty import Penalty
from cdfsg.problems import GCCA
from cdfsg.solvers import SOLVERS
from cdfsg.solvers.engine import ESCAPED, run

SETTINGS: dict[str, dict[str, float]] = {
    "CDFSG": {"s1": 0.5, "s2": 0.1},
    "CDFSG-Ada": {"s1": 0.5, "s2": 0.005},
    "Landing": {"eta": 0.5, "omega": 0.5},
    "RSG+": {"eta_q": 0.1, "eta_t": 0.01},
}
"""Settings to begin with, which work on the digits; 0.1 for those of other solvers."""
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#666666", "#E69F00")
ESTIMATES = {"Y": "the tracker Y", "C": "X'MX on a minibatch"}
"""What estimates X'MX, by the names of its columns."""
BATCH_SIZES = (5, 10, 20, 50, 100, 200)
_PAUSE = 0.05  # seconds without a change before a run
_WIDE = {"layout": {"width": "330px"}, "style": {"description_width": "90px"}}


def defaults(solver: str) -> dict[str, float]:
    """Settings to begin with; raises ValueError for an unknown solver."""
    if solver not in SOLVERS:
        raise ValueError(f"unknown solver {solver!r}; known solvers: {', '.join(SOLVERS)}")
    return SETTINGS.get(solver, dict.fromkeys(SOLVERS[solver].settings, 0.1))


def job_of(
    dataset: str = "digits",
    merit: str = "identity",
    solver: str = "CDFSG",
    settings: Mapping[str, float] | None = None,
    *,
    beta: float = BETA,
    mu: float = MU,
    batch_size: int = 20,
    p: int = 2,
    shared: bool = False,
) -> Job:
    """A run of a solver as a job of the suite, at its `defaults` if no settings are given."""
    given = defaults(solver) if settings is None else settings
    names = SOLVERS[solver].settings
    if set(given) != set(names):
        raise ValueError(f"{solver} has the settings {sorted(names)}, got {sorted(given)}")
    protocol = Protocol(beta=beta, mu=mu, minibatches="shared" if shared else "independent")
    protocol = protocol.of(dataset, merit, SOLVERS[solver])
    setting = tuple(given[name] for name in names)
    return Job(dataset, merit, batch_size, p, solver, "reported", "", ((1, 1),), (setting,), protocol)


def trace(*names: Any, start: float = 1.0, points: int = 60, **choices: Any) -> pd.DataFrame:
    """The run of `job_of` in double precision, on all data of two views at `points` of its last pass.

    `start` is a factor of the orthonormal initial point.  Eigenvalues are ``exact_k`` of X'MX, and ``Y_k`` of the
    tracker or else ``C_k`` of a minibatch's X'MX; `stopped_at` is -1 for a run that was not stopped.
    """
    require_positive(start=start, points=points)
    job = job_of(*names, **choices)
    views, ((order, seed),) = compute.views_of(job.dataset), job.seeds
    if views.n_views != 2:
        raise ValueError(f"dataset {job.dataset!r} has {views.n_views} views, but PCC needs two; take digits or mnist")
    solver, problem = compute.make_solver(job.solver, job.protocol), compute.problem_of(job)
    X0 = start * compute.initial_point(job, solver, seed)
    lanes = {name: np.array([value]) for name, value in zip(solver.settings, job.settings[0], strict=True)}
    end = steps = len(views.batch_indices(job.batch_size, None))
    # One BLAS thread beats several inside products as small as these.
    with threadpool_limits(1):
        while True:
            curve = compute.Curve(points, steps, len(solver.epochs), 1, end)
            result = run(solver, problem, views, X0, lanes, job.batch_size, order, dtype=np.float64,
                         minibatches=job.protocol.minibatches, callback=curve)  # fmt: skip
            stop = int(result.stopped_at[0]) - (len(solver.epochs) - 1) * steps
            if stop <= 0 or stop == end:
                break
            end = stop  # once more, with all points where the run went
        at, *arrays = zip(*curve.points(), strict=True)
        X, Y = map(np.concatenate, arrays)
        name = "C" if result.tracker is None else "Y"
        if name == "C":
            Y = compute.minibatch_constraint(problem, views, job.batch_size, order, X)
        exact = GCCA(compute.covariance_of(job.dataset), views.sizes, problem.merit)
        K = metrics.cross_moments(X, exact.covariance, views.sizes)
    h = Penalty(exact, exact.M, job.protocol.beta).value
    columns = {
        "samples": [step * job.batch_size for step in at],
        "pcc": metrics.tcc(K) / compute.eigenvalues_of(job.dataset)[: job.p].sum(),
        "fea": metrics.feasibility(K),
        "h": [h(x) for x in X],
        **_eigenvalues("exact", metrics.constraint(K)),
        **_eigenvalues(name, Y),
    }
    return pd.DataFrame(columns).assign(stopped_at=result.stopped_at[0])


def _eigenvalues(name: str, matrices: Array) -> dict[str, Array]:
    finite = np.isfinite(matrices).all(axis=(1, 2))
    values = np.full(matrices.shape[:2], np.nan)
    values[finite] = np.linalg.eigvalsh(sym(matrices[finite]))
    return {f"{name}_{k + 1}": column for k, column in enumerate(values.T)}


def as_code(*, start: float = 1.0, **choices: Any) -> str:
    """Python code of a `trace` as a job of the suite; ValueError for another `start` than 1."""
    if start != 1:
        raise ValueError(f"a job starts at the orthonormal initial point itself, got start={start:g}; set it to 1")
    return (
        "from cdfsg.paper.compute import compute\nfrom cdfsg.paper.experiments import Job\n"
        f"from cdfsg.paper.protocols import Protocol\n\njob = {job_of(**choices)}\n"
        'print(compute(job)[["pcc", "fval", "fea", "fea_post"]])'
    )


def stopped(table: pd.DataFrame) -> int | None:
    """The step at which the run of a trace was stopped, None if it was not."""
    step = int(table["stopped_at"].iloc[0])
    return step if step >= 0 else None


def summary(table: pd.DataFrame) -> str:
    """Where a trace ends, in words with three digits."""
    if (step := stopped(table)) is not None:
        return f"stopped at step {step}: an entry of the minibatch's X'MX left [-{ESCAPED:g}, {ESCAPED:g}]"
    last = table.iloc[-1]
    return f"PCC {last['pcc']:.3g}, Fea {last['fea']:.3g}, h {last['h']:.3g}"


def draw(traces: Mapping[str, pd.DataFrame], title: str = "", figure: Figure | None = None) -> Figure:
    """PCC, Fea, h and eigenvalues, a colour per trace, on the four axes of a `figure` or a new one."""
    if not 1 <= len(traces) <= len(COLOURS):
        raise ValueError(f"traces must be 1 to {len(COLOURS)}, one per colour, got {len(traces)}")
    with plt.rc_context(STYLE):
        picture = figure or panels(1, 4, width=12, height=3.2)[0]
        for artist in [*picture.legends, *(line for axis in picture.axes for line in axis.lines)]:
            artist.remove()  # axes that are cleared would make their ticks anew, which takes long
        for (words, table), colour in zip(traces.items(), COLOURS, strict=False):
            stop = "" if stopped(table) is None else f", stopped at step {stopped(table)}"
            for axis, quantity in zip(picture.axes, ("pcc", "fea", "h"), strict=False):
                axis.plot(table["samples"], table[quantity], color=colour, label=words + stop)
            for name, dashes in {"exact": ":", "Y": "-", "C": "-"}.items():
                picture.axes[3].plot(table["samples"], table.filter(regex=f"^{name}_"), color=colour, ls=dashes)
        picture.axes[3].axhline(1, color="black", lw=0.8)
        drawn = {column for table in traces.values() for column in table}
        estimates = " or ".join(of for name, of in ESTIMATES.items() if f"{name}_1" in drawn)
        titles = ("PCC", "feasibility violation", "h", f"eigenvalues of {estimates}")
        for axis, name in zip(picture.axes, titles, strict=True):
            axis.relim()
            axis.set_title(name, y=1.02)
            axis.set_xlabel("samples seen")
        pcc, fea, *others = picture.axes
        pcc.set_ylim(0, 1.03)
        fea.set_yscale("log")
        for axis in others:  # where a quantity runs away, a scale that still shows the others
            low, high = axis.dataLim.intervaly
            scale = "linear" if high - low <= 50 else "log" if low > 0 else "symlog"
            axis.set_yscale(scale, **({"linthresh": 1} if scale == "symlog" else {}))
        for axis in picture.axes:
            axis.autoscale_view()
        handles = [*pcc.lines, Line2D([], [], color="black", label="eigenvalues of the exact X'MX", ls=":")]
        if figure is None:
            return finish(picture, title, handles)
        plain_ticks(figure)
        figure.legend(handles=handles, loc="lower left", frameon=False)
        return figure


class Panel:
    """Controls for one run beside its curves, drawn again at each change; another run can be kept to compare.

    Where there is no kernel (a stored notebook, a page) the picture alone is shown.
    """

    def __init__(self, datasets: tuple[str, ...] = ("digits", "mnist")) -> None:
        later = {"continuous_update": False, **_WIDE}
        self.controls: dict[str, Any] = {
            "dataset": ipywidgets.Dropdown(description="data set", options=datasets, **_WIDE),
            "merit": ipywidgets.Dropdown(description="merit", options=list(MERITS), **_WIDE),
            "solver": ipywidgets.Dropdown(description="solver", options=list(SOLVERS), **_WIDE),
            "batch_size": ipywidgets.SelectionSlider(description="l", options=BATCH_SIZES, value=20, **later),
            "p": ipywidgets.IntSlider(description="p", value=2, min=1, max=10, **later),
            "beta": _slider("beta", BETA),
            "mu": _slider("mu (Huber)", MU),
            "start": _slider("start times", 1.0),
            "shared": ipywidgets.Checkbox(description="one minibatch for theta and xi", **_WIDE),
        }
        self.settings = {
            solver: {name: _slider(name, value) for name, value in defaults(solver).items()} for solver in SOLVERS
        }
        self.keep, self.reset, self.export = (
            ipywidgets.Button(description=name, layout={"width": "100px"}) for name in ("Keep", "Reset", "As a job")
        )
        for button, act in ((self.keep, self._keep), (self.reset, self._reset), (self.export, self._export)):
            button.on_click(act)
        self.words, self.picture = ipywidgets.HTML(), ipywidgets.Image(format="png", layout={"max_width": "100%"})
        self.code = ipywidgets.Textarea(layout={"width": "100%", "height": "150px", "display": "none"})
        self._of_solver, rows = ipywidgets.VBox(), [*self.controls.values()]
        form = [*rows[:3], self._of_solver, *rows[3:], ipywidgets.HBox([self.keep, self.reset, self.export])]
        left = ipywidgets.VBox(form, layout={"width": "345px", "flex": "0 0 auto"})
        self.box = ipywidgets.HBox([left, ipywidgets.VBox([self.words, self.picture, self.code])])
        with plt.rc_context(STYLE):
            self._figure = panels(2, 2, width=7.4, height=5.8)[0]
        self._figure.subplots_adjust(left=0.08, right=0.98, top=0.95, bottom=0.23, hspace=0.42, wspace=0.2)
        plt.close(self._figure)  # else a notebook shows it once more
        sliders = [slider for settings in self.settings.values() for slider in settings.values()]
        self._beginning = {widget: widget.value for widget in [*rows, *sliders]}
        self._drawn: dict[str, pd.DataFrame] = {}
        self._kept: dict[str, pd.DataFrame] = {}
        self._waiting: asyncio.TimerHandle | None = None
        for widget in self._beginning:
            widget.observe(self._ask, "value")
        self.redraw()

    def redraw(self) -> None:
        """Run at the values of the controls and show the curves, or the sentence of an error."""
        chosen = self._chosen()
        solver, given = chosen["solver"], chosen["settings"]
        self._of_solver.children = tuple(self.settings[solver].values())
        self.controls["mu"].disabled = not hasattr(make_merit(chosen["merit"], chosen["mu"]), "mu")
        self.controls["shared"].disabled = SOLVERS[solver].samples_per_step == 1
        self.code.layout.display = "none"  # it is of another run
        self._say("running ...")
        began = time.perf_counter()
        try:
            table = trace(**chosen)
        except (ValueError, OSError, DownloadError) as error:
            self._say(str(error), "#b00020")
            self.picture.layout.visibility = "hidden"  # it shows another run
            return
        shown = {**given, **{name: chosen[name] for name in ("batch_size", "p", "beta")}}
        words = ", ".join(f"{name} = {value:.3g}" for name, value in shown.items())
        self._drawn = {f"{solver}, {chosen['dataset']}, {chosen['merit']}: {words}": table}
        draw(self._kept | self._drawn, figure=self._figure)
        self.picture.value = png(self._figure, compress_level=1)
        self.picture.layout.visibility = "visible"
        note = "" if SOLVERS[solver].joint_constraint else f" ({solver} keeps another constraint than X'MX = I)"
        self._say(f"{summary(table)}{note}; {time.perf_counter() - began:.1f} s")

    def _chosen(self) -> dict[str, Any]:
        """The values of the controls, as `trace` takes them."""
        chosen = {name: widget.value for name, widget in self.controls.items()}
        return chosen | {"settings": {name: s.value for name, s in self.settings[chosen["solver"]].items()}}

    def _ask(self, _: Any) -> None:
        """Redraw once no further change waits; at once where no kernel runs a loop."""
        if self._waiting:
            self._waiting.cancel()
        try:
            self._waiting = asyncio.get_running_loop().call_later(_PAUSE, self.redraw)
        except RuntimeError:
            self.redraw()

    def _keep(self, _: Any) -> None:
        """Keep the run that is shown, to compare others with it, or forget it."""
        self._kept = {} if self._kept else self._drawn
        self.keep.description = "Forget" if self._kept else "Keep"
        self.redraw()

    def _export(self, _: Any) -> None:
        """Show the run as code of the suite."""
        try:
            self.code.value = as_code(**self._chosen())
        except ValueError as error:
            self.code.value = str(error)
        self.code.layout.display = "flex"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        """The live box for who has a kernel, and the picture for who has none."""
        picture = base64.b64encode(self.picture.value).decode()
        words = "A panel of sliders; it needs a kernel."
        return {**self.box._repr_mimebundle_(), "image/png": picture, "text/plain": words}

    def _reset(self, _: Any) -> None:
        self._kept, self.keep.description = {}, "Keep"
        for widget, value in self._beginning.items():
            widget.value = value
        self._ask(None)  # also where no control has moved

    def _say(self, words: str, colour: str = "inherit") -> None:
        self.words.value = f'<span style="color: {colour}">{html.escape(words)}</span>'


def _slider(name: str, value: float) -> Any:
    """A slider over the powers of ten from 1e-3 to 100, whose handle moves by a twentieth of one."""
    return ipywidgets.FloatLogSlider(
        description=name, value=value, min=-3, max=2, step=0.05, readout_format=".3g", continuous_update=False, **_WIDE
    )
