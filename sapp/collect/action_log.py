"""The actions of an online run: with the seed they determine all that was played, frames and log and ring."""

from __future__ import annotations

import os
import zlib
from pathlib import Path
from types import TracebackType

import numpy as np
import numpy.typing as npt

from sapp.core.errors import SappError
from sapp.core.files import write_aside

_KIND = np.dtype("<i4")


class ActionLog:
    """A file of the actions of every round, one number per environment; a few hundred bytes per round.

    An emulator's state is not saved: it is a function of the seed and of these. So a run that was killed plays them
    again, learns nothing meanwhile, and goes on from its checkpoint to the same bits.

    Args:
        path: the file.
        rows: environments.
        rounds: that are known to be whole; what was written after them is dropped.
        checksum: of these, as ``sync`` gave it.
    """

    def __init__(self, path: Path, rows: int, rounds: int = 0, checksum: int = 0) -> None:
        self.path = path
        content = b""
        if rounds:
            try:
                with path.open("rb") as file:
                    content = file.read(rounds * rows * _KIND.itemsize)
            except OSError as error:
                raise SappError(f"{path}: cannot read ({error.strerror}); the run cannot go on without it") from None
            if len(content) != rounds * rows * _KIND.itemsize or zlib.crc32(content) != checksum:
                raise SappError(f"{path}: is not what its checkpoint was made with; restore it or start anew")
        self.past: npt.NDArray[np.int32] = np.frombuffer(content, _KIND).reshape(rounds, rows)
        self._checksum = zlib.crc32(content)

        def write(aside: Path) -> None:
            aside.write_bytes(content)

        write_aside(path, write)
        try:
            self._file = os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)), "wb")
        except OSError as error:
            raise SappError(f"{path}: cannot write ({error.strerror}); make the folder writable") from None

    def add(self, action: npt.NDArray[np.integer]) -> None:
        """The actions of one more round."""
        content = action.astype(_KIND).tobytes()
        self._checksum = zlib.crc32(content, self._checksum)
        try:
            self._file.write(content)
        except OSError as error:
            raise SappError(f"{self.path}: cannot write ({error.strerror}); the run can be resumed") from None

    def sync(self) -> int:
        """Bring what was added to the disk; returns the checksum of all of it."""
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise SappError(f"{self.path}: cannot write ({error.strerror}); the run can be resumed") from None
        return self._checksum

    def __enter__(self) -> ActionLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._file.close()
        except OSError:
            if kind is None:
                raise
