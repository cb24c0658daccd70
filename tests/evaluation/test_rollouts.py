import numpy as np
import pytest

from sapp.collect.benchmark.shipped import shipped
from sapp.core.errors import SappError
from sapp.core.statistics import mean, standard_error
from sapp.data.normalised_scores import reference
from sapp.envs import make
from sapp.envs.point import controller
from sapp.envs.policies import load_policy
from sapp.evaluation import evaluate, evaluate_one
from sapp.evaluation.rollouts import evaluate_discounted


def linear(weights):
    """One linear policy for each member; weights [members, O, A]."""
    return lambda observation: np.tanh(np.einsum("meo,moa->mea", observation, weights))


def test_lockstep_is_one_by_one():
    weights = np.random.default_rng(0).normal(size=(3, 11, 3)).astype(np.float32)
    environment = make("hopper")
    together = evaluate(linear(weights), environment, 3, 4, seed=9)
    assert together.returns.shape == together.lengths.shape == (3, 4)
    for member in range(3):
        alone = evaluate(linear(weights[[member]]), environment, 1, 4, seed=9)
        np.testing.assert_array_equal(alone.lengths[0], together.lengths[member])
        np.testing.assert_allclose(alone.returns[0], together.returns[member], rtol=1e-6)
    for episode in range(4):
        observation = environment.reset(1, seed=9, episode=np.array([episode]))
        total, terminal, length = 0.0, np.array([False]), 0
        while not terminal[0] and length < 1000:
            action = linear(weights[[1]])(observation.astype(np.float32)[None])[0]
            observation, reward, terminal = environment.step(action)
            total, length = total + reward[0], length + 1
        assert together.lengths[1, episode] == length
        assert together.returns[1, episode] == pytest.approx(total, rel=1e-6)


def test_members_start_alike_and_finished_episodes_rest():
    environment = make("hopper")
    first, seen = [], []

    def act(observation):
        first.append(observation.copy())
        return np.zeros((2, 3, 3), np.float32)

    result = evaluate(act, environment, 2, 3, seed=0, progress=lambda done, limit: seen.append((done, limit)))
    np.testing.assert_array_equal(first[0][0], first[0][1])
    assert len(np.unique(first[0][0], axis=0)) == 3
    np.testing.assert_array_equal(result.returns[0], result.returns[1])
    assert result.lengths.max() == len(first) < 1000  # it stops when the last one has fallen
    shortest = result.lengths[0].argmin()
    resting = [frame[0, shortest] for frame in first[result.lengths[0, shortest] :]]
    assert all(np.array_equal(resting[0], later) for later in resting)
    assert seen == [(step + 1, 1000) for step in range(len(first))]


def test_the_time_limit_ends_an_episode():
    result = evaluate_one(controller, make("point"), 5, seed=0)
    assert result.lengths.tolist() == [50] * 5
    assert result.returns.shape == (5,)
    swing = evaluate_one(lambda seen: np.zeros((len(seen), 1)), make("Pendulum-v1"), 2, seed=0)
    assert swing.lengths.tolist() == [200, 200]


def test_rewards_are_discounted_from_the_second_on():
    """Two controllers on the point task, each episode beside a plain loop."""
    environment, lanes = make("point"), (0.41, -0.7)

    def act(seen):
        return np.stack([controller(each, lane) for each, lane in zip(seen, lanes, strict=True)])

    found = evaluate_discounted(act, environment, 2, 3, seed=4, discount=0.9)
    for member, lane in enumerate(lanes):
        for episode in range(3):
            observation = environment.reset(1, seed=4, episode=np.array([episode]))
            rewards = []
            while len(rewards) < 50:
                observation, reward, terminal = environment.step(controller(observation.astype(np.float32), lane))
                rewards.append(reward[0])
                if terminal[0]:
                    break
            assert found.lengths[member, episode] == len(rewards)
            assert found.returns[member, episode] == pytest.approx(sum(rewards))
            assert found.discounted[member, episode] == pytest.approx(np.dot(0.9 ** np.arange(len(rewards)), rewards))


def test_bad_requests():
    with pytest.raises(SappError, match="at least 1"):
        evaluate(lambda seen: seen, make("point"), 0, 1, seed=0)
    with pytest.raises(SappError, match="another environment"):
        evaluate(lambda seen: seen[..., :1], make("point"), 1, 2, seed=0)
    for members, shapes in ((1, r"\(2, 1\) for 2 observations .* \(2, 2\)"), (3, r"\(3, 2, 1\) for 2 .* \(3, 2, 2\)")):
        with pytest.raises(SappError, match=shapes):
            evaluate(lambda seen: seen[..., :1], make("point"), members, 2, seed=0)
    with pytest.raises(SappError, match=r"shape \(2, 1\) for 2 .* takes \(2,\) \(one whole number"):
        evaluate(lambda seen: np.zeros((1, 2, 1), int), make("CartPole-v1"), 1, 2, seed=0)
    for counts in ((1, 0), (0, 1)):
        with pytest.raises(SappError, match="both must be at least 1"):
            evaluate(lambda seen: seen, make("point"), *counts, seed=0)


@pytest.mark.parametrize(("name", "episodes"), [("hopper", 16), ("halfcheetah", 4), ("walker2d", 6)])
def test_the_medium_policies_earn_what_their_card_says(name, episodes):
    """The card's numbers come from 200 episodes on another machine; their spread is that of few and many."""
    policies, training, card = shipped(name)
    policy, rng = policies[training.medium], np.random.default_rng(0)
    told = next(one for one in card["snapshots"] if one["name"] == training.medium)
    returns = evaluate_one(lambda seen: policy.sample(seen, rng)[0], make(name), episodes, seed=0).returns
    low, high = reference(name)
    error = told["score_error"] * (high - low) / 100.0
    assert abs(mean(returns) - told["return"]) < 3 * error * np.sqrt(1 + card["episodes"] / episodes)


@pytest.mark.parametrize(
    ("name", "file", "episodes", "expected", "error"),
    [
        ("hopper", "policies/d4rl_hopper-medium-v2.npz", 30, 1381, 33),
        ("halfcheetah", "policies/d4rl_halfcheetah-medium-v2.npz", 8, 4801, 30),
        ("walker2d", "policies/d4rl_walker2d-medium-v2.npz", 10, 2984, 177),
        ("hopper", "dope/dope_hopper_online_5.npz", 16, 1895, 86),
    ],
)
def test_genuine_policies_earn_what_they_did(genuine, name, file, episodes, expected, error):
    policy, rng = load_policy(genuine / file), np.random.default_rng(0)
    returns = evaluate_one(lambda seen: policy.sample(seen, rng)[0], make(name), episodes, seed=0).returns
    assert abs(mean(returns) - expected) < 2 * np.hypot(standard_error(returns), error)
