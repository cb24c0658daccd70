"""Files laid out as D4RL's, made of our own policies and physics: what the genuine samples showed is tested on these.

The genuine samples, two episodes of nine published files each, are not distributed. Where their folder is
(``../shared/data`` beside the repository, or ``SAPP_SAMPLES``) the same tests run on them as well. What they showed:

* medium-v2: float32 rows, the simulator's state in float64, boolean flags, a policy and the algorithm's name. ``infos``
  are the row's own state; what an observation shows of velocities is clipped to ±10 in hopper and walker2d.
* medium_replay-v1: float64 throughout, rewards (N, 1), flags as numbers, the algorithm's name and no policy.
* random-v1: float32 throughout, boolean flags, no metadata.
* In the two v1 kinds ``infos`` are not the state of their row.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import h5py
import numpy as np

SAMPLES = Path(os.environ.get("SAPP_SAMPLES") or Path(__file__).resolve().parents[2] / "shared" / "data")
"""Where the genuine samples are, if they are."""
ABSENT = "they compare with the genuine D4RL samples, which are not distributed"
"""Why a test is skipped that compares with them."""

STEMS = [
    f"{e}_{q}" for e in ("halfcheetah", "hopper", "walker2d") for q in ("medium-v2", "medium_replay-v1", "random-v1")
]
"""Names of the nine files."""
SOURCES = ["regenerated", *(["genuine"] if SAMPLES.is_dir() else [])]
"""Where samples can be had."""
LIMIT = 300
"""Steps after which an episode of ours is cut off; D4RL's go on to 1000."""
LAYERS = {"fc0": "0", "fc1": "1", "last_fc": "_mean", "last_fc_log_std": "_logstd"}
"""Layers of a policy by their names in D4RL's files and in ours."""


def sample(source: str, folder: Path, stem: str) -> Path:
    """One of the nine files; those of ours are made in ``folder`` when first asked for."""
    if source == "genuine":
        return SAMPLES / "d4rl" / f"{stem}.hdf5"
    path = folder / f"{stem}.hdf5"
    if not path.exists():
        environment, _, kind = stem.partition("_")
        _write(path, environment, kind)
    return path


def _write(path: Path, environment: str, kind: str) -> None:
    from sapp.collect.benchmark.rollout import behaviour
    from sapp.collect.benchmark.shipped import shipped
    from sapp.envs.locomotion import Locomotion

    policies, training, _ = shipped(environment)
    name = {"medium-v2": training.medium, "medium_replay-v1": min(policies), "random-v1": "uniform"}[kind]
    env = Locomotion(environment, "d4rl", threads=1)
    rows = _record(env, behaviour(name, policies, env))
    replay, medium = kind == "medium_replay-v1", kind == "medium-v2"
    numbers = np.float64 if replay else np.float32
    with h5py.File(path, "w") as file:
        for key, value in rows.items():
            if key in ("infos/qpos", "infos/qvel"):
                file[key] = value if medium else np.roll(value, 7, axis=0).astype(numbers)
            elif key in ("terminals", "timeouts") and not replay:
                file[key] = value
            else:
                file[key] = value.astype(np.float32).astype(numbers)
        if replay:
            column = file["rewards"][()][:, None]
            del file["rewards"]
            file["rewards"] = column
        if kind != "random-v1":
            file["metadata/algorithm"] = np.bytes_("SAC")
        if medium:
            arrays = policies[name].arrays()
            for theirs, ours in LAYERS.items():
                file[f"metadata/policy/{theirs}/weight"] = arrays[f"w{ours}"].astype(np.float32)
                file[f"metadata/policy/{theirs}/bias"] = arrays[f"b{ours}"].astype(np.float32)
            file["metadata/policy/nonlinearity"] = np.bytes_("relu")
            file["metadata/policy/output_distribution"] = np.bytes_("tanh_gaussian")


def _record(env: Any, policy: Any) -> dict[str, np.ndarray]:
    """Two episodes, one after the other, with the simulator's state before every step."""
    rng, parts = np.random.default_rng(0), []
    for episode in range(2):
        observation = env.reset(1, 0, np.array([episode]))
        for step in range(LIMIT):
            state = env.position[0].copy(), env.velocity[0].copy()
            action, density = policy.sample(observation.astype(np.float32), rng)
            following, reward, terminal = env.step(action)
            ended, late = bool(terminal[0]), step + 1 == LIMIT
            parts.append((observation[0], action[0], reward[0], following[0], ended, late and not ended,
                          *state, density[0]))  # fmt: skip
            observation = following
            if ended:
                break
    keys = ("observations", "actions", "rewards", "next_observations", "terminals", "timeouts", "infos/qpos",
            "infos/qvel", "infos/action_log_probs")  # fmt: skip
    return {key: np.array(column) for key, column in zip(keys, zip(*parts, strict=True), strict=True)}
