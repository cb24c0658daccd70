"""Writing your own Minari datasets."""

from __future__ import annotations

import re
from pathlib import Path

from sapp.collect.benchmark import minari_files
from sapp.core.errors import SappError
from sapp.core.files import FolderAside, in_home, sync
from sapp.data.dataset import Dataset
from sapp.data.loaders.minari import minari_folder

_IDENTITY = re.compile(r"(?!./[^/]*$)([\w-]+/)*[\w-]+-v\d+")
"""As Minari reads ids: a namespace has two characters or more."""


def check_identity(identity: str, root: Path | None = None) -> Path:
    """Where a new dataset of this id will be; refused where there cannot be one. Better before it is recorded."""
    if _IDENTITY.fullmatch(identity) is None:
        raise SappError(f"{identity!r} is no Minari id: give one such as cartpole/random-v0")
    target = minari_files.folder_of(identity, root or minari_folder())
    if target.exists():
        raise SappError(f"{target}: exists already; remove it, or choose the next version of the id")
    return target


def save_minari(dataset: Dataset, identity: str, *, description: str = "", root: str | Path | None = None) -> Path:
    """Write a dataset where Minari keeps its own; ``minari.load_dataset(identity)`` and ``sapp.load`` read it.

    Needs no Minari. What is written is the dataset as learners see it: flat observations, and discrete actions as
    numbers from 0.

    Args:
        dataset: what to write; observations as they were logged.
        identity: such as "cartpole/random-v0"; it must not exist yet.
        description: for readers, a sentence or so.
        root: a folder other than Minari's usual one.

    Examples:
        >>> import sapp
        >>> from sapp.envs.point import behaviour_dataset
        >>> sapp.save_minari(behaviour_dataset(episodes=3), "point/behaviour-v0", root="minari").name
        'behaviour-v0'
    """
    base = in_home(root) if root is not None else minari_folder()
    target = check_identity(identity, base)
    if dataset.observation_offset is not None:
        raise SappError(f"{dataset.name}: its observations are standardised; write the data as they were logged")
    ours = {key: getattr(dataset, key) for key in ("environment", "physics", "provenance", "mask_at")}
    try:
        aside = FolderAside(target)
    except OSError as error:
        raise SappError(f"{target}: cannot write there ({error.strerror}); choose another root") from None
    try:
        minari_files.write(aside.path, identity, [dataset], ours, description or f"{dataset.name}, written by sapp")
        minari_files.make_namespaces(identity, base)  # first: what is there once the dataset is can be listed
        aside.path.rename(target)
        sync(target.parent)
    except OSError as error:
        raise SappError(f"{target}: cannot write ({error.strerror}); free some space or choose another root") from None
    finally:
        aside.close()
    return target
