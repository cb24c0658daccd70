"""Logs of image games by a policy that is there already: a network's file, an online DQN's folder, or a run's."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from sapp.environments import make_frames
from sapp.environments.frame_policies import load_conv_policy
from sapp.environments.frames import Act
from sapp.errors import SappError
from sapp.online.dqn import CONFIG, LOGS, DQNRun
from sapp.online.frames_log import log_policy
from sapp.training.loop import new_folder


def given_policy(path: str | Path, seed: int = 0, temperature: float = 1.0) -> Act:
    """A policy of stacks of frames.

    Args:
        path: an npz file (``frame_policies.load_conv_policy``), which draws from its softmax; the folder of an online
            DQN or of a training run, whose network (of the run's first member) plays greedily.
        seed: of the draws.
        temperature: of the softmax; files only.
    """
    path = Path(path)
    if path.is_file():
        return load_conv_policy(path).sampler(seed, temperature)
    if temperature != 1.0:
        raise SappError(f"{path}: a folder's network plays greedily; a temperature is for npz files")
    if not (path / CONFIG).is_file():
        raise SappError(f"{path}: no policy; give an npz file, or the folder of an online DQN or of a training run")
    if json.loads((path / CONFIG).read_text(encoding="utf-8")).get("kind") == "online dqn":
        scores = DQNRun(path).policy()
        return lambda stacks: np.asarray(scores(jnp.asarray(stacks)))
    from sapp.training.run import Run

    run = Run(path)
    if run.plan.problems[run.plan.members[0].dataset].frame is None:
        raise SappError(f"{path}: its policies take vectors, not frames")
    return run.policy


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
    act, place = given_policy(policy, seed, temperature), make_frames(environment, threads)
    folder = Path(out) if out is not None else new_folder(f"given-{environment.replace('/', '-')}")
    name = environment.removeprefix("ALE/").removesuffix("-v5").lower()
    return log_policy(
        act, place, steps, epsilon, seed, folder / LOGS, rows=rows, name=f"{name}-given-{seed}", threads=4,
        provenance={"agent": f"the policy {Path(policy).stem}", "temperature": temperature}, progress=progress,
    )  # fmt: skip
