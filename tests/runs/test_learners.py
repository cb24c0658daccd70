"""Members stacked into one tree: each is what it would be alone."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from sapp.algorithms import BC, CQL
from sapp.core.spec import Spec
from sapp.runs.learners import Group, one_of
from sapp.runs.members import Member
from sapp.weights import DualDICE

SPECS = [Spec(3, 2, jnp.zeros(3), jnp.ones(3)), Spec(3, 2, jnp.full(3, 5.0), jnp.full(3, 2.0))]


def test_a_stacked_member_begins_as_it_would_alone() -> None:
    members = [Member("a", BC(hidden=(4,)), 0, 3), Member("b", BC(hidden=(4,), actor_lr=1e-2), 1, 4)]
    together = Group(members, SPECS)
    learner = together.init()
    np.testing.assert_allclose(together.algorithm.actor_lr, [members[0].algorithm.actor_lr, 1e-2])
    for number, member in enumerate(members):
        alone = Group([member], SPECS).init()
        for all_of_it, own in zip(jax.tree.leaves(learner.base), jax.tree.leaves(alone.base), strict=True):
            np.testing.assert_array_equal(all_of_it[number], own[0])
    assert learner.alive.tolist() == [True, True]
    assert learner.stopped_at.tolist() == [-1, -1]
    assert (int(learner.updates), int(learner.ratio_updates)) == (0, 0)


def test_policies_are_those_of_each_member() -> None:
    group = Group([Member(str(seed), BC(hidden=(4,)), seed, seed) for seed in (0, 1)], SPECS)
    learner = group.init()
    policies = group.policies(learner)
    seen = jnp.asarray(np.random.default_rng(0).normal(size=(5, 3)), jnp.float32)
    for number in range(2):
        own = group.members[number].algorithm.policy(one_of(learner.base, number))
        np.testing.assert_allclose(one_of(policies, number)(seen).mode(), own(seen).mode(), rtol=1e-6)


def test_only_weights_that_learn_have_a_ratio() -> None:
    plain, aware = (Group([Member("x", CQL(hidden=(4,), **more), 0, 0)], SPECS) for more in (
        {}, {"weights": DualDICE(hidden=(4,))}))  # fmt: skip
    assert (plain.has_ratio, aware.has_ratio) == (False, True)
