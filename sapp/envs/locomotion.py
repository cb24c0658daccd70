"""Hopper, HalfCheetah and Walker2d as in Gymnasium's -v4 environments, many at once.

The simulator steps all rows in one call on a pool of native threads (`mujoco.rollout`); observations, rewards and
terminations are vectorised NumPy. A row's next state is a function of its positions, velocities and action alone: the
constraint solver starts cold at each action, where Gymnasium's starts from the previous step's solution. Both converge
to the solver's tolerance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sapp.core.errors import SappError
from sapp.core.extras import require
from sapp.envs.base import Array, BoolArray, IntArray, check_action, check_seed, cores, generator
from sapp.envs.physics import load_model

Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Task:
    """What Gymnasium's -v4 class of an environment defines around the model.

    Attributes:
        gymnasium: Gymnasium's id.
        asset: the XML file in Gymnasium's package.
        frame_skip: simulator steps per action.
        control_cost: weight of the squared action in the reward.
        healthy_reward: reward for each step, in environments that end an episode at a fall.
        velocity_bound: observed velocities are clipped to ± this.
        healthy: positions [n, nq], velocities [n, nv] → which rows have not fallen; None where nothing ends an episode.
        noise: scale of the start noise.
        normal_velocity: whether start velocities are normal (HalfCheetah) rather than uniform.
    """

    gymnasium: str
    asset: str
    frame_skip: int
    control_cost: float
    healthy_reward: float
    velocity_bound: float
    healthy: Callable[[Matrix, Matrix], BoolArray] | None
    noise: float
    normal_velocity: bool


def _hopper_healthy(position: Matrix, velocity: Matrix) -> BoolArray:
    bounded = (np.abs(position[:, 2:]) < 100.0).all(-1) & (np.abs(velocity) < 100.0).all(-1)
    return bounded & (position[:, 1] > 0.7) & (np.abs(position[:, 2]) < 0.2)


def _walker2d_healthy(position: Matrix, velocity: Matrix) -> BoolArray:
    height, angle = position[:, 1], position[:, 2]
    return (height > 0.8) & (height < 2.0) & (np.abs(angle) < 1.0)


TASKS = {
    "halfcheetah": Task("HalfCheetah-v4", "half_cheetah.xml", 5, 0.1, 0.0, np.inf, None, 0.1, True),
    "hopper": Task("Hopper-v4", "hopper.xml", 4, 1e-3, 1.0, 10.0, _hopper_healthy, 5e-3, False),
    "walker2d": Task("Walker2d-v4", "walker2d.xml", 4, 1e-3, 1.0, 10.0, _walker2d_healthy, 5e-3, False),
}
"""The three environments of D4RL's Gym-MuJoCo datasets."""


def asset_path(name: str) -> Path:
    """The path of one of Gymnasium's own MuJoCo models."""
    import gymnasium

    return Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets" / name


class Locomotion:
    """A batch of Hopper, HalfCheetah or Walker2d; a `BatchEnvironment`.

    Args:
        name: "hopper", "halfcheetah" or "walker2d".
        physics: "d4rl" restores the physics that D4RL v2 was recorded with; "v4" is Gymnasium's -v4 environment.
        threads: simulator threads; by default one per available core.
    """

    max_episode_steps = 1000
    num_actions: int | None = None
    action_labels: tuple[str, ...] | None = None

    def __init__(self, name: str, physics: str = "d4rl", threads: int | None = None) -> None:
        if name not in TASKS:
            raise SappError(f"locomotion environment {name!r} is unknown: use one of {', '.join(sorted(TASKS))}")
        mujoco = require("mujoco", f"environment {name!r}")
        rollout = require("mujoco.rollout", f"environment {name!r}")

        self.task, self.physics = TASKS[name], physics
        self.name = name if physics == "d4rl" else self.task.gymnasium
        self.identity: str | None = self.name
        self.model = load_model(asset_path(self.task.asset), physics)
        self.threads = threads or cores()
        self._data = [mujoco.MjData(self.model) for _ in range(self.threads)]
        self._pool = rollout.Rollout(nthread=self.threads if self.threads > 1 else 0)
        self._start = (self._data[0].qpos.copy(), self._data[0].qvel.copy())
        self._size = mujoco.mj_stateSize(self.model, mujoco.mjtState.mjSTATE_FULLPHYSICS)
        self._dt = self.model.opt.timestep * self.task.frame_skip
        self.observation_size = self.model.nq - 1 + self.model.nv
        self.action_size = int(self.model.nu)
        low, high = self.model.actuator_ctrlrange.astype(np.float32).T
        self.action_low, self.action_high = low.copy(), high.copy()
        self._allocate(0)
        self._seed = 0

    def _allocate(self, count: int) -> None:
        self.position = np.tile(self._start[0], (count, 1))
        self.velocity = np.tile(self._start[1], (count, 1))
        self.truncated = np.zeros(count, bool)

    def reset(self, count: int, seed: int, episode: IntArray | None = None) -> Array:
        """Starts `count` rows; see `BatchEnvironment.reset`."""
        self._seed = check_seed(seed)
        self._allocate(count)
        return self.restart(np.arange(count), np.arange(count) if episode is None else np.asarray(episode))

    def restart(self, rows: IntArray, episode: IntArray) -> Array:
        """Starts new episodes in some rows; see `BatchEnvironment.restart`."""
        noise = self.task.noise
        starts: dict[int, tuple[Matrix, Matrix]] = {}
        for row, number in zip(rows.tolist(), episode.tolist(), strict=True):
            if number not in starts:
                rng = generator(self._seed, number)
                position = self._start[0] + rng.uniform(-noise, noise, self.model.nq)
                spread = (
                    noise * rng.standard_normal(self.model.nv)
                    if self.task.normal_velocity
                    else rng.uniform(-noise, noise, self.model.nv)
                )
                starts[number] = position, self._start[1] + spread
            self.position[row], self.velocity[row] = starts[number]
        return self._observe(self.position[rows], self.velocity[rows])

    def set_state(self, position: Array, velocity: Array) -> Array:
        """Puts one row into each given simulator state (qpos [n, nq], qvel [n, nv]); returns the observations."""
        position, velocity = np.asarray(position, np.float64), np.asarray(velocity, np.float64)
        count = len(position)
        if position.shape != (count, self.model.nq) or velocity.shape != (count, self.model.nv):
            raise SappError(
                f"{self.name} has states of {self.model.nq} positions and {self.model.nv} velocities, not of shapes "
                f"{position.shape} and {velocity.shape}: is this another environment's data?"
            )
        self._allocate(count)
        self.position[:], self.velocity[:] = position, velocity
        return self._observe(self.position, self.velocity)

    def _observe(self, position: Matrix, velocity: Matrix) -> Matrix:
        bound = self.task.velocity_bound
        return np.concatenate([position[:, 1:], np.clip(velocity, -bound, bound)], -1)

    def _simulate(self, position: Matrix, velocity: Matrix, action: Matrix) -> tuple[Matrix, Matrix]:
        count, skip, nq = len(position), self.task.frame_skip, self.model.nq
        state = np.zeros((count, self._size))
        state[:, 1 : 1 + nq] = position
        state[:, 1 + nq : 1 + nq + self.model.nv] = velocity
        control = np.repeat(action[:, None], skip, 1)
        states = np.empty((count, skip, self._size))
        sensors: Any = np.empty((count, skip, self.model.nsensordata))
        self._pool.rollout(
            [self.model] * count,
            self._data,
            state,
            control,
            skip_checks=True,
            nstep=skip,
            state=states,
            sensordata=sensors,
        )
        last = states[:, -1]
        return last[:, 1 : 1 + nq], last[:, 1 + nq : 1 + nq + self.model.nv]

    def step(self, action: Array, active: BoolArray | None = None) -> tuple[Array, Array, BoolArray]:
        """Advances the active rows; see `BatchEnvironment.step`."""
        count = len(self.position)
        rows = np.arange(count) if active is None else np.flatnonzero(active)
        reward, terminal = np.zeros(count), np.zeros(count, bool)
        if len(rows):
            chosen = check_action(np.asarray(action)[rows], len(rows), self.action_size, self.name)
            before = self.position[rows, 0]
            position, velocity = self._simulate(self.position[rows], self.velocity[rows], chosen)
            self.position[rows], self.velocity[rows] = position, velocity
            forward = (position[:, 0] - before) / self._dt
            reward[rows] = forward + self.task.healthy_reward - self.task.control_cost * np.square(chosen).sum(-1)
            if self.task.healthy is not None:
                terminal[rows] = ~self.task.healthy(position, velocity)
        return self._observe(self.position, self.velocity), reward, terminal
