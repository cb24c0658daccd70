"""BRAC: an actor-critic penalised by a divergence from a cloned behaviour policy, in the values or the policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from sapp.algorithms.actor_critic import Trained, bootstrap_target, branch, mixed_minimum, td_loss
from sapp.algorithms.base import Algorithm, Metrics, check_settings
from sapp.algorithms.divergences import Kernel, check_kernel, mmd_squared
from sapp.core.errors import SappError, check_ranges
from sapp.core.pytrees import polyak
from sapp.core.spec import Batch, Spec
from sapp.networks import NarrowGaussianActor, Precision, StateActionNetwork, TanhGaussian, ensemble, make_critics
from sapp.weights import StateWeights, Uniform

ALPHA_MAX = 500.0
Divergence = Literal["kl", "mmd"]


class BRACState(eqx.Module):
    """Actor, critics, their target, the behaviour policy, and α."""

    actor: Trained[NarrowGaussianActor]
    critics: Trained[StateActionNetwork]
    target_critics: StateActionNetwork
    behaviour: Trained[NarrowGaussianActor]
    alpha: Trained[Array]


class BRAC(Algorithm):
    """With D(s) a divergence between π(·|s) and a cloned β(·|s), from ``samples`` draws each:

        critics  Σ_i E_B[(Q_i(s,a) − y)²],   y = r + γ(1−terminal)·(Q̄(s',a') − α·w(s)·D(s')),   a' ~ π(s')
        actor    E_B[α·w(s)·D(s) − Q(s,ã)],   ã ~ π(s); the second term only after ``warm_steps``

    where Q is share·min + (1−share)·max over the critics. ``value_penalty=False`` leaves D out of the target (BRAC-p;
    with it, BRAC-v). D is the KL divergence, mean(log π(ã) − log β(ã)), or the squared MMD of actions. State weights
    belong to the batch's states, so the successor's D takes its predecessor's. With ``alpha_lr`` above 0 α follows
    dual ascent on E[w(s)·(D(s) − ``target_divergence``)], within [0, 500]. The first ``behaviour_steps`` updates clone
    β by −E_B[log β(a|s)] instead. ``BRAC(weights=DualDICE())`` is SA-BRAC.

    Defaults: the authors' script for the primal KL form (Wu et al. 2019), 300k + 500k steps, but for α, which has the
    unit of a reward. They tune it by task, and their script has 0.1; here it is 5 (see the page of results).

    Attributes:
        alpha: α, the weight of the divergence, in the unit of a reward.
        sigma: width of the MMD's kernel.
        kernel: of the MMD: gaussian or laplacian.
        target_divergence: the divergence that α is adjusted to, if it learns.
        alpha_lr: learning rate of α; 0 keeps it fixed.
        warm_steps: updates at the start in which the actor follows the divergence alone.
        divergence: between policy and behaviour: kl or mmd.
        value_penalty: penalise the target, too (BRAC-v), not the actor alone (BRAC-p).
        samples: number of actions from which the divergence is estimated.
        critic_hidden: layer sizes of the critics.

    Examples:
        >>> import sapp
        >>> sapp.BRAC(behaviour_steps=10_000).preparation  # updates that clone the behaviour first
        10000
        >>> sapp.preset("brac-p").value_penalty
        False
    """

    alpha: float = 5.0
    share: float = 1.0
    sigma: float = 10.0
    target_divergence: float = 0.0
    discount: float = 0.99
    actor_lr: float = 3e-4
    critic_lr: float = 1e-3
    alpha_lr: float = 0.0
    behaviour_lr: float = 5e-4
    tau: float = 0.005
    warm_steps: float = 20_000.0
    weights: StateWeights = Uniform()
    divergence: Divergence = eqx.field(static=True, default="kl")
    value_penalty: bool = eqx.field(static=True, default=True)
    kernel: Kernel = eqx.field(static=True, default="laplacian")
    samples: int = eqx.field(static=True, default=4)
    hidden: tuple[int, ...] = eqx.field(static=True, default=(200, 200))
    critic_hidden: tuple[int, ...] = eqx.field(static=True, default=(300, 300))
    behaviour_steps: int = eqx.field(static=True, default=300_000)
    batch_size: int = eqx.field(static=True, default=256)
    precision: Precision = eqx.field(static=True, default="auto")

    def __check_init__(self) -> None:
        check_settings(self, "sigma", "warm_steps", "behaviour_steps", counts=("samples",))
        check_ranges("BRAC", {"alpha": self.alpha}, 0.0, ALPHA_MAX)
        check_ranges("BRAC", {"share": self.share}, 0.0, 1.0)
        check_kernel(self.kernel)
        if self.divergence not in get_args(Divergence):
            raise SappError(f"divergence {self.divergence!r} is unknown: use {' or '.join(get_args(Divergence))}")

    @property
    def preparation(self) -> int:
        """Updates that clone the behaviour."""
        return self.behaviour_steps

    def init(self, key: Array, spec: Spec) -> BRACState:
        """Fresh networks; the target starts as a copy of the critics."""
        actor_key, critic_key, behaviour_key = jax.random.split(key, 3)
        sizes = spec.observation_size, spec.action_size
        actor, behaviour = (
            NarrowGaussianActor(k, *sizes, self.hidden, self.precision) for k in (actor_key, behaviour_key)
        )
        critics = make_critics(critic_key, spec, 2, self.critic_hidden, self.precision)
        alpha = jnp.asarray(self.alpha, jnp.float32)
        return BRACState(Trained.of(actor), Trained.of(critics), critics, Trained.of(behaviour), Trained.of(alpha))

    def largest_target(self, reward: float, action_size: int, row: Mapping[str, float]) -> float | None:
        """None: a divergence from the behaviour has no bound."""
        return None

    def policy(self, state: BRACState) -> NarrowGaussianActor:
        """The actor as it stands, which is what plays and is exported."""
        return state.actor.network

    def scheduled_update(
        self, state: BRACState, batch: Batch, weights: Array, key: Array, step: Array
    ) -> tuple[BRACState, Metrics]:
        """One step of cloning, or one of the algorithm proper."""
        learned = jnp.asarray(step) - self.behaviour_steps
        return branch(
            learned < 0,
            lambda: self.clone(state, batch),
            lambda: self.learn(state, batch, jax.lax.stop_gradient(weights), key, learned),
        )

    def clone(self, state: BRACState, batch: Batch) -> tuple[BRACState, Metrics]:
        """The behaviour policy by maximum likelihood."""
        behaviour, loss, _ = state.behaviour.descend(likelihood_loss, self.behaviour_lr, batch)
        return eqx.tree_at(lambda s: s.behaviour, state, behaviour), {"loss": loss, "behaviour/loss": loss}

    def learn(
        self, state: BRACState, batch: Batch, weights: Array, key: Array, learned: Array
    ) -> tuple[BRACState, Metrics]:
        """Critics, actor, α and target, once each."""
        next_key, penalty_key, actor_key = jax.random.split(key, 3)
        behaviour, alpha = state.behaviour.network, state.alpha.network
        following = state.actor.network(batch.next_observation)
        next_action, _ = following.sample(next_key)
        next_value = mixed_minimum(ensemble(state.target_critics, batch.next_observation, next_action), self.share)
        if self.value_penalty:
            distance = self.distance(following, behaviour(batch.next_observation), penalty_key)
            next_value = next_value - alpha * weights * distance
        target = bootstrap_target(batch, next_value, self.discount)
        critics, critic_loss, metrics = state.critics.descend(td_loss, self.critic_lr, batch, target)
        actor, policy_loss, logged = state.actor.descend(
            self.actor_loss, self.actor_lr, critics.network, behaviour, alpha, batch, weights,
            jnp.where(learned >= self.warm_steps, 1.0, 0.0), actor_key,
        )  # fmt: skip
        violation = logged["actor/weighted_divergence"] - jnp.mean(weights) * self.target_divergence
        moved, _, _ = state.alpha.descend(lambda a: (-a * jax.lax.stop_gradient(violation), {}), self.alpha_lr)
        moved = eqx.tree_at(lambda m: m.network, moved, jnp.clip(moved.network, 0.0, ALPHA_MAX))
        targets = polyak(state.target_critics, critics.network, self.tau)
        new = BRACState(actor, critics, targets, state.behaviour, moved)
        return new, metrics | logged | {
            "loss": critic_loss + policy_loss,
            "actor/loss": policy_loss,
            "actor/alpha": alpha,
        }

    def actor_loss(
        self, actor: NarrowGaussianActor, critics: Any, behaviour: NarrowGaussianActor, alpha: Array, batch: Batch,
        weights: Array, warm: Array, key: Array,
    ) -> tuple[Array, Metrics]:  # fmt: skip
        """E[α·w(s)·D(s) − warm·Q(s,ã)]."""
        action_key, penalty_key = jax.random.split(key)
        distribution = actor(batch.observation)
        action, log_prob = distribution.sample(action_key)
        value = mixed_minimum(ensemble(critics, batch.observation, action), self.share)
        distance = self.distance(distribution, behaviour(batch.observation), penalty_key)
        weighted = jnp.mean(weights * distance)
        return alpha * weighted - warm * jnp.mean(value), {
            "actor/divergence": jnp.mean(distance),
            "actor/weighted_divergence": weighted,
            "actor/entropy": -jnp.mean(log_prob),
        }

    def distance(self, policy: TanhGaussian, behaviour: TanhGaussian, key: Array) -> Array:
        """D(s) between distributions over actions, [B]; gradients reach the policy through its draws."""
        own_key, other_key = jax.random.split(key)
        action, log_prob = policy.sample_many(own_key, self.samples)
        if self.divergence == "kl":
            other = jax.vmap(behaviour.log_prob, in_axes=1, out_axes=1)(action)
            return jnp.mean(log_prob - other, axis=-1)
        logged, _ = behaviour.sample_many(other_key, self.samples)
        return mmd_squared(action, logged, self.sigma, self.kernel)


def likelihood_loss(behaviour: NarrowGaussianActor, batch: Batch) -> tuple[Array, Metrics]:
    """−E[log β(a|s)]."""
    return -jnp.mean(behaviour(batch.observation).log_prob(batch.action)), {}


def brac_p(_: str) -> BRAC:
    """BRAC-p: the divergence in the policy only, not in the values."""
    return BRAC(value_penalty=False)


def brac_mmd(_: str) -> BRAC:
    """BRAC-p with the squared MMD at a weight of ours: the authors tune α by task.

    The squared MMD of n draws of one distribution with n others of it is (2/n)·(1 − E k), not 0. At an α that holds the
    actor that is more per step than the reward: values would be negative, and an end of the episode a gain. So it is in
    the policy only.
    """
    return BRAC(divergence="mmd", alpha=500.0, value_penalty=False)
