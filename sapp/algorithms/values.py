"""What a learner thinks an action is worth: Q(s,a) of its critics, whichever algorithm they belong to."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import Array

from sapp.algorithms.actor_critic import Trained
from sapp.algorithms.base import Algorithm
from sapp.algorithms.dqn import DQNState, estimates
from sapp.algorithms.fisher_brc import FisherBRCState
from sapp.algorithms.iql import IQLState
from sapp.core.errors import SappError
from sapp.networks.mlp import ensemble


def critic_values(algorithm: Algorithm, state: Any, observation: Array, action: Array) -> Array:
    """Q(s,a) [B]: the least of the critics, in the units of the logged rewards as far as the algorithm keeps them.

    IQL scales rewards by the returns' span, which is undone here; a shift of rewards (``reward_shift``, Fisher-BRC's
    ``reward_bonus``) is part of the values. An algorithm of your own is understood if its state has ``critics``.

    Args:
        algorithm: of one member.
        state: what its ``init`` made and its ``update`` moved.
        observation: as the algorithm's batches have it [B, ...].
        action: scaled to [-1, 1], [B, A]; numbers of discrete actions, int32 [B].
    """
    if isinstance(state, DQNState):
        values = jnp.mean(estimates(state.scores, observation, None), axis=-1)
        return jnp.take_along_axis(values, action[:, None], axis=-1)[:, 0]
    if isinstance(state, FisherBRCState):
        offset = jnp.min(ensemble(state.offsets.network, observation, action), axis=0)
        return offset + state.behaviour.network.log_prob(observation, action)
    critics = getattr(state, "critics", None)
    if critics is None:
        raise SappError(f"{type(algorithm).__name__} learns no values of actions: it has no critics to ask")
    if hasattr(state, "normaliser"):
        observation = state.normaliser(observation)
    value = jnp.min(ensemble(critics.network if isinstance(critics, Trained) else critics, observation, action), axis=0)
    return value / state.reward_scale if isinstance(state, IQLState) else value
