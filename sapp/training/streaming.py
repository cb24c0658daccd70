"""Image data too large for the device: it stays on the host, and batches travel in blocks ahead of need.

Which rows a member sees is drawn as it is for resident data, from its key and the number of its update, and what is
gathered for them is the same bytes. So a streamed run has the bits of a resident one, and needs no state of its own to
be resumed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from sapp.core.spec import Batch
from sapp.data.prefetch import Windows
from sapp.training.device_frames import DeviceFrames
from sapp.training.feed import Feed
from sapp.training.step import member_keys

if TYPE_CHECKING:
    from sapp.data.frames import FrameDataset

BLOCK_BYTES = 1 << 28
"""A block of batches is about so large; two of them lie on the device at a time."""
THREADS = 4
"""How many threads read frames of the next block."""


class HostFrames:
    """Frame datasets on the host, in memory or mapped, and on the device only what says which rows are drawn."""

    def __init__(
        self, datasets: Sequence[FrameDataset], numbers: Sequence[int] | None = None, total: int | None = None
    ) -> None:
        height, width = datasets[0].frame_shape
        self.datasets = list(datasets)
        self.index = DeviceFrames.indexed(datasets, jnp.zeros((1, height, width), jnp.uint8), numbers, total)
        self.first_rows = np.cumsum([0, *(len(dataset) for dataset in datasets)])

    def supply(self, draws: Sequence[tuple[int, int]], batch_size: int, stride: int) -> Stream:
        """Brings the members' batches in blocks."""
        return Stream(self, draws, batch_size, stride)


class StreamedFrames(eqx.Module):
    """A block of batches: [S, L, B, …] for S updates from ``first`` on and L different batches of each.

    Members of one dataset and seed draw the same rows, so they share their batches.
    """

    frames: Array
    """uint8 [S, L, B, stack + 1, H, W]: observations and their successors, which share all frames but one."""
    initial: Array
    """uint8 [S, L, B, H, W]: first frames of episodes; those before them are zeros."""
    action: Array
    reward: Array
    terminal: Array
    first: Array
    shared: Array
    """Which of the L batches is each member's."""

    def draw(self, dataset: Array, key: Array, count: int) -> tuple[()]:
        """Nothing: it was drawn when the block was made."""
        return ()

    def batches(self, dataset: Array, drawn: tuple[()], update: Array, next_action: bool) -> Batch:
        """The members' batches [M, B, …] of an update."""
        if next_action:
            raise TypeError("no algorithm of frames asks for the next logged action")
        return jax.lax.optimization_barrier(self.at(update))  # as resident frames have it

    def at(self, update: Array) -> Batch:
        """The members' batches [M, B, …] of an update in the block."""
        place = update - self.first
        frames = self.frames[place][self.shared]
        initial = self.initial[place][self.shared]
        stack = frames.shape[2] - 1
        before = ((0, 0), (0, 0), (stack - 1, 0), (0, 0), (0, 0))
        return Batch(
            observation=frames[:, :, :-1],
            action=self.action[place][self.shared],
            reward=self.reward[place][self.shared],
            next_observation=frames[:, :, 1:],
            terminal=self.terminal[place][self.shared],
            initial_observation=jnp.pad(initial[:, :, None], before),
        )


class Stream:
    """Blocks of a population's batches, the next one made while the device works on the one before."""

    resident, shares_batches = False, False

    def __init__(self, host: HostFrames, draws: Sequence[tuple[int, int]], batch_size: int, stride: int = 1) -> None:
        """``draws`` are the members' datasets and seeds."""
        batches = list(dict.fromkeys(draws))
        self._shared = jnp.asarray([batches.index(pair) for pair in draws], jnp.int32)
        self._host, self._batch_size = host, batch_size
        self.feed: Feed = host.index
        self._datasets = jnp.asarray([dataset for dataset, _ in batches], jnp.int32)
        self._keys = jnp.stack([jax.random.PRNGKey(seed) for _, seed in batches])
        first = host.datasets[0]
        pixels = int(np.prod(first.frame_shape)) * (first.stack + 2)
        fits = max(1, BLOCK_BYTES // (len(batches) * batch_size * pixels))
        self.block = fits - fits % stride if fits >= stride else fits
        """Updates in a block, a whole number of strides (see ``population.STRIDE``) where there is room for one."""
        self._windows = [Windows(dataset) for dataset in host.datasets]
        self._readers = ThreadPoolExecutor(THREADS, "frames")
        self._maker = ThreadPoolExecutor(1, "blocks")
        self._made: dict[tuple[int, int], Future[StreamedFrames]] = {}

    def blocks(self, stream: int, first: int, end: int) -> Iterator[tuple[Feed, int]]:
        """Blocks for the updates from ``first`` to ``end``, and how many of these each holds."""
        while first < end:
            count = min(end, (first // self.block + 1) * self.block) - first
            yield self.take(stream, first), count
            first += count

    def take(self, stream: int, update: int) -> StreamedFrames:
        """The block that holds an update of a stream of randomness (see ``step.member_keys``)."""
        number = update // self.block
        wanted = (stream, number), (stream, number + 1)
        self._made = {key: future for key, future in self._made.items() if key in wanted}
        for key in wanted:
            if key not in self._made:
                self._made[key] = self._maker.submit(self._make, *key)
        return self._made[wanted[0]].result()

    def _make(self, stream: int, number: int) -> StreamedFrames:
        first = number * self.block
        structure = self.block, self._batch_size
        drawn = _draw(structure, self._host.index, self._keys, self._datasets, jnp.int32(stream), jnp.int32(first))
        rows, starts = (np.asarray(each) for each in drawn)
        stack = self._host.datasets[0].stack
        frames, initial = self._read(rows, stack, 1), self._read(starts, 1, 0)
        index, at = self._host.index, jnp.asarray(rows)
        return StreamedFrames(
            jnp.asarray(frames), jnp.asarray(initial[..., 0, :, :]), index.action[at], index.reward[at],
            index.terminal[at], jnp.int32(first), self._shared,
        )  # fmt: skip

    def _read(self, rows: np.ndarray, stack: int, following: int) -> np.ndarray:
        """Windows of frames at rows of the whole, of any shape."""
        flat = rows.reshape(-1)
        bounds = self._host.first_rows
        out = np.empty((len(flat), stack + following, *self._host.datasets[0].frame_shape), np.uint8)

        def part(where: np.ndarray) -> None:
            owner = np.searchsorted(bounds, flat[where], side="right") - 1
            for number in np.unique(owner):
                mine = where[owner == number]
                out[mine] = self._windows[number].read(flat[mine] - bounds[number], stack, following)

        list(self._readers.map(part, np.array_split(np.arange(len(flat)), THREADS)))
        return out.reshape(*rows.shape, *out.shape[1:])

    def close(self) -> None:
        """Stop the threads and close the files."""
        for pool in (self._maker, self._readers):
            pool.shutdown(wait=True, cancel_futures=True)
        for windows in self._windows:
            windows.close()


@partial(jax.jit, static_argnums=0)
def _draw(
    structure: tuple[int, int], index: DeviceFrames, keys: Array, datasets: Array, stream: Array, first: Array
) -> tuple[Array, Array]:
    """Rows and starts [S, L, B] of a block."""
    steps, count = structure

    def one(update: Array, key: Array, dataset: Array) -> tuple[Array, Array]:
        return index.draw(dataset, member_keys(key, stream, update)[0], count)

    batches = jax.vmap(one, (None, 0, 0))
    return jax.vmap(batches, (0, None, None))(first + jnp.arange(steps, dtype=jnp.int32), keys, datasets)
