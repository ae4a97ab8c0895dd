"""The notebooks as they lie in the repository; `make test` also runs them again and compares their outputs."""

import re
import shutil

import pytest

from cdfsg import __main__ as cli
from cdfsg.files import NOTEBOOKS, ROOT
from cdfsg.paper.report import notebooks
from cdfsg.paper.results import claims, verdicts

NAMES = [*notebooks.names(), *sorted(f"instances/{path.stem}" for path in notebooks.INSTANCES.glob("*.ipynb"))]


def stored(name):
    return [cell for cell in notebooks.read(NOTEBOOKS / f"{name}.ipynb").cells if cell.cell_type == "code"]


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_has_been_run_ends_with_a_check_and_keeps_no_trace_of_the_machine(name):
    cells = stored(name)
    outputs = [out for cell in cells for out in cell.outputs]
    assert all(cell.execution_count for cell in cells)
    assert "error" not in {out.output_type for out in outputs}
    assert cells[0].source.startswith("%matplotlib inline\n")
    assert any("image/png" in out.get("data", {}) for out in outputs)
    assert re.search(r"^( *assert |(summaries|cost)\.check|    raise AssertionError)", cells[-1].source, re.MULTILINE)
    texts = "".join(out.get("text", "") for out in outputs)
    assert str(ROOT) not in texts and not re.search(r"0x[0-9a-f]{6}", texts)


def test_the_readme_and_the_report_are_those_of_the_published_records(tmp_path, monkeypatch, everywhere):
    shutil.copy(ROOT / "README.md", tmp_path)
    everywhere(ROOT=tmp_path)
    monkeypatch.setattr(verdicts, "write", verdicts.read)
    monkeypatch.setattr(claims, "write", claims.ledger)
    cli._verdict(None)
    for name in ("README.md", "REPORT.md"):
        assert (tmp_path / name).read_text(encoding="utf-8") == (ROOT / name).read_text(encoding="utf-8")


def test_the_published_verdicts_read_back_with_numbers_where_numbers_are():
    table = verdicts.read()
    kinds = {name: table[name].dtype.kind for name in ("reported", "reproduced", "std", "low", "high", "tolerance")}
    assert set(kinds.values()) == {"f"} and not table["flag"].isna().any()
