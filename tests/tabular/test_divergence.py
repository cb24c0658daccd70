"""Divergences against loops over their definitions, and at the edge of the support."""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np
import pytest

from sapp import SappError
from sapp.tabular import DIVERGENCES, cql, divergence, gaussian_kernel, kl, mmd, random_policies, tv
from sapp.tabular.evaluation import uncertainty


def brute(name: str, p: list[float], q: list[float]) -> float:
    """One state, by the definition."""
    pairs = list(zip(p, q, strict=True))
    if name == "cql":
        return sum(a * (a / b - 1) for a, b in pairs if a > 0)
    if name == "kl":
        return sum(a * math.log(a / b) for a, b in pairs if a > 0)
    if name == "tv":
        events = [[i for i in range(len(p)) if mask >> i & 1] for mask in range(2 ** len(p))]
        return max(abs(sum(p[i] - q[i] for i in event)) for event in events)
    total = 0.0
    for i, (a, b) in enumerate(pairs):
        for j, (c, d) in enumerate(pairs):
            total += (a - b) * (c - d) * math.exp(-((i - j) ** 2) / 2)
    return math.sqrt(total)


@pytest.mark.parametrize("name", DIVERGENCES)
def test_divergence_is_its_definition(name: str) -> None:
    rng = np.random.default_rng(0)
    policy, behaviour = random_policies(rng, (40, 5, 4)), random_policies(rng, (40, 5, 4))
    policy[0, 0] = [0.5, 0.5, 0, 0]
    found = divergence(name)(policy, behaviour)
    expected = [[brute(name, list(p), list(b)) for p, b in zip(ps, bs, strict=True)]
                for ps, bs in zip(policy, behaviour, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(divergence(name)(policy, policy), 0, atol=1e-12)
    on_jax = divergence(name)(jnp.asarray(policy), jnp.asarray(behaviour))
    np.testing.assert_allclose(np.asarray(on_jax), found, rtol=1e-3, atol=1e-5)


def test_off_the_support() -> None:
    policy, behaviour = np.array([[0.5, 0.5]]), np.array([[1.0, 0.0]])
    assert cql(policy, behaviour)[0] == np.inf
    assert kl(policy, behaviour)[0] == np.inf
    assert tv(policy, behaviour)[0] == 0.5
    assert mmd(policy, behaviour)[0] == pytest.approx(math.sqrt(0.5 * (1 - math.exp(-0.5))))
    assert kl(behaviour, policy)[0] == pytest.approx(math.log(2))


def test_cql_is_chi_squared() -> None:
    policy, behaviour = np.array([0.2, 0.8]), np.array([0.5, 0.5])
    assert cql(policy, behaviour) == pytest.approx(0.04 / 0.5 + 0.64 / 0.5 - 1)


def test_smoothed_kinks_stay_below_and_close() -> None:
    rng = np.random.default_rng(1)
    policy, behaviour = random_policies(rng, (100, 4)), random_policies(rng, (100, 4))
    for measure in (tv, mmd):
        exact, smooth = measure(policy, behaviour), measure(policy, behaviour, 1e-3)
        assert np.all(smooth <= exact)
        assert np.all(smooth >= exact - 2.1e-3)


def test_mmd_takes_a_kernel() -> None:
    policy, behaviour = np.array([1.0, 0, 0]), np.array([0, 0, 1.0])
    assert mmd(policy, behaviour, kernel=np.eye(3)) == pytest.approx(math.sqrt(2))
    assert mmd(policy, behaviour, kernel=gaussian_kernel(3, 0.1)) == pytest.approx(math.sqrt(2))
    with pytest.raises(SappError, match="kernel width"):
        gaussian_kernel(3, 0)


def test_count_uncertainty() -> None:
    policy, pairs = np.array([[0.25, 0.75, 0]]), np.array([[4.0, 9.0, 0.0]])
    assert uncertainty(policy, pairs)[0] == pytest.approx(0.25 / 2 + 0.75 / 3)
    assert uncertainty(np.array([[0.5, 0, 0.5]]), pairs)[0] == np.inf


def test_unknown_divergence() -> None:
    with pytest.raises(SappError, match="use cql, kl, tv, mmd"):
        divergence("hellinger")


def test_a_wider_kernel_is_that_of_a_finer_index() -> None:
    """K(a, b) depends on (a − b)/width alone."""
    fine = gaussian_kernel(7)
    np.testing.assert_allclose(gaussian_kernel(13, 2.0)[::2, ::2], fine)
    np.testing.assert_allclose(gaussian_kernel(4, 0.5), fine[:, ::2][::2])
    assert fine[0, 1] == pytest.approx(math.exp(-0.5))
    for width in (0.0, -1.0):
        with pytest.raises(SappError, match="it must be positive"):
            gaussian_kernel(3, width)
