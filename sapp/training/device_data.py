"""Datasets resident on the device, and the batches drawn from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from sapp.core.spec import Batch, Spec
from sapp.training.feed import Resident

if TYPE_CHECKING:
    from sapp.data import Dataset


class DeviceData(eqx.Module):
    """Datasets of one shape, stacked and padded: arrays [D, N, …]; padding is never drawn."""

    observation: Array
    action: Array
    reward: Array
    next_observation: Array
    terminal: Array
    starts: Array
    sizes: Array
    start_counts: Array

    slots: Array
    """Where dataset number d of the run lies in the stack: a group holds only the datasets its members use."""

    last: Array
    """Whether a row is the last of its episode: the next row then belongs to another one."""

    elapsed: Array
    """Steps since the row's episode began."""

    @classmethod
    def of(
        cls, datasets: Sequence[Dataset], numbers: Sequence[int] | None = None, total: int | None = None
    ) -> DeviceData:
        """Upload datasets; actions are scaled to [−1, 1], discrete ones are int32 [D, N].

        ``numbers`` are the datasets' numbers among the ``total`` of the run (default: 0, 1, …).
        """
        numbers = range(len(datasets)) if numbers is None else numbers
        slots = np.zeros(total or len(datasets), np.int32)
        slots[list(numbers)] = np.arange(len(datasets))

        def stack(arrays: list[np.ndarray], dtype: type = np.float32) -> Array:
            length = max(len(a) for a in arrays)
            out = np.zeros((len(arrays), length, *arrays[0].shape[1:]), dtype)
            for row, array in zip(out, arrays, strict=True):
                row[: len(array)] = array
            return jnp.asarray(out)

        return cls(
            observation=stack([d.observation for d in datasets]),
            action=stack([d.scaled_action() for d in datasets], np.int32 if datasets[0].discrete else np.float32),
            reward=stack([d.reward for d in datasets]),
            next_observation=stack([d.next_observation for d in datasets]),
            terminal=stack([d.terminal for d in datasets]),
            starts=stack([d.episode_starts for d in datasets], np.int32),
            sizes=jnp.asarray([len(d) for d in datasets], jnp.int32),
            start_counts=jnp.asarray([d.num_episodes for d in datasets], jnp.int32),
            slots=jnp.asarray(slots),
            last=stack([_last(d) for d in datasets], np.bool_),
            elapsed=stack([_elapsed(d) for d in datasets], np.int32),
        )

    def draw(self, dataset: Array, key: Array, count: int) -> tuple[Array, Array]:
        """Row numbers of a batch's transitions and of its episode starts, each drawn uniformly with replacement."""
        row_key, start_key = jax.random.split(key)
        dataset = self.slots[dataset]
        rows = jax.random.randint(row_key, (count,), 0, self.sizes[dataset])
        starts = self.starts[dataset, jax.random.randint(start_key, (count,), 0, self.start_counts[dataset])]
        return rows, starts

    def batch(self, dataset: Array, key: Array, count: int, next_action: bool = False) -> Batch:
        """A mini-batch of one dataset; with ``next_action`` also the logged actions of the rows after its own."""
        return self.at(dataset, *self.draw(dataset, key, count), next_action)

    def batches(self, dataset: Array, drawn: tuple[Array, Array], update: Array, next_action: bool) -> Batch:
        """Batches of members with these datasets."""
        return jax.vmap(lambda dataset, rows: self.at(dataset, rows[0], rows[1], next_action))(dataset, drawn)

    def supply(self, draws: Sequence[tuple[int, int]], batch_size: int, stride: int) -> Resident:
        """All of it is on the device."""
        return Resident(self)

    def at(self, dataset: Array, rows: Array, starts: Array, next_action: bool = False) -> Batch:
        """The transitions at some rows of a dataset and the observations of some of its starts."""
        dataset = self.slots[dataset]
        terminal = self.terminal[dataset, rows]
        return Batch(
            observation=self.observation[dataset, rows],
            action=self.action[dataset, rows],
            reward=self.reward[dataset, rows],
            next_observation=self.next_observation[dataset, rows],
            terminal=terminal,
            initial_observation=self.observation[dataset, starts],
            elapsed=self.elapsed[dataset, rows],
            cut=self.last[dataset, rows] * (1.0 - terminal),
            **(self._next_action(dataset, rows) if next_action else {}),
        )

    def _next_action(self, slot: Array, rows: Array) -> dict[str, Array]:
        last = self.last[slot, rows]
        following = self.action[slot, jnp.where(last, rows, rows + 1)]
        return {"next_action": following, "next_logged": 1.0 - last.astype(jnp.float32)}


def spec_of(dataset: Dataset) -> Spec:
    """What a learner is told about a dataset."""
    mean, std = dataset.observation_mean.copy(), np.maximum(dataset.observation_std, 1e-3)
    if dataset.mask_at is not None:  # a mask stays as it is: an action that was always possible may not be elsewhere
        mask = slice(dataset.mask_at, dataset.mask_at + dataset.action_size)
        mean[mask], std[mask] = 0.0, 1.0
    return Spec(
        observation_size=dataset.observation.shape[1],
        action_size=dataset.action_size,
        discrete=dataset.discrete,
        observation_mean=jnp.asarray(mean, jnp.float32),
        observation_std=jnp.asarray(std, jnp.float32),
        return_span=jnp.float32(np.ptp(dataset.episode_returns)),
        mask_at=dataset.mask_at,
    )


def _last(dataset: Dataset) -> np.ndarray:
    last = np.zeros(len(dataset), bool)
    last[dataset.episode_ends] = True
    return last


def _elapsed(dataset: Dataset) -> np.ndarray:
    starts = np.asarray(dataset.episode_starts)
    rows = np.arange(len(dataset))
    return rows - starts[np.searchsorted(starts, rows, side="right") - 1]
