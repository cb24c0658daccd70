"""Problems whose occupancies are known: two corridors, a pendulum, HalfCheetah, and a finite MDP.

Each has a behaviour β = tanh N(m(s), σ(s)²) that makes the data, and target policies π_k = tanh N(m + k·σ·d, (σ/2)²):
its mean moved by k of its own standard deviations in a fixed direction d, at half its spread. The true occupancy of
π_k is sampled, not estimated: many copies of the real system, each restarted with probability 1−γ and at terminals,
have it as their stationary distribution (``sapp.weights.occupancy`` says why).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from sapp.core.errors import SappError
from sapp.data import Dataset
from sapp.networks import TanhGaussian

NAMES = ("corridors", "pendulum", "halfcheetah", "finite")


class Shifted(eqx.Module):
    """π_k of a behaviour: ``behaviour(observation)`` gives m and log σ [B, A]."""

    behaviour: Any
    direction: Array
    shift: Array | float = 0.0
    spread: Array | float = 1.0

    def __call__(self, observation: Array) -> TanhGaussian:
        """The distribution over actions at observations [B, O]."""
        mean, log_std = self.behaviour(observation)
        moved = mean + self.shift * self.direction * jnp.exp(log_std)
        return TanhGaussian(moved, log_std + jnp.log(self.spread))


class System(Protocol):
    """Dynamics of many copies at once, on the device."""

    limit: int

    def start(self, key: Array, count: int) -> Array:
        """States [n, …] of fresh episodes."""
        ...

    def step(self, state: Array, action: Array, key: Array) -> tuple[Array, Array, Array]:
        """Next states, rewards [n] and terminals [n]."""
        ...

    def observe(self, state: Array) -> Array:
        """Observations [n, O]."""
        ...


class Corridors(eqx.Module):
    """Two corridors side by side, from the left to a goal at the right that ends the episode.

    State (x, y) in [−1, 1]²; four actions, of which two push forwards and two sideways. A wall lies between the
    corridors where |x| < ½; the upper one pays more. The behaviour mostly takes the lower one.
    """

    limit: int = eqx.field(static=True, default=200)

    def start(self, key: Array, count: int) -> Array:
        """At the left end."""
        return jax.random.uniform(key, (count, 2), minval=jnp.asarray([-0.95, -0.2]), maxval=jnp.asarray([-0.85, 0.2]))

    def step(self, state: Array, action: Array, key: Array) -> tuple[Array, Array, Array]:
        """A little forwards in any case, sideways by the actions, and noise."""
        forward = 0.03 * (1.0 + 0.4 * (action[:, 0] + action[:, 1]))
        moved = state + jnp.stack([forward, 0.03 * (action[:, 2] + action[:, 3])], -1)
        moved = jnp.clip(moved + 0.012 * jax.random.normal(key, state.shape), -1.0, 1.0)
        x, y = moved[:, 0], moved[:, 1]
        side = jnp.where(state[:, 1] >= 0.0, 1.0, -1.0)
        walled = (jnp.abs(x) < 0.5) & (side * y < 0.12)
        y = jnp.where(walled, 0.12 * side, y)
        return jnp.stack([x, y], -1), jnp.where(y > 0.0, 1.0, 0.3), x > 0.95

    def observe(self, state: Array) -> Array:
        """The position."""
        return state


class CorridorBehaviour(eqx.Module):
    """Towards the middle of the corridor it is in, a little more likely the lower."""

    def __call__(self, observation: Array) -> tuple[Array, Array]:
        """m and log σ."""
        y = observation[:, 1:]
        side = 1.5 * (0.5 * jnp.tanh(8.0 * (y - 0.05)) - y)
        mean = jnp.concatenate([jnp.zeros_like(y), jnp.zeros_like(y), side, side], -1)
        return mean, jnp.full_like(mean, jnp.log(0.4))


class Pendulum(eqx.Module):
    """Gymnasium's pendulum (θ, θ̇) with torque 2·a and a little noise; it never ends."""

    limit: int = eqx.field(static=True, default=200)

    def start(self, key: Array, count: int) -> Array:
        """Any angle, slow."""
        high = jnp.asarray([jnp.pi, 1.0])
        return jax.random.uniform(key, (count, 2), minval=-high, maxval=high)

    def step(self, state: Array, action: Array, key: Array) -> tuple[Array, Array, Array]:
        """Semi-implicit Euler at 0.05 s."""
        angle, speed = state[:, 0], state[:, 1]
        torque = 2.0 * action[:, 0]
        faster = speed + 0.05 * (15.0 * jnp.sin(angle) + 3.0 * torque) + 0.05 * jax.random.normal(key, speed.shape)
        faster = jnp.clip(faster, -8.0, 8.0)
        angle = jnp.mod(angle + 0.05 * faster + jnp.pi, 2 * jnp.pi) - jnp.pi
        cost = jnp.square(angle) + 0.1 * jnp.square(faster) + 0.001 * jnp.square(torque)
        return jnp.stack([angle, faster], -1), -0.1 * cost, jnp.zeros(len(state), bool)

    def observe(self, state: Array) -> Array:
        """cos θ, sin θ, θ̇."""
        return jnp.stack([jnp.cos(state[:, 0]), jnp.sin(state[:, 0]), state[:, 1]], -1)


class PendulumBehaviour(eqx.Module):
    """Torque along the motion, so that it swings up, and against it when it is fast."""

    def __call__(self, observation: Array) -> tuple[Array, Array]:
        """m and log σ."""
        speed = observation[:, 2:]
        mean = 0.6 * jnp.tanh(speed) - 0.15 * speed
        return mean, jnp.full_like(mean, jnp.log(0.4))


class Finite(eqx.Module):
    """A finite MDP as data: one-hot states, one action in [−1, 1] of which only the sign matters, terminals."""

    transition: Array
    """[S, 2, S + 1], the last column being the end."""
    reward: Array
    start_law: Array
    limit: int = eqx.field(static=True, default=50)

    def start(self, key: Array, count: int) -> Array:
        """Drawn from ρ."""
        return jax.random.categorical(key, jnp.log(self.start_law), shape=(count,))

    def step(self, state: Array, action: Array, key: Array) -> tuple[Array, Array, Array]:
        """Drawn from P(·|s, sign a); where the task ends the state stays."""
        chosen = (action[:, 0] > 0.0).astype(jnp.int32)
        following = jax.random.categorical(key, jnp.log(self.transition[state, chosen]))
        ended = following == self.reward.shape[0]
        return jnp.where(ended, state, following), self.reward[state, chosen], ended

    def observe(self, state: Array) -> Array:
        """One-hot."""
        return jax.nn.one_hot(state, self.reward.shape[0])

    def ratio(self, policy: Shifted, visits: np.ndarray, discount: float) -> np.ndarray:
        """Exact dᵖ(s)/dᴰ(s) [S], dᴰ being the log's own visit frequencies: (1−γ)ρ(I − γP)⁻¹ over them."""
        distribution = policy(jnp.eye(self.reward.shape[0]))
        share = jax.scipy.stats.norm.cdf(distribution.mean / jnp.exp(distribution.log_std))
        positive = np.asarray(share, np.float64)[:, 0]
        table = np.asarray(self.transition, np.float64)[:, :, :-1]
        step = (1 - positive)[:, None] * table[:, 0] + positive[:, None] * table[:, 1]
        start = np.asarray(self.start_law, np.float64)
        return (1 - discount) * np.linalg.solve(np.eye(len(start)) - discount * step.T, start) / visits


class TableBehaviour(eqx.Module):
    """m by state, one σ."""

    mean: Array

    def __call__(self, observation: Array) -> tuple[Array, Array]:
        """m and log σ."""
        mean = (observation @ self.mean)[:, None]
        return mean, jnp.full_like(mean, jnp.log(0.8))


class NetworkBehaviour(eqx.Module):
    """A published tanh-Gaussian policy: weights are (out, in)."""

    layers: tuple[tuple[Array, Array], ...]
    mean: tuple[Array, Array]
    log_std: tuple[Array, Array]

    def __call__(self, observation: Array) -> tuple[Array, Array]:
        """m and log σ."""
        hidden = observation
        for weight, bias in self.layers:
            hidden = jax.nn.relu(hidden @ weight.T + bias)
        mean, log_std = (hidden @ weight.T + bias for weight, bias in (self.mean, self.log_std))
        return mean, jnp.clip(log_std, -4.0, 2.0)


@dataclass(frozen=True)
class Trace:
    """What many copies went through, each array [steps, copies, …]; ``timeout`` where a copy was restarted without a
    terminal."""

    observation: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    next_observation: np.ndarray
    terminal: np.ndarray
    timeout: np.ndarray

    def dataset(self, name: str) -> Dataset:
        """Copies one after the other, their last steps cut by the end of the recording."""
        timeout = self.timeout.copy()
        timeout[-1] = ~self.terminal[-1]

        def flat(array: np.ndarray) -> np.ndarray:
            return np.swapaxes(array, 0, 1).reshape(-1, *array.shape[2:])

        return Dataset(
            observation=flat(self.observation),
            action=flat(self.action),
            reward=flat(self.reward),
            next_observation=flat(self.next_observation),
            terminal=flat(self.terminal),
            timeout=flat(timeout),
            name=name,
        )


Simulated = System | str
"""A system on the device, or the name of an environment that ``sapp.envs.make`` makes."""


def simulate(
    env: Simulated, policy: Any, copies: int, steps: int, seed: int, burn: int = 0, discount: float | None = None
) -> Trace:
    """Steps of many copies after ``burn`` that are not kept; each restarts at terminals and, with a discount, with
    probability 1−γ at every step, else at the time limit."""
    if isinstance(env, str):
        return _on_host(env, policy, copies, steps, seed, burn, discount)
    kept = _on_device(env, policy, copies, burn + steps, jax.random.PRNGKey(seed), discount)
    return Trace(*(np.asarray(each)[burn:] for each in kept))


@partial(jax.jit, static_argnums=(2, 3, 5))
def _on_device(
    system: Any, policy: Any, copies: int, steps: int, key: Array, discount: float | None
) -> tuple[Array, ...]:
    def body(carry: tuple[Array, Array], key: Array) -> tuple[tuple[Array, Array], tuple[Array, ...]]:
        state, time = carry
        keys = jax.random.split(key, 4)
        observation = system.observe(state)
        action, _ = policy(observation).sample(keys[0])
        moved, reward, terminal = system.step(state, action, keys[1])
        stopped = (
            jax.random.uniform(keys[2], (copies,)) < 1.0 - discount
            if discount is not None
            else time + 1 >= system.limit
        ) & ~terminal
        out = (observation, action, reward, system.observe(moved), terminal, stopped)
        restart = terminal | stopped
        fresh = system.start(keys[3], copies)
        mask = restart.reshape(-1, *[1] * (moved.ndim - 1))
        return (jnp.where(mask, fresh, moved), jnp.where(restart, 0, time + 1)), out

    start_key, key = jax.random.split(key)
    initial = system.start(start_key, copies), jnp.zeros(copies, jnp.int32)
    return jax.lax.scan(body, initial, jax.random.split(key, steps))[1]


@jax.jit
def _draw(policy: Any, observation: Array, key: Array) -> Array:
    return policy(observation).sample(key)[0]


def _on_host(name: str, policy: Any, copies: int, steps: int, seed: int, burn: int, discount: float | None) -> Trace:
    from sapp.envs import make

    environment = make(name)
    rng, key = np.random.default_rng(seed), jax.random.PRNGKey(seed)
    observation = np.asarray(environment.reset(copies, seed), np.float32)
    time, episodes = np.zeros(copies, np.int64), copies
    kept: list[tuple[np.ndarray, ...]] = []
    for number in range(burn + steps):
        action = np.asarray(_draw(policy, jnp.asarray(observation), jax.random.fold_in(key, number)))
        following, reward, terminal = environment.step(action)
        time += 1
        late = time >= environment.max_episode_steps
        stopped = (rng.random(copies) < 1.0 - discount if discount is not None else late) & ~terminal
        successor = np.asarray(following, np.float32)
        if number >= burn:
            kept.append((observation, action, reward.astype(np.float32), successor, terminal.copy(), stopped))
        observation = successor.copy()
        rows = np.flatnonzero(terminal | stopped)
        if len(rows):
            observation[rows] = environment.restart(rows, episodes + np.arange(len(rows)))
            time[rows] = 0
            episodes += len(rows)
    return Trace(*(np.stack(each) for each in zip(*kept, strict=True)))


@dataclass(frozen=True)
class Problem:
    """A system, its behaviour and direction, and what is known exactly: cells of the state space, or the ratio."""

    name: str
    env: Simulated
    behaviour: Any
    direction: np.ndarray
    cells: Callable[[np.ndarray], np.ndarray] | None = None

    def policy(self, shift: float, spread: float = 0.5) -> Shifted:
        """π_k."""
        return Shifted(self.behaviour, jnp.asarray(self.direction, jnp.float32), jnp.float32(shift), spread)

    def logging(self) -> Shifted:
        """β."""
        return self.policy(0.0, 1.0)


def _grid(*columns: tuple[np.ndarray, float, float, int]) -> np.ndarray:
    """Numbers of the cells of a regular grid, from (values, low, high, count) of each column."""
    number = np.zeros(len(columns[0][0]), np.int64)
    for values, low, high, count in columns:
        place = np.clip(((values - low) / (high - low) * count).astype(np.int64), 0, count - 1)
        number = number * count + place
    return number


def _corridor_cells(observation: np.ndarray) -> np.ndarray:
    return _grid((observation[:, 0], -1.0, 1.0, 40), (observation[:, 1], -1.0, 1.0, 40))


def _pendulum_cells(observation: np.ndarray) -> np.ndarray:
    angle = np.arctan2(observation[:, 1], observation[:, 0])
    return _grid((angle, -np.pi, np.pi, 40), (observation[:, 2], -8.0, 8.0, 40))


def make_problem(name: str, policy: Path | None = None) -> Problem:
    """A problem by name. HalfCheetah's behaviour is D4RL's medium policy where its file is given, else a random linear
    one."""
    if name == "corridors":
        return Problem(name, Corridors(), CorridorBehaviour(), np.ones(4), _corridor_cells)
    if name == "pendulum":
        return Problem(name, Pendulum(), PendulumBehaviour(), np.ones(1), _pendulum_cells)
    if name == "finite":
        return Problem(name, finite_system(), TableBehaviour(jnp.asarray(_finite_means())), np.ones(1))
    if name == "halfcheetah":
        # of length 1: six actions moved by 4σ each are 9.8σ away, and then true samples themselves cannot be ranked
        direction = np.where(np.random.default_rng(0).random(6) < 0.5, -1.0, 1.0) / np.sqrt(6.0)
        return Problem(name, name, _network(policy) if policy else _linear(17, 6), direction)
    raise SappError(f"problem {name!r} is unknown: use one of {', '.join(NAMES)}")


def _network(file: Path) -> NetworkBehaviour:
    from sapp.envs.policies import load_policy

    policy = load_policy(file)
    return NetworkBehaviour(policy.layers, policy.mean, policy.log_std)  # type: ignore[arg-type]


def _linear(observations: int, actions: int) -> NetworkBehaviour:
    weight = np.random.default_rng(1).normal(0.0, 0.3, (actions, observations)) / np.sqrt(observations)
    zeros = np.zeros((actions, observations))
    mean = jnp.asarray(weight, jnp.float32), jnp.zeros(actions)
    return NetworkBehaviour((), mean, (jnp.asarray(zeros, jnp.float32), jnp.full(actions, np.log(0.4))))


FINITE_STATES = 8


def finite_system() -> Finite:
    """Eight states, sparse random transitions; the second action ends the task one time in fifty."""
    rng = np.random.default_rng(4)
    table = rng.dirichlet(np.full(FINITE_STATES, 0.3), size=(FINITE_STATES, 2))
    ends = np.zeros((FINITE_STATES, 2, 1))
    ends[:, 1] = 0.02
    full = np.concatenate([table * (1.0 - ends), ends], -1)
    reward = rng.normal(size=(FINITE_STATES, 2))
    start = rng.dirichlet(np.ones(FINITE_STATES))
    return Finite(jnp.asarray(full, jnp.float32), jnp.asarray(reward, jnp.float32), jnp.asarray(start, jnp.float32))


def _finite_means() -> np.ndarray:
    return np.random.default_rng(5).normal(0.0, 0.3, FINITE_STATES).astype(np.float32)
