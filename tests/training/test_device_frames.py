"""Frames on the device: batches as the host makes them, and uploads that arrive as they were sent."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sapp.core.errors import SappError
from sapp.data.frames import FrameDataset
from sapp.training import device_frames
from sapp.training.device_frames import DeviceFrames


def numbered(lengths: list[int], ends: str, first: int, name: str) -> FrameDataset:
    """Episodes that end in t(erminal) or o (time-out); row r shows r + ``first`` everywhere, and its reward is r."""
    count = sum(lengths)
    last = np.cumsum(lengths) - 1
    terminal, timeout = (np.isin(np.arange(count), last[[e == kind for e in ends]]) for kind in "to")
    frames = np.broadcast_to((first + np.arange(count, dtype=np.uint8))[:, None, None], (count, 8, 8)).copy()
    return FrameDataset(
        frames, np.arange(count) % 3, np.arange(count), terminal, timeout, num_actions=3, stack=3, name=name
    )


ONE, TWO = numbered([3, 2, 4], "tot", 10, "one"), numbered([5, 6], "oo", 100, "two")


def test_batches_are_the_hosts_and_leave_out_what_has_no_successor() -> None:
    data = DeviceFrames.of([ONE, TWO])
    assert data.frames.nbytes == ONE.frames.nbytes + TWO.frames.nbytes
    draw = jax.jit(lambda number, key: (data.draw(number, key, 500), data.batch(number, key, 500)))
    for number, (dataset, offset) in enumerate([(ONE, 0), (TWO, len(ONE))]):
        (rows, starts), batch = draw(number, jax.random.PRNGKey(number))
        own = np.asarray(rows) - offset
        assert set(own) == set(dataset.sampled_rows.tolist())
        assert set(np.asarray(starts) - offset) == set(dataset.episode_starts.tolist())
        np.testing.assert_array_equal(batch.observation, dataset.stacks(own))
        inside = ~dataset.terminal[own]
        np.testing.assert_array_equal(np.asarray(batch.next_observation)[inside], dataset.stacks(own[inside] + 1))
        np.testing.assert_array_equal(batch.initial_observation, dataset.stacks(np.asarray(starts) - offset))
        np.testing.assert_array_equal(batch.reward, dataset.reward[own])
        np.testing.assert_array_equal(batch.action, dataset.action[own])
        np.testing.assert_array_equal(batch.terminal, dataset.terminal[own])
        assert batch.observation.dtype == jnp.uint8


def test_large_uploads_are_compared_with_what_was_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that went elsewhere (an address cut to 32 bits) are found, whichever part they are of."""
    rng = np.random.default_rng(0)
    parts = [rng.integers(0, 256, (size, 3, 2)).astype(np.uint8) for size in (40, 70)]
    monkeypatch.setattr(device_frames, "LARGE", 100)
    monkeypatch.setattr(device_frames, "BLOCK", 6 * 8)
    np.testing.assert_array_equal(device_frames.upload(parts), np.concatenate(parts))
    put = device_frames._put
    monkeypatch.setattr(device_frames, "_put", lambda buffer, block, first: put(buffer, block, first % 64))
    with pytest.raises(SappError, match=r"did not arrive on the device as they were sent \(row 0 first\).*--stream"):
        device_frames.upload(parts)
