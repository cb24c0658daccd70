"""Fitted Q evaluation: the value function of a fixed policy, by regression on its own Bellman targets."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from sapp.core.spec import Batch
from sapp.data import Dataset
from sapp.networks import MLP, StateActionNetwork

SLACK = 0.02
"""Share of the range of possible values by which an estimate may leave it."""


def value_bounds(rewards: tuple[float, float], terminals: bool, discount: float) -> tuple[float, float]:
    """What discounted returns can be at least and at most, by the rewards and whether episodes can end.

    Args:
        rewards: smallest and largest.
        terminals: whether the task can end, after which nothing more is paid.
        discount: γ.
    """
    gain = 1 / (1 - discount)
    low, high = rewards[0] * gain, rewards[1] * gain
    return (min(low, rewards[0], 0.0), max(high, rewards[1], 0.0)) if terminals else (low, high)


class ValueScale(eqx.Module):
    """Q = mean + std·network: the network's outputs are of order one, whatever the units of the rewards.

    Targets are kept between ``low`` and ``high``, what rewards, ends and discount allow: an error cannot feed on itself
    beyond that.
    """

    mean: Array
    std: Array
    low: Array = eqx.field(default_factory=lambda: jnp.float32(-jnp.inf))
    high: Array = eqx.field(default_factory=lambda: jnp.float32(jnp.inf))

    @classmethod
    def of(cls, data: Dataset, discount: float) -> ValueScale:
        """Mean and standard deviation of the logs' own discounted returns-to-go, and the bounds of values."""
        scale = cls.around(returns_to_go(data, data.reward, discount))
        rewards = float(data.reward.min()), float(data.reward.max())
        low, high = value_bounds(rewards, bool(data.terminal.any()), discount)
        slack = SLACK * (high - low)
        return cls(scale.mean, scale.std, jnp.float32(low - slack), jnp.float32(high + slack))

    def values(self, outputs: Array) -> Array:
        """A network's outputs as values that are possible."""
        return jnp.clip(self.mean + self.std * outputs, self.low, self.high)

    @classmethod
    def around(cls, returns: np.ndarray) -> ValueScale:
        """Mean and standard deviation of given values, the latter at least a twentieth of their size."""
        floor = 0.05 * float(np.abs(returns).mean()) + 1e-6
        return cls(jnp.float32(returns.mean()), jnp.float32(max(float(returns.std()), floor)))


def returns_to_go(data: Dataset, reward: np.ndarray, discount: float) -> np.ndarray:
    """Σ_k γᵏ r of each row to the end of its episode, float64 [N].

    After a time-out the task goes on unseen; its tail is taken as the mean reward for ever, which is good enough for a
    scale and is used for nothing else.
    """
    reward = reward.astype(np.float64)
    tail = reward.mean() / (1.0 - discount) if discount < 1.0 else 0.0
    out = np.empty(data.size)
    length = int(data.episode_lengths.max())
    ends, lengths = data.episode_ends, data.episode_lengths
    value = np.where(data.timeout[ends], tail, 0.0)
    for back in range(length):  # all episodes at once, from their ends
        inside = lengths > back
        rows = ends[inside] - back
        value[inside] = reward[rows] + discount * value[inside]
        out[rows] = value[inside]
    return out


def action_values(network: Any, observation: Array, action: Array) -> Array:
    """network(s, a) [B] or [B, K] at vectors, or the column of a chosen action of network(s) [B, n]."""
    if isinstance(network, MLP):
        return jnp.take_along_axis(network(observation), action[:, None], axis=-1)[:, 0]
    return network(observation, action)


def policy_values(network: Any, observation: Array, answer: Array) -> Array:
    """E_{a~π} network(s, a) [B]: over draws [B, K, A] by their mean, over probabilities [B, n] exactly."""
    if isinstance(network, MLP):
        return jnp.sum(answer * network(observation), axis=-1)
    return jnp.mean(network(observation, answer), axis=-1)


def make_network(
    key: Array, observation_size: int, action_size: int, discrete: bool, hidden: tuple[int, ...], **options: Any
) -> Any:
    """A function of state and action: vectors enter beside the state, discrete actions are outputs."""
    if discrete:
        return MLP(key, observation_size, hidden, action_size, **options)
    return StateActionNetwork(key, observation_size, action_size, hidden, **options)


def bellman_loss(
    network: Any, target: Any, batch: Batch, answer: Array, scale: ValueScale, discount: Array
) -> tuple[Array, Array]:
    """E_B[((Q(s,a) − r − γ(1−terminal)·E_{a'~π} Q̄(s',a'))/std)²], and the temporal differences [B]."""
    following = scale.values(policy_values(target, batch.next_observation, answer))
    wanted = batch.reward + discount * (1.0 - batch.terminal) * following
    difference = jax.lax.stop_gradient((wanted - scale.mean) / scale.std) - action_values(
        network, batch.observation, batch.action
    )
    return jnp.mean(jnp.square(difference)), difference * scale.std
