"""Tasks of different sizes in one population: padding that changes nothing for the task.

A task with fewer observations or actions than its neighbours is filled up with zeros. Padded observations are always
0, so the weights they meet have no effect and no gradient. Padded actions are always 0 and count in no density, so the
critics' weights for them and the actor's outputs behind them have none either. What is left after cutting the padding
off (``sapp.collect.policies``) is a network of the task's own size.
"""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from sapp.networks.gaussian import GaussianActor, TanhGaussian


class Padding(eqx.Module):
    """Which dimensions are real: 1.0 there, 0.0 where padded; ``observation`` [O] and ``action`` [A]."""

    observation: Array
    action: Array

    @classmethod
    def of(cls, observation: int, action: int, observations: int, actions: int) -> Padding:
        """``observation`` and ``action`` real dimensions first, padded to ``observations`` and ``actions``."""
        return cls(
            (jnp.arange(observations) < observation).astype(jnp.float32),
            (jnp.arange(actions) < action).astype(jnp.float32),
        )


class PaddedGaussian(eqx.Module):
    """A tanh-Gaussian of which only some dimensions are real; padded actions are 0 and have no density."""

    full: TanhGaussian
    real: Array

    def mode(self) -> Array:
        """The deterministic action."""
        return self.full.mode() * self.real

    def sample(self, key: Array) -> tuple[Array, Array]:
        """One reparameterised action per state and its log-density: [B, A] and [B]."""
        # dimensions are independent: each as a Gaussian of its own gives the densities one by one
        single = TanhGaussian(self.full.mean[..., None], self.full.log_std[..., None])
        action, log_prob = single.sample(key)
        return action[..., 0] * self.real, jnp.sum(log_prob * self.real, axis=-1)


class PaddedActor(eqx.Module):
    """An actor whose last action dimensions may be padding."""

    actor: GaussianActor
    real: Array

    def __call__(self, state: Array) -> PaddedGaussian:
        """Distribution over actions at states [B, S]."""
        return PaddedGaussian(self.actor(state), self.real)
