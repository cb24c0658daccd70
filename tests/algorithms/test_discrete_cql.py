"""Discrete CQL: its loss by hand, what it learns without and with pessimism, and training through the usual loop."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sapp
from sapp.algorithms import DiscreteCQL, MLPScores
from sapp.algorithms.dqn import huber
from sapp.core.errors import SappError
from sapp.core.spec import Batch, Spec
from sapp.data import Dataset
from sapp.tabular.estimator_logs import draw_logs
from sapp.tabular.mdp import garnet
from sapp.weights import DualDICE

SMALL = MLPScores(hidden=(16,))


class Table:
    """Q(s,a) = (sᵀT)_a with one head."""

    def __init__(self, table: jnp.ndarray) -> None:
        self.table = table

    def many(self, state: jnp.ndarray) -> jnp.ndarray:
        return (state @ self.table)[..., None]


def batch(rng: np.random.Generator, count: int = 4) -> Batch:
    return Batch(
        jnp.asarray(rng.normal(size=(count, 3)), jnp.float32), jnp.asarray(rng.integers(2, size=count), jnp.int32),
        jnp.asarray(rng.normal(size=count), jnp.float32), jnp.asarray(rng.normal(size=(count, 3)), jnp.float32),
        jnp.zeros(count), jnp.zeros((count, 3)),
    )  # fmt: skip


def test_the_loss_by_hand() -> None:
    rng = np.random.default_rng(0)
    table = jnp.asarray(rng.normal(size=(3, 2)), jnp.float32)
    one = batch(rng)
    target, weights = jnp.array([0.5, 3.0, -2.0, 0.0]), jnp.array([1.0, 0.5, 2.0, 0.0])
    scores = Table(table)
    loss, metrics = DiscreteCQL(alpha=0.7).loss(scores, one, target[:, None], weights, None)
    q = np.asarray(one.observation) @ np.asarray(table)
    chosen = q[np.arange(4), np.asarray(one.action)]
    error = np.abs(chosen - np.asarray(target))
    td = np.where(error <= 1, 0.5 * error**2, error - 0.5).mean()
    penalty = np.log(np.exp(q).sum(1)) - chosen
    assert float(loss) == pytest.approx(td + 0.7 * (np.asarray(weights) * penalty).mean(), rel=1e-5)
    assert float(metrics["critic/penalty"]) == pytest.approx(penalty.mean(), rel=1e-5)
    assert huber(jnp.array([0.5, -3.0])).tolist() == [0.125, 2.5]


def test_the_target_is_a_copy_taken_now_and_then() -> None:
    rng = np.random.default_rng(1)
    algorithm = DiscreteCQL(lr=1e-2, target_every=3, network=SMALL)
    spec = Spec(3, 2, jnp.zeros(3), jnp.ones(3), True)
    state = algorithm.init(jax.random.PRNGKey(0), spec)
    first = state.target.network.layers[0].weight
    for step in range(1, 7):
        state, _ = algorithm.update(state, batch(rng), jnp.ones(4), jax.random.PRNGKey(step))
        same = bool(jnp.array_equal(state.target.network.layers[0].weight, state.scores.network.layers[0].weight))
        assert same == (step % 3 == 0)
    assert not jnp.array_equal(first, state.target.network.layers[0].weight)


@pytest.fixture(scope="module")
def problem() -> tuple[object, Dataset]:
    mdp = garnet(np.random.default_rng(2), 1, states=5, actions=3, discount=0.8)[0]
    return mdp, draw_logs(mdp, np.full((5, 3), 1 / 3), 300, 30, 0, name="garnet")


def test_without_pessimism_it_finds_the_optimum(problem: tuple[object, Dataset], tmp_path: Path) -> None:
    mdp, data = problem
    algorithms = {
        "free": DiscreteCQL(alpha=0.0, discount=0.8, lr=3e-3, target_every=50, network=SMALL),
        "tight": DiscreteCQL(alpha=5.0, discount=0.8, lr=3e-3, target_every=50, network=SMALL),
    }
    run = sapp.train(algorithms, data, steps=1500, out=tmp_path / "run", eval_every=0, log_every=500, progress=False)
    eye = np.eye(5, dtype=np.float32)
    best, value = mdp.optimal()  # type: ignore[attr-defined]
    scores = np.asarray(run.actors[0].network(jnp.asarray(eye)))
    np.testing.assert_allclose(scores.max(1), value, atol=0.15)
    gap = np.sort(mdp.action_value(value), 1)  # type: ignore[attr-defined]
    clear = gap[:, -1] - gap[:, -2] > 0.2
    assert (run.predict(eye, "free/garnet/0")[clear] == best.argmax(1)[clear]).all()
    # the penalty pulls scores apart from the maximum: its policy stays nearer the uniform behaviour's frequencies
    tight = np.asarray(run.actors[1](jnp.asarray(eye)).probs)
    counts = np.zeros((5, 3))
    np.add.at(counts, (data.observation.argmax(1), data.action), 1)
    shares = counts / counts.sum(1, keepdims=True)
    assert np.abs(tight - shares).max() < np.abs(np.asarray(run.actors[0](jnp.asarray(eye)).probs) - shares).max()
    assert run.predict(eye[0]) == run.predict(eye)[0]


def test_state_aware_weights_are_a_plug_in(problem: tuple[object, Dataset], tmp_path: Path) -> None:
    _, data = problem
    algorithm = DiscreteCQL(
        discount=0.8, network=SMALL, weights=DualDICE(hidden=(16,), zeta_lr=1e-3), target_every=20, lr=1e-3
    )
    phases = sapp.sa_protocol(20)[-1:]  # the joint phase alone: one program to compile
    run = sapp.train(
        algorithm, data, phases=phases, out=tmp_path / "sa", eval_every=0, log_every=20, progress=False, copy_data=False
    )
    last = run.metrics()[-1]
    assert 0.0 <= float(last["weights/mean"]) <= 1.0
    assert float(last["weights/std"]) > 0
    assert np.isfinite(float(last["ratio/saddle"]))


def test_algorithms_and_data_must_match(problem: tuple[object, Dataset], tmp_path: Path) -> None:
    _, data = problem
    with pytest.raises(SappError, match="actions are discrete, CQL takes continuous ones; use discrete-cql"):
        sapp.train(sapp.CQL(), data, steps=1, out=tmp_path / "a", progress=False)
    continuous = Dataset([[0.0], [1.0]], [[0.5], [-0.5]], [1.0, 2.0], [[1.0], [2.0]], [False, False], [False, True])
    with pytest.raises(SappError, match="actions are continuous, DiscreteCQL takes discrete ones"):
        sapp.train(DiscreteCQL(), continuous, steps=1, out=tmp_path / "b", progress=False)
    assert not (tmp_path / "a").exists()


def test_the_largest_target_is_where_the_slopes_of_error_and_penalty_cancel() -> None:
    """½(Q − y)² − α·w·Q is least at Q = y + α·w."""
    algorithm = DiscreteCQL(alpha=0.5)
    lifted = np.linspace(0.0, 5.0, 501)
    for weight, row in ((4.0, {"weights/max": 4.0}), (1.0, {})):
        least = lifted[np.argmin(0.5 * lifted**2 - 0.5 * weight * lifted)]
        assert algorithm.largest_target(3.0, 2, row) == pytest.approx(3.0 + least)
