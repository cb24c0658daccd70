"""BCQ: the best of actions that a generative model of the data proposes, each moved a little."""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from sapp.algorithms.actor_critic import Trained, bootstrap_target, mixed_minimum, td_loss
from sapp.algorithms.base import Algorithm, Metrics, check_no_weights, check_settings
from sapp.core.errors import check_ranges
from sapp.core.pytrees import polyak
from sapp.core.spec import Batch, Spec
from sapp.networks import CVAE, MLP, BestOf, Precision, StateActionNetwork, ensemble, make_critics, vae_loss
from sapp.weights import StateWeights, Uniform


class Perturbation(eqx.Module):
    """clip(a + Φ·tanh ξ(s,a), ±1): moves an action by at most Φ."""

    mlp: MLP

    def __init__(
        self, key: Array, state_size: int, action_size: int, hidden: Sequence[int], precision: Precision
    ) -> None:
        self.mlp = MLP(key, state_size + action_size, hidden, action_size, precision)

    def __call__(self, state: Array, action: Array, limit: Array | float) -> Array:
        """Moved actions at states [B, S], of [B, A] or [B, K, A]."""
        if action.ndim == 3:
            state = jnp.broadcast_to(state[:, None], (*action.shape[:2], state.shape[-1]))
        return jnp.clip(action + limit * jnp.tanh(self.mlp(jnp.concatenate([state, action], axis=-1))), -1.0, 1.0)


class Generator(eqx.Module):
    """BCQ's distribution over actions: decode a clipped latent, then perturb."""

    vae: CVAE
    perturbation: Perturbation
    limit: Array

    def __call__(self, state: Array) -> Generated:
        """The distribution at states [B, S]."""
        return Generated(self.vae, self.perturbation, self.limit, state)


class Generated(eqx.Module):
    """A generator's distribution at some states. It has no density in closed form: log-densities are not a number."""

    vae: CVAE
    perturbation: Perturbation
    limit: Array
    state: Array

    def of(self, latent: Array) -> Array:
        """Actions of latents [B, L] or [B, K, L]."""
        return self.perturbation(self.state, jnp.tanh(self.vae.decode_raw(self.state, latent)), self.limit)

    def candidates(self, count: int) -> Array:
        """``count`` actions per state, [B, K, A], from latents that are the same at every state and every call."""
        latent = self.vae.latents(jax.random.PRNGKey(0), count)
        return self.of(jnp.broadcast_to(latent, (self.state.shape[0], *latent.shape)))

    def mode(self) -> Array:
        """The action of the latents' mean."""
        return self.of(jnp.zeros((self.state.shape[0], self.vae.latent_size)))

    def sample(self, key: Array) -> tuple[Array, Array]:
        """One action per state; its log-density is not known."""
        return self.of(self.vae.latents(key, self.state.shape[0])), jnp.full(self.state.shape[0], jnp.nan)

    def sample_many(self, key: Array, count: int) -> tuple[Array, Array]:
        """``count`` actions per state; their log-densities are not known."""
        shape = self.state.shape[0], count
        return self.of(self.vae.latents(key, *shape)), jnp.full(shape, jnp.nan)

    def log_prob(self, action: Array) -> Array:
        """NaN: the density of a perturbed draw of the VAE is not known."""
        return jnp.full(action.shape[0], jnp.nan)


class BCQState(eqx.Module):
    """VAE, perturbation and critics, and targets of the last two."""

    vae: Trained[CVAE]
    perturbation: Trained[Perturbation]
    critics: Trained[StateActionNetwork]
    target_perturbation: Perturbation
    target_critics: StateActionNetwork


class BCQ(Algorithm):
    """In this order on one batch, with actions a_k = ξ(s, decode(s, z_k)) from clipped latents z_k:

        VAE           mean (a − â)² + ½·mean KL                                     (see ``sapp.networks.vae``)
        critics       Σ_i E_B[(Q_i(s,a) − y)²]
                      y = r + γ(1−terminal)·max_k [share·min_i + (1−share)·max_i] Q̄_i(s',ā_k),   ā_k by the target ξ̄
        perturbation  −E_B[Q₁(s, ξ(s, decode(s,z)))]

    then both targets. It plays the candidate of highest Q₁ among ``candidates``. Its pessimism is in what is proposed,
    not in a penalty, so there is nothing for state weights to multiply.

    Defaults: the authors' code (Fujimoto et al. 2019), one million steps.

    Attributes:
        limit: largest perturbation of an action; actions lie in [−1, 1].
        next_actions: number of actions of which the target takes the best.
        candidates: number of actions of which the policy plays the best.

    Examples:
        >>> import sapp
        >>> sapp.BCQ(limit=0.1, candidates=50).candidates
        50
    """

    limit: float = 0.05
    share: float = 0.75
    discount: float = 0.99
    actor_lr: float = 1e-3
    critic_lr: float = 1e-3
    vae_lr: float = 1e-3
    tau: float = 0.005
    weights: StateWeights = Uniform()
    hidden: tuple[int, ...] = eqx.field(static=True, default=(400, 300))
    vae_hidden: tuple[int, ...] = eqx.field(static=True, default=(750, 750))
    next_actions: int = eqx.field(static=True, default=10)
    candidates: int = eqx.field(static=True, default=100)
    batch_size: int = eqx.field(static=True, default=100)
    precision: Precision = eqx.field(static=True, default="auto")

    def __check_init__(self) -> None:
        check_settings(self, "limit", counts=("next_actions", "candidates"))
        check_ranges("BCQ", {"share": self.share}, 0.0, 1.0)
        check_no_weights(self, "its pessimism is in which actions are proposed, not in a penalty")

    def init(self, key: Array, spec: Spec) -> BCQState:
        """Fresh networks; the targets start as copies."""
        vae_key, actor_key, critic_key = jax.random.split(key, 3)
        sizes = spec.observation_size, spec.action_size
        vae = CVAE(vae_key, *sizes, self.vae_hidden, self.precision)
        perturbation = Perturbation(actor_key, *sizes, self.hidden, self.precision)
        critics = make_critics(critic_key, spec, 2, self.hidden, self.precision)
        return BCQState(Trained.of(vae), Trained.of(perturbation), Trained.of(critics), perturbation, critics)

    def policy(self, state: BCQState) -> BestOf:
        """The best of many candidates by Q₁."""
        return BestOf(
            self.generator(state.vae.network, state.perturbation.network), state.critics.network, self.candidates
        )

    def generator(self, vae: CVAE, perturbation: Perturbation) -> Generator:
        """The distribution that proposes actions."""
        return Generator(vae, perturbation, jnp.asarray(self.limit, jnp.float32))

    def update(self, state: BCQState, batch: Batch, weights: Array, key: Array) -> tuple[BCQState, Metrics]:
        """VAE, critics, perturbation and targets, once each."""
        vae_key, next_key, actor_key = jax.random.split(key, 3)
        vae, vae_value, vae_metrics = state.vae.descend(vae_loss, self.vae_lr, batch, vae_key)
        proposals = self.generator(vae.network, state.target_perturbation)(batch.next_observation)
        next_action, _ = proposals.sample_many(next_key, self.next_actions)
        values = mixed_minimum(ensemble(state.target_critics, batch.next_observation, next_action), self.share)
        target = bootstrap_target(batch, jnp.max(values, axis=-1), self.discount)
        critics, critic_loss, metrics = state.critics.descend(td_loss, self.critic_lr, batch, target)
        perturbation, actor_loss, _ = state.perturbation.descend(
            self.perturbation_loss, self.actor_lr, critics.network, vae.network, batch, actor_key
        )
        new = BCQState(
            vae, perturbation, critics, polyak(state.target_perturbation, perturbation.network, self.tau),
            polyak(state.target_critics, critics.network, self.tau),
        )  # fmt: skip
        return new, metrics | vae_metrics | {
            "loss": vae_value + critic_loss + actor_loss,
            "actor/loss": actor_loss,
        }

    def perturbation_loss(
        self, perturbation: Perturbation, critics: StateActionNetwork, vae: CVAE, batch: Batch, key: Array
    ) -> tuple[Array, Metrics]:
        """−E[Q₁(s, ξ(s, decode(s,z)))]."""
        action, _ = self.generator(vae, perturbation)(batch.observation).sample(key)
        first = jax.tree.map(lambda leaf: leaf[0], critics)
        return -jnp.mean(first(batch.observation, action)), {}
