"""Logging play in image environments, in DQN-Replay's layout, from many environments at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from sapp.core.errors import SappError
from sapp.core.files import write_text
from sapp.data.loaders.dqn_writer import MEMBER_ROWS, SHARD_ROWS, ShardWriter
from sapp.envs.base import BoolArray, IntArray
from sapp.envs.frames import Act, FrameEnvironment, Frames, Stacker, check_epsilon, explorer, noisy

EPISODES = "episodes.csv"
"""Beside the shards: length, logged (clipped) and true return of every episode, and how it ended."""


class FramesLog:
    """Writes what environments play to a DQN-Replay folder, episode by episode in the order they end.

    Each row of the environment is a stream of its own, so episodes stay in one piece. The frames of an episode under
    way are held compressed (Atari's shrink to a few per cent); the shard is written as episodes end. Use it as
    a context, or close it: episodes under way are then cut, which makes them time-outs.

    Args:
        folder: to write to; it must hold no shards yet, unless ``resume``.
        environment: what is played.
        count: its rows.
        stack: frames of an observation.
        shard_rows: rows of a shard at most.
        name: of the log.
        provenance: how it was made, as JSON.
        level: of gzip.
        threads: that compress.
        resume: go on after the shards that are there.
        again: write what is there once more, from the first shard on.
    """

    def __init__(
        self,
        folder: str | Path,
        environment: FrameEnvironment,
        count: int,
        *,
        stack: int = 4,
        shard_rows: int = SHARD_ROWS,
        name: str | None = None,
        provenance: Mapping[str, Any] | None = None,
        level: int = 1,
        threads: int = 1,
        resume: bool = False,
        again: bool = False,
    ) -> None:
        if count < 1 or threads < 1:
            raise SappError(f"{folder}: a log needs at least 1 row of the environment and 1 thread")
        self._writer = ShardWriter(
            folder,
            environment.frame_shape,
            num_actions=environment.num_actions,
            stack=stack,
            shard_rows=shard_rows,
            name=name,
            environment=environment.name,
            provenance=provenance,
            action_labels=environment.action_labels,
            level=level,
            resume=resume,
            again=again,
        )
        self.folder = self._writer.folder
        self.steps = 0
        self._environment = environment
        self._streams = [_Stream() for _ in range(count)]
        self._buffers = np.empty((count, MEMBER_ROWS, *environment.frame_shape), np.uint8)
        self._pool = ThreadPoolExecutor(threads, "compress")
        self._pending: deque[Future[bytes]] = deque()
        self._open = True
        kept = self.folder / EPISODES
        self._lines = kept.read_text().splitlines()[1:] if resume and kept.is_file() else []

    def add(
        self,
        frames: Frames,
        action: IntArray,
        reward: npt.NDArray[np.floating],
        terminal: BoolArray,
        truncated: BoolArray,
        gain: npt.NDArray[np.floating] | None = None,
    ) -> None:
        """Add one step of every row.

        Args:
            frames: uint8 [count, H, W], newest frames when the actions were chosen: those before the step.
            action: [count].
            reward: [count], clipped, that followed.
            terminal: [count].
            truncated: [count], the episode was cut after this step.
            gain: [count], unclipped, for ``episodes.csv``; the rewards by default.
        """
        true = reward if gain is None else gain
        for row, stream in enumerate(self._streams):
            if not stream.action:
                stream.members.append(self._compress(self._writer.padding()))
            self._buffers[row, stream.filled] = frames[row]
            stream.filled += 1
            stream.action.append(int(action[row]))
            stream.reward.append(float(reward[row]))
            stream.gain += float(true[row])
            if stream.filled == MEMBER_ROWS:
                self._empty(row)
            if terminal[row] or truncated[row]:
                self._end(row, bool(terminal[row]))
        self.steps += len(self._streams)

    def _compress(self, frames: np.ndarray) -> Future[bytes]:
        while len(self._pending) > 2 * len(self._streams):  # raw frames that wait are bounded
            self._pending.popleft().result()
        future = self._pool.submit(self._writer.compress, frames)
        self._pending.append(future)
        return future

    def _empty(self, row: int) -> None:
        stream = self._streams[row]
        if stream.filled:
            stream.members.append(self._compress(self._buffers[row, : stream.filled].copy()))
            stream.filled = 0

    def _end(self, row: int, terminal: bool) -> None:
        self._empty(row)
        stream = self._streams[row]
        action, reward = np.array(stream.action, np.int32), np.array(stream.reward, np.float32)
        self._writer.write([each.result() for each in stream.members], action, reward, terminal, not terminal)
        clipped = float(reward.sum(dtype=np.float64))
        self._lines.append(f"{len(action)},{clipped:g},{stream.gain:g},{'terminal' if terminal else 'timeout'}")
        self._streams[row] = _Stream()

    def close(self) -> Path:
        """Cut the episodes under way, finish the last shard; returns the folder."""
        if self._open:
            for row, stream in enumerate(self._streams):
                if stream.action:
                    self._end(row, False)
            self._writer.close()
            text = "\n".join(["length,clipped_return,return,end", *self._lines])
            write_text(self.folder / EPISODES, text + "\n")
            self._stop()
        return self.folder

    def _stop(self) -> None:
        self._open = False
        self._pool.shutdown(wait=True, cancel_futures=True)

    def __enter__(self) -> FramesLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        elif self._open:
            self._writer.abandon()
            self._stop()


class _Stream:
    """The episode under way in one row of the environment."""

    def __init__(self) -> None:
        self.members: list[Future[bytes]] = []
        self.filled = 0
        self.action: list[int] = []
        self.reward: list[float] = []
        self.gain = 0.0


def log_policy(
    act: Act,
    environment: FrameEnvironment,
    steps: int,
    epsilon: float | Sequence[float],
    seed: int,
    folder: str | Path,
    *,
    rows: int = 16,
    stack: int = 4,
    shard_rows: int = SHARD_ROWS,
    name: str | None = None,
    provenance: Mapping[str, Any] | None = None,
    threads: int = 1,
    progress: Callable[[int], None] | None = None,
) -> Path:
    """Log a policy with ε-noise into a DQN-Replay folder.

    Rows play side by side and start anew as their episodes end, until there are ``steps`` steps in all (rounded up to
    whole steps of all rows); what is under way then is cut.

    Args:
        act: stacks uint8 [rows, stack, H, W] → actions [rows].
        environment: where; its rows are reset.
        steps: to log, in all.
        epsilon: chance of a uniformly random action; where there are several, rows take them in turn, so that each has
            an equal share of the steps.
        seed: of the starts, the environment's noise and the random actions.
        folder: to write to.
        rows: played side by side.
        stack: frames of an observation.
        shard_rows: rows of a shard at most.
        name: of the log.
        provenance: how it was made, as JSON; the environment, ε, seed and steps are added.
        threads: that compress.
        progress: called after each step with the number of steps so far.
    """
    if steps < 1 or rows < 1:
        raise SappError(f"{folder}: steps and rows must be at least 1")
    rows = min(rows, steps)
    levels = np.atleast_1d(np.asarray(epsilon, float))
    for level in levels:
        check_epsilon(level)
    if levels.size == 0 or rows % levels.size:
        raise SappError(f"{folder}: {rows} rows cannot share {levels.size} values of epsilon evenly")
    chances = np.tile(levels, rows // levels.size)
    noise = levels.tolist() if np.ndim(epsilon) else float(levels[0])
    notes = {"policy": "given", "epsilon": noise, "seed": seed, "rows": rows, **(provenance or {})}
    frames = environment.reset(rows, seed)
    random = explorer(seed)
    stacks = Stacker(rows, environment.frame_shape, stack)
    stacks.start(frames)
    with FramesLog(
        folder, environment, rows, stack=stack, shard_rows=shard_rows, name=name, provenance=notes, threads=threads
    ) as log:
        while log.steps < steps:
            action = noisy(act(stacks.stacks), environment, random, chances)
            following, reward, terminal = environment.step(action)
            log.add(frames, action, reward, terminal, environment.truncated, environment.gain)
            frames = following
            stacks.push(frames)
            over = np.flatnonzero(terminal | environment.truncated)
            if len(over):
                frames[over] = environment.restart(over)
                stacks.start(frames[over], over)
            if progress is not None:
                progress(log.steps)
        return log.close()
