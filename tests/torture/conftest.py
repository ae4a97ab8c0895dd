"""What every torture test has: the case it belongs to, how often it was tried, and how often that went well.

A test names its case by ``pytest.mark.case("...")``.  One that tries something many times counts it in `tally`; any
other counts as one.  Tests marked ``torture`` take long and run with ``--torture`` alone, which `make torture` gives.
What cannot be tried on a machine, as a mount by somebody who may not, is in the table as tried less often.
"""

import pandas as pd
import pytest

from cdfsg import checksums
from cdfsg.files import RECORDS


@pytest.fixture
def tally(record_property):
    """Return a function that counts a try for the table; the test fails by itself where one did not go well."""
    tried = survived = 0

    def count(well):
        nonlocal tried, survived
        tried, survived = tried + 1, survived + bool(well)
        record_property("tried", tried)
        record_property("survived", survived)

    yield count
    assert tried and survived == tried, f"{survived} of {tried} went well"


@pytest.fixture(autouse=True)
def named(case):
    """A torture test names its case."""
    assert case is not None, "name a case: pytest.mark.case('group: words')"


def pytest_collection_modifyitems(config, items):
    """Leave out what takes long, unless it is asked for."""
    if not config.getoption("--torture"):
        for item in items:
            if item.get_closest_marker("torture"):
                item.add_marker(pytest.mark.skip(reason="takes long; make torture runs it"))


def pytest_terminal_summary(terminalreporter, exitstatus, config):
    """Print the table of cases, and keep that of a whole run."""
    kinds = ("passed", "failed", "error", "skipped")
    rows = [row for kind in kinds for row in _rows(terminalreporter.stats.get(kind, []), kind)]
    if not rows:
        return
    table = pd.DataFrame(rows, columns=["case", "tried", "survived"]).groupby("case", sort=True).sum().reset_index()
    terminalreporter.section("torture")
    terminalreporter.write_line(table.to_string(index=False))
    whole = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
    if config.getoption("--publish") and whole:
        checksums.write(RECORDS / "torture.csv", table.to_csv(index=False, lineterminator="\n"))


def _rows(reports, kind):
    for report in reports:
        known = dict(getattr(report, "user_properties", []))
        if "case" in known and report.when in ("call", "setup"):
            tried = 0 if kind == "skipped" else known.get("tried", 1)
            well = kind in ("passed", "skipped")
            yield known["case"], tried, min(known.get("survived", tried), tried if well else tried - 1)
