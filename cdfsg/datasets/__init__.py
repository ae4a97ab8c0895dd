"""Multi-view data sets, found by name."""

from collections.abc import Callable

from cdfsg.datasets.digits import load_digits
from cdfsg.datasets.download import DownloadError, data_dir
from cdfsg.datasets.mediamill import load_mediamill
from cdfsg.datasets.mnist import load_mnist
from cdfsg.datasets.nmnist import load_nmnist
from cdfsg.datasets.synthetic import load_synthetic, make_views
from cdfsg.datasets.views import Provenance, Views

__all__ = [
    "DATASETS", "DownloadError", "Provenance", "Views", "data_dir", "load", "load_digits", "load_mediamill",
    "load_mnist", "load_nmnist", "load_synthetic", "make_views",
]  # fmt: skip

DATASETS: dict[str, Callable[[], Views]] = {
    "mnist": load_mnist,
    "nmnist": load_nmnist,
    "mediamill": load_mediamill,
    "digits": load_digits,
    "synthetic": load_synthetic,
}


def load(name: str) -> Views:
    """Load a data set of `DATASETS` by its name.

    >>> load("digits")
    Views('digits', 1797 x 64 uint8, views 32+32, scale 0.0625, centred, original)
    """
    if not isinstance(name, str) or name not in DATASETS:
        raise ValueError(f"dataset {name!r}: expected one of {', '.join(DATASETS)}")
    return DATASETS[name]()
