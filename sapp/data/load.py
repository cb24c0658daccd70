"""One call for every kind of data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from sapp.core.errors import SappError, did_you_mean
from sapp.core.files import in_home
from sapp.data.dataset import Dataset
from sapp.data.environment_names import typed_environment
from sapp.data.frames import FrameDataset
from sapp.data.registry import FORMATS, NAMES, Request

if TYPE_CHECKING:
    from sapp.data.columns import Given


def load(
    source: Any,
    *,
    name: str | None = None,
    environment: str | None = None,
    physics: str | None = None,
    action_low: ArrayLike | None = None,
    action_high: ArrayLike | None = None,
    max_episode_steps: int | None = None,
    last_step: str | None = None,
    columns: Given = None,
    mirror: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Dataset | FrameDataset:
    """Load a dataset from whatever holds it.

    Args:
        source: a path (.hdf5, .h5, .parquet, .csv, .csv.gz, .npz), a D4RL name (hopper-medium-v2: downloaded), a name
            of the benchmark (hopper-medium: made on this machine), a Minari id (with or without "minari:" in front), a
            folder of Parquet files that make one log, a folder of image logs (DQN-Replay shards, read into memory, or
            one of sapp's own, mapped), a dictionary of arrays, a pandas, polars or Arrow table, or a dataset, which is
            returned as it is. Image logs come as a ``FrameDataset``. Installed packages may add formats, see
            ``sapp.data.registry``.
        name: overrides the one taken from the source.
        environment: overrides the one taken from the source; "module:Id" imports the module.
        physics: overrides the one taken from the source.
        action_low: overrides the bounds taken from the source.
        action_high: overrides the bounds taken from the source.
        max_episode_steps: step limit, to find time-outs that the source does not mark.
        last_step: "end" where every episode really ended at its last row, "drop" to leave out last rows whose next
            state is not known; see ``Dataset.from_arrays``.
        columns: for tables, data frames and arrays: a ``Columns``, a dictionary, the path of a TOML file,
            or KEY=VALUE words.
        mirror: for D4RL names, where to download from instead of the published address.
        progress: called with bytes done and bytes in all while a D4RL file is downloaded, with transitions while a
            dataset of the benchmark is made; without it, stderr shows how far that is.

    Examples:
        >>> import numpy as np
        >>> import sapp
        >>> arrays = {"observations": np.zeros((4, 3)), "actions": np.zeros((4, 1)), "rewards": np.ones(4)}
        >>> data = sapp.load({**arrays, "terminals": [0, 1, 0, 1]}, name="mine")
        >>> data.name, data.observation_size, data.episode_returns.tolist()
        ('mine', 3, [2.0, 2.0])
    """
    every = {
        "name": name, "environment": typed_environment(environment), "physics": physics, "action_low": action_low,
        "action_high": action_high, "max_episode_steps": max_episode_steps, "last_step": last_step,
        "columns": columns, "mirror": mirror, "progress": progress,
    }  # fmt: skip
    every["columns"] = None if columns == [] else columns
    options = {key: value for key, value in every.items() if value is not None}
    if isinstance(source, (Dataset, FrameDataset)):
        return with_options(source, options)
    if isinstance(source, str | Path):
        text = str(source)
        if "://" in text:
            raise SappError(f"{text}: is an address; download the file first, and give its path")
        source = str(in_home(text)) if text.startswith("~") else source
    request = Request(source, options)
    for kind in FORMATS:
        if FORMATS[kind].recognises(request):
            return FORMATS[kind].read(request, kind)
    raise _unknown(request)


def load_vectors(source: Any, **options: Any) -> Dataset:
    """Load a dataset whose observations are vectors; says so where they are images. Arguments are those of ``load``."""
    data = load(source, **options)
    if isinstance(data, FrameDataset):
        raise SappError(f"{data.name}: its observations are images; this takes data whose observations are vectors")
    return data


def with_options(dataset: Dataset | FrameDataset, options: Mapping[str, Any]) -> Dataset | FrameDataset:
    """A dataset that is there already under another name, environment or bounds; other options are refused."""
    chosen = {key: value for key, value in options.items() if key != "progress"}
    for key in chosen:
        if isinstance(dataset, FrameDataset) and key not in NAMES:
            raise SappError(f"{dataset.name}: {key} does not apply to image logs; leave it out")
        if key in ("max_episode_steps", "last_step", "columns", "mirror"):
            raise SappError(
                f"{dataset.name}: {key} is for files; a Dataset already knows its columns and where episodes end"
            )
    return replace(dataset, **chosen) if chosen else dataset


def _unknown(request: Request) -> SappError:
    """What to say of a source that no format recognises."""
    accepted = f"give {', '.join(FORMATS[kind].accepts for kind in FORMATS)}, or a Dataset"
    if not request.text:
        return SappError(f"cannot load a {type(request.source).__name__}; {accepted}")
    if request.path.is_dir():
        if any(each.name.lower().endswith((".csv", ".csv.gz", ".tsv")) for each in request.path.iterdir()):
            return SappError(
                f"{request.text}: is a folder of CSV files, of which only one is read at a time: give one, or write "
                f"them as one file with a column for the episode, or as Parquet"
            )
        return SappError(f"{request.text}: is a directory without anything that can be loaded; {accepted}")
    if request.path.exists():
        frame = "what pandas or polars can read can be given as a data frame"
        return SappError(f"{request.text}: unknown file ending {request.path.suffix!r}; {accepted}; {frame}")
    known = [name for kind in FORMATS for name in FORMATS[kind].known]
    folder = request.path.parent
    if request.path.suffix and folder.is_dir():
        known += [str(folder / each.name) if folder != Path() else each.name for each in folder.iterdir()]
    if near := did_you_mean(request.text, known):
        return SappError(f"{request.text}: no such file or dataset{near}")
    return SappError(f"{request.text}: no such file or dataset; {accepted}")
