"""The datasets of an experiment: which, by its scale, and where they come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from sapp.core.errors import SappError
from sapp.data import Dataset
from sapp.data.benchmark_names import ENVIRONMENTS
from sapp.data.frames import FrameDataset
from sapp.data.load import load, load_vectors
from sapp.experiments.grid import Scale
from sapp.experiments.paper import TABLE_2

ALL_QUALITIES = ("medium", "medium-replay", "full-replay", "expert", "medium-expert", "random")
SMOKE_DATA = ("point-60", "point-120")
"""Logs of the point task, 60 and 120 episodes: made in a moment, so a whole experiment can be tried anywhere."""


def datasets_of(scale: Scale, environments: Sequence[str], qualities: Sequence[str]) -> tuple[str, ...]:
    """The paper's datasets at a scale: small takes those that match D4RL's by construction (medium, random)."""
    if scale.name == "smoke":
        return SMOKE_DATA
    chosen = [quality for quality in qualities if scale.name == "paper" or quality in ("medium", "random")]
    return tuple(f"{environment}-{quality}" for environment in environments for quality in chosen or qualities)


def all_datasets(scale: Scale) -> tuple[str, ...]:
    """All eighteen, or what a smaller scale has of them."""
    return datasets_of(scale, ENVIRONMENTS, ALL_QUALITIES)


def load_dataset(name: str, folder: Path | None = None) -> Dataset | FrameDataset:
    """A dataset of a grid: from a file in the folder if it has one, else by name as ``sapp.load`` finds or makes it."""
    if name.startswith("catch-"):
        from sapp.envs.catch import behaviour_logs

        return behaviour_logs(int(name.removeprefix("catch-")), name=name)
    if name.startswith("point-"):
        from sapp.envs.point import behaviour_dataset

        return load_vectors(behaviour_dataset(int(name.removeprefix("point-"))), name=name)
    place = find_file(name, folder)
    if name in TABLE_2:
        found = load(place)
        if not isinstance(found, FrameDataset):
            raise SappError(f"{place}: holds no frames")
        return replace(found, name=name)
    return load_vectors(name) if place is None else load_vectors(place, name=name)


def find_file(name: str, folder: Path | None) -> Path | None:
    """Where a dataset lies in a folder: None where its name is enough, ``SappError`` where it is missing."""
    if name.startswith(("catch-", "point-")):
        return None
    if name in TABLE_2:
        return _game_logs(name, folder)
    if folder is None:
        return None
    stems = [name, f"{name}-v2", name.replace("-", "_", 1), f"{name.replace('-', '_')}-v2"]
    for file in (folder / f"{stem}{ending}" for stem in stems for ending in (".npz", ".hdf5", ".h5", ".parquet")):
        if file.is_file():
            return file
    raise SappError(f"{folder}: no file for {name} (such as {name}.npz or {name}-v2.hdf5)")


def _game_logs(name: str, folder: Path | None) -> Path:
    """The log of a game: FOLDER/pong or FOLDER/Pong, itself or what an online DQN left in it."""
    for base in () if folder is None else (folder / name, folder / name.capitalize()):
        for inner in (base / "replay_logs", base):
            if inner.is_dir():
                return inner
    make = f"sapp collect ALE/{name.capitalize()}-v5 --algorithm dqn --out LOGS/{name}"
    where = "no folder of logs was given" if folder is None else f"{folder}: no logs of {name}"
    raise SappError(f"{where}; make them with: {make}, then add --data LOGS")
