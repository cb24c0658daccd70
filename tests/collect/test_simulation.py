"""The acting side against what the environment itself does."""

from __future__ import annotations

import numpy as np

from sapp.collect.replay_buffer import Log
from sapp.collect.simulation import EPISODES_A_SEED, Simulation
from sapp.envs import make
from sapp.envs.policies import UniformPolicy

ROWS = 3


def uniform(size: int) -> UniformPolicy:
    return UniformPolicy(-np.ones(size, np.float32), np.ones(size, np.float32))


def test_every_logged_step_is_what_the_environment_does() -> None:
    """Each logged episode, played again alone with its logged actions, gives the logged observations and rewards."""
    simulation = Simulation(make("hopper"), seeds=[5, 9], rows=ROWS)
    members = simulation.play([uniform(3)] * 2, chunk=0, rounds=60)
    alone = make("hopper")
    for seed, steps in zip((5, 9), members, strict=True):
        assert len(steps.reward) == 60 * ROWS
        numbers = np.unique(steps.episode)
        np.testing.assert_array_equal(numbers, np.arange(len(numbers)))  # none left out
        assert len(numbers) > 2 * ROWS  # several episodes ended, or this test would show little
        for number in numbers.astype(int):
            rows = steps.episode == number
            observation = alone.reset(1, 0, np.array([seed * EPISODES_A_SEED + number]))
            ends = steps.terminal[rows] + steps.timeout[rows]
            assert not ends[:-1].any()
            for time, action in enumerate(steps.action[rows]):
                np.testing.assert_array_equal(steps.observation[rows][time], observation[0].astype(np.float32))
                observation, reward, terminal = alone.step(action[None])
                np.testing.assert_array_equal(steps.next_observation[rows][time], observation[0].astype(np.float32))
                assert steps.reward[rows][time] == np.float32(reward[0])
                assert steps.terminal[rows][time] == terminal[0]


def test_time_limits_and_returns() -> None:
    point = make("point")
    simulation = Simulation(point, seeds=[0], rows=ROWS)
    (steps,) = simulation.play([uniform(2)], chunk=0, rounds=120)
    ended = simulation.pop_ended(0)
    assert simulation.pop_ended(0) == []
    over = (steps.terminal + steps.timeout) > 0
    assert len(ended) == over.sum()
    assert (steps.terminal * steps.timeout).max() == 0
    lengths = sorted(length for _, length in ended)
    assert lengths[-1] == point.max_episode_steps
    assert steps.timeout.sum() == sum(length == 50 for length in lengths)
    for number in steps.episode[over]:
        total = steps.reward[steps.episode == number].sum(dtype=np.float64)
        assert any(abs(total - one) < 1e-4 for one, _ in ended)


def test_a_member_experiences_the_same_alone_and_beside_another() -> None:
    pair = Simulation(make("point"), seeds=[4, 7], rows=ROWS).play([uniform(2)] * 2, 3, 40)
    (alone,) = Simulation(make("point"), seeds=[7], rows=ROWS).play([uniform(2)], 3, 40)
    for one, other in zip(pair[1], alone, strict=True):
        np.testing.assert_array_equal(one, other)


def test_restored_rows_go_on_with_the_same_bits(tmp_path) -> None:
    for name, size in (("hopper", 3), ("Pendulum-v1", 1), ("point", 2)):
        first = Simulation(make(name), seeds=[1, 2], rows=ROWS)
        parts = [first.play([uniform(size)] * 2, chunk, 30) for chunk in range(2)]
        logs = []
        for member in range(2):
            path = tmp_path / f"{name}-{member}.npy"
            Log.make(path, 60 * ROWS, first.environment.observation_size, size)
            logs.append(Log(path, first.environment.observation_size, size))
            for chunk, steps in enumerate(parts):
                logs[member].write(chunk * 30 * ROWS, steps[member])
        second = Simulation(make(name), seeds=[1, 2], rows=ROWS)
        second.restore(first.episode, first.elapsed, first.begun, logs, 60 * ROWS)
        np.testing.assert_array_equal(second.total, first.total)
        for one, other in zip(
            first.play([uniform(size)] * 2, 2, 30), second.play([uniform(size)] * 2, 2, 30), strict=True
        ):
            for a, b in zip(one, other, strict=True):
                np.testing.assert_array_equal(a, b)
