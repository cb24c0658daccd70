"""The occupancy estimators as members of a population: alone or among others, cut or not, frozen or not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sapp.core.spec import Batch
from sapp.data import Dataset
from sapp.runs import checkpoint
from sapp.runs.learners import Learner
from sapp.runs.members import Member
from sapp.runs.phases import Phase
from sapp.training.device_data import DeviceData, spec_of
from sapp.training.population import Population
from sapp.weights import Control, FrozenWeights, OccupancyInfoNCE, OccupancyModel, StateWeights, control
from studies.state_ratios.estimates import MovingPolicy
from studies.state_ratios.problems import Corridors, Finite, make_problem, simulate

WEIGHTS = {
    "model": OccupancyModel(hidden=(8,), particles=16, slices=4),
    "infonce": OccupancyInfoNCE(hidden=(8,), features=4),
}
PHASE = Phase("joint", 8)


@pytest.fixture(scope="module")
def data() -> Dataset:
    problem = make_problem("corridors")
    assert isinstance(problem.env, Corridors)
    return simulate(problem.env, problem.logging(), 8, 40, seed=0).dataset("corridors")


def population(data: Dataset, members: list[tuple[StateWeights, float, int]]) -> Population:
    problem = make_problem("corridors")
    made = [
        Member(
            f"{number}",
            MovingPolicy(
                behaviour=problem.behaviour, direction=np.ones(4, np.float32), shift=shift, ramp=4.0, weights=weights,
                batch_size=32,
            ),
            0,
            seed,
        )
        for number, (weights, shift, seed) in enumerate(members)
    ]  # fmt: skip
    return Population(made, DeviceData.of([data]), [spec_of(data)])


def run(population: Population, learner: Learner, steps: int) -> Learner:
    return population.run(learner, population.empty_sums(PHASE), PHASE, steps)[0]


def close(one: Any, other: Any) -> None:
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("name", WEIGHTS)
def test_a_member_is_the_same_alone_among_others_and_after_a_cut(name: str, data: Dataset, tmp_path: Path) -> None:
    weights = WEIGHTS[name]
    chosen = [
        (control(weights, "real"), 0.0, 0),
        (control(weights, "frozen"), 2.0, 1),
        (control(weights, "real"), 2.0, 1),
    ]
    together = population(data, chosen)
    begun = jax.tree.map(np.asarray, together.init().ratio)
    whole = run(together, together.init(), 8)

    alone = population(data, chosen[2:])
    single = run(alone, alone.init(), 8)
    # not every leaf: a constant added to InfoNCE's ψ changes nothing, so Adam walks there by rounding errors
    read = whole.ratio.readout, single.ratio.readout
    close(jax.tree.map(lambda leaf: leaf[2], read[0]), jax.tree.map(lambda leaf: leaf[0], read[1]))

    half = run(together, together.init(), 3)
    checkpoint.save(tmp_path / "half.safetensors", [half], {"step": 3})
    (again,) = checkpoint.load(tmp_path / "half.safetensors", [together.group.shapes()])
    for a, b in zip(jax.tree.leaves(run(together, again, 5)), jax.tree.leaves(whole), strict=True):
        np.testing.assert_array_equal(a, b)

    for old, new in zip(jax.tree.leaves(begun), jax.tree.leaves(whole.ratio), strict=True):
        np.testing.assert_array_equal(old[1], new[1])  # the frozen member is as it began
    moved = jax.tree.leaves(jax.tree.map(lambda old, new: np.any(old[2] != new[2]), begun, whole.ratio))
    assert sum(moved) > len(moved) / 2


class Counting(StateWeights):
    """Stands for an estimator: its state counts the updates it had, and its weights are that number."""

    @property
    def learns(self) -> bool:
        return True

    def init(self, key: Any, spec: Any) -> Any:
        return jnp.float32(0.0)

    def update(self, state: Any, batch: Any, policy: Any, discount: Any, key: Any) -> tuple:
        return state + 1.0, {}

    def weights(self, state: Any, batch: Any, policy: Any, key: Any) -> tuple:
        return jnp.broadcast_to(state, (4,)), {}


def test_frozen_weights_stop_learning_after_their_updates() -> None:
    frozen = FrozenWeights(Counting(), updates=3)
    state = frozen.init(None, None)
    for _ in range(5):
        state, _ = frozen.update(state, None, None, None, None)
    assert frozen.learns
    np.testing.assert_array_equal(frozen.weights(state, None, None, None)[0], 3.0)


def test_the_frozen_control_never_learns_and_the_others_do() -> None:
    for kind in ("real", "frozen"):
        weights = control(Counting(), kind)
        assert isinstance(weights, Control)
        state, _ = weights.update(jnp.float32(7.0), None, None, None, None)
        assert float(state) == (7.0 if kind == "frozen" else 8.0)


def test_paired_particles_recover_the_exact_ratio_of_a_finite_problem_from_episodes(long_training: None) -> None:
    """Episodes with terminals and time-outs, a policy away from the behaviour's; two independent ways to its ratio."""
    problem = make_problem("finite")
    assert isinstance(problem.env, Finite)
    logs = simulate(problem.env, problem.logging(), 256, 200, seed=0).dataset("finite")
    states = len(problem.env.reward)
    visits = np.bincount(logs.observation.argmax(1), minlength=states) / len(logs)
    found = {}
    for paired in (True, False):
        weights = OccupancyModel(
            successor="logged", paired=paired, hidden=(32, 32), behaviour_lr=1e-3, classifier_lr=1e-3, model_lr=2e-3,
            width=100.0,
        )  # fmt: skip
        algorithm = MovingPolicy(
            behaviour=problem.behaviour,
            direction=np.asarray(problem.direction, np.float32),
            shift=1.0,
            discount=0.95,
            weights=weights,
        )
        learning = Population([Member("0", algorithm, 0, 0)], DeviceData.of([logs]), [spec_of(logs)])
        phase = Phase("joint", 1000, weighted=False)
        learner = learning.init()
        learner, _ = learning.run(learner, learning.empty_sums(phase), phase, 1000)
        ratio = jax.tree.map(lambda leaf: leaf[0], learner.ratio)
        eye, zero = jnp.eye(states), jnp.zeros(states)
        found[paired] = np.asarray(weights.ratio(ratio, Batch(eye, zero[:, None], zero, eye, zero, eye), None))
    exact = problem.env.ratio(problem.policy(1.0), visits, 0.95)
    errors = {
        paired: np.sqrt(np.sum(visits * (each - exact) ** 2) / np.sum(visits * exact**2))
        for paired, each in found.items()
    }
    print("\nrelative errors, paired and not", errors)
    assert max(errors.values()) < 0.1
