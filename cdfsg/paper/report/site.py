"""The report: a static site of the notebooks, the paper's tables, the figures and the claims."""

import pkgutil
import re
import shutil
import subprocess
import sys
import tempfile
from base64 import b64decode
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import nbformat

import cdfsg
from cdfsg import checksums
from cdfsg.files import FIGURES, NOTEBOOKS, RECORDS, ROOT, write_atomically
from cdfsg.paper.report import notebooks, pages, summaries
from cdfsg.paper.report.figures import VERDICT_COLOURS
from cdfsg.paper.report.pages import DOCS
from cdfsg.paper.results import claims, verdicts
from cdfsg.paper.results.reported import tolerances
from cdfsg.theory import statements
from cdfsg.theory.statement import CORRECTED, FALSE, HOLDS

FIRST = ("estimator", "problems", "eigenproblems", "merits", "penalty", "metrics", "solvers", "theory")
"""Modules with which the API reference begins."""
LEFT_OUT = ("__main__", "checks", "checksums", "files", "lock", "paper", "processes", "suite")
"""Not in the API reference: CONTRIBUTING describes the reproduction and what serves it."""
FOLDED = ("50_", "51_", "52_")
"""Notebooks of which the site shows the conclusion first, and no code."""
SITE = ROOT / "build" / "report"
SIGNS = {HOLDS: ("✓", "match"), CORRECTED: ("✎", "diverged-paper"), FALSE: ("✗", "worse")}
"""By verdict on a statement its sign, and the verdict on a number that has its colour."""
_MATHJAX = "sphinx-mathjax-offline"


def build(target: Path = SITE) -> Path:
    """Build the report in place of an old one, and return its front page."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".report-", ignore_cleanup_errors=True) as scratch:
        source, made = Path(scratch) / "source", Path(scratch) / "html"
        write_sources(source)
        options = ["-W", "--keep-going", "-q", f"-d{scratch}/doctrees", str(source), str(made)]
        done = subprocess.run([sys.executable, "-m", "sphinx", *options], capture_output=True, encoding="utf-8",
                              errors="replace")  # fmt: skip
        if done.returncode:
            words = done.stderr.replace(f"{source}/", "").rstrip()
            raise ValueError(f"the report was not built; Sphinx says:\n{words}")
        shutil.rmtree(target, ignore_errors=True)
        made.rename(target)
    return target / "index.html"


def write_sources(source: Path) -> None:
    """Write what Sphinx reads: ``docs``, and pages made of records, figures and notebooks."""
    judged = verdicts.read()
    shutil.copytree(DOCS, source)
    shutil.copytree(FIGURES, source / "figures", ignore=shutil.ignore_patterns("*.toml"))
    for path in filter(pages.is_light, RECORDS.glob("*.csv")):
        write_atomically(source / "records" / path.name, checksums.read(path))
    write_atomically(source / "_static/mathjax/tex-svg-full.js", _mathjax().read_bytes())
    rules = (f".v-{word} {{ --verdict: {colour}; }}\n" for word, colour in VERDICT_COLOURS.items())
    write_atomically(source / "_static/verdicts.css", "".join(rules).replace("/", r"\/"))
    printed = pages.tables_of(judged)
    found = [name for _, name, _ in pkgutil.iter_modules(cdfsg.__path__)]
    battery = checksums.read_record(RECORDS / "battery.csv", "make bench")
    torture = checksums.read_record(RECORDS / "torture.csv", "make torture")
    torture[["group", "case"]] = torture["case"].str.split(": ", n=1, expand=True)
    context = {
        "judged": judged, "printed": printed, "tolerances": tolerances(),
        "links": {row.name: f"[{row.title}]({row.page}.md)" for row in printed.itertuples(index=False)},
        "claims": list(claims.read().itertuples()), "tests": {claim["id"]: claim for claim in claims.load_claims()},
        "TESTS": vars(claims), "statements": list(statements.recorded().values()), "known": statements.STATEMENTS,
        "errata": statements.errata(), "signs": SIGNS, "battery": list(battery.itertuples()),
        "torture": torture, "sections": pages.sections(printed.set_index("name")["title"].to_dict()),
        "files": pages.files(), "notebooks": _write_notebooks(source),
        "modules": [f"cdfsg.{name}" for name in (*FIRST, *(name for name in found if name not in FIRST + LEFT_OUT))],
    }  # fmt: skip
    texts = {
        **pages.render_all("site", **context),
        **{f"generated/{name}": _of_readme(name) for name in ("answer", "endpoints")},
        "report": (ROOT / "REPORT.md").read_text(encoding="utf-8"),
        "questions": f"# Questions to the authors\n\n{summaries.questions(level=2)}",
        **{row.page: pages.table_page(judged[judged["table"] == row.Index], row.title) for row in printed.itertuples()},
    }
    for name, text in texts.items():
        write_atomically(source / f"{name}.md", f"{text}\n")


def _of_readme(name: str) -> str:
    """A part of the README for a page: the picture in the middle, with a link to it alone; the report as a page."""
    text = summaries.readme_part(name)[1].replace("](REPORT.md", "](report.md")
    return re.sub(r"!\[(.*)\]\((.*)\)", r"```{image} \2\n:alt: \1\n:width: 100%\n:align: center\n```", text)


def _mathjax() -> Path:
    """MathJax, from the wheel that carries it."""
    try:
        return Path(str(distribution(_MATHJAX).locate_file(f"{_MATHJAX}/static/mathjax/tex-svg-full.js")))
    except PackageNotFoundError as error:
        raise FileNotFoundError(f"{_MATHJAX} is not installed; make setup, or pip install 'cdfsg[report]'") from error


def _write_notebooks(source: Path) -> list[tuple[str, str, list[str]]]:
    """Copy the notebooks, each above its instances; returns their names, introductions and instances."""
    listed = []
    for name in notebooks.names():
        notebook = notebooks.read(NOTEBOOKS / f"{name}.ipynb")
        instances = [path.stem for path in sorted(notebooks.INSTANCES.glob(f"{name}-*.ipynb"))]
        for stem in instances:
            instance = notebooks.read(notebooks.INSTANCES / f"{stem}.ipynb")
            title, _, rest = instance.cells[0].source.partition("\n")
            instance.cells[0].source = f"{title} ({stem.removeprefix(f'{name}-')})\n{rest}"
            _write(source / "notebooks" / "instances" / f"{stem}.ipynb", instance)
        if instances:
            entries = "\n".join(f"{stem.removeprefix(f'{name}-')} <instances/{stem}>" for stem in instances)
            text = f"## The same for other experiments\n\n```{{toctree}}\n:maxdepth: 1\n\n{entries}\n```"
            notebook.cells.append(nbformat.v4.new_markdown_cell(text))
        _write(source / "notebooks" / f"{name}.ipynb", notebook)
        listed.append((name, notebook.cells[0].source.split("\n\n")[1], instances))
    return listed


def _write(path: Path, notebook: nbformat.NotebookNode) -> None:
    """Write a notebook for readers: imports folded, on cost and speed all code, and every picture with words."""
    said, folds_all = "", path.stem.startswith(FOLDED)
    if folds_all:
        end = next((k for k, cell in enumerate(notebook.cells) if cell.source.startswith("## Conclusion")), 1)
        notebook.cells[1:] = notebook.cells[end:] + notebook.cells[1:end]
    for cell in notebook.cells:
        if cell.cell_type != "code":
            said = cell.source.rpartition("\n\n")[2].replace("\n", " ")
            continue
        shown = re.search(r'figures\.show\(.*?f?"(?:\{name\}-)?([\w-]+)"', cell.source, re.DOTALL)
        if shown and shown[1] == "identity-line":  # the picture of links to the report
            write_atomically(path.parents[1] / "_static/card.png", b64decode(cell.outputs[0].data["image/png"]))
        cell.metadata["mystnb"] = {"image": {"alt": pages.caption_of(shown[1]) if shown else said}}
        if folds_all or "%matplotlib" in cell.source:
            cell.metadata["tags"] = [*cell.metadata.get("tags", []), "hide-input"]
    write_atomically(path, nbformat.writes(notebook) + "\n")
