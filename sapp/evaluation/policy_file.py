"""Policies from files, as pytrees that estimators, exports and evaluations take."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp

from sapp.envs.policies import TanhGaussianPolicy, load_policy
from sapp.networks import GaussianActor


def actor_of(policy: TanhGaussianPolicy) -> GaussianActor:
    """A tanh-Gaussian policy of NumPy arrays (weights as (out, in)) as a pytree."""
    hidden = [weight.shape[0] for weight, _ in policy.layers]
    sizes = policy.observation_size, policy.action_size
    actor = eqx.filter_eval_shape(lambda: GaussianActor(jax.random.PRNGKey(0), *sizes, hidden))
    pairs = [*policy.layers, policy.mean, policy.log_std]

    def slots(actor: GaussianActor) -> list[jax.Array]:
        layers = [*actor.trunk.layers, actor.mean, actor.log_std]
        return [leaf for layer in layers for leaf in (layer.weight, layer.bias)]

    return eqx.tree_at(slots, actor, [jnp.asarray(array.T) for pair in pairs for array in pair])


def stack(policies: Sequence[TanhGaussianPolicy]) -> GaussianActor:
    """Policies of one shape as one pytree, each array with a leading axis."""
    return jax.tree.map(lambda *arrays: jnp.stack(arrays), *map(actor_of, policies))


def load_actor(path: str | Path) -> GaussianActor:
    """The policy in an .npz file of plain arrays or in a D4RL HDF5 file (see ``sapp.envs.policies``)."""
    return actor_of(load_policy(path))
