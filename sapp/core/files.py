"""Writing files so that a reader never sees half of one."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from sapp.core.errors import SappError

_SUFFIX = ".tmp"
_LEFTOVERS = (f".*{_SUFFIX}", ".tmp??????")
"""Names of half-written files and folders: ours, and those that safetensors writes aside of its own accord."""


def remove_leftovers(folder: Path) -> None:
    """Delete what a killed process left half-written in a folder; nobody else may be writing there."""
    for pattern in _LEFTOVERS:
        for leftover in folder.glob(pattern):
            if leftover.is_dir():  # of frames
                shutil.rmtree(leftover, ignore_errors=True)
            else:
                leftover.unlink(missing_ok=True)


def write_aside(path: Path, write: Callable[[Path], None]) -> None:
    """Let ``write`` fill a temporary file beside ``path``, flush it to disk, then rename it into place."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}{_SUFFIX}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(temporary)
        with open(temporary, "rb") as handle:
            os.fsync(handle.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise SappError(
            f"{path}: cannot write ({error.strerror or error}); free some space or choose another folder"
        ) from None
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file aside and rename it."""

    def write(temporary: Path) -> None:
        temporary.write_text(text, encoding="utf-8")

    write_aside(path, write)
