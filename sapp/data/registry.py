"""The formats that ``load`` knows, in the order in which it asks them whether a source is theirs.

A package adds its own by an entry point of the group "sapp.loaders" that names a ``Format``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sapp.core.errors import SappError
from sapp.core.files import in_home
from sapp.core.registry import Registry, resolve

if TYPE_CHECKING:
    from sapp.data.dataset import Dataset
    from sapp.data.frames import FrameDataset

NAMES = ("name", "environment")
"""Options that every format takes."""
COMMON = (*NAMES, "physics", "action_low", "action_high", "max_episode_steps", "last_step")
"""Options of every format whose observations are vectors."""


@dataclass(frozen=True)
class Request:
    """What ``load`` was asked for.

    Attributes:
        source: as it was given.
        options: those that were given.
    """

    source: Any
    options: Mapping[str, Any]

    @property
    def text(self) -> str:
        """The source where it is text or a path, else ""."""
        return os.fspath(self.source) if isinstance(self.source, (str, os.PathLike)) else ""

    @property
    def path(self) -> Path:
        """The text as a path."""
        return in_home(self.text)

    def ends_in(self, *endings: str) -> bool:
        """Whether the source is a path with one of these endings, in any case."""
        return bool(self.text) and self.path.name.lower().endswith(endings)


@dataclass(frozen=True)
class Format:
    """How data of one kind is recognised and loaded.

    Attributes:
        accepts: what it takes, in words for messages: "a path ending in .npz".
        recognises: whether a request is for this format; must be quick and import little.
        load: called with the source and the options; "module:function" where importing it is slow.
        options: names of the options it takes; others are refused by ``load``.
        known: names of datasets, for "did you mean".
    """

    accepts: str
    recognises: Callable[[Request], bool]
    load: str | Callable[..., Dataset | FrameDataset]
    options: Sequence[str] = COMMON
    known: Sequence[str] = ()

    def read(self, request: Request, kind: str) -> Dataset | FrameDataset:
        """Load what was asked for; an option that means nothing here is refused."""
        for key in request.options:
            if key not in self.options and key != "progress":
                where = request.text or type(request.source).__name__
                raise SappError(f"{where}: {key} does not apply to {kind}; leave it out")
        chosen = {key: value for key, value in request.options.items() if key in self.options}
        read = resolve(self.load, f"data format {kind!r}") if isinstance(self.load, str) else self.load
        return read(request.source, **chosen)


FORMATS: Registry[Format] = Registry(
    "data format",
    {
        "arrays": "sapp.data.loaders.arrays:ARRAYS_FORMAT",
        "data frames": "sapp.data.loaders.data_frames:FORMAT",
        "npz": "sapp.data.loaders.arrays:NPZ_FORMAT",
        "HDF5": "sapp.data.loaders.d4rl:HDF5_FORMAT",
        "RLlib's JSON": "sapp.data.loaders.rllib_json:FORMAT",
        "image logs": "sapp.data.loaders.frame_files:FORMAT",
        "DQN-Replay image logs": "sapp.data.loaders.dqn_replay:FORMAT",
        "tables": "sapp.data.loaders.parquet_csv:FORMAT",
        "the benchmark's datasets": "sapp.collect.benchmark.format:FORMAT",
        "D4RL names": "sapp.data.loaders.d4rl:NAME_FORMAT",
        "Minari datasets": "sapp.data.loaders.minari:FORMAT",
    },
    group="sapp.loaders",
)
