"""UWAC: BEAR whose losses trust a value the less, the more dropout samples of it disagree."""

from __future__ import annotations

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from sapp.algorithms.actor_critic import squared_td
from sapp.algorithms.base import Metrics, check_settings
from sapp.algorithms.bear import BEAR, BEARState
from sapp.algorithms.divergences import Kernel
from sapp.core.errors import check_ranges
from sapp.core.spec import Batch, Spec
from sapp.networks import DropoutCritic, many


class UWAC(BEAR):
    """BEAR (see there) with critics under dropout, never switched off in training, and spectral normalisation:

        trust(s,a) = min(exp(−β·(Var Q₁ + Var Q₂)), 1), mean and variance over ``passes`` dropout samples
        critics  Σ_i E_B[(trust'·(Q_i(s,a) − y))²]: one dropout sample of Q_i, trust' the least of the next actions'
        actor    E_B[α·w(s)·(MMD(s) − ε) − trust(s,ã)·min_i Q_i(s,ã)], Q_i the mean of the samples

    The dropout samples of one evaluation are ``passes`` networks, each with one mask, that score all rows: for each row
    the distribution of mean and variance is that of dropout row by row, for far fewer random numbers. It acts by the
    critics without dropout.

    Defaults: the authors' code (Wu et al. 2021).

    Attributes:
        beta: β, how fast trust falls with the critics' variance.
        dropout: share of units that are dropped.
        spectral: normalise the critics' layers by their spectral norm.
        passes: dropout samples for mean and variance.

    Examples:
        >>> import sapp
        >>> sapp.UWAC(beta=0.8, dropout=0.1).dropout
        0.1
    """

    log_std_min: ClassVar[float] = -5.0

    beta: float = 0.5
    threshold: float = 0.07
    kernel: Kernel = eqx.field(static=True, default="gaussian")
    dropout: float = eqx.field(static=True, default=0.1)
    spectral: bool = eqx.field(static=True, default=True)
    passes: int = eqx.field(static=True, default=100)

    def __check_init__(self) -> None:
        check_settings(self, "beta", counts=("passes",))
        check_ranges("UWAC", {"dropout": self.dropout}, 0.0, 0.99)

    def make_critics(self, key: Array, spec: Spec) -> DropoutCritic:
        """Two critics with dropout."""
        sizes = spec.observation_size, spec.action_size
        return many(
            lambda k: DropoutCritic(k, *sizes, self.hidden, self.precision, self.dropout, self.spectral), key, 2
        )

    def judge(self, critics: DropoutCritic, state: Array, action: Array, key: Array) -> tuple[Array, Array]:
        """Mean over dropout samples, and exp(−β·variance) with the critics' variances added."""
        mean, variance = dropout_moments(critics, state, action, key, self.passes)
        return mean, jnp.clip(jnp.exp(-self.beta * jnp.sum(variance, axis=0)), 0.0, 1.0)

    def critic_loss(
        self, critics: DropoutCritic, batch: Batch, target: Array, trust: Array | float, key: Array
    ) -> tuple[Array, Metrics]:
        """Σ_i E[(trust·(Q_i(s,a) − y))²], the trust inside the square."""
        value = jax.vmap(lambda critic, k: critic(batch.observation, batch.action, k))(critics, jax.random.split(key))
        loss, metrics = squared_td(value, target, trust)
        return loss, metrics | {"critic/trust": jnp.mean(jnp.asarray(trust))}

    def scheduled_update(
        self, state: BEARState, batch: Batch, weights: Array, key: Array, step: Array
    ) -> tuple[BEARState, Metrics]:
        """One step of power iteration for the spectral norms, then BEAR's update."""
        moved = jax.vmap(lambda critic: critic.iterate())(state.critics.network)
        state = eqx.tree_at(lambda s: s.critics.network, state, moved)
        return super().scheduled_update(state, batch, weights, key, step)


ABREAST = 10
"""Dropout samples computed at once: a CPU does not mind, an accelerator has a tenth of the kernels to start."""


def dropout_moments(
    critics: DropoutCritic, state: Array, action: Array, key: Array, passes: int
) -> tuple[Array, Array]:
    """Mean and unbiased variance of Q_i(s,a) over dropout samples, each [2, B] or [2, B, K], the critics held constant.

    Samples come in groups of n, whose mean and sum of squares about it join those of the c before by Chan's rule: the
    mean moves by n/(c+n) of the difference of means, and c·n/(c+n) of that difference squared is added. A fused
    kernel keeps nothing but the samples themselves, so with it all are one group.
    """
    most = passes if critics.fused else min(passes, ABREAST)
    abreast = max(size for size in range(1, most + 1) if passes % size == 0)

    def one(carry: tuple[Array, Array], first: Array) -> tuple[tuple[Array, Array], None]:
        mean, square = carry
        keys = jax.vmap(lambda number: jax.random.split(jax.random.fold_in(key, number)))(first + jnp.arange(abreast))
        values = jax.vmap(lambda critic, own: critic.samples(state, action, own), in_axes=(0, 1))(critics, keys)
        own = jnp.mean(values, axis=1)
        difference, share = own - mean, abreast / (first + abreast)
        square = square + jnp.sum(jnp.square(values - own[:, None]), axis=1) + share * first * jnp.square(difference)
        return (mean + share * difference, square), None

    zero = jnp.zeros((2, *action.shape[:-1]), jnp.float32)
    (mean, square), _ = jax.lax.scan(one, (zero, zero), jnp.arange(0, passes, abreast))
    return mean, square / max(1, passes - 1)
