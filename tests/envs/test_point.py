import numpy as np
import pytest

from sapp.core.errors import SappError
from sapp.core.statistics import mean, standard_error
from sapp.envs import REFERENCE, make
from sapp.envs.point import PIT, behaviour_dataset, controller
from sapp.evaluation import evaluate_one


def test_reference_scores_are_those_of_the_two_policies():
    environment, rng = make("point"), np.random.default_rng(0)
    low, high = REFERENCE["point"]
    chance = evaluate_one(lambda seen: rng.uniform(-1, 1, seen.shape), environment, 2000, 0)
    assert mean(chance.returns) == pytest.approx(low, abs=3 * standard_error(chance.returns) + 0.05)
    best = evaluate_one(controller, environment, 500, 0)
    assert mean(best.returns) == pytest.approx(high, abs=0.1)
    assert (best.lengths == 50).all()


def test_logs_leave_room_for_improvement():
    dataset = behaviour_dataset(1000, seed=1)
    assert dataset.num_episodes == 1000
    reckless = dataset.extras["reckless"][dataset.episode_starts]
    assert reckless.mean() == pytest.approx(0.2, abs=0.04)
    returns = dataset.episode_returns
    assert 15 < returns.mean() < 23
    assert returns[reckless].mean() > returns[~reckless].mean() + 4
    assert returns.max() < REFERENCE["point"][1]
    assert 0.05 < dataset.terminal[dataset.episode_ends][reckless].mean() < 0.3
    below = (dataset.observation[:, 1] < PIT[0, 1]).mean()
    above = (dataset.observation[:, 1] > PIT[1, 1]).mean()
    assert below > 2 * above > 0


def test_logs_are_sound_and_reproducible():
    dataset = behaviour_dataset(50, seed=3)
    same = ~(dataset.terminal | dataset.timeout)[:-1]
    np.testing.assert_array_equal(dataset.next_observation[:-1][same], dataset.observation[1:][same])
    inside = ((dataset.next_observation > PIT[0]) & (dataset.next_observation < PIT[1])).all(-1)
    np.testing.assert_array_equal(inside, dataset.terminal)
    assert (dataset.reward[dataset.terminal] == -10).all()
    assert behaviour_dataset(50, seed=3).fingerprint == dataset.fingerprint
    assert behaviour_dataset(50, seed=4).fingerprint != dataset.fingerprint
    with pytest.raises(SappError, match="at least 1"):
        behaviour_dataset(0)


def test_noise_belongs_to_the_episode():
    environment = make("point")
    environment.reset(3, seed=0)
    for _ in range(5):
        both, _, _ = environment.step(np.full((3, 2), 0.2))
    environment.reset(1, seed=0, episode=np.array([2]))
    for _ in range(5):
        alone, _, _ = environment.step(np.full((1, 2), 0.2))
    np.testing.assert_array_equal(alone[0], both[2])


def test_a_row_past_its_limit_says_so():
    environment = make("point")
    environment.reset(1, seed=0)
    for _ in range(50):
        environment.step(np.zeros((1, 2)))
    with pytest.raises(SappError, match="time limit"):
        environment.step(np.zeros((1, 2)))
