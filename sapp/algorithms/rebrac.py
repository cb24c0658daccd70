"""ReBRAC: TD3 with behaviour penalties, decoupled, on the actor and on the target's value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from sapp.algorithms.base import Metrics, check_settings
from sapp.algorithms.td3 import TD3
from sapp.core.spec import Batch, Spec
from sapp.data.benchmark_names import d4rl_parts
from sapp.networks import DeterministicActor, LayerNormCritic, ensemble, many, small_head


class ReBRAC(TD3):
    """TD3 (see there) with layer norm in the critics and, a' being the next logged action,

        actor    E_B[β₁·w(s)·‖μ(s) − a‖² − λ·min_i Q_i(s,μ(s))],   λ = 1 / E_B|min_i Q_i| (no gradient)
        target   penalty(s',ã') = β₂·w(s)·‖ã' − a'‖²

    At the last row of an episode there is no next logged action and that penalty is 0 (at a terminal the value of s' is
    dropped anyway). State weights belong to the batch's states, so the successor's penalty takes its predecessor's.

    Defaults: the authors' code and its setting for halfcheetah-medium (Tarasov et al. 2023), one million steps; presets
    know β₁ and β₂ of every locomotion set.

    Attributes:
        actor_penalty: β₁, the weight of the distance to the logged action in the actor's loss.
        critic_penalty: β₂, the weight of the distance to the next logged action in the target.

    Examples:
        >>> import sapp
        >>> sapp.ReBRAC(actor_penalty=0.01, critic_penalty=0.01).actor_penalty
        0.01
        >>> sapp.preset("rebrac", "hopper-expert").actor_penalty  # by dataset, as its authors found
        0.1
    """

    needs_next_action: ClassVar[bool] = True

    actor_penalty: float = 0.001
    critic_penalty: float = 0.01
    actor_lr: float = 1e-3
    critic_lr: float = 1e-3
    hidden: tuple[int, ...] = eqx.field(static=True, default=(256, 256, 256))
    batch_size: int = eqx.field(static=True, default=1024)
    normalise: bool = eqx.field(static=True, default=False)

    def __check_init__(self) -> None:
        check_settings(self, "actor_penalty", "critic_penalty")

    def largest_target(self, reward: float, action_size: int, row: Mapping[str, float]) -> float | None:
        """The reward and the target's penalty, between actions at opposite corners at most."""
        return reward + float(self.critic_penalty) * 4.0 * action_size * row.get("weights/max", 1.0)

    def make_networks(self, key: Array, spec: Spec) -> tuple[DeterministicActor, Any]:
        """An actor with a small last layer and two critics with layer norm."""
        actor_key, head_key, critic_key = jax.random.split(key, 3)
        sizes = spec.observation_size, spec.action_size
        actor = DeterministicActor(actor_key, *sizes, self.hidden, self.precision)
        actor = eqx.tree_at(lambda a: a.mlp, actor, small_head(1e-3)(head_key, actor.mlp))
        return actor, many(lambda k: LayerNormCritic(k, *sizes, self.hidden, self.precision), critic_key, 2)

    def target_penalty(self, batch: Batch, next_action: Array, weights: Array) -> Array:
        """β₂·w(s)·‖ã' − a'‖², 0 where no next action was logged."""
        assert batch.next_action is not None
        assert batch.next_logged is not None
        distance = jnp.sum(jnp.square(next_action - batch.next_action), axis=-1)
        return self.critic_penalty * weights * batch.next_logged * distance

    def actor_loss(
        self, actor: DeterministicActor, critics: Any, batch: Batch, weights: Array
    ) -> tuple[Array, Metrics]:
        """E[β₁·w(s)·‖μ(s) − a‖² − λ·min_i Q_i(s,μ(s))]."""
        action = actor(batch.observation)
        value = jnp.min(ensemble(critics, batch.observation, action), axis=0)
        scale = jax.lax.stop_gradient(1.0 / jnp.mean(jnp.abs(value)))
        penalty = jnp.sum(jnp.square(action - batch.action), axis=-1)
        loss = jnp.mean(self.actor_penalty * weights * penalty - scale * value)
        return loss, {"actor/penalty": jnp.mean(penalty), "actor/scale": scale, "actor/value": jnp.mean(value)}


PENALTIES = {
    ("halfcheetah", "random"): (0.001, 0.1),
    ("halfcheetah", "medium"): (0.001, 0.01),
    ("halfcheetah", "expert"): (0.01, 0.01),
    ("halfcheetah", "medium-expert"): (0.01, 0.1),
    ("halfcheetah", "medium-replay"): (0.01, 0.001),
    ("halfcheetah", "full-replay"): (0.001, 0.1),
    ("hopper", "random"): (0.001, 0.01),
    ("hopper", "medium"): (0.01, 0.01),
    ("hopper", "expert"): (0.1, 0.1),
    ("hopper", "medium-expert"): (0.1, 0.01),
    ("hopper", "medium-replay"): (0.05, 0.5),
    ("hopper", "full-replay"): (0.01, 0.01),
    ("walker2d", "random"): (0.01, 0.0),
    ("walker2d", "medium"): (0.05, 0.1),
    ("walker2d", "expert"): (0.01, 0.5),
    ("walker2d", "medium-expert"): (0.01, 0.01),
    ("walker2d", "medium-replay"): (0.05, 0.01),
    ("walker2d", "full-replay"): (0.01, 0.01),
}
"""(β₁, β₂) of the authors' configurations; other data take halfcheetah-medium's."""


def rebrac(dataset: str) -> ReBRAC:
    """ReBRAC with the penalties of the authors' configuration for a dataset."""
    actor, critic = PENALTIES.get(d4rl_parts(dataset) or ("", ""), PENALTIES["halfcheetah", "medium"])
    return ReBRAC(actor_penalty=actor, critic_penalty=critic)
