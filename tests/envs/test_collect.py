import numpy as np
import pytest

from sapp.core.errors import SappError
from sapp.envs import make
from sapp.envs.collect import collect
from sapp.envs.policies import UniformPolicy, load_policy


class Countdown:
    """Episodes of very different lengths, known beforehand: episode n lasts `lengths[n]` steps, over 50 is a time-out.

    An observation is (episode number, time).
    """

    name, identity, physics = "countdown", "countdown", ""
    num_actions = action_labels = None
    observation_size, action_size, max_episode_steps = 2, 1, 50
    action_low, action_high = -np.ones(1, np.float32), np.ones(1, np.float32)
    lengths = np.random.default_rng(0).choice([1, 3, 80], size=100_000, p=[0.5, 0.4, 0.1])

    def reset(self, count, seed, episode=None):
        self.state = np.zeros((count, 2))
        self.truncated = np.zeros(count, bool)
        self.steps = 0
        return self.restart(np.arange(count), np.arange(count) if episode is None else episode)

    def restart(self, rows, episode):
        self.state[rows] = np.stack([episode, np.zeros(len(rows))], -1)
        return self.state[rows]

    def step(self, action, active=None):
        self.state[active, 1] += 1
        self.steps += int(active.sum())
        reward = np.where(active, self.state[:, 0] + self.state[:, 1] / 100, 0)
        terminal = active & (self.state[:, 1] >= self.lengths[self.state[:, 0].astype(int)])
        return self.state.copy(), reward, terminal


BOX = UniformPolicy(-np.ones(1), np.ones(1))


@pytest.mark.parametrize("transitions", [1, 2, 49, 50, 51, 1000, 5000])
@pytest.mark.parametrize("batch", [1, 7, 512])
def test_the_record_is_what_one_environment_alone_would_make(transitions, batch):
    environment = Countdown()
    dataset = collect(BOX, environment, transitions, seed=0, batch=batch)
    expected = [
        (number, time)
        for number in range(transitions)
        for time in range(min(environment.lengths[number], environment.max_episode_steps))
    ][:transitions]
    np.testing.assert_array_equal(dataset.observation, np.array(expected, np.float32))
    np.testing.assert_array_equal(dataset.next_observation, dataset.observation + np.array([0, 1]))
    number, time = dataset.observation.astype(int).T
    terminal = time + 1 == environment.lengths[number]
    np.testing.assert_array_equal(dataset.terminal, terminal)
    timeout = (time + 1 == 50) & ~terminal
    timeout[-1] = not terminal[-1]
    np.testing.assert_array_equal(dataset.timeout, timeout)
    np.testing.assert_allclose(dataset.reward, number + (time + 1) / 100, rtol=1e-6)
    assert environment.steps <= 2 * transitions + 50


@pytest.mark.parametrize("batch", [1, 7, 512])
def test_parts_of_whole_episodes_join_into_the_same_sequence(batch):
    environment = Countdown()
    parts, episode, count = [], 0, 0
    for wanted in (1, 300, 49, 1000):
        part = collect(BOX, environment, wanted, seed=0, batch=batch, first_episode=episode, whole=True)
        assert wanted <= len(part) < wanted + environment.max_episode_steps
        episode, count = episode + part.num_episodes, count + len(part)
        parts.append(part)
    alone = collect(BOX, environment, count, seed=0)
    np.testing.assert_array_equal(np.concatenate([part.observation for part in parts]), alone.observation)
    np.testing.assert_array_equal(np.concatenate([part.terminal for part in parts]), alone.terminal)
    np.testing.assert_array_equal(np.concatenate([part.timeout for part in parts]), alone.timeout)


def test_short_episodes_are_not_over_represented(genuine):
    """The first finished of many parallel episodes are the short ones; the first started are not."""
    policy = load_policy(genuine / "policies" / "d4rl_hopper-medium-v2.npz")
    dataset = collect(policy, make("hopper"), 24_000, seed=0, batch=128)
    lengths = dataset.episode_lengths[:-1]
    # D4RL's own hopper-medium-v2: 999906 transitions in 2187 episodes
    assert lengths.mean() == pytest.approx(999_906 / 2187, abs=3 * lengths.std() / np.sqrt(len(lengths)))


def test_locomotion_record_is_sound():
    environment = make("hopper")
    seen = []
    policy = UniformPolicy(environment.action_low, environment.action_high)
    dataset = collect(policy, environment, 3000, seed=1, progress=seen.append)
    assert (dataset.environment, dataset.physics, len(dataset)) == ("hopper", "d4rl", 3000)
    assert dataset.observation.dtype == np.float32
    same = ~(dataset.terminal | dataset.timeout)[:-1]
    np.testing.assert_array_equal(dataset.next_observation[:-1][same], dataset.observation[1:][same])
    assert dataset.terminal.sum() >= dataset.num_episodes - 1
    assert np.abs(dataset.initial_observation[:, 1:]).max() < 0.006
    np.testing.assert_allclose(dataset.extras["log_prob"], -3 * np.log(2), rtol=1e-6)
    assert seen == sorted(seen)
    assert seen[-1] <= 3000
    again = collect(policy, make("hopper"), 3000, seed=1)
    assert again.fingerprint == dataset.fingerprint
    assert collect(policy, make("hopper"), 3000, seed=2).fingerprint != dataset.fingerprint


def test_plain_v4_is_recorded_under_its_gymnasium_name():
    environment = make("hopper", "v4")
    dataset = collect(UniformPolicy(-np.ones(3), np.ones(3)), environment, 10, seed=0)
    assert (dataset.environment, dataset.physics) == ("Hopper-v4", None)
    assert make(dataset.environment, dataset.physics).physics == "v4"


def test_nothing_to_collect():
    with pytest.raises(SappError, match="at least 1"):
        collect(BOX, Countdown(), 0, seed=0)
