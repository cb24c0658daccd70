"""Minari datasets that are on this machine, by id."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from sapp.core.errors import SappError, did_you_mean, one_line
from sapp.data.dataset import Dataset
from sapp.data.frames import FrameDataset
from sapp.data.loaders.files import Options, given
from sapp.data.loaders.minari_frames import is_images, load_images
from sapp.data.registry import Format, Request


def minari_folder() -> Path:
    """Return where Minari keeps datasets: $MINARI_DATASETS_PATH, or ~/.minari/datasets."""
    return Path(os.environ.get("MINARI_DATASETS_PATH") or "~/.minari/datasets").expanduser()


def is_local(identity: str) -> bool:
    """Whether a Minari dataset of this id is on this machine; does not import Minari."""
    return (minari_folder() / identity / "data").is_dir()


def load_minari(identity: str, **options: Unpack[Options]) -> Dataset | FrameDataset:
    """Load a local Minari dataset with float observations (Box, or Dict and Tuple of Boxes, flattened) and Box actions.

    Action bounds come from the action space, the environment is the Gymnasium id that the dataset names. Observations
    that are images (uint8) come as a ``FrameDataset``, see ``sapp.data.loaders.minari_frames``.

    Args:
        identity: such as "mujoco/hopper/medium-v0", with or without "minari:" in front.
        options: see ``Options``.
    """
    identity = identity.removeprefix("minari:")
    try:
        import minari
    except ImportError:
        raise SappError(
            "minari is not installed, which Minari datasets need; run: pip install 'sapp[minari]'"
        ) from None
    if not is_local(identity):
        local = _local_ids()
        have = f"local ids are {', '.join(local[:10])}" if local else f"there are none in {minari_folder()}"
        raise SappError(
            f"{identity}: no such Minari dataset on this machine{did_you_mean(identity, local)}; {have}; "
            f"get it with: minari download {identity}"
        )
    try:
        stored = minari.load_dataset(identity)
        action_space, observation_space = stored.action_space, stored.observation_space
        if is_images(observation_space):
            return load_images(stored, identity, given(options))
        episodes = [episode for episode in stored.iterate_episodes() if len(episode.rewards)]
    except SappError:
        raise
    except Exception as error:  # whatever h5py, pyarrow or Minari make of a damaged dataset
        raise SappError(f"{identity}: Minari cannot read it ({one_line(error)}); download it again") from None
    if not episodes:
        raise SappError(f"{identity}: no episodes in this Minari dataset; give one with at least one step")
    bounds = _action_bounds(action_space, identity, given(options))
    observations = [_flat(observation_space, each.observations, "observation", identity) for each in episodes]
    actions = [_flat(action_space, each.actions, "action", identity) for each in episodes]
    for number, (episode, observation) in enumerate(zip(episodes, observations, strict=True)):
        if len(observation) != len(episode.rewards) + 1:
            raise SappError(
                f"{identity}: episode {number} has {len(observation)} observations for {len(episode.rewards)} steps; "
                f"Minari stores one more than steps, repair that episode"
            )
    spec = getattr(stored.spec, "env_spec", None)
    chosen = {"name": identity, "environment": None if spec is None else spec.id, **bounds, **given(options)}
    return Dataset.from_arrays(
        np.concatenate([each[:-1] for each in observations]),
        np.concatenate(actions),
        np.concatenate([np.asarray(each.rewards) for each in episodes]),
        np.concatenate([np.asarray(each.terminations) for each in episodes]),
        next_observation=np.concatenate([each[1:] for each in observations]),
        # The end of an episode is known from its own arrays, whether or not a truncation was recorded there.
        episode=np.concatenate([np.full(len(each.rewards), number) for number, each in enumerate(episodes)]),
        provenance={"loader": "minari", "source": identity, "minari_version": minari.__version__},
        source=identity,
        **chosen,
    )


def _local_ids() -> list[str]:
    root = minari_folder()
    return sorted(each.parent.relative_to(root).as_posix() for each in root.rglob("data") if each.is_dir())


def _action_bounds(space: Any, identity: str, options: dict[str, Any]) -> dict[str, np.ndarray]:
    from gymnasium import spaces

    if not isinstance(space, spaces.Box):
        raise SappError(f"{identity}: actions are {type(space).__name__}, only Box (continuous) actions can be loaded")
    bounds = {"action_low": space.low.reshape(-1), "action_high": space.high.reshape(-1)}
    for key, value in bounds.items():
        if key not in options and not np.isfinite(value).all():
            raise SappError(f"{identity}: the action space has no finite {key}; give the option {key}")
    return bounds


def _flat(space: Any, values: Any, what: str, identity: str) -> np.ndarray:
    """Values of a Box, or of nested Dicts and Tuples of Boxes, as a matrix with a row a step."""
    from gymnasium import spaces

    if isinstance(space, spaces.Dict):
        return np.concatenate([_flat(each, values[key], what, identity) for key, each in space.items()], axis=1)
    if isinstance(space, spaces.Tuple):
        parts = zip(space.spaces, values, strict=True)
        return np.concatenate([_flat(each, value, what, identity) for each, value in parts], axis=1)
    if not isinstance(space, spaces.Box) or not np.issubdtype(space.dtype, np.floating):
        kind = f"{type(space).__name__} of {space.dtype}"
        raise SappError(f"{identity}: {what} is {kind}; only float Box spaces can be loaded")
    array = np.asarray(values)
    return array.reshape(len(array), -1)


def _recognises(request: Request) -> bool:
    text = request.text
    if text.startswith("minari:"):
        return True
    named = re.fullmatch(r"[\w./+-]+-v\d+", text) is not None and not request.path.exists()
    return named and ("/" in text or is_local(text))


FORMAT = Format("a Minari id such as minari:mujoco/hopper/medium-v0", _recognises, load_minari)
