"""The sliders of ``70_explore``: a form over `explore.trace`, with its picture beside."""

import asyncio
import base64
import html
import time
from typing import Any

import ipywidgets
import matplotlib.pyplot as plt
import pandas as pd

from cdfsg.datasets import DownloadError
from cdfsg.merits import MERITS, make_merit
from cdfsg.paper.protocols import BETA, MU
from cdfsg.paper.report import explore
from cdfsg.paper.report.figures import STYLE, panels, png
from cdfsg.solvers import SOLVERS

BATCH_SIZES = (5, 10, 20, 50, 100, 200)
_PAUSE = 0.05  # seconds without a change before a run
_WIDE = {"layout": {"width": "330px"}, "style": {"description_width": "90px"}}


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
            solver: {name: _slider(name, value) for name, value in explore.defaults(solver).items()}
            for solver in SOLVERS
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
            table = explore.trace(**chosen)
        except (ValueError, OSError, DownloadError) as error:
            self._say(str(error), "#b00020")
            self.picture.layout.visibility = "hidden"  # it shows another run
            return
        shown = {**given, **{name: chosen[name] for name in ("batch_size", "p", "beta")}}
        words = ", ".join(f"{name} = {value:.3g}" for name, value in shown.items())
        self._drawn = {f"{solver}, {chosen['dataset']}, {chosen['merit']}: {words}": table}
        explore.draw(self._kept | self._drawn, figure=self._figure)
        self.picture.value = png(self._figure, compress_level=1)
        self.picture.layout.visibility = "visible"
        note = "" if SOLVERS[solver].joint_constraint else f" ({solver} keeps another constraint than X'MX = I)"
        self._say(f"{explore.summary(table)}{note}; {time.perf_counter() - began:.1f} s")

    def _chosen(self) -> dict[str, Any]:
        """The values of the controls, as `explore.trace` takes them."""
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
            self.code.value = explore.as_code(**self._chosen())
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
