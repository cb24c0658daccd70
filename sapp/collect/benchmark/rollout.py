"""Rolls a recipe's segments out."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping

from sapp.collect.benchmark.recipes import UNIFORM, Segment
from sapp.core.errors import SappError
from sapp.data.dataset import Dataset
from sapp.envs.base import BatchEnvironment, check_seed
from sapp.envs.collect import collect
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


def roll_out(
    segment: Segment,
    policies: Mapping[str, TanhGaussianPolicy],
    environment: BatchEnvironment,
    seed: int,
    progress: Callable[[int], None] | None = None,
) -> Dataset:
    """One segment as a dataset; the same arguments on the same machine give the same bits."""
    policy = behaviour(segment.policy, policies, environment)
    return collect(
        policy, environment, segment.transitions, segment_seed(seed, segment.policy), progress=progress,
        name=segment.policy,
    )  # fmt: skip
