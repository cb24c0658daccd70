"""The compiled program: ``vmap`` over members inside a loop over steps, several populations side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from sapp.algorithms import Algorithm
from sapp.core.backend import on_cuda
from sapp.runs.learners import Learner, Sums
from sapp.training.feed import Feed
from sapp.training.step import Kind, MemberState, draw, step
from sapp.weights.base import Metrics

AXIS = "members"
"""Name of the axis along which members are spread over devices."""
Inputs = tuple[Algorithm, Feed, Array, Array]
"""A population to the program: algorithm, feed, keys and datasets of its members."""
Carry = tuple[Learner, Array, Array]
"""What a population takes from step to step: learner, metrics summed [metric, member], steps counted."""
Drawn = tuple[Array, Any]
"""Keys of all members, and what says which rows their batches consist of."""
Result = tuple[tuple[Learner, ...], tuple[Sums, ...]]


def steps(
    kinds: tuple[Kind, ...], stride: int, inputs: tuple[Inputs, ...], learners: tuple[Learner, ...],
    sums: tuple[Sums, ...], strides: Array,
) -> Result:  # fmt: skip
    """Take populations some strides further.

    The number of strides is a traced bound: one compiled program serves every chunk length, and the bits do not depend
    on where a run was cut.
    """
    names = [tuple(each.values) for each in sums]

    def body(number: Array | int, carries: tuple[Carry, ...], drawn: Sequence[Drawn] | None = None) -> Any:
        """One step of every population, from what was drawn for it unless it draws for itself."""
        if drawn is None:
            number, drawn = 0, draws(carries, 1)
        found = []
        for kind, given, name, own, (learner, totals, count) in zip(kinds, inputs, names, drawn, carries, strict=True):
            own = jax.tree.map(lambda x: x[number], own)
            members_step, arguments = prepared(kind, given, learner, own)
            state, metrics = members_step(*arguments)
            new, metrics = concluded(kind, learner, state, metrics)
            values = _table(metrics, name, new.alive.shape[0])
            found.append((new, totals + jnp.where(new.alive, values, 0.0), count + new.alive))
        return tuple(found)

    def draws(carries: tuple[Carry, ...], count: int) -> list[Drawn]:
        return [
            _draw(kind, given, learner, count)
            for kind, given, (learner, *_) in zip(kinds, inputs, carries, strict=True)
        ]

    def stretch(_: Array, carries: tuple[Carry, ...]) -> tuple[Carry, ...]:
        return jax.lax.fori_loop(0, stride, partial(body, drawn=draws(carries, stride)), carries)

    # Metrics are one array: one addition a step.
    carries = tuple(
        (learner, _table(each.values, keys, each.steps.shape[0]), each.steps)
        for learner, each, keys in zip(learners, sums, names, strict=True)
    )
    carries = jax.lax.fori_loop(0, strides, body if stride == 1 else stretch, carries)
    totals = tuple(
        Sums(dict(zip(keys, table, strict=True)), count) for keys, (_, table, count) in zip(names, carries, strict=True)
    )
    return tuple(learner for learner, *_ in carries), totals


def _draw(kind: Kind, inputs: Inputs, learner: Learner, count: int) -> Drawn:
    """What the batches of the next steps are drawn from, [steps, members, …]."""
    algorithm, feed, keys, dataset = inputs
    members = jax.vmap(partial(draw, kind, algorithm, feed), (0, 0, None))
    updates = counter(kind, learner) + jnp.arange(count, dtype=jnp.int32)
    return jax.vmap(members, (None, None, 0))(keys, dataset, updates)


def counter(kind: Kind, learner: Learner) -> Array:
    """How often the members have learned in the way of this phase."""
    return learner.updates if kind.base else learner.ratio_updates


def prepared(
    kind: Kind, inputs: Inputs, learner: Learner, drawn: Drawn
) -> tuple[Callable[..., tuple[MemberState, Metrics]], tuple[Any, ...]]:
    """One step of all members as a function, and its arguments."""
    algorithm, feed, _, dataset = inputs
    update, members = counter(kind, learner), len(dataset)
    batches = members // kind.variants
    # members come variant by variant, and each variant's draw the same batches
    keys, rows, own = jax.tree.map(lambda x: x[:batches], (*drawn, dataset))
    batch = feed.batches(own, rows, update, algorithm.needs_next_action)
    state = MemberState(learner.base, learner.ratio, learner.alive)
    if kind.variants > 1:
        # Variants outside, so that what depends on the batch alone is computed once for all of them.
        algorithm, state = jax.tree.map(lambda x: x.reshape(kind.variants, batches, *x.shape[1:]), (algorithm, state))
    return _step_of_all(kind), (update, algorithm, keys, batch, state)


@cache
def _step_of_all(kind: Kind) -> Callable[..., tuple[MemberState, Metrics]]:
    """``step`` of all members: one function per kind, so that JAX traces it once, both for what a phase logs, which is
    asked before its program is made, and for the program."""
    function = jax.vmap(partial(step, kind), (None, 0, 0, 0, 0))
    if kind.variants > 1:
        function = jax.vmap(function, (None, 0, None, None, 0))
    return jax.jit(function, inline=True)


def concluded(kind: Kind, learner: Learner, state: MemberState, metrics: Metrics) -> tuple[Learner, Metrics]:
    """The learner and its metrics after a step."""
    if kind.variants > 1:
        state, metrics = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), (state, metrics))
    stopped_at = jnp.where(learner.alive & ~state.alive, learner.updates, learner.stopped_at)
    return Learner(
        *state, stopped_at, learner.updates + (1 if kind.base else 0), learner.ratio_updates + (0 if kind.base else 1)
    ), metrics


def first_metrics(kind: Kind, inputs: Inputs, learner: Learner) -> Metrics:
    """The metrics of the next step."""
    drawn = jax.tree.map(lambda x: x[0], _draw(kind, inputs, learner, 1))
    members_step, arguments = prepared(kind, inputs, learner, drawn)
    state, metrics = members_step(*arguments)
    return concluded(kind, learner, state, metrics)[1]


def _table(values: Metrics, names: Sequence[str], members: int) -> Array:
    """Metrics [members] as rows of one array."""
    return jnp.concatenate([jnp.zeros((0, members)), *(values[name][None] for name in names)])


def sharded(
    kinds: tuple[Kind, ...], stride: int, mesh: Mesh, inputs: tuple[Inputs, ...], learners: tuple[Learner, ...],
    sums: tuple[Sums, ...], strides: Array,
) -> Result:  # fmt: skip
    """``steps`` of one population whose members are spread over devices."""
    members, out = P(AXIS), ((learner_spec(),), P(AXIS))
    given = (((members, P(), members, members),), *out, P())
    function = partial(steps, kinds, stride)
    return jax.shard_map(function, mesh=mesh, in_specs=given, out_specs=out, check_vma=False)(
        inputs, learners, sums, strides
    )


COMPILED: dict[str, Any] = {"static_argnums": (0, 1), "donate_argnums": (3, 4)}
"""How the loop is compiled: kinds and stride are part of the program; learners and sums are given up to it."""
SPREAD: dict[str, Any] = {"static_argnums": (0, 1, 2), "donate_argnums": (4, 5)}
SIDE_BY_SIDE: dict[str, Any] = {
    "xla_gpu_command_buffer_scheduling_mode": "CONCURRENT",
    "xla_gpu_enable_command_buffer": "FUSION,CUBLAS,CUBLASLT,CUSTOM_CALL,CUDNN,DYNAMIC_SLICE_FUSION,CONDITIONAL,WHILE",
    "xla_gpu_graph_min_graph_size": 1,
}
"""On a GPU the whole loop is one graph whose kernels start as soon as what they need is there, not one by one."""

run = jax.jit(steps, **COMPILED)
_run_on_gpu = jax.jit(steps, **COMPILED, compiler_options=SIDE_BY_SIDE)
_spread = jax.jit(sharded, **SPREAD)
_spread_on_gpu = jax.jit(sharded, **SPREAD, compiler_options=SIDE_BY_SIDE)


def compiled(kinds: Sequence[Kind], stride: int, mesh: Mesh | None) -> Callable[..., Result]:
    """The program that takes populations further: of their inputs, learners, sums and the number of strides."""
    if mesh is None:
        return partial(_run_on_gpu if on_cuda() else run, tuple(kinds), stride)
    return partial(_spread_on_gpu if on_cuda() else _spread, tuple(kinds), stride, mesh)


def mesh_of(members: int) -> Mesh | None:
    """The devices that share a population: as many as divide it evenly; None if that is one.

    Members never exchange anything, so each device runs its own part of the same program, and a member's bits do not
    depend on how many devices there are.
    """
    devices = jax.local_devices()
    count = max(d for d in range(1, min(len(devices), members) + 1) if members % d == 0)
    return Mesh(np.array(devices[:count]), (AXIS,)) if count > 1 else None


def learner_spec() -> Learner:
    """How a learner lies on the devices: every leaf by member, the two counters everywhere."""
    members: Any = P(AXIS)
    return Learner(members, members, members, members, P(), P())  # type: ignore[arg-type]


def place(mesh: Mesh, tree: Any, spec: Any) -> Any:
    """Put a tree's arrays where a tree of partition specs (or one for all) says; free where they already lie there."""
    shardings = jax.tree.map(lambda s: NamedSharding(mesh, s), spec, is_leaf=lambda s: isinstance(s, P))
    return jax.device_put(tree, shardings)
