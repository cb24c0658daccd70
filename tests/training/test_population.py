"""Many members in one program: each learns what it would learn alone, whoever its neighbours are."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sapp
from sapp import BC, CQL, ConstantWeights, DualDICE, LogMinMax, Phase, SappError, StateWeights, Uniform
from sapp.algorithms import Algorithm
from sapp.algorithms.config import know
from sapp.core.spec import Batch, Spec
from sapp.data import Dataset
from sapp.envs.point import behaviour_dataset
from sapp.runs.learners import Learner, Sums
from sapp.runs.members import Member
from sapp.training import population as population_module
from sapp.training import program as compiled
from sapp.training.device_data import DeviceData, spec_of
from sapp.training.population import Population

pytestmark = pytest.mark.usefixtures("usual_compiler")


def dataset(rows: int, seed: int, reward: float = 1.0) -> Dataset:
    rng = np.random.default_rng(seed)
    terminal = rng.random(rows) < 0.05
    timeout = ~terminal & (np.arange(rows) % 20 == 19)
    observation = rng.normal(size=(rows + 1, 3))
    action = np.tanh(observation[:-1, :1] + rng.normal(size=(rows, 1)))
    return Dataset(
        observation[:-1], action, reward * observation[:-1, 1] * action[:, 0], observation[1:], terminal, timeout,
        name=f"data{seed}",
    )  # fmt: skip


LONG, SHORT, BROKEN = dataset(200, 0), dataset(120, 1), dataset(150, 2, reward=1e30)
DATASETS = [LONG, SHORT, BROKEN]
SMALL = {"hidden": (16, 16), "batch_size": 32, "action_samples": 2}
JOINT, RATIO = Phase("joint", 40), Phase("ratio", 10, base=False, weighted=False)
DICE = DualDICE(hidden=(16, 16), nu_lr=1e-3, zeta_lr=1e-3, ratio_lr=1e-3)
CRITIC_LR, ALPHA = 3e-4, (0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 7.5, 10.0)


def members(weights: StateWeights, changes: dict[int, dict[str, Any]] | None = None) -> list[Member]:
    """Eight: two datasets in turn, each its own seed and α."""
    out = []
    for i in range(8):
        own = {"dataset": i % 2, "seed": 10 + i, "critic_lr": CRITIC_LR} | (changes or {}).get(i, {})
        algorithm = CQL(alpha=ALPHA[i], critic_lr=own["critic_lr"], weights=weights, **SMALL)
        out.append(Member(f"m{i}", algorithm, own["dataset"], own["seed"]))
    return out


def population(chosen: list[Member]) -> Population:
    return Population(chosen, DeviceData.of(DATASETS), [spec_of(data) for data in DATASETS])


def run(chosen: Population, *cuts: int, phase: Phase = JOINT, learner: Learner | None = None) -> tuple[Learner, Sums]:
    learner = chosen.init() if learner is None else learner
    sums = chosen.empty_sums(phase)
    for steps in cuts:
        learner, sums = chosen.run(learner, sums, phase, steps)
    return jax.device_get((learner, sums))


def member_of(tree: Any, number: int) -> Any:
    return jax.tree.map(lambda leaf: np.asarray(leaf)[number], tree)


def assert_same_bits(a: Any, b: Any) -> None:
    for (path, x), (_, y) in zip(*map(lambda t: jax.tree_util.tree_flatten_with_path(t)[0], (a, b)), strict=True):
        assert np.asarray(x).tobytes() == np.asarray(y).tobytes(), jax.tree_util.keystr(path)


def assert_changed(a: Any, b: Any) -> None:
    pairs = zip(*map(jax.tree.leaves, (a, b)), strict=True)
    assert any(np.asarray(x).tobytes() != np.asarray(y).tobytes() for x, y in pairs)


@pytest.fixture(scope="module")
def cql() -> tuple[Learner, Sums]:
    return run(population(members(Uniform())), 40)


@pytest.fixture(scope="module")
def sa_cql() -> tuple[Learner, Sums]:
    """Ten steps of the ratio alone, then forty together."""
    chosen = population(members(DICE))
    learner, _ = run(chosen, 10, phase=RATIO)
    return run(chosen, 40, learner=jax.tree.map(jnp.asarray, learner))


# Equal weights, equal bits


def test_constant_weight_one_has_the_bits_of_cql(cql: tuple[Learner, Sums]) -> None:
    learner, _ = run(population(members(ConstantWeights(1.0))), 40)
    assert_same_bits(learner.base, cql[0].base)


def test_sa_cql_with_weights_of_one_has_the_bits_of_cql(cql: tuple[Learner, Sums]) -> None:
    """b0 = 1, b1 = 0, through its own phases: the estimator learns beside, and changes nothing."""
    chosen = population(members(DualDICE(f=LogMinMax(1.0, 0.0), hidden=(16, 16))))
    first, _ = run(chosen, 10, phase=RATIO)
    learner, sums = run(chosen, 40, learner=jax.tree.map(jnp.asarray, first))
    assert_same_bits(learner.base, cql[0].base)
    assert_changed(learner.ratio, first.ratio)
    np.testing.assert_array_equal(sums.values["weights/min"], 40.0)


def test_real_weights_do_change_the_learner(cql: tuple[Learner, Sums], sa_cql: tuple[Learner, Sums]) -> None:
    assert_changed(sa_cql[0].base.critics, cql[0].base.critics)
    assert np.all(sa_cql[1].values["weights/mean"] / 40 < 0.9)


# A member alone and among others


def test_a_member_among_eight_equals_the_same_member_alone() -> None:
    """With its own data only: neither neighbours nor padding matter, up to the rounding of another program."""
    together = population(members(DICE))
    start = jax.device_get(together.init())
    among, _ = run(together, 30)
    number = 1  # of the shorter data, which is padded among the others
    chosen = members(DICE)[number]
    own = DATASETS[chosen.dataset]
    alone = Population([Member("alone", chosen.algorithm, 0, chosen.seed)], DeviceData.of([own]), [spec_of(own)])
    for update in (0, 1, 29, 10**6):
        np.testing.assert_array_equal(alone.batch_rows(0, update), together.batch_rows(number, update))
    learner, _ = run(alone, 30)
    for part in ("actor", "critics", "targets", "log_temperature"):
        found, expected, before = (
            jax.tree.leaves(member_of(getattr(each.base, part), row))
            for each, row in ((among, number), (learner, 0), (start, number))
        )
        for a, b, c in zip(found, expected, before, strict=True):
            assert np.abs(b - c).max() > 0
            np.testing.assert_allclose(a, b, atol=2e-2 * np.abs(b - c).max())  # of what was learned
    for part in ("nu", "zeta", "ratio", "health"):
        pair = (among, number), (learner, 0)
        found, expected = (jax.tree.leaves(member_of(getattr(each.ratio, part), row)) for each, row in pair)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-2, atol=1e-3)


def test_members_differ_by_seed_data_and_alpha(sa_cql: tuple[Learner, Sums]) -> None:
    first = np.asarray(sa_cql[0].base.actor.mean.weight)
    assert len({row.tobytes() for row in first}) == 8


def test_members_with_equal_seed_data_and_numbers_have_equal_bits(cql: tuple[Learner, Sums]) -> None:
    chosen = members(Uniform())
    chosen[6] = Member("twin", chosen[3].algorithm, chosen[3].dataset, chosen[3].seed)
    learner, _ = run(population(chosen), 40)
    assert_same_bits(member_of(learner.base, 6), member_of(learner.base, 3))
    assert_same_bits(member_of(learner.base, 3), member_of(cql[0].base, 3))


# Batches


class Recorder(Algorithm):
    """Learns nothing: its state is the rows (as rewards) of its last batch and their running sum."""

    discount: float = 0.9
    weights: StateWeights = Uniform()
    batch_size: int = eqx.field(static=True, default=16)

    def init(self, key: jax.Array, spec: Spec) -> Any:
        return {"last": jnp.zeros(self.batch_size), "sum": jnp.float32(0.0)}

    def update(self, state: Any, batch: Batch, weights: jax.Array, key: jax.Array) -> tuple[Any, dict]:
        return {"last": batch.reward, "sum": state["sum"] + jnp.sum(batch.reward)}, {"loss": jnp.float32(0.0)}

    def policy(self, state: Any) -> Any:
        return state["last"]


class RecordingWeights(StateWeights):
    """Weights that learn nothing but remember the rows they were shown."""

    @property
    def learns(self) -> bool:
        return True

    def init(self, key: jax.Array, spec: Spec) -> Any:
        return jnp.zeros(16)

    def update(self, state: Any, batch: Batch, policy: Any, discount: jax.Array, key: jax.Array) -> tuple[Any, dict]:
        return batch.reward, {}

    def weights(self, state: Any, batch: Batch, policy: Any, key: jax.Array) -> tuple[jax.Array, dict]:
        return jnp.ones_like(batch.reward), {}


def numbered(rows: int) -> Dataset:
    row = np.arange(rows, dtype=np.float32)
    return Dataset(row[:, None], np.zeros((rows, 1)), row, row[:, None], np.zeros(rows), np.zeros(rows))


def recorders(weights: StateWeights) -> Population:
    data = [numbered(90), numbered(50)]
    return Population(
        [Member(f"r{i}", Recorder(weights=weights), i % 2, i // 2) for i in range(4)],
        DeviceData.of(data), [spec_of(each) for each in data],
    )  # fmt: skip


def test_a_ratio_phase_between_does_not_change_the_algorithms_batches() -> None:
    """CQL and SA-CQL of one seed see the same batches, and the ratio sees the algorithm's batch in the joint phase."""
    plain, aware = recorders(Uniform()), recorders(RecordingWeights())
    pretrain = Phase("pretrain", 3, ratio=False, weighted=False)
    a, b = run(plain, 3, phase=pretrain)[0], run(aware, 3, phase=pretrain)[0]
    b, _ = run(aware, 5, phase=RATIO, learner=jax.tree.map(jnp.asarray, b))
    third, _ = run(aware, 3, phase=RATIO)
    assert np.all(np.any(third.ratio != b.base["last"], axis=1))  # the third batch of either: the ratio has its own
    assert (int(b.updates), int(b.ratio_updates)) == (3, 5)
    for steps in (1, 4):
        a, b = (run(p, steps, learner=jax.tree.map(jnp.asarray, x))[0] for p, x in ((plain, a), (aware, b)))
        assert_same_bits(a.base, b.base)
        np.testing.assert_array_equal(b.ratio, b.base["last"])
    for number in range(4):
        np.testing.assert_array_equal(a.base["last"][number], plain.batch_rows(number, 7))


def test_members_of_one_seed_and_other_data_or_other_seeds_see_other_rows() -> None:
    last = run(recorders(Uniform()), 1)[0].base["last"]
    assert len({row.tobytes() for row in last}) == 4


# Members that diverge


def test_a_diverging_member_is_stopped_finite_and_changes_nobody_else(cql: tuple[Learner, Sums]) -> None:
    chosen = members(Uniform(), {2: {"dataset": 2}, 5: {"critic_lr": 1e3}})
    learner, sums = run(population(chosen), 40)
    np.testing.assert_array_equal(learner.alive, [i not in (2, 5) for i in range(8)])
    assert learner.stopped_at[2] == 0
    assert 0 < learner.stopped_at[5] < 40
    assert np.all(learner.stopped_at[[0, 1, 3, 4, 6, 7]] == -1)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(learner.base))
    for number in (0, 1, 3, 4, 6, 7):
        assert_same_bits(member_of(learner.base, number), member_of(cql[0].base, number))
    np.testing.assert_array_equal(sums.steps, [40, 40, 0, 40, 40, learner.stopped_at[5], 40, 40])
    assert all(np.all(np.isfinite(value)) for value in sums.values.values())


def test_a_stopped_member_stays_as_it_is() -> None:
    chosen = population(members(Uniform(), {2: {"dataset": 2}}))
    early, _ = run(chosen, 5)
    late, _ = run(chosen, 20, learner=jax.tree.map(jnp.asarray, early))
    assert_same_bits(member_of(late.base, 2), member_of(early.base, 2))
    assert_changed(member_of(late.base, 3), member_of(early.base, 3))
    assert late.stopped_at[2] == 0


# Chunks


def test_where_a_run_is_cut_into_chunks_does_not_change_a_bit(cql: tuple[Learner, Sums]) -> None:
    chosen = population(members(Uniform()))
    assert_same_bits(run(chosen, 7, 13, 1, 19), cql)


def test_strides_as_accelerators_take_them_do_not_change_a_bit(cql: tuple[Learner, Sums]) -> None:
    chosen = population(members(Uniform()))
    chosen.stride = 4
    assert_same_bits(run(chosen, 4, 8, 16, 9, 3), cql)  # the last two are no multiples of the stride


def test_one_program_serves_all_chunks_of_a_phase(sa_cql: tuple[Learner, Sums]) -> None:
    chosen = population(members(DICE))
    learner = chosen.init()
    sums = chosen.empty_sums(RATIO)
    known = compiled.run._cache_size()  # the fixture has run this phase
    for steps in (1, 2, 3):
        learner, sums = chosen.run(learner, sums, RATIO, steps)
    assert compiled.run._cache_size() == known


def test_nothing_grows_with_steps() -> None:
    chosen = population(members(DICE))
    learner = chosen.init()
    sums = chosen.empty_sums(JOINT)
    alive = []
    for _ in range(6):
        learner, sums = chosen.run(learner, sums, JOINT, 5)
        gc.collect()
        alive.append(sum(array.nbytes for array in jax.live_arrays()))
    assert int(learner.updates) == 30
    assert len(set(alive[1:])) == 1


def test_metrics_are_sums_over_the_steps(cql: tuple[Learner, Sums]) -> None:
    chosen = population(members(Uniform()))
    learner = chosen.init()
    total: dict[str, Any] = {}
    for _ in range(3):
        learner, sums = chosen.run(learner, chosen.empty_sums(JOINT), JOINT, 1)
        total = {name: np.asarray(value) + total.get(name, 0.0) for name, value in sums.values.items()}
    whole = run(chosen, 3)[1]
    np.testing.assert_array_equal(whole.steps, 3.0)
    for name, value in whole.values.items():
        np.testing.assert_allclose(value, total[name], rtol=1e-6)
    assert set(whole.values) >= {"loss", "critic/td", "critic/penalty", "weights/mean"}


def test_populations_side_by_side_learn_what_they_learn_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a GPU takes them: unlike shapes, with and without a ratio, in one program."""
    mine = [population(members(Uniform())), population(members(DICE)[:3])]
    alone = [run(each, 5) for each in mine]
    monkeypatch.setattr(compiled, "on_cuda", lambda: True)
    monkeypatch.setattr(population_module, "on_cuda", lambda: True)
    learners = [each.init() for each in mine]
    sums = [each.empty_sums(JOINT) for each, learner in zip(mine, learners, strict=True)]
    together = zip(*population_module.run_together(mine, learners, sums, JOINT, 5), strict=True)
    for found, expected in zip(together, alone, strict=True):
        for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=2e-5)


@know
class Own(BC):
    """An algorithm of somebody else's that does one thing wrong."""

    wrong: str = eqx.field(static=True, default="")

    def update(self, state: Any, batch: Any, weights: Any, key: Any) -> Any:
        new, metrics = super().update(state, batch, weights, key)
        return {
            "no loss": (new, {"mean": metrics["loss"]}),
            "a row": (new, {"loss": metrics["loss"], "rows": batch.reward}),
            "no metrics": (new, None),
            "state alone": new,
            "another state": ((new, new), metrics),
        }[self.wrong]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("no loss", "Own: update's metrics have no 'loss'"),
        ("a row", r"Own: metric 'rows' of update has shape \(8,\); it must be one number"),
        ("no metrics", "Own: update gives NoneType for metrics"),
        ("state alone", "Own: update gives .*; it must give the new state and the metrics"),
        ("another state", "Own: update gives a state of another form than init"),
    ],
)
def test_mistakes_of_an_own_algorithm_are_named(wrong: str, message: str, tmp_path: Path) -> None:
    own = Own(hidden=(8,), batch_size=8, wrong=wrong)
    with pytest.raises(SappError, match=message):
        sapp.train(own, behaviour_dataset(6), steps=4, out=tmp_path / "run", eval_every=0, progress=False)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("size", [0, 2.5])
def test_an_own_algorithm_needs_a_batch(size: float, tmp_path: Path) -> None:
    own = Own(hidden=(8,), batch_size=8)
    object.__setattr__(own, "batch_size", size)  # past the checks that only our own algorithms make
    with pytest.raises(SappError, match=rf"Own: batch_size is {size}; it must be (1 or more|of type int)"):
        sapp.train(own, behaviour_dataset(6), steps=4, out=tmp_path / "run", progress=False)
    assert not (tmp_path / "run").exists()
