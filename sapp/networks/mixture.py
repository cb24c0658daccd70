"""Behaviour densities β̂(a|s): per action dimension an independent mixture of tanh-Gaussians."""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from sapp.core.precision import Precision
from sapp.networks.gaussian import LOG_STD_MAX, log_normal, log_tanh_derivative, unsquash
from sapp.networks.mlp import MLP

BEHAVIOUR_LOG_STD_MIN = -7.0
"""Floor of β̂'s log standard deviation: a logged action repeated exactly must not drive the likelihood to infinity."""


class BehaviourDensity(eqx.Module):
    """β̂(a|s) = Π_d Σ_k c_k(s) TanhN(a_d; μ_dk(s), σ_dk(s)); one component is the plain tanh-Gaussian."""

    mlp: MLP
    action_size: int = eqx.field(static=True)
    components: int = eqx.field(static=True)
    log_std_min: float = eqx.field(static=True)

    def __init__(
        self,
        key: Array,
        state_size: int,
        action_size: int,
        hidden: Sequence[int],
        components: int = 5,
        precision: Precision = "float32",
        log_std_min: float = BEHAVIOUR_LOG_STD_MIN,
    ) -> None:
        self.mlp = MLP(key, state_size, hidden, 3 * action_size * components, precision)
        self.action_size, self.components, self.log_std_min = action_size, components, log_std_min

    def parameters(self, state: Array) -> tuple[Array, Array, Array]:
        """Logits, means and log standard deviations of the components at states [B, S], each [B, A, K]."""
        shape = (state.shape[0], self.action_size, self.components)
        logits, mean, log_std = (part.reshape(shape) for part in jnp.split(self.mlp(state), 3, axis=-1))
        return logits, mean, jnp.clip(log_std, self.log_std_min, LOG_STD_MAX)

    def log_prob(self, state: Array, action: Array) -> Array:
        """Log-density of actions [B, A] at states [B, S] → [B]."""
        return jnp.sum(log_mixture(unsquash(action), *self.parameters(state)), axis=-1)

    def entropy(self, state: Array, key: Array) -> Array:
        """Reparameterised estimate of the entropy at states [B, S] → [B].

        Stratified, one draw a component: Σ_d Σ_k c_k·(−log β_d(a_dk)), a_dk drawn from component k; so the mixture's
        weights get a gradient too, which a draw of the component's number would not give them.
        """
        logits, mean, log_std = self.parameters(state)
        u = mean + jnp.exp(log_std) * jax.random.normal(key, mean.shape)
        density = jax.vmap(lambda draw: log_mixture(draw, logits, mean, log_std), in_axes=-1, out_axes=-1)(u)
        return -jnp.sum(jax.nn.softmax(logits) * density, axis=(-2, -1))


def log_mixture(u: Array, logits: Array, mean: Array, log_std: Array) -> Array:
    """log Σ_k c_k TanhN(tanh u; μ_k, σ_k) per dimension: u is [B, A], the components' parameters are [B, A, K]."""
    u = u[..., None]
    components = jax.nn.log_softmax(logits) + log_normal(u, mean, log_std) - log_tanh_derivative(u)
    return jax.nn.logsumexp(components, axis=-1)
