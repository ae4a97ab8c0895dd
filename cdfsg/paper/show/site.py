"""The report: a static site of the executed notebooks, the paper's tables, the figures and the claims.

The folder ``docs`` holds what is written by hand; `write_sources` puts beside it what follows from the records, and
Sphinx makes pages of both.  The site opens from disk, without a network.
"""

import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import nbformat
import pandas as pd

from cdfsg import checksums
from cdfsg.files import FIGURES, NOTEBOOKS, RECORDS, ROOT, write_atomically
from cdfsg.paper import archive
from cdfsg.paper.experiments import EXPERIMENTS
from cdfsg.paper.results import claims, reasons, tables, verdicts
from cdfsg.paper.show import notebooks, pages, reference, theory_pages, words
from cdfsg.theory import statements

DOCS = ROOT / "docs"
SITE = ROOT / "build" / "report"
_MATHJAX = "sphinx-mathjax-offline"


def build(target: Path = SITE) -> Path:
    """Build the report; a target that exists is replaced once the new one is complete.

    Returns
    -------
    Path
        The front page.

    Raises
    ------
    ValueError
        If Sphinx warns or fails; the message is its own.
    FileNotFoundError
        If Sphinx is not installed, or records are missing.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".report-", ignore_cleanup_errors=True) as scratch:
        source, made = Path(scratch) / "source", Path(scratch) / "html"
        write_sources(source)
        command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-d", f"{scratch}/doctrees"]
        command += [str(source), str(made)]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace")
        if done.returncode:
            words = done.stderr.replace(f"{source}/", "").rstrip()
            raise ValueError(f"the report was not built; Sphinx says:\n{words}")
        shutil.rmtree(target, ignore_errors=True)
        made.rename(target)
    return target / "index.html"


def write_sources(source: Path) -> None:
    """Write all that Sphinx reads: the pages of ``docs``, and those that follow from records, figures and notebooks."""
    if not (RECORDS / "verdicts.csv").exists():
        raise FileNotFoundError(f"{RECORDS / 'verdicts.csv'} is missing; make it with: make reproduce")
    shutil.copytree(DOCS, source)
    _copy_figures(source / "figures")
    static = source / "_static"
    write_atomically(static / "mathjax" / "tex-svg-full.js", _mathjax().read_bytes())
    write_atomically(static / "verdicts.css", pages.stylesheet())
    for path in filter(pages.is_light, RECORDS.glob("*.csv")):
        write_atomically(source / "records" / path.name, checksums.read(path))
    judged, asserted = verdicts.read(), claims.read()
    why = reasons.read()
    texts = {
        "generated/counts": pages.counts(judged),
        "generated/ledger": pages.ledger(asserted),
        "generated/verdicts": words.ledger(judged),
        "generated/reasons": words.reasons_in_words(why),
        "generated/tolerances": pages.tolerance_table(judged["quantity"]),
        "generated/statements": theory_pages.statement_table(list(statements.recorded().values())),
        "generated/defaults": pages.defaults_table(),
        "generated/torture": pages.torture_table(),
        "generated/errata": theory_pages.errata_list(statements.errata()),
        "claims": pages.claims_page(asserted, judged),
        "figures": pages.gallery(pages.figure_names(), pages.read_captions(), _stems(judged)),
        "records": pages.records_page(),
        **reference.pages(),
    }
    for table, name in pages.table_pages(judged).items():
        texts[name] = _table_page(judged[judged["table"] == table], why[why["table"] == table])
    for name, text in texts.items():
        write_atomically(source / f"{name}.md", text)
    _write_notebooks(source)


def _copy_figures(target: Path) -> None:
    for name in pages.figure_names():
        for kind in ("svg", "png", "csv"):
            path = FIGURES / f"{name}.{kind}"
            write_atomically(target / path.name, path.read_bytes())


def _mathjax() -> Path:
    """MathJax, from the wheel that carries it."""
    try:
        return Path(str(distribution(_MATHJAX).locate_file(f"{_MATHJAX}/static/mathjax/tex-svg-full.js")))
    except PackageNotFoundError as error:
        raise FileNotFoundError(f"{_MATHJAX} is not installed; make setup, or pip install 'cdfsg[report]'") from error


def _stems(judged: pd.DataFrame) -> dict[str, str]:
    """What the names of an experiment's files begin with, and its heading."""
    stems = {}
    for table, part in judged.groupby("table", sort=False):
        experiment = EXPERIMENTS[table]
        kind = part["provenance"].iloc[0]
        stems[experiment.name] = pages.experiment_name(experiment.dataset, experiment.merit, kind)
    return stems


def _table_page(part: pd.DataFrame, why: pd.DataFrame) -> str:
    experiment = EXPERIMENTS[part["table"].iloc[0]]
    bounds = tables.bounds(archive.runs_of(experiment))
    (stem,) = _stems(part)
    shown = [f"{{doc}}`/{name}`" for name in _notebooks_of(experiment.name)]
    if any(name.startswith(f"{stem}-") for name in pages.figure_names()):
        shown.append(f"[Its figures](#figures-{stem})")
    return pages.table_page(part, bounds, shown, why)


def _notebooks_of(experiment: str) -> list[str]:
    """The notebooks that show an experiment, as pages."""
    if experiment == notebooks.EXAMPLE:
        return [f"notebooks/{name}" for name in notebooks.OF_EXPERIMENTS]
    return [f"notebooks/instances/{path.stem}" for path in sorted(notebooks.INSTANCES.glob(f"*-{experiment}.ipynb"))]


# --- notebooks -------------------------------------------------------------------------------------------


def _write_notebooks(source: Path) -> None:
    """Copy the notebooks in reading order, each with its instances below it in the menu."""
    lines = ["# Notebooks", "In reading order. Each ends with a check of its conclusion."]
    for name in notebooks.names():
        instances = sorted(notebooks.INSTANCES.glob(f"{name}-*.ipynb"))
        notebook = notebooks.stored(NOTEBOOKS / f"{name}.ipynb")
        if instances:
            notebook.cells.append(nbformat.v4.new_markdown_cell(_toctree(name, instances)))
        _write(source / "notebooks" / f"{name}.ipynb", notebook)
        lines.append(f"## {{doc}}`notebooks/{name}`\n\n{_introduction(notebook)}")
        for path in instances:
            instance = notebooks.stored(path)
            _head(instance, f" ({path.stem.removeprefix(name + '-')})")
            _write(source / "notebooks" / "instances" / path.name, instance)
            lines.append(f"* {{doc}}`notebooks/instances/{path.stem}`")
    lines.append("```{toctree}\n:hidden:\n\n" + "\n".join(f"notebooks/{name}" for name in notebooks.names()) + "\n```")
    write_atomically(source / "notebooks.md", "\n\n".join(lines) + "\n")


def _write(path: Path, notebook: nbformat.NotebookNode) -> None:
    write_atomically(path, nbformat.writes(notebook) + "\n")


def _toctree(name: str, instances: list[Path]) -> str:
    entries = "\n".join(f"{path.stem.removeprefix(name + '-')} <instances/{path.stem}>" for path in instances)
    return f"## The same for other experiments\n\n```{{toctree}}\n:maxdepth: 1\n\n{entries}\n```"


def _head(notebook: nbformat.NotebookNode, words: str) -> None:
    """Add words to the title, so that instances can be told apart."""
    title, _, rest = notebook.cells[0].source.partition("\n")
    notebook.cells[0].source = f"{title}{words}\n{rest}"


def _introduction(notebook: nbformat.NotebookNode) -> str:
    """The first paragraph after the title."""
    return str(notebook.cells[0].source).split("\n\n")[1]
