"""Ratios by classification: the optimum is the log of the ratio."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiling import LONG

from sapp.core.spec import Batch
from sapp.networks import MLP
from sapp.weights import OccupancyModel
from sapp.weights.classifier import (
    ADAM,
    LOG_RATIO_LIMIT,
    Standard,
    accuracy,
    against,
    averaged,
    classifier_loss,
    descend,
    effective_share,
    log_ratio,
    make_classifier,
    running,
)


def test_the_classifiers_optimum_is_the_log_ratio() -> None:
    """Two kinds, N(1, 1) and N(0, 1): s − ½; four, N(1, 1), N(0, 1), N(−½, 1), N(0, 1): that and −s/2 − ⅛."""
    shift = jnp.asarray([1.0, 0.0, -0.5, 0.0])

    def body(kinds: int, step: jax.Array, carry: tuple) -> tuple:
        network, readout, optimiser = carry
        drawn = jax.random.normal(jax.random.fold_in(jax.random.PRNGKey(1), step), (4, 512, 1)) + shift[:, None, None]
        states = drawn[:kinds].reshape(-1, 1)
        shares = jnp.repeat(jnp.eye(kinds), 512, axis=0) / 512
        loss, gradient = jax.value_and_grad(lambda n: classifier_loss(n[0], states, shares)[0])((network,))
        (network,), optimiser, _ = descend((network,), loss, gradient, optimiser, (2e-3,))
        return network, averaged(readout, network, 2e-3, step), optimiser

    points = np.linspace(-1.5, 2.0, 15, dtype=np.float32)
    for kinds, exact in ((2, points - 0.5), (4, (points - 0.5) + (-0.5 * points - 0.125))):
        network = make_classifier(jax.random.PRNGKey(0), 1, (32, 32), kinds, "float32")
        run = jax.jit(
            lambda carry, kinds=kinds: jax.lax.fori_loop(0, 1500, partial(body, kinds), carry), compiler_options=LONG
        )
        _, readout, _ = run((network, network, ADAM.init((network,))))
        np.testing.assert_allclose(log_ratio(readout, jnp.asarray(points)[:, None]), exact, atol=0.2)


def test_two_kinds_are_logistic_regression() -> None:
    network = MLP(jax.random.PRNGKey(0), 2, (8,), 2)
    ours, theirs = jax.random.normal(jax.random.PRNGKey(1), (2, 6, 2))
    share = jax.nn.softmax(jnp.arange(6.0))
    loss, scores = classifier_loss(network, jnp.concatenate([ours, theirs]), against(share, 6))
    c = scores[:6], scores[6:]
    expected = jnp.sum(share * jax.nn.softplus(-c[0])) + jnp.mean(jax.nn.softplus(c[1]))
    assert float(loss) == pytest.approx(float(expected), rel=1e-6)
    np.testing.assert_allclose(scores, log_ratio(network, jnp.concatenate([ours, theirs])), rtol=1e-6)


def test_a_classifier_is_averaged_over_an_eighth_of_its_steps_and_then_over_so_many() -> None:
    networks = [MLP(jax.random.PRNGKey(seed), 1, (2,), 2) for seed in range(2)]
    for steps, share in ((0, 1.0), (8, 0.5), (72, 0.1), (1000, 0.05)):
        mean = averaged(networks[0], networks[1], 0.05, jnp.int32(steps))
        for found, old, new in zip(*map(jax.tree.leaves, (mean, *networks)), strict=True):
            np.testing.assert_allclose(found, (1 - share) * old + share * new, rtol=1e-5, atol=1e-7)


def test_log_ratios_are_bounded() -> None:
    network = MLP(jax.random.PRNGKey(0), 1, (4,), 2, scale=1e9)
    assert abs(float(log_ratio(network, jnp.ones((1, 1)))[0])) == LOG_RATIO_LIMIT


def test_accuracy_counts_signs_of_either_kind_by_half() -> None:
    ours, share = jnp.array([2.0, -1.0, 0.5, 0.0]), jnp.array([0.4, 0.3, 0.2, 0.1])
    theirs = jnp.array([-1.0, -0.2, 0.5, 3.0, 0.0])
    assert float(accuracy(ours, share, theirs)) == pytest.approx(0.5 * (0.6 + 2 / 5))
    assert float(accuracy(jnp.ones(4), share, -jnp.ones(5))) == pytest.approx(1.0)
    assert float(accuracy(jnp.ones(4), share, jnp.ones(5))) == pytest.approx(0.5)  # the same sign everywhere


def test_the_ratio_is_the_mass_times_the_classifiers_ratio_at_standardised_states() -> None:
    seen = jnp.array([[3.0], [5.0], [1.0]])
    state = SimpleNamespace(
        readout=lambda s: jnp.concatenate([s, -0.5 * s], axis=-1), mass=jnp.float32(0.25),
        standard=Standard(jnp.array([3.0]), jnp.array([2.0])),
    )  # fmt: skip
    zero = jnp.zeros(3)
    found = OccupancyModel(hidden=(4,)).ratio(state, Batch(seen, seen, zero, seen, zero, seen), None)
    np.testing.assert_allclose(found, 0.25 * np.exp([0.0, 1.5, -1.5]), rtol=1e-5)
    np.testing.assert_allclose(state.standard.raw(state.standard(seen)), seen, rtol=1e-6)


def test_the_effective_share_of_equal_ratios_is_one_and_of_a_single_one_its_part() -> None:
    assert float(effective_share(jnp.full(8, 0.3))) == pytest.approx(1.0)
    assert float(effective_share(jnp.zeros(8).at[2].set(7.0))) == pytest.approx(1 / 8)
    assert float(effective_share(jnp.array([1.0, 3.0]))) == pytest.approx(16 / (2 * 10))


def test_a_step_that_was_not_taken_leaves_parameters_and_health_as_they_were() -> None:
    network = (jnp.array([1.0, -2.0]), jnp.array([3.0]))
    gradient = (jnp.array([0.5, -0.5]), jnp.array([4.0]))
    for loss, taken in ((1.0, True), (np.nan, False)):
        stepped, optimiser, finite = descend(network, jnp.float32(loss), gradient, ADAM.init(network), (0.1, 0.2))
        assert bool(finite) == taken
        assert int(optimiser.count) == taken
        # Adam's first step is a learning rate long, each network's own
        np.testing.assert_allclose(stepped[0], [0.9, -1.9] if taken else [1.0, -2.0], rtol=1e-5)
        np.testing.assert_allclose(stepped[1], [2.8] if taken else [3.0], rtol=1e-5)
        assert float(running(jnp.float32(1.0), jnp.float32(5.0), 0.25, finite)) == (2.0 if taken else 1.0)
