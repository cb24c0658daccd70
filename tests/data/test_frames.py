from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from frame_logs import make_log, naive_stack

from sapp.core.errors import SappError
from sapp.data.frames import FrameDataset, stacked

LENGTHS, ENDS = [6, 1, 3, 2, 1, 5], [True, True, False, True, False, False]


def test_stacks_of_a_small_log_by_hand():
    frames = np.arange(1, 8, dtype=np.uint8)[:, None, None]
    flags = np.array([0, 0, 1, 0, 0, 0, 0])
    data = FrameDataset(frames, np.zeros(7, int), np.ones(7), flags, np.zeros(7), 2)
    expected = [[0, 0, 0, 1], [0, 0, 1, 2], [0, 1, 2, 3], [0, 0, 0, 4], [0, 0, 4, 5], [0, 4, 5, 6], [4, 5, 6, 7]]
    assert data.stacks(range(7))[:, :, 0, 0].tolist() == expected
    assert data.step.tolist() == [0, 1, 2, 0, 1, 2, 3]
    assert data.sampled_rows.tolist() == [0, 1, 2, 3, 4, 5]  # row 6 is cut and has no successor
    assert data.timeout.tolist() == [False] * 6 + [True]
    assert data.episode_returns.tolist() == [3, 4]
    assert data.sampled_rows.dtype == data.step.dtype == np.int32


@pytest.mark.parametrize("stack", [1, 2, 4, 7])
def test_stacks_match_a_naive_walk_on_host_and_device(stack):
    data = make_log(LENGTHS, ENDS, stack=stack)
    expected = np.stack([naive_stack(data, row) for row in range(len(data))])
    rows = jnp.arange(len(data), dtype=jnp.int32)
    gathered = jax.jit(stacked, static_argnums=3)(data.frames, data.step, rows, stack)
    assert gathered.dtype == jnp.uint8
    np.testing.assert_array_equal(gathered, expected)
    np.testing.assert_array_equal(data.stacks(np.arange(len(data))), expected)


def test_stacks_inside_scan_and_vmap():
    data = make_log(LENGTHS, ENDS)
    rows = jax.random.randint(jax.random.key(0), (5, 3, 8), 0, len(data))

    def step(carry, batch):
        return carry, jax.vmap(lambda one: stacked(data.frames, data.step, one, 4))(batch)

    _, found = jax.jit(lambda rows: jax.lax.scan(step, 0, rows))(rows)
    expected = np.stack([naive_stack(data, int(row)) for row in np.asarray(rows).reshape(-1)])
    np.testing.assert_array_equal(found.reshape(expected.shape), expected)


def test_successors_of_sampled_rows_stay_in_the_episode():
    data = make_log(LENGTHS, ENDS)
    going = data.sampled_rows[~data.terminal[data.sampled_rows]]
    following = np.asarray(stacked(data.frames, data.step, jnp.asarray(going) + 1, 4))
    episode = np.repeat(np.arange(data.num_episodes), data.episode_lengths)
    assert (episode[going] == episode[going + 1]).all()
    # The successor is the observation moved on by one frame.
    np.testing.assert_array_equal(following[:, :-1], data.stacks(going)[:, 1:])
    np.testing.assert_array_equal(following[:, -1], data.frames[going + 1])
    assert not np.isin(np.flatnonzero(data.timeout), data.sampled_rows).any()
    assert np.isin(np.flatnonzero(data.terminal), data.sampled_rows).all()


def test_a_million_frames_cost_less_than_a_tenth_more_than_their_bytes():
    # 84×84 like Atari's; bytes a row do not depend on the number of rows.
    rows = 2000
    frames = np.zeros((rows, 84, 84), np.uint8)
    ends = np.arange(rows) % 100 == 99
    data = FrameDataset(frames, np.zeros(rows, int), np.zeros(rows), ends, np.zeros(rows), 6)
    assert data.frames.base is not None
    assert np.shares_memory(data.frames, frames)
    overhead = data.nbytes / frames.nbytes
    assert overhead == pytest.approx(1 + 18 / 7056, abs=1e-4)


def test_fingerprint_sees_every_array_and_nothing_else():
    data = make_log(LENGTHS, ENDS)
    assert data.fingerprint == make_log(LENGTHS, ENDS, name="other").fingerprint
    fields = {key: np.array(getattr(data, key)) for key in ("frames", "action", "reward", "terminal", "timeout")}
    seen = {data.fingerprint}
    for key, row in (("frames", 3), ("action", 3), ("reward", 3), ("timeout", 3)):
        changed = {name: value.copy() for name, value in fields.items()}
        changed[key][row] = changed[key][row] == 0
        seen.add(FrameDataset(**changed, num_actions=3).fingerprint)
    seen.add(FrameDataset(**fields, num_actions=4).fingerprint)
    seen.add(FrameDataset(**fields, num_actions=3, stack=3).fingerprint)
    assert len(seen) == 7


def test_take_episodes():
    data = make_log(LENGTHS, ENDS)
    part = data.take_episodes([3, 0])
    assert part.episode_lengths.tolist() == [2, 6]
    np.testing.assert_array_equal(part.frames[:2], data.frames[10:12])
    np.testing.assert_array_equal(part.action[2:], data.action[:6])
    assert data.take_episodes(2).size == 7
    with pytest.raises(SappError, match="no episode 6, choose from 0 to 5"):
        data.take_episodes([6])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"frames": np.zeros((7, 2, 2), np.float32)}, "frames are float32"),
        ({"frames": np.zeros((7, 4), np.uint8)}, r"frames are uint8 \(7, 4\)"),
        ({"action": np.full(7, 2)}, "action is 2 at row 0"),
        ({"reward": np.full(7, np.nan)}, "reward is nan at row 0"),
        ({"terminal": np.zeros(6)}, "terminal has 6 rows, frames have 7"),
        ({"stack": 0}, "stack is 0"),
        ({"num_actions": None}, "num_actions is not given"),
        ({"provenance": {"a": object()}}, "provenance must be JSON"),
    ],
)
def test_wrong_input_is_named(changes, message):
    fields = {
        "frames": np.zeros((7, 2, 2), np.uint8), "action": np.zeros(7, int), "reward": np.zeros(7),
        "terminal": np.zeros(7), "timeout": np.zeros(7), "num_actions": 2,
    }  # fmt: skip
    with pytest.raises(SappError, match=message):
        FrameDataset(**{**fields, **changes})


def test_terminal_wins_over_timeout():
    flags = np.array([0, 1, 0, 1])
    data = FrameDataset(np.zeros((4, 1, 1), np.uint8), np.zeros(4, int), np.zeros(4), flags, flags, 1)
    assert not data.timeout.any()
    assert data.sampled_rows.tolist() == [0, 1, 2, 3]
