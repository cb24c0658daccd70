"""EDAC's diversity term against loops over pairs of critics, and one update against NumPy."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy_reference import SPEC, A, B, close, f64, gaussian, init, log_tanh_normal, make_batch, q, target_of, update

from sapp import BEAR, EDAC, UWAC, preset
from sapp.algorithms.edac import alignment
from sapp.networks import action_gradients

WEIGHTS = np.linspace(0.0, 2.0, B)


def test_alignment_is_the_mean_cosine_over_pairs() -> None:
    gradients = np.random.default_rng(0).normal(size=(5, 4, 3))
    expected = [
        sum(
            float(gradients[i, b] @ gradients[j, b] / np.linalg.norm(gradients[i, b]) / np.linalg.norm(gradients[j, b]))
            for i in range(5)
            for j in range(5)
            if i != j
        )
        / 4
        for b in range(4)
    ]
    close(alignment(jnp.asarray(gradients, jnp.float32)), expected)


def test_alignment_has_a_finite_gradient_at_zero() -> None:
    slope = jax.grad(lambda g: jnp.sum(alignment(g)))(jnp.zeros((3, 2, 2)))
    assert np.all(np.isfinite(slope))


@pytest.mark.parametrize("diversify", [True, False])
def test_networks_start_as_the_authors_do(diversify: bool) -> None:
    """Biases 0.1, the actor's heads within 1e-3 and the critics' within 3e-3: σ is near 1 and values near 0."""
    state = EDAC(hidden=(16, 16), critics=4, diversify=diversify).init(jax.random.PRNGKey(1), SPEC)
    actor, critics = state.actor.network, state.critics.network
    for layer in (*actor.trunk.layers, *critics.mlp.layers[:-1]):
        np.testing.assert_array_equal(layer.bias, np.float32(0.1))
    for layer, bound in ((actor.mean, 1e-3), (actor.log_std, 1e-3), (critics.mlp.layers[-1], 3e-3)):
        largest = max(float(jnp.max(jnp.abs(x))) for x in (layer.weight, layer.bias))
        assert 0.5 * bound < largest <= bound
    assert not np.allclose(actor.mean.weight, actor.log_std.weight)


def test_one_update_against_numpy() -> None:
    algorithm = EDAC(hidden=(16, 16), critics=4, eta=0.7, initial_temperature=0.3)
    batch, key = make_batch(), jax.random.PRNGKey(3)
    state = init(algorithm, 1)
    new, metrics = update(algorithm, state, batch, WEIGHTS, key)
    actor_key, backup_key = jax.random.split(key)

    def draw(actor, observation, key):
        mean, log_std = gaussian(actor, observation)
        action = np.tanh(mean + np.exp(log_std) * f64(jax.random.normal(key, (B, A))))
        return action, log_tanh_normal(action, mean, log_std)

    # temperature first, on the old policy; then the actor, by the old critics; then the critics, with the new actor
    action, log_prob = draw(state.actor.network, batch.observation, actor_key)
    close(new.log_temperature.network, np.log(0.3) + 3e-4 * np.sign(np.mean(log_prob - A)))
    close(new.log_temperature.optimiser.mu, -0.1 * 0.3 * np.mean(log_prob - A))  # a tenth of the gradient
    temperature = np.exp(f64(new.log_temperature.network))
    close(metrics["actor/temperature"], temperature)
    close(metrics["actor/entropy"], -log_prob.mean())
    close(
        metrics["actor/loss"],
        np.mean(temperature * log_prob - q(state.critics.network, batch.observation, action).min(0)),
    )
    next_action, next_log_prob = draw(new.actor.network, batch.next_observation, backup_key)
    following = q(state.target_critics, batch.next_observation, next_action).min(0) - temperature * next_log_prob
    target = target_of(batch, following, 0.99)
    td = np.sum(np.mean((q(state.critics.network, batch.observation, batch.action) - target) ** 2, -1))
    close(metrics["critic/td"], td / 4)
    similarity = alignment(action_gradients(state.critics.network, batch.observation, batch.action))
    expected = td + 0.7 * np.mean(WEIGHTS * f64(similarity))
    close(metrics["loss"], expected + float(metrics["actor/loss"]), 1e-3)


@pytest.mark.parametrize(("algorithm", "least"), [(EDAC, -5.0), (UWAC, -5.0), (BEAR, -20.0)])
def test_the_actor_is_never_narrower_than_the_authors(algorithm: type, least: float) -> None:
    """EDAC's and UWAC's code stop at a standard deviation of exp(−5), d3rlpy's BEAR at exp(−20)."""
    actor = algorithm(hidden=(8, 8)).init(jax.random.PRNGKey(0), SPEC).actor.network
    narrow = eqx.tree_at(lambda a: a.log_std.bias, actor, jnp.full(A, -100.0))
    np.testing.assert_array_equal(narrow(make_batch().observation).log_std, least)


def test_the_term_spreads_the_gradients() -> None:
    """Descending it alone makes critics that agree disagree."""
    algorithm = EDAC(hidden=(16, 16), critics=3, critic_lr=1e-2, eta=100.0)
    batch = make_batch()
    state = init(algorithm, 1)
    target = jnp.zeros(B)
    critics = state.critics
    step = jax.jit(lambda c: c.descend(algorithm.critic_loss, 1e-3, batch, target, jnp.ones(B)))
    values = []
    for _ in range(60):
        critics, _, metrics = step(critics)
        values.append(float(metrics["critic/alignment"]))
    assert values[-1] < values[0] - 0.3
    assert values[-1] >= -1.5 - 1e-3  # three vectors cannot do better


@pytest.mark.parametrize(
    ("name", "dataset", "count", "eta"),
    [
        ("edac", "halfcheetah-medium-v2", 10, 1.0),
        ("edac", "hopper-medium-expert-v2", 50, 1.0),
        ("edac", "walker2d-medium-expert-v2", 10, 5.0),
        ("sac-n", "hopper-medium-v2", 500, None),
        ("sac-n", "walker2d-medium-v2", 20, None),
    ],
)
def test_presets_by_dataset(name: str, dataset: str, count: int, eta: float | None) -> None:
    chosen = preset(name, dataset)
    assert chosen.critics == count
    assert chosen.diversify == (eta is not None)
    if eta is not None:
        assert chosen.eta == eta


def test_presets_of_all_sets_are_the_papers() -> None:
    """η and the number of critics, by the sets that have them."""
    qualities = ("random", "medium", "expert", "medium-expert", "medium-replay", "full-replay")
    for quality in qualities:
        found = [preset("edac", f"{name}-{quality}-v2") for name in ("halfcheetah", "hopper", "walker2d")]
        assert [each.critics for each in found] == [10, 50, 10]
        eta = {"random": [0, 0, 1], "expert": [1, 1, 5], "medium-expert": [5, 1, 5]}.get(quality, [1, 1, 1])
        assert [each.eta for each in found] == eta
        found = [preset("sac-n", f"{name}-{quality}-v2") for name in ("halfcheetah", "hopper", "walker2d")]
        assert [each.critics for each in found] == [10, 500 if quality == "medium" else 200, 20]
        assert not any(each.diversify for each in found)
