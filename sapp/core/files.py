"""Writing files so that a reader never sees half of one, a power cut takes none back, and nobody's file is lost."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from sapp.core.errors import SappError, printable

_SUFFIX = ".tmp"
_LEFTOVERS = (f".*{_SUFFIX}", ".tmp??????")
"""Names of half-written files and folders: ours, and those that safetensors writes aside of its own accord."""
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_TRIES = 5
_LONGEST = 200
"""Bytes of a name that its temporary name takes over: file systems allow 255 in all."""
HEAD = 4096
"""How much of a file's beginning, and of its end, says what it is."""


def remove_leftovers(folder: Path) -> None:
    """Delete what a killed process left half-written in a folder; nobody else may be writing there.

    A folder that is a link belongs to whoever made what it leads to.
    """
    if folder.is_symlink():
        return
    for pattern in _LEFTOVERS:
        for leftover in folder.glob(pattern):
            if leftover.is_dir() and not leftover.is_symlink():  # of frames
                shutil.rmtree(leftover, ignore_errors=True)
            else:
                leftover.unlink(missing_ok=True)


def write_aside(path: Path, write: Callable[[Path], None], *, keep: bool = False) -> None:
    """Let ``write`` fill a temporary file beside ``path``, flush it to disk, then rename it into place.

    The temporary name cannot be foreseen and is opened as new, so that no link there is ever followed. What an earlier
    process that was killed left of the same file is deleted.

    Args:
        path: of the file.
        write: fills it.
        keep: leave a file that has appeared there meanwhile as it is.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_own_leftovers(path)
        with _held_new(path) as temporary:
            write(temporary)
            sync(temporary)
            if not keep or not _linked(temporary, path):
                os.replace(temporary, path)
        sync(path.parent)
    except OSError as error:
        raise SappError(f"{path}: cannot write ({error.strerror or error}); {_cure(error)}") from None


def _linked(temporary: Path, path: Path) -> bool:
    """Whether there is a file of this name now: this one, or one that was there before it."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        return True
    except (OSError, AttributeError):  # a disk without links
        return os.path.lexists(path)
    return True


def write_text(path: Path, text: str) -> None:
    """Write a text file aside and rename it."""

    try:
        content = text.encode()
    except UnicodeEncodeError as error:
        what = printable(text[max(0, error.start - 20) : error.end + 20])
        raise SappError(f"{path}: cannot hold '{what}', a name that is no text of UTF-8; rename it") from None

    def write(temporary: Path) -> None:
        temporary.write_bytes(content)

    write_aside(path, write)


def sync(path: Path) -> None:
    """Flush a file, or the names in a folder, to disk; where folders cannot be flushed (Windows) the file is enough."""
    folder = path.is_dir()
    if folder and os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY if folder or os.name != "nt" else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def check_replaceable(
    path: Path, is_ours: Callable[[bytes], bool], what: str, force: bool = False, forcible: bool = True
) -> None:  # fmt: skip
    """Refuse to write over a file that the same command did not write.

    Args:
        path: what is to be written.
        is_ours: whether a file with this beginning and end (``HEAD`` bytes each) is of the same kind.
        what: the kind, for the message.
        force: replace it whatever it is.
        forcible: whether the command has an option for that.
    """
    if path.is_dir():
        raise SappError(f"{path}: is a folder; name a file")
    if force or not os.path.lexists(path):
        return
    try:
        with path.open("rb") as file:
            content = file.read(HEAD)
            if (rest := file.seek(0, os.SEEK_END) - HEAD) > 0:
                file.seek(-min(rest, HEAD), os.SEEK_END)
                content += file.read(HEAD)
    except OSError as error:
        raise SappError(f"{path}: is there and cannot be read ({error.strerror}); name another file") from None
    if not is_ours(content):
        cure = "name another file, or add --force to replace it" if forcible else "name another file, or delete it"
        raise SappError(f"{path}: is there already and is not {what}; {cure}")


def distinct(names: Sequence[str]) -> list[str]:
    """Names for files in one folder: those that are equal, also where capitals do not count, get a number."""
    folded = [name.casefold() for name in names]
    found = [name if folded.count(name.casefold()) == 1 else f"{name}-{i}" for i, name in enumerate(names)]
    return found if len({name.casefold() for name in found}) == len(found) else distinct(found)


def in_home(text: str | Path) -> Path:
    """A path whose ``~`` stands for the home folder."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise SappError(f"{text}: this account has no home folder; set HOME, or name a folder without ~") from None


def no_links(path: str, flags: int) -> int:
    """An ``opener`` that follows no link: what is written goes where the name says."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)


@contextlib.contextmanager
def _held_new(path: Path) -> Iterator[Path]:
    """A new file of ours beside ``path``, held by a lock that dies with this process, so that others leave it alone."""
    descriptor, temporary = _new(path, lambda name: os.open(name, _NEW, 0o666))
    try:
        yield temporary
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        os.close(descriptor)


class FolderAside:
    """A new folder beside the one that is to be, held like a file that is being written.

    What an earlier process that was killed left of the same folder is deleted first.

    Args:
        folder: that is to be; those above it are made.
    """

    def __init__(self, folder: Path) -> None:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _remove_own_leftovers(folder)
        self._descriptor, self.path = _new(folder, _make_folder)

    def close(self) -> None:
        """Let it go: it has its name, or is deleted."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1


def _make_folder(name: Path) -> int:
    name.mkdir()
    if os.name == "nt":  # opens no folders, and locks none
        return -1
    try:
        return os.open(name, os.O_RDONLY)
    except OSError:
        name.rmdir()
        raise


def _new(path: Path, make: Callable[[Path], int]) -> tuple[int, Path]:
    """Something new beside ``path``, locked; another process may delete it before it is, and then it is made again."""
    for attempt in itertools.count():
        temporary = path.with_name(f"{_aside(path)}{secrets.token_hex(8)}{_SUFFIX}")
        descriptor = make(temporary)
        held = descriptor >= 0 and _lock(descriptor)
        if os.path.lexists(temporary) and (held or descriptor < 0 or attempt >= _TRIES):  # some disks have no locks
            return descriptor, temporary
        with contextlib.suppress(OSError):
            os.close(descriptor)
            temporary.unlink(missing_ok=True)
    raise AssertionError("counting has no end")


def _aside(path: Path) -> str:
    """What the temporary names of a file begin with."""
    return f".{os.fsdecode(os.fsencode(path.name)[:_LONGEST])}."


def _remove_own_leftovers(path: Path) -> None:
    """Delete temporary files and folders of ``path`` whose process is gone."""
    pattern = re.compile(re.escape(_aside(path)) + "[0-9a-f]{16}" + re.escape(_SUFFIX))
    with contextlib.suppress(OSError), os.scandir(path.parent) as found:
        for name in [each.name for each in found if each.name.endswith(_SUFFIX)]:
            if not pattern.fullmatch(name):
                continue
            with contextlib.suppress(OSError):
                left = path.with_name(name)
                folder = left.is_dir()
                descriptor = os.open(left, (os.O_RDONLY if folder else os.O_RDWR) | getattr(os, "O_NOFOLLOW", 0))
                try:
                    if _lock(descriptor):
                        shutil.rmtree(left) if folder else left.unlink(missing_ok=True)
                finally:
                    os.close(descriptor)


def _lock(descriptor: int) -> bool:
    """Whether nobody else holds the file; where there are no such locks nothing is ever known to be left."""
    try:
        import fcntl
    except ImportError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _cure(error: OSError) -> str:
    """What to do about a write that failed: permission is not space."""
    import errno

    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return "make the folder writable or choose another"
    others = {
        errno.ENAMETOOLONG: "choose a shorter name", errno.EMFILE: "raise the limit of open files (ulimit -n)",
        errno.EFBIG: "raise the limit of file sizes (ulimit -f)",
    }  # fmt: skip
    return others.get(error.errno or 0, "free some space or choose another folder")
