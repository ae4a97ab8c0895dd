"""The notebooks as they lie in the repository; `make test` also runs them again and compares their outputs."""

import re

import pytest

from cdfsg.files import NOTEBOOKS, ROOT
from cdfsg.paper.report import notebooks, summaries
from cdfsg.paper.results import claims, reasons, verdicts
from cdfsg.theory import statements

NAMES = [*notebooks.names(), *sorted(f"instances/{path.stem}" for path in notebooks.INSTANCES.glob("*.ipynb"))]


def stored(name):
    return [cell for cell in notebooks.read(NOTEBOOKS / f"{name}.ipynb").cells if cell.cell_type == "code"]


@pytest.mark.parametrize("name", NAMES)
def test_every_code_cell_has_been_run(name):
    cells = stored(name)
    assert all(cell.execution_count for cell in cells)
    assert not [out for cell in cells for out in cell.outputs if out.output_type == "error"]


@pytest.mark.parametrize("name", NAMES)
def test_pictures_are_drawn_inside_whatever_the_environment_says(name):
    cells = stored(name)
    assert cells[0].source.startswith("%matplotlib inline\n")
    assert any("image/png" in out.get("data", {}) for cell in cells for out in cell.outputs)


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_ends_with_a_check_that_raises(name):
    cells = stored(name)
    assert re.search(r"^( *assert |(summaries|cost)\.check|    raise AssertionError)", cells[-1].source, re.MULTILINE)


@pytest.mark.parametrize("name", NAMES)
def test_no_trace_of_the_machine_is_stored(name):
    texts = "".join(out.get("text", "") for cell in stored(name) for out in cell.outputs)
    assert str(ROOT) not in texts and not re.search(r"0x[0-9a-f]{6}", texts)


def test_the_tables_in_the_readme_are_those_of_the_published_records(tmp_path, monkeypatch):
    copy = tmp_path / "README.md"
    copy.write_text((ROOT / "README.md").read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(summaries, "ROOT", tmp_path)
    monkeypatch.setattr(summaries, "write_atomically", lambda path, text: copy.write_text(text, encoding="utf-8"))
    summaries.write_into_readme("numbers", summaries.overview(verdicts.read()))
    summaries.write_into_readme("reasons", summaries.reasons_in_short(reasons.read(), verdicts.read()))
    summaries.write_into_readme("claims", summaries.claims_table(claims.ledger()))
    summaries.write_into_readme("theory", summaries.theory(statements.recorded().values()))
    assert copy.read_text(encoding="utf-8") == (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_published_verdicts_read_back_with_numbers_where_numbers_are():
    table = verdicts.read()
    kinds = {name: table[name].dtype.kind for name in ("reported", "reproduced", "std", "tolerance")}
    assert set(kinds.values()) == {"f"} and not table["flag"].isna().any()
