"""What all loaders share: common options, file checks and hashes."""

from __future__ import annotations

import errno
import hashlib
import os
import tokenize
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypedDict, TypeVar

from numpy.typing import ArrayLike

from sapp.core.errors import SappError, did_you_mean, one_line

T = TypeVar("T")

EXTRAS = {"infos/qpos": "qpos", "infos/qvel": "qvel", "infos/action_log_probs": "log_prob"}
"""D4RL's further arrays, and what they are called among a dataset's extras."""


_CANNOT = {
    errno.EACCES: "make it readable", errno.EPERM: "make it readable", errno.EIO: "look after the disk and retry",
    errno.EMFILE: "raise the limit of open files (ulimit -n)", errno.ENFILE: "close other programs and retry",
}  # fmt: skip
"""Why a file that may be whole cannot be read, and what helps."""


class Options(TypedDict, total=False):
    """What every loader takes; None and absent both mean: as the file says, or the default."""

    name: str | None
    environment: str | None
    physics: str | None
    action_low: ArrayLike | None
    action_high: ArrayLike | None
    max_episode_steps: int | None
    last_step: str | None


def given(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that are not None."""
    return {key: value for key, value in options.items() if value is not None}


def require_file(path: Path) -> None:
    """Raise unless the path is a file with something in it."""
    if path.is_dir():
        raise SappError(f"{path}: is a directory; give one file")
    if not path.exists():
        siblings = (each.name for each in path.parent.iterdir()) if path.parent.is_dir() else ()
        raise SappError(f"{path}: no such file{did_you_mean(path.name, siblings)}; check the path")
    if path.stat().st_size == 0:
        raise SappError(f"{path}: the file is empty (0 bytes); it was probably cut short, get it again")


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def provenance(path: Path, loader: str) -> dict[str, Any]:
    """Return where a file's data comes from."""
    return {"loader": loader, "source": str(path), "sha256": sha256(path), "bytes": path.stat().st_size}


def readable(path: Path, kind: str, read: Callable[[], T], errors: tuple[type[BaseException], ...]) -> T:
    """Call ``read``; turn the errors of a library into one line that names the file."""
    caught: tuple[type[BaseException], ...] = (*errors, tokenize.TokenError)  # the last: NumPy, of a damaged header
    try:
        return read()
    except caught as error:
        if isinstance(error, OSError) and error.errno in _CANNOT:
            raise SappError(f"{path}: cannot be read ({os.strerror(error.errno)}); {_CANNOT[error.errno]}") from None
        raise SappError(
            f"{path}: cannot be read as {kind} ({one_line(error)}); it is damaged or of another kind, get it again"
        ) from None
