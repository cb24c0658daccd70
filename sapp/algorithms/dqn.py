"""Double DQN: what discrete CQL, REM, QR-DQN and online DQN share."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array

from sapp.algorithms.actor_critic import ADAM, adam_step, bootstrap_target
from sapp.algorithms.base import Algorithm, Metrics, check_no_weights, check_settings
from sapp.core.errors import SappError
from sapp.core.pytrees import select
from sapp.core.spec import Batch, Spec
from sapp.networks.action_scores import IMPOSSIBLE
from sapp.networks.categorical import CategoricalActor
from sapp.networks.conv import DefaultScores
from sapp.weights import StateWeights, Uniform

RMSPROP = optax.scale_by_stddev(decay=0.95, eps=1e-5)
"""Dopamine's centred RMSProp, epsilon inside the root."""


class DQNState(eqx.Module):
    """Q, its target network, the optimiser and the number of updates (for the target's sync)."""

    scores: Any
    target: Any
    optimiser: Any
    updates: Array


class ScoreLearner(Algorithm):
    """What learners of a network that scores all actions share: its policy, and what state weights see of it.

    The policy is softmax of the scores; its mode, the greedy action, is what is played and exported. State weights see
    the encoder's features and the head's policy on them; vectors they see as they are.
    """

    discrete_actions: ClassVar[bool] = True
    images: ClassVar[bool] = True
    network: eqx.AbstractVar[Any]

    def check_problem(self, spec: Spec) -> None:
        """Refuse data with vectors for actions."""
        if not spec.discrete:
            name = type(self).__name__
            raise SappError(f"{name}: the data's actions are continuous; use cql, or name num_actions in the data")

    def policy(self, state: Any) -> CategoricalActor:
        """softmax of the scores."""
        return CategoricalActor(state.scores)

    def features(self, state: Any, observation: Array) -> Array:
        """The encoder's features of frames; vectors as they are."""
        features: Array = state.scores.features(observation)
        return features

    def feature_policy(self, state: Any) -> CategoricalActor:
        """softmax of the head's scores."""
        return CategoricalActor(state.scores.head)

    def feature_spec(self, spec: Spec) -> Spec:
        """Frames become vectors of features, as they are: their mean and scale move with the encoder."""
        if spec.frame is None:
            return spec
        width = self.network.features
        return Spec(width, spec.action_size, jnp.zeros(width), jnp.ones(width), spec.discrete, spec.return_span)


class DQN(ScoreLearner):
    """Double DQN with a hard target sync; with ``quantiles`` it is (double) QR-DQN.

        loss = E_B[Huber(Q(s,a) − y)],   y = r + γ(1−terminal)·Q̄(s', argmax_b Q(s',b))

    Q̄ is a copy of Q taken every ``target_every`` updates; without ``double`` the action at s' is Q̄'s own best. With
    K ``quantiles`` Q(s,a) is the mean of θ_1 … θ_K, there is a target of each of θ̄'s, and the loss is
    ``quantile_huber``. ``adam_eps`` is 1e-8 in d3rlpy and 0.01/32 in Dopamine's quantile agents and REM;
    ``optimiser="rmsprop"`` is Dopamine's DQN.

    Attributes:
        target_every: updates between copies of Q into its target.
        quantiles: number of quantiles of the return, for QR-DQN; 0 = the mean alone.
        double: the target's action is the best by Q, not by its target copy.
        optimiser: adam or rmsprop.
        adam_eps: Adam's ε.

    Examples:
        >>> import sapp
        >>> sapp.DQN(lr=1e-3, target_every=100).quantiles
        0
        >>> sapp.preset("qr-dqn").quantiles
        200
    """

    discount: float = 0.99
    lr: float = 6.25e-5
    target_every: int = 8_000
    weights: StateWeights = Uniform()
    network: Any = DefaultScores()
    batch_size: int = eqx.field(static=True, default=32)
    quantiles: int = eqx.field(static=True, default=0)
    double: bool = eqx.field(static=True, default=True)
    optimiser: Literal["adam", "rmsprop"] = eqx.field(static=True, default="adam")
    adam_eps: float = eqx.field(static=True, default=1e-8)

    def __check_init__(self) -> None:
        check_settings(self, "lr", "adam_eps", "quantiles", counts=("target_every",))
        if self.optimiser not in ("adam", "rmsprop"):
            raise SappError(f"{type(self).__name__}: optimiser {self.optimiser!r} is unknown: use adam or rmsprop")
        self.check_penalty()

    def check_penalty(self) -> None:
        """Refuse state weights, as there is no penalty to multiply with them."""
        check_no_weights(self, "it has no pessimism to spread over states")

    @property
    def heads(self) -> int:
        """Outputs of the network per action."""
        return max(1, self.quantiles)

    def direction(self) -> optax.GradientTransformation:
        """The optimiser's direction; the learning rate multiplies it."""
        if self.optimiser == "rmsprop":
            return RMSPROP
        return ADAM if self.adam_eps == 1e-8 else optax.scale_by_adam(b1=0.9, b2=0.999, eps=self.adam_eps)

    def init(self, key: Array, spec: Spec) -> DQNState:
        """A fresh network; the target starts as its copy."""
        self.check_problem(spec)
        scores = self.network.build(key, spec, self.heads)
        return DQNState(scores, scores, self.direction().init(scores), jnp.int32(0))

    def mixture(self, key: Array) -> Array | None:
        """How heads [K] are combined into one estimate in this step; None: they are quantiles, or there is but one."""
        return None

    def penalty(self, values: Array, value: Array, weights: Array) -> tuple[Array | float, Metrics]:
        """What is added to the TD loss, from Q(s,·) [B, n] and Q(s,a) [B]: nothing."""
        return 0.0, {}

    def update(self, state: DQNState, batch: Batch, weights: Array, key: Array) -> tuple[DQNState, Metrics]:
        """One step of Q; the target is synchronised when its time has come."""
        mixture = self.mixture(key)
        target = self.bootstrap(state, batch, mixture)
        (_, metrics), gradient = jax.value_and_grad(self.loss, has_aux=True)(
            state.scores, batch, target, weights, mixture
        )
        scores, optimiser = adam_step(state.scores, gradient, state.optimiser, self.lr, self.direction())
        updates = state.updates + 1
        synced = select(updates % self.target_every == 0, scores, state.target)
        return DQNState(scores, synced, optimiser, updates), metrics | {"critic/target": jnp.mean(target)}

    def bootstrap(self, state: DQNState, batch: Batch, mixture: Array | None) -> Array:
        """y = r + γ(1−terminal)·θ̄_k(s', b) [B, K], b the best by Q (``double``) or by Q̄."""
        following = estimates(state.target, batch.next_observation, mixture)
        judge = estimates(state.scores, batch.next_observation, mixture) if self.double else following
        chosen = at(following, jnp.argmax(jnp.mean(judge, axis=-1), axis=-1))
        return bootstrap_target(batch, chosen.T, self.discount).T

    def loss(
        self, scores: Any, batch: Batch, target: Array, weights: Array, mixture: Array | None
    ) -> tuple[Array, Metrics]:
        """E_B[TD error of the estimates at (s,a) to their targets [B, K]] + penalty."""
        estimate = estimates(scores, batch.observation, mixture)
        chosen = at(estimate, batch.action)
        values, value = jnp.mean(estimate, axis=-1), jnp.mean(chosen, axis=-1)
        td = jnp.mean(quantile_huber(chosen, target) if self.quantiles else huber(value - target[:, 0]))
        extra, metrics = self.penalty(values, value, weights)
        loss = td + extra
        entropy = -jnp.mean(jnp.sum(jax.nn.softmax(values) * jax.nn.log_softmax(values), axis=-1))
        # near 0 a network tells no state from another: it has not begun to learn, or its units are dead
        spread = jnp.mean(jnp.std(jnp.where(values > IMPOSSIBLE / 2, values, 0.0), axis=0))
        return loss, {"loss": loss, "critic/td": td, **metrics, "critic/value": jnp.mean(value),
                      "critic/spread": spread, "actor/entropy": entropy}  # fmt: skip


def estimates(scores: Any, observation: Array, mixture: Array | None) -> Array:
    """Estimates of Q [B, n, K]: the heads, or their one combination Σ_k c_k·Q_k [B, n, 1]."""
    heads: Array = scores.many(observation)
    return heads if mixture is None else jnp.sum(heads * mixture, axis=-1, keepdims=True)


def at(estimate: Array, action: Array) -> Array:
    """The estimates [B, K] of one action [B] a state."""
    return jnp.take_along_axis(estimate, action[:, None, None], axis=1)[:, 0]


def huber(error: Array) -> Array:
    """½e² within ±1, |e| − ½ beyond."""
    size = jnp.abs(error)
    return jnp.where(size <= 1.0, 0.5 * jnp.square(error), size - 0.5)


def quantile_huber(quantiles: Array, target: Array) -> Array:
    """Σ_i mean_j |τ_i − 1{u_ij < 0}|·Huber(u_ij) with u_ij = y_j − θ_i and τ_i = (i − ½)/K, for θ, y [B, K] → [B]."""
    count = quantiles.shape[-1]
    levels = (jnp.arange(count, dtype=jnp.float32) + 0.5) / count
    error = target[:, None, :] - quantiles[:, :, None]
    sides = jnp.abs(levels[None, :, None] - (error < 0.0))
    return jnp.sum(jnp.mean(sides * huber(error), axis=-1), axis=-1)


DOPAMINE_EPS = 0.01 / 32
"""Adam's epsilon in Dopamine's quantile agents and in REM."""


def qr_dqn(_: str) -> DQN:
    """QR-DQN as batch_rl has it: 200 quantiles; greedy at s' by Q̄ itself, not double."""
    return DQN(quantiles=200, lr=5e-5, adam_eps=DOPAMINE_EPS, target_every=2_000, double=False)
