"""Memory of the process."""

from __future__ import annotations

import contextlib
import ctypes
import sys


def give_back() -> None:
    """Return freed memory to the system.

    Compiling a program takes much memory for a short time; glibc would keep it for as long as the process lives.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # another C library
            ctypes.CDLL(None).malloc_trim(0)
