"""β̂, a diagonal Gaussian over logged actions, and the box it keeps a policy's actions in."""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from sapp.networks.gaussian import log_normal
from sapp.networks.mlp import MLP, Precision

LOG_STD_RANGE = (-4.0, 1.0)
"""Bounds of log σ: a logged action repeated exactly must not drive the likelihood to infinity."""


class GaussianBehaviour(eqx.Module):
    """β̂(a|s) = N(μ(s), diag σ(s)²), in the units of the actions themselves.

    Actions lie in [−1, 1], and a Gaussian knows nothing of that. It is not squashed all the same: it serves to draw a
    box, and a box in the actions' own units is robust. Logged actions of exactly ±1 have no pre-image under tanh, and
    those close to it would stretch σ there by several units; here they count as what they are. Where the data push
    against a bound the box ends at the bound.
    """

    mlp: MLP

    def __init__(
        self, key: Array, state_size: int, action_size: int, hidden: Sequence[int], precision: Precision = "float32"
    ) -> None:
        self.mlp = MLP(key, state_size, hidden, 2 * action_size, precision)

    def heads(self, state: Array) -> tuple[Array, Array]:
        """μ and log σ at states [B, S], each [B, A]."""
        mean, log_std = jnp.split(self.mlp(state), 2, axis=-1)
        return mean, jnp.clip(log_std, *LOG_STD_RANGE)

    def loss(self, state: Array, action: Array) -> Array:
        """−E[log β̂(a|s)] of logged actions."""
        return -jnp.mean(jnp.sum(log_normal(action, *self.heads(state)), axis=-1))

    def sample(self, state: Array, key: Array) -> Array:
        """One action a state, [B, A], within [−1, 1]."""
        mean, log_std = self.heads(state)
        return jnp.clip(mean + jnp.exp(log_std) * jax.random.normal(key, mean.shape), -1.0, 1.0)

    def box(self, state: Array, action: Array, width: Array | float) -> tuple[Array, Array]:
        """Actions [B, A] moved to the nearest point of μ ± ``width``·σ within [−1, 1], and the share of dimensions
        moved.

        Inside the box a one-step model knows what happens; outside it would be asked about actions nobody took. The
        share says how far the policy has left the data: 5 % for the behaviour itself at two standard deviations.
        """
        mean, log_std = self.heads(state)
        reach = width * jnp.exp(log_std)
        low, high = jnp.clip(mean - reach, -1.0, 1.0), jnp.clip(mean + reach, -1.0, 1.0)
        return jnp.clip(action, low, high), jnp.mean((action < low) | (action > high), dtype=jnp.float32)
