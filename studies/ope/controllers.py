"""Logging policies for small control tasks: written controllers with noise, and the families around them.

Each is a pytree from observations to a distribution over actions, as trained policies are; a family has its behaviour
first. Locomotion's are the snapshots that come with the package.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from sapp.collect.benchmark.shipped import shipped
from sapp.data.action_units import from_unit
from sapp.envs.base import BatchEnvironment
from sapp.evaluation.policy_file import actor_of
from sapp.networks import TanhGaussian
from sapp.networks.categorical import Categorical
from studies.ope.policies import Blend

CONTINUOUS: dict[str, tuple[float, float, float]] = {
    "behaviour": (0.0, 0.0, 1.0),
    "noise 0.3": (0.0, 0.0, 0.3),
    "noise 1.5": (0.0, 0.0, 1.5),
    "shift -0.5": (0.0, -0.5, 1.0),
    "shift 0.5": (0.0, 0.5, 1.0),
    "blend 0.25": (0.25, 0.0, 1.0),
    "blend 0.5": (0.5, 0.0, 1.0),
    "other": (1.0, 0.0, 1.0),
}
"""Policies by (share of another policy, shift in the behaviour's standard deviations, factor of the noise)."""
DISCRETE: dict[str, tuple[float, float, float]] = {
    "behaviour": (0.0, 1.0, 0.0),
    "softer": (0.0, 0.6, 0.0),
    "harder": (0.0, 1.5, 0.0),
    "much harder": (0.0, 4.0, 0.0),
    "a quarter uniform": (0.0, 1.0, 0.25),
    "blend 0.3": (0.3, 1.0, 0.0),
    "blend 0.6": (0.6, 1.0, 0.0),
    "other": (1.0, 1.0, 0.0),
}
"""Policies by (share of another policy, factor of the scores, share of uniform actions)."""


class Noisy(eqx.Module):
    """A controller's action before tanh, with noise of one size."""

    mean: Callable[[Array], Array]
    log_std: float

    def __call__(self, observation: Array) -> TanhGaussian:
        """The distribution of actions at observations [n, O]."""
        mean = self.mean(observation)
        return TanhGaussian(mean, jnp.full_like(mean, self.log_std))


class Softmax(eqx.Module):
    """Discrete actions by two controllers' scores, with a share of uniform ones."""

    first: Callable[[Array], Array] = eqx.field(static=True)
    second: Callable[[Array], Array] = eqx.field(static=True)
    share: Array
    factor: Array
    uniform: Array

    def __call__(self, observation: Array) -> Categorical:
        """The distribution of actions at observations [n, O]."""
        one, two = self.first(observation), self.second(observation)
        chance = jax.nn.softmax(self.factor * (one + self.share * (two - one)))
        return Categorical(jnp.log((1 - self.uniform) * chance + self.uniform / chance.shape[-1]))


@dataclass(frozen=True)
class Drawn:
    """A pytree's draws, as recording data takes them."""

    actor: Any
    environment: BatchEnvironment

    def sample(self, observation: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Actions in the environment's units, and their log-densities there."""
        count = len(observation)
        rows = 1 << (count - 1).bit_length()  # few sizes, few compilations
        padded = np.concatenate([observation, np.zeros((rows - count, observation.shape[1]), np.float32)])
        key = jax.random.PRNGKey(int(rng.integers(1 << 31)))
        action, density = (np.asarray(each)[:count] for each in _draw(self.actor, jnp.asarray(padded), key))
        if self.environment.num_actions is not None:
            return action, density
        low, high = np.asarray(self.environment.action_low), np.asarray(self.environment.action_high)
        return from_unit(action, low, high), density - np.log((high - low) / 2).sum(dtype=np.float32)


@eqx.filter_jit
def _draw(actor: Any, observation: Array, key: Array) -> Any:
    return actor(observation).sample(key)


def blends(first: Any, second: Any) -> dict[str, Any]:
    """The policies of ``CONTINUOUS``."""
    return {
        name: Blend(first, second, *(jnp.float32(number) for number in numbers))
        for name, numbers in CONTINUOUS.items()
    }


def softened(first: Callable[[Array], Array], second: Callable[[Array], Array]) -> dict[str, Any]:
    """The policies of ``DISCRETE``."""
    return {
        name: Softmax(first, second, *(jnp.float32(number) for number in numbers)) for name, numbers in DISCRETE.items()
    }


def locomotion(name: str) -> dict[str, Any]:
    """Around the medium snapshot of those that come with the package, towards the next better one."""
    found = shipped(name)
    steps = sorted(found.training.steps, key=lambda each: found.training.steps[each])
    better = steps[steps.index(found.training.medium) + 1]
    return blends(actor_of(found.policies[found.training.medium]), actor_of(found.policies[better]))


def pendulum() -> dict[str, Any]:
    """Swing up by energy, then hold; the other one swings up half as hard."""

    def controller(gain: float) -> Callable[[Array], Array]:
        def mean(x: Array) -> Array:
            angle, speed = jnp.arctan2(x[:, 1], x[:, 0]), x[:, 2]
            swing = gain * speed * (15.0 - 0.5 * speed**2 - 15.0 * x[:, 0])
            hold = -(10.0 * angle + 2.0 * speed)
            return jnp.clip(jnp.where(x[:, 0] > 0.85, hold, swing) / 2, -1.2, 1.2)[:, None]

        return mean

    return blends(Noisy(controller(0.3), -0.5), Noisy(controller(0.05), -0.5))


def point() -> dict[str, Any]:
    """Over the pit and to the goal; the other one goes slowly."""

    def controller(speed: float) -> Callable[[Array], Array]:
        def mean(x: Array) -> Array:
            before = (x[:, 0] < 0.35)[:, None]
            high = (x[:, 1] > 0.35)[:, None]
            over = jnp.where(high, jnp.array([0.5, 0.5]), jnp.array([-0.45, 0.5]))
            goal = jnp.where(before, over, jnp.array([0.9, 0.0]))
            return jnp.clip(speed * 4 * (goal - x), -1.0, 1.0)

        return mean

    return blends(Noisy(controller(0.6), -0.9), Noisy(controller(0.3), -0.9))


def inverted_pendulum() -> dict[str, Any]:
    """MuJoCo's pole on a cart, pushed by vectors; the other one pushes less for the speed of the pole."""

    def controller(speed: float) -> Callable[[Array], Array]:
        return lambda x: jnp.clip(x @ jnp.array([0.3, 3.0, 0.4, speed]), -1.5, 1.5)[:, None]

    return blends(Noisy(controller(0.6), -0.7), Noisy(controller(0.3), -0.7))


def mountain_car() -> dict[str, Any]:
    """Push the way the car rolls; the other one pushes less."""

    def controller(gain: float) -> Callable[[Array], Array]:
        return lambda x: gain * jnp.tanh(100.0 * x[:, 1:])

    return blends(Noisy(controller(0.8), -0.5), Noisy(controller(0.4), -0.5))


def cartpole() -> dict[str, Any]:
    """Keep the pole up and the cart near the middle; the other one cares for the pole alone."""

    def controller(weights: tuple[float, ...]) -> Callable[[Array], Array]:
        def scores(x: Array) -> Array:
            push = x @ jnp.array(weights)
            return jnp.stack([-push, push], -1)

        return scores

    return softened(controller((0.1, 0.3, 4.0, 1.0)), controller((0.0, 0.0, 3.0, 0.2)))


def acrobot() -> dict[str, Any]:
    """Push the second joint the way it turns; the other one goes by the first joint."""

    def controller(joint: int) -> Callable[[Array], Array]:
        return lambda x: 0.5 * x[:, joint, None] * jnp.array([-1.0, 0.0, 1.0])

    return softened(controller(5), controller(4))


FAMILIES: Mapping[str, Callable[[], dict[str, Any]]] = {
    "hopper": lambda: locomotion("hopper"),
    "halfcheetah": lambda: locomotion("halfcheetah"),
    "walker2d": lambda: locomotion("walker2d"),
    "CartPole": cartpole,
    "Pendulum": pendulum,
    "Acrobot": acrobot,
    "InvertedPendulum": inverted_pendulum,
    "MountainCar": mountain_car,
    "point": point,
}
