"""Minari datasets of images, such as Atari games."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from sapp.core.errors import SappError
from sapp.data.field_names import FIELD_DOCS
from sapp.data.frames import FrameDataset
from sapp.data.ledger import Column, Kind, Ledger

_MOST = 16
"""Frames of a stack at most; a first dimension above is a height."""


def load_images(stored: Any, identity: str, options: Mapping[str, Any]) -> FrameDataset:
    """Turn an open Minari dataset into frames, each stored once.

    Observations may be single grey frames, (H, W), (H, W, 1) or (1, H, W), or stacks, (stack, H, W), newest last, of
    which the newest is kept; stacks are then padded with zeros at the start of an episode, whatever the recording did.
    Minari stores one observation more than steps: where an episode was truncated, that successor is kept as one more
    row, which is never drawn, with action and reward 0. Minari compresses images with JPEG unless told otherwise, so
    frames may differ a little from what was played.

    Args:
        stored: from ``minari.load_dataset``.
        identity: its id.
        options: name and environment, if they are to be others.
    """
    import minari
    from gymnasium import spaces

    for key in options:
        if key not in ("name", "environment"):
            raise SappError(f"{identity}: {key} does not apply to image logs; leave it out")
    if not isinstance(stored.action_space, spaces.Discrete):
        raise SappError(f"{identity}: actions are {stored.action_space}; image data needs discrete ones")
    stack, height, width = _shape(stored.observation_space.shape, identity)
    room = int(stored.total_steps) + int(stored.total_episodes)
    frames = np.empty((room, height, width), np.uint8)
    action, reward = np.zeros(room, np.int32), np.zeros(room, np.float32)
    terminal, timeout = np.zeros(room, bool), np.zeros(room, bool)
    at = kept = ended_episodes = empty = 0
    for number, episode in enumerate(stored.iterate_episodes()):
        steps = len(episode.rewards)
        if not steps:
            empty += 1
            continue
        images = np.asarray(episode.observations).reshape(-1, stack, height, width)
        if len(images) != steps + 1:
            raise SappError(
                f"{identity}: episode {number} has {len(images)} observations for {steps} steps; Minari stores one "
                f"more than steps, repair that episode"
            )
        ended = bool(episode.terminations[-1])
        rows = steps if ended else steps + 1
        frames[at : at + rows] = images[:rows, -1]
        numbers = np.asarray(episode.actions).reshape(-1).astype(np.int64) - int(stored.action_space.start)
        if numbers.min() < 0 or numbers.max() >= stored.action_space.n:  # before they are made 32 bits wide
            raise SappError(f"{identity}: an action of episode {number} is not in {stored.action_space}; repair it")
        action[at : at + steps] = numbers
        reward[at : at + steps] = episode.rewards
        terminal[at + steps - 1] = ended
        timeout[at + rows - 1] = not ended
        at += rows
        kept += rows - steps
        ended_episodes += ended
    if not at:
        raise SappError(f"{identity}: no episodes in this Minari dataset; give one with at least one step")
    spec = getattr(stored.spec, "env_spec", None)
    return FrameDataset(
        frames[:at],
        action[:at],
        reward[:at],
        terminal[:at],
        timeout[:at],
        num_actions=int(stored.action_space.n),
        stack=stack if stack > 1 else 4,
        name=options.get("name", identity),
        environment=options.get("environment", None if spec is None else spec.id),
        provenance={
            "loader": "minari",
            "source": identity,
            "minari_version": minari.__version__,
            "successors_kept_as_rows": kept,
            "ledger": _account(at, kept, ended_episodes, empty, stack).to_json(),
        },
    )


def minari_columns(
    observations: str, infos: Mapping[str, Any] = MappingProxyType({}), used: Mapping[str, str] = MappingProxyType({})
) -> Ledger:
    """A ledger with the arrays that every episode of Minari's has.

    Args:
        observations: what they are taken for.
        infos: what else was recorded beside them.
        used: what some of it is taken for, by name.
    """
    uses = {
        "observations": observations, "actions": "action", "rewards": "reward", "terminations": FIELD_DOCS["terminal"],
        "truncations": FIELD_DOCS["timeout"],
    }  # fmt: skip
    columns = [Column(name, use) for name, use in uses.items()]
    others = [Column(f"infos/{name}", used.get(name), "" if name in used else "not needed") for name in infos]
    return Ledger(columns=columns + others)


def _account(rows: int, kept: int, ended: int, empty: int, stack: int) -> Ledger:
    """Every observation is a row that was read: that after a termination is never used, that after a truncation is."""
    ledger = minari_columns("frames" if stack == 1 else "frames, the newest of each stack")
    ledger.rows = rows + ended
    if ended:
        ledger.say(
            Kind.DROPPED, f"{ended} observations after a termination, which no target uses, were left out", rows=ended,
            episodes=ended,
        )  # fmt: skip
    if kept:
        ledger.say(
            Kind.CHANGED, f"{kept} observations after a truncation became rows that only follow others", rows=kept,
            episodes=kept,
        )  # fmt: skip
    if empty:
        ledger.say(Kind.DROPPED, f"{empty} episodes without a step were left out", episodes=empty)
    return ledger


def _shape(shape: tuple[int, ...], identity: str) -> tuple[int, int, int]:
    """Frames of an observation, height and width."""
    if len(shape) == 2:
        return 1, shape[0], shape[1]
    if shape[2] == 1:
        return 1, shape[0], shape[1]
    if shape[0] <= _MOST and shape[2] > 3:
        return shape[0], shape[1], shape[2]
    raise SappError(f"{identity}: observations are {shape}; give grey frames (H, W), or stacks of them (stack, H, W)")
