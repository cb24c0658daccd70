"""Compiled programs kept on disk, so that a command's second start need not compile; does not import JAX.

JAX looks a program up by all that determines it (operations, versions, compiler flags, the device), so nothing in the
cache is ever out of date. What JAX leaves to us: a program made for one CPU may not run on another that shares the home
folder, a process killed while it writes leaves half an entry, and nothing is ever deleted.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import os
import platform
import stat
import sys
from pathlib import Path

LARGEST = 2**30
"""Bytes of programs that are kept; beyond them the oldest go."""
ENTRIES = "*-cache"
"""What JAX calls its files."""
SETTING = "JAX_COMPILATION_CACHE_DIR"
WORTH_KEEPING = "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"
SECONDS = "0.1"
"""Programs that compile in less are not kept. JAX's own limit, a second, would leave out the one that makes a learner:
every start would compile it."""
_CHECKED = "checked"
_FAULTS = (OSError, ValueError, EOFError)


def keep_compiled_programs() -> None:
    """Let JAX keep the programs of this process and of those it starts.

    Nothing happens where the user has said where they go, or JAX is imported already; where no such folder can be had,
    or others could write to it, every start compiles.
    """
    if os.environ.get(SETTING) is not None or "jax" in sys.modules:
        return
    with contextlib.suppress(OSError, RuntimeError):  # the second: there is no home
        folder = user_cache() / "sapp" / "programs" / f"{machine()}-{packing()}"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if _ours_alone(folder):
            tidy(folder)
            os.environ[SETTING] = str(folder)
            os.environ.setdefault(WORTH_KEEPING, SECONDS)


def user_cache() -> Path:
    """The user's folder for files that can be made again."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return named if named.is_absolute() else Path.home() / ".cache"


def machine() -> str:
    """Names this kind of CPU: machines that share a home folder may lack each other's instructions."""
    words = [platform.system(), platform.machine()]
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
        kinds = ("model name", "flags", "Features", "CPU part")
        words += [next((line for line in lines if line.startswith(kind)), "") for kind in kinds]
    except OSError:  # not Linux, where asking for the processor starts a process
        words.append(platform.processor())
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:16]


def packing() -> str:
    """The module with which JAX packs its entries, by the rule in ``jax._src.compilation_cache``."""
    if sys.version_info >= (3, 14):
        return "compression.zstd"
    return "zstandard" if importlib.util.find_spec("zstandard") else "zlib"


def tidy(folder: Path, largest: int = LARGEST) -> None:
    """Delete entries that a killed process left unfinished, and the oldest where all together are too large.

    An entry is read once: those newer than the last look.
    """
    checked = folder / _CHECKED
    last = checked.stat().st_mtime if checked.exists() else float("-inf")
    sizes, newest = {}, last
    for path in sorted(folder.glob(ENTRIES), key=_age):
        made = _age(path)
        if made > last and not whole(path):
            path.unlink(missing_ok=True)
        else:
            sizes[path], newest = path.stat().st_size, max(newest, made)
    if sizes:
        checked.touch()
        os.utime(checked, (newest, newest))
    total = sum(sizes.values())
    for path, size in sizes.items():
        if total > largest:
            path.unlink(missing_ok=True)
            total -= size


def whole(path: Path) -> bool:
    """Whether an entry can be unpacked."""
    unpacker = importlib.import_module(packing())
    packed = path.read_bytes()
    try:
        unpacker.ZstdDecompressor().decompress(packed) if packing() == "zstandard" else unpacker.decompress(packed)
    except (*_FAULTS, getattr(unpacker, "ZstdError", ValueError), getattr(unpacker, "error", ValueError)):
        return False
    return True


def _age(path: Path) -> float:
    return path.stat().st_mtime


def _ours_alone(folder: Path) -> bool:
    """Whether nobody else could have put a program there: it would be run."""
    if os.name == "nt":
        return True
    found = folder.stat()
    return found.st_uid == os.getuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
