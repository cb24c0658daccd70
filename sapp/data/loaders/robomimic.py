"""robomimic's HDF5 files: a group per demonstration, observations by key."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from sapp.core.errors import SappError
from sapp.data.ledger import Column, Kind, Ledger, listed
from sapp.data.table import Table


def is_robomimic(file: Any) -> bool:
    """Whether an open HDF5 file is in robomimic's layout."""
    return "data" in file and any(re.fullmatch(r"demo_\d+", str(name)) for name in file["data"])


def robomimic_table(file: Any, where: str) -> tuple[Table, Ledger]:
    """The demonstrations of an open file as one table: vectors among the observations side by side, images left out.

    Args:
        file: from h5py.
        where: what error messages call it.
    """
    demos = sorted((name for name in file["data"] if re.fullmatch(r"demo_\d+", name)), key=lambda n: int(n[5:]))
    groups, ledger = [file["data"][name] for name in demos], Ledger()
    first = groups[0]
    if "obs" not in first:
        raise SappError(f"{where}: {demos[0]} has no observations (obs); run robomimic's dataset_states_to_obs first")
    keys = sorted(key for key in first["obs"] if first["obs"][key].ndim <= 2)
    images = sorted(key for key in first["obs"] if first["obs"][key].ndim > 2)
    if not keys:
        raise SappError(f"{where}: all observations are images ({listed(images)}); this takes vectors")
    ledger.columns += [Column(f"obs/{key}", None, "images, which are not read beside vectors") for key in images]
    ledger.say(Kind.READ, f"observations are {listed(keys)}, in this order")

    def side_by_side(part: str) -> np.ndarray:
        rows = [np.concatenate([matrix(group[part][key]) for key in keys], axis=1) for group in groups]
        return np.concatenate(rows)

    arrays: dict[str, Any] = {"obs": side_by_side("obs")}
    if all("next_obs" in group for group in groups):
        arrays["next_obs"] = side_by_side("next_obs")
    for key in ("actions", "rewards", "dones"):
        if any(key not in group for group in groups):
            raise SappError(f"{where}: a demonstration has no {key!r}; write it again with them")
        arrays[key] = np.concatenate([np.asarray(group[key][()]) for group in groups])
    lengths = [len(group["actions"]) for group in groups]
    arrays["episode"] = np.repeat(np.arange(len(groups)), lengths)
    ledger.columns += [Column(key, None, "not needed") for key in first if key not in (*arrays, "next_obs")]
    return Table.of_arrays(arrays, sum(lengths), where), ledger


def matrix(array: Any) -> np.ndarray:
    """An array of an HDF5 file [N, width], whatever its shape."""
    values = np.asarray(array[()])
    return values.reshape(len(values), -1)
