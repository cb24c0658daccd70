"""Small matrix products on one core.

NumPy's OpenBLAS spreads even small products over all cores, and its idle threads then spin for milliseconds, against
the simulator's own threads: on a busy machine of few cores a policy takes many times as long. One core is faster there.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np

_NAMES = ("scipy_openblas_{}_num_threads64_", "openblas_{}_num_threads64_", "openblas_{}_num_threads")


@cache
def _controls() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """OpenBLAS's own getter and setter, from the library that NumPy's wheel brings along; None with any other BLAS."""
    root = Path(np.__file__).parent
    for path in [*root.parent.glob("numpy.libs/*openblas*"), *root.glob(".dylibs/*openblas*")]:
        try:
            library = ctypes.CDLL(str(path))
        except OSError:
            continue
        for name in _NAMES:
            if hasattr(library, name.format("get")) and hasattr(library, name.format("set")):
                return getattr(library, name.format("get")), getattr(library, name.format("set"))
    return None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keeps NumPy's matrix products on the calling thread, where its BLAS can be told so; else changes nothing."""
    controls = _controls()
    if controls is None:
        yield
        return
    get, put = controls
    before = get()
    put(1)
    try:
        yield
    finally:
        put(before)
