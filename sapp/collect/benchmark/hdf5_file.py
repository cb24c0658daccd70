"""Writing HDF5 to a disk that may be full: the library loses such errors when it closes a file, or crashes."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class _Told:
    """A file that takes everything, as HDF5 wants it, and remembers the first thing that went wrong."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("xb+", buffering=0)
        self.error: OSError | None = None

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def readinto(self, content: Any) -> int:
        return self._file.readinto(content) or 0

    def read(self, size: int = -1) -> bytes:
        return self._file.read(size) or b""

    def write(self, content: Any) -> int:
        rest = memoryview(content).cast("B")
        size = len(rest)
        while rest and self.error is None:
            with self._kept():
                rest = rest[self._file.write(rest) :]
        return size

    def truncate(self, size: int | None = None) -> int:
        with self._kept():
            self._file.truncate(size)
        return size or 0

    def flush(self) -> None:
        """Nothing is buffered here."""

    def close(self) -> None:
        """Bring it to the disk."""
        with self._kept():
            os.fsync(self._file.fileno())
        self._file.close()

    @contextlib.contextmanager
    def _kept(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.error = self.error or error


@contextlib.contextmanager
def new_hdf5(path: Path) -> Iterator[tuple[Any, Any]]:
    """A new HDF5 file, and what raises if anything so far could not be written; at the end the file is on the disk."""
    import h5py

    told = _Told(path)

    def check() -> None:
        if told.error is not None:
            raise told.error

    try:
        # the latest layout of HDF5 is a third smaller with many small groups
        with h5py.File(told, "w", libver="latest") as file:
            yield file, check
    finally:
        told.close()
    check()
