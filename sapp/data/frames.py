"""Logs of image problems: every frame stored once, stacks of frames gathered when they are needed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sapp.core.errors import SappError, printable
from sapp.data.array_checks import choices, chosen_actions, flags, vector
from sapp.data.episodes import Episodes, read_only

if TYPE_CHECKING:
    from jax import Array

ARRAYS = ("frames", "action", "reward", "terminal", "timeout")
"""The five per-row arrays, in the order the constructor takes them."""

_BLOCK = 1 << 26
"""Bytes of frames that are looked at together: a memory map is never read as a whole."""


@dataclass(frozen=True, eq=False)
class FrameDataset(Episodes):
    """Steps of whole episodes, one row per step, where an observation is a stack of the newest frames.

    The observation of row t is the ``stack`` frames t − stack + 1 … t, oldest first, with zeros in place of frames from
    before the episode's first; its successor is the same of row t + 1. So a frame is stored once, and never a
    successor.

    Every episode ends in exactly one of two ways, as in ``Dataset``. On a ``terminal`` row the successor is never used.
    A row that ends its episode by ``timeout`` (a step limit, the end of the recording) would need a successor, and
    there is none: such a row is not drawn as a transition. It is still there as the successor of the row before it.
    ``sampled_rows`` lists the rows that are drawn.

    Arrays are held read-only. ``frames`` may be a ``numpy.memmap``, and nothing here ever copies it or reads all of it
    at once.

    Attributes:
        frames: uint8 [N, H, W]; row t is the newest frame of observation t.
        action: int32 [N], from 0 to ``num_actions`` − 1.
        reward: float32 [N].
        terminal: bool [N], stops bootstrapping.
        timeout: bool [N], the episode ends here, the task did not.
        num_actions: how many actions there are.
        stack: how many frames make an observation.
        name: what to call it in messages, tables and run folders.
        environment: "ALE/Pong-v5", "catch", or None when unknown.
        provenance: where it came from, as JSON.
        action_labels: what the actions are called, in order, where they have names.

    Examples:
        >>> import numpy as np
        >>> import sapp
        >>> frames, end = np.zeros((6, 10, 10), np.uint8), np.arange(6) == 5
        >>> data = sapp.FrameDataset(frames, np.arange(6) % 3, np.ones(6), end, 0 * end, num_actions=3, stack=2)
        >>> data.stacks([0, 5]).shape
        (2, 2, 10, 10)
    """

    frames: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    terminal: np.ndarray
    timeout: np.ndarray
    num_actions: int
    stack: int = 4
    name: str = "frames"
    environment: str | None = None
    provenance: dict[str, Any] = field(default_factory=dict)
    action_labels: tuple[str, ...] | None = None

    physics: ClassVar[str | None] = None
    """There is only one simulator of these; the name is ``Dataset``'s."""

    def __post_init__(self) -> None:
        where = self.name
        frames = self.frames
        if not isinstance(frames, np.ndarray) or frames.dtype != np.uint8 or frames.ndim != 3 or 0 in frames.shape[1:]:
            kind = f"{frames.dtype} {frames.shape}" if isinstance(frames, np.ndarray) else type(frames).__name__
            raise SappError(f"{where}: frames are {kind}; they must be a uint8 array (rows, height, width)")
        if self.num_actions is None:
            raise SappError(f"{where}: num_actions is not given; say how many actions there are")
        count, labels = choices(self.num_actions, self.action_labels, where)
        assert count is not None
        if not isinstance(self.stack, (int, np.integer)) or self.stack < 1:
            raise SappError(f"{where}: stack is {self.stack}; it must be a whole number of at least 1")
        terminal = flags(self.terminal, "terminal", where)
        timeout = flags(self.timeout, "timeout", where)
        arrays = {
            "action": chosen_actions(self.action, count, where),
            "reward": vector(self.reward, "reward", where),
            "terminal": terminal,
            "timeout": timeout,
        }
        for key, value in arrays.items():
            if len(value) != len(frames):
                raise SappError(f"{where}: {key} has {len(value)} rows, frames have {len(frames)}; they must be equal")
        if len(frames) == 0:
            raise SappError(f"{where}: there are no rows; give at least one")
        timeout = arrays["timeout"] = timeout & ~terminal
        timeout[-1] = not terminal[-1]
        try:
            json.dumps(self.provenance)
        except (TypeError, ValueError) as error:
            raise SappError(
                f"{where}: provenance must be JSON ({error}); keep text, numbers, lists and dicts"
            ) from None
        for key, value in arrays.items():
            object.__setattr__(self, key, read_only(value))
        view = frames.view()  # a view keeps a memory map a memory map
        view.flags.writeable = False
        object.__setattr__(self, "frames", view)
        object.__setattr__(self, "name", printable(str(where)))
        object.__setattr__(self, "num_actions", count)
        object.__setattr__(self, "stack", int(self.stack))
        object.__setattr__(self, "action_labels", labels)
        object.__setattr__(self, "provenance", dict(self.provenance))

    def __len__(self) -> int:
        return len(self.reward)

    def __repr__(self) -> str:
        height, width = self.frame_shape
        return (
            f"FrameDataset({self.name!r}, {self.size:,} rows, {self.num_episodes:,} episodes, "
            f"{self.stack} frames of {height}×{width}, {self.num_actions} actions, environment {self.environment!r})"
        )

    @property
    def size(self) -> int:
        """Number of rows N."""
        return len(self)

    @property
    def frame_shape(self) -> tuple[int, int]:
        """Height and width of a frame."""
        return int(self.frames.shape[1]), int(self.frames.shape[2])

    @property
    def observation_shape(self) -> tuple[int, int, int]:
        """Frames of an observation, their height and width."""
        return (self.stack, *self.frame_shape)

    @property
    def discrete(self) -> bool:
        """True: actions of games are discrete."""
        return True

    @property
    def action_size(self) -> int:
        """The number of actions, as in ``Dataset``."""
        return self.num_actions

    @property
    def mapped(self) -> bool:
        """Whether the frames lie in a file rather than in memory."""
        return isinstance(self.frames, np.memmap)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays, derived ones too; of a map, what lies in its file counts as well."""
        small = (self.action, self.reward, self.terminal, self.timeout, self.step, self.sampled_rows)
        return self.frames.nbytes + sum(each.nbytes for each in small)

    @cached_property
    def sampled_rows(self) -> np.ndarray:
        """Rows that are drawn as transitions, int32, rising: all but those that end an episode by time-out."""
        return read_only(np.flatnonzero(~self.timeout).astype(np.int32))

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over all arrays, the number of actions and the stack; the same in memory and in a map."""
        return fingerprint(self.frames, self.action, self.reward, self.terminal, self.timeout, self.num_actions,
                           self.stack)  # fmt: skip

    def stacks(self, rows: Sequence[int] | np.ndarray) -> np.ndarray:
        """Observations of some rows on the host, uint8 [B, stack, H, W]; see ``stacked`` for the device."""
        return gather(self.frames, self.step, np.asarray(rows, np.int64), self.stack, 0)

    def take_episodes(self, episodes: int | Sequence[int] | np.ndarray, name: str | None = None) -> FrameDataset:
        """Return the first ``episodes`` episodes, or those with the given indices in the given order, in memory.

        Args:
            episodes: how many, or which.
            name: of the result; this one's name by default.
        """
        rows = self.episode_rows(episodes)
        return replace(
            self,
            **{key: np.asarray(getattr(self, key))[rows] for key in ARRAYS},
            name=name or self.name,
            provenance={**self.provenance, "episodes_taken": int(np.sum(self.step[rows] == 0)), "of_name": self.name},
        )


def stacked(frames: Array, step: Array, rows: Array, stack: int) -> Array:
    """Gather observations on the device: uint8 [B, stack, H, W], oldest frame first.

    Frame k of row t is frames[t − (stack − 1 − k)] where that lies in t's episode, else zeros. Pure JAX: works inside
    jit, scan and vmap. A row past the end (t + 1 of a terminal last row) gives the last row's stack.

    Args:
        frames: uint8 [N, H, W].
        step: int32 [N], the index of a row within its episode.
        rows: int32 [B].
        stack: how many frames.
    """
    import jax.numpy as jnp

    frames, step = jnp.asarray(frames), jnp.asarray(step)
    rows = jnp.minimum(rows, len(frames) - 1)
    back = jnp.arange(stack - 1, -1, -1, dtype=rows.dtype)
    inside = back <= step[rows][:, None]
    found = frames[jnp.maximum(rows[:, None] - back, 0)]
    return jnp.where(inside[..., None, None], found, jnp.zeros((), frames.dtype))


def gather(frames: np.ndarray, step: np.ndarray, rows: np.ndarray, stack: int, following: int) -> np.ndarray:
    """Stacks on the host, with ``following`` more frames behind: uint8 [B, stack + following, H, W].

    With ``following`` = 1, [:, :-1] is the observation and [:, 1:] its successor; the frame behind is whatever the next
    row holds, so on a terminal row it means nothing.
    """
    back = np.arange(stack - 1, -1 - following, -1)
    where = np.clip(rows[:, None] - back, 0, len(frames) - 1)
    out = np.asarray(frames[where])
    out[back > step[rows][:, None]] = 0
    return out


def fingerprint(
    frames: np.ndarray,
    action: np.ndarray,
    reward: np.ndarray,
    terminal: np.ndarray,
    timeout: np.ndarray,
    num_actions: int,
    stack: int,
) -> str:
    """See ``FrameDataset.fingerprint``."""
    digest = hashlib.sha256()
    rows = max(1, _BLOCK // max(1, frames.shape[1] * frames.shape[2]))
    for start in range(0, len(frames), rows):
        digest.update(np.ascontiguousarray(frames[start : start + rows]).data)
    return finish(digest, frames.shape, action, reward, terminal, timeout, num_actions, stack)


def finish(
    digest: hashlib._Hash,
    shape: tuple[int, ...],
    action: np.ndarray,
    reward: np.ndarray,
    terminal: np.ndarray,
    timeout: np.ndarray,
    num_actions: int,
    stack: int,
) -> str:
    """Complete a hash that has seen all frames, in order: whoever writes them can hash them on the way."""
    digest.update(f"frames{tuple(map(int, shape))} actions{num_actions} stack{stack}".encode())
    for value, kind in ((action, "<i4"), (reward, "<f4"), (terminal, "?"), (timeout, "?")):
        digest.update(np.ascontiguousarray(value, kind).tobytes())
    return digest.hexdigest()
