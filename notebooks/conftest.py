"""What ``pytest --nbval`` compares when it runs the notebooks again.

Printed text, tables and values must come out exactly as stored. Left out are the error stream, where
libraries put warnings and progress, pictures, whose bytes depend on the drawing libraries' builds, and the identifier
of a live widget, which no stored notebook has.
"""

import pytest

NOT_COMPARED = ("stderr", "image/png", "image/jpeg", "image/svg+xml", "application/pdf",
                "application/vnd.jupyter.widget-view+json")  # fmt: skip


def pytest_collectstart(collector: pytest.Collector) -> None:
    """Add to what nbval leaves out of the comparison in each notebook it collects."""
    if collector.path.suffix == ".ipynb" and hasattr(collector, "skip_compare"):
        collector.skip_compare += NOT_COMPARED
