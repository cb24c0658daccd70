"""Ratios by classification: the optimum is the log of the ratio."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiling import LONG

from sapp.networks import MLP
from sapp.weights.classifier import (
    ADAM,
    LOG_RATIO_LIMIT,
    against,
    averaged,
    classifier_loss,
    descend,
    log_ratio,
    make_classifier,
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
