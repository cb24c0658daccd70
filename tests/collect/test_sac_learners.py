"""SAC members of tasks of unlike sizes: padded together, cut apart."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from sapp.algorithms.sac import SAC
from sapp.collect.sac_learners import Learners, cut
from sapp.networks import GaussianActor


def test_a_cut_actor_acts_as_the_padded_one() -> None:
    actor = GaussianActor(jax.random.PRNGKey(0), 5, 3, (8, 8))
    seen = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)
    padded = actor(jnp.pad(jnp.asarray(seen), ((0, 0), (0, 1))))
    policy = cut(actor, observation_size=4, action_size=2)
    assert (policy.observation_size, policy.action_size) == (4, 2)
    np.testing.assert_allclose(policy.mode(seen), padded.mode()[:, :2], rtol=1e-5, atol=1e-6)


def test_members_are_as_wide_as_the_widest_task_and_leave_at_their_own_size() -> None:
    learners = Learners(SAC(hidden=(4,), batch_size=2), [(3, 1), (2, 2)], seeds=[0, 1])
    assert (learners.observations, learners.actions, learners.row_width) == (3, 2, 2 * 3 + 2 + 2)
    policies = learners.policies(learners.init())
    assert [(each.observation_size, each.action_size) for each in policies] == [(3, 1), (2, 2)]
