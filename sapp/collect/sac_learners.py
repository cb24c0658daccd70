"""The learning side: SAC members of several tasks as one compiled program, with their buffers on the device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from sapp.algorithms.actor_critic import SoftState
from sapp.algorithms.sac import SAC
from sapp.collect.replay_buffer import batch_of
from sapp.core.spec import Spec
from sapp.envs.policies import TanhGaussianPolicy, policy_from_arrays
from sapp.networks import GaussianActor
from sapp.networks.padded import Padding
from sapp.weights.base import Metrics


class Learners:
    """Members of one population; tasks of different sizes are padded to the largest (see ``sapp.networks.padded``).

    A member's randomness is a function of its seed and of the number of the update.

    Attributes:
        sizes: (observations, actions) of each member's task.
        observations: padded size.
        actions: padded size.
    """

    def __init__(self, algorithm: SAC, sizes: Sequence[tuple[int, int]], seeds: Sequence[int]) -> None:
        self.sizes = list(sizes)
        self.observations, self.actions = (max(size) for size in zip(*sizes, strict=True))
        alike = len(set(sizes)) == 1
        members = [
            replace(algorithm, padding=None if alike else Padding.of(*size, self.observations, self.actions))
            for size in sizes
        ]
        self._algorithm = jax.tree.map(
            lambda *leaves: jnp.stack([jnp.asarray(x, jnp.float32) for x in leaves]), *members
        )
        self._keys = jnp.stack([jax.random.PRNGKey(seed) for seed in seeds])
        self._spec = Spec(self.observations, self.actions, jnp.zeros(self.observations), jnp.ones(self.observations))

    @property
    def row_width(self) -> int:
        """Columns of a row of the device buffer, see ``replay.device_rows``."""
        return 2 * self.observations + self.actions + 2

    def init(self) -> SoftState:
        """Fresh members."""
        return _init(self._algorithm, self._keys, self._spec)

    def learn(
        self, state: SoftState, buffer: Array, updates: int, size: int, count: int, window: int
    ) -> tuple[SoftState, Metrics]:
        """``count`` updates of every member on batches drawn from the last ``window`` of ``size`` rows.

        Returns at once; the inputs' state is given up (donated). Metrics are those of the last update, one value a
        member.

        Args:
            state: of all members.
            buffer: rows [M, N, W].
            updates: how many there were before.
            size: rows filled.
            count: how many now; each count is a program of its own.
            window: capacity of the buffer, as far as learning is concerned.
        """
        low, high = jnp.int32(max(0, size - window)), jnp.int32(size)
        structure = count, self.observations, self.actions
        return _learn(structure, self._algorithm, self._keys, state, buffer, jnp.int32(updates), low, high)

    def policies(self, state: SoftState) -> list[TanhGaussianPolicy]:
        """The members' policies for acting on the host, padding cut off; waits for the device."""
        actors = jax.device_get(state.actor)
        return [cut(jax.tree.map(lambda leaf, i=i: leaf[i], actors), *size) for i, size in enumerate(self.sizes)]


def cut(actor: GaussianActor, observation_size: int, action_size: int) -> TanhGaussianPolicy:
    """An actor as a plain network of its task's own size."""
    layers = [(np.asarray(layer.weight).T, np.asarray(layer.bias)) for layer in actor.trunk.layers]
    arrays = {}
    for number, (weight, bias) in enumerate(layers):
        arrays[f"w{number}"] = np.ascontiguousarray(weight[:, :observation_size] if number == 0 else weight)
        arrays[f"b{number}"] = bias
    for name, head in (("mean", actor.mean), ("logstd", actor.log_std)):
        arrays[f"w_{name}"] = np.ascontiguousarray(np.asarray(head.weight).T[:action_size])
        arrays[f"b_{name}"] = np.asarray(head.bias)[:action_size]
    return policy_from_arrays("actor", arrays)


@jax.jit
def _init(algorithm: SAC, keys: Array, spec: Spec) -> SoftState:
    return jax.vmap(lambda one, key: one.init(jax.random.fold_in(key, 0), spec))(algorithm, keys)


@partial(jax.jit, static_argnums=0, donate_argnums=3)
def _learn(
    structure: tuple[int, int, int], algorithm: SAC, keys: Array, state: SoftState, buffer: Array, updates: Array,
    low: Array, high: Array,
) -> tuple[SoftState, Metrics]:  # fmt: skip
    count, observations, actions = structure

    def draw(number: Array, key: Array) -> tuple[Array, Array]:
        rows_key, update_key = jax.random.split(jax.random.fold_in(jax.random.fold_in(key, 1), number))
        return jax.random.randint(rows_key, (algorithm.batch_size,), low, high), update_key

    # All random choices of the stretch at once, outside the loop: in it every small kernel costs its launch.
    drawn = jax.vmap(jax.vmap(draw, (None, 0)), (0, None))(updates + jnp.arange(count), keys)

    def step(carry: tuple[SoftState, Metrics], chosen: tuple[Array, Array]) -> tuple[tuple[SoftState, Metrics], None]:
        def member(one: SAC, state: SoftState, memory: Array, rows: Array, key: Array) -> tuple[SoftState, Metrics]:
            batch = batch_of(memory[rows], observations, actions)
            return one.update(state, batch, jnp.ones_like(batch.reward), key)

        return jax.vmap(member)(algorithm, carry[0], buffer, *chosen), None

    first: Any = jax.eval_shape(step, (state, None), jax.tree.map(lambda leaf: leaf[0], drawn))[0][1]
    metrics = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), first)
    # a known number of steps: the loop then runs on the device without asking the host each time
    (state, metrics), _ = jax.lax.scan(step, (state, metrics), drawn)
    return state, metrics
