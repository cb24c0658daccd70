"""Streamed blocks hold the batches that resident frames give."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from frame_logs import make_log

from sapp.training import streaming
from sapp.training.device_frames import DeviceFrames
from sapp.training.step import member_keys
from sapp.training.streaming import HostFrames

GAMES = [make_log([5, 7], [True, False], side=8), make_log([9], [True], side=8)]
DRAWS = [(0, 3), (1, 3), (0, 3)]
"""Datasets and seeds of three members, of which the first and the last draw the same."""


def test_a_block_holds_the_batches_of_resident_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    pixels = 8 * 8 * (GAMES[0].stack + 2)
    monkeypatch.setattr(streaming, "BLOCK_BYTES", 5 * 2 * 4 * pixels)  # five updates of two different batches of four
    supply = HostFrames(GAMES).supply(DRAWS, batch_size=4, stride=1)
    assert supply.block == 5
    resident = DeviceFrames.of(GAMES)
    blocks = list(supply.blocks(stream=1, first=3, end=12))
    assert [count for _, count in blocks] == [2, 5, 2]
    update = 3
    for block, count in blocks:
        for _ in range(count):
            found = block.at(jnp.int32(update))
            for number, (dataset, seed) in enumerate(DRAWS):
                keys = member_keys(jax.random.PRNGKey(seed), jnp.int32(1), jnp.int32(update))
                expected = resident.batch(jnp.int32(dataset), keys[0], 4)
                inside = np.asarray(expected.terminal) == 0
                for name in ("observation", "action", "reward", "terminal", "initial_observation"):
                    np.testing.assert_array_equal(getattr(found, name)[number], getattr(expected, name), err_msg=name)
                np.testing.assert_array_equal(
                    found.next_observation[number][inside], expected.next_observation[inside]
                )
            update += 1
    supply.close()


def test_blocks_are_whole_strides_where_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    pixels = 8 * 8 * (GAMES[0].stack + 2)
    monkeypatch.setattr(streaming, "BLOCK_BYTES", 23 * 2 * 4 * pixels)
    for stride, expected in ((1, 23), (10, 20), (50, 23)):
        supply = HostFrames(GAMES).supply(DRAWS, batch_size=4, stride=stride)
        assert supply.block == expected
        supply.close()
