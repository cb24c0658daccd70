"""One-step models of the environment: where a state goes under an action, and whether the task ends there.

Two kinds, for two kinds of world. Particles ask either for its ``loss`` (what to minimise; then the error and that of a
constant model, which the caller averages before it divides them) and for ``step`` (successors of states [P, S] under
actions [P, A], and which of them ended the task [P]). States are standardised throughout.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from sapp.core.precision import Precision
from sapp.networks.gaussian import log_normal
from sapp.networks.mlp import MLP

LOG_NOISE_RANGE = (-6.0, 1.0)
MASKED = -1e9
SLOW = 1e-4
"""Mean square change per step, in squares of the data's deviation, below which a dimension counts less: one that never
changes has nothing to learn and would otherwise have the largest gradient."""
FINE = 1e-3
"""Share of a dimension's mean square change below which its error is small: from there on its gradient falls."""


class Transitions(eqx.Module):
    """Logged one-step transitions: ``state``, ``following`` [B, S], ``action`` [B, A], ``terminal`` [B] 0 or 1."""

    state: Array
    action: Array
    following: Array
    terminal: Array


class GaussianSuccessor(eqx.Module):
    """s' = s + M(s,a) + noise·σ(s,a)·ε, with a logit for the end of the task: one network for all three.

    M by the logarithm of each dimension's mean square relative to its change, which is close to maximum likelihood with
    one variance per dimension: every state counts the same, and the gradient does not vanish as M becomes good. A plain
    mean square's does, and in the layers that all heads share what remained was the gradient of σ. σ by maximum
    likelihood around M as it stands, without gradient to M's head. Right for smooth dynamics with little or bell-shaped
    noise: simulators, motors. On rows that end the task there is nothing to step to, and their successors are not
    learned.
    """

    mlp: MLP

    def __init__(
        self, key: Array, state_size: int, action_size: int, hidden: Sequence[int], precision: Precision = "float32"
    ) -> None:
        self.mlp = MLP(key, state_size + action_size, hidden, 2 * state_size + 1, precision, scale=0.1)

    def heads(self, state: Array, action: Array) -> tuple[Array, Array, Array]:
        """M(s,a) and log σ(s,a), each [B, S], and the logit of a terminal [B]."""
        size = state.shape[-1]
        out = self.mlp(jnp.concatenate([state, action], axis=-1))
        return out[:, :size], jnp.clip(out[:, size : 2 * size], *LOG_NOISE_RANGE), out[:, -1]

    def loss(self, logged: Transitions) -> tuple[Array, tuple[Array, Array]]:
        """½·mean_d log(E[(Δ − M)_d²]/V[Δ_d] + FINE) + E[−log N(Δ; M, σ²)]/S + E[terminal's cross-entropy], Δ = s' − s;
        dimensions that hardly change count less. The errors are mean squares."""
        change = logged.following - logged.state
        mean, log_std, logit = self.heads(logged.state, logged.action)
        going = (1.0 - logged.terminal)[:, None]
        count = jnp.maximum(jnp.sum(going), 1.0)

        def average(value: Array) -> Array:
            return jnp.sum(going * value, axis=0) / count

        errors = average(jnp.square(change - mean))
        spread = average(jnp.square(change - average(change)))
        fit = 0.5 * jnp.mean(spread / (spread + SLOW) * jnp.log(errors / (spread + SLOW) + FINE))
        likelihood = jnp.mean(average(-log_normal(change, jax.lax.stop_gradient(mean), log_std)))
        ended = jnp.mean(jax.nn.softplus(logit) - logged.terminal * logit)
        return fit + likelihood + ended, (jnp.mean(errors), jnp.mean(spread))

    def step(self, state: Array, action: Array, logged: Transitions, noise: Array, key: Array) -> tuple[Array, Array]:
        """A draw of the Gaussian, and a draw of the end."""
        noise_key, end_key = jax.random.split(key)
        mean, log_std, logit = self.heads(state, action)
        moved = state + mean + noise * jnp.exp(log_std) * jax.random.normal(noise_key, state.shape)
        return moved, jax.random.uniform(end_key, logit.shape) < jax.nn.sigmoid(logit)


class LoggedSuccessor(eqx.Module):
    """Successors drawn from logged ones: of those in the batch, j with probability ∝ exp(φ(s,a)·ψ(s'_j)/√E).

    φ and ψ are trained to tell a transition's own successor from those of the others (InfoNCE), whose optimum is
    φ·ψ/√E = log P(s'|s,a)/dᴰ(s') + a function of (s,a). So drawing among logged successors in proportion to its
    exponential is (self-normalised) sampling from P(·|s,a), whatever its shape. A mean would be wrong where the next
    state is one of several: in a finite world with one-hot states the mean of two states is no state at all, and a
    classifier would tell it from data at a glance. Every particle here is a state that was logged. In many continuous
    dimensions, though, the nearest of a few hundred logged successors is far away; there take ``GaussianSuccessor``.
    """

    pair: MLP
    candidate: MLP
    ending: MLP

    def __init__(
        self, key: Array, state_size: int, action_size: int, hidden: Sequence[int], precision: Precision = "float32",
        features: int = 64,
    ) -> None:  # fmt: skip
        keys = jax.random.split(key, 3)
        self.pair = MLP(keys[0], state_size + action_size, hidden, features, precision)
        self.candidate = MLP(keys[1], state_size, hidden, features, precision)
        self.ending = MLP(keys[2], state_size + action_size, hidden, 1, precision)

    def scores(self, state: Array, action: Array, candidates: Array) -> Array:
        """φ(s,a)·ψ(candidate)/√E of every pair [P] with every candidate [N]: [P, N]."""
        query, answer = self.pair(jnp.concatenate([state, action], axis=-1)), self.candidate(candidates)
        return query @ answer.T / math.sqrt(answer.shape[-1])

    def loss(self, logged: Transitions) -> tuple[Array, tuple[Array, Array]]:
        """InfoNCE over rows that go on, and the cross-entropy of the end; a constant model has log(candidates)."""
        going = 1.0 - logged.terminal
        count = jnp.maximum(jnp.sum(going), 1.0)
        scores = self.scores(logged.state, logged.action, logged.following) + MASKED * logged.terminal[None, :]
        error = jnp.sum(going * (jax.nn.logsumexp(scores, axis=-1) - jnp.diagonal(scores))) / count
        logit = self.ending(jnp.concatenate([logged.state, logged.action], axis=-1))[:, 0]
        ended = jnp.mean(jax.nn.softplus(logit) - logged.terminal * logit)
        return error + ended, (error, jnp.log(count))

    def step(self, state: Array, action: Array, logged: Transitions, noise: Array, key: Array) -> tuple[Array, Array]:
        """One of the batch's successors each, and a draw of the end."""
        pick_key, end_key = jax.random.split(key)
        scores = self.scores(state, action, logged.following) + MASKED * logged.terminal[None, :]
        logit = self.ending(jnp.concatenate([state, action], axis=-1))[:, 0]
        ended = jax.random.uniform(end_key, logit.shape) < jax.nn.sigmoid(logit)
        return logged.following[jax.random.categorical(pick_key, scores)], ended
