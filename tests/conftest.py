import pkgutil
from importlib import import_module

import numpy as np
import pytest

import cdfsg


def pytest_addoption(parser):
    parser.addoption("--torture", action="store_true", help="run the torture tests that take long, too")
    parser.addoption("--publish", action="store_true", help="keep the table of a whole torture run in data/records")


@pytest.fixture(scope="session", autouse=True)
def same_data_everywhere():
    """No test depends on files that somebody has at hand; the data sets are those that the suite fetches."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("CDFSG_MEDIAMILL", "CDFSG_NMNIST_DIR"):
            patch.delenv(name, raising=False)
        yield


@pytest.fixture(autouse=True)
def case(request, record_property):
    """The case in the table of `make torture` that a test belongs to, if it names one."""
    marker = request.node.get_closest_marker("case")
    if marker is not None:
        record_property("case", marker.args[0])
    return marker


@pytest.fixture
def everywhere(monkeypatch):
    """Return a function that gives constants of the package, as RECORDS, other values in all modules that have them."""

    def put(**values):
        for found in pkgutil.walk_packages(cdfsg.__path__, "cdfsg."):
            module = import_module(found.name)
            for name in values.keys() & vars(module).keys():
                monkeypatch.setattr(module, name, values[name])

    return put


@pytest.fixture
def numpy_raises():
    """Make numpy raise: code that computes with NaN or infinity on purpose must silence numpy at that place."""
    with np.errstate(all="raise"):
        yield
