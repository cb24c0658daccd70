"""Conservative Q-learning for discrete actions, on double DQN; with ratio weights it is discrete SA-CQL."""

from __future__ import annotations

from collections.abc import Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from sapp.algorithms.base import Metrics
from sapp.algorithms.dqn import DQN
from sapp.core.errors import check_ranges


class DiscreteCQL(DQN):
    """CQL(H) on double DQN. ``DiscreteCQL(weights=DualDICE())`` is discrete SA-CQL.

        loss = E_B[Huber(Q(s,a) − y)] + α·E_B[w(s)·(log Σ_b exp Q(s,b) − Q(s,a))]
        y = r + γ(1−terminal)·Q̄(s', argmax_b Q(s',b))

    All but the second term is ``DQN``'s. The policy is softmax(Q), the maximiser inside the regulariser, and what
    ratios are taken of; its mode, the greedy action, is what is played and exported.

    Defaults: d3rlpy v1's DiscreteCQL, which the paper's Atari table equals, with its batch of 64. CQL's own Atari runs
    are ``quantiles=200, lr=5e-5, adam_eps=3.125e-4, target_every=2000, batch_size=32`` and α 4 on 1 % of the data. For
    small tables of logs a larger learning rate and a shorter ``target_every`` learn in a fraction of the steps.

    Attributes:
        alpha: α, the weight of the penalty.

    Examples:
        >>> import sapp
        >>> table = sapp.DiscreteCQL(alpha=0.1, lr=1e-3, target_every=100)  # for a small table of logs
        >>> table.alpha, table.discrete_actions
        (0.1, True)
    """

    alpha: float = 1.0
    batch_size: int = eqx.field(static=True, default=64)

    def largest_target(self, reward: float, action_size: int, row: Mapping[str, float]) -> float | None:
        """The reward and the penalty's share, as if the loss were quadratic throughout."""
        return reward + float(self.alpha) * row.get("weights/max", 1.0)

    def check_penalty(self) -> None:
        """α is 0 or more; every kind of state weights is taken."""
        check_ranges("DiscreteCQL", {"alpha": self.alpha}, 0.0, float("inf"))

    def penalty(self, values: Array, value: Array, weights: Array) -> tuple[Array | float, Metrics]:
        """α·E_B[w(s)·(log Σ_b exp Q(s,b) − Q(s,a))]; the weights carry no gradient."""
        penalty = jax.nn.logsumexp(values, axis=-1) - value
        conservative = jnp.mean(jax.lax.stop_gradient(weights) * penalty)
        return jnp.asarray(self.alpha, jnp.float32) * conservative, {
            "critic/penalty": jnp.mean(penalty),
            "critic/weighted_penalty": conservative,
        }
