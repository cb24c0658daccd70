"""DualDICE's saddle in finite MDPs, where linear algebra solves it: identities, and the gradient of our objective."""

from __future__ import annotations

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sapp.core.spec import Batch
from sapp.weights import DualDICE

TENTHS = 10
"""Policies choose with probabilities in tenths, so that a list of ten actions is the exact expectation."""


@dataclass
class Logs:
    """Rows (s, a, s', terminal) of a finite MDP, starts, and a target policy π(a=1|s) = positive/10."""

    states: int
    state: np.ndarray
    action: np.ndarray
    following: np.ndarray
    terminal: np.ndarray
    starts: np.ndarray
    positive: np.ndarray
    discount: float = 0.9

    @classmethod
    def random(cls, seed: int, terminals: bool, states: int = 4) -> Logs:
        rng = np.random.default_rng(seed)
        pairs = np.array([(s, a) for s in range(states) for a in (0, 1)])
        rows = np.concatenate([pairs, pairs[rng.integers(0, len(pairs), 40)]])
        count = len(rows)
        return cls(
            states, rows[:, 0], rows[:, 1], rng.integers(0, states, count),
            (rng.random(count) < 0.2) if terminals else np.zeros(count, bool),
            rng.integers(0, states, 7), rng.integers(1, TENTHS, states),
        )  # fmt: skip

    @property
    def policy(self) -> np.ndarray:
        return np.stack([1 - self.positive / TENTHS, self.positive / TENTHS], axis=1)

    def pair(self, state: np.ndarray, action: np.ndarray) -> np.ndarray:
        return 2 * state + action

    def visits(self) -> np.ndarray:
        """d^D(s, a) [2S]."""
        return np.bincount(self.pair(self.state, self.action), minlength=2 * self.states) / len(self.state)

    def start(self) -> np.ndarray:
        """ρ ⊗ π [2S]."""
        rho = np.bincount(self.starts, minlength=self.states) / len(self.starts)
        return (rho[:, None] * self.policy).ravel()

    def transition(self) -> np.ndarray:
        """P^π [2S, 2S] of the empirical MDP; a terminal row loses its mass."""
        counts = np.zeros((2 * self.states, self.states))
        np.add.at(counts, (self.pair(self.state, self.action), self.following), ~self.terminal)
        kernel = counts / np.bincount(self.pair(self.state, self.action), minlength=2 * self.states)[:, None]
        return (kernel[:, :, None] * self.policy).reshape(2 * self.states, 2 * self.states)

    def saddle_point(self) -> tuple[np.ndarray, np.ndarray]:
        """ν = (BᵀWB)⁻¹(1−γ)(ρ⊗π) and ζ = Bν with B = I − γP^π, W = diag(d^D)."""
        b, w = np.eye(2 * self.states) - self.discount * self.transition(), np.diag(self.visits())
        nu = np.linalg.solve(b.T @ w @ b, (1 - self.discount) * self.start())
        return nu, b @ nu

    def occupancy(self) -> np.ndarray:
        """d^π(s, a), summed step by step, not solved for."""
        flow, total, p = (1 - self.discount) * self.start(), 0.0, self.transition()
        for _ in range(2000):
            total, flow = total + flow, self.discount * flow @ p
        return total


CASES = [(seed, terminals) for terminals in (False, True) for seed in range(5)]


@pytest.mark.parametrize(("seed", "terminals"), CASES)
def test_exact_saddle_is_the_occupancy_ratio(seed: int, terminals: bool) -> None:
    logs = Logs.random(seed, terminals)
    _, zeta = logs.saddle_point()
    np.testing.assert_allclose(zeta, logs.occupancy() / logs.visits(), atol=1e-10)
    mass = np.sum(zeta * logs.visits())
    assert mass == pytest.approx(1.0, abs=1e-10) if not terminals else mass < 0.99


@pytest.mark.parametrize(("seed", "terminals"), CASES)
def test_behaviour_average_of_exact_zeta_is_the_state_ratio(seed: int, terminals: bool) -> None:
    logs = Logs.random(seed, terminals)
    _, zeta = logs.saddle_point()
    visits = logs.visits().reshape(-1, 2)
    behaviour = visits / visits.sum(1, keepdims=True)
    ratio = logs.occupancy().reshape(-1, 2).sum(1) / visits.sum(1)
    np.testing.assert_allclose((behaviour * zeta.reshape(-1, 2)).sum(1), ratio, atol=1e-10)


class Table(eqx.Module):
    """A function of (state, action) by a table over one-hot states and the action's sign."""

    values: jax.Array

    def __call__(self, state: jax.Array, action: jax.Array) -> jax.Array:
        return self.values[2 * jnp.argmax(state, -1) + (action[..., 0] > 0)]


def objective(logs: Logs, dice: DualDICE):
    """``DualDICE.saddle`` on all rows at once with exact expectations over actions."""
    eye = np.eye(logs.states, dtype=np.float32)
    draws = np.where(np.arange(TENTHS) < logs.positive[:, None], 1.0, -1.0).astype(np.float32)  # [S, 10]
    batch = Batch(
        observation=jnp.asarray(eye[logs.state]),
        action=jnp.asarray(2.0 * logs.action[:, None] - 1.0, jnp.float32),
        reward=jnp.zeros(len(logs.state)),
        next_observation=jnp.asarray(eye[logs.following]),
        terminal=jnp.asarray(logs.terminal, jnp.float32),
        initial_observation=jnp.asarray(eye[np.repeat(logs.starts, TENTHS)]),
    )
    next_action, initial_action = draws[logs.following][..., None], draws[logs.starts].reshape(-1, 1)

    def value(nu: Table, zeta: Table, multiplier: jax.Array) -> jax.Array:
        arguments = batch, jnp.asarray(next_action), jnp.asarray(initial_action), jnp.float32(logs.discount)
        return dice.saddle(nu, zeta, multiplier, *arguments)[0]

    return value


@pytest.mark.parametrize("positivity", ["identity", "square", "softplus"])
@pytest.mark.parametrize("terminals", [False, True])
def test_gradient_of_the_objective_vanishes_at_the_exact_saddle(positivity: str, terminals: bool) -> None:
    logs = Logs.random(11, terminals)
    nu, zeta = logs.saddle_point()
    assert zeta.min() > 0.01
    inverse = {"identity": lambda z: z, "square": np.sqrt, "softplus": lambda z: np.log(np.expm1(z))}[positivity]
    value = jax.value_and_grad(objective(logs, DualDICE(positivity=positivity)), argnums=(0, 1, 2))
    parameters = Table(jnp.asarray(nu, jnp.float32)), Table(jnp.asarray(inverse(zeta), jnp.float32)), jnp.float32(0.0)
    j, (nu_gradient, zeta_gradient, multiplier_gradient) = value(*parameters)
    np.testing.assert_allclose(nu_gradient.values, 0.0, atol=2e-6)
    np.testing.assert_allclose(zeta_gradient.values, 0.0, atol=2e-6)
    # J at the saddle is −½E[ζ²], and λ's gradient is how far E[ζ] falls short of 1
    assert float(j) == pytest.approx(-0.5 * np.sum(logs.visits() * zeta**2), abs=1e-5)
    assert float(multiplier_gradient) == pytest.approx(1.0 - np.sum(logs.visits() * zeta), abs=1e-5)
    # and only there: from ζ = 1 both networks are pushed
    ones = Table(jnp.asarray(inverse(np.ones_like(zeta)), jnp.float32))
    _, (nu_gradient, zeta_gradient, _) = value(parameters[0], ones, parameters[2])
    assert np.abs(nu_gradient.values).max() > 1e-3
    assert np.abs(zeta_gradient.values).max() > 1e-3


def test_saddle_is_a_minimum_in_nu_and_a_maximum_in_zeta() -> None:
    logs = Logs.random(12, True)
    nu, zeta = logs.saddle_point()
    value = objective(logs, DualDICE(positivity="identity"))
    rng = np.random.default_rng(0)

    def at(nu: np.ndarray, zeta: np.ndarray) -> float:
        return float(value(*(Table(jnp.asarray(x, jnp.float32)) for x in (nu, zeta)), jnp.float32(0.0)))

    def best(nu: np.ndarray) -> float:
        """J with the best ζ for a ν, which is its Bellman residual."""
        return at(nu, nu - logs.discount * logs.transition() @ nu)

    for _ in range(5):
        away = rng.normal(size=len(nu))
        assert best(nu + away) > best(nu) + 1e-4
        assert at(nu, zeta + away) < at(nu, zeta) - 1e-4
