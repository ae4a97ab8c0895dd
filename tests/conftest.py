import pytest


def pytest_addoption(parser):
    parser.addoption("--torture", action="store_true", help="run the torture tests that take long, too")


@pytest.fixture(scope="session", autouse=True)
def same_data_everywhere():
    """No test fetches Mediamill or depends on files that somebody has at hand."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CDFSG_MEDIAMILL", "surrogate")
        patch.delenv("CDFSG_NMNIST_DIR", raising=False)
        yield
