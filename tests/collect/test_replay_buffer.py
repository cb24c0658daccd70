"""The replay buffer: what is written is what comes back, on disk and on the device."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from sapp.collect.replay_buffer import Log, Steps, append, batch_of, buffer_dataset, device_rows
from sapp.core.errors import SappError
from sapp.envs import make

OBSERVATIONS, ACTIONS = 3, 1


def steps(count: int, seed: int = 0, episode: np.ndarray | None = None) -> Steps:
    rng = np.random.default_rng(seed)
    return Steps(
        observation=rng.normal(size=(count, OBSERVATIONS)).astype(np.float32),
        action=rng.uniform(-2, 2, (count, ACTIONS)).astype(np.float32),
        reward=rng.normal(size=count).astype(np.float32),
        next_observation=rng.normal(size=(count, OBSERVATIONS)).astype(np.float32),
        terminal=(rng.random(count) < 0.2).astype(np.float32),
        timeout=np.zeros(count, np.float32),
        episode=np.zeros(count, np.float32) if episode is None else episode.astype(np.float32),
        log_prob=rng.normal(size=count).astype(np.float32),
    )


def test_a_log_gives_back_what_was_written(tmp_path) -> None:
    path = tmp_path / "buffers" / "one.npy"
    Log.make(path, 20, OBSERVATIONS, ACTIONS)
    assert path.stat().st_blocks * 512 >= 20 * 12 * 4  # space is reserved, not promised
    log = Log(path, OBSERVATIONS, ACTIONS)
    first, second = steps(8), steps(5, seed=1)
    log.write(0, first)
    log.write(8, second)
    log.flush()
    again = Log(path, OBSERVATIONS, ACTIONS)
    for name, one, other in zip(Steps._fields, first, second, strict=True):
        np.testing.assert_array_equal(getattr(again.read(0, 8), name), one)
        np.testing.assert_array_equal(getattr(again.read(8, 13), name), other)
    assert len(again) == 20
    assert not again.read(13, 20).matrix().any()
    np.testing.assert_array_equal(np.load(path)[:8], first.matrix())  # a plain .npy file


def test_a_log_of_another_environment_is_refused(tmp_path) -> None:
    Log.make(tmp_path / "one.npy", 4, OBSERVATIONS, ACTIONS)
    with pytest.raises(SappError, match="not of this environment"):
        Log(tmp_path / "one.npy", OBSERVATIONS + 1, ACTIONS)
    with pytest.raises(SappError, match="cannot open the replay buffer"):
        Log(tmp_path / "other.npy", OBSERVATIONS, ACTIONS)


def test_device_rows_are_scaled_and_padded_and_read_back_as_a_batch() -> None:
    pendulum = make("Pendulum-v1")  # 3 observations, 1 action in ±2
    rows = steps(6)
    padded = device_rows(rows, pendulum, 5, 2)
    buffer = append(jnp.zeros((1, 10, padded.shape[1])), jnp.asarray(padded[None]), jnp.int32(3))
    assert not np.asarray(buffer[0, :3]).any()
    batch = batch_of(buffer[0, 3:9], 5, 2)
    np.testing.assert_array_equal(batch.observation[:, :3], rows.observation)
    np.testing.assert_array_equal(batch.observation[:, 3:], 0)
    np.testing.assert_allclose(batch.action[:, 0], rows.action[:, 0] / 2, rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(batch.action[:, 1:], 0)
    np.testing.assert_array_equal(batch.reward, rows.reward)
    np.testing.assert_array_equal(batch.next_observation[:, :3], rows.next_observation)
    np.testing.assert_array_equal(batch.terminal, rows.terminal)


def test_a_buffer_becomes_a_dataset_episode_by_episode() -> None:
    """Rows of two interleaved episodes and a third: sorted, with one end each, the cut one a time-out."""
    rows = steps(7, episode=np.array([0, 1, 0, 1, 2, 1, 2]))
    rows = rows._replace(terminal=np.float32([0, 0, 1, 0, 0, 0, 0]), timeout=np.float32([0, 0, 0, 0, 0, 1, 0]))
    data = buffer_dataset(rows, make("Pendulum-v1"), "mine")
    order = [0, 2, 1, 3, 5, 4, 6]
    np.testing.assert_array_equal(data.observation, rows.observation[order])
    np.testing.assert_array_equal(data.reward, rows.reward[order])
    np.testing.assert_array_equal(data.extras["log_prob"], rows.log_prob[order])
    np.testing.assert_array_equal(data.terminal, [0, 1, 0, 0, 0, 0, 0])
    np.testing.assert_array_equal(data.timeout, [0, 0, 0, 0, 1, 0, 1])
    assert data.environment == "Pendulum-v1"
    np.testing.assert_array_equal(data.action_high, [2.0])
