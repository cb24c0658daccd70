"""Datasets from a policy that is there already, in any environment whose observations are vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sapp.core.errors import SappError
from sapp.data.dataset import Dataset, concatenate
from sapp.envs import is_frames, make
from sapp.envs.base import BatchEnvironment
from sapp.envs.collect import collect
from sapp.envs.gymnasium_batch import GymnasiumBatch
from sapp.envs.policies import ExploringPolicy, ScaledPolicy, StochasticPolicy, load_policy, uniform_policy

if TYPE_CHECKING:
    from sapp.envs.gymnasium_batch import Source

UNIFORM = "uniform"
"""The name of the policy that draws its actions at random."""

Given = str | Path | Callable[[np.ndarray], Any]
"""``UNIFORM``, the file of a policy, a training run's folder, or a function of observations [n, O]."""


def record(
    environment: Source,
    policy: Given = UNIFORM,
    *,
    steps: int = 100_000,
    epsilon: float | Sequence[float] = 0.0,
    seed: int = 0,
    rows: int = 64,
    max_episode_steps: int | None = None,
    name: str | None = None,
    progress: Callable[[int], None] | None = None,
    action_masks: bool = False,
) -> Dataset:
    """Play a policy and record what happens, as ``sapp.envs.collect.collect`` does.

    Args:
        environment: see ``sapp.envs.make``.
        policy: "uniform"; an .npz or D4RL HDF5 file, which is drawn from; a training run's folder, whose first member
            plays its deterministic policy; or a function from observations [n, O] to actions.
        steps: transitions in all.
        epsilon: chance of a uniformly random action in place of the run's or the function's, or several chances, each
            for an equal share of the steps.
        seed: of everything.
        rows: environments stepped side by side, at most.
        max_episode_steps: the time limit, for environments without one.
        name: of the dataset.
        progress: called with the number of transitions of the share under way.
        action_masks: the environment tells which actions are possible (``info["action_mask"]``, as Taxi does): make it
            part of the observations, so that learners and policies keep to it.
    """
    if isinstance(environment, str) and is_frames(environment):
        raise SappError(f"{environment} has images for observations; use sapp.collect.given.log_given")
    env = make(environment, max_episode_steps=max_episode_steps)
    if action_masks:
        if not isinstance(env, GymnasiumBatch):
            raise SappError(f"{env.name} tells nothing of which actions are possible; leave action_masks out")
        env.append_masks()
    chances = [float(epsilon)] if isinstance(epsilon, int | float) else [float(chance) for chance in epsilon]
    if not chances or not all(0 <= chance <= 1 for chance in chances):
        raise SappError(f"epsilon is {epsilon}; it must be a chance from 0 to 1, or several")
    if steps < len(chances):
        raise SappError(f"{steps} steps cannot be shared by {len(chances)} epsilons")
    parts, episode = [], 0
    for share, chance in enumerate(chances):
        count = steps * (share + 1) // len(chances) - steps * share // len(chances)
        part = collect(
            policy_of(policy, env, chance), env, count, seed, batch=rows, progress=progress, name=name,
            first_episode=episode,
        )  # fmt: skip
        episode += part.num_episodes
        parts.append(part)
    return parts[0] if len(parts) == 1 else concatenate(parts, name or env.name)


def policy_of(policy: Given, env: BatchEnvironment, epsilon: float) -> StochasticPolicy:
    """The policy to play in an environment, refused where it was made for another."""
    random = uniform_policy(env)
    if callable(policy):
        return ExploringPolicy(policy, random, epsilon)
    if str(policy) == UNIFORM:
        return random
    path = Path(policy)
    if path.is_file():
        if epsilon:
            raise SappError(f"{path}: a policy file is drawn from as it is; leave epsilon out")
        drawn = load_policy(path)
        _fits(path, (drawn.observation_size, drawn.action_size, None), env)
        return ScaledPolicy(drawn, env.action_low, env.action_high)
    if not path.is_dir():
        raise SappError(f"{path}: no such policy; give uniform, a policy file or the folder of a training run")
    from sapp.runs.run import Run

    run = Run(path)
    problem = run.plan.problems[run.plan.members[0].dataset]
    if problem.frame is not None:
        raise SappError(f"{path}: its policies take images; {env.name} has vectors")
    _fits(path, (problem.observation_size, problem.action_size, problem.num_actions), env)
    return ExploringPolicy(run.predict, random, epsilon)


def _fits(path: Path, own: tuple[int, int, int | None], env: BatchEnvironment) -> None:
    wanted = env.observation_size, env.action_size, env.num_actions
    if own != wanted:
        kinds = [
            f"{size} values in an observation and {actions} {'values in an action' if count is None else 'actions'}"
            for size, actions, count in (own, wanted)
        ]
        raise SappError(f"{path}: a policy for {kinds[0]}; {env.name} has {kinds[1]}: was it made for another?")
