"""The 8 x 8 digits bundled with scikit-learn, each split into its left and right half."""

import numpy as np

from cdfsg.datasets.download import sha256
from cdfsg.datasets.mnist import halves
from cdfsg.datasets.views import Provenance, Views

# Of the 1797 x 8 x 8 pixels as bytes, in scikit-learn's order.
CHECKSUM = "sha256:8f26b2bd9d135c256808f68f14fdabddde6d9c7f869ae419704b051f0f14b3b3"


def load_digits() -> Views:
    """Handwritten digits of scikit-learn as two views: the left and the right 4 columns.

    1,797 x (32 + 32) uint8, scale 1/16 to [0, 1], centred; each view lists its 8 x 4 pixels row by row.
    Source: the test part of E. Alpaydin, C. Kaynak, Optical Recognition of Handwritten Digits, UCI
    Machine Learning Repository.
    """
    from sklearn import datasets  # a second to load, which other data sets need not pay

    images = datasets.load_digits().images.astype(np.uint8)
    if (found := sha256(images.tobytes())) != CHECKSUM:
        changed = f"scikit-learn's digits have changed: {found}, expected {CHECKSUM}"
        raise ValueError(f"{changed}; use another version")
    provenance = Provenance("scikit-learn's bundled digits (sklearn.datasets)", CHECKSUM, "original")
    return Views("digits", halves(images), (32, 32), 1 / 16, centred=True, provenance=provenance)
