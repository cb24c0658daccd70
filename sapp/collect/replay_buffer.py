"""The replay buffer, twice: a log on disk of everything that happened, and what learning needs of it on the device."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from sapp.core.errors import SappError
from sapp.core.spec import Batch
from sapp.data.action_units import to_unit

if TYPE_CHECKING:
    from sapp.data.dataset import Dataset
    from sapp.envs.base import BatchEnvironment


class Steps(NamedTuple):
    """Transitions of one member in the order in which they happened; all float32, [n, …].

    Rows of environments that run side by side follow each other; ``episode`` (counted by start) and the order in time
    separate episodes.

    Attributes:
        observation: [n, O].
        action: [n, A], in the environment's own units.
        reward: [n].
        next_observation: [n, O], the true successor in all rows.
        terminal: [n], 1 where the task ended.
        timeout: [n], 1 at the time limit.
        episode: [n], which episode of the member a row belongs to.
        log_prob: [n], log-density of the action, in the policy's units of [−1, 1].
    """

    observation: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    next_observation: np.ndarray
    terminal: np.ndarray
    timeout: np.ndarray
    episode: np.ndarray
    log_prob: np.ndarray

    @staticmethod
    def widths(observation_size: int, action_size: int) -> tuple[int, ...]:
        """Columns of each field in one matrix, in order."""
        return observation_size, action_size, 1, observation_size, 1, 1, 1, 1

    def matrix(self) -> np.ndarray:
        """All fields side by side, float32 [n, W]."""
        return np.concatenate([np.reshape(field, (len(self.reward), -1)) for field in self], -1, dtype=np.float32)

    @classmethod
    def of_matrix(cls, matrix: np.ndarray, observation_size: int, action_size: int) -> Steps:
        """The fields of a matrix."""
        edges = np.cumsum(cls.widths(observation_size, action_size))[:-1]
        parts = np.split(matrix, edges, axis=-1)
        return cls(*(part if name.endswith(("observation", "action")) else part[:, 0]
                     for name, part in zip(cls._fields, parts, strict=True)))  # fmt: skip


class Log:
    """One member's whole buffer as a .npy file of fixed size, float32 [steps, W]: rows beyond the run's step are 0.

    Space is reserved when the file is made, so a disk that is too small is found before the training, not in it.
    """

    def __init__(self, path: Path, observation_size: int, action_size: int) -> None:
        self.path = path
        self.sizes = observation_size, action_size
        try:
            self._rows = np.lib.format.open_memmap(path, "r+")
        except (OSError, ValueError) as error:
            raise SappError(f"{path}: cannot open the replay buffer ({error}); start the run again") from None
        if self._rows.ndim != 2 or self._rows.shape[1] != sum(Steps.widths(*self.sizes)):
            raise SappError(f"{path}: a buffer of shape {self._rows.shape} is not of this environment")

    @staticmethod
    def make(path: Path, steps: int, observation_size: int, action_size: int) -> None:
        """A new file with room for ``steps`` rows."""
        shape = steps, sum(Steps.widths(observation_size, action_size))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(path, "wb") as file:
                np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": shape})
                size = file.tell() + 4 * shape[0] * shape[1]
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(file.fileno(), 0, size)
                else:  # macOS
                    file.truncate(size)
        except OSError as error:
            path.unlink(missing_ok=True)
            raise SappError(
                f"{path}: cannot reserve {4 * shape[0] * shape[1] / 1e6:,.0f} MB for the replay buffer "
                f"({error.strerror}); free some space or choose another folder"
            ) from None

    def __len__(self) -> int:
        return len(self._rows)

    def write(self, start: int, steps: Steps) -> None:
        """Store rows from position ``start`` on."""
        self._rows[start : start + len(steps.reward)] = steps.matrix()

    def read(self, start: int, stop: int) -> Steps:
        """Rows of a range, copied."""
        return Steps.of_matrix(np.array(self._rows[start:stop]), *self.sizes)

    def flush(self) -> None:
        """Bring everything written so far to the disk."""
        self._rows.flush()


def device_rows(steps: Steps, environment: BatchEnvironment, observations: int, actions: int) -> np.ndarray:
    """What learning needs of rows, padded: observation, action in [−1, 1], reward, next observation, terminal."""
    count = len(steps.reward)
    out = np.zeros((count, 2 * observations + actions + 2), np.float32)
    size = environment.observation_size
    out[:, :size] = steps.observation
    out[:, observations : observations + environment.action_size] = to_unit(
        steps.action, environment.action_low, environment.action_high
    )
    out[:, observations + actions] = steps.reward
    out[:, observations + actions + 1 : observations + actions + 1 + size] = steps.next_observation
    out[:, -1] = steps.terminal
    return out


def batch_of(rows: Array, observations: int, actions: int) -> Batch:
    """Rows [B, W] of a device buffer as a batch."""
    observation = rows[:, :observations]
    after = observations + actions
    return Batch(
        observation=observation,
        action=rows[:, observations:after],
        reward=rows[:, after],
        next_observation=rows[:, after + 1 : after + 1 + observations],
        terminal=rows[:, -1],
        initial_observation=observation,  # nobody asks for episode starts here
    )


@partial(jax.jit, donate_argnums=0)
def append(buffer: Array, rows: Array, position: Array) -> Array:
    """Put rows [M, n, W] into a buffer [M, N, W] from a position on; the buffer is given up, so nothing is copied."""
    return jax.lax.dynamic_update_slice(buffer, rows, (jnp.int32(0), position, jnp.int32(0)))


def episodes_in_order(steps: Steps) -> np.ndarray:
    """Row numbers sorted by episode, time order kept within: how a buffer becomes a dataset."""
    return np.argsort(steps.episode, kind="stable")


def buffer_dataset(
    steps: Steps, environment: BatchEnvironment, name: str, provenance: dict[str, object] | None = None
) -> Dataset:
    """A buffer as a dataset: episodes in the order in which they began, those under way at its end cut there."""
    from sapp.data.dataset import Dataset

    order = episodes_in_order(steps)
    episode = steps.episode[order]
    last = np.append(episode[1:] != episode[:-1], True)
    terminal = steps.terminal[order] > 0
    return Dataset(
        observation=steps.observation[order],
        action=steps.action[order],
        reward=steps.reward[order],
        next_observation=steps.next_observation[order],
        terminal=terminal,
        timeout=last & ~terminal,
        name=name,
        environment=environment.name,
        physics="d4rl" if environment.physics == "d4rl" else None,
        action_low=environment.action_low,
        action_high=environment.action_high,
        provenance=dict(provenance or {}),
        extras={"log_prob": steps.log_prob[order]},
    )
