"""Minari datasets, by id or by folder."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Unpack
from urllib.error import HTTPError
from urllib.request import Request as Question
from urllib.request import urlopen

import numpy as np

from sapp.core.errors import SappError, did_you_mean, one_line
from sapp.core.extras import install_line, require
from sapp.core.files import in_home
from sapp.data.action_masks import KEY, honoured, place_in
from sapp.data.dataset import Dataset
from sapp.data.environment_names import register_robotics
from sapp.data.field_names import FIELD_DOCS
from sapp.data.frames import FrameDataset
from sapp.data.ledger import Kind, Ledger, positions
from sapp.data.loaders.files import Options, given
from sapp.data.loaders.limits import open_hdf5
from sapp.data.loaders.minari_frames import load_images, minari_columns
from sapp.data.normalised_scores import recorded_references
from sapp.data.registry import Format, Request
from sapp.data.spaces import actions_of, flatten_rows, is_image, observation_size

OURS = "sapp"
"""Key of the metadata under which sapp says how a dataset that it wrote came about."""


def minari_folder() -> Path:
    """Return where Minari keeps datasets: $MINARI_DATASETS_PATH, or ~/.minari/datasets."""
    return in_home(os.environ.get("MINARI_DATASETS_PATH") or "~/.minari/datasets")


def is_local(identity: str) -> bool:
    """Whether a Minari dataset of this id is on this machine; does not import Minari."""
    return (minari_folder() / identity / "data").is_dir()


def load_minari(source: str | Path, **options: Unpack[Options]) -> Dataset | FrameDataset:
    """Load a Minari dataset by its id (downloaded if it is not on this machine) or by its folder.

    Observations are flattened as they are when the environment is played (``sapp.data.spaces``), actions are vectors or
    discrete; bounds come from the action space, reference scores from the metadata. Observations that are images
    (uint8) come as a ``FrameDataset``, see ``sapp.data.loaders.minari_frames``.

    The environment is the Gymnasium id that the dataset names, unless that id with other options than the registered
    ones made the data: then none is known, as another environment would be played. Minari's own
    ``recover_environment()`` makes it, and ``run.evaluate(env=...)`` takes it.

    Args:
        source: an id such as "mujoco/hopper/medium-v0", with or without "minari:" in front, or a folder.
        options: see ``Options``.
    """
    identity = str(source).removeprefix("minari:")
    minari = require("minari", "a Minari dataset")
    folder = in_home(identity)
    if not _is_dataset(folder):
        folder = minari_folder() / identity
        if not _is_dataset(folder):
            _download(minari, identity)
    try:
        if (folder / "data" / "main_data.hdf5").is_file():
            with open_hdf5(folder / "data" / "main_data.hdf5"):
                pass
        stored = minari.MinariDataset(folder / "data")
        if is_image(stored.observation_space):
            return load_images(stored, identity, given(options))
        episodes = [episode for episode in stored.iterate_episodes() if len(episode.rewards)]
        if not episodes:
            raise SappError(f"{identity}: no episodes in this Minari dataset; give one with at least one step")
        return _joined(stored, identity, minari.__version__, episodes, given(options))
    except SappError:
        raise
    except Exception as error:  # whatever h5py, pyarrow or Minari make of a damaged dataset
        raise SappError(f"{identity}: Minari cannot read it ({one_line(error)}); download it again") from None


def _joined(
    stored: Any, identity: str, version: str, episodes: Sequence[Any], options: Mapping[str, Any]
) -> Dataset:
    bounds = options.get("action_low"), options.get("action_high")
    actions = actions_of(stored.action_space, identity, bounds)
    observation_size(stored.observation_space, identity)
    observations = [
        flatten_rows(stored.observation_space, each.observations, "observation", identity) for each in episodes
    ]
    for number, (episode, observation) in enumerate(zip(episodes, observations, strict=True)):
        if len(observation) != len(episode.rewards) + 1:
            raise SappError(
                f"{identity}: episode {number} has {len(observation)} observations for {len(episode.rewards)} steps; "
                f"Minari stores one more than steps, repair that episode"
            )
    notes: dict[str, Any] = {"loader": "minari", "source": identity, "minari_version": version}
    metadata = stored.storage.metadata
    references = [metadata.get("ref_min_score"), metadata.get("ref_max_score")]
    if recorded_references({"reference_scores": references}):
        notes["reference_scores"] = references
    chosen: dict[str, Any] = {"name": Path(identity).name if Path(identity).is_absolute() else identity}
    chosen |= environment_of(metadata.get(OURS), getattr(stored.spec, "env_spec", None), notes)
    taken = np.concatenate([actions.from_rows(each.actions, identity) for each in episodes])
    masks = _masks(stored, episodes, np.concatenate([each[:-1] for each in observations]), taken, actions.num_actions)
    density = _densities(episodes)
    used = {KEY: FIELD_DOCS[KEY]} if KEY in masks else {}
    used |= {"log_prob": FIELD_DOCS["log_prob"]} if density else {}
    chosen |= masks
    if actions.num_actions is None:
        chosen |= {"action_low": actions.low, "action_high": actions.high}
    else:
        chosen |= {"num_actions": actions.num_actions, "action_labels": actions.labels}
    return Dataset.from_arrays(
        np.concatenate([each[:-1] for each in observations]),
        taken,
        np.concatenate([np.asarray(each.rewards) for each in episodes]),
        np.concatenate([np.asarray(each.terminations) for each in episodes]),
        next_observation=np.concatenate([each[1:] for each in observations]),
        # The end of an episode is known from its own arrays, whether or not a truncation was recorded there.
        episode=np.concatenate([np.full(len(each.rewards), number) for number, each in enumerate(episodes)]),
        provenance=notes,
        source=identity,
        extras=density,
        ledger=_account(stored, episodes, len(taken), observations[0].shape[1], used),
        **{**chosen, **options},
    )


def _masks(
    stored: Any, episodes: Sequence[Any], observation: np.ndarray, taken: np.ndarray, count: int | None
) -> dict[str, Any]:
    """Which actions were possible: a part of the observations, or recorded beside them; empty where nothing says so."""
    ours = stored.storage.metadata.get(OURS)
    at = place_in(stored.observation_space, count)
    if at is None and isinstance(ours, dict) and isinstance(ours.get("mask_at"), int):
        at = ours["mask_at"]
    if at is not None:
        return {"mask_at": honoured(observation, taken, at, count)}
    told = [each.infos.get(KEY) if isinstance(each.infos, Mapping) else None for each in episodes]
    rows = [len(each.rewards) + 1 for each in episodes]
    if count is None or not all(
        mask is not None and np.shape(mask) == (row, count) for mask, row in zip(told, rows, strict=True)
    ):
        return {}
    before = np.concatenate([np.asarray(mask)[:-1] for mask in told])
    if honoured(before, taken, 0, count) is None:
        return {}
    return {"action_mask": before, "next_action_mask": np.concatenate([np.asarray(mask)[1:] for mask in told])}


def _densities(episodes: Sequence[Any]) -> dict[str, np.ndarray]:
    """The behaviour's log-probabilities as sapp writes them, one per step; empty where an episode lacks them."""
    told = [each.infos.get("log_prob") if isinstance(each.infos, Mapping) else None for each in episodes]
    fits = (np.shape(np.asarray(value)) == (len(each.rewards),) for value, each in zip(told, episodes, strict=True))
    if not all(fits) or not all(np.asarray(value).dtype.kind == "f" for value in told):
        return {}
    return {"log_prob": np.concatenate([np.asarray(value, np.float32) for value in told])}


def _account(
    stored: Any, episodes: Sequence[Any], rows: int, width: int, used: Mapping[str, str]
) -> Ledger:
    """What became of the arrays of an episode: one more observation than steps, and what is not needed."""
    empty = int(stored.total_episodes) - len(episodes)
    infos = getattr(episodes[0], "infos", None)
    ledger = minari_columns(positions(0, width, "observation"), infos if isinstance(infos, Mapping) else {}, used)
    ledger.rows = rows
    ledger.say(Kind.READ, "the state after a step is its episode's next observation: there is one more than steps")
    for what, space, how in (
        ("observations", stored.observation_space, "flattened"), ("actions", stored.action_space, "numbered")
    ):  # fmt: skip
        if type(space).__name__ != "Box":
            ledger.say(Kind.READ, f"{what} are {' '.join(str(space).split())[:200]}: {how}")
    if empty:
        ledger.say(Kind.DROPPED, f"{empty} episodes without a step were left out", episodes=empty)
    both = sum(bool(each.terminations[-1] and each.truncations[-1]) for each in episodes)
    if both:
        ledger.say(Kind.READ, f"{both} episodes end in a termination and a truncation: the termination counts")
    neither = sum(not (each.terminations[-1] or each.truncations[-1]) for each in episodes)
    if neither:
        ledger.say(Kind.READ, f"{neither} episodes end in neither a termination nor a truncation: they are time-outs")
    return ledger


def environment_of(ours: Any, spec: Any, notes: dict[str, Any]) -> dict[str, str]:
    """The environment's name, and its physics, by what metadata say; ``notes`` gets what kept it from being known."""
    if isinstance(ours, dict):  # written by sapp: "hopper" with D4RL's physics has no Gymnasium id
        kept = {key: ours[key] for key in ("environment", "physics") if isinstance(ours.get(key), str)}
        if "environment" in kept:
            return kept
    if spec is None:
        return {}
    import gymnasium

    register_robotics(spec.id)
    registered = gymnasium.registry.get(spec.id)
    own = {key: value for key, value in spec.kwargs.items() if key != "render_mode"}
    if spec.additional_wrappers or (registered is not None and own != registered.kwargs):
        notes["environment_with_options"] = spec.id
        return {}
    return {"environment": spec.id}


def _is_dataset(folder: Path) -> bool:
    return (folder / "data").is_dir()


def _download(minari: Any, identity: str) -> None:
    local = _local_ids()
    have = f"local ids are {', '.join(local[:10])}" if local else f"there are none in {minari_folder()}"
    try:
        _reach_the_hub()
        minari.download_dataset(identity)
    except Exception as error:  # no network, no such dataset, no huggingface_hub: each has errors of its own
        raise SappError(
            f"{identity}: no such Minari dataset on this machine{did_you_mean(identity, local)}; {have}; and it could "
            f"not be downloaded ({one_line(error)}): where there is a network, {install_line('minari')} and run: "
            f"minari download {identity}"
        ) from None


def _reach_the_hub() -> None:
    """Fail at once where there is no network: the hub's own client retries for half a minute, and says so each time."""
    from huggingface_hub import constants

    with suppress(HTTPError):  # an answer, if not a good one
        urlopen(Question(constants.ENDPOINT, method="HEAD"), timeout=5.0).close()


def _local_ids() -> list[str]:
    root = minari_folder()
    return sorted(each.parent.relative_to(root).as_posix() for each in root.rglob("data") if each.is_dir())


def _recognises(request: Request) -> bool:
    text = request.text
    if text.startswith("minari:") or (text and (request.path / "data" / "metadata.json").is_file()):
        return True
    named = re.fullmatch(r"[\w./+-]+-v\d+", text) is not None and not request.path.exists()
    return named and ("/" in text or is_local(text))


FORMAT = Format("a Minari id such as minari:mujoco/hopper/medium-v0", _recognises, load_minari)
