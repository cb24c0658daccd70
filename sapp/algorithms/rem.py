"""Random ensemble mixture: DQN with many heads, a random convex combination of them in every step."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from sapp.algorithms.dqn import DQN
from sapp.core.errors import SappError


class REM(DQN):
    """REM (Agarwal and others, 2020): Huber loss of one convex combination of K heads.

        Q_c = Σ_k c_k·Q_k,   c_k = u_k/Σ_j u_j,   u ~ U(0,1)^K, drawn once per mini-batch
        loss = E_B[Huber(Q_c(s,a) − y)],   y = r + γ(1−terminal)·max_b Q̄_c(s',b)

    Q and Q̄ use the same c, and the maximum is plain, not double DQN's. The policy acts by the mean of the heads. There
    is no penalty, so state weights have nothing to multiply.

    Defaults: its authors' batch_rl, in gradient steps (they update every 4th agent step, so 8,000 are 2,000).

    Attributes:
        ensemble: K, heads of the network.

    Examples:
        >>> import sapp
        >>> sapp.REM(ensemble=50).ensemble
        50
    """

    lr: float = 5e-5
    target_every: int = 2_000
    ensemble: int = eqx.field(static=True, default=200)
    double: bool = eqx.field(static=True, default=False)
    adam_eps: float = eqx.field(static=True, default=0.01 / 32)

    def check_penalty(self) -> None:
        """No state weights, and heads are estimates, not quantiles."""
        super().check_penalty()
        if self.quantiles:
            raise SappError("REM: its heads are estimates of their own; leave quantiles at 0")
        if self.ensemble < 1:
            raise SappError(f"REM: ensemble is {self.ensemble}; it must be at least 1")

    @property
    def heads(self) -> int:
        """Estimates of Q per action."""
        return self.ensemble

    def mixture(self, key: Array) -> Array:
        """c, uniform draws divided by their sum."""
        drawn = jax.random.uniform(key, (self.ensemble,))
        return drawn / jnp.sum(drawn)
