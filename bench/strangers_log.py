"""From a stranger's log to a policy for production, timed: the steps of docs/guides/own-logs.md on RLlib's Pendulum.

    python -m bench.strangers_log            # what the guide says, in about five minutes on two cores
    python -m bench.strangers_log --small    # the same steps in less, to see that they work

The log is written here by plain means, as RLlib's output writer does: batches of steps as JSON lines, episodes cut by
batches, actions normalised to [-1, 1] although Pendulum takes [-2, 2].
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

BATCH = 250
"""Rows of a line; no multiple of an episode's 200 steps."""
COMMANDS = """
sapp data check rllib-learn --environment Pendulum-v1
sapp data convert rllib-learn learn.npz --environment Pendulum-v1 --rescale-actions
sapp data convert rllib-held held.npz --environment Pendulum-v1 --rescale-actions
sapp train cql learn.npz --out runs/pendulum --alpha 0.1,1 --steps 4000 --hidden 64,64 --action-samples 4 \
--critic-lr 1e-3 --actor-lr 1e-3 --eval-every 0 --checkpoint-every 2000 --quiet
sapp select runs/pendulum --data held.npz --fit-steps 5000 --bags 4 --fit-hidden 32,32 --json
sapp export runs/pendulum pendulum.onnx --member MEMBER
""".strip().splitlines()
"""The guide's steps; MEMBER is the one that ``select`` puts first."""
SMALLER = {
    "train cql": "train bc", " --alpha 0.1,1": "", " --action-samples 4 --critic-lr 1e-3 --actor-lr 1e-3": "",
    "--steps 4000": "--steps 200", "--checkpoint-every 2000": "--checkpoint-every 100", "--hidden 64,64": "--hidden 16",
    "--fit-steps 5000": "--fit-steps 40", "--bags 4": "--bags 2", "--fit-hidden 32,32": "--fit-hidden 8",
}  # fmt: skip
"""What ``--small`` changes: sizes, and a learner that compiles in a moment."""


def controller(observation: np.ndarray, rng: np.random.Generator) -> tuple[float, float]:
    """Swings up and holds, not very well, with noise: an action in [-1, 1] and its log-density."""
    cosine, sine, speed = (float(value) for value in observation)
    swing = 0.1 * speed * (15.0 - 0.5 * speed**2 - 15.0 * cosine)
    mean = np.clip((-(6.0 * math.atan2(sine, cosine) + speed) if cosine > 0.9 else swing) / 2, -1.0, 1.0)
    noise, scale = float(rng.standard_normal()), 0.6
    action = math.tanh(mean + scale * noise)
    density = -0.5 * noise**2 - math.log(scale * math.sqrt(2 * math.pi)) - math.log(1 - action**2 + 1e-9)
    return action, density


def write(folder: Path, episodes: int, seed: int) -> float:
    """An output folder of RLlib's; returns the mean return."""
    rng, env = np.random.default_rng(seed), gymnasium.make("Pendulum-v1")
    rows: list[dict[str, Any]] = []
    for number in range(episodes):
        observation, _ = env.reset(seed=seed * 100_000 + number)
        for step in range(200):
            action, density = controller(observation, rng)
            following, reward, terminated, truncated, _ = env.step(np.array([2 * action], np.float32))
            rows.append(
                {
                    "obs": observation.tolist(), "new_obs": following.tolist(), "actions": [action],
                    "rewards": float(reward), "terminateds": bool(terminated), "truncateds": bool(truncated),
                    "action_logp": density, "eps_id": 7 * number + 3, "t": step, "unroll_id": len(rows) // BATCH,
                    "agent_index": 0, "infos": {},
                }
            )  # fmt: skip
            observation = following
    folder.mkdir(parents=True)
    lines = [
        json.dumps({"type": "SampleBatch"} | {key: [row[key] for row in rows[at : at + BATCH]] for key in rows[0]})
        for at in range(0, len(rows), BATCH)
    ]
    (folder / "output-2026-01-01_worker-0_0.json").write_text("\n".join(lines) + "\n")
    return sum(row["rewards"] for row in rows) / episodes


def play(file: Path, episodes: int) -> np.ndarray:
    """Returns of a policy file by onnxruntime alone."""
    import onnxruntime

    session, env, found = onnxruntime.InferenceSession(str(file)), gymnasium.make("Pendulum-v1"), []
    for number in range(episodes):
        observation, _ = env.reset(seed=10**6 + number)
        total = 0.0
        for _ in range(200):
            (action,) = session.run(None, {"observation": observation[None].astype(np.float32)})
            observation, reward, *_ = env.step(action[0])
            total += float(reward)
        found.append(total)
    return np.array(found)


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    """Run every step and print how long each took; returns what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--folder", type=Path, help="where to work; default: a temporary one")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as scratch:
        return _steps(options.folder or Path(scratch), options.small)


def _steps(work: Path, small: bool) -> dict[str, Any]:
    learn, held, played = (6, 5, 2) if small else (100, 60, 50)
    behaviour = write(work / "rllib-learn", learn, 1)
    write(work / "rllib-held", held, 2)
    found: dict[str, Any] = {"seconds": {}, "out": {}, "behaviour": behaviour}
    chosen = ""
    for line in COMMANDS:
        for old, new in SMALLER.items() if small else ():
            line = line.replace(old, new)
        words = [word.replace("MEMBER", chosen) for word in shlex.split(line)]
        began, cpu = time.perf_counter(), os.times()
        done = subprocess.run(
            [sys.executable, "-m", *words], cwd=work, check=False, capture_output=True, text=True,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        )  # fmt: skip
        now, name = os.times(), " ".join(words[1:3])
        if done.returncode not in (0, 3):
            raise SystemExit(f"{line}\n{done.stdout}{done.stderr}")
        seconds = time.perf_counter() - began
        used = now.children_user + now.children_system - cpu.children_user - cpu.children_system
        found["seconds"][line] = seconds
        found["out"][name] = done.stdout + done.stderr
        print(f"{seconds:6.1f} s ({used:.1f} s of CPU)  {line}", flush=True)
        if name == "select runs/pendulum":
            selection = json.loads(done.stdout)
            found["selection"] = selection
            chosen = (selection["order"] or selection["refused"])[0]["policy"]
    returns = play(work / "pendulum.onnx", played)
    found["returns"] = returns.mean()
    print(f"{sum(found['seconds'].values()):6.1f} s in all; logs: {behaviour:.0f}, {chosen}: {returns.mean():.0f}")
    return found


if __name__ == "__main__":
    main()
