"""What a policy is, and what stands between a network and the observations and actions it is used with."""

from __future__ import annotations

from typing import Any, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from sapp.core.spec import Batch, Spec
from sapp.networks.mlp import StateActionNetwork

NORMALISATION_OFFSET = 1e-3
"""Added to the standard deviation, as TD3+BC does."""


class Distribution(Protocol):
    """A distribution over actions for each of a batch of states."""

    def mode(self) -> Array:
        """The deterministic action, [B, A]: what evaluation plays."""
        ...

    def sample(self, key: Array) -> tuple[Array, Array]:
        """One action per state and its log-density: [B, A] and [B]."""
        ...

    def sample_many(self, key: Array, count: int) -> tuple[Array, Array]:
        """``count`` actions per state and their log-densities: [B, K, A] and [B, K]."""
        ...

    def log_prob(self, action: Array) -> Array:
        """Log-density of given actions [B, A] → [B]."""
        ...


class Policy(Protocol):
    """A pytree that maps observations [B, O] to a distribution over actions, with everything it needs to do so.

    DualDICE draws from it, evaluation plays its mode, and ``route="density"`` asks for its log-density.
    """

    def __call__(self, observation: Array, /) -> Any:
        """The ``Distribution`` at these observations."""
        ...


class Normaliser(eqx.Module):
    """(observation − mean)/std with a dataset's statistics, or nothing at all; not trained."""

    mean: Array
    std: Array

    @classmethod
    def of(cls, spec: Spec, on: bool = True) -> Normaliser:
        """TD3+BC's normalisation, std + 1e-3; or the identity."""
        if not on:
            return cls(jnp.zeros_like(spec.observation_mean), jnp.ones_like(spec.observation_std))
        return cls(spec.observation_mean, spec.observation_std + NORMALISATION_OFFSET)

    def __call__(self, observation: Array) -> Array:
        """Normalise observations [..., O]."""
        return (observation - self.mean) / self.std

    def batch(self, batch: Batch) -> Batch:
        """Normalise the three observations of a batch."""
        return eqx.tree_at(
            lambda b: (b.observation, b.next_observation, b.initial_observation),
            batch,
            (self(batch.observation), self(batch.next_observation), self(batch.initial_observation)),
        )


class Normalised(eqx.Module):
    """A policy of normalised observations, as a policy of raw ones: evaluation and export need know nothing of it."""

    normaliser: Normaliser
    inner: Any

    def __call__(self, observation: Array) -> Any:
        """The inner policy's distribution at the normalised observations."""
        return self.inner(self.normaliser(observation))


class BestOf(eqx.Module):
    """Plays the candidate with the highest Q₁ among ``count`` draws of a policy: BCQ, BEAR and UWAC act like this.

    The draws' noise is the same at every state and every call, so the mode is a function of the observation alone.
    As a distribution over actions (DualDICE) it is the policy itself, from which the learner's targets are drawn too.
    """

    inner: Any
    critics: StateActionNetwork
    count: int = eqx.field(static=True)

    def __call__(self, observation: Array) -> BestAction:
        """The inner policy's distribution, with the best candidate as its mode."""
        return BestAction(self.inner(observation), self.critics, observation, self.count)


class BestAction(eqx.Module):
    """The distribution of ``BestOf`` at some observations."""

    distribution: Any
    critics: StateActionNetwork
    observation: Array
    count: int = eqx.field(static=True)

    def mode(self) -> Array:
        """argmax of Q₁ over the candidates."""
        candidates = self.distribution.candidates(self.count)
        first = jax.tree.map(lambda leaf: leaf[0], self.critics)
        return best(candidates, first(self.observation, candidates))

    def sample(self, key: Array) -> tuple[Array, Array]:
        """A draw of the inner distribution."""
        return self.distribution.sample(key)

    def sample_many(self, key: Array, count: int) -> tuple[Array, Array]:
        """Draws of the inner distribution."""
        return self.distribution.sample_many(key, count)

    def log_prob(self, action: Array) -> Array:
        """Log-density by the inner distribution."""
        return self.distribution.log_prob(action)


def best(actions: Array, values: Array) -> Array:
    """Of each state's candidates [B, K, A] the one of highest value [B, K]."""
    return jnp.take_along_axis(actions, jnp.argmax(values, axis=-1)[:, None, None], axis=1)[:, 0]
