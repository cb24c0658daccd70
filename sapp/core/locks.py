"""Locks that die with their process: one process at a time writes a run, a store or a dataset."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from sapp.core.errors import SappError


@contextlib.contextmanager
def locked(path: Path, held: str, wait: float = 0.0) -> Iterator[None]:
    """Hold a lock file, or refuse with one line where another process holds it.

    The file is never truncated or followed where it is a link, and stays behind when the lock is let go: deleting it
    would let two processes lock two files of one name.

    Args:
        path: the lock file; its folder must be there.
        held: what to say where another process holds it.
        wait: seconds for it to let go.
    """
    from filelock import FileLock, Timeout  # not at start-up: most commands lock nothing

    lock = FileLock(path)
    try:
        lock.acquire(timeout=wait)
    except Timeout:
        if not path.exists():  # a folder that takes no file looks like a lock that is held
            raise SappError(f"{path.parent}: cannot write there; make the folder writable") from None
        raise SappError(held) from None
    except OSError as error:
        raise SappError(f"{path}: cannot lock it ({error.strerror}); make the folder writable") from None
    try:
        yield
    finally:
        lock.release()
