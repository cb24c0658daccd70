"""Policies from files, as pytrees that estimators, exports and evaluations take."""

from __future__ import annotations

from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp

from sapp.envs.policies import TanhGaussianPolicy, load_policy
from sapp.networks import GaussianActor


def actor_of(policy: TanhGaussianPolicy) -> GaussianActor:
    """A tanh-Gaussian policy of NumPy arrays (weights as (out, in)) as a pytree."""
    hidden = [weight.shape[0] for weight, _ in policy.layers]
    # built with random weights, all of which are then replaced: so its structure is a trained actor's
    actor = GaussianActor(jax.random.PRNGKey(0), policy.observation_size, policy.action_size, hidden)
    pairs = [*policy.layers, policy.mean, policy.log_std]

    def slots(actor: GaussianActor) -> list[jax.Array]:
        layers = [*actor.trunk.layers, actor.mean, actor.log_std]
        return [leaf for layer in layers for leaf in (layer.weight, layer.bias)]

    return eqx.tree_at(slots, actor, [jnp.asarray(array.T) for pair in pairs for array in pair])


def load_actor(path: str | Path) -> GaussianActor:
    """The policy in an .npz file of plain arrays or in a D4RL HDF5 file (see ``sapp.envs.policies``)."""
    return actor_of(load_policy(path))
