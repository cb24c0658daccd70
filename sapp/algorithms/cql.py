"""Conservative Q-learning, CQL(H), for continuous actions; with ratio weights it is SA-CQL."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from sapp.algorithms.actor_critic import (
    SoftState,
    actor_loss,
    adam_step,
    bootstrap_target,
    entropy_share,
    soft_networks,
    temperature_loss,
)
from sapp.algorithms.base import Algorithm, Metrics, check_settings
from sapp.core.backend import on_cuda
from sapp.core.errors import SappError, check_ranges
from sapp.core.precision import resolve
from sapp.core.pytrees import polyak
from sapp.core.spec import Batch, Spec
from sapp.networks import GaussianActor, Precision, StateActionNetwork, ensemble
from sapp.weights import StateWeights, Uniform

ALPHA_SCALES = {"d3rlpy-v1": 0.5, "per-critic": 1.0, "half-td": 2.0}
"""What α multiplies beside each critic's plain mean squared TD error. d3rlpy v1 averages the penalty over the two
critics but sums their TD errors (α/2 each; the paper's scores live on this scale); the original CQL, CORL and d3rlpy
v2 use α; the paper's printed objective has ½TD, that is 2α."""

Kernel = Literal["auto", "xla", "fused", "tiles"]
"""How the critics' gradient is computed: as the compiler makes it, by ``sapp.kernels.conservative`` or by
``sapp.kernels.conservative_tiles`` (both CUDA, mixed). ``auto`` takes the second where it can."""

CriticGradient = Callable[..., tuple[tuple[Array, Metrics], StateActionNetwork]]
"""(critics, batch, target, proposals, weights, coefficient) → ((loss, metrics), gradient)."""

STATES_AT_ONCE = 32
"""States whose proposals a CPU scores at a time: 31 actions each, about a megabyte per layer of 256."""


class CQL(Algorithm):
    """CQL(H) on soft actor-critic. ``CQL(weights=DualDICE())`` is SA-CQL.

    Per critic i, with the batch mean E_B and state weights w (see ``sapp.weights``):

        loss_i = E_B[(Q_i(s,a) − y)²] + c·α·E_B[w(s)·(L_i(s) − Q_i(s,a))],   y = r + γ(1−terminal)·min_j Q̄_j(s', a')

        L_i(s) = log Σ exp over 3·n actions of Q_i(s,ã) − log q(ã):
                 ã ~ π(·|s) and ã ~ π(·|s'), each with its own log π, and ã ~ U(−1,1)^|A| with −|A| log 2

    c by ``alpha_scale``. ``backup`` chooses a' and V(s'): ``mode`` (the tanh-mean action, the default), ``sample``
    (a' ~ π, as the original CQL) or ``soft`` (a' ~ π with −τ·log π: then α = 0 is exactly SAC). Order within a step:
    temperature, critics, actor, target networks, all on one batch.

    Defaults: the paper's Table "Hyperparameters for SA-CQL on continuous control" and, where it is silent, d3rlpy v1's
    published CQL script.

    Attributes:
        alpha: α, the weight of the penalty.
        action_samples: n: actions drawn per state from each of the three proposals.
        backup: which action the target takes at s': mode, sample, or soft (sample with entropy).
        alpha_scale: what α multiplies: d3rlpy-v1 (α/2 per critic, the paper's scale), per-critic (α) or half-td
            (2α).
        kernel: how the critics' gradient is computed: xla, fused (CUDA, mixed), tiles (the same, not yet tried on a
            GPU), or auto.

    Examples:
        >>> import sapp
        >>> from sapp.envs.point import behaviour_dataset
        >>> data = behaviour_dataset(episodes=6)
        >>> small = {"hidden": (8,), "batch_size": 8, "action_samples": 1, "weights": "matched:random"}
        >>> run = sapp.train(sapp.CQL(alpha=2.5, **small), data, steps=4, eval_every=0, progress=False)
        >>> run.predict(data.observation[:3]).shape
        (3, 2)
    """

    alpha: float = 5.0
    discount: float = 0.99
    critic_lr: float = 3e-4
    actor_lr: float = 1e-4
    temperature_lr: float = 1e-4
    initial_temperature: float = 1.0
    tau: float = 0.005
    weights: StateWeights = Uniform()
    hidden: tuple[int, ...] = eqx.field(static=True, default=(256, 256, 256))
    action_samples: int = eqx.field(static=True, default=10)
    batch_size: int = eqx.field(static=True, default=256)
    backup: Literal["mode", "sample", "soft"] = eqx.field(static=True, default="mode")
    alpha_scale: Literal["d3rlpy-v1", "per-critic", "half-td"] = eqx.field(static=True, default="d3rlpy-v1")
    precision: Precision = eqx.field(static=True, default="auto")
    kernel: Kernel = eqx.field(static=True, default="auto")

    def __check_init__(self) -> None:
        check_settings(self, "alpha", counts=("action_samples",))
        if self.kernel not in get_args(Kernel):
            raise SappError(f"kernel {self.kernel!r} is unknown: use one of {', '.join(get_args(Kernel))}")
        if self.kernel in ("fused", "tiles") and self.precision not in ("auto", "mixed"):
            raise SappError(
                f"kernel {self.kernel} computes in precision mixed, not in {self.precision}: add precision mixed"
            )
        if self.backup not in ("mode", "sample", "soft"):
            raise SappError(f"backup {self.backup!r} is unknown: use mode, sample or soft")
        if self.alpha_scale not in ALPHA_SCALES:
            raise SappError(f"alpha_scale {self.alpha_scale!r} is unknown: use {', '.join(ALPHA_SCALES)}")
        check_ranges("CQL", {"initial_temperature": self.initial_temperature}, 0.0, float("inf"), open_ends=True)

    def init(self, key: Array, spec: Spec) -> SoftState:
        """Fresh networks; the targets start as copies of the critics."""
        return SoftState.fresh(*soft_networks(key, spec, self.hidden, self.precision), self.initial_temperature)

    def largest_target(self, reward: float, action_size: int, row: Mapping[str, float]) -> float | None:
        """The reward, the penalty's share and, with a soft backup, the entropy's.

        The penalty lifts a logged action's value by at most half its weight above the target: there the slopes of
        (Q − y)² and of −c·w·Q cancel.
        """
        weight = ALPHA_SCALES[self.alpha_scale] * float(self.alpha) * row.get("weights/max", 1.0)
        return reward + weight / 2.0 + (entropy_share(action_size, row) if self.backup == "soft" else 0.0)

    def policy(self, state: SoftState) -> GaussianActor:
        """The actor."""
        return state.actor

    def update(self, state: SoftState, batch: Batch, weights: Array, key: Array) -> tuple[SoftState, Metrics]:
        """Temperature, critics, actor and targets, once each."""
        here_key, next_key, uniform_key, actor_key, backup_key = jax.random.split(key, 5)
        distribution, next_distribution = state.actor(batch.observation), state.actor(batch.next_observation)
        proposals = propose(
            distribution.sample_many(here_key, self.action_samples),
            next_distribution.sample_many(next_key, self.action_samples),
            uniform_key,
        )

        temperature_gradient = jax.grad(temperature_loss)(
            state.log_temperature, proposals[1][:, 0], -float(batch.action.shape[-1])
        )
        log_temperature, temperature_optimiser = adam_step(
            state.log_temperature, temperature_gradient, state.temperature_optimiser, self.temperature_lr
        )
        temperature = jnp.exp(log_temperature)

        if self.backup == "mode":
            next_action, next_log_prob = next_distribution.mode(), jnp.float32(0.0)
        else:
            next_action, next_log_prob = next_distribution.sample(backup_key)
        next_value = jnp.min(ensemble(state.targets, batch.next_observation, next_action), axis=0)
        if self.backup == "soft":
            next_value = next_value - temperature * next_log_prob
        target = bootstrap_target(batch, next_value, self.discount)
        coefficient = ALPHA_SCALES[self.alpha_scale] * jnp.asarray(self.alpha, jnp.float32)
        (loss, critic_metrics), gradient = self._gradient_by(batch)(
            state.critics, batch, target, proposals, weights, coefficient
        )
        critics, critic_optimiser = adam_step(state.critics, gradient, state.critic_optimiser, self.critic_lr)

        (policy_loss, log_prob), gradient = jax.value_and_grad(actor_loss, has_aux=True)(
            state.actor, critics, temperature, batch, actor_key
        )
        actor, actor_optimiser = adam_step(state.actor, gradient, state.actor_optimiser, self.actor_lr)
        new = SoftState(
            actor, critics, polyak(state.targets, critics, self.tau), log_temperature,
            actor_optimiser, critic_optimiser, temperature_optimiser,
        )  # fmt: skip
        return new, critic_metrics | {
            "loss": loss + policy_loss,
            "actor/loss": policy_loss,
            "actor/entropy": -log_prob,
            "actor/temperature": temperature,
            "critic/target": jnp.mean(target),
        }

    def _gradient_by(self, batch: Batch) -> CriticGradient:
        """What computes the critics' gradient; a kernel that is asked for and does not fit is an error."""
        if self.kernel == "xla" or (self.kernel == "auto" and (resolve(self.precision) != "mixed" or not on_cuda())):
            return critic_gradient
        from sapp.kernels.availability import unavailable  # not before: Pallas is slow to import

        if why := unavailable():
            if self.kernel == "auto":
                return critic_gradient
            raise SappError(f"kernel {self.kernel} cannot be used: {why}; use kernel xla")
        from sapp.kernels import conservative, conservative_tiles

        states, actions = batch.action.shape
        by = conservative_tiles if self.kernel == "tiles" else conservative
        reason = by.misfit(self.hidden, actions, 3 * self.action_samples, states)
        if reason is None:
            return partial(fused_critic_gradient, by.log_sum_exp_gradient)
        if self.kernel == "auto":
            return critic_gradient
        raise SappError(f"kernel {self.kernel} cannot take {reason}; use kernel xla")


Proposals = tuple[Array, Array]


def propose(here: Proposals, there: Proposals, key: Array) -> Proposals:
    """CQL(H)'s importance proposals: actions [B, 3n, A] and their log-densities [B, 3n], without gradient.

    Actions drawn at s' are scored at s but keep their density at s', as d3rlpy and the original code do.
    """
    action, log_prob = here
    uniform = jax.random.uniform(key, action.shape, minval=-1.0, maxval=1.0)
    uniform_log_prob = jnp.full_like(log_prob, action.shape[-1] * math.log(0.5))
    actions = jnp.concatenate([action, there[0], uniform], axis=1)
    log_probs = jnp.concatenate([log_prob, there[1], uniform_log_prob], axis=1)
    return jax.lax.stop_gradient((actions, log_probs))


def conservative_penalty(scores: Array, log_probs: Array, value: Array) -> Array:
    """L_i(s) − Q_i(s,a) per critic and state, [2, B]: log-sum-exp of Q over the proposals minus Q of the logged
    action."""
    return jax.nn.logsumexp(scores - log_probs, axis=-1) - value


def critic_loss(
    critics: StateActionNetwork, batch: Batch, target: Array, proposals: Proposals, weights: Array, coefficient: Array
) -> tuple[Array, Metrics]:
    """Σ_i E_B[(Q_i(s,a) − y)²] + coefficient·E_B[w(s)·(L_i(s) − Q_i(s,a))].

    The logged action is scored in the same pass as the proposals, as the last of 3n + 1; in precision ``mixed`` apart
    from them, whose products have fewer bits.
    """
    actions, log_probs = proposals
    if critics.mlp.precision == "mixed":
        value = ensemble(critics, batch.observation, batch.action)
        scores = jax.vmap(lambda critic: critic.rough(batch.observation, actions))(critics)
        return _total(value, conservative_penalty(scores, log_probs, value), target, weights, coefficient)
    scores = ensemble(critics, batch.observation, jnp.concatenate([actions, batch.action[:, None]], axis=1))
    value = scores[..., -1]
    return _total(value, conservative_penalty(scores[..., :-1], log_probs, value), target, weights, coefficient)


def _total(value: Array, penalty: Array, target: Array, weights: Array, coefficient: Array) -> tuple[Array, Metrics]:
    """The loss of ``critic_loss`` and its metrics from Q(s,a) and the penalty, both per critic and state."""
    td = jnp.sum(jnp.mean(jnp.square(value - target), axis=-1))
    weighted = jnp.sum(jnp.mean(jax.lax.stop_gradient(weights) * penalty, axis=-1))
    loss = td + coefficient * weighted
    return loss, {
        "critic/loss": loss,
        "critic/td": td / 2.0,
        "critic/penalty": jnp.mean(penalty),
        "critic/weighted_penalty": weighted / 2.0,
        "critic/value": jnp.mean(value),
    }


def fused_critic_gradient(
    log_sum_exp_gradient: Callable[..., Any], critics: StateActionNetwork, batch: Batch, target: Array,
    proposals: Proposals, weights: Array, coefficient: Array,
) -> tuple[tuple[Array, Metrics], StateActionNetwork]:  # fmt: skip
    """As ``critic_gradient`` in precision ``mixed``, with the log-sum-exp by one of the kernels."""

    def logged(critics: StateActionNetwork) -> tuple[Array, Array]:
        """The loss without its log-sum-exp, and Q(s,a)."""
        value = ensemble(critics, batch.observation, batch.action)
        return _total(value, -value, target, weights, coefficient)[0], value

    (_, value), gradient = jax.value_and_grad(logged, has_aux=True)(critics)
    actions, log_probs = proposals
    found = log_sum_exp_gradient(
        tuple((layer.weight, layer.bias) for layer in critics.mlp.layers),
        batch.observation,
        actions,
        log_probs,
        coefficient * weights / target.shape[0],
        interpret=not on_cuda(),
    )
    of_penalty = jax.tree.unflatten(jax.tree.structure(critics), jax.tree.leaves(found.layers))
    gradient = jax.tree.map(jnp.add, gradient, of_penalty)
    return _total(value, found.log_sum_exp - value, target, weights, coefficient), gradient


def critic_gradient(
    critics: StateActionNetwork, batch: Batch, target: Array, proposals: Proposals, weights: Array, coefficient: Array
) -> tuple[tuple[Array, Metrics], StateActionNetwork]:
    """``critic_loss`` with its metrics, and its gradient.

    Everything in it is a mean over states, so on a CPU it is the mean of the same over equal parts of the batch:
    activations then stay in the cache, which is faster, and need a fraction of the memory.
    Accelerators take the batch whole.
    """
    function = jax.value_and_grad(critic_loss, has_aux=True)
    count = target.shape[0]
    parts = _parts(count) if jax.default_backend() == "cpu" else 1
    if parts == 1:
        return function(critics, batch, target, proposals, weights, coefficient)
    split = jax.tree.map(lambda x: x.reshape(parts, count // parts, *x.shape[1:]), (batch, target, proposals, weights))

    def add(total: Any, part: Any) -> tuple[Any, None]:
        return jax.tree.map(jnp.add, total, function(critics, *part, coefficient)), None

    shapes = jax.eval_shape(function, critics, *jax.tree.map(lambda x: x[0], split), coefficient)
    zero = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
    total, _ = jax.lax.scan(add, zero, split)
    return jax.tree.map(lambda leaf: leaf / parts, total)


def _parts(count: int) -> int:
    """Into how many equal parts of at least ``STATES_AT_ONCE`` states a batch can be cut."""
    return max(d for d in range(1, max(1, count // STATES_AT_ONCE) + 1) if count % d == 0)
