"""Networks and densities written again in plain NumPy, float64: what the algorithms' numbers are compared with."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from sapp.core.spec import Batch, Spec

S, A, B = 5, 3, 16
SPEC = Spec(S, A, jnp.linspace(-1.0, 1.0, S), jnp.linspace(0.5, 2.0, S), return_span=jnp.float32(250.0))


@jax.jit
def _update(algorithm: Any, state: Any, batch: Batch, weights: Any, key: Any, step: Any) -> Any:
    return algorithm.scheduled_update(state, batch, weights, key, step)


SCALARS = {
    ".log_temperature.network": lambda a: np.log(getattr(a, "initial_temperature", 1.0)),
    ".log_multiplier.network": lambda a: 0.0,
    ".log_alpha.network": lambda a: np.log(a.initial_alpha),
    ".alpha.network": lambda a: a.alpha,
    ".reward_scale": lambda a: 1000.0 / 250.0,
}


def init(algorithm: Any, seed: int) -> Any:
    """A state of the algorithm's structure with parameters of our own, no output near zero; nothing is compiled."""
    rng = np.random.default_rng(seed)

    def fill(path: Any, leaf: Any) -> Any:
        name = jax.tree_util.keystr(path)
        if "optimiser" in name:
            value = np.zeros(leaf.shape)
        elif ".normaliser" in name:
            on = algorithm.normalise
            mean, std = f64(SPEC.observation_mean), f64(SPEC.observation_std) + 1e-3
            value = (mean if on else 0 * mean) if name.endswith("mean") else (std if on else np.ones_like(std))
        elif leaf.ndim == 0:
            value = SCALARS[name](algorithm)
        else:
            fan_in = leaf.shape[-2] if leaf.ndim > 1 and name.endswith("weight") else 4.0
            value = rng.normal(size=leaf.shape) / np.sqrt(fan_in) + (1.0 if name.endswith("scale") else 0.0)
        return jnp.asarray(value, leaf.dtype)

    shapes = jax.eval_shape(lambda key: algorithm.init(key, SPEC), jax.random.PRNGKey(0))
    return jax.tree_util.tree_map_with_path(fill, shapes)


def update(algorithm: Any, state: Any, batch: Batch, weights: Any, key: Any, step: int = 0) -> Any:
    """One update, compiled once a structure."""
    return _update(algorithm, state, batch, jnp.asarray(weights, jnp.float32), key, jnp.int32(step))


def make_batch(seed: int = 0, next_action: bool = False) -> Batch:
    rng = np.random.default_rng(seed)
    parts = [
        rng.normal(size=(B, S)), np.tanh(rng.normal(size=(B, A))), rng.normal(size=B), rng.normal(size=(B, S)),
        rng.random(B) < 0.3, rng.normal(size=(B, S)),
    ]  # fmt: skip
    if next_action:
        parts += [np.tanh(rng.normal(size=(B, A))), rng.random(B) < 0.8]
    return Batch(*(jnp.asarray(x, jnp.float32) for x in parts))


def f64(x: Any) -> np.ndarray:
    return np.asarray(x, np.float64)


def pick(tree: Any, index: int) -> Any:
    return jax.tree.map(lambda leaf: leaf[index], tree)


def mlp(network: Any, x: np.ndarray) -> np.ndarray:
    """A ReLU network, layer by layer."""
    for layer in network.layers[:-1]:
        x = np.maximum(x @ f64(layer.weight) + f64(layer.bias), 0.0)
    return x @ f64(network.layers[-1].weight) + f64(network.layers[-1].bias)


def q(critics: Any, state: Any, action: Any) -> np.ndarray:
    """Both critics at pairs, [N, B]."""
    pair = np.concatenate([f64(state), f64(action)], -1)
    count = jax.tree.leaves(critics)[0].shape[0]
    return np.stack([mlp(pick(critics, i).mlp, pair)[..., 0] for i in range(count)])


def gaussian(actor: Any, state: Any) -> tuple[np.ndarray, np.ndarray]:
    """Mean and log standard deviation of a ``GaussianActor``."""
    features = np.maximum(mlp(actor.trunk, f64(state)), 0.0)
    mean = features @ f64(actor.mean.weight) + f64(actor.mean.bias)
    return mean, np.clip(features @ f64(actor.log_std.weight) + f64(actor.log_std.bias), -20, 2)


def log_tanh_normal(action: Any, mean: np.ndarray, log_std: np.ndarray) -> np.ndarray:
    """Log-density of tanh of a normal, by the change of variables."""
    action = f64(action)
    density = stats.norm.logpdf(np.arctanh(action), mean, np.exp(log_std)) - np.log(1 - action**2)
    return density.sum(-1)


def first_step(before: Any, after: Any, gradient: Any, lr: float) -> None:
    """Adam's first step is lr·sign(gradient), wherever the gradient is not tiny."""
    for old, new, slope in zip(*map(jax.tree.leaves, (before, after, gradient)), strict=True):
        slope = np.asarray(slope)
        large = np.abs(slope) > 1e-4
        np.testing.assert_allclose(np.asarray(new - old)[large], -lr * np.sign(slope)[large], rtol=2e-2)


def target_of(batch: Batch, next_value: np.ndarray, discount: float) -> np.ndarray:
    return f64(batch.reward) + discount * (1 - f64(batch.terminal)) * next_value


def close(value: Any, expected: Any, tolerance: float = 1e-4) -> None:
    np.testing.assert_allclose(f64(value), f64(expected), rtol=tolerance, atol=tolerance)


def brute(x: np.ndarray, y: np.ndarray, sigma: float, kernel: str) -> float:
    """MMD² of two sets of draws, pair by pair."""

    def k(a: np.ndarray, b: np.ndarray) -> float:
        size = np.sum((a - b) ** 2) if kernel == "gaussian" else np.sum(np.abs(a - b))
        return float(np.exp(-size / (2 * sigma)))

    def mean(u: np.ndarray, v: np.ndarray) -> float:
        return float(np.mean([k(a, b) for a in u for b in v]))

    return mean(x, x) + mean(y, y) - 2 * mean(x, y)
