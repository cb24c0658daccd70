"""Buffers that other libraries keep in HDF5: d3rlpy's episodes (2.1 and later), Tianshou's ``save_hdf5``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sapp.core.errors import SappError
from sapp.data.ledger import Column, Kind, Ledger
from sapp.data.loaders.robomimic import matrix
from sapp.data.table import Table

_D3RLPY = ("observations", "actions", "rewards", "terminated")


def is_d3rlpy(file: Any) -> bool:
    """Whether an open HDF5 file holds episodes as d3rlpy's ``ReplayBuffer.dump`` writes them."""
    return "columns" in file and "num_episodes" in file


def d3rlpy_table(file: Any, where: str) -> tuple[Table, Ledger]:
    """The episodes of an open file as one table; those that were cut rather than ended are known by their ids.

    Args:
        file: from h5py.
        where: what error messages call it.
    """
    found, ledger = np.asarray(file["num_episodes"][()]), Ledger()
    if found.ndim or found.dtype.kind not in "iu" or found < 1:
        raise SappError(f"{where}: d3rlpy's buffer holds no episodes; give one with at least one step")
    count = int(found)
    for number in range(count):
        if missing := next((key for key in _D3RLPY if f"{key}_{number}" not in file), None):
            several = f"{missing}_{number}_0" in file
            why = "has observations of several parts" if several else f"has no {missing}"
            raise SappError(
                f"{where}: d3rlpy's episode {number} {why}; give a dictionary of arrays of a row per step instead"
            )
    parts = {key: [np.asarray(file[f"{key}_{number}"][()]) for number in range(count)] for key in _D3RLPY}
    if any(each.ndim > 2 for each in parts["observations"]):
        raise SappError(f"{where}: d3rlpy's buffer holds images; this takes vectors")
    for number, each in enumerate(zip(*(parts[key] for key in _D3RLPY[:3]), strict=True)):
        sizes = {len(array) if array.ndim else 0 for array in each}
        if len(sizes) > 1 or 0 in sizes:
            raise SappError(f"{where}: d3rlpy's episode {number} has arrays of {sorted(sizes)} rows; it is damaged")
    lengths = [len(each) for each in parts["rewards"]]
    arrays: dict[str, Any] = {key: _joined(parts[key], key, where) for key in _D3RLPY[:3]}
    last = np.cumsum(lengths) - 1
    arrays["terminated"] = np.zeros(sum(lengths), bool)
    arrays["terminated"][last] = [bool(each.any()) for each in parts["terminated"]]
    arrays["episode"] = np.repeat(np.arange(count), lengths)
    others = [str(name, "utf-8") for name in file["columns"][()] if str(name, "utf-8") not in _D3RLPY]
    ledger.columns += [Column(name, None, "not needed") for name in others]
    return Table.of_arrays(arrays, sum(lengths), where), ledger


def _joined(parts: Sequence[np.ndarray], key: str, where: str) -> np.ndarray:
    rows = [matrix(each) for each in parts]
    if len(widths := sorted({each.shape[1] for each in rows})) > 1:
        raise SappError(f"{where}: {key} are {widths[0]} and {widths[-1]} wide; every episode needs the same width")
    return np.concatenate(rows)


def is_tianshou(file: Any) -> bool:
    """Whether an open HDF5 file is a buffer as Tianshou's ``save_hdf5`` writes it."""
    return "_meta" in file and "_size" in file.attrs


def tianshou_table(file: Any, where: str) -> tuple[Table, Ledger]:
    """The rows of an open file that were filled, the oldest first.

    Args:
        file: from h5py.
        where: what error messages call it.
    """
    if "buffers" in file or "_offset" in file:
        raise SappError(
            f"{where}: is Tianshou's buffer of several environments; buffer.sample(0)[0] holds its steps in order: "
            f"give sapp.load a dictionary of its obs, act, rew, terminated, truncated, done and obs_next"
        )
    held, ledger = {key: each for key, each in file["_meta"].items() if hasattr(each, "shape")}, Ledger()
    size, capacity = int(file.attrs["_size"]), int(file.attrs.get("maxsize", 0))
    oldest = int(file.attrs.get("_insertion_idx", file.attrs.get("_index", 0))) if size == capacity else 0
    rows = np.roll(np.arange(size), -oldest)
    arrays = {key: np.asarray(each[()])[rows] for key, each in held.items() if each.ndim and len(each) >= size}
    ledger.columns += [Column(key, None, "not needed") for key in file["_meta"] if key not in arrays]
    if capacity > size:
        ledger.say(Kind.READ, f"the buffer has {size:,} of at most {capacity:,} rows: the others were never filled")
    return Table.of_arrays(arrays, size, where), ledger
