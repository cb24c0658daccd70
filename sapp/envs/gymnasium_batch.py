"""Any Gymnasium environment with box spaces, as a batch: a list of environments stepped one by one."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from sapp.core.errors import SappError
from sapp.envs.base import Array, BoolArray, IntArray, check_action, check_seed, generator


class GymnasiumBatch:
    """A batch of any Gymnasium environment; a `BatchEnvironment`.

    Args:
        name: a registered Gymnasium id.
        max_episode_steps: the time limit, for environments registered without one.
    """

    physics = ""

    def __init__(self, name: str, max_episode_steps: int | None = None) -> None:
        import gymnasium

        self.name = name
        self._environments: list[Any] = [self._make()]
        first = self._environments[0]
        for what, space in (("observations", first.observation_space), ("actions", first.action_space)):
            if not isinstance(space, gymnasium.spaces.Box) or len(space.shape) != 1:
                raise SappError(f"{name}: its {what} are {space}, not a vector of real numbers; choose another one")
        limit = max_episode_steps or gymnasium.spec(name).max_episode_steps
        if not limit:
            raise SappError(f"{name} has no time limit of its own: give max_episode_steps")
        self.max_episode_steps = int(limit)
        self.observation_size = int(first.observation_space.shape[0])
        self.action_size = int(first.action_space.shape[0])
        self.action_low = first.action_space.low.astype(np.float32)
        self.action_high = first.action_space.high.astype(np.float32)
        if not (np.isfinite(self.action_low).all() and np.isfinite(self.action_high).all()):
            raise SappError(f"{name}: its actions are unbounded ({first.action_space}); wrap it in a RescaleAction")
        self._observation = np.zeros((0, self.observation_size))
        self.truncated = np.zeros(0, bool)
        self._seed = 0

    def _make(self) -> Any:
        import gymnasium

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # "a newer version exists": which one is meant is the user's choice
                # the driver counts the steps, so Gymnasium's own time limit is left out
                return gymnasium.make(self.name, max_episode_steps=-1, disable_env_checker=True)
        except ImportError as error:
            extra = "mujoco" if "mujoco" in str(gymnasium.registry[self.name].entry_point) else "all"
            raise SappError(f"{self.name}: {error}; pip install 'gymnasium[{extra}]'") from error
        except gymnasium.error.Error as error:
            raise SappError(f"{self.name}: Gymnasium cannot make it ({' '.join(str(error).split())})") from error

    def reset(self, count: int, seed: int, episode: IntArray | None = None) -> Array:
        """Starts `count` rows; see `BatchEnvironment.reset`."""
        self._seed = check_seed(seed)
        while len(self._environments) < count:
            self._environments.append(self._make())
        self._observation = np.zeros((count, self.observation_size))
        self.truncated = np.zeros(count, bool)
        return self.restart(np.arange(count), np.arange(count) if episode is None else np.asarray(episode))

    def restart(self, rows: IntArray, episode: IntArray) -> Array:
        """Starts new episodes in some rows; see `BatchEnvironment.restart`."""
        for row, number in zip(rows.tolist(), episode.tolist(), strict=True):
            start = int(generator(self._seed, number).integers(2**31))
            self._observation[row] = self._environments[row].reset(seed=start)[0]
        self.truncated[rows] = False
        return self._observation[rows]

    def step(self, action: Array, active: BoolArray | None = None) -> tuple[Array, Array, BoolArray]:
        """Advances the active rows; see `BatchEnvironment.step`."""
        count = len(self._observation)
        rows = np.arange(count) if active is None else np.flatnonzero(active)
        reward, terminal = np.zeros(count), np.zeros(count, bool)
        chosen = check_action(np.asarray(action)[rows], len(rows), self.action_size, self.name).astype(np.float32)
        for one, row in zip(chosen, rows.tolist(), strict=True):
            observation, gain, terminated, truncated, _ = self._environments[row].step(one)
            self._observation[row], reward[row], terminal[row] = observation, gain, terminated
            self.truncated[row] = truncated and not terminated
        return self._observation.copy(), reward, terminal
