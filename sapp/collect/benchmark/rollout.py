"""Who acts in a segment of a recipe, and from which seed."""

from __future__ import annotations

import zlib
from collections.abc import Mapping

from sapp.collect.benchmark.recipes import UNIFORM
from sapp.core.errors import SappError
from sapp.envs.base import BatchEnvironment, check_seed
from sapp.envs.policies import StochasticPolicy, TanhGaussianPolicy, UniformPolicy


def behaviour(name: str, policies: Mapping[str, TanhGaussianPolicy], environment: BatchEnvironment) -> StochasticPolicy:
    """The policy of a segment, after checking that it fits the environment."""
    if name == UNIFORM:
        return UniformPolicy(environment.action_low, environment.action_high)
    policy = policies[name]
    has, needs = ((each.observation_size, each.action_size) for each in (policy, environment))
    if has != needs:
        raise SappError(
            f"policy {name}: it takes {has[0]} observations and gives {has[1]} actions, but {environment.name} has "
            f"{needs[0]} and {needs[1]}; is it another environment's?"
        )
    return policy


def segment_seed(seed: int, policy: str) -> int:
    """Seed of a segment: it follows from the policy, so medium-expert is medium and expert of the same seed."""
    return check_seed(seed) * 2**32 + zlib.crc32(policy.encode())
