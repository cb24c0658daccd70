"""D4RL's physics as plain Gymnasium environments: step for step what the batch does."""

import numpy as np
import pytest

from sapp.envs import make
from sapp.envs.gymnasium_specs import environment_spec


@pytest.mark.parametrize("name", ["hopper", "halfcheetah", "walker2d"])
@pytest.mark.parametrize("physics", ["d4rl", "v4"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_it_steps_as_the_batch_does(name, physics, gymnasium_mujoco):
    from gymnasium.envs.registration import EnvSpec

    spec = EnvSpec.from_json(environment_spec(name, physics).to_json())  # as Minari stores it
    plain = gymnasium_mujoco.make(spec, disable_env_checker=True)
    assert plain.spec.max_episode_steps == 1000
    plain.reset(seed=0)
    batch = make(name, physics)
    batch.set_state(plain.unwrapped.data.qpos[None], plain.unwrapped.data.qvel[None])
    rng = np.random.default_rng(0)
    for _ in range(40):
        action = rng.uniform(-1, 1, batch.action_size).astype(np.float32)
        observation, reward, terminated, truncated, _ = plain.step(action)
        expected, expected_reward, terminal = batch.step(action[None])
        # the constraint solver starts warm here and cold there: equal to its tolerance
        np.testing.assert_allclose(observation, expected[0], atol=1e-6)
        assert reward == pytest.approx(expected_reward[0], abs=1e-6)
        assert terminated == terminal[0]
        assert not truncated
        if terminated:
            break
