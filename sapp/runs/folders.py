"""The folder of a run: locked before anything is written, and cleared of what a failed start left."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import re
import shutil
import time
from collections.abc import Collection, Iterator
from pathlib import Path

from sapp.core import locks
from sapp.core.errors import Interrupted, SappError
from sapp.core.files import remove_leftovers

CONFIG, CHECKPOINTS, METRICS, EVALUATIONS, EVENTS, DATA = (
    "config.json", "checkpoints", "metrics.csv", "evaluations.csv", "events.csv", "data",
)  # fmt: skip
BEST, CSV_LOG, BOARD, WANDB, MLFLOW, HUB = "best", "log.csv", "tensorboard", "wandb", "mlflow", "hub"
"""What hooks write."""
LOCK = ".lock"
"""The file that whoever writes to the folder holds."""
ENTRIES = (
    CONFIG, CHECKPOINTS, METRICS, EVALUATIONS, EVENTS, DATA, BEST, CSV_LOG, BOARD, WANDB, MLFLOW, HUB,
)  # fmt: skip
"""What training puts into its folder."""


def locked(folder: Path) -> contextlib.AbstractContextManager[None]:
    """One process at a time may write to a run; the lock dies with its process.

    A folder with links in it is refused: what they lead to is not the run's to write.
    """
    refuse_links(folder)
    return locks.locked(folder / LOCK, f"{folder}: another process is training this run; wait for it or stop it")


def refuse_links(folder: Path) -> None:
    """Refuse to write to a folder with links in it; it may be one itself, where the user names it."""
    with contextlib.suppress(OSError):
        for each in folder.iterdir():
            if each.is_symlink():
                raise SappError(f"{each}: is a link, and a run is written through none; put there what it leads to")


@contextlib.contextmanager
def claimed(out: str | Path | None, stem: str, entries: Collection[str] = ENTRIES) -> Iterator[Path]:
    """The folder for a new run, locked: nobody else writes to it, and a failed start leaves nothing of itself there.

    Args:
        out: the folder; by default ``runs/<stem>-<time>``.
        stem: what begins the name of a folder that is chosen here.
        entries: names of what will be written; only these are removed again, and only if they were not there before.
    """
    folder = new_folder(stem) if out is None else Path(out)
    made = out is None or _make(folder)
    new = not (folder / LOCK).exists()
    with locked(folder):
        try:
            with discard_on_failure(folder, entries):
                yield folder
        finally:
            if new and not (folder / CONFIG).exists():
                # Last, and while it is held: whoever opened it meanwhile is refused, and a folder that has a new one
                # of somebody else's is not empty. (Windows deletes no file that is held; it stays there.)
                with contextlib.suppress(OSError):
                    (folder / LOCK).unlink()
                    if made:
                        folder.rmdir()


def _make(folder: Path) -> bool:
    """Whether this process made the folder; another one may be making it, too."""
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        return False
    except OSError as error:
        raise SappError(f"{folder}: cannot make the run folder ({error.strerror}); choose another --out") from None
    return True


def check_place(folder: Path) -> None:
    """Refuse a place where no folder can be made, without making one."""
    near = next((each for each in (folder, *folder.absolute().parents) if each.exists()), folder)
    if not near.is_dir() or not os.access(near, os.W_OK):
        why = f"cannot be written to: {_unwritable(near)}" if near.is_dir() else "is not a folder"
        raise SappError(f"{folder}: cannot make the run folder ({near} {why}); choose another --out")


def _unwritable(folder: Path) -> str:
    """Why nothing can be written there, in the system's words."""
    fixed = hasattr(os, "statvfs") and os.statvfs(folder).f_flag & os.ST_RDONLY
    return os.strerror(errno.EROFS if fixed else errno.EACCES)


def new_folder(stem: str) -> Path:
    """Make ``runs/<stem>-<time>``, or with -2, -3, … after it where another run began in the same second."""
    first = Path("runs") / f"{stem}-{time.strftime('%Y%m%d-%H%M%S')}"
    for number in itertools.count(1):
        folder = first if number == 1 else first.with_name(f"{first.name}-{number}")
        if _make(folder):
            return folder
    raise AssertionError("counting has no end")


def checkpoint_files(folder: Path) -> dict[int, Path]:
    """Checkpoints in a run folder by step, oldest first; a folder that cannot be listed is not an empty one."""
    place = folder / CHECKPOINTS
    try:
        found = [each.name for each in place.iterdir()]
    except OSError as error:
        raise SappError(f"{place}: cannot list the checkpoints ({error.strerror}); make the folder readable") from None
    files = sorted(place / name for name in found if re.fullmatch(r"[0-9]{1,18}\.safetensors", name))
    return {int(file.stem): file for file in files}


@contextlib.contextmanager
def discard_on_failure(folder: Path, entries: Collection[str] = ENTRIES) -> Iterator[None]:
    """Leave a run that can go on or nothing: what a failed start wrote is removed, what was there before stays.

    The folder must be locked: what appears under these names is then this process's own.
    """
    before = {name for name in entries if (folder / name).exists()}
    try:
        yield
    except BaseException as error:
        if not _can_go_on(folder, error):
            remove_leftovers(folder)
            for name in set(entries) - before:
                shutil.rmtree(folder / name, ignore_errors=True)
                with contextlib.suppress(OSError):
                    (folder / name).unlink(missing_ok=True)
        raise


def _can_go_on(folder: Path, error: BaseException) -> bool:
    """Whether a run that stopped with an error is worth keeping: it was interrupted, or has learned something."""
    if not (folder / CONFIG).exists():
        return False
    return isinstance(error, Interrupted | KeyboardInterrupt) or any(checkpoint_files(folder))
