"""The sliders of ``70_explore``: a form over `explore.trace`, with its picture below."""

import base64
import html
import time
from typing import Any

import ipywidgets
import matplotlib.pyplot as plt

from cdfsg.datasets import DownloadError
from cdfsg.merits import MERITS, make_merit
from cdfsg.paper.protocols import BETA, MU
from cdfsg.paper.report import explore
from cdfsg.paper.report.figures import png
from cdfsg.solvers import SOLVERS

BATCH_SIZES = (5, 10, 20, 50, 100, 200)
_WIDE = {"layout": {"width": "330px"}, "style": {"description_width": "90px"}}


class Panel:
    """Controls for one run, and its curves, drawn again at each change.

    Where there is no kernel (a stored notebook, a page) the picture alone is shown.
    """

    def __init__(self, datasets: tuple[str, ...] = ("digits", "mnist")) -> None:
        later = {"continuous_update": False, **_WIDE}
        self.controls: dict[str, Any] = {
            "dataset": ipywidgets.Dropdown(description="data set", options=datasets, **_WIDE),
            "merit": ipywidgets.Dropdown(description="merit", options=list(MERITS), **_WIDE),
            "solver": ipywidgets.Dropdown(description="solver", options=list(SOLVERS), **_WIDE),
            "beta": _slider("beta", BETA),
            "mu": _slider("mu (Huber)", MU),
            "start": _slider("start times", 1.0),
            "batch_size": ipywidgets.SelectionSlider(description="l", options=BATCH_SIZES, value=20, **later),
            "p": ipywidgets.IntSlider(description="p", value=2, min=1, max=10, **later),
            "shared": ipywidgets.Checkbox(description="one minibatch for theta and xi", indent=False),
        }
        self.settings = {
            solver: {name: _slider(name, value) for name, value in explore.defaults(solver).items()}
            for solver in SOLVERS
        }
        self.reset = ipywidgets.Button(description="Reset", tooltip="Back to the values at the beginning")
        self.words = ipywidgets.HTML()
        self.picture = ipywidgets.Image(format="png", layout={"max_width": "100%"})
        self._of_solver = ipywidgets.VBox()
        groups = [("dataset", "merit", "solver", "shared"), ("batch_size", "p"), ("beta", "mu", "start")]
        what, sizes, numbers = ([self.controls[name] for name in names] for names in groups)
        columns = map(ipywidgets.VBox, ([*what, self.reset], [self._of_solver, *sizes], numbers))
        form = ipywidgets.HBox([*columns], layout={"flex_flow": "row wrap"})
        self.box = ipywidgets.VBox([form, self.words, self.picture])
        sliders = [slider for settings in self.settings.values() for slider in settings.values()]
        self._beginning = {widget: widget.value for widget in [*self.controls.values(), *sliders]}
        self._is_resetting = False
        for widget in self._beginning:
            widget.observe(self.redraw, "value")
        self.reset.on_click(self._reset)
        self.redraw()

    def redraw(self, _: Any = None) -> None:
        """Run at the values of the controls and show the curves, or the sentence of an error."""
        if self._is_resetting:
            return
        chosen = {name: widget.value for name, widget in self.controls.items()}
        solver = chosen["solver"]
        self._of_solver.children = tuple(self.settings[solver].values())
        self.controls["mu"].disabled = not hasattr(make_merit(chosen["merit"], chosen["mu"]), "mu")
        self.controls["shared"].disabled = SOLVERS[solver].samples_per_step == 1
        self._say("running ...")
        began = time.perf_counter()
        try:
            given = {name: slider.value for name, slider in self.settings[solver].items()}
            table = explore.trace(settings=given, **chosen)
        except (ValueError, OSError, DownloadError) as error:
            self._say(str(error), "#b00020")
            self.picture.layout.visibility = "hidden"  # it shows another run
            return
        figure = explore.draw({f"{solver} on {chosen['dataset']}": table})
        self.picture.value = png(figure)
        plt.close(figure)  # else a notebook shows it once more
        self.picture.layout.visibility = "visible"
        note = "" if SOLVERS[solver].joint_constraint else f" ({solver} keeps another constraint than X'MX = I)"
        self._say(f"{explore.summary(table)}{note}; {time.perf_counter() - began:.1f} s")

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        """The live box for who has a kernel, and the picture for who has none."""
        picture = base64.b64encode(self.picture.value).decode()
        words = "A panel of sliders; it needs a kernel."
        return {**self.box._repr_mimebundle_(), "image/png": picture, "text/plain": words}

    def _reset(self, _: Any) -> None:
        self._is_resetting = True  # or each control would draw on its own
        for widget, value in self._beginning.items():
            widget.value = value
        self._is_resetting = False
        self.redraw()

    def _say(self, words: str, colour: str = "inherit") -> None:
        self.words.value = f'<span style="color: {colour}">{html.escape(words)}</span>'


def _slider(name: str, value: float) -> Any:
    """A slider over the powers of ten from 1e-3 to 100, whose handle moves by a twentieth of one."""
    return ipywidgets.FloatLogSlider(
        description=name, value=value, min=-3, max=2, step=0.05, readout_format=".3g", continuous_update=False, **_WIDE
    )
