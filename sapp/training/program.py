"""Many members trained by one compiled program: ``vmap`` over members inside a loop over steps, no host in between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from sapp.algorithms import Algorithm
from sapp.core.backend import on_cuda
from sapp.core.errors import SappError
from sapp.core.pytrees import select
from sapp.core.spec import Batch, Spec
from sapp.networks import Policy
from sapp.runs.phases import Phase
from sapp.training.device_data import DeviceData
from sapp.training.device_frames import DeviceFrames
from sapp.training.streaming import HostFrames, Stream, StreamedFrames
from sapp.weights.base import Metrics

Data = DeviceData | DeviceFrames

STRIDE = 50
"""On an accelerator this many steps are one iteration of the loop. A loop whose length is known when it is compiled is
queued ahead; before each iteration of one whose length is not, the host waits for the device. What a member draws its
batches from is drawn for a stride at once."""
DIVERGENCE_LIMIT = 1e12
"""A loss beyond this, or one that is not a number, stops its member."""


@dataclass(frozen=True)
class Member:
    """One learner: its name in tables, its algorithm, the index of its dataset, its seed."""

    name: str
    algorithm: Algorithm
    dataset: int
    seed: int


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


class Population:
    """Members of one shape: the same structure of algorithm, the same sizes of observation and action."""

    def __init__(self, members: Sequence[Member], data: Data | HostFrames | None, specs: Sequence[Spec]) -> None:
        """``data`` holds the datasets that ``member.dataset`` indexes (None: cannot train), ``specs`` describes each.

        Frames too many for the device stay on the host (``HostFrames``) and are streamed.
        """
        self.members = tuple(members)
        self.data: Data = data.index if isinstance(data, HostFrames) else data or blank_data(specs[members[0].dataset])
        self.stride = 1 if jax.default_backend() == "cpu" else STRIDE
        self.stream = None
        if isinstance(data, HostFrames):
            numbers, seeds = [member.dataset for member in members], [member.seed for member in members]
            self.stream = Stream(data, numbers, seeds, members[0].algorithm.batch_size, self.stride)
        self.algorithm = _stack([member.algorithm for member in members])
        self._spec = _stack([specs[member.dataset] for member in members])
        self._dataset = jnp.asarray([member.dataset for member in members], jnp.int32)
        self._keys = jnp.stack([jax.random.PRNGKey(member.seed) for member in members])
        self._logged: dict[Kind, tuple[str, ...]] = {}
        self.mesh = _mesh(len(self.members)) if self.stream is None else None
        self.columns = 1
        """How many members share each batch; see ``columns_of``."""
        if on_cuda() and self.mesh is None and isinstance(data, DeviceFrames):
            self.columns = columns_of([(member.dataset, member.seed) for member in members])
        if self.mesh is not None:
            self.data = _place(self.mesh, self.data, P())
            self.algorithm, self._keys, self._dataset = _place(
                self.mesh, (self.algorithm, self._keys, self._dataset), P(AXIS)
            )

    @property
    def has_ratio(self) -> bool:
        """Whether the state weights of this population learn."""
        return self.members[0].algorithm.weights.learns

    def kind(self, phase: Phase) -> Kind:
        """What is compiled for a phase."""
        return Kind(phase.base, phase.ratio and self.has_ratio, phase.weighted, self.columns)

    def init(self) -> Learner:
        """Fresh members."""
        return _init(self.algorithm, self._keys, self._spec)

    def empty_sums(self, learner: Learner, phase: Phase) -> Sums:
        """Zero sums with the metrics that this phase logs."""
        kind = self.kind(phase)
        if kind not in self._logged:  # found by tracing, which takes longer than a short chunk: once a kind
            arguments = self.algorithm, self.data, self._keys, self._dataset, learner
            self._logged[kind] = tuple(jax.eval_shape(partial(_first_step, kind), *arguments)[1])
        # Each its own buffer: they are donated to the next chunk.
        return Sums(
            {name: jnp.zeros(len(self.members), jnp.float32) for name in self._logged[kind]},
            jnp.zeros(len(self.members), jnp.float32),
        )

    def run(self, learner: Learner, sums: Sums, phase: Phase, steps: int) -> tuple[Learner, Sums]:
        """Train all members for a number of steps. The inputs' buffers are given up (donated)."""
        (learner,), (sums,) = run_together([self], [learner], [sums], phase, steps)
        return learner, sums

    def _run_streamed(
        self, stream: Stream, kind: Kind, learner: Learner, sums: Sums, steps: int
    ) -> tuple[Learner, Sums]:
        """``run``, block by block."""
        update = int(_counter(kind, learner))
        end = update + steps
        while update < end:
            block = stream.take(0 if kind.base else 1, update)
            now = min(end, (update // stream.block + 1) * stream.block) - update
            (learner,), (sums,) = _dispatch((kind,), None, self.stride, now, (self._group(block),), (learner,), (sums,))
            update += now
        return learner, sums

    def _group(self, data: Data | StreamedFrames) -> Group:
        return self.algorithm, data, self._keys, self._dataset

    def close(self) -> None:
        """Stop what brings batches from the host."""
        if self.stream is not None:
            self.stream.close()

    def actors(self, learner: Learner) -> Policy:
        """Policies of all members, stacked."""
        return jax.vmap(lambda algorithm, base: algorithm.policy(base))(self.algorithm, learner.base)

    def batch_rows(self, member: int, update: int) -> np.ndarray:
        """Row numbers that a member sees at its n-th update: its data order, for checking."""
        key = member_keys(self._keys[member], jnp.int32(0), jnp.int32(update))[0]
        count = self.members[member].algorithm.batch_size
        return np.asarray(self.data.rows(self._dataset[member], key, count)[0])


TOGETHER = 8
"""At most so many populations share a program: compiling takes time, and it takes all of theirs at once."""


def run_together(
    populations: Sequence[Population], learners: Sequence[Learner], sums: Sequence[Sums], phase: Phase, steps: int
) -> tuple[list[Learner], list[Sums]]:
    """Train several populations for a number of steps; the inputs' buffers are given up.

    On a GPU those of one device make their steps side by side in one program: one alone, of a few small networks,
    leaves most of it idle.
    """
    found, totals = list(learners), list(sums)
    kinds = [population.kind(phase) for population in populations]
    busy = [i for i, kind in enumerate(kinds) if kind.base or kind.ratio]
    alone = [i for i in busy if populations[i].mesh is not None or populations[i].stream is not None or not on_cuda()]
    rest = [i for i in busy if i not in alone]
    for chosen in [[i] for i in alone] + [rest[i : i + TOGETHER] for i in range(0, len(rest), TOGETHER)]:
        first = populations[chosen[0]]
        if first.stream is not None:
            i = chosen[0]
            found[i], totals[i] = first._run_streamed(first.stream, kinds[i], found[i], totals[i], steps)
            continue
        mine = tuple(found[i] for i in chosen), tuple(totals[i] for i in chosen)
        if first.mesh is not None:
            mine = _place(first.mesh, mine[0], (_learner_spec(),)), _place(first.mesh, mine[1], P(AXIS))
        groups = tuple(populations[i]._group(populations[i].data) for i in chosen)
        mine = _dispatch(tuple(kinds[i] for i in chosen), first.mesh, first.stride, steps, groups, *mine)
        for i, learner, total in zip(chosen, *mine, strict=True):
            found[i], totals[i] = learner, total
    return found, totals


def blank_data(spec: Spec) -> Data:
    """Data of the right kind to trace a program with."""
    if spec.frame is not None:
        return DeviceFrames.empty(spec.frame)
    return DeviceData.empty(spec.observation_size, spec.action_size, spec.discrete)


AXIS = "members"
"""Name of the axis along which members are spread over devices."""


def _mesh(members: int) -> Mesh | None:
    """The devices that share a population: as many as divide it evenly; None if that is one.

    Members never exchange anything, so each device runs its own part of the same program, and a member's bits do not
    depend on how many devices there are.
    """
    devices = jax.local_devices()
    count = max(d for d in range(1, min(len(devices), members) + 1) if members % d == 0)
    return Mesh(np.array(devices[:count]), (AXIS,)) if count > 1 else None


def _learner_spec() -> Learner:
    """How a learner lies on the devices: every leaf by member, the two counters everywhere."""
    members: Any = P(AXIS)
    return Learner(members, members, members, members, P(), P())  # type: ignore[arg-type]


def _place(mesh: Mesh, tree: Any, spec: Any) -> Any:
    """Put a tree's arrays where a tree of partition specs (or one for all) says; free where they already lie there."""
    shardings = jax.tree.map(lambda s: NamedSharding(mesh, s), spec, is_leaf=lambda s: isinstance(s, P))
    return jax.device_put(tree, shardings)


class Kind(NamedTuple):
    """What is compiled: does the base learn, does the ratio, are penalties weighted, how many members share a batch."""

    base: bool
    ratio: bool
    weighted: bool
    columns: int = 1


def columns_of(draws: Sequence[tuple[int, int]]) -> int:
    """How often a list of (dataset, seed) repeats itself: members of equal ones draw equal batches.

    A table's columns do (CQL, SA-CQL and controls of one dataset and seed). Where observations are images, their
    patches, the larger part of a convolution's memory traffic, are then made once for all columns, and the first
    layer's product is one of many outputs instead of several of few.
    """
    count = len(draws)
    lanes = next(n for n in range(1, count + 1) if count % n == 0 and list(draws) == list(draws[:n]) * (count // n))
    return count // lanes


def _stack(trees: Sequence[Any]) -> Any:
    def stack(*leaves: Any) -> Array:
        array = np.stack([np.asarray(leaf) for leaf in leaves])
        return jnp.asarray(array, jnp.float32 if array.dtype.kind == "f" else jnp.int32)

    return jax.tree.map(stack, *trees)


@jax.jit
def _init(algorithm: Algorithm, keys: Array, spec: Spec) -> Learner:
    def init(algorithm: Algorithm, key: Array, spec: Spec) -> tuple[Any, Any]:
        base_key, ratio_key = jax.random.split(jax.random.fold_in(key, 0))
        return algorithm.init(base_key, spec), algorithm.weights.init(ratio_key, algorithm.feature_spec(spec))

    base, ratio = jax.vmap(init)(algorithm, keys, spec)
    count = keys.shape[0]
    return Learner(base, ratio, jnp.ones(count, bool), jnp.full(count, -1, jnp.int32), jnp.int32(0), jnp.int32(0))


def member_keys(key: Array, stream: Array, count: Array) -> Array:
    """Keys for batch, ratio, weights and algorithm: a function of the member's key, the stream and its counter."""
    return jax.random.split(jax.random.fold_in(jax.random.fold_in(key, 1 + stream), count), 4)


def _seen(algorithm: Algorithm, base: Any, batch: Batch) -> Batch:
    """A batch as state weights see it, with features in place of observations."""
    return replace(
        batch,
        observation=algorithm.features(base, batch.observation),
        next_observation=algorithm.features(base, batch.next_observation),
        initial_observation=algorithm.features(base, batch.initial_observation),
    )


Drawn = tuple[Array, tuple[Array, Array] | None]
"""Keys, and rows and starts where the data are on the device."""


def _counter(kind: Kind, learner: Learner) -> Array:
    """How often the members have learned in the way of this phase."""
    return learner.updates if kind.base else learner.ratio_updates


def _draw(
    kind: Kind, algorithm: Algorithm, data: Data | StreamedFrames, keys: Array, dataset: Array, first: Array, steps: int
) -> Drawn:
    """What all members' batches of some steps are drawn from, [steps, members, …]: of their keys and counter alone."""
    stream = jnp.int32(0 if kind.base else 1)

    def one(count: Array, key: Array, dataset: Array) -> Drawn:
        own = member_keys(key, stream, count)
        if isinstance(data, StreamedFrames):
            return own, None
        return own, data.rows(dataset, own[0], algorithm.batch_size)

    members = jax.vmap(one, (None, 0, 0))
    return jax.vmap(members, (0, None, None))(first + jnp.arange(steps, dtype=jnp.int32), keys, dataset)


def _first_step(
    kind: Kind, algorithm: Algorithm, data: Data | StreamedFrames, keys: Array, dataset: Array, learner: Learner
) -> tuple[Learner, Metrics]:
    """The next step alone."""
    drawn = _draw(kind, algorithm, data, keys, dataset, _counter(kind, learner), 1)
    return _step(kind, algorithm, data, jax.tree.map(lambda x: x[0], drawn), dataset, learner)


def _step(
    kind: Kind, algorithm: Algorithm, data: Data | StreamedFrames, drawn: Drawn, dataset: Array, learner: Learner
) -> tuple[Learner, Metrics]:
    counter = _counter(kind, learner)
    arrived = data.at(counter) if isinstance(data, StreamedFrames) else None

    def fetch(drawn: Drawn, dataset: Array, arrived: Batch | None) -> tuple[Array, Batch]:
        keys, rows = drawn
        if isinstance(data, StreamedFrames):
            assert arrived is not None
            batch = arrived
        else:
            assert rows is not None
            batch = data.at(dataset, *rows, algorithm.needs_next_action)
        if not isinstance(data, DeviceData):
            # What is computed from frames must not be mixed with how they came here: resident and streamed runs then
            # have equal bits.
            batch = jax.lax.optimization_barrier(batch)
        return keys, batch

    def member(
        algorithm: Algorithm, keys: Array, batch: Batch, base: Any, ratio: Any, alive: Array
    ) -> tuple[Any, Any, Array, Metrics]:
        _, ratio_key, weights_key, base_key = keys
        metrics: Metrics = {}
        weights = jnp.ones_like(batch.reward)
        # what of this the phase does not use is not computed
        seen, policy = _seen(algorithm, base, batch), algorithm.feature_policy(base)
        # The weights come from the estimator as it was before this step: estimator and algorithm then learn side by
        # side, neither waiting for the other.
        if kind.weighted:
            weights, logged = algorithm.weights.weights(ratio, seen, policy, weights_key)
            metrics |= _checked(algorithm.weights, "weights", logged) | {
                "weights/mean": jnp.mean(weights),
                "weights/std": jnp.std(weights),
                "weights/min": jnp.min(weights),
                "weights/max": jnp.max(weights),
            }
        if kind.ratio:
            ratio, logged = algorithm.weights.update(
                ratio, seen, policy, jnp.asarray(algorithm.discount, jnp.float32), ratio_key
            )
            metrics |= _checked(algorithm.weights, "update", logged)
        # The barrier keeps the compiler from mixing the weights' arithmetic into the algorithm's, so that equal weights
        # give equal bits wherever they come from.
        weights = jax.lax.optimization_barrier(weights)
        if kind.base:
            new, logged = _updated(algorithm, base, algorithm.scheduled_update(base, batch, weights, base_key, counter))
            metrics |= logged
            # Selected by whether the member was alive before this step, known from its start: the selection then costs
            # no pass over memory of its own. What stopped the member left its parameters finite (see adam_step).
            base = select(alive, new, base)
            alive = alive & (jnp.abs(logged["loss"]) < DIVERGENCE_LIMIT)
        return base, ratio, alive, metrics

    lanes = len(dataset) // kind.columns
    drawn, dataset, arrived = jax.tree.map(lambda x: x[:lanes], (drawn, dataset, arrived))
    keys, batch = jax.vmap(fetch)(drawn, dataset, arrived)
    state = learner.base, learner.ratio, learner.alive
    if kind.columns == 1:
        base, ratio, alive, metrics = jax.vmap(member)(algorithm, keys, batch, *state)
    else:
        # Columns outside, so that what depends on the batch alone is computed once for all of them.
        by_column = jax.vmap(jax.vmap(member), (0, None, None, 0, 0, 0))
        folded, *state = jax.tree.map(lambda x: x.reshape(kind.columns, lanes, *x.shape[1:]), (algorithm, *state))
        found = by_column(folded, keys, batch, *state)
        base, ratio, alive, metrics = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), found)
    stopped_at = jnp.where(learner.alive & ~alive, learner.updates, learner.stopped_at)
    return Learner(
        base, ratio, alive, stopped_at,
        learner.updates + (1 if kind.base else 0), learner.ratio_updates + (0 if kind.base else 1),
    ), metrics  # fmt: skip


def _updated(algorithm: Algorithm, state: Any, found: Any) -> tuple[Any, Metrics]:
    """What an update gave, refused when it is traced if the loop cannot go on with it: an algorithm may be anyone's."""
    name = type(algorithm).__name__
    if not isinstance(found, tuple) or len(found) != 2:
        raise SappError(f"{name}: update gives {type(found).__name__}; it must give the new state and the metrics")
    new, metrics = found
    if _shapes(new) != _shapes(state):
        raise SappError(f"{name}: update gives a state of another form than init; keep its structure and shapes")
    if "loss" not in _checked(algorithm, "update", metrics):
        raise SappError(f"{name}: update's metrics have no 'loss'; add it, divergence is told by it")
    return new, metrics


def _checked(owner: Any, verb: str, metrics: Any) -> Metrics:
    """Metrics, if they are numbers by name."""
    name = type(owner).__name__
    if not isinstance(metrics, dict):
        raise SappError(f"{name}: {verb} gives {type(metrics).__name__} for metrics; give a dict of numbers by name")
    for key, value in metrics.items():
        if jnp.ndim(value):
            raise SappError(f"{name}: metric {key!r} of {verb} has shape {jnp.shape(value)}; it must be one number")
    return metrics


def _shapes(tree: Any) -> dict[str, tuple[int, ...]]:
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    return {jax.tree_util.keystr(path): jnp.shape(leaf) for path, leaf in leaves}


COMPILED: dict[str, Any] = {"static_argnums": (0, 1, 2), "donate_argnums": (4, 5)}
"""How the loop is compiled: kinds, mesh and stride are part of the program; learners and sums are given up to it."""

SIDE_BY_SIDE: dict[str, Any] = {
    "xla_gpu_command_buffer_scheduling_mode": "CONCURRENT",
    "xla_gpu_enable_command_buffer": "FUSION,CUBLAS,CUBLASLT,CUSTOM_CALL,CUDNN,DYNAMIC_SLICE_FUSION,CONDITIONAL,WHILE",
    "xla_gpu_graph_min_graph_size": 1,
}
"""On a GPU the whole loop is one graph whose kernels start as soon as what they need is there, not one by one."""

Group = tuple[Algorithm, Data | StreamedFrames, Array, Array]
"""A population to the program: algorithm, data, keys and datasets of its members."""
Carry = tuple[Learner, Array, Array]
"""What a population takes from step to step: learner, metrics summed [metric, member], steps counted."""


def _loop(
    kinds: tuple[Kind, ...], mesh: Mesh | None, stride: int, groups: tuple[Group, ...], learners: tuple[Learner, ...],
    sums: tuple[Sums, ...], strides: Array,
) -> tuple[tuple[Learner, ...], tuple[Sums, ...]]:  # fmt: skip
    # The number of strides is a traced bound: one compiled program serves every chunk length, and the bits do not
    # depend on where a run was cut.
    names = [tuple(each.values) for each in sums]

    def loop(
        groups: tuple[Group, ...], learners: tuple[Learner, ...], sums: tuple[Sums, ...], strides: Array
    ) -> tuple[tuple[Learner, ...], tuple[Sums, ...]]:
        def stretch(_: Array, carries: tuple[Carry, ...]) -> tuple[Carry, ...]:
            drawn = [
                _draw(kind, *group, _counter(kind, learner), stride)
                for kind, group, (learner, *_) in zip(kinds, groups, carries, strict=True)
            ]

            def body(number: Array | int, carries: tuple[Carry, ...]) -> tuple[Carry, ...]:
                own = [jax.tree.map(lambda x: x[number], each) for each in drawn]
                return tuple(map(_advance, kinds, names, groups, own, carries))

            return body(0, carries) if stride == 1 else jax.lax.fori_loop(0, stride, body, carries)

        # Metrics are one array: one addition a step.
        carries = tuple(
            (learner, _table(each.values, keys, each.steps.shape[0]), each.steps)
            for learner, each, keys in zip(learners, sums, names, strict=True)
        )
        carries = jax.lax.fori_loop(0, strides, stretch, carries)
        totals = tuple(
            Sums(dict(zip(keys, table, strict=True)), count)
            for keys, (_, table, count) in zip(names, carries, strict=True)
        )
        return tuple(learner for learner, *_ in carries), totals

    if mesh is not None:
        members, out = P(AXIS), ((_learner_spec(),), P(AXIS))
        inputs = (((members, P(), members, members),), *out, P())
        loop = jax.shard_map(loop, mesh=mesh, in_specs=inputs, out_specs=out, check_vma=False)
    return loop(groups, learners, sums, strides)


def _advance(kind: Kind, names: Sequence[str], group: Group, drawn: Drawn, carry: Carry) -> Carry:
    """One step of a population and its metrics."""
    algorithm, data, _, dataset = group
    learner, totals, steps = carry
    learner, metrics = _step(kind, algorithm, data, drawn, dataset, learner)
    values = _table(metrics, names, learner.alive.shape[0])
    return learner, totals + jnp.where(learner.alive, values, 0.0), steps + learner.alive


def _table(values: Metrics, names: Sequence[str], members: int) -> Array:
    """Metrics [members] as rows of one array."""
    return jnp.concatenate([jnp.zeros((0, members)), *(values[name][None] for name in names)])


_run = jax.jit(_loop, **COMPILED)
_run_on_gpu = jax.jit(_loop, **COMPILED, compiler_options=SIDE_BY_SIDE)


def _dispatch(
    kinds: tuple[Kind, ...], mesh: Mesh | None, stride: int, steps: int, groups: tuple[Group, ...],
    learners: tuple[Learner, ...], sums: tuple[Sums, ...],
) -> tuple[tuple[Learner, ...], tuple[Sums, ...]]:  # fmt: skip
    stride = stride if steps % stride == 0 else 1
    run = _run_on_gpu if on_cuda() else _run
    return run(kinds, mesh, stride, groups, learners, sums, jnp.int32(steps // stride))
