"""Behaviour densities β̂(a|s): per action dimension an independent mixture of tanh-Gaussians."""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from sapp.networks.gaussian import LOG_STD_MAX, log_normal, log_tanh_derivative, unsquash
from sapp.networks.mlp import MLP, Precision

BEHAVIOUR_LOG_STD_MIN = -7.0
"""Floor of β̂'s log standard deviation: a logged action repeated exactly must not drive the likelihood to infinity."""


class BehaviourDensity(eqx.Module):
    """β̂(a|s) = Π_d Σ_k c_k(s) TanhN(a_d; μ_dk(s), σ_dk(s)); one component is the plain tanh-Gaussian."""

    mlp: MLP
    action_size: int = eqx.field(static=True)
    components: int = eqx.field(static=True)

    def __init__(
        self,
        key: Array,
        state_size: int,
        action_size: int,
        hidden: Sequence[int],
        components: int = 5,
        precision: Precision = "float32",
    ) -> None:
        self.mlp = MLP(key, state_size, hidden, 3 * action_size * components, precision)
        self.action_size, self.components = action_size, components

    def log_prob(self, state: Array, action: Array) -> Array:
        """Log-density of actions [B, A] at states [B, S] → [B]."""
        shape = (state.shape[0], self.action_size, self.components)
        logits, mean, log_std = (part.reshape(shape) for part in jnp.split(self.mlp(state), 3, axis=-1))
        log_std = jnp.clip(log_std, BEHAVIOUR_LOG_STD_MIN, LOG_STD_MAX)
        u = unsquash(action)[..., None]
        components = jax.nn.log_softmax(logits) + log_normal(u, mean, log_std) - log_tanh_derivative(u)
        return jnp.sum(jax.nn.logsumexp(components, axis=-1), axis=-1)
