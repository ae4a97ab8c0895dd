"""Notebooks executed by papermill, without a trace of the machine in the file."""

import base64
import io
import tempfile
import warnings
from contextlib import suppress
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PIL import Image, ImageChops

from cdfsg.files import NOTEBOOKS, Damaged, read_bytes, write_atomically
from cdfsg.paper.experiments import Experiment

if TYPE_CHECKING:  # they take two seconds to import
    from nbformat import NotebookNode

OF_EXPERIMENTS = ("30_penalty_robustness", "40_gcca")
"""The notebooks with parameters, executed for each experiment that they fit."""
EXAMPLE = "mnist-identity"  # the experiment that they show as they are
WIDGET = "application/vnd.jupyter.widget-view+json"  # the type of a live widget
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
VERSION = "3.11.7"
"""With the kernel's own words on its language these are what JupyterLab writes, up to the version."""
INSTANCES = NOTEBOOKS / "instances"  # for other parameters
COLOURS = 64  # of a stored picture
ALIKE = 40  # difference of a pixel, of 255, up to which two pictures look the same


def names() -> list[str]:
    """The project's notebooks, in their order."""
    return sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb"))


def of_experiment(experiment: Experiment) -> list[str]:
    """The notebooks that show an experiment, the first one where it has panels of penalty parameters."""
    return list(OF_EXPERIMENTS if experiment.betas else OF_EXPERIMENTS[1:])


def execute(name: str, parameters: dict[str, Any] | None = None, output: Path | None = None) -> Path:
    """Execute ``notebooks/<name>.ipynb`` and write the result to `output`, or to the notebook itself.

    `parameters` are values for the cell tagged ``parameters``.  If a cell fails, the output is left as it was.
    ValueError for an unknown notebook or parameter.
    """
    import nbformat
    import papermill

    source = NOTEBOOKS / f"{name}.ipynb"
    if not source.exists():
        raise ValueError(f"there is no notebook {name!r}; known notebooks: {', '.join(names())}")
    target = output or source
    if parameters and target == source:
        raise ValueError(f"{name} with parameters {parameters} needs an output of its own")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecations inside the notebook machinery
        known = set(papermill.inspect_notebook(str(source)))
        if unknown := sorted(set(parameters or {}) - known):  # papermill itself would only warn
            has = ", ".join(sorted(known)) or "none"
            raise ValueError(f"{source.name} has no parameter {', '.join(unknown)}; it has {has}")
        executed = Path(scratch) / source.name
        papermill.execute_notebook(
            str(source), str(executed), parameters or {}, progress_bar=False, kernel_name="python3",
            cwd=str(target.parent), extra_arguments=["--log-level=CRITICAL"],  # the kernel's own chatter
            iopub_timeout=60,  # on a busy machine a cell's output may come late
        )  # fmt: skip
        notebook = scrub(nbformat.read(executed, as_version=4))
    _settle_pictures(notebook, target)
    write_atomically(target, nbformat.writes(notebook) + "\n")
    return target


def require_parameters(namespace: dict[str, Any], *known: str) -> None:
    """Refuse other plain values than the parameters `known`: papermill only warns of a wrong name."""
    plain = {name for name, value in namespace.items() if isinstance(value, str | float | int) and name[0] != "_"}
    if unknown := sorted(plain - set(known)):
        raise ValueError(f"no parameter {', '.join(unknown)}; the parameters are {', '.join(known)}")


def scrub(notebook: "NotebookNode") -> "NotebookNode":
    """Drop what differs between equal executions, and live widgets."""
    import nbformat
    from ipykernel.ipkernel import IPythonKernel
    from nbconvert.preprocessors.coalescestreams import CoalesceStreamsPreprocessor

    language = IPythonKernel.language_info | {"version": VERSION}
    notebook.metadata = nbformat.from_dict({"kernelspec": KERNEL, "language_info": language})
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
        cell.metadata = nbformat.from_dict({name: of for name, of in cell.metadata.items() if name == "tags" and of})
        if cell.cell_type == "code":
            for out in cell.outputs:
                out.get("data", {}).pop(WIDGET, None)
            cell.outputs = [out for out in cell.outputs if out.get("name") != "stderr"]
            CoalesceStreamsPreprocessor().preprocess_cell(cell, {}, number)
    return notebook


def read(path: Path) -> "NotebookNode":
    """A notebook as `execute` writes it, also where JupyterLab has saved it since."""
    import nbformat

    remedy = "take it back with git checkout, or execute it with: python -m cdfsg notebooks"
    data = read_bytes(path, remedy)
    try:
        return scrub(nbformat.reads(data.decode("utf-8"), as_version=4))
    except (ValueError, AttributeError, nbformat.ValidationError) as error:
        raise Damaged(f"{path} is no notebook: it was damaged; {remedy}") from error


def _settle_pictures(notebook: "NotebookNode", old: Path) -> None:
    """Store each picture with few colours, or keep that of the old notebook if it looks the same."""
    before: list[NotebookNode] = []
    with suppress(FileNotFoundError, Damaged):
        before = _pictures(read(old))
    for out, kept in zip(_pictures(notebook), chain(before, repeat({})), strict=False):
        picture, stored = _open(out).convert("RGB"), _open(kept) if kept else None
        if stored and stored.mode == "P" and stored.size == picture.size:
            difference = ImageChops.difference(picture, stored.convert("RGB"))
            if max(high for _, high in difference.getextrema()) <= ALIKE:
                out["image/png"] = kept["image/png"]
                continue
        buffer = io.BytesIO()
        few = picture.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=0)
        few.save(buffer, "PNG", optimize=True)
        out["image/png"] = base64.b64encode(buffer.getvalue()).decode()


def _pictures(notebook: "NotebookNode") -> "list[NotebookNode]":
    outputs = [out for cell in notebook.cells for out in cell.get("outputs", [])]
    return [out.data for out in outputs if "image/png" in out.get("data", {})]


def _open(data: "NotebookNode") -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(data["image/png"])))
