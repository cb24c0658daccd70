"""The fused critic gradient against the plain one: the same values, the same gradients, the same updates."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sapp import CQL, SappError
from sapp.algorithms.cql import critic_gradient, fused_critic_gradient, propose
from sapp.core.spec import Batch, Spec
from sapp.kernels import conservative
from sapp.networks import StateActionNetwork, ensemble

S, A, B = 5, 3, 8


def problem(hidden: tuple[int, ...], samples: int = 10, actions: int = A, precision: str = "float32", seed: int = 0):
    keys = jax.random.split(jax.random.PRNGKey(seed), 12)
    critics = jax.vmap(lambda k: StateActionNetwork(k, S, actions, hidden, precision))(jax.random.split(keys[0], 2))
    normal = lambda key, *shape: jax.random.normal(key, shape)  # noqa: E731
    batch = Batch(
        normal(keys[1], B, S), jnp.tanh(normal(keys[2], B, actions)), normal(keys[3], B), normal(keys[4], B, S),
        jnp.zeros(B), normal(keys[5], B, S),
    )  # fmt: skip
    here = jnp.tanh(normal(keys[6], B, samples, actions)), normal(keys[7], B, samples)
    there = jnp.tanh(normal(keys[8], B, samples, actions)), normal(keys[9], B, samples)
    proposals = propose(here, there, keys[10])
    weights = jax.random.uniform(keys[11], (B,), minval=0.2, maxval=2.0)
    return critics, batch, normal(keys[11], B), proposals, weights, jnp.float32(2.5)


def exact(critics, batch, target, proposals, weights, coefficient, operands=jnp.float32):
    return conservative.critic_gradient(
        tuple((layer.weight, layer.bias) for layer in critics.mlp.layers),
        batch.observation,
        jnp.concatenate([proposals[0], batch.action[:, None]], axis=1),
        proposals[1],
        target,
        coefficient * weights / B,
        operands=operands,
        interpret=True,
    )


@pytest.mark.parametrize(
    ("hidden", "samples", "actions"),
    [((64, 64), 10, 3), ((64, 128, 64), 10, 3), ((64, 64, 64, 64), 10, 6), ((64, 64), 3, 14), ((64, 64), 21, 2)],
)
def test_equals_the_plain_gradient_in_float32(hidden: tuple[int, ...], samples: int, actions: int) -> None:
    arguments = problem(hidden, samples, actions)
    (_, _), plain = critic_gradient(*arguments)
    found = exact(*arguments)
    for mine, theirs in zip(jax.tree.leaves(found.layers), jax.tree.leaves(plain), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-5 * float(jnp.max(jnp.abs(theirs))))


def distance(mine: object, theirs: object) -> float:
    """Largest relative distance of two gradients, over layers."""
    pairs = zip(jax.tree.leaves(mine), jax.tree.leaves(theirs), strict=True)
    return max(float(jnp.linalg.norm(a - b) / jnp.linalg.norm(b)) for a, b in pairs)


@pytest.mark.parametrize("hidden", [(64, 64), (128, 128, 128)])
@pytest.mark.parametrize("size", [1.0, 0.05, 30.0])
def test_half_precision_is_as_near_to_float32_as_tf32(hidden: tuple[int, ...], size: float) -> None:
    """Whatever the size of the values: what is kept is scaled, so nothing overflows and nothing vanishes."""

    def sized(precision: str):  # every layer larger: values by size to the power of the number of layers
        critics, batch, target, *rest = problem(hidden, precision=precision)
        critics = jax.tree.map(lambda leaf: leaf * size, critics)
        values = jnp.mean(ensemble(critics, batch.observation, batch.action), axis=0)
        return critics, batch, values * (1.0 + 0.3 * target), *rest

    (exact_loss, _), truth = critic_gradient(*sized("float32"))
    (plain_loss, plain_metrics), plain = critic_gradient(*sized("tf32"))
    (loss, metrics), fused = fused_critic_gradient(*sized("tf32"))
    assert 0.0 < distance(fused, truth) < 4.0 * distance(plain, truth)
    assert distance(fused, truth) < 0.02
    assert abs(float(loss - exact_loss)) < 2e-3 * abs(float(exact_loss))
    assert abs(float(plain_loss - exact_loss)) < 2e-3 * abs(float(exact_loss))
    for name, value in plain_metrics.items():
        np.testing.assert_allclose(metrics[name], value, rtol=4e-3, atol=1e-3, err_msg=name)


def test_large_values_keep_their_bits() -> None:
    """Values near 1,400 with differences of a few between actions: the size at which bfloat16 has steps of eight."""
    critics, batch, _, proposals, weights, coefficient = problem((64, 64))
    critics = eqx.tree_at(lambda c: c.mlp.layers[-1].bias, critics, jnp.full((2, 1), 1_400.0))
    scores = ensemble(critics, batch.observation, batch.action)
    target = jnp.full(B, 1_398.0)
    (_, metrics), _ = fused_critic_gradient(critics, batch, target, proposals, weights, coefficient)
    found = exact(critics, batch, target, proposals, weights, coefficient, jnp.float16)
    np.testing.assert_allclose(found.value, scores, rtol=0, atol=2e-3)
    assert np.unique(np.asarray(found.value)).size == scores.size
    assert float(metrics["critic/value"]) == pytest.approx(float(jnp.mean(scores)), abs=1e-3)


def test_a_critic_that_has_run_away_gives_finite_gradients() -> None:
    """TD errors beyond sixteen times the largest target are cut; within them the gradient is the plain one."""
    critics, batch, target, proposals, weights, coefficient = problem((64, 64))
    far = eqx.tree_at(lambda c: c.mlp.layers[-1].bias, critics, jnp.full((2, 1), 1e9))
    _, gradient = fused_critic_gradient(far, batch, target, proposals, weights, coefficient)
    assert all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in jax.tree.leaves(gradient))
    near = eqx.tree_at(lambda c: c.mlp.layers[-1].bias, critics, jnp.full((2, 1), 10.0))
    arguments = near, batch, target, proposals, weights, coefficient
    assert distance(fused_critic_gradient(*arguments)[1], critic_gradient(*arguments)[1]) < 2e-3


def test_members_of_a_population_do_not_mix() -> None:
    """Under vmap each member gets its own gradient."""
    members = [problem((64, 64), seed=seed) for seed in range(3)]
    together = jax.vmap(exact)(*jax.tree.map(lambda *x: jnp.stack(x), *members))
    for number, member in enumerate(members):
        alone = exact(*member)
        for mine, theirs in zip(jax.tree.leaves(together), jax.tree.leaves(alone), strict=True):
            np.testing.assert_allclose(mine[number], theirs, rtol=1e-5, atol=1e-6)


def test_an_update_with_the_kernel_is_an_update() -> None:
    """The whole of CQL's step, fused against plain."""
    _, batch, *_ = problem((64, 64))
    spec = Spec(S, A, jnp.zeros(S), jnp.ones(S))
    states = {}
    for kernel in ("xla", "fused"):
        algorithm = CQL(hidden=(64, 64), batch_size=B, precision="mixed", kernel=kernel)
        state = algorithm.init(jax.random.PRNGKey(0), spec)
        states[kernel], _ = algorithm.update(state, batch, jnp.ones(B), jax.random.PRNGKey(1))
    plain, fused = (
        jnp.concatenate([leaf.ravel() for leaf in jax.tree.leaves(state.critic_optimiser.mu)])
        for state in states.values()
    )
    # a unit on its ReLU's edge may fall on either side of it
    assert float(jnp.linalg.norm(fused - plain)) < 0.01 * float(jnp.linalg.norm(plain))
    np.testing.assert_array_equal(states["fused"].log_temperature, states["xla"].log_temperature)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"kernel": "fast"}, "kernel 'fast' is unknown"),
        ({"kernel": "fused", "precision": "tf32"}, "computes in precision mixed"),
        ({"kernel": "fused", "precision": "mixed", "hidden": (48, 48)}, "hidden layers (48, 48)"),
        ({"kernel": "fused", "precision": "mixed", "hidden": (64,)}, "hidden layers (64,)"),
        ({"kernel": "fused", "precision": "mixed", "hidden": (64, 64), "action_samples": 50}, "150 proposals"),
        ({"kernel": "fused", "precision": "mixed", "hidden": (64, 64), "action_samples": 1}, "a batch of 8"),
    ],
)
def test_what_it_cannot_take_is_refused_by_name(settings: dict, words: str) -> None:
    _, batch, *_ = problem((64, 64))

    def update() -> None:
        algorithm = CQL(batch_size=B, **settings)
        state = algorithm.init(jax.random.PRNGKey(0), Spec(S, A, jnp.zeros(S), jnp.ones(S)))
        algorithm.update(state, batch, jnp.ones(B), jax.random.PRNGKey(1))

    with pytest.raises(SappError) as error:
        update()
    assert words in str(error.value)


def test_auto_is_the_plain_program_on_a_cpu() -> None:
    _, batch, *_ = problem((64, 64))
    assert not CQL(precision="mixed")._fused(batch)
    assert not CQL(precision="float32")._fused(batch)
