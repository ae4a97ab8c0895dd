"""The sliders of ``70_explore``: a form over `cdfsg.paper.show.explore.trace`, with its picture below."""

import base64
import html
import io
import time
from collections.abc import Iterable
from typing import Any

import ipywidgets
import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from cdfsg.datasets import DownloadError
from cdfsg.merits import MERITS, make_merit
from cdfsg.paper.experiments import BETA, MU
from cdfsg.paper.show import explore
from cdfsg.solvers import SOLVERS

BATCH_SIZES = (5, 10, 20, 50, 100, 200)
FIRST_USE = {"mnist": "the first run on mnist reads the data and solves the exact problem, which takes some seconds; "}
"""What to say before the first run on a data set that takes a while."""
_WIDE = {"layout": {"width": "330px"}, "style": {"description_width": "90px"}}


class Panel:
    """Controls for one run, and its curves, drawn again at each change.

    Where there is no kernel (a stored notebook, a page) the picture alone is shown.

    Parameters
    ----------
    datasets : tuple of str
        Data sets of two views to choose from.

    Attributes
    ----------
    controls : dict
        Widgets by the argument of `explore.trace` that they set.
    settings : dict
        Sliders per solver and setting; those of the chosen solver are shown.
    reset : Button
    words : HTML
        How the run ended, or why there is none.
    picture : Image
    box : VBox
        All of it, to be displayed.
    """

    def __init__(self, datasets: tuple[str, ...] = ("digits", "mnist")) -> None:
        self.controls: dict[str, Any] = {
            "dataset": _dropdown("data set", datasets),
            "merit": _dropdown("merit", MERITS),
            "solver": _dropdown("solver", SOLVERS),
            "beta": _slider("beta", BETA),
            "mu": _slider("mu (Huber)", MU),
            "start": _slider("start times", 1.0),
            "batch_size": ipywidgets.SelectionSlider(
                description="l", options=BATCH_SIZES, value=20, continuous_update=False, **_WIDE
            ),
            "p": ipywidgets.IntSlider(description="p", value=2, min=1, max=10, continuous_update=False, **_WIDE),
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
        self.box = ipywidgets.VBox([self._form(), self.words, self.picture])
        self._used = {datasets[0]}
        self._resetting = False
        self._beginning = {widget: widget.value for widget in self._inputs()}
        for widget in self._beginning:
            widget.observe(self._changed, "value")
        self.reset.on_click(self._reset)
        self.redraw()

    def redraw(self) -> None:
        """Run at the values of the controls and show the curves, or the sentence of what refuses them."""
        chosen = {name: widget.value for name, widget in self.controls.items()}
        solver, dataset = chosen["solver"], chosen["dataset"]
        self._of_solver.children = tuple(self.settings[solver].values())
        self._disable(chosen)
        self._say(("" if dataset in self._used else FIRST_USE.get(dataset, "")) + "running ...")
        began = time.perf_counter()
        try:
            given = {name: slider.value for name, slider in self.settings[solver].items()}
            table = explore.trace(settings=given, **chosen)
        except (ValueError, OSError, DownloadError) as error:
            self._say(str(error), "#b00020")
            self.picture.layout.visibility = "hidden"  # it shows another run
            return
        self._used.add(dataset)
        self.picture.value = _png(explore.draw({f"{solver} on {dataset}": table}))
        self.picture.layout.visibility = "visible"
        note = "" if SOLVERS[solver].joint else f" ({solver} keeps another constraint than X'MX = I)"
        self._say(f"{explore.summary(table)}{note}; {time.perf_counter() - began:.1f} s")

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        """The live box for who has a kernel, and the picture for who has none."""
        live: dict[str, Any] = self.box._repr_mimebundle_()
        picture = base64.b64encode(self.picture.value).decode()
        return {**live, "image/png": picture, "text/plain": "A panel of sliders; it needs a kernel."}

    def _form(self) -> Any:
        c = self.controls
        what = [c["dataset"], c["merit"], c["solver"], c["shared"], self.reset]
        return ipywidgets.HBox(
            [
                ipywidgets.VBox(what),
                ipywidgets.VBox([self._of_solver, c["batch_size"], c["p"]]),
                ipywidgets.VBox([c["beta"], c["mu"], c["start"]]),
            ],
            layout={"flex_flow": "row wrap"},
        )

    def _inputs(self) -> list[Any]:
        return [*self.controls.values(), *(slider for sliders in self.settings.values() for slider in sliders.values())]

    def _disable(self, chosen: dict[str, Any]) -> None:
        """Grey out what has no effect."""
        self.controls["mu"].disabled = not hasattr(make_merit(chosen["merit"], chosen["mu"]), "mu")
        self.controls["shared"].disabled = SOLVERS[chosen["solver"]].streams == 1

    def _changed(self, _: Any) -> None:
        if not self._resetting:
            self.redraw()

    def _reset(self, _: Any) -> None:
        self._resetting = True  # or each widget would draw on its own
        try:
            for widget, value in self._beginning.items():
                widget.value = value
        finally:
            self._resetting = False
        self.redraw()

    def _say(self, words: str, colour: str = "inherit") -> None:
        self.words.value = f'<span style="color: {colour}">{html.escape(words)}</span>'


def _dropdown(name: str, options: Iterable[str]) -> Any:
    return ipywidgets.Dropdown(description=name, options=list(options), **_WIDE)


def _slider(name: str, value: float) -> Any:
    """A slider over the powers of ten from 1e-3 to 100, whose handle moves by a twentieth of one."""
    return ipywidgets.FloatLogSlider(
        description=name, value=value, min=-3, max=2, step=0.05, readout_format=".3g", continuous_update=False, **_WIDE
    )


def _png(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    plt.close(figure)  # else a notebook shows it once more
    return buffer.getvalue()
