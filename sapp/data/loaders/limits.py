"""What a stranger's file may do: hold its own data, of a size that fits the file's. Checked before anything is read."""

from __future__ import annotations

import contextlib
import math
import tokenize
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from sapp.core.errors import SappError, printable

RATIO, FREE = 200, 1 << 28
"""A file may unfold to so many times its size; up to ``FREE`` bytes it always may."""


def check_size(path: Path, announced: int) -> None:
    """Refuse a file that says it holds far more than a file of its size should."""
    size = path.stat().st_size
    if announced > max(FREE, RATIO * size):
        raise SappError(
            f"{path}: would unfold from {size:,} to {announced:,} bytes, more than {RATIO} times its size; if you "
            "trust it, write it again without compression"
        )


@contextlib.contextmanager
def open_hdf5(path: Path) -> Iterator[Any]:
    """An HDF5 file for reading, refused where it would have other files read in its name."""
    import h5py

    with h5py.File(path, "r") as file:
        check_hdf5(file, path)
        yield file


def check_hdf5(file: Any, path: Path) -> None:
    """Refuse links to other files, data stored in them or put together from them, and what unfolds without end."""
    import h5py

    total = 0
    links: list[tuple[str, Any]] = []
    file.visititems_links(lambda name, link: links.append((name, link)))  # what raises in there is lost
    for name, link in links:
        if isinstance(link, h5py.ExternalLink):
            raise _foreign(path, name, "is a link into another file")
        if not isinstance(link, h5py.HardLink):
            continue
        found = file[name]
        if isinstance(found, h5py.Dataset):
            if found.external:
                raise _foreign(path, name, "is stored in another file")
            if found.is_virtual:
                raise _foreign(path, name, "is put together from other files")
            total += int(found.nbytes)
    check_size(path, total)


def _foreign(path: Path, name: str, what: str) -> SappError:
    return SappError(f"{path}: {printable(str(name))!r} {what}, which is never read; copy the data into this file")


def check_npz(path: Path) -> None:
    """Refuse an archive that unfolds without end, or whose arrays say that they are larger than what is there."""
    try:
        with zipfile.ZipFile(path) as archive:
            check_size(path, sum(each.file_size for each in archive.infolist()))
            for each in archive.infolist():
                if each.filename.endswith(".npy"):
                    with archive.open(each) as member:
                        _check_header(path, each, member)
    except (zipfile.BadZipFile, ValueError, EOFError, NotImplementedError, RuntimeError, tokenize.TokenError):
        return  # whoever reads it next says what is wrong


def _check_header(path: Path, entry: zipfile.ZipInfo, member: Any) -> None:
    version = np.lib.format.read_magic(member)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, kind = read(member)
    if not kind.hasobject and math.prod(shape) * kind.itemsize > entry.file_size:
        raise SappError(f"{path}: {printable(entry.filename)!r} is cut short; get the file again")


def check_parquet(path: Path, metadata: Any) -> None:
    """Refuse a Parquet file that unfolds without end: repeated values take almost no space in it."""
    announced = sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))
    check_size(path, max(announced, metadata.num_rows * metadata.num_columns * 8))


def check_compressed(path: Path) -> None:
    """Refuse compressed text that unfolds without end; it is unpacked once to know."""
    if path.suffix.lower() not in (".gz", ".bz2", ".lz4", ".zst"):
        return
    import pyarrow as pa

    total = 0
    with pa.input_stream(str(path), compression="detect") as stream:
        while count := len(stream.read(1 << 22)):
            total += count
            check_size(path, total)
