"""BEAR: an actor kept within the support of the data by a constraint on the MMD to a generative model of it."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from sapp.algorithms.actor_critic import Trained, bootstrap_target, mixed_minimum, squared_td
from sapp.algorithms.base import Algorithm, Metrics, check_settings
from sapp.algorithms.divergences import Kernel, check_kernel, mmd_squared
from sapp.core.errors import check_ranges
from sapp.core.pytrees import polyak
from sapp.core.spec import Batch, Spec
from sapp.data.benchmark_names import d4rl_parts
from sapp.networks import CVAE, BestOf, GaussianActor, Precision, ensemble, make_critics, vae_loss
from sapp.weights import StateWeights, Uniform

LOG_ALPHA_MIN, LOG_ALPHA_MAX = -5.0, 10.0


class BEARState(eqx.Module):
    """VAE, actor, critics, their target, and the logarithm of the multiplier α."""

    vae: Trained[CVAE]
    actor: Trained[GaussianActor]
    critics: Trained[Any]
    target_critics: Any
    log_alpha: Trained[Array]


class BEAR(Algorithm):
    """In this order on one batch, with MMD(s) between actions of π and of a VAE, both before tanh, a few draws each:

        VAE      mean (a − â)² + ½·mean KL                                     (see ``sapp.networks.vae``)
        critics  Σ_i E_B[(Q_i(s,a) − y)²],   y = r + γ(1−terminal)·max_k [share·min_i + (1−share)·max_i] Q̄_i(s',a_k)
        actor    E_B[α·w(s)·(MMD(s) − ε) − min_i Q_i(s,ã)];   the second term only after ``warm_steps``
        α        ascends E_B[w(s)·(MMD(s) − ε)], log α within [−5, 10]

    then the target. a_k ~ π(s'), no entropy anywhere. It plays the candidate of highest Q₁ among ``candidates`` draws
    of π; as a distribution over actions (DualDICE's π) it is π itself. ``BEAR(weights=DualDICE())`` is SA-BEAR.

    Defaults: d3rlpy's published script (after Kumar et al. 2019) with its settings for hopper and walker2d; presets
    choose the kernel by dataset.

    Attributes:
        threshold: ε, the MMD that is allowed.
        sigma: width of the MMD's kernel.
        kernel: of the MMD: gaussian or laplacian.
        alpha_lr: learning rate of the multiplier α.
        initial_alpha: α at the start.
        warm_steps: updates at the start in which the actor follows the MMD alone.
        mmd_samples: number of actions of policy and VAE from which the MMD is estimated.
        next_actions: number of actions of which the target takes the best.
        candidates: number of actions of which the policy plays the best.

    Examples:
        >>> import sapp
        >>> sapp.BEAR(kernel="gaussian", weights="occupancy").kernel
        'gaussian'
        >>> sapp.preset("bear", "hopper-medium").kernel  # by dataset, as d3rlpy's script
        'laplacian'
    """

    log_std_min: ClassVar[float] = -20.0
    """Least log standard deviation of the actor."""

    threshold: float = 0.05
    sigma: float = 20.0
    share: float = 0.75
    discount: float = 0.99
    actor_lr: float = 1e-4
    critic_lr: float = 3e-4
    vae_lr: float = 3e-4
    alpha_lr: float = 1e-3
    initial_alpha: float = 1.0
    tau: float = 0.005
    warm_steps: float = 40_000.0
    weights: StateWeights = Uniform()
    kernel: Kernel = eqx.field(static=True, default="laplacian")
    hidden: tuple[int, ...] = eqx.field(static=True, default=(256, 256))
    vae_hidden: tuple[int, ...] = eqx.field(static=True, default=(750, 750))
    mmd_samples: int = eqx.field(static=True, default=4)
    next_actions: int = eqx.field(static=True, default=10)
    candidates: int = eqx.field(static=True, default=100)
    batch_size: int = eqx.field(static=True, default=256)
    precision: Precision = eqx.field(static=True, default="auto")

    def __check_init__(self) -> None:
        check_settings(
            self, "threshold", "sigma", "initial_alpha", "warm_steps",
            counts=("mmd_samples", "next_actions", "candidates"),
        )  # fmt: skip
        check_kernel(self.kernel)
        check_ranges(type(self).__name__, {"share": self.share}, 0.0, 1.0)

    def make_critics(self, key: Array, spec: Spec) -> Any:
        """Two critics as one batched network; UWAC has its own."""
        return make_critics(key, spec, 2, self.hidden, self.precision)

    def init(self, key: Array, spec: Spec) -> BEARState:
        """Fresh networks; the target starts as a copy of the critics."""
        vae_key, actor_key, critic_key = jax.random.split(key, 3)
        sizes = spec.observation_size, spec.action_size
        vae = CVAE(vae_key, *sizes, self.vae_hidden, self.precision)
        actor = GaussianActor(actor_key, *sizes, self.hidden, self.precision, self.log_std_min)
        critics = self.make_critics(critic_key, spec)
        log_alpha = jnp.log(jnp.asarray(self.initial_alpha, jnp.float32))
        return BEARState(Trained.of(vae), Trained.of(actor), Trained.of(critics), critics, Trained.of(log_alpha))

    def policy(self, state: BEARState) -> BestOf:
        """The best of many draws by Q₁."""
        return BestOf(state.actor.network, state.critics.network, self.candidates)

    def judge(self, critics: Any, state: Array, action: Array, key: Array) -> tuple[Array, Array | float]:
        """Values of actions by all critics, [2, B] or [2, B, K], and how far they are trusted, [B] or [B, K]."""
        return ensemble(critics, state, action), 1.0

    def critic_loss(
        self, critics: Any, batch: Batch, target: Array, trust: Array | float, key: Array
    ) -> tuple[Array, Metrics]:
        """Σ_i E[(Q_i(s,a) − y)²]."""
        return squared_td(ensemble(critics, batch.observation, batch.action), target)

    def scheduled_update(
        self, state: BEARState, batch: Batch, weights: Array, key: Array, step: Array
    ) -> tuple[BEARState, Metrics]:
        """VAE, critics, actor, α and target, once each."""
        vae_key, next_key, judge_key, critic_key, actor_key = jax.random.split(key, 5)
        vae, vae_value, vae_metrics = state.vae.descend(vae_loss, self.vae_lr, batch, vae_key)

        next_action, _ = state.actor.network(batch.next_observation).sample_many(next_key, self.next_actions)
        values, trust = self.judge(state.target_critics, batch.next_observation, next_action, judge_key)
        target = bootstrap_target(batch, jnp.max(mixed_minimum(values, self.share), axis=-1), self.discount)
        least = jax.lax.stop_gradient(jnp.min(jnp.asarray(trust), axis=-1) if jnp.ndim(trust) else trust)
        critics, critic_loss, metrics = state.critics.descend(
            self.critic_loss, self.critic_lr, batch, target, least, critic_key
        )

        alpha = jnp.exp(state.log_alpha.network)
        warm = jnp.where(jnp.asarray(step) >= self.warm_steps, 1.0, 0.0)
        actor, actor_loss, logged = state.actor.descend(
            self.actor_loss, self.actor_lr, critics.network, vae.network, alpha, batch, jax.lax.stop_gradient(weights),
            warm, actor_key,
        )  # fmt: skip
        log_alpha, _, _ = state.log_alpha.descend(
            lambda log_alpha: (-jnp.exp(log_alpha) * logged["actor/violation"], {}), self.alpha_lr
        )
        clipped = jnp.clip(log_alpha.network, LOG_ALPHA_MIN, LOG_ALPHA_MAX)
        log_alpha = eqx.tree_at(lambda a: a.network, log_alpha, clipped)
        targets = polyak(state.target_critics, critics.network, self.tau)
        return BEARState(vae, actor, critics, targets, log_alpha), metrics | vae_metrics | logged | {
            "loss": vae_value + critic_loss + actor_loss,
            "actor/loss": actor_loss,
            "actor/alpha": alpha,
        }

    def actor_loss(
        self, actor: GaussianActor, critics: Any, vae: CVAE, alpha: Array, batch: Batch, weights: Array, warm: Array,
        key: Array,
    ) -> tuple[Array, Metrics]:  # fmt: skip
        """E[α·w(s)·(MMD(s) − ε) − warm·trust·min_i Q_i(s,ã)], ã the first of the draws that the MMD is taken of."""
        own_key, data_key, judge_key = jax.random.split(key, 3)
        own = actor(batch.observation).draw_raw(own_key, self.mmd_samples)
        logged = vae.generate(batch.observation, data_key, self.mmd_samples)
        distance = mmd(own, logged, self.sigma, self.kernel)
        violation = jnp.mean(weights * (distance - self.threshold))
        values, trust = self.judge(critics, batch.observation, jnp.tanh(own[:, 0]), judge_key)
        value = jnp.mean(jax.lax.stop_gradient(trust) * jnp.min(values, axis=0))
        return alpha * violation - warm * value, {
            "actor/mmd": jnp.mean(distance),
            "actor/violation": violation,
            "actor/value": value,
        }


def mmd(x: Array, y: Array, sigma: Array | float, kernel: Kernel) -> Array:
    """√(MMD² + 1e-6) a state."""
    return jnp.sqrt(jnp.maximum(mmd_squared(x, y, sigma, kernel), 0.0) + 1e-6)


def bear(dataset: str) -> BEAR:
    """BEAR as in d3rlpy's script: a Gaussian kernel on halfcheetah, a Laplacian one elsewhere."""
    environment, _ = d4rl_parts(dataset) or ("", "")
    return BEAR(kernel="gaussian" if environment == "halfcheetah" else "laplacian")
