"""Hand-made image logs: every frame says which episode and which step it is of."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sapp.data.frames import FrameDataset


def make_log(lengths: list[int], terminal: list[bool], side: int = 4, **options) -> FrameDataset:
    """Episodes of given lengths; frame t of episode e is filled with 10 e + t + 1 and has a corner of its own."""
    frames, ends, done = [], [], []
    for episode, (length, ended) in enumerate(zip(lengths, terminal, strict=True)):
        for step in range(length):
            frame = np.full((side, side), (10 * episode + step + 1) % 256, np.uint8)
            frame[0, 0] = step % 256
            frames.append(frame)
            ends.append(step == length - 1 and not ended)
            done.append(step == length - 1 and ended)
    count = len(frames)
    return FrameDataset(
        np.stack(frames),
        np.arange(count, dtype=np.int32) % 3,
        (np.arange(count) % 5 - 2).astype(np.float32) / 2,
        np.array(done),
        np.array(ends),
        **{"num_actions": 3, "stack": 4, "name": "log", "environment": "catch", **options},
    )


def naive_stack(data: FrameDataset, row: int) -> np.ndarray:
    """An observation by walking back one row at a time until the episode's first."""
    found: list[np.ndarray] = []
    at: int | None = row
    for _ in range(data.stack):
        if at is None:
            found.insert(0, np.zeros(data.frame_shape, np.uint8))
            continue
        found.insert(0, np.asarray(data.frames[at]))
        begins = at == 0 or data.terminal[at - 1] or data.timeout[at - 1]
        at = None if begins else at - 1
    return np.stack(found)


def resident_bytes() -> int:
    """Memory of this process, mapped files' pages included."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))
