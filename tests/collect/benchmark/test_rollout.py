"""Who acts in a segment, and from which seed."""

from __future__ import annotations

import pytest
from small_policies import random_policy

from sapp.collect.benchmark.recipes import UNIFORM
from sapp.collect.benchmark.rollout import behaviour, segment_seed
from sapp.core.errors import SappError
from sapp.envs import make
from sapp.envs.policies import UniformPolicy


def test_a_segments_policy_fits_its_environment() -> None:
    point, policies = make("point"), {"a": random_policy(0, 2, 2), "b": random_policy(0, 11, 3)}
    assert isinstance(behaviour(UNIFORM, policies, point), UniformPolicy)
    assert behaviour("a", policies, point) is policies["a"]
    with pytest.raises(SappError, match="policy b: it takes 11 observations and gives 3 actions, but"):
        behaviour("b", policies, point)


def test_seeds_follow_from_the_policy_and_never_meet() -> None:
    found = {segment_seed(seed, name) for seed in range(3) for name in ("uniform", "step-1", "step-2")}
    assert len(found) == 9
    assert segment_seed(1, "step-1") - segment_seed(0, "step-1") == 2**32
    with pytest.raises(SappError, match="seed -1 is negative"):
        segment_seed(-1, "a")
