"""Atari games in Dopamine's protocol, many at once, through the Arcade Learning Environment."""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sapp.core.errors import SappError
from sapp.core.extras import require
from sapp.envs.base import BoolArray, IntArray, check_seed, cores, generator
from sapp.envs.frames import Frames

MAX_STEPS = 27_000
"""Agent steps of an episode at most: half an hour of play."""

FRAME_SKIP = 4
STICKY = 0.25
SIZE = 84


class Atari:
    """A batch of one Atari game; a `FrameEnvironment`.

    The protocol is Dopamine's: the last action is repeated with probability 0.25 at each of the emulator's frames
    (sticky actions), an agent step is 4 frames, its picture is the larger of the last two frames at each pixel, in grey
    and 84×84; the smallest set of actions that the game knows; losing a life ends nothing; no random no-ops and no
    automatic FIRE at the start; an episode is truncated after 27,000 agent steps. Rewards are clipped to [−1, 1];
    ``gain`` keeps them as they are.

    Emulation, greying, pooling and resizing (by area, as OpenCV's INTER_AREA) run in ale-py's own C++ threads.

    Args:
        game: "Pong", "ALE/Pong-v5" or "pong".
        threads: emulator threads; by default one per core.
        sticky: chance of a sticky action.
        max_episode_steps: agent steps after which an episode is truncated.
    """

    frame_shape = (SIZE, SIZE)

    def __init__(
        self, game: str, threads: int | None = None, sticky: float = STICKY, max_episode_steps: int = MAX_STEPS
    ) -> None:
        self._rom = rom(game)
        self.name = game
        if not 0 <= sticky < 1:
            raise SappError(f"{game}: the chance of sticky actions is {sticky:g}; it must be from 0 to below 1")
        if max_episode_steps < 1 or (threads is not None and threads < 1):
            raise SappError(f"{game}: max_episode_steps and threads must be at least 1")
        self.max_episode_steps = int(max_episode_steps)
        self._sticky, self._threads = float(sticky), threads or cores()
        self._games: Any = None
        self._seed = 0
        labels = self._make(1).get_action_set()
        self.action_labels = tuple(str(label.name) for label in labels)
        self.num_actions = len(self.action_labels)
        self._forget(0)

    def _make(self, count: int) -> Any:
        import ale_py

        return ale_py.ALEVectorInterface(
            rom_path=Path(self._rom),
            num_envs=count,
            frame_skip=FRAME_SKIP,
            stack_num=1,
            img_height=SIZE,
            img_width=SIZE,
            grayscale=True,
            maxpool=True,
            noop_max=0,
            use_fire_reset=False,
            episodic_life=False,
            life_loss_info=False,
            reward_clipping=False,
            # Steps are counted here; the emulator's own limit, in frames, is out of the way.
            max_episode_steps=(self.max_episode_steps + 10) * FRAME_SKIP,
            repeat_action_probability=self._sticky,
            full_action_space=False,
            batch_size=0,
            num_threads=min(self._threads, count),
            thread_affinity_offset=-1,
            # A row that has ended and is stepped on is reset by the emulator; `step` hides that until it is restarted.
            autoreset_mode="NextStep",
        )

    def _forget(self, count: int) -> None:
        self.truncated = np.zeros(count, bool)
        self.gain = np.zeros(count)
        self.lives = np.zeros(count, np.int32)
        self._terminal = np.zeros(count, bool)
        self._steps = np.zeros(count, np.int64)
        self._frames: Frames = np.zeros((count, SIZE, SIZE), np.uint8)

    def reset(self, count: int, seed: int, episode: IntArray | None = None) -> Frames:
        """Starts `count` rows; see `FrameEnvironment.reset`."""
        self._seed = check_seed(seed)
        if self._games is None or len(self.lives) != count:
            self._games = self._make(count)
        self._forget(count)
        return self.restart(np.arange(count), np.arange(count) if episode is None else np.asarray(episode))

    def restart(self, rows: IntArray, episode: IntArray | None = None) -> Frames:
        """Starts new episodes in some rows; see `FrameEnvironment.restart`.

        A new random stream means loading the ROM again, which is slow; without episode numbers nothing is loaded.
        """
        rows = np.asarray(rows)
        seeds = np.full(len(rows), -1)
        if episode is not None:
            seeds = np.array([generator(self._seed, number).integers(2**31 - 1) for number in np.asarray(episode)])
        frames, info = self._games.reset(rows.astype(np.int64), seeds.astype(np.int64))
        self._frames[rows] = frames[rows, 0]
        self.lives[rows] = info["lives"][rows]
        self.gain[rows], self._steps[rows] = 0, 0
        self.truncated[rows], self._terminal[rows] = False, False
        return self._frames[rows]

    def step(self, action: IntArray) -> tuple[Frames, npt.NDArray[np.float32], BoolArray]:
        """Advances all rows; see `FrameEnvironment.step`."""
        chosen = np.ascontiguousarray(action, np.int64)
        if chosen.shape != self.lives.shape:
            raise SappError(f"{self.name} takes {len(self.lives)} actions, not {chosen.shape}: was it reset for them?")
        if chosen.min(initial=0) < 0 or chosen.max(initial=0) >= self.num_actions:  # the emulator does not check
            raise SappError(f"{self.name}: actions are 0 to {self.num_actions - 1}, one is outside")
        going = ~(self._terminal | self.truncated)
        self._games.send(chosen, np.ones(len(chosen), np.float32))
        frames, gain, terminal, _, info = self._games.recv()
        self._frames[going] = frames[going, 0]
        self.lives[going] = info["lives"][going]
        self.gain = np.where(going, gain, 0).astype(np.float64)
        self._steps += going
        self._terminal |= going & terminal
        self.truncated |= going & ~self._terminal & (self._steps >= self.max_episode_steps)
        return self._frames.copy(), np.clip(self.gain, -1, 1).astype(np.float32), self._terminal.copy()


def make_atari(
    game: str, threads: int | None = None, sticky: float = STICKY, max_episode_steps: int = MAX_STEPS
) -> Atari:
    """Makes a batch of an Atari game; see `Atari`."""
    return Atari(game, threads, sticky, max_episode_steps)


def is_atari(name: str) -> bool:
    """Whether a name is an Atari game's, in ALE's namespace."""
    return name.startswith("ALE/")


def rom(game: str) -> str:
    """The path of a game's ROM, which ale-py carries."""
    roms = require("ale_py.roms", f"Atari game {game}")
    bare = re.sub(r"-v\d+$", "", game.removeprefix("ALE/"))
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", bare).lower()
    known = roms.get_all_rom_ids()
    if snake not in known:
        near = difflib.get_close_matches(snake, known, 1)
        hint = f"did you mean 'ALE/{_camel(near[0])}-v5'?" if near else "give a name such as ALE/Pong-v5"
        raise SappError(f"Atari game {game!r} is unknown: {hint}")
    return str(roms.get_rom_path(snake))


def _camel(snake: str) -> str:
    return "".join(part.capitalize() for part in snake.split("_"))
