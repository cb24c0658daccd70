"""Batches of image logs that do not fit on the device, gathered by threads ahead of need."""

from __future__ import annotations

import mmap
import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import NamedTuple

import numpy as np

from sapp.core.errors import SappError
from sapp.data.frames import FrameDataset, gather


class Chunk(NamedTuple):
    """K mini-batches of B transitions, in the order a learner takes them; NumPy arrays, contiguous.

    Attributes:
        frames: uint8 [K, B, stack + 1, H, W], oldest first: ``[:, :, :-1]`` are the observations, ``[:, :, 1:]`` their
            successors, so that the frames they share travel to the device once.
        action: int32 [K, B].
        reward: float32 [K, B].
        terminal: bool [K, B]; the last frame is zeros there.
        initial: uint8 [K, B, H, W], first frames of episodes drawn uniformly (the frames before them are zeros); empty,
            [K, 0, H, W], where not asked for.
        rows: int32 [K, B], which rows these are.
    """

    frames: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    terminal: np.ndarray
    initial: np.ndarray
    rows: np.ndarray


class Prefetcher:
    """An endless iterator of ``Chunk``s of a dataset; use it as a context, or close it.

    Rows are drawn uniformly with replacement from ``sampled_rows``. Chunk number n is a function of (seed, n) alone: it
    does not depend on the number of threads, and a run that stopped after n chunks goes on with ``start=n``. Never more
    than ``ahead`` + 1 chunks are held. Frames of a memory map are read from its file one window at a time, so memory
    stays at that whatever the size of the file.

    Args:
        dataset: in memory or mapped.
        batch_size: B.
        batches: K, mini-batches of a chunk.
        seed: of the draws.
        initial: whether episode starts are wanted too.
        ahead: chunks that are made before they are asked for.
        threads: that make them.
        start: number of the first chunk.
    """

    def __init__(
        self,
        dataset: FrameDataset,
        batch_size: int,
        batches: int,
        seed: int,
        *,
        initial: bool = False,
        ahead: int = 2,
        threads: int = 2,
        start: int = 0,
    ) -> None:
        for key, value in {"batch_size": batch_size, "batches": batches, "ahead": ahead, "threads": threads}.items():
            if value < 1:
                raise SappError(f"prefetching: {key} is {value}; it must be 1 or more")
        if not len(dataset.sampled_rows):
            raise SappError(f"{dataset.name}: every row ends an episode by time-out, so there is no transition to draw")
        self._dataset, self._shape, self._seed, self._initial = dataset, (batches, batch_size), seed, initial
        self._windows = Windows(dataset)
        self._next = start
        self._ahead = ahead
        self._pool = ThreadPoolExecutor(threads, "frames")
        self._waiting: deque[Future[Chunk]] = deque()

    def __iter__(self) -> Iterator[Chunk]:
        return self

    def __next__(self) -> Chunk:
        while len(self._waiting) <= self._ahead:
            self._waiting.append(self._pool.submit(self._make, self._next))
            self._next += 1
        return self._waiting.popleft().result()

    def _make(self, number: int) -> Chunk:
        data = self._dataset
        random = np.random.default_rng((self._seed, number))
        rows = data.sampled_rows[random.integers(len(data.sampled_rows), size=self._shape)]
        starts = data.episode_starts[random.integers(data.num_episodes, size=self._shape)]
        if not self._initial:
            starts = starts[:, :0]
        frames = self._windows.read(rows.reshape(-1), data.stack, 1)
        first = self._windows.read(starts.reshape(-1), 1, 0)
        terminal = data.terminal[rows]
        frames[terminal.reshape(-1), -1] = 0
        return Chunk(
            frames=frames.reshape(*rows.shape, *frames.shape[1:]),
            action=data.action[rows],
            reward=data.reward[rows],
            terminal=terminal,
            initial=first.reshape(*starts.shape, *data.frame_shape),
            rows=rows,
        )

    def close(self) -> None:
        """Stop the threads and close the file."""
        for future in self._waiting:
            future.cancel()
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._waiting.clear()
        self._windows.close()

    def __enter__(self) -> Prefetcher:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Windows:
    """Windows of consecutive frames, from memory or straight from the file behind a memory map.

    From a file a window is one read (a page fault at a time would be many), which leaves the process's own memory
    alone.
    """

    def __init__(self, dataset: FrameDataset) -> None:
        self._frames, self._step = dataset.frames, dataset.step
        self._file: int | None = None
        self._path = ""
        if isinstance(self._frames, np.memmap) and self._frames.flags.c_contiguous:
            mapped = self._frames._mmap  # type: ignore[attr-defined]
            # A slice of a map keeps the offset of the whole, so the place in the file comes from the addresses.
            begin = np.frombuffer(mapped, np.uint8, 1).ctypes.data
            origin = self._frames.offset - self._frames.offset % mmap.ALLOCATIONGRANULARITY
            self._origin = origin + self._frames.ctypes.data - begin
            self._path = str(self._frames.filename)
            self._file = os.open(self._path, os.O_RDONLY)

    def read(self, rows: np.ndarray, stack: int, following: int) -> np.ndarray:
        """What ``gather`` gives, read from the file where the frames are one."""
        if self._file is None:
            return gather(self._frames, self._step, rows.astype(np.int64), stack, following)
        total, height, width = self._frames.shape
        out = np.zeros((len(rows), stack + following, height, width), np.uint8)
        back = np.minimum(self._step[rows], stack - 1)
        after = np.minimum(following, total - 1 - rows)
        size = height * width
        flat = out.reshape(len(rows), (stack + following) * size)
        for one, row, behind, ahead in zip(flat, rows.tolist(), back.tolist(), after.tolist(), strict=True):
            window = one[(stack - 1 - behind) * size : (stack + ahead) * size]
            if os.preadv(self._file, [window.data], self._origin + (row - behind) * size) != len(window):
                raise SappError(f"{self._path}: ended while it was read; it was cut short, write it again")
        return out

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
