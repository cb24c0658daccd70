"""D4RL's HDF5 files: by path as they are, or by name from the usual cache folder or the published address."""

from __future__ import annotations

import hashlib
import http.client
import os
import re
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import numpy as np

from sapp.core.errors import SappError, did_you_mean, one_line
from sapp.core.files import in_home, write_aside
from sapp.core.progress_bar import reported
from sapp.data.columns import Given, given_columns
from sapp.data.d4rl_families import d4rl_family
from sapp.data.dataset import Dataset
from sapp.data.field_names import ROLES, normal
from sapp.data.ledger import Column, Ledger
from sapp.data.loaders.buffers import d3rlpy_table, is_d3rlpy, is_tianshou, tianshou_table
from sapp.data.loaders.files import (
    EXTRAS,
    Options,
    given,
    provenance,
    readable,
    require_file,
)
from sapp.data.loaders.limits import open_hdf5
from sapp.data.loaders.robomimic import is_robomimic, robomimic_table
from sapp.data.logs import read_log
from sapp.data.registry import COMMON, Format
from sapp.data.table import Table

ADDRESS = "http://rail.eecs.berkeley.edu/datasets/offline_rl/gym_mujoco_v2"
"""Where the Gym-MuJoCo v2 files are published."""

Progress = Callable[[int, int], None]
"""Called with bytes done and bytes in all."""


class Published(NamedTuple):
    """A published file: its name, size in bytes, and SHA-256."""

    file: str
    size: int
    sha256: str


# Names, sizes and hashes as in tensorflow/datasets, d4rl_mujoco_{halfcheetah,hopper,walker2d}/checksums.tsv.
PUBLISHED: dict[str, Published] = {
    f"{stem.replace('_', '-')}-v2": Published(f"{stem}-v2.hdf5", size, digest)
    for stem, size, digest in (
        ("halfcheetah_random", 237338037, "25407aef85b5d16c0f36b4149341edb4acc6a9e88c1db529b2de19e7464874ba"),
        ("halfcheetah_medium", 237727262, "41324e8487a9556d8cfa4538827f8937f4d63dae3030825ebc9f3a726ed08ca0"),
        ("halfcheetah_medium_replay", 59448533, "48d494a4770c11f48260736dec090b78bdca8375647ed4d24bfa5b6610c7f683"),
        ("halfcheetah_full_replay", 291381762, "27fdf7ea86e5a2cbd24d611ae9e703c86ec2e8e52823abc69dd9af6afb3a36c0"),
        ("halfcheetah_expert", 237464597, "d9fe53bb994eb1e20a99b4fa3412cd76a1bb7966a7ff55e0fcbdd6081bd2965f"),
        ("halfcheetah_medium_expert", 474567252, "015db75dae5bbe8e94029b71fa0bafc2073365df0c94744e71031189f3f79c06"),
        ("hopper_random", 152525345, "63103ef7059db4c0819bd054f4e83ff339030b50bcdb46bdbe50385f234b5054"),
        ("hopper_medium", 152756557, "5bdf1bc4a713c82941de44633df669b36c89850b652a25985166796d25cf71a0"),
        ("hopper_medium_replay", 75854457, "e121c5f7c9857a307baa9edc6a2c3b48e85fedb9ac316ecddd0f48ca7ef4e39b"),
        ("hopper_full_replay", 187998921, "56baf95963c51c1e964049a974566c50ba80f289390565523e60c0ba83e0982e"),
        ("hopper_expert", 152427435, "01aa219a5f8eea5e639eccdc636ec2bf40e317159a95cf4bf6e985f16909941b"),
        ("hopper_medium_expert", 304537315, "9d51ad87f8c905be3880d84c6140bcdb7fbf39a19e046a237f238ba34fec9e26"),
        ("walker2d_random", 216109364, "4e863bb6090cf4a461548bd470564b32f1ae5b32ef3085f816b2ede7f092e7fa"),
        ("walker2d_medium", 232254996, "cf00f43add04c17fdfc2958dd581dea0851b2e5bedbe6fda073758a8f841aeda"),
        ("walker2d_medium_replay", 86323963, "e75de96a4f77acf7d4e0d6fdf0d7ccb177c26c44bb4388e4fd99f543ccfa18db"),
        ("walker2d_full_replay", 285115514, "f2720f9d27b2acef6ec9a7d9ad3b80b6c2078ad4467cee668a81e3b3c80bcf2a"),
        ("walker2d_expert", 230567195, "2985dc3d436a8baa10e8f43f946fe1d7c6337a4e4fbc65def70618093b18c59a"),
        ("walker2d_medium_expert", 462197079, "6b8d7f868c45bbaedf460be797fb7271b46dee6ebe45fe7a64319f2005b59a04"),
    )
}
"""The eighteen Gym-MuJoCo v2 datasets by name, such as "hopper-medium-replay-v2"."""

_NAME = re.compile(
    r"(?P<environment>halfcheetah|hopper|walker2d|ant)"
    r"-(?P<quality>random|medium|expert|medium-replay|full-replay|medium-expert)(?:-v(?P<version>\d+))?"
)


_SIMULATED = ("halfcheetah", "hopper", "walker2d")
"""Environments whose physics, as D4RL recorded them, are here."""


def is_name(text: str) -> bool:
    """Whether the text reads as the name of a D4RL Gym-MuJoCo dataset, published or not."""
    match = _NAME.fullmatch(text)
    return match is not None and match["version"] is not None


def dataset_folder() -> Path:
    """Return D4RL's cache folder: $D4RL_DATASET_DIR, or ~/.d4rl/datasets."""
    return in_home(os.environ.get("D4RL_DATASET_DIR") or "~/.d4rl/datasets")


def load_d4rl(
    identity: str, *, mirror: str | None = None, progress: Progress | None = None, **options: Unpack[Options]
) -> Dataset:
    """Load a D4RL dataset by name; a v2 file that is not in the cache folder is downloaded and checked.

    A file of that name in the cache folder must be the published one, byte for byte; load any other by its path.

    Args:
        identity: such as "hopper-medium-v2".
        mirror: address of a folder to download from instead of the published one; the same bytes are expected.
        progress: called with bytes done and bytes in all while downloading; without it, stderr shows them.
        options: see ``Options``.
    """
    published = PUBLISHED.get(identity)
    folder = dataset_folder()
    if published is None:
        path = folder / f"{_file_stem(identity)}.hdf5"
        if not (is_name(identity) and path.exists()):
            raise SappError(
                f"{identity}: no such D4RL dataset{did_you_mean(identity, PUBLISHED)}; "
                "choose {halfcheetah,hopper,walker2d}-{random,medium,medium-replay,full-replay,expert,medium-expert}-v2"
                " or give the path of a file"
            )
        return load_hdf5(path, **options)
    path = folder / published.file
    if not path.exists():
        address = f"{(mirror or ADDRESS).rstrip('/')}/{published.file}"
        what = f"downloading {identity}: {published.size / 1e6:,.0f} MB, once, into {folder}"
        with reported(progress, what) as report:
            download(address, path, published.size, published.sha256, report)
    dataset = load_hdf5(path, **options)
    if dataset.provenance["sha256"] != published.sha256:
        raise SappError(
            f"{path}: is not the published {identity} (SHA-256 differs, {path.stat().st_size} bytes instead of "
            f"{published.size}); remove it to download it again, or load it by its path"
        )
    return dataset


def load_hdf5(
    path: str | Path,
    *,
    columns: Given = None,
    **options: Unpack[Options],
) -> Dataset:
    """Load an HDF5 file in D4RL's layout, or robomimic's: observations, actions, rewards, terminals, and what else.

    ``timeouts`` and ``next_observations`` may be missing (see ``Dataset.from_arrays``); ``infos/qpos``, ``infos/qvel``
    and ``infos/action_log_probs`` become extras. Name, environment and physics follow from a D4RL file name.
    """
    import h5py

    path = Path(path)
    require_file(path)
    stem = path.stem.replace("_", "-")
    match = _NAME.fullmatch(stem)
    defaults: dict[str, Any] = {"name": stem if match else path.stem}
    if match and match["environment"] in _SIMULATED:
        defaults |= {"environment": match["environment"], "physics": "d4rl"}
    family = d4rl_family(stem)
    if family is not None:
        defaults |= {"name": stem, "environment": family.environment}
    mapping, chosen = given_columns(columns), {**defaults, **given(options)}

    def read() -> Dataset:
        with open_hdf5(path) as file:
            table, ledger, notes = _table(h5py, file, path)
            extras = {old: new for old, new in EXTRAS.items() if old in table.names}
            notes = {**provenance(path, "hdf5"), **notes}
            if family is not None:
                notes["reference_scores"] = [family.low, family.high]
            return read_log(table, mapping, ledger=ledger, notes=notes, extras=extras, infer=False, **chosen)

    return readable(path, "HDF5", read, (OSError, RuntimeError, KeyError))


def download(url: str, path: Path, size: int, digest: str, progress: Progress | None = None) -> None:
    """Download a file, check its size and SHA-256, and only then give it its name.

    Args:
        url: http or https address.
        path: where the file goes.
        size: expected bytes.
        digest: expected SHA-256 in hex.
        progress: called with bytes done and bytes in all.
    """
    advice = f"download {path.name} by other means into {path.parent}, or set D4RL_DATASET_DIR to where it is"
    if not url.startswith(("http://", "https://")):
        raise SappError(f"{url}: not an http or https address; give one, or {advice}")

    def fetch(aside: Path) -> None:
        found, done = hashlib.sha256(), 0
        with aside.open("wb") as file:
            try:
                # An opener of its own: the shared one keeps the proxies of its first use for good.
                with urllib.request.build_opener().open(url, timeout=30) as response:
                    while chunk := response.read(1 << 20):
                        file.write(chunk)
                        found.update(chunk)
                        done += len(chunk)
                        if done > size:
                            break  # the message below says so
                        if progress is not None:
                            progress(done, size)
            # URLError and time-outs are OSErrors; a dropped connection is an HTTPException.
            except (OSError, http.client.HTTPException, ValueError) as error:
                raise SappError(f"{url}: download failed ({one_line(error)}); {advice}") from None
        if done != size:
            raise SappError(f"{url}: download gave {done} bytes instead of {size}; try again, or {advice}")
        if found.hexdigest() != digest:
            raise SappError(f"{url}: SHA-256 is {found.hexdigest()} instead of {digest}; try again, or {advice}")

    write_aside(path, fetch)


def _file_stem(name: str) -> str:
    head, dash, version = name.rpartition("-v")
    return head.replace("-", "_") + dash + version


def _table(h5py: Any, file: Any, path: Path) -> tuple[Table, Ledger, dict[str, Any]]:
    """The arrays of a file, what is in it besides, and the little metadata that is worth stating."""
    if is_robomimic(file):
        return *robomimic_table(file, str(path)), {"layout": "robomimic"}
    if is_d3rlpy(file):
        return *d3rlpy_table(file, str(path)), {"layout": "d3rlpy"}
    if is_tianshou(file):
        return *tianshou_table(file, str(path)), {"layout": "Tianshou"}
    if "episode_0" in file:
        raise SappError(
            f"{path}: is a part of a Minari dataset; load it by its id, or by the folder that holds its folder data"
        )
    names = [key for key in file if isinstance(file[key], h5py.Dataset) and file[key].ndim]
    names += [key for key in EXTRAS if isinstance(file.get(key), h5py.Dataset)]
    main = next((key for key in names if normal(key) in ROLES["observation"]), None)
    if main is None:
        have = ", ".join(sorted(file)) or "nothing"
        raise SappError(
            f"{path}: no 'observations' in the file, which has: {have[:200]}; it is in no layout that is known here: "
            f"give sapp.load a dictionary of arrays of a row per step, read with h5py"
        )
    ledger = Ledger()
    for key in file:
        if isinstance(file[key], h5py.Group):
            inside = [f"{key}/{name}" for name in file[key] if f"{key}/{name}" not in names]
            ledger.columns += [Column(name, None, "not needed") for name in inside[:50]]
            if len(inside) > 50:
                ledger.columns.append(Column(f"{key}/…", None, f"{len(inside) - 50} more, not needed"))
    notes: dict[str, Any] = {}
    for key in ("algorithm", "iteration"):
        entry = file.get(f"metadata/{key}")
        if isinstance(entry, h5py.Dataset) and entry.shape == ():
            value = entry[()]
            notes[f"behaviour_{key}"] = value.decode(errors="replace") if isinstance(value, bytes) else value.item()
    return Table(names, len(file[main]), lambda name: np.asarray(file[name][()]), str(path)), ledger, notes


HDF5_FORMAT = Format(
    "a path ending in .hdf5 or .h5", lambda request: request.ends_in(".hdf5", ".h5"), load_hdf5, (*COMMON, "columns")
)
NAME_FORMAT = Format(
    "a D4RL name such as hopper-medium-v2", lambda request: is_name(request.text), load_d4rl,
    (*COMMON, "mirror", "progress"), tuple(PUBLISHED),
)  # fmt: skip
