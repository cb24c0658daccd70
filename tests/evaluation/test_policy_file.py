"""Policies of files as pytrees."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from sapp.envs.policies import TanhGaussianPolicy
from sapp.evaluation.policy_file import actor_of, stack


def policy(seed: int) -> TanhGaussianPolicy:
    rng = np.random.default_rng(seed)

    def pair(out: int, width: int) -> tuple[np.ndarray, np.ndarray]:
        return rng.normal(size=(out, width)).astype(np.float32), rng.normal(size=out).astype(np.float32)

    return TanhGaussianPolicy((pair(8, 3),), pair(2, 8), pair(2, 8))


def test_policy_files_as_pytrees() -> None:
    one = policy(0)
    observation = np.random.default_rng(1).normal(size=(5, 3)).astype(np.float32)
    np.testing.assert_allclose(actor_of(one)(jnp.asarray(observation)).mode(), one.mode(observation), atol=1e-5)


def test_policies_of_one_shape_are_one_pytree() -> None:
    policies = [policy(seed) for seed in range(3)]
    observation = np.random.default_rng(1).normal(size=(5, 3)).astype(np.float32)
    together = jax.vmap(lambda actor: actor(jnp.asarray(observation)).mode())(stack(policies))
    for found, one in zip(together, policies, strict=True):
        np.testing.assert_allclose(found, one.mode(observation), atol=1e-5)
