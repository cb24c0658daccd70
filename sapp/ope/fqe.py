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


class ValueScale(eqx.Module):
    """Q = mean + std·network: the network's outputs are of order one, whatever the units of the rewards."""

    mean: Array
    std: Array

    @classmethod
    def of(cls, data: Dataset, discount: float) -> ValueScale:
        """Mean and standard deviation of the logs' own discounted returns-to-go."""
        return cls.around(returns_to_go(data, data.reward, discount))

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
    """A function of state and action: vectors enter beside the state, choices are outputs."""
    if discrete:
        return MLP(key, observation_size, hidden, action_size, **options)
    return StateActionNetwork(key, observation_size, action_size, hidden, **options)


def bellman_loss(
    network: Any, target: Any, batch: Batch, answer: Array, scale: ValueScale, discount: Array
) -> tuple[Array, Array]:
    """E_B[((Q(s,a) − r − γ(1−terminal)·E_{a'~π} Q̄(s',a'))/std)²], and the temporal differences [B]."""
    following = scale.mean + scale.std * policy_values(target, batch.next_observation, answer)
    wanted = batch.reward + discount * (1.0 - batch.terminal) * following
    difference = jax.lax.stop_gradient((wanted - scale.mean) / scale.std) - action_values(
        network, batch.observation, batch.action
    )
    return jnp.mean(jnp.square(difference)), difference * scale.std
