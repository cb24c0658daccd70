"""Any Gymnasium environment, by id, by object and by function."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from sapp.core.errors import SappError
from sapp.envs import make
from sapp.envs.collect import collect
from sapp.envs.policies import ExploringPolicy, uniform_policy
from sapp.evaluation import evaluate_one


class Lock(gymnasium.Env):
    """Two dials; paid 1 per step while both show the combination. Observations are a Dict with a Discrete part."""

    observation_space = spaces.Dict({"dial": spaces.Box(0, 2, (2,), np.float64), "turn": spaces.Discrete(3)})
    action_space = spaces.MultiDiscrete([3, 2])

    def __init__(self) -> None:
        self.turn = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        self.turn, self.wanted = 0, self.np_random.integers([3, 2])
        return self._seen(), {}

    def _seen(self) -> Any:
        return {"dial": self.wanted.astype(np.float64), "turn": self.turn}

    def step(self, action: np.ndarray) -> tuple[Any, float, bool, bool, dict]:
        assert self.action_space.contains(action)
        self.turn += 1
        over = self.turn == 3
        self.turn = min(self.turn, 2)
        return self._seen(), float((action == self.wanted).all()), over, False, {}


class Fence(gymnasium.Env):
    """Pays 1 per step; at the third it breaks off, as the environment's own rules have it: ended by 1, cut off by 0."""

    observation_space, action_space = spaces.Box(0, 3, (1,)), spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        self.count = 0
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        self.count += 1
        over = self.count == 3
        return np.array([self.count], np.float32), 1.0, over and bool(action), over, {}


def open_lock(seen: np.ndarray) -> np.ndarray:
    """The enumerated action of the combination that is seen."""
    return (seen[:, 0] * 2 + seen[:, 1]).astype(np.int64)


def test_cartpole_steps_as_gymnasium_does() -> None:
    environment, alone = make("CartPole-v1"), gymnasium.make("CartPole-v1")
    assert (environment.num_actions, environment.action_size, environment.max_episode_steps) == (2, 2, 500)
    seen = environment.reset(2, seed=0)
    alone.reset(seed=0)
    alone.unwrapped.state = seen[1]
    for action in (0, 1, 1, 0):
        seen, reward, terminal = environment.step(np.array([1, action]))
        expected = alone.step(action)
        np.testing.assert_allclose(seen[1], expected[0], rtol=1e-5)
        assert reward[1] == expected[1]
        assert not terminal.any()


def test_an_episode_that_is_cut_off_from_outside_is_over_and_not_at_its_end() -> None:
    environment = make(Fence, max_episode_steps=9)
    environment.reset(2, seed=0)
    for step in range(3):
        _, _, terminal = environment.step(np.array([0, 1]))
        assert environment.truncated.tolist() == [step == 2, False]
        assert terminal.tolist() == [False, step == 2]
    for action in (0, 1):
        played = evaluate_one(lambda seen, action=action: np.full(len(seen), action), environment, 2, seed=0)
        assert played.lengths.tolist() == played.returns.tolist() == [3, 3]


def test_discrete_observations_are_one_hot() -> None:
    environment = make("Taxi-v4" if "Taxi-v4" in gymnasium.registry else "Taxi-v3")
    seen = environment.reset(3, seed=1)
    assert seen.shape == (3, 500)
    assert seen.sum(1).tolist() == [1, 1, 1]
    assert environment.num_actions == 6


@pytest.mark.parametrize("source", [Lock(), Lock, lambda: Lock()], ids=["object", "class", "function"])
def test_objects_and_functions_play_as_one(source: Any) -> None:
    environment = make(source, max_episode_steps=5)
    assert (environment.name, environment.identity) == ("Lock", None)
    assert (environment.observation_size, environment.num_actions) == (5, 6)
    assert environment.action_labels == ("(0, 0)", "(0, 1)", "(1, 0)", "(1, 1)", "(2, 0)", "(2, 1)")
    result = evaluate_one(open_lock, environment, 4, seed=0)
    assert result.returns.tolist() == [3] * 4
    assert result.lengths.tolist() == [3] * 4
    starts = environment.reset(4, seed=0)
    assert len(np.unique(starts, axis=0)) > 1
    np.testing.assert_array_equal(environment.reset(1, seed=0, episode=np.array([3])), starts[3:])


def test_an_object_that_makes_a_registered_environment_is_known_by_its_id() -> None:
    assert make(gymnasium.make("CartPole-v1")).identity == "CartPole-v1"
    assert make(gymnasium.make("CartPole-v1")).max_episode_steps == 500
    changed = gymnasium.wrappers.FlattenObservation(gymnasium.make("CartPole-v1"))
    assert make(changed).identity is None
    assert make(gymnasium.make("FrozenLake-v1", is_slippery=False)).identity is None


def test_bounds_of_observations_are_the_environments_and_those_of_an_appended_mask() -> None:
    acrobot = make("Acrobot-v1")
    assert acrobot.observation_bounds is not None
    np.testing.assert_allclose(acrobot.observation_bounds[1], [1, 1, 1, 1, 4 * np.pi, 9 * np.pi], rtol=1e-6)
    taxi = make("Taxi-v4" if "Taxi-v4" in gymnasium.registry else "Taxi-v3")
    for size in (500, 506):
        assert taxi.observation_bounds is not None
        low, high = taxi.observation_bounds
        assert low.tolist() == [0] * size
        assert high.tolist() == [1] * size
        if size == 500:
            taxi.append_masks()
    assert taxi.reset(1, seed=0).shape == (1, 506)


def test_what_cannot_be_copied_asks_for_a_function() -> None:
    class Stubborn(Lock):
        def __deepcopy__(self, memo: dict) -> Any:
            raise TypeError("a window is open")

    environment = make(Stubborn(), max_episode_steps=5)
    environment.reset(1, seed=0)
    with pytest.raises(SappError, match=r"Stubborn: .*a window is open.*env=lambda: MyEnv\(\)"):
        environment.reset(2, seed=0)


def test_other_things_are_no_environments() -> None:
    with pytest.raises(SappError, match="int is not one; give a Gymnasium id"):
        make(3)  # type: ignore[arg-type]
    with pytest.raises(SappError, match="str is not one"):
        make(lambda: "CartPole-v1")  # type: ignore[arg-type,return-value]
    with pytest.raises(SappError, match="Lock has no time limit"):
        make(Lock)


@pytest.mark.parametrize(
    ("action", "words"), [(np.array([[1.0]]), "whole numbers"), (np.array([2]), "actions are 0 to 1")]
)
def test_discrete_actions_are_checked(action: np.ndarray, words: str) -> None:
    environment = make("CartPole-v1")
    environment.reset(1, seed=0)
    with pytest.raises(SappError, match=words):
        environment.step(action)


def test_collected_data_are_discrete_and_know_their_probabilities() -> None:
    environment = make(Lock, max_episode_steps=5)
    policy = ExploringPolicy(open_lock, uniform_policy(environment), 0.3)
    data = collect(policy, environment, 3_000, seed=0)
    assert (data.num_actions, data.environment, data.observation_size) == (6, None, 5)
    assert data.action_labels == environment.action_labels
    right = data.action == open_lock(data.observation)
    assert right.mean() == pytest.approx(0.7 + 0.3 / 6, abs=0.03)
    np.testing.assert_allclose(np.exp(data.extras["log_prob"]), np.where(right, 0.75, 0.05), rtol=1e-5)
    np.testing.assert_array_equal(data.reward, right)
    assert collect(uniform_policy(make("CartPole-v1")), make("CartPole-v1"), 50, seed=0).environment == "CartPole-v1"


def test_point_maze_of_gymnasium_robotics() -> None:
    pytest.importorskip("gymnasium_robotics")
    environment = make("PointMaze_UMaze-v3")
    assert (environment.observation_size, environment.action_size) == (8, 2)
    seen = environment.reset(2, seed=0)
    alone = gymnasium.make("PointMaze_UMaze-v3")
    expected, _ = alone.reset(seed=0)
    assert spaces.flatten(alone.observation_space, expected).shape == seen[0].shape


def test_robotics_without_its_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SappError, match=r"gymnasium_robotics, .*pip install 'sapp-rl\[minari\]'"):
        make("AdroitHandNoSuch-v1")


def test_an_environment_that_cannot_be_drawn_here_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some environments of Gymnasium need a package for it that they do without otherwise."""
    from gymnasium.envs.classic_control import CartPoleEnv

    def render(self: Any) -> None:
        raise gymnasium.error.DependencyNotInstalled('pygame is not installed, run `pip install "pygame"`')

    monkeypatch.setattr(CartPoleEnv, "render", render)
    env: Any = make("CartPole-v1", pictures=True)
    env.reset(1, 0)
    with pytest.raises(SappError, match=r"^CartPole-v1: cannot be drawn on this machine: pygame is not installed, run"):
        env.picture()
