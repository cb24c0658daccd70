"""Networks that score all actions of a state at once, with one head or many an action.

Each is a callable pytree from observations [B, …] to scores [B, n], and has ``many`` ([B, n, K], the heads one by one:
quantiles, or REM's estimates), ``features`` (what state weights see of an observation) and ``head`` (the same scores
as a function of those features).
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from sapp.core.errors import SappError
from sapp.core.precision import Precision, check_precision
from sapp.core.spec import Spec
from sapp.networks.mlp import MLP, Linear

IMPOSSIBLE = -1e9
"""The score of an action that the observation's mask rules out: no softmax, no greedy choice comes to it."""


def split_heads(output: Array, heads: int) -> Array:
    """Outputs [B, n·K] as [B, n, K]."""
    return output.reshape(*output.shape[:-1], -1, heads)


class Scores(eqx.Module):
    """A linear head on features [B, F]."""

    linear: Linear
    heads: int = eqx.field(static=True)
    precision: Precision = eqx.field(static=True)

    def many(self, features: Array) -> Array:
        """Every head's scores [B, n, K]."""
        return split_heads(self.linear.output(features, self.precision), self.heads)

    def __call__(self, features: Array) -> Array:
        """Scores [B, n]: the mean over heads."""
        return jnp.mean(self.many(features), axis=-1)


class Standardised(eqx.Module):
    """A multilayer perceptron behind (s − mean)/std; the statistics are data, they take no gradient.

    From ``mask_at`` on, an observation may hold one number per action, 0 where it is not possible: such actions score
    ``IMPOSSIBLE``. Where it rules out all, nothing is known of them, and none is ruled out.
    """

    network: MLP
    mean: Array
    std: Array
    heads: int = eqx.field(static=True, default=1)
    mask_at: int | None = eqx.field(static=True, default=None)

    def many(self, state: Array) -> Array:
        """Every head's scores [B, n, K] of states [B, S]."""
        mean, std = jax.lax.stop_gradient((self.mean, self.std))
        scores = split_heads(self.network((state - mean) / std), self.heads)
        if self.mask_at is None:
            return scores
        possible = state[..., self.mask_at : self.mask_at + scores.shape[-2]] > 0.5
        nothing = jnp.max(possible.astype(jnp.float32), axis=-1, keepdims=True) < 0.5
        return jnp.where((possible | nothing)[..., None], scores, IMPOSSIBLE)

    def __call__(self, state: Array) -> Array:
        """Scores [B, n]: the mean over heads."""
        return jnp.mean(self.many(state), axis=-1)

    def features(self, state: Array) -> Array:
        """The state itself: vectors need no encoder."""
        return state

    @property
    def head(self) -> Standardised:
        """The network itself, as its features are the state."""
        return self


class MLPScores(eqx.Module):
    """The structure of a network that scores all actions at once: a multilayer perceptron on standardised states.

    What takes its place (``ConvScores`` for frames) has the same ``build``: from a key, a spec and a number of heads
    to a network as this module's docstring describes it.
    """

    hidden: tuple[int, ...] = eqx.field(static=True, default=(256, 256))
    precision: Precision = eqx.field(static=True, default="auto")

    def __check_init__(self) -> None:
        check_precision(self.precision)
        if not self.hidden:
            raise SappError("MLPScores: hidden sizes are empty; name at least one layer")

    def build(self, key: Array, spec: Spec, heads: int = 1) -> Any:
        """A fresh network for a problem."""
        if spec.frame is not None:
            raise SappError("MLPScores: the observations are frames; use network=ConvScores()")
        mlp = MLP(key, spec.observation_size, self.hidden, spec.action_size * heads, self.precision)
        return Standardised(mlp, spec.observation_mean, spec.observation_std, heads, spec.mask_at)
