"""Freed memory goes back to the system."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

FREED = """
import ctypes, pathlib
from sapp.core.memory import give_back

def resident():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096

c = ctypes.CDLL(None)
c.malloc.restype, c.malloc.argtypes, c.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
blocks = [c.malloc(4000) for _ in range(50_000)]  # too small to be mapped apart
for block in blocks:
    ctypes.memset(block, 1, 4000)
for block in blocks[:-1]:  # the last one holds up the heap's end
    c.free(block)
before = resident()
give_back()
print(before - resident())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_what_was_freed_goes_back() -> None:
    found = subprocess.run([sys.executable, "-c", FREED], capture_output=True, text=True, check=True)
    assert int(found.stdout) > 150e6  # of 200 MB
