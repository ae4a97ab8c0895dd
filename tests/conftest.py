import pytest


@pytest.fixture(scope="session", autouse=True)
def same_data_everywhere():
    """No test depends on files that somebody has at hand."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CDFSG_NMNIST_DIR", raising=False)
        yield
