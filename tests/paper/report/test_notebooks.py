import base64
import io
import os

import nbformat
import papermill
import pytest
from PIL import Image, ImageDraw

from cdfsg.files import NOTEBOOKS, Damaged
from cdfsg.paper.report import notebooks
from cdfsg.paper.report.notebooks import execute, names, scrub

CELLS = """
import sys
print("to", "stderr", file=sys.stderr)
print(f"{word} {sys.version_info.major}")
assert word != "bad"
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of notebooks with one in it, `tale`, that has the parameters `word` and `count`."""
    monkeypatch.setattr(notebooks, "NOTEBOOKS", tmp_path)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    parameters = nbformat.v4.new_code_cell('word = "good"\ncount = 1', metadata={"tags": ["parameters"]})
    told = nbformat.v4.new_code_cell(CELLS.strip(), metadata={"scrolled": True})
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# A tale"), parameters, told])
    notebook.metadata["kernelspec"] = {"display_name": "Mine", "language": "python", "name": "python3"}
    nbformat.write(notebook, tmp_path / "tale.ipynb")
    return tmp_path


def printed(path):
    cells = nbformat.read(path, as_version=4).cells
    return [out["text"] for cell in cells if cell.cell_type == "code" for out in cell.outputs]


def left(folder):
    return sorted(path.name for path in folder.glob("*.ipynb*"))


def test_the_notebooks_are_listed_in_their_order_without_those_that_a_killed_execution_left(folder):
    for name in ("00_start.ipynb", "00_startab12.ipynb.tmp", "conftest.py"):
        (folder / name).touch()
    assert names() == ["00_start", "tale"]


def test_executed_twice_in_place_a_notebook_has_its_results_and_the_same_bytes(folder):
    path = folder / "tale.ipynb"
    assert execute("tale") == path and printed(path) == ["good 3\n"]
    first = path.read_bytes()
    execute("tale")
    assert path.read_bytes() == first and left(folder) == ["tale.ipynb"]
    assert path.stat().st_mode & 0o777 == 0o644
    for trace in (str(folder), "papermill", "duration", '"execution":', "to stderr", "scrolled"):
        assert trace not in first.decode(), trace


def test_parameters_take_effect_and_a_cell_that_fails_leaves_the_old_output_as_it_was(folder):
    before = (folder / "tale.ipynb").read_bytes()
    output = folder / "new" / "out.ipynb"
    assert execute("tale", {"word": "other"}, output) == output and printed(output) == ["other 3\n"]
    first = output.read_bytes()
    with pytest.raises(papermill.PapermillExecutionError, match="AssertionError"):
        execute("tale", {"word": "bad"}, output)
    assert output.read_bytes() == first and os.listdir(output.parent) == ["out.ipynb"]
    assert (folder / "tale.ipynb").read_bytes() == before


@pytest.mark.parametrize("name, value", [("datset", "nmnist"), ("alpha", 0.5), ("p", 5)])
def test_a_parameter_that_a_notebook_does_not_have_is_refused_also_by_plain_papermill(name, value):
    known = {"dataset": "mnist", "merit": "identity", "find": print, "_ih": [], "__name__": "__main__"}
    notebooks.require_parameters(known, "dataset", "merit", "profile")
    with pytest.raises(ValueError, match=f"no parameter {name}; the parameters are dataset, merit, profile"):
        notebooks.require_parameters({**known, name: value}, "dataset", "merit", "profile")


@pytest.mark.parametrize("name", notebooks.OF_EXPERIMENTS)
def test_a_notebook_with_parameters_checks_them_first(name):
    cells = notebooks.read(NOTEBOOKS / f"{name}.ipynb").cells
    (place,) = [k for k, cell in enumerate(cells) if "parameters" in cell.metadata.get("tags", [])]
    first, second, *_ = cells[place + 1].source.splitlines()
    assert first == 'require_parameters(globals(), "dataset", "merit", "profile")'
    assert second == "experiment = find(dataset, merit, profile)"
    for dataset in ("mnist", "digits"):  # the allowed values stand above
        assert dataset in cells[place - 1].source


def test_scrubbing_keeps_sources_tags_and_results(folder):
    notebook = nbformat.read(folder / "tale.ipynb", as_version=4)
    outputs = [nbformat.v4.new_output("stream", name="stdout", text=text) for text in ("one", "\n", "two\n", "three")]
    outputs.insert(3, nbformat.v4.new_output("execute_result", data={"text/plain": "1"}))
    outputs.insert(2, nbformat.v4.new_output("stream", name="stderr", text="/home/someone: warning"))
    notebook.cells[2].outputs = outputs
    notebook.metadata["papermill"] = {"duration": 1.5}
    clean = scrub(nbformat.from_dict(notebook))
    nbformat.validate(clean)
    assert [cell.source for cell in clean.cells] == ["# A tale", 'word = "good"\ncount = 1', CELLS.strip()]
    assert [dict(cell.metadata) for cell in clean.cells] == [{}, {"tags": ["parameters"]}, {}]
    # Printed text is in one piece wherever the kernel cut it.
    assert [out.get("text", "result") for out in clean.cells[2].outputs] == ["one\ntwo\n", "result", "three"]
    assert list(clean.metadata) == ["kernelspec", "language_info"] and clean.cells[0].id == "cell-0"


@pytest.mark.parametrize("shift, level, same", [(0, 0, True), (0, 30, True), (0, 60, False), (1, 0, False)])
def test_a_stored_picture_gives_way_only_to_one_that_looks_different(tmp_path, shift, level, same):
    def saved(shift, level):
        picture, buffer = Image.new("RGB", (60, 40), "white"), io.BytesIO()
        ImageDraw.Draw(picture).line((5 + shift, 5, 50 + shift, 30), fill=(level, 100, 200))
        picture.save(buffer, "PNG")
        data = {"image/png": base64.b64encode(buffer.getvalue()).decode()}
        cell = nbformat.v4.new_code_cell("plot", outputs=[nbformat.v4.new_output("display_data", data=data)])
        return nbformat.v4.new_notebook(cells=[cell])

    stored = [saved(0, 0), saved(shift, level)]
    for notebook in stored:
        notebooks._settle_pictures(notebook, tmp_path / "x.ipynb")
        nbformat.write(notebook, tmp_path / "x.ipynb")
    first, second = (notebook.cells[0].outputs[0].data["image/png"] for notebook in stored)
    assert (first == second) == same
    assert Image.open(io.BytesIO(base64.b64decode(first))).mode == "P"


@pytest.mark.parametrize("name", ["00_start", "70_explore"])
def test_a_notebook_that_jupyterlab_saved_is_read_as_the_one_that_was_stored(name, tmp_path):
    path = NOTEBOOKS / f"{name}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    notebook.metadata["language_info"] = {"name": "python", "version": "3.14.0"}
    notebook.metadata["widgets"] = {"application/vnd.jupyter.widget-state+json": {"state": {}}}
    for cell in notebook.cells:
        cell.metadata["execution"] = {"iopub.execute_input": "2025-01-01T00:00:00Z"}
        for out in cell.get("outputs", []):
            if "data" in out:
                out.data[notebooks.WIDGET] = {"model_id": "abc"}
    saved = tmp_path / path.name
    nbformat.write(notebook, saved)
    assert saved.read_bytes() != path.read_bytes()
    assert notebooks.read(saved) == notebooks.read(path)


@pytest.mark.parametrize("text", ["{}", "[]", "{", '{"nbformat": 4, "nbformat_minor": 5, "cells": [CELL]}'])
def test_a_file_that_is_no_notebook_is_refused_with_the_way_back(folder, text):
    (folder / "tale.ipynb").write_text(text.replace("CELL", '{"cell_type": "code", "source": "", "metadata": {}}'))
    with pytest.raises(Damaged, match=r"tale\.ipynb is no notebook.*git checkout"):
        notebooks.read(folder / "tale.ipynb")
