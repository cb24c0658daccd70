"""ReBRAC's two penalties and its critics with layer norm, against NumPy; the next logged action in batches."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy_reference import A, B, close, f64, init, make_batch, mlp, pick, target_of, update

from sapp import ReBRAC, preset
from sapp.data import Dataset
from sapp.training.device_data import DeviceData

ALGORITHM = ReBRAC(hidden=(16, 16), actor_penalty=0.7, critic_penalty=0.3)
WEIGHTS = np.linspace(0.0, 2.0, B)


def norm_q(critics, state, action) -> np.ndarray:
    """Dense, ReLU, layer norm; twice; dense."""
    out = []
    for i in range(2):
        critic = pick(critics, i)
        x = np.concatenate([f64(state), f64(action)], -1)
        for layer, norm in zip(critic.mlp.layers[:-1], critic.norms, strict=True):
            x = np.maximum(x @ f64(layer.weight) + f64(layer.bias), 0.0)
            x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-6)
            x = x * f64(norm.scale) + f64(norm.shift)
        out.append((x @ f64(critic.mlp.layers[-1].weight) + f64(critic.mlp.layers[-1].bias))[:, 0])
    return np.stack(out)


def test_one_update_against_numpy() -> None:
    batch, key = make_batch(next_action=True), jax.random.PRNGKey(3)
    state = init(ALGORITHM, 1)
    new, metrics = update(ALGORITHM, state, batch, WEIGHTS, key, 1)
    noise = np.clip(0.2 * f64(jax.random.normal(key, (B, A))), -0.5, 0.5)
    next_action = np.clip(np.tanh(mlp(state.target_actor.mlp, f64(batch.next_observation))) + noise, -1, 1)
    distance = np.sum((next_action - f64(batch.next_action)) ** 2, -1)
    following = norm_q(state.target_critics, batch.next_observation, next_action).min(0)
    following = following - 0.3 * WEIGHTS * f64(batch.next_logged) * distance
    target = target_of(batch, following, 0.99)
    values = norm_q(state.critics.network, batch.observation, batch.action)
    close(metrics["critic/td"], np.mean((values - target) ** 2))

    action = np.tanh(mlp(state.actor.network.mlp, f64(batch.observation)))
    value = norm_q(new.critics.network, batch.observation, action).min(0)  # the minimum, not Q₁
    penalty = np.sum((action - f64(batch.action)) ** 2, -1)
    close(metrics["actor/loss"] / 2, np.mean(0.7 * WEIGHTS * penalty - value / np.abs(value).mean()))
    close(metrics["actor/penalty"] / 2, penalty.mean())
    close(metrics["actor/value"] / 2, value.mean())
    close(metrics["loss"], 2 * metrics["critic/td"] + metrics["actor/loss"])


def test_next_action_is_the_next_rows_within_an_episode_and_absent_at_its_end() -> None:
    terminal, timeout = np.zeros(9, bool), np.zeros(9, bool)
    terminal[[2, 8]], timeout[4] = True, True
    row = np.arange(9, dtype=np.float32)
    data = DeviceData.of([Dataset(row[:, None], row[:, None] / 8, row, row[:, None] + 1, terminal, timeout)])
    with_next = data.batch(jnp.int32(0), jax.random.PRNGKey(0), 500, next_action=True)
    plain = data.batch(jnp.int32(0), jax.random.PRNGKey(0), 500)
    assert plain.next_action is None
    np.testing.assert_array_equal(plain.observation, with_next.observation)
    rows = np.asarray(with_next.reward).astype(int)
    last = np.isin(rows, [2, 4, 8])
    np.testing.assert_array_equal(with_next.next_logged, 1.0 - last)
    expected = data.action[0, np.where(last, rows, rows + 1)]
    np.testing.assert_array_equal(with_next.next_action, expected)


@pytest.mark.parametrize(
    ("dataset", "penalties"),
    [
        ("halfcheetah-medium-v2", (0.001, 0.01)),
        ("hopper_medium_replay-v2", (0.05, 0.5)),
        ("walker2d-expert-v2", (0.01, 0.5)),
        ("my-own-logs", (0.001, 0.01)),
    ],
)
def test_presets_know_the_authors_penalties(dataset: str, penalties: tuple[float, float]) -> None:
    chosen = preset("rebrac", dataset)
    assert (chosen.actor_penalty, chosen.critic_penalty) == penalties


def test_presets_are_the_authors_configurations_each_of_the_eighteen() -> None:
    """Written down from the other side: which sets have a penalty's value."""
    actor = {
        0.001: "halfcheetah: random medium full-replay; hopper: random",
        0.01: "halfcheetah: expert medium-expert medium-replay; hopper: medium full-replay; "
        "walker2d: random expert medium-expert full-replay",
        0.05: "hopper: medium-replay; walker2d: medium medium-replay",
        0.1: "hopper: expert medium-expert",
    }
    critic = {
        0.0: "walker2d: random",
        0.001: "halfcheetah: medium-replay",
        0.01: "halfcheetah: medium expert; hopper: random medium medium-expert full-replay; "
        "walker2d: medium-expert medium-replay full-replay",
        0.1: "halfcheetah: random medium-expert full-replay; hopper: expert; walker2d: medium",
        0.5: "hopper: medium-replay; walker2d: expert",
    }

    def by_dataset(table: dict[float, str]) -> dict[str, float]:
        rows = [(value, part.strip().split(": ")) for value, text in table.items() for part in text.split(";")]
        return {f"{name}-{quality}": value for value, (name, several) in rows for quality in several.split()}

    for name, expected in (("actor_penalty", by_dataset(actor)), ("critic_penalty", by_dataset(critic))):
        assert len(expected) == 18
        assert {dataset: getattr(preset("rebrac", dataset), name) for dataset in expected} == expected


def test_the_largest_target_is_reached_at_opposite_corners_under_the_largest_weight() -> None:
    batch = make_batch(next_action=True)
    corner = jnp.ones((B, A))
    logged = type(batch)(*jax.tree.leaves(batch)[:6], -corner, jnp.ones(B))
    most = float(np.max(ALGORITHM.target_penalty(logged, corner, jnp.asarray(WEIGHTS, jnp.float32))))
    assert ALGORITHM.largest_target(1.5, A, {"weights/max": 2.0}) == pytest.approx(1.5 + most)
    plain = float(np.max(ALGORITHM.target_penalty(logged, corner, jnp.ones(B))))
    assert ALGORITHM.largest_target(1.5, A, {}) == pytest.approx(1.5 + plain)
