"""Arrays out of a pickle; nothing else is admitted, as a pickle can run any code."""

import io
import pickle
from typing import Any

import numpy as np


def arrays(pickled: bytes) -> Any:
    """Lists, tuples, dictionaries, strings and numbers of a pickle of Python 2, with the numpy arrays in them.

    UnpicklingError if it asks for anything else; a damaged pickle can raise nearly anything.
    """
    return _ArrayUnpickler(io.BytesIO(pickled), encoding="latin1").load()


def _build(unpickler: Any) -> None:
    """Give an object its state; a type with other flags would make numpy take numbers for addresses."""
    kind, state = unpickler.stack[-2:]
    if isinstance(kind, np.dtype) and state[2:] != (None, None, None, -1, -1, 0):
        raise pickle.UnpicklingError(f"the pickle has a type of state {state}: expected that of plain numbers")
    pickle._Unpickler.dispatch[pickle.BUILD[0]](unpickler)


class _ArrayUnpickler(pickle._Unpickler):
    """The unpickler written in Python; that in C makes room for any number of objects that a pickle states."""

    _ADMITTED = {
        # An array gets its shape with its content; the class is only an argument, and cannot be called.
        ("numpy.core.multiarray", "_reconstruct"): lambda *_: np.empty(0),
        ("numpy", "ndarray"): None,
        ("numpy", "dtype"): np.dtype,
    }
    dispatch = pickle._Unpickler.dispatch | {pickle.BUILD[0]: _build}
    del dispatch[pickle.BYTEARRAY8[0]]  # room for a bytearray is made before it is read; Python 2 wrote none

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self._ADMITTED:
            raise pickle.UnpicklingError(f"the pickle asks for {module}.{name}: expected nothing but numpy arrays")
        return self._ADMITTED[module, name]
