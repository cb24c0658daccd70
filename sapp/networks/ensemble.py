"""Ensembles as one batched network, critics with layer norm or dropout, and initialisations other than PyTorch's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from sapp.core.backend import on_cuda
from sapp.core.precision import Precision
from sapp.core.spec import Spec
from sapp.networks.gaussian import GaussianActor
from sapp.networks.mlp import MLP, Linear, StateActionNetwork

N = TypeVar("N")
LAYER_NORM_EPSILON = 1e-6


def many(make: Callable[[Array], N], key: Array, count: int) -> N:
    """``count`` independent networks as one whose parameters carry a leading axis; see ``networks.ensemble``."""
    return jax.vmap(make)(jax.random.split(key, count))


def make_critics(
    key: Array,
    spec: Spec,
    count: int,
    hidden: Sequence[int],
    precision: Precision,
    initialise: Callable[[Array, MLP], MLP] | None = None,
) -> StateActionNetwork:
    """``count`` critics Q(s,a) as one batched network, from PyTorch's initialisation or another."""

    def one(key: Array) -> StateActionNetwork:
        network_key, initial_key = jax.random.split(key)
        network = StateActionNetwork(network_key, spec.observation_size, spec.action_size, hidden, precision)
        if initialise is None:
            return network
        return eqx.tree_at(lambda n: n.mlp, network, initialise(initial_key, network.mlp))

    return many(one, key, count)


def reinitialise(
    key: Array, mlp: MLP, layer: Callable[[Array, Linear], Linear], last: Callable[[Array, Linear], Linear]
) -> MLP:
    """An MLP with every layer replaced: hidden ones by ``layer``, the last by ``last``."""
    keys = jax.random.split(key, len(mlp.layers))
    layers = [layer(k, old) for k, old in zip(keys[:-1], mlp.layers[:-1], strict=True)]
    return eqx.tree_at(lambda m: m.layers, mlp, (*layers, last(keys[-1], mlp.layers[-1])))


def orthogonal(gain: float = 2.0**0.5, last: float = 2.0**0.5) -> Callable[[Array, MLP], MLP]:
    """Orthogonal weights of the given gains (hidden layers, last layer) and zero biases."""

    def fill(gain: float) -> Callable[[Array, Linear], Linear]:
        def one(key: Array, old: Linear) -> Linear:
            weight = jax.nn.initializers.orthogonal(gain)(key, old.weight.shape, jnp.float32)
            return eqx.tree_at(lambda layer: (layer.weight, layer.bias), old, (weight, jnp.zeros_like(old.bias)))

        return one

    return lambda key, mlp: reinitialise(key, mlp, fill(gain), fill(last))


def small_head(bound: float = 3e-3, bias: float = 0.1) -> Callable[[Array, MLP], MLP]:
    """EDAC's: hidden weights as they are, hidden biases constant, the last layer uniform in ±bound."""
    return lambda key, mlp: reinitialise(key, mlp, _constant_bias(bias), _uniform(bound))


def small_actor(key: Array, actor: GaussianActor, bound: float = 1e-3, bias: float = 0.1) -> GaussianActor:
    """An actor that starts as EDAC's does: hidden biases constant, both heads uniform in ±bound, so σ near 1."""
    trunk_key, mean_key, std_key = jax.random.split(key, 3)
    parts = (
        reinitialise(trunk_key, actor.trunk, _constant_bias(bias), _constant_bias(bias)),
        _uniform(bound)(mean_key, actor.mean),
        _uniform(bound)(std_key, actor.log_std),
    )
    return eqx.tree_at(lambda a: (a.trunk, a.mean, a.log_std), actor, parts)


def _constant_bias(bias: float) -> Callable[[Array, Linear], Linear]:
    def one(key: Array, old: Linear) -> Linear:
        return eqx.tree_at(lambda layer: layer.bias, old, jnp.full_like(old.bias, bias))

    return one


def _uniform(bound: float) -> Callable[[Array, Linear], Linear]:
    def one(key: Array, old: Linear) -> Linear:
        keys = jax.random.split(key)
        parts = (old.weight, old.bias)
        drawn = [jax.random.uniform(k, x.shape, minval=-bound, maxval=bound) for k, x in zip(keys, parts, strict=True)]
        return eqx.tree_at(lambda layer: (layer.weight, layer.bias), old, tuple(drawn))

    return one


class LayerNorm(eqx.Module):
    """(x − mean)/√(variance + ε) over the last axis, then a learned scale and shift; computed in float32."""

    scale: Array
    shift: Array

    def __init__(self, size: int) -> None:
        self.scale, self.shift = jnp.ones(size, jnp.float32), jnp.zeros(size, jnp.float32)

    def __call__(self, x: Array) -> Array:
        """Normalise the last axis."""
        wide = x.astype(jnp.float32)
        mean = jnp.mean(wide, axis=-1, keepdims=True)
        variance = jnp.mean(jnp.square(wide - mean), axis=-1, keepdims=True)
        return ((wide - mean) * jax.lax.rsqrt(variance + LAYER_NORM_EPSILON) * self.scale + self.shift).astype(x.dtype)


class LayerNormCritic(eqx.Module):
    """Q(s,a) with a layer norm after every hidden ReLU, as ReBRAC has it."""

    mlp: MLP
    norms: tuple[LayerNorm, ...]

    def __init__(
        self, key: Array, state_size: int, action_size: int, hidden: Sequence[int], precision: Precision = "float32"
    ) -> None:
        mlp_key, initial_key = jax.random.split(key)
        self.mlp = small_head()(initial_key, MLP(mlp_key, state_size + action_size, hidden, 1, precision))
        self.norms = tuple(LayerNorm(width) for width in hidden)

    def __call__(self, state: Array, action: Array) -> Array:
        """Score ``state [B, S]`` with ``action [B, A]`` → ``[B]``, or with ``action [B, K, A]`` → ``[B, K]``."""
        return hooked(self.mlp, state, action, lambda x, number: self.norms[number](x))


def hooked(mlp: MLP, state: Array, action: Array, after: Callable[[Array, int], Array]) -> Array:
    """Q(s,a) by an MLP on the two side by side, with ``after(x, layer)`` applied to every hidden layer's ReLU."""
    x = side_by_side(state, action)
    for number, layer in enumerate(mlp.layers[:-1]):
        x = after(jax.nn.relu(layer(x, mlp.precision)), number)
    return mlp.layers[-1].output(x, mlp.precision)[..., 0]


def side_by_side(state: Array, action: Array) -> Array:
    """[B, S + A] of states [B, S] and actions [B, A], or [B, K, S + A] with K actions per state."""
    if action.ndim == 3:
        state = jnp.broadcast_to(state[:, None], (*action.shape[:2], state.shape[-1]))
    return jnp.concatenate([state, action], axis=-1)


class DropoutCritic(eqx.Module):
    """Q(s,a) with dropout after every hidden ReLU and, by default, every weight divided by its spectral norm: UWAC's.

    ``vectors`` are the power iteration's, one per layer; they are not trained but moved by ``iterate``. Without a key
    nothing is dropped, which is the mean of the dropout samples up to the ReLUs.
    """

    mlp: MLP
    vectors: tuple[Array, ...]
    rate: float = eqx.field(static=True)

    def __init__(
        self, key: Array, state_size: int, action_size: int, hidden: Sequence[int], precision: Precision = "float32",
        rate: float = 0.1, spectral: bool = True,
    ) -> None:  # fmt: skip
        mlp_key, initial_key, vector_key = jax.random.split(key, 3)
        self.mlp = small_head()(initial_key, MLP(mlp_key, state_size + action_size, hidden, 1, precision))
        keys = jax.random.split(vector_key, len(self.mlp.layers)) if spectral else ()
        outputs = [layer.bias.shape[0] for layer in self.mlp.layers]
        self.vectors = tuple(_unit(jax.random.normal(k, (n,))) for k, n in zip(keys, outputs[: len(keys)], strict=True))
        self.rate = rate

    def iterate(self) -> DropoutCritic:
        """One step of power iteration a layer, towards the leading singular vectors."""
        moved = tuple(_iterate(layer.weight, v) for layer, v in zip(self.mlp.layers, self.vectors, strict=False))
        return eqx.tree_at(lambda c: c.vectors, self, moved)

    def normalised(self) -> MLP:
        """The network with every weight divided by the estimate of its largest singular value."""
        if not self.vectors:
            return self.mlp
        layers = [
            eqx.tree_at(lambda one: one.weight, layer, layer.weight / _largest(layer.weight, jax.lax.stop_gradient(v)))
            for layer, v in zip(self.mlp.layers, self.vectors, strict=True)
        ]
        return eqx.tree_at(lambda m: m.layers, self.mlp, tuple(layers))

    def __call__(self, state: Array, action: Array, key: Array | None = None) -> Array:
        """Score one action per state → [B], or K → [B, K]; with a key one dropout sample of it, drawn row by row."""

        def drop(x: Array, number: int) -> Array:
            if key is None:
                return x
            keep = jax.random.bernoulli(jax.random.fold_in(key, number), 1.0 - self.rate, x.shape)
            return jnp.where(keep, x / (1.0 - self.rate), 0.0).astype(x.dtype)

        return hooked(self.normalised(), state, action, drop)

    def dropout_sample(self, state: Array, action: Array, key: Array) -> Array:
        """As a call with a key, but one dropout sample scores all rows.

        Dropping a unit is dropping its row of the next layer's weights, so many dropout samples (``vmap`` over keys)
        share the first layer's values, and each further layer of all of them is one product.
        """

        def thin(layer: Linear, number: int) -> Linear:
            scale = self._keep(key, number, layer.weight.shape[0]) / (1.0 - self.rate)
            return eqx.tree_at(lambda one: one.weight, layer, layer.weight * scale[:, None])

        whole = self.normalised()
        layers = (whole.layers[0], *(thin(layer, number) for number, layer in enumerate(whole.layers[1:])))
        return hooked(eqx.tree_at(lambda m: m.layers, whole, layers), state, action, lambda x, _: x)

    @property
    def fused(self) -> bool:
        """Whether a kernel of their own computes ``samples``: on a GPU, where not all of float32's bits are wanted."""
        if self.mlp.precision == "float32" or not on_cuda():
            return False
        from sapp.kernels.availability import unavailable  # not before it is needed: Pallas is slow to import

        if unavailable() is not None:
            return False
        from sapp.kernels.dropout_samples import misfit

        return misfit(tuple(layer.bias.shape[-1] for layer in self.mlp.layers[:-1])) is None

    def samples(self, state: Array, action: Array, keys: Array) -> Array:
        """What ``dropout_sample`` says for each of some keys, [T, B] or [T, B, K].

        Its gradient is that towards states and actions; the critic counts as constant.
        """
        critic = jax.lax.stop_gradient(self)
        if not self.fused:
            return jax.vmap(lambda key: critic.dropout_sample(state, action, key))(keys)
        from sapp.kernels.dropout_samples import dropout_values

        whole = critic.normalised()
        first, second, head = whole.layers
        hidden = jax.nn.relu(first(side_by_side(state, action), whole.precision))
        keep = [
            jax.vmap(partial(self._keep, number=number, width=width))(keys)
            for number, width in enumerate((len(second.weight), len(head.weight)))
        ]
        scale = 1.0 / (1.0 - self.rate)
        values = dropout_values(
            hidden.reshape(-1, hidden.shape[-1]), second.weight * scale, second.bias,
            head.weight[:, 0] * scale * keep[1], keep[0],
        )  # fmt: skip
        return values.reshape(len(keys), *action.shape[:-1]) + head.bias[0]

    def _keep(self, key: Array, number: int, width: int) -> Array:
        """Which of a layer's inputs one dropout sample keeps, as zeros and ones."""
        return jax.random.bernoulli(jax.random.fold_in(key, number), 1.0 - self.rate, (width,)).astype(jnp.float32)


def _unit(vector: Array) -> Array:
    return vector / (jnp.linalg.norm(vector) + 1e-12)


def _iterate(weight: Array, vector: Array) -> Array:
    """Power iteration on WᵀW, for W [inputs, outputs] and a vector [outputs]."""
    return _unit(weight.T @ _unit(weight @ vector))


def _largest(weight: Array, vector: Array) -> Array:
    """uᵀWv with v as given and u = Wv/|Wv|, both without gradient: the largest singular value once v has converged."""
    vector = _unit(vector)
    left = jax.lax.stop_gradient(_unit(weight @ vector))
    return left @ (weight @ vector)


def action_gradients(critics: Any, state: Array, action: Array) -> Array:
    """∇_a Q_i(s,a) of every critic, [N, B, A]."""

    def one(critic: Any) -> Array:
        return jax.grad(lambda a: jnp.sum(critic(state, a)))(action)

    return jax.vmap(one)(critics)
