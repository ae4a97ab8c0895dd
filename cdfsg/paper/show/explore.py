"""One run at any settings, evaluated exactly along its pass: the numbers and the picture of ``70_explore``."""

from collections.abc import Mapping
from typing import Any, cast

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter
from threadpoolctl import threadpool_limits

from cdfsg import metrics
from cdfsg.checks import require_positive
from cdfsg.linalg import Array, sym
from cdfsg.merits import Merit, make_merit
from cdfsg.paper.compute import covariance_of, eigenvalues_of, views_of
from cdfsg.paper.experiments import BETA, MU
from cdfsg.paper.show.figures import STYLE, finish, panels
from cdfsg.penalty import Penalty
from cdfsg.problems import GCCA, SampledGCCA, SampledProblem
from cdfsg.solvers import SOLVERS, Solver
from cdfsg.solvers.draws import Draws
from cdfsg.solvers.lanes import ESCAPED, Outcome, SolverOfMany, initial_points, run, step_by_step

SETTINGS: dict[str, dict[str, float]] = {
    "CDFSG": {"s1": 0.5, "s2": 0.1},
    "CDFSG-Ada": {"s1": 0.5, "s2": 0.005},
    "Landing": {"eta": 0.5, "omega": 0.5},
    "RSG+": {"eta_q": 0.1, "eta_t": 0.01},
}
"""Where the exploration of a solver begins: settings that work on the digits."""
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#666666", "#E69F00")
TRACKED, SEEN, EXACT = "Y", "C", "exact"
"""What columns of eigenvalues begin with: of the tracker, of one minibatch's X'MX, of the exact X'MX."""
_LINES: dict[str, dict[str, Any]] = {EXACT: {"ls": ":"}, TRACKED: {}, SEEN: {}}
_WIDE = 50.0  # range of an axis beyond which it is no longer linear


def defaults(solver: str) -> dict[str, float]:
    """Settings to begin with; 0.1 for those of a solver that `SETTINGS` does not have.

    Raises
    ------
    ValueError
        If no solver of that name is registered.
    """
    if solver not in SOLVERS:
        raise ValueError(f"unknown solver {solver!r}; known solvers: {', '.join(SOLVERS)}")
    return SETTINGS.get(solver, dict.fromkeys(SOLVERS[solver].settings, 0.1))


def trace(
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
    start: float = 1.0,
    points: int = 60,
    seed: int = 1,
) -> pd.DataFrame:
    """One run of a solver, evaluated in float64 on the full data at some points of its last pass.

    The data, their covariance and their canonical correlations are kept once they were needed.

    Parameters
    ----------
    dataset, merit, solver : str
        Registered names; the data have two views.
    settings : mapping of str to float, optional
        The solver's settings; `defaults` where none are given.
    beta : float
        Penalty parameter, of the solver (if it has one) and of the h that is shown.
    mu : float
        Threshold of the Huber merit.
    batch_size, p : int
    shared : bool
        Whether one minibatch serves for theta and xi.
    start : float
        Factor of the initial point, which is orthonormal.
    points : int
        Points besides the start, evenly spaced over the pass, or over its part up to where the run was stopped.
    seed : int
        Of the data order and of the initial point.

    Returns
    -------
    DataFrame
        A row per point: ``samples`` seen, ``pcc``, ``fea``, ``h`` (of the exact problem), ``stopped_at`` (the step at
        which the engine stopped the run, -1 if it did not) and eigenvalues in ascending order: ``exact_k`` of X'MX, and
        ``Y_k`` of the tracker or, for a solver that tracks nothing, ``C_k`` of X'MX on one minibatch, the same at each
        point.  Where the run was stopped, all but ``samples`` and ``stopped_at`` are NaN.

    Raises
    ------
    ValueError
        For what the data, the solver or the merit refuse; the message is their own.
    """
    require_positive(start=start, points=points)
    given = defaults(solver) if settings is None else settings
    views, g = views_of(dataset), make_merit(merit, mu)
    if views.n_views != 2:
        raise ValueError(f"dataset {dataset!r} has {views.n_views} views, but PCC needs two; take digits or mnist")
    kind = SOLVERS[solver]
    made = kind(**({"beta": beta} if hasattr(kind, "beta") else {}))
    problem = SampledGCCA(views.sizes, g)
    steps = len(views.batch_indices(batch_size, None))
    X0 = start * initial_points(made, views.n_features, p, [seed])
    lanes = {name: np.array([value]) for name, value in given.items()}

    def course(end: int) -> tuple[Outcome, dict[int, Array]]:
        watched = _Watched(made, steps)
        outcome = run(
            cast(Solver[Any], watched), problem, views, X0, lanes, batch_size, seed,
            shared=shared, dtype=np.float64, trace_at=_evenly(end, points),
        )  # fmt: skip
        return outcome, watched.tracked

    # One BLAS thread beats several inside products as small as these.
    with threadpool_limits(1):
        outcome, tracked = course(steps)
        end = int(outcome.stopped_at[0]) - (made.passes - 1) * steps
        if end > 0:  # a run that was stopped is short: once more, with all points where it went
            outcome, tracked = course(end)
        X = np.concatenate([X for _, X in outcome.trace], axis=1)
        if outcome.tracker is None:
            Z = next(views.batches(batch_size, [seed, 3], np.float64))
            estimate = _eigenvalues(SEEN, problem.constraint(problem.project(Z, X)))
        else:
            estimate = _eigenvalues(TRACKED, _at(tracked, [seen // batch_size for seen, _ in outcome.trace], X))
        table = _evaluated(X, dataset, g, beta).assign(**estimate)
    table.insert(0, "samples", [seen for seen, _ in outcome.trace])
    return table.assign(stopped_at=outcome.stopped_at[0])


def _evaluated(X: Array, dataset: str, merit: Merit, beta: float) -> pd.DataFrame:
    """Metrics, h and the eigenvalues of X'MX at the points X (n, points, p), a row each."""
    views, covariance = views_of(dataset), covariance_of(dataset)
    K = metrics.compress(X, covariance, views.sizes)
    problem = GCCA(covariance, views.sizes, merit)
    h = Penalty(problem, problem.M, beta).value
    columns = {
        "pcc": metrics.tcc(K) / eigenvalues_of(dataset)[: X.shape[2]].sum(),
        "fea": metrics.feasibility(K),
        "h": [h(X[:, k]) for k in range(X.shape[1])],
        **_eigenvalues(EXACT, metrics.constraint(K)),
    }
    return pd.DataFrame(columns)


class _Watched:
    """A solver that keeps its tracker Y, if it has one, after each group of steps that the engine asks for."""

    def __init__(self, solver: Solver[Any], in_all: int) -> None:
        self._solver, self._in_all, self._done = solver, in_all, 0
        self.tracked: dict[int, Array] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._solver, name)

    def start(self, problem: SampledProblem, X0: Array, settings: Mapping[str, Array], first: Array) -> Any:
        state = self._solver.start(problem, X0, settings, first)
        self._keep(state)
        return state

    def steps(self, problem: SampledProblem, state: Any, draws: Draws) -> Array:
        if isinstance(self._solver, SolverOfMany):
            C = self._solver.steps(problem, state, draws)
        else:
            C = step_by_step(self._solver, problem, state, draws, self._done // self._in_all)
        self._done += len(draws)
        self._keep(state)
        return C

    def _keep(self, state: Any) -> None:
        if hasattr(state, "Y"):
            self.tracked[self._done] = state.Y[0].copy()


def _evenly(steps: int, points: int) -> list[int]:
    return sorted({round(k * steps / points) for k in range(points + 1)})


def _at(tracked: Mapping[int, Array], steps: list[int], X: Array) -> Array:
    """The tracker at some steps, NaN where the run was stopped, and with it X."""
    nothing = np.full_like(tracked[0], np.nan)
    Y = np.stack([tracked.get(step, nothing) for step in steps])
    Y[~np.isfinite(X).all(axis=(0, 2))] = np.nan
    return Y


def _eigenvalues(name: str, matrices: Array) -> dict[str, Array]:
    values = np.full(matrices.shape[:2], np.nan)
    finite = np.isfinite(matrices).all(axis=(1, 2))
    values[finite] = np.linalg.eigvalsh(sym(matrices[finite]))
    return {f"{name}_{k + 1}": column for k, column in enumerate(values.T)}


def stopped(table: pd.DataFrame) -> int | None:
    """The step at which the engine stopped the run of a trace, None if it did not."""
    step = int(table["stopped_at"].iloc[0])
    return step if step >= 0 else None


def summary(table: pd.DataFrame) -> str:
    """Where a trace ends, in words with three digits."""
    if (step := stopped(table)) is not None:
        return f"stopped at step {step}: an entry of the minibatch's X'MX left [-{ESCAPED:g}, {ESCAPED:g}]"
    last = table.iloc[-1]
    return f"PCC {last['pcc']:.3g}, Fea {last['fea']:.3g}, h {last['h']:.3g}"


def draw(traces: Mapping[str, pd.DataFrame], title: str = "") -> Figure:
    """PCC, Fea, h and the eigenvalues of Y (or of X'MX on a minibatch) against samples seen, a colour per trace.

    Parameters
    ----------
    traces : mapping of str to DataFrame
        What `trace` gives, by the words of the legend.
    title : str

    Raises
    ------
    ValueError
        If there are more traces than `COLOURS`, or none.
    """
    if not 1 <= len(traces) <= len(COLOURS):
        raise ValueError(f"traces must be 1 to {len(COLOURS)}, one per colour, got {len(traces)}")
    with plt.rc_context(STYLE):
        figure, axes = panels(1, 4, width=12, height=3.2)
        handles = []
        for (words, table), colour in zip(traces.items(), COLOURS, strict=False):
            for axis, quantity in zip(axes[0], ("pcc", "fea", "h"), strict=False):
                axis.plot(table["samples"], table[quantity], color=colour)
            for name, style in _LINES.items():
                axes[0, 3].plot(table["samples"], table.filter(regex=f"^{name}_"), color=colour, **style)
            step = stopped(table)
            stop = "" if step is None else f", stopped at step {step}"
            handles.append(Line2D([], [], color=colour, label=words + stop))
        titles = ("PCC", "feasibility violation", "h", f"eigenvalues of {_estimates(traces)}")
        for axis, name in zip(axes[0], titles, strict=True):
            axis.set(title=name, xlabel="samples seen")
            axis.grid(alpha=0.25)
        axes[0, 0].set(ylim=(0, 1.03))
        axes[0, 1].set(yscale="log")
        axes[0, 1].yaxis.set_minor_formatter(NullFormatter())  # at this size they lie on each other
        axes[0, 3].axhline(1, color="black", lw=0.8)
        for axis in axes[0, 2:]:
            _compress(axis)
        exact = Line2D([], [], color="black", label="eigenvalues of the exact X'MX", **_LINES[EXACT])
        return finish(figure, title, [*handles, exact])


def _estimates(traces: Mapping[str, pd.DataFrame]) -> str:
    """What the solid lines of eigenvalues are of."""
    names = {TRACKED: "the tracker Y", SEEN: "X'MX on a minibatch"}
    return " or ".join(names[name] for name in names if any(f"{name}_1" in table for table in traces.values()))


def _compress(axis: Axes) -> None:
    """Where a quantity runs away, a scale that still shows the others: logarithmic, but for values around zero."""
    low, high = axis.dataLim.intervaly
    if high - low > _WIDE and low > 0:
        axis.set_yscale("log")
    elif high - low > _WIDE:
        axis.set_yscale("symlog", linthresh=1)
