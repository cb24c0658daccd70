"""The files of DQN-Replay folders: their names, and gzipped .npy arrays read as streams."""

from __future__ import annotations

import gzip
import io
import re
import tokenize
import zlib
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from sapp.core.errors import SappError, one_line
from sapp.core.files import write_aside

STORES = ("observation", "action", "reward", "terminal")
"""Arrays that every shard has."""

SMALL = {"action": "integer", "reward": "float", "terminal": "integer", "timeout": "integer"}
"""The arrays beside the frames, and the kind of numbers in them."""

META = "sapp.json"
"""What sapp writes beside a log: name, environment, actions, how it was made."""

_PIECE = 1 << 18
_BROKEN = (tokenize.TokenError, OSError, EOFError, ValueError, zlib.error)


def logs_folder(folder: Path) -> Path:
    """The folder of the shards: published logs are in GAME/RUN/replay_logs."""
    inner = folder / "replay_logs"
    return inner if not shard_numbers(folder) and shard_numbers(inner) else folder


def shard_numbers(folder: Path) -> list[int]:
    """Numbers of the shards in a folder, rising."""
    if not folder.is_dir():
        return []
    found = (re.fullmatch(r"\$store\$_observation_ckpt\.(\d+)\.gz", each.name) for each in folder.iterdir())
    return sorted(int(match[1]) for match in found if match)


def shard_path(folder: Path, what: str, number: int) -> Path:
    """The file of one array of one shard."""
    prefix = "$store$_" if what in (*STORES, "timeout") else ""
    return folder / f"{prefix}{what}_ckpt.{number}.gz"


def open_gz(path: Path) -> BinaryIO:
    """Open a gzipped file for reading in large pieces."""
    try:
        return io.BufferedReader(_Gunzip(path), 1 << 20)
    except OSError as error:
        raise _damaged(path, error) from None


class _Gunzip(io.RawIOBase):
    """A gzipped file, member after member; several times quicker than the gzip module on many small members."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._decoder = zlib.decompressobj(31)  # 31: a gzip header before, a checksum behind
        self._waiting = b""

    def readable(self) -> bool:
        """True, as ``io.BufferedReader`` asks of what it reads."""
        return True

    def readinto(self, into: Any) -> int:
        """Decompress some bytes; 0 at the end of the file."""
        while True:
            if self._decoder.eof:
                rest = self._decoder.unused_data or self._file.read(_PIECE)
                if not rest:
                    return 0
                self._decoder, self._waiting = zlib.decompressobj(31), rest
            piece = self._waiting or self._file.read(_PIECE)
            out = self._decoder.decompress(piece, len(into))
            self._waiting = self._decoder.unconsumed_tail
            if out:
                into[: len(out)] = out
                return len(out)
            if not piece and not self._decoder.eof:
                raise EOFError("the compressed data stop before their end mark")

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()


def read_header(file: BinaryIO, path: Path) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Read the header of a .npy: shape and type."""
    try:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(file)
    except _BROKEN as error:
        raise _damaged(path, error) from None
    if fortran and len(shape) > 1:
        raise SappError(f"{path}: is stored in Fortran order; save it in C order")
    return shape, dtype


def read_bytes(file: BinaryIO, count: int, path: Path) -> bytes:
    """Read some bytes, or none at the end."""
    try:
        return file.read(count)
    except _BROKEN as error:
        raise _damaged(path, error) from None


def fill(file: BinaryIO, into: np.ndarray, path: Path, row: int, rows: int) -> None:
    """Read an array full; ``row`` and ``rows`` are for the message."""
    try:
        got = file.readinto(into.reshape(-1).view(np.uint8).data)  # type: ignore[attr-defined]
    except _BROKEN as error:
        raise _damaged(path, error) from None
    if got != into.nbytes:
        have = row + got // max(1, into.nbytes // len(into))
        raise SappError(f"{path}: ends after {have} of {rows} rows; it was cut short, get it again")


def read_array(path: Path) -> np.ndarray:
    """Read a whole array, and make sure that the file ends with it."""
    with open_gz(path) as file:
        shape, dtype = read_header(file, path)
        if dtype.hasobject:
            raise SappError(f"{path}: holds objects (a pickle), which are never loaded; save plain numbers")
        out = np.empty(shape, dtype)
        if out.size:
            fill(file, out.reshape(max(1, len(shape) and shape[0]), -1), path, 0, shape[0] if shape else 1)
        if read_bytes(file, 1, path):
            raise SappError(f"{path}: goes on after its array; it is damaged, get it again")
    return out


def save_array(path: Path, value: np.ndarray) -> None:
    """Write a gzipped .npy aside and rename it."""

    def write(aside: Path) -> None:
        with aside.open("wb") as raw, gzip.GzipFile("", "wb", 6, raw, 0) as file:
            np.save(file, value, allow_pickle=False)

    write_aside(path, write)


def _damaged(path: Path, error: BaseException) -> SappError:
    return SappError(f"{path}: cannot be read as a gzipped .npy ({one_line(error)}); it was cut short, get it again")
