"""`point`: a small navigation task in pure NumPy whose logs can be improved on, for demonstrations and fast tests.

A point moves in the square [−1, 1]². It starts at the left and is paid, at every step, for being near the goal at the
right: 1 − distance / 1.8, at least 0. A pit lies between; falling in costs 10 and ends the episode. The passage above
the pit is the short way, the one below the long way. Actions are velocities in [−1, 1]², and a little noise moves the
point too.

The logged behaviour (`behaviour_dataset`) mostly takes the long way, slowly; one episode in five takes the short way,
faster but so carelessly that some end in the pit. The best policy is in neither: short way, full speed, no
recklessness: `controller`. The returns of the logs lie between its own and those of uniform actions, reckless
episodes' above the others'.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from sapp.core.errors import SappError
from sapp.envs.base import Array, BoolArray, IntArray, check_action, check_seed, generator

if TYPE_CHECKING:
    from sapp.data.dataset import Dataset

Points = npt.NDArray[np.float64]

GOAL = np.array([0.9, 0.0])
"""Where the reward is highest."""
PIT = np.array([[-0.3, -0.5], [0.3, 0.3]])
"""Lower left and upper right corner of the region that ends an episode."""
STEP = 0.08
"""Distance covered by one action of size 1."""
NOISE = 0.01
"""Standard deviation of the noise in each step, per dimension."""
PENALTY = 10.0
"""Price of falling into the pit."""


class Point:
    """A batch of the `point` task; a `BatchEnvironment`."""

    name = "point"
    identity: str | None = "point"
    physics = ""
    num_actions: int | None = None
    action_labels: tuple[str, ...] | None = None
    observation_size = 2
    action_size = 2
    max_episode_steps = 50

    def __init__(self) -> None:
        self.action_low, self.action_high = -np.ones(2, np.float32), np.ones(2, np.float32)
        self._seed = 0
        self._allocate(0)

    def _allocate(self, count: int) -> None:
        self.position = np.zeros((count, 2))
        self._noise = np.zeros((count, self.max_episode_steps, 2))
        self._time = np.zeros(count, np.int64)
        self.truncated = np.zeros(count, bool)

    def reset(self, count: int, seed: int, episode: IntArray | None = None) -> Array:
        """Starts `count` rows; see `BatchEnvironment.reset`."""
        self._seed = check_seed(seed)
        self._allocate(count)
        return self.restart(np.arange(count), np.arange(count) if episode is None else np.asarray(episode))

    def restart(self, rows: IntArray, episode: IntArray) -> Array:
        """Starts new episodes in some rows; see `BatchEnvironment.restart`."""
        for row, number in zip(rows.tolist(), episode.tolist(), strict=True):
            rng = generator(self._seed, number)
            self.position[row] = rng.uniform((-0.95, -0.2), (-0.85, 0.2))
            # an episode's noise is drawn with its start, so that it does not depend on the other rows
            self._noise[row] = NOISE * rng.standard_normal((self.max_episode_steps, 2))
        self._time[rows] = 0
        return self.position[rows]

    def step(self, action: Array, active: BoolArray | None = None) -> tuple[Array, Array, BoolArray]:
        """Advances the active rows; see `BatchEnvironment.step`."""
        count = len(self.position)
        rows = np.arange(count) if active is None else np.flatnonzero(active)
        reward, terminal = np.zeros(count), np.zeros(count, bool)
        chosen = np.clip(check_action(np.asarray(action)[rows], len(rows), 2, self.name), -1, 1)
        late = self._time[rows] >= self.max_episode_steps
        if late.any():
            raise SappError(f"row {rows[late][0]} of point is past its time limit: restart it")
        moved = self.position[rows] + STEP * chosen + self._noise[rows, self._time[rows]]
        self.position[rows] = np.clip(moved, -1, 1)
        self._time[rows] += 1
        fallen = ((self.position[rows] > PIT[0]) & (self.position[rows] < PIT[1])).all(-1)
        nearness = np.maximum(0.0, 1 - np.linalg.norm(self.position[rows] - GOAL, axis=-1) / 1.8)
        reward[rows] = np.where(fallen, -PENALTY, nearness)
        terminal[rows] = fallen
        return self.position.copy(), reward, terminal


def controller(position: Array, lane: Array | float = 0.41, speed: Array | float = 1.0) -> Points:
    """A scripted policy: past the pit at height `lane`, then to the goal; near-optimal with the default arguments."""
    position = np.asarray(position, np.float64)
    x, y = position[..., 0], position[..., 1]
    lane, speed = np.broadcast_to(lane, x.shape), np.broadcast_to(speed, x.shape)
    side = np.where(lane > 0, y - PIT[1, 1], PIT[0, 1] - y)  # > 0 once clear of the pit on its own side
    blocked = (x < PIT[1, 0] + 0.02) & (side < 0.03)
    ahead = np.where(x < PIT[0, 0] - 0.12, PIT[0, 0] - 0.02, PIT[1, 0] + 0.1)
    near_edge = blocked & (x > PIT[0, 0] - 0.12)
    target_x = np.where(x > PIT[1, 0], GOAL[0], np.where(near_edge, x, ahead))
    target_y = np.where(x > PIT[1, 0], GOAL[1], lane)
    offset = np.stack([target_x - x, target_y - y], -1) / STEP
    size = np.maximum(np.abs(offset).max(-1), 1e-9)
    return offset / size[..., None] * np.minimum(size, 1.0)[..., None] * speed[..., None]


def behaviour_dataset(episodes: int = 400, seed: int = 0) -> Dataset:
    """Logs of a mixed behaviour: four cautious episodes (long way, half speed) to one fast but reckless (short way)."""
    from sapp.data.dataset import Dataset
    from sapp.envs.collect import assemble

    if episodes < 1:
        raise SappError(f"cannot log {episodes} episodes: ask for at least 1")
    environment = Point()
    rng = np.random.default_rng((check_seed(seed), 0, 2))
    reckless = rng.random(episodes) < 0.2
    lane = np.where(reckless, 0.5, -0.75)
    speed = np.where(reckless, 0.85, 0.5)
    wander = np.where(reckless, 0.7, 0.4)[:, None]
    observation = environment.reset(episodes, seed).astype(np.float32)
    active = np.ones(episodes, bool)
    columns: dict[str, list[np.ndarray]] = {}
    for time in range(environment.max_episode_steps):
        noisy = controller(observation, lane, speed) + wander * rng.standard_normal((episodes, 2))
        action = np.clip(noisy, -1, 1).astype(np.float32)
        successor, reward, terminal = environment.step(action, active)
        rows = np.flatnonzero(active)
        step: dict[str, np.ndarray] = {
            "episode": rows,
            "observation": observation[rows],
            "action": action[rows],
            "reward": reward[rows].astype(np.float32),
            "next_observation": successor[rows].astype(np.float32),
            "terminal": terminal[rows],
            "timeout": ~terminal[rows] & (time + 1 == environment.max_episode_steps),
            "reckless": reckless[rows],
        }
        for key, value in step.items():
            columns.setdefault(key, []).append(value)
        observation = successor.astype(np.float32)
        active &= ~terminal
    arrays = assemble(columns)
    extras = {"reckless": arrays.pop("reckless")}
    return Dataset(
        observation=arrays["observation"],
        action=arrays["action"],
        reward=arrays["reward"],
        next_observation=arrays["next_observation"],
        terminal=arrays["terminal"],
        timeout=arrays["timeout"],
        name="point-behaviour",
        environment="point",
        action_low=environment.action_low,
        action_high=environment.action_high,
        provenance={"loader": "sapp.envs.point.behaviour_dataset", "episodes": episodes, "seed": seed},
        extras=extras,
    )
