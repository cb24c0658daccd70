"""DualDICE: discounted occupancy ratios from logged transitions, and the state weights made of them."""

from __future__ import annotations

from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array
from typing_extensions import override

from sapp.core.errors import SappError, check_ranges
from sapp.core.pytrees import select, usable
from sapp.core.spec import Batch, Spec
from sapp.networks import MLP, BehaviourDensity, Policy, StateActionNetwork
from sapp.networks.categorical import CategoricalActor, one_hot
from sapp.weights.base import Metrics, RatioWeights, predicted_reward
from sapp.weights.transforms import LogMinMax, Transform

LOG_DENSITY_CLIP = 5.0
"""log(β̂/π) is clipped to ± this: over several action dimensions it spans tens of nats and would drown the ratio."""
LOG_RATIO_LIMIT = 15.0
SOFTPLUS_ONE = 0.5413248546129181
"""softplus of this is 1."""


class Health(eqx.Module):
    """Running means that tell whether the estimator can be trusted."""

    zeta: Array
    zeta_squared: Array
    nu: Array
    unreliable: Array


class DualDICEState(eqx.Module):
    """ν, ζ, the state ratio g, the behaviour density (if used), λ, their optimisers, and the estimator's health."""

    nu: StateActionNetwork
    zeta: StateActionNetwork
    ratio: MLP
    behaviour: BehaviourDensity | CategoricalActor | None
    multiplier: Array
    optimiser: Any
    health: Health
    mean: Array
    std: Array


class DualDICE(RatioWeights):
    """f(ω(s)) with ω = dᵖ(s)/dᴰ(s) estimated by DualDICE for the current policy.

    ζ(s,a) ≈ dᵖ(s,a)/dᴰ(s,a), with dᵖ normalised to mass 1, solves

        min_ν max_ζ  E_D[(ν(s,a) − γ(1−terminal)·ν(s',a'))·ζ(s,a) − ζ(s,a)²/2] − (1−γ)·E_{s₀}[ν(s₀,a₀)],

    a' ~ π(s'), a₀ ~ π(s₀), s₀ uniform over the episode starts. Mass is lost at terminals, so E_D[ζ] < 1 there; with
    ``unit_mean`` a multiplier λ drives E_D[ζ] to 1, on data without terminals (with them it contradicts the rest).

    ``route`` from ζ to the state ratio:
      * ``regression``: g(s) ≈ E_{a~β}[ζ(s,a)] = ω(s), by minimising E[g − ζ·log g]; needs no density (our default);
      * ``density``: ω = ζ(s,a)·β̂(a|s)/π(a|s) at the logged action, β̂ by maximum likelihood (the paper's formula);
      * ``zeta``: ζ(s,a) itself.

    Where actions are discrete, networks take them one-hot, and a', a₀ are not drawn but summed out exactly:
    Σ_b π(b|s')·ν(s',b).

    The networks compute in float32 at highest matrix precision whatever the rest uses: ν(s,a) − γν(s',a') is a small
    difference of large numbers.

    Health: the running mean of ζ must lie in [``min_zeta``, ``max_zeta``] (its true value is at most 1), the effective
    sample size (Eζ)²/E[ζ²] above ``min_ess``, and the mean |ν| below ``max_nu`` times its natural size: along the
    policy's own path ζ averages E[ζ²], so |ν| is of the order of max(1, E[ζ²])/(1−γ). Otherwise the estimate is
    *unreliable*: ``ratio/unreliable`` and the run's events say so. The weights are used all the same, as in the paper;
    with ``fallback`` they are 1 (the plain algorithm) until the estimate is reliable again.

    Defaults are the paper's where it states them (Table "Hyperparameters for SA-CQL on continuous control");
    docs/algorithms/cql.md lists those that are ours.

    Attributes:
        nu_lr: learning rate of ν.
        zeta_lr: learning rate of ζ.
        ratio_lr: learning rate of the state ratio g.
        behaviour_lr: learning rate of the behaviour's density, where the route needs it.
        min_zeta: smallest running mean of ζ of a reliable estimate.
        max_zeta: largest running mean of ζ of a reliable estimate.
        min_ess: smallest effective sample size of a reliable estimate, as a share.
        max_nu: largest mean |ν| of a reliable estimate, in multiples of its natural size.
        health_rate: share of a new batch in the running means.
        route: from ζ to the state ratio: regression, density or zeta.
        positivity: how ζ is kept positive: square, softplus, or identity (not at all).
        unit_mean: drive the mean of ζ to 1, for data without terminals.
        next_actions: number of actions drawn at s', if actions are vectors.
        components: number of mixture components of the behaviour's density.
        adam_b1: Adam's β₁.
        adam_b2: Adam's β₂.

    Examples:
        >>> import sapp
        >>> from sapp.envs.point import behaviour_dataset
        >>> data, small = behaviour_dataset(episodes=6), {"hidden": (8,), "batch_size": 8, "action_samples": 1}
        >>> algorithm = sapp.CQL(weights=sapp.DualDICE(hidden=(8,)), **small)
        >>> phases = sapp.sa_protocol(steps=4, pretrain=2, ratio=4)
        >>> run = sapp.train(algorithm, data, phases=phases, log_every=2, eval_every=0, progress=False)
        >>> 0.0 <= float(run.metrics()[-1]["weights/mean"]) <= 1.0
        True
    """

    f: Transform = LogMinMax()
    nu_lr: float = 1e-4
    zeta_lr: float = 1e-4
    ratio_lr: float = 3e-4
    behaviour_lr: float = 3e-4
    min_zeta: float = 0.1
    max_zeta: float = 2.0
    min_ess: float = 0.01
    max_nu: float = 10.0
    health_rate: float = 0.01
    fallback: bool = False
    hidden: tuple[int, ...] = eqx.field(static=True, default=(256, 256))
    route: Literal["regression", "density", "zeta"] = eqx.field(static=True, default="regression")
    positivity: Literal["square", "softplus", "identity"] = eqx.field(static=True, default="square")
    unit_mean: bool = eqx.field(static=True, default=False)
    next_actions: int = eqx.field(static=True, default=1)
    components: int = eqx.field(static=True, default=5)
    adam_b1: float = eqx.field(static=True, default=0.0)
    adam_b2: float = eqx.field(static=True, default=0.99)

    def __check_init__(self) -> None:
        if self.route not in ("regression", "density", "zeta"):
            raise SappError(f"route {self.route!r} is unknown: use regression, density or zeta")
        if self.positivity not in ("square", "softplus", "identity"):
            raise SappError(f"positivity {self.positivity!r} is unknown: use square, softplus or identity")
        infinity = float("inf")
        rates = {name: getattr(self, name) for name in ("nu_lr", "zeta_lr", "ratio_lr", "behaviour_lr")}
        limits = {name: getattr(self, name) for name in ("min_zeta", "max_zeta", "max_nu")}
        shares = {name: getattr(self, name) for name in ("min_ess", "health_rate", "adam_b1", "adam_b2")}
        check_ranges("DualDICE", rates | limits, 0.0, infinity)
        check_ranges("DualDICE", shares, 0.0, 1.0)
        check_ranges("DualDICE", {"components": self.components}, 1.0, infinity)
        if not self.hidden:
            raise SappError("DualDICE: hidden sizes are empty; name at least one layer")
        if self.next_actions < 1:
            raise SappError(f"next_actions is {self.next_actions}: at least one next action is needed")

    def init(self, key: Array, spec: Spec) -> DualDICEState:
        """Networks that start at ζ = 1, ω = 1."""
        sizes = spec.observation_size, spec.action_size
        keys = jax.random.split(key, 4)
        one = {"square": 1.0, "softplus": SOFTPLUS_ONE, "identity": 1.0}[self.positivity]
        nu = StateActionNetwork(keys[0], *sizes, self.hidden, split_fp16=True)
        zeta = StateActionNetwork(keys[1], *sizes, self.hidden, scale=1e-2, bias=one, split_fp16=True)
        ratio = MLP(keys[2], sizes[0], self.hidden, 1, scale=1e-2, bias=0.0, split_fp16=True)
        behaviour = self._density(keys[3], spec) if self.route == "density" else None
        multiplier = jnp.float32(0.0)
        zero = jnp.float32(0.0)
        return DualDICEState(
            nu=nu,
            zeta=zeta,
            ratio=ratio,
            behaviour=behaviour,
            multiplier=multiplier,
            optimiser=self._adam().init((nu, zeta, ratio, behaviour, multiplier)),
            health=Health(jnp.float32(1.0), jnp.float32(1.0), zero, jnp.bool_(False)),
            mean=spec.observation_mean,
            std=spec.observation_std,
        )

    def _density(self, key: Array, spec: Spec) -> BehaviourDensity | CategoricalActor:
        if spec.discrete:
            return CategoricalActor(MLP(key, spec.observation_size, self.hidden, spec.action_size))
        return BehaviourDensity(key, spec.observation_size, spec.action_size, self.hidden, self.components)

    def _adam(self) -> optax.GradientTransformation:
        if self.adam_b1 == 0.0:  # the same without the means of gradients, which would cost a quarter of its memory
            return optax.scale_by_rms(decay=self.adam_b2, eps=1e-8, eps_in_sqrt=False, bias_correction=True)
        return optax.scale_by_adam(b1=self.adam_b1, b2=self.adam_b2)

    def positive(self, output: Array) -> Array:
        """The chosen map from the ζ network's output to ζ."""
        if self.positivity == "square":
            return jnp.square(output)
        return jax.nn.softplus(output) if self.positivity == "softplus" else output

    def zeta(self, state: DualDICEState, observation: Array, action: Array) -> Array:
        """Estimated state-action ratio ζ [B]."""
        vector = network_action(state.zeta, action)
        return self.positive(state.zeta((observation - state.mean) / state.std, vector))

    def saddle(
        self,
        nu: StateActionNetwork,
        zeta: StateActionNetwork,
        multiplier: Array,
        batch: Batch,
        next_action: Array,
        initial_action: Array,
        discount: Array,
    ) -> tuple[Array, tuple[Array, Array]]:
        """DualDICE's J(ν, ζ) on a standardised batch, and ν and ζ at the logged pairs.

        ν is evaluated in one pass over the logged pairs, the K next pairs of each, and the initial pairs.
        """
        count, samples, size = next_action.shape
        states = [batch.observation, jnp.repeat(batch.next_observation, samples, axis=0), batch.initial_observation]
        actions = [batch.action, next_action.reshape(count * samples, size), initial_action]
        values = nu(jnp.concatenate(states), jnp.concatenate(actions))
        value, next_values, initial = jnp.split(values, [count, count * (1 + samples)])
        next_value = jnp.mean(next_values.reshape(count, samples), axis=1)
        ratio = self.positive(zeta(batch.observation, batch.action))
        j = saddle_value(value, next_value, initial, ratio, batch.terminal, multiplier, discount)
        return j, (value, ratio)

    def discrete_saddle(
        self,
        nu: StateActionNetwork,
        zeta: StateActionNetwork,
        multiplier: Array,
        batch: Batch,
        next_probs: Array,
        initial_probs: Array,
        discount: Array,
    ) -> tuple[Array, tuple[Array, Array]]:
        """J(ν, ζ) as ``saddle`` has it, with a' and a₀ summed out under the policy's probabilities [B, n]."""
        count, size = next_probs.shape
        every_action = jnp.broadcast_to(jnp.eye(size), (2 * count, size, size))
        states = jnp.concatenate([batch.next_observation, batch.initial_observation])
        values = jnp.sum(nu(states, every_action) * jnp.concatenate([next_probs, initial_probs]), axis=-1)
        next_value, initial = values[:count], values[count:]
        action = one_hot(batch.action, size)
        value = nu(batch.observation, action)
        ratio = self.positive(zeta(batch.observation, action))
        j = saddle_value(value, next_value, initial, ratio, batch.terminal, multiplier, discount)
        return j, (value, ratio)

    def update(
        self, state: DualDICEState, batch: Batch, policy: Policy, discount: Array, key: Array
    ) -> tuple[DualDICEState, Metrics]:
        """Simultaneous steps: ν (and λ) down, ζ up, g towards ζ's conditional mean, β̂ towards the data.

        A step on an objective that is not finite is not taken, so that an unreliable estimator can recover.
        """
        next_key, initial_key = jax.random.split(key)
        objective: Any = self.saddle
        if is_discrete(batch.action):
            objective = self.discrete_saddle
            next_action: Array = policy(batch.next_observation).probs
            initial_action: Array = policy(batch.initial_observation).probs
        else:
            next_action, _ = policy(batch.next_observation).sample_many(next_key, self.next_actions)
            initial_action, _ = policy(batch.initial_observation).sample(initial_key)
        batch = self._standardise(state, batch)

        def saddle(nu: StateActionNetwork, zeta: StateActionNetwork, multiplier: Array) -> Any:
            return objective(nu, zeta, multiplier, batch, next_action, initial_action, discount)

        gradient = jax.value_and_grad(saddle, argnums=(0, 1, 2), has_aux=True)
        (j, (value, zeta)), (nu_grad, zeta_grad, multiplier_grad) = gradient(state.nu, state.zeta, state.multiplier)
        zeta_grad = jax.tree.map(jnp.negative, zeta_grad)
        if not self.unit_mean:
            multiplier_grad = jnp.zeros_like(multiplier_grad)
        ratio_loss, ratio_grad = jax.value_and_grad(regression_loss)(state.ratio, batch.observation, zeta)
        behaviour_grad, metrics = None, {}
        if state.behaviour is not None:
            nll, behaviour_grad = jax.value_and_grad(behaviour_loss)(state.behaviour, batch)
            metrics["ratio/behaviour_nll"] = nll

        gradients = (nu_grad, zeta_grad, ratio_grad, behaviour_grad, multiplier_grad)
        directions, optimiser = self._adam().update(usable(gradients), state.optimiser)
        rates = (self.nu_lr, self.zeta_lr, self.ratio_lr, self.behaviour_lr, self.nu_lr)
        parameters = (state.nu, state.zeta, state.ratio, state.behaviour, state.multiplier)
        stepped = tuple(
            jax.tree.map(lambda p, d, lr=lr: p - lr * d, parameter, direction)
            for parameter, direction, lr in zip(parameters, directions, rates, strict=True)
        )
        finite = jnp.isfinite(j)
        nu, zeta_network, ratio, behaviour, multiplier = select(finite, stepped, parameters)
        health = self._observe(state.health, value, zeta, finite, discount)
        new = DualDICEState(
            nu,
            zeta_network,
            ratio,
            behaviour,
            multiplier,
            select(finite, optimiser, state.optimiser),
            health,
            state.mean,
            state.std,
        )
        return new, metrics | predicted_reward(zeta, batch.reward) | {
            "ratio/saddle": j,
            "ratio/regression_loss": ratio_loss,
            "ratio/zeta_mean": jnp.mean(zeta),
            "ratio/zeta_min": jnp.min(zeta),
            "ratio/zeta_negative": jnp.mean(zeta < 0.0, dtype=jnp.float32),
            "ratio/ess": jnp.square(health.zeta) / jnp.maximum(health.zeta_squared, 1e-12),
            "ratio/nu_abs": jnp.mean(jnp.abs(value)),
            "ratio/unreliable": health.unreliable.astype(jnp.float32),
        }

    def ratio(self, state: DualDICEState, batch: Batch, policy: Policy) -> Array:
        """State ratio ω [B] at the batch's rows, by the chosen route."""
        standard = self._standardise(state, batch)
        if self.route == "regression":
            return jnp.exp(log_ratio(state.ratio, standard.observation))
        zeta = self.positive(state.zeta(standard.observation, network_action(state.zeta, standard.action)))
        if state.behaviour is None:
            return zeta
        log_beta = state.behaviour.log_prob(standard.observation, standard.action)
        log_pi = policy(batch.observation).log_prob(batch.action)
        return zeta * jnp.exp(jnp.clip(log_beta - log_pi, -LOG_DENSITY_CLIP, LOG_DENSITY_CLIP))

    @override
    def unreliable(self, state: DualDICEState) -> Array:
        return state.health.unreliable

    def _observe(self, health: Health, nu: Array, zeta: Array, finite: Array, discount: Array) -> Health:
        def track(old: Array, new: Array) -> Array:
            return jnp.where(finite, old + self.health_rate * (new - old), old)

        mean, square = track(health.zeta, jnp.mean(zeta)), track(health.zeta_squared, jnp.mean(jnp.square(zeta)))
        magnitude = track(health.nu, jnp.mean(jnp.abs(nu)))
        unreliable = (
            ~finite
            | (mean < self.min_zeta)
            | (mean > self.max_zeta)
            | (jnp.square(mean) < self.min_ess * square)
            | (magnitude > self.max_nu * jnp.maximum(1.0, square) / (1.0 - discount))
        )
        return Health(mean, square, magnitude, unreliable)

    @staticmethod
    def _standardise(state: DualDICEState, batch: Batch) -> Batch:
        def standard(observation: Array) -> Array:
            return (observation - state.mean) / state.std

        return Batch(
            standard(batch.observation),
            batch.action,
            batch.reward,
            standard(batch.next_observation),
            batch.terminal,
            standard(batch.initial_observation),
        )


def saddle_value(
    value: Array, next_value: Array, initial: Array, ratio: Array, terminal: Array, multiplier: Array, discount: Array
) -> Array:
    """J = E_D[(ν − γ(1−terminal)·ν' − λ)·ζ − ζ²/2] − (1−γ)·E[ν₀] + λ from ν, ν', ζ [B] and ν₀ at the starts."""
    residual = value - discount * (1.0 - terminal) * next_value - multiplier
    return jnp.mean(residual * ratio - 0.5 * jnp.square(ratio)) - (1.0 - discount) * jnp.mean(initial) + multiplier


def is_discrete(action: Array) -> bool:
    """Whether a batch's actions are discrete (integers) rather than vectors."""
    return bool(jnp.issubdtype(action.dtype, jnp.integer))


def network_action(network: StateActionNetwork, action: Array) -> Array:
    """Actions as a network of state and action takes them: discrete ones one-hot, vectors as they are."""
    if not is_discrete(action):
        return action
    return one_hot(action, network.mlp.layers[0].weight.shape[0] - network.state_size)


def log_ratio(network: MLP, observation: Array) -> Array:
    """log g(s), bounded so that its exponential stays finite."""
    return jnp.clip(network(observation)[..., 0], -LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)


def regression_loss(network: MLP, observation: Array, zeta: Array) -> Array:
    """E[g(s) − ζ·log g(s)], whose minimiser is the conditional mean g(s) = E[ζ | s] (a log-space mean would not be)."""
    h = log_ratio(network, observation)
    return jnp.mean(jnp.exp(h) - jax.lax.stop_gradient(zeta) * h)


def behaviour_loss(behaviour: BehaviourDensity | CategoricalActor, batch: Batch) -> Array:
    """Negative log-likelihood −E[log β̂(a|s)] of the logged actions."""
    return -jnp.mean(behaviour.log_prob(batch.observation, batch.action))
