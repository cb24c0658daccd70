"""One call for every kind of data."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from sapp.core.errors import SappError
from sapp.data import benchmark_names as names
from sapp.data.dataset import Dataset
from sapp.data.frames import FrameDataset
from sapp.data.loaders import d4rl, minari
from sapp.data.loaders import parquet_csv as tables
from sapp.data.loaders.arrays import load_mapping, load_npz
from sapp.data.loaders.dqn_replay import is_dqn_replay, load_dqn_replay
from sapp.data.loaders.files import Options, did_you_mean, given
from sapp.data.loaders.frame_files import is_frames_folder, load_frames
from sapp.data.loaders.table_files import is_parts_folder, no_parts

ACCEPTED = (
    "a path ending in .hdf5, .h5, .parquet, .csv, .csv.gz or .npz, a D4RL name such as hopper-medium-v2, "
    "a benchmark name such as hopper-medium, a Minari id such as minari:mujoco/hopper/medium-v0, a folder of "
    "Parquet files or image logs, a dictionary of arrays, or a Dataset"
)
"""What ``load`` takes, in words."""


def load(
    source: Dataset | FrameDataset | str | os.PathLike[str] | Mapping[str, ArrayLike],
    *,
    name: str | None = None,
    environment: str | None = None,
    physics: str | None = None,
    action_low: ArrayLike | None = None,
    action_high: ArrayLike | None = None,
    max_episode_steps: int | None = None,
    columns: tables.Columns | Mapping[str, Any] | str | Path | None = None,
    mirror: str | None = None,
    progress: d4rl.Progress | None = None,
) -> Dataset | FrameDataset:
    """Load a dataset from whatever holds it.

    Args:
        source: a path (.hdf5, .h5, .parquet, .csv, .csv.gz, .npz), a D4RL name (hopper-medium-v2: downloaded), a name
            of the benchmark (hopper-medium: made on this machine), a Minari id (with or without
            "minari:" in front), a folder of Parquet files that make one log, a folder of image logs (DQN-Replay shards,
            read into memory, or one of sapp's own, mapped), a dictionary of arrays, or a dataset, which is returned as
            it is. Image logs come as a ``FrameDataset``.
        name: in place of the one that follows from the source.
        environment: in place of the one that follows from the source.
        physics: in place of the one that follows from the source.
        action_low: in place of the bounds that follow from the source.
        action_high: in place of the bounds that follow from the source.
        max_episode_steps: step limit, to find time-outs that the source does not mark.
        columns: for Parquet and CSV, see ``Columns``: one, a dictionary, or the path of a TOML file.
        mirror: for D4RL names, where to download from instead of the published address.
        progress: called with bytes done and bytes in all while a D4RL file is downloaded, with transitions while a
            dataset of the benchmark is made.
    """
    options: Options = {
        "name": name,
        "environment": environment,
        "physics": physics,
        "action_low": action_low,
        "action_high": action_high,
        "max_episode_steps": max_episode_steps,
    }
    if isinstance(source, (Dataset, FrameDataset)):
        return _as_is(source, given(options))
    if isinstance(source, Mapping):
        return load_mapping(source, **options)
    if not isinstance(source, (str, os.PathLike)):
        raise SappError(f"cannot load a {type(source).__name__}; give {ACCEPTED}")
    text, path = os.fspath(source), Path(source).expanduser()
    mapped_folder = columns is not None and is_parts_folder(path)
    if path.name.lower().endswith((".parquet", ".csv", ".csv.gz")) or mapped_folder:
        return tables.load_table(path, columns=columns, **options)
    if columns is not None:
        if path.is_dir() and not _holds_images(path):
            raise no_parts(path)
        raise SappError(f"{text}: columns map Parquet and CSV files only; leave the option out")
    if path.suffix.lower() in (".hdf5", ".h5"):
        return d4rl.load_hdf5(path, **options)
    if path.suffix.lower() == ".npz":
        return load_npz(path, **options)
    identity = text.removeprefix("minari:")
    if benchmark := text if names.is_name(text) else names.of_minari(identity):
        return _as_is(_benchmark(benchmark, progress), given(options))
    if text.startswith("minari:"):
        return minari.load_minari(identity, **options)
    if d4rl.is_name(text):
        return d4rl.load_d4rl(text, mirror=mirror, progress=progress, **options)
    if path.exists():
        if path.is_dir():
            return _folder(path, options)
        raise SappError(f"{text}: unknown file ending {path.suffix!r}; give {ACCEPTED}")
    if re.fullmatch(r"[\w./+-]+-v\d+", text):
        if "/" in text or minari.is_local(text):
            return minari.load_minari(text, **options)
        raise SappError(
            f"{text}: no such D4RL or local Minari dataset{did_you_mean(text, d4rl.PUBLISHED)}; give {ACCEPTED}"
        )
    raise SappError(f"{text}: no such file or dataset{did_you_mean(text, d4rl.PUBLISHED)}; give {ACCEPTED}")


def _benchmark(name: str, progress: d4rl.Progress | None) -> Dataset:
    """One of the benchmark's datasets, made on this machine if it is not there yet."""
    from sapp.collect.benchmark.make import load as load_or_make

    return load_or_make(name, progress=progress)


def load_vectors(source: Any, **options: Any) -> Dataset:
    """Load a dataset whose observations are vectors; says so where they are images. Arguments are those of ``load``."""
    data = load(source, **options)
    if isinstance(data, FrameDataset):
        raise SappError(f"{data.name}: its observations are images; this takes data whose observations are vectors")
    return data


def _holds_images(path: Path) -> bool:
    return is_frames_folder(path) or is_dqn_replay(path)


def _folder(path: Path, options: Options) -> Dataset | FrameDataset:
    """A folder of image logs or of Parquet files; the latter may lie deep, so they are looked for last."""
    if _holds_images(path):
        chosen = given(options)
        _only_names(str(path), chosen)
        return load_frames(path, **chosen) if is_frames_folder(path) else load_dqn_replay(path, **chosen)
    if is_parts_folder(path):
        return tables.load_table(path, **options)
    raise no_parts(path)


def _only_names(where: str, options: Mapping[str, Any]) -> None:
    """Image logs have neither physics nor action bounds, and know where their episodes end."""
    for key in options:
        if key not in ("name", "environment"):
            raise SappError(f"{where}: {key} does not apply to image logs; leave it out")


def _as_is(dataset: Dataset | FrameDataset, options: dict[str, Any]) -> Dataset | FrameDataset:
    if isinstance(dataset, FrameDataset):
        _only_names(dataset.name, options)
        return replace(dataset, **options) if options else dataset
    if "max_episode_steps" in options:
        raise SappError(f"{dataset.name}: max_episode_steps is for files; a Dataset already knows where episodes end")
    return replace(dataset, **options) if options else dataset
