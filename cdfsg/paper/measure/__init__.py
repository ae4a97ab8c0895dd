"""What is measured besides runs: the cost of a step, the data sets."""

from pathlib import Path

import pandas as pd

from cdfsg import checksums


def read_record(path: Path) -> pd.DataFrame:
    """A table that ``python -m cdfsg run`` writes."""
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing; make it with: python -m cdfsg run")
    return checksums.read_csv(path, "make it anew with: python -m cdfsg run")
