"""Arrays out of a pickle, of which nothing else is admitted, as a pickle can otherwise run any code."""

import io
import pickle
from typing import Any

import numpy as np


def arrays(pickled: bytes) -> Any:
    """Lists, tuples, dictionaries, strings and numbers of a pickle of Python 2, with the numpy arrays in them.

    It raises UnpicklingError if it asks for anything else; a damaged pickle can raise nearly anything.
    """
    return _ArrayUnpickler(io.BytesIO(pickled), encoding="latin1").load()


class _ArrayUnpickler(pickle._Unpickler):
    """The unpickler written in Python; the other makes room for any number of objects that a pickle states."""

    _ADMITTED = {
        # What arrays themselves name.  One of any shape will do, as it gets its own with its content, and there is no
        # room to be made for the shape that stands here; the class is but an argument, and cannot be called.
        ("numpy.core.multiarray", "_reconstruct"): lambda *_: np.empty(0),
        ("numpy", "ndarray"): None,
        ("numpy", "dtype"): np.dtype,
    }
    # Room for a bytearray is made before it is read; Python 2 wrote none.
    dispatch = {code: load for code, load in pickle._Unpickler.dispatch.items() if code != pickle.BYTEARRAY8[0]}

    def find_class(self, module: str, name: str) -> Any:
        try:
            return self._ADMITTED[module, name]
        except KeyError:
            raise pickle.UnpicklingError(
                f"the pickle asks for {module}.{name}: expected nothing but numpy arrays"
            ) from None
