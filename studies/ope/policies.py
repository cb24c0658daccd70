"""The policies that are asked about: a family around the behaviour of locomotion logs, CQL's checkpoints, and tables
tilted around a finite task's behaviour.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from sapp import CQL, Dataset, Phase
from sapp.core.precision import Precision
from sapp.evaluation.rollouts import evaluate_discounted
from sapp.experiments.in_memory import Pupil, train_in_memory
from sapp.networks import GaussianActor, TanhGaussian
from sapp.ope.targets import Act
from sapp.tabular.tasks import Task

FAMILY: dict[str, tuple[float, float, float]] = {
    "behaviour": (0.0, 0.0, 1.0),
    "noise 0": (0.0, 0.0, 1e-3),
    "noise 0.3": (0.0, 0.0, 0.3),
    "noise 1.5": (0.0, 0.0, 1.5),
    "shift -1": (0.0, -1.0, 1.0),
    "shift -0.5": (0.0, -0.5, 1.0),
    "shift 0.5": (0.0, 0.5, 1.0),
    "shift 1": (0.0, 1.0, 1.0),
    "blend 0.1": (0.1, 0.0, 1.0),
    "blend 0.25": (0.25, 0.0, 1.0),
    "blend 0.5": (0.5, 0.0, 1.0),
    "DOPE": (1.0, 0.0, 1.0),
}
"""Policies by (share of DOPE's snapshot, shift in the behaviour's standard deviations, factor of the noise)."""

class Blend(eqx.Module):
    """A tanh-Gaussian between two others, with its mean shifted and its noise scaled."""

    first: GaussianActor
    second: GaussianActor
    share: Array
    shift: Array
    noise: Array

    def __call__(self, observation: Array) -> TanhGaussian:
        """Mean and log standard deviation are blended before tanh."""
        one, two = self.first(observation), self.second(observation)
        mean = one.mean + self.share * (two.mean - one.mean) + self.shift * jnp.exp(one.log_std)
        log_std = one.log_std + self.share * (two.log_std - one.log_std) + jnp.log(self.noise)
        return TanhGaussian(mean, log_std)


def family(behaviour: GaussianActor, snapshot: GaussianActor) -> dict[str, Blend]:
    """The policies of ``FAMILY``."""
    return {
        name: Blend(behaviour, snapshot, *(jnp.float32(number) for number in numbers))
        for name, numbers in FAMILY.items()
    }

def play(
    actors: Sequence[Any], act: Act, environment: Any, episodes: int, seed: int, discount: float
) -> tuple[np.ndarray, np.ndarray]:
    """Discounted and plain returns of policies of one structure, [P, episodes] each."""
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *actors)

    @jax.jit
    def ask(observation: Array, key: Array) -> Array:
        def one(actor: Any, x: Array, key: Array) -> Array:
            return actor(x).mode() if act == "mode" else actor(x).sample(key)[0]

        return jax.vmap(one)(stacked, observation, jax.random.split(key, len(actors)))

    keys = iter(range(1 << 30))

    def answer(observation: np.ndarray) -> np.ndarray:
        key = jax.random.fold_in(jax.random.PRNGKey(seed + 1), next(keys))
        unit = np.asarray(ask(jnp.asarray(observation), key), np.float64)
        low, high = environment.action_low, environment.action_high
        return low + (unit + 1) * 0.5 * (high - low)

    found = evaluate_discounted(answer, environment, len(actors), episodes, seed, discount)
    return found.discounted, found.returns

def checkpoints(
    data: Dataset, weights: Sequence[float], steps: Sequence[int], hidden: tuple[int, ...], precision: Precision
) -> dict[str, Any]:
    """CQL's policies at several weights and after several numbers of steps, trained side by side."""
    pupils = [Pupil(CQL(alpha=weight, hidden=hidden, action_samples=4, precision=precision)) for weight in weights]
    every, found = int(np.gcd.reduce(list(steps))), {}
    for trained in train_in_memory(pupils, [data], Phase("train", max(steps), ratio=False), every=every):
        if trained.step in steps:
            stacked = trained.each(lambda algorithm, base, ratio: algorithm.policy(base))
            for number, weight in enumerate(weights):
                policy = jax.tree.map(lambda leaf, i=number: jnp.asarray(leaf[i]), stacked)
                found[f"cql {weight:g} @ {trained.step}"] = policy
    return found

def tilted(task: Task) -> dict[str, np.ndarray]:
    """Policies around a finite task's behaviour β: β·exp(Q/τ) better and worse than it, and β mixed with uniform."""
    value = task.mdp.value(task.behaviour)
    q = task.mdp.action_value(value)

    def tilt(temperature: float) -> np.ndarray:
        power = (q - q.mean(-1, keepdims=True)) / temperature
        weight = task.behaviour * np.exp(power - power.max(-1, keepdims=True))
        return weight / weight.sum(-1, keepdims=True)

    uniform = np.full_like(task.behaviour, 1.0 / task.behaviour.shape[-1])
    return {
        "behaviour": task.behaviour,
        "better 0.3": tilt(0.3),
        "better 0.1": tilt(0.1),
        "better 0.03": tilt(0.03),
        "better 0.01": tilt(0.01),
        "worse 0.1": tilt(-0.1),
        "worse 0.03": tilt(-0.03),
        "quarter uniform": 0.75 * task.behaviour + 0.25 * uniform,
    }
