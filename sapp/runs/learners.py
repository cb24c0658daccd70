"""Learners of many members at once: every array stacked, so that one program trains, plays or saves them all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from sapp.algorithms import Algorithm
from sapp.core.backend import compiled_once
from sapp.core.spec import Spec
from sapp.networks import Policy
from sapp.runs.members import Member
from sapp.weights.base import Metrics


class Learner(eqx.Module):
    """Everything that changes while members learn; every leaf has a leading member axis except the two counters.

    ``updates`` counts steps in which the algorithm learns, ``ratio_updates`` those in which only the ratio does. A
    member's randomness is a function of its key and these counters alone, so CQL and SA-CQL of the same seed see the
    same batches whatever phases lie between.
    """

    base: Any
    ratio: Any
    alive: Array
    stopped_at: Array
    updates: Array
    ratio_updates: Array


class Sums(eqx.Module):
    """Metrics summed over steps since the last log row; ``steps`` counts those in which the member was alive."""

    values: Metrics
    steps: Array


class Group:
    """Members of one shape: the same structure of algorithm, the same sizes of observation and action.

    It makes their learners and takes policies out of them, and needs no data for it.
    """

    def __init__(self, members: Sequence[Member], specs: Sequence[Spec]) -> None:
        """``specs`` describe the datasets that ``member.dataset`` counts."""
        self.members = tuple(members)
        self.algorithm = _stack([member.algorithm for member in members])
        self.dataset = jnp.asarray([member.dataset for member in members], jnp.int32)
        self.keys = jnp.stack([jax.random.PRNGKey(member.seed) for member in members])
        self._spec = _stack([specs[member.dataset] for member in members])

    @property
    def has_ratio(self) -> bool:
        """Whether the state weights of these members learn."""
        return self.members[0].algorithm.weights.learns

    def init(self) -> Learner:
        """Fresh members."""
        init = _init_on_cpu if jax.default_backend() == "cpu" else _init
        return init(self.algorithm, self.keys, self._spec)

    def shapes(self) -> Learner:
        """What ``init`` gives, by shapes and types; nothing is compiled."""
        return jax.eval_shape(_fresh, self.algorithm, self.keys, self._spec)

    def policies(self, learner: Learner) -> Policy:
        """Policies of all members, stacked."""
        return jax.vmap(lambda algorithm, base: algorithm.policy(base))(self.algorithm, learner.base)


def one_of(stacked: Any, position: int) -> Any:
    """What belongs to one member of a stacked tree."""
    return jax.tree.map(lambda leaf: leaf[position], stacked)


def _stack(trees: Sequence[Any]) -> Any:
    def stack(*leaves: Any) -> Array:
        array = np.stack([np.asarray(leaf) for leaf in leaves])
        return jnp.asarray(array, jnp.float32 if array.dtype.kind == "f" else jnp.int32)

    return jax.tree.map(stack, *trees)


def _fresh(algorithm: Algorithm, keys: Array, spec: Spec) -> Learner:
    def init(algorithm: Algorithm, key: Array, spec: Spec) -> tuple[Any, Any]:
        base_key, ratio_key = jax.random.split(jax.random.fold_in(key, 0))
        return algorithm.init(base_key, spec), algorithm.weights.init(ratio_key, algorithm.feature_spec(spec))

    base, ratio = jax.vmap(init)(algorithm, keys, spec)
    count = keys.shape[0]
    return Learner(base, ratio, jnp.ones(count, bool), jnp.full(count, -1, jnp.int32), jnp.int32(0), jnp.int32(0))


_init = jax.jit(_fresh)
_init_on_cpu = jax.jit(_fresh, compiler_options=compiled_once())
