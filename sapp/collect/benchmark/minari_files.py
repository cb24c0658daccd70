"""Datasets as Minari keeps them on disk, written and read without Minari.

Written here rather than through Minari so that generation needs no extra package, can be resumed, and gives the same
bytes twice: no dates, no random order. `minari.load_dataset` reads the result like any other.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sapp.collect.benchmark.hdf5_file import new_hdf5
from sapp.core.errors import SappError, one_line
from sapp.core.extras import DISTRIBUTION
from sapp.core.files import write_text
from sapp.data.dataset import Dataset
from sapp.data.loaders.minari import OURS, minari_folder
from sapp.data.normalised_scores import base_name, recorded_references, reference

DATA, METADATA, NAMESPACE = "main_data.hdf5", "metadata.json", "namespace_metadata.json"
MINARI_VERSION = "0.5.0"
"""The layout written here is that of this version, which later ones read."""


def folder_of(identity: str, root: Path | None = None) -> Path:
    """Where a dataset of this id is, or would be."""
    return (root or minari_folder()) / identity


def write(folder: Path, identity: str, parts: Iterable[Dataset], ours: Mapping[str, Any], description: str) -> int:
    """Write datasets of one environment, one after the other, as one Minari dataset; returns the bytes written.

    Args:
        folder: that must not exist, or be empty; it is filled and nothing outside it is touched.
        identity: the Minari id.
        parts: at least one; a part's name becomes the episode attribute "policy".
        ours: JSON that says how the data came about.
        description: for readers, a sentence or so.
    """
    inside = folder / "data"
    inside.mkdir(parents=True)
    episodes = steps = 0
    head: Dataset | None = None
    try:
        with new_hdf5(inside / DATA) as (file, check):
            writer = _Writer()
            for part in parts:
                head = head or part
                for begin, end in zip(part.episode_starts.tolist(), (part.episode_ends + 1).tolist(), strict=True):
                    writer.episode(file, part, begin, end, episodes)
                    episodes += 1
                    check()
                steps += len(part)
    except (OSError, RuntimeError) as error:  # RuntimeError: how HDF5 reports a full disk when it closes
        raise SappError(
            f"{folder}: cannot write ({one_line(error)}); free some space or choose another Minari root"
        ) from None
    if head is None:
        raise SappError(f"{identity}: nothing to write")
    size = (inside / DATA).stat().st_size
    write_text(inside / METADATA, json.dumps(_metadata(identity, head, episodes, steps, size, ours, description)))
    return size


class _Writer:
    """Writes episodes through HDF5's own functions: faster than h5py's, which counts where there are many episodes."""

    def __init__(self) -> None:
        from h5py import h5d, h5p

        self._types: dict[Any, Any] = {}
        self._plain = h5p.create(h5p.DATASET_CREATE)
        self._plain.set_fill_time(h5d.FILL_TIME_NEVER)
        self._group = h5p.create(h5p.GROUP_CREATE)
        for each in (self._plain, self._group):
            each.set_obj_track_times(False)  # dates would make two files of the same data differ

    def episode(self, file: Any, part: Dataset, begin: int, end: int, number: int) -> None:
        """Write rows ``begin`` to ``end`` of a dataset as episode ``number``."""
        from h5py import Group, h5g

        rows = slice(begin, end)
        group = h5g.create(file.id, f"episode_{number}".encode(), gcpl=self._group)
        attributes = Group(group).attrs
        attributes["id"], attributes["total_steps"], attributes["policy"] = number, end - begin, part.name
        # one observation more than steps: the last step's true successor
        self._array(
            group, "observations", np.concatenate([part.observation[rows], part.next_observation[end - 1 : end]])
        )
        self._array(group, "actions", part.action[rows])
        self._array(group, "rewards", part.reward[rows])
        self._array(group, "terminations", part.terminal[rows])
        self._array(group, "truncations", part.timeout[rows])
        if part.extras:
            infos = h5g.create(group, b"infos", gcpl=self._group)
            for key, values in part.extras.items():
                self._array(infos, key, values[rows])

    def _array(self, group: Any, name: str, values: np.ndarray) -> None:
        from h5py import h5d, h5s, h5t

        if values.dtype not in self._types:
            self._types[values.dtype] = h5t.py_create(values.dtype, logical=True)
        space = h5s.create_simple(values.shape)
        made = h5d.create(group, name.encode(), self._types[values.dtype], space, dcpl=self._plain)
        made.write(h5s.ALL, h5s.ALL, np.ascontiguousarray(values))


def _metadata(
    identity: str, head: Dataset, episodes: int, steps: int, size: int, ours: Mapping[str, Any], description: str
) -> dict[str, Any]:
    infinity = [float("inf")] * head.observation_size
    metadata: dict[str, Any] = {
        "dataset_id": identity,
        "minari_version": MINARI_VERSION,
        "data_format": "hdf5",
        "jpeg_encoding": False,
        "total_episodes": episodes,
        "total_steps": steps,
        "dataset_size": round(size / 1e6, 1),
        "observation_space": _box([-x for x in infinity], infinity),
        "action_space": _action_space(head),
        "description": description,
        OURS: dict(ours),
    }
    if spec := environment_json(head.environment, head.physics):
        metadata["env_spec"] = spec
        if "sapp." in spec:
            metadata["requirements"] = [DISTRIBUTION]
    if head.environment is not None and base_name(head.environment):
        metadata["ref_min_score"], metadata["ref_max_score"] = reference(head.environment)
    elif known := recorded_references(head.provenance):
        metadata["ref_min_score"], metadata["ref_max_score"] = known
    return metadata


def _action_space(head: Dataset) -> str:
    if head.num_actions is None:
        return _box(head.action_low.tolist(), head.action_high.tolist())
    return json.dumps({"type": "Discrete", "dtype": "int64", "start": 0, "n": head.num_actions})


def environment_json(environment: str | None, physics: str | None) -> str | None:
    """Gymnasium's description of an environment, where it has one."""
    import gymnasium

    from sapp.envs.locomotion import TASKS

    if environment is None:
        return None
    with contextlib.suppress(Exception):  # whatever a registry of other people's environments may raise
        if environment in TASKS:
            from sapp.envs.gymnasium_specs import environment_spec

            return environment_spec(environment, physics or "d4rl").to_json()
        if environment in gymnasium.registry:  # a name in a file never makes anything be imported
            return gymnasium.spec(environment).to_json()
    return None


def _box(low: list[float], high: list[float]) -> str:
    return json.dumps({"type": "Box", "dtype": "float32", "shape": [len(low)], "low": low, "high": high})


def read_metadata(identity: str, root: Path | None = None) -> dict[str, Any] | None:
    """The metadata of a dataset on this machine that we wrote; None if there is none, or it is somebody else's."""
    path = folder_of(identity, root) / "data" / METADATA
    if not path.is_file():
        return None
    try:
        metadata = json.loads(path.read_text(encoding="utf-8"))
        return metadata if isinstance(metadata.get(OURS), dict) else None
    except (OSError, ValueError, AttributeError) as error:
        raise SappError(f"{path}: damaged ({one_line(error)}); remove the dataset and make it again") from None


def read(identity: str, name: str, environment: str, physics: str | None, root: Path | None = None) -> Dataset:
    """Read back what ``write`` wrote, bit for bit.

    Args:
        identity: the Minari id.
        name: of the dataset.
        environment: of the dataset.
        physics: of the dataset.
        root: Minari's, by default the usual one.
    """
    import h5py

    metadata = read_metadata(identity, root)
    if metadata is None:
        raise SappError(f"{identity}: no dataset of ours in {root or minari_folder()}; make it first")
    path = folder_of(identity, root) / "data" / DATA
    space = json.loads(metadata["action_space"])
    low, high = np.asarray(space["low"], np.float32), np.asarray(space["high"], np.float32)
    try:
        with h5py.File(path, "r") as file:
            arrays = _gather(file, int(metadata["total_episodes"]), int(metadata["total_steps"]))
    except (OSError, KeyError, RuntimeError, ValueError) as error:
        raise SappError(f"{path}: damaged ({one_line(error)}); remove the dataset and make it again") from None
    extras = {key.removeprefix("infos/"): value for key, value in arrays.items() if key.startswith("infos/")}
    return Dataset(
        observation=arrays["observation"],
        action=arrays["actions"],
        reward=arrays["rewards"],
        next_observation=arrays["next_observation"],
        terminal=arrays["terminations"],
        timeout=arrays["truncations"],
        name=name,
        environment=environment,
        physics=physics,
        action_low=low,
        action_high=high,
        provenance={"loader": "sapp.collect.benchmark", "source": identity, **metadata[OURS]},
        extras=extras,
    )


def _gather(file: Any, episodes: int, steps: int) -> dict[str, np.ndarray]:
    """All episodes' arrays, read into arrays of the final length through HDF5's own functions."""
    from h5py import h5d, h5s

    first = file["episode_0"]
    extras = [f"infos/{key}" for key in first["infos"]] if "infos" in first else []
    names = ["actions", "rewards", "terminations", "truncations", *extras]
    out = {name: np.empty((steps, *first[name].shape[1:]), first[name].dtype) for name in names}
    # an episode has one observation more than steps: read into their own array, then taken apart
    observation = np.empty((steps + episodes, *first["observations"].shape[1:]), first["observations"].dtype)
    starts = np.zeros(episodes + 1, np.int64)
    done = 0
    for number in range(episodes):
        dataset = h5d.open(file.id, f"episode_{number}/observations".encode())
        length = dataset.shape[0] - 1
        if done + length > steps:
            raise ValueError(f"more than {steps} steps")
        dataset.read(h5s.ALL, h5s.ALL, observation[done + number : done + number + length + 1])
        for name in names:
            part = out[name][done : done + length]
            dataset = h5d.open(file.id, f"episode_{number}/{name}".encode())
            if dataset.shape != part.shape:
                raise ValueError(f"episode {number}: {name} has shape {dataset.shape}, not {part.shape}")
            dataset.read(h5s.ALL, h5s.ALL, part)
        done += length
        starts[number + 1] = done + number + 1
    if done != steps:
        raise ValueError(f"{done} steps instead of {steps}")
    last = np.zeros(len(observation), bool)
    last[starts[1:] - 1] = True
    out["observation"] = observation[~last]
    is_first = np.zeros(len(observation), bool)
    is_first[starts[:-1]] = True
    out["next_observation"] = observation[~is_first]
    return out


def make_namespaces(identity: str, root: Path | None = None) -> None:
    """Give the folders above a dataset the small files by which Minari knows them."""
    parts = identity.split("/")[:-1]
    for count in range(1, len(parts) + 1):
        path = (root or minari_folder()) / "/".join(parts[:count]) / NAMESPACE
        if not path.exists():
            write_text(path, "{}")
