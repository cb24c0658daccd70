"""TD3+BC: TD3 whose actor is also pulled towards the logged actions; with ratio weights it is SA-TD3+BC."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from sapp.algorithms.base import Metrics, check_settings
from sapp.algorithms.td3 import TD3
from sapp.core.spec import Batch
from sapp.networks import DeterministicActor


class TD3BC(TD3):
    """TD3 (see there) with the actor's loss

        −λ·E_B[Q₁(s,μ(s))] + E_B[w(s)·mean_d (μ_d(s) − a_d)²],   λ = α / E_B|Q₁(s,μ(s))| (no gradient)

    on observations normalised with the data's mean and std + 1e-3. That loss and the deterministic actor are all that
    distinguishes it from SAC. ``TD3BC(weights=DualDICE())`` is SA-TD3+BC.

    Defaults: the authors' code (Fujimoto & Gu 2021), one million steps.

    Attributes:
        alpha: α, the weight of Q against cloning: larger is less pessimistic.

    Examples:
        >>> import sapp
        >>> from sapp.envs.point import behaviour_dataset
        >>> data = behaviour_dataset(episodes=6)
        >>> algorithm = sapp.TD3BC(alpha=2.5, hidden=(8,), batch_size=8)
        >>> run = sapp.train(algorithm, data, steps=4, eval_every=2, eval_episodes=2, progress=False)
        >>> [row["step"] for row in run.evaluations()]
        ['2', '4']
    """

    alpha: float = 2.5

    def __check_init__(self) -> None:
        check_settings(self, "alpha")

    def actor_loss(
        self, actor: DeterministicActor, critics: Any, batch: Batch, weights: Array
    ) -> tuple[Array, Metrics]:
        """−λ·E[Q₁(s,μ(s))] + E[w(s)·mean_d (μ_d(s) − a_d)²]."""
        action = actor(batch.observation)
        first = jax.tree.map(lambda leaf: leaf[0], critics)
        value = first(batch.observation, action)
        scale = jax.lax.stop_gradient(self.alpha / jnp.mean(jnp.abs(value)))
        penalty = jnp.mean(jnp.square(action - batch.action), axis=-1)
        loss = jnp.mean(weights * penalty) - scale * jnp.mean(value)
        return loss, {"actor/penalty": jnp.mean(penalty), "actor/scale": scale, "actor/value": jnp.mean(value)}
