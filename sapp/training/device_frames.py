"""Image data resident on the device: every frame once, as bytes; stacks are gathered inside the compiled step."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from sapp.core.errors import SappError
from sapp.core.spec import Batch, Spec
from sapp.data.frames import stacked
from sapp.training.feed import Resident

if TYPE_CHECKING:
    from sapp.data.frames import FrameDataset

BLOCK = 1 << 28
"""Bytes brought to the device at a time: a memory map is never read as a whole."""

LARGE = 1 << 31
"""Bytes beyond which an address does not fit into 32 bits: what was uploaded is then compared with what was sent."""

COMPARED = 257
"""Rows of that comparison, spread evenly."""


class DeviceFrames(eqx.Module):
    """Frame datasets one after another, [N, …]: nothing is padded, and members of one dataset share its frames.

    Row numbers are those of the whole. ``sampled`` lists the rows that are drawn as transitions (they have a recorded
    successor or a terminal), ``starts`` the first rows of episodes; dataset d has ``counts[d]`` of each from
    ``offsets[d]`` on.
    """

    frames: Array
    step: Array
    action: Array
    reward: Array
    terminal: Array
    sampled: Array
    sampled_offsets: Array
    sampled_counts: Array
    starts: Array
    start_offsets: Array
    start_counts: Array
    slots: Array
    """Where dataset number d of the run lies: a group holds only the datasets its members use."""

    stack: int = eqx.field(static=True)

    @classmethod
    def of(
        cls, datasets: Sequence[FrameDataset], numbers: Sequence[int] | None = None, total: int | None = None
    ) -> DeviceFrames:
        """Upload datasets; ``numbers`` are theirs among the ``total`` of the run (default: 0, 1, …)."""
        return cls.indexed(datasets, upload([dataset.frames for dataset in datasets]), numbers, total)

    @classmethod
    def indexed(
        cls,
        datasets: Sequence[FrameDataset],
        frames: Array,
        numbers: Sequence[int] | None = None,
        total: int | None = None,
    ) -> DeviceFrames:
        """As ``of``, with the frames given: all of them on the device, or none where they are streamed."""
        numbers = range(len(datasets)) if numbers is None else numbers
        slots = np.zeros(total or len(datasets), np.int32)
        slots[list(numbers)] = np.arange(len(datasets))
        rows = np.cumsum([0, *(len(dataset) for dataset in datasets)])[:-1]

        def whole(arrays: Sequence[np.ndarray], dtype: type) -> Array:
            return jnp.asarray(np.concatenate([np.asarray(array, dtype) for array in arrays]))

        def numbered(arrays: Sequence[np.ndarray]) -> tuple[Array, Array, Array]:
            counts = np.array([len(array) for array in arrays])
            lists = [array + first for array, first in zip(arrays, rows, strict=True)]
            offsets = np.cumsum([0, *counts])[:-1]
            return whole(lists, np.int32), jnp.asarray(offsets, jnp.int32), jnp.asarray(counts, jnp.int32)

        return cls(
            frames,
            whole([dataset.step for dataset in datasets], np.int32),
            whole([dataset.action for dataset in datasets], np.int32),
            whole([dataset.reward for dataset in datasets], np.float32),
            whole([dataset.terminal for dataset in datasets], np.float32),
            *numbered([dataset.sampled_rows for dataset in datasets]),
            *numbered([dataset.episode_starts for dataset in datasets]),
            jnp.asarray(slots),
            datasets[0].stack,
        )

    def draw(self, dataset: Array, key: Array, count: int) -> tuple[Array, Array]:
        """Row numbers of a batch's transitions and of its episode starts, each drawn uniformly with replacement."""
        row_key, start_key = jax.random.split(key)
        slot = self.slots[dataset]
        drawn = jax.random.randint(row_key, (count,), 0, self.sampled_counts[slot])
        begun = jax.random.randint(start_key, (count,), 0, self.start_counts[slot])
        return self.sampled[self.sampled_offsets[slot] + drawn], self.starts[self.start_offsets[slot] + begun]

    def batch(self, dataset: Array, key: Array, count: int, next_action: bool = False) -> Batch:
        """A mini-batch of one dataset, its observations gathered from the frames."""
        return self.at(dataset, *self.draw(dataset, key, count), next_action)

    def batches(self, dataset: Array, drawn: tuple[Array, Array], update: Array, next_action: bool) -> Batch:
        """Batches of members with these datasets."""
        batch = jax.vmap(lambda dataset, rows: self.at(dataset, rows[0], rows[1], next_action))(dataset, drawn)
        # What is computed from frames must not be mixed with how they came here: resident and streamed runs then have
        # equal bits.
        return jax.lax.optimization_barrier(batch)

    def supply(self, draws: Sequence[tuple[int, int]], batch_size: int, stride: int) -> Resident:
        """All of it is on the device."""
        return Resident(self, shares_batches=True)

    def at(self, dataset: Array, rows: Array, starts: Array, next_action: bool = False) -> Batch:
        """The transitions at some rows and the observations of some starts; rows are those of all datasets."""
        if next_action:
            raise TypeError("no algorithm of frames asks for the next logged action")
        # The first frame of a start is the only one of its episode; what a terminal row's successor shows is not used.
        return Batch(
            observation=stacked(self.frames, self.step, rows, self.stack),
            action=self.action[rows],
            reward=self.reward[rows],
            next_observation=stacked(self.frames, self.step, rows + 1, self.stack),
            terminal=self.terminal[rows],
            initial_observation=stacked(self.frames, self.step, starts, self.stack),
        )


def upload(parts: Sequence[np.ndarray]) -> Array:
    """Arrays of frames one after another on the device, at no more than their bytes and one block's."""
    shape = parts[0].shape[1:]
    rows = max(1, BLOCK // max(1, int(np.prod(shape))))
    buffer = jnp.zeros((sum(len(part) for part in parts), *shape), jnp.uint8)
    place = 0
    for part in parts:
        for first in range(0, len(part), rows):
            block = jnp.asarray(np.ascontiguousarray(part[first : first + rows]))
            buffer = _put(buffer, block, jnp.int32(place))
            place += len(block)
    if buffer.size > LARGE:
        _compare(buffer, parts)
    return buffer


def _compare(buffer: Array, parts: Sequence[np.ndarray]) -> None:
    """Refuse a buffer whose rows are not those that were sent: training would go on and learn nothing."""
    rows = np.unique(np.linspace(0, len(buffer) - 1, COMPARED).astype(np.int32))
    part = np.searchsorted(np.cumsum([len(each) for each in parts]), rows, side="right")
    first = np.cumsum([0, *(len(each) for each in parts)])
    sent = np.stack([parts[number][row - first[number]] for number, row in zip(part, rows, strict=True)])
    wrong = np.flatnonzero((np.asarray(_rows(buffer, jnp.asarray(rows))) != sent).any((1, 2)))
    if len(wrong):
        raise SappError(
            f"{len(wrong)} of {len(rows)} frames compared did not arrive on the device as they were sent (row "
            f"{rows[wrong[0]]:,} first): train with --stream, which leaves frames on the host"
        )


@partial(jax.jit, donate_argnums=0)
def _put(buffer: Array, block: Array, first: Array) -> Array:
    return jax.lax.dynamic_update_slice_in_dim(buffer, block, first, axis=0)


@jax.jit
def _rows(buffer: Array, rows: Array) -> Array:
    return buffer[rows]


def frame_spec(dataset: FrameDataset) -> Spec:
    """What a learner is told about a dataset of frames."""
    return Spec.of_frames(dataset.observation_shape, dataset.num_actions, float(np.ptp(dataset.episode_returns)))
