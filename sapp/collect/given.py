"""Logs of image games by a policy that is there already: a network's file, an online DQN's folder, or a run's."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from sapp.collect.frames_log import log_policy
from sapp.collect.online_dqn import CONFIG, LOGS, DQNRun
from sapp.core.errors import SappError
from sapp.envs import make_frames
from sapp.envs.frame_policies import load_conv_policy
from sapp.envs.frames import Act, FrameEnvironment
from sapp.runs.folders import new_folder


def given_policy(
    path: str | Path, env: FrameEnvironment, seed: int = 0, temperature: float = 1.0, stack: int = 4
) -> Act:
    """A policy of stacks of frames, refused where it was made for other frames or another number of actions.

    Args:
        path: an npz file (``frame_policies.load_conv_policy``), which draws from its softmax; the folder of an online
            DQN or of a training run, whose network (of the run's first member) plays greedily.
        env: where it is to play.
        seed: of the draws.
        temperature: of the softmax; files only.
        stack: frames of an observation.
    """
    path = Path(path)
    wanted = [stack, *env.frame_shape], env.num_actions
    if path.is_file():
        policy = load_conv_policy(path)
        if not policy.takes(wanted[0]):
            raise SappError(f"{path}: its layers do not fit {stack} frames of {env.frame_shape} of {env.name}")
        _check(path, env, (wanted[0], policy.num_actions), wanted)
        return policy.sampler(seed, temperature)
    if temperature != 1.0:
        raise SappError(f"{path}: a folder's network plays greedily; a temperature is for npz files")
    if not (path / CONFIG).is_file():
        raise SappError(f"{path}: no policy; give an npz file, or the folder of an online DQN or of a training run")
    if json.loads((path / CONFIG).read_text(encoding="utf-8")).get("kind") == "online dqn":
        learner = DQNRun(path)
        _check(path, env, (learner.config["frame"], learner.config["num_actions"]), wanted)
        scores = learner.policy()
        return lambda stacks: np.asarray(scores(jnp.asarray(stacks)))
    from sapp.runs.run import Run

    run = Run(path)
    problem = run.plan.problems[run.plan.members[0].dataset]
    if problem.frame is None:
        raise SappError(f"{path}: its policies take vectors, not frames")
    _check(path, env, (list(problem.frame), problem.action_size), wanted)
    return run.predict


def _check(path: Path, env: FrameEnvironment, own: tuple[list[int], int], wanted: tuple[list[int], int]) -> None:
    if own != wanted:
        raise SappError(
            f"{path}: a policy of {own[1]} actions on stacks {own[0]}; {env.name} has {wanted[1]} and {wanted[0]}: "
            "was it made for another game?"
        )


def log_given(
    environment: str,
    policy: str | Path,
    *,
    steps: int = 500_000,
    epsilon: float | Sequence[float] = 0.01,
    temperature: float = 1.0,
    seed: int = 0,
    rows: int = 64,
    threads: int | None = None,
    out: str | Path | None = None,
    progress: Callable[[int], None] | None = None,
) -> Path:
    """Play a given policy with noise and log it as DQN-Replay was; returns the folder of shards.

    Args:
        environment: "ALE/Pong-v5" or "catch".
        policy: see ``given_policy``.
        steps: to log, in all.
        epsilon: chance of a uniformly random action, or several, each for an equal share of the steps.
        temperature: see ``given_policy``.
        seed: of everything.
        rows: environments side by side, a multiple of the number of epsilons.
        threads: emulator threads (default: one a core).
        out: folder; by default ``runs/given-<environment>-<time>``. The shards lie in ``replay_logs`` below it.
        progress: called after each step with the number of steps so far.
    """
    env = make_frames(environment, threads)
    act = given_policy(policy, env, seed, temperature)
    folder = Path(out) if out is not None else new_folder(f"given-{environment.replace('/', '-')}")
    name = environment.removeprefix("ALE/").removesuffix("-v5").lower()
    return log_policy(
        act, env, steps, epsilon, seed, folder / LOGS, rows=rows, name=f"{name}-given-{seed}", threads=4,
        provenance={"agent": f"the policy {Path(policy).stem}", "temperature": temperature}, progress=progress,
    )  # fmt: skip
