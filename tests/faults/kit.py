"""What the scenarios start from: small logs, runs, a store, policies; made once, copied into each scenario's folder."""

from __future__ import annotations

import shutil
from pathlib import Path

from forked import Command, Forked

TINY = ["--hidden", "8", "--batch-size", "8"]
SHORT = ["--steps", "20", "--log-every", "10", "--eval-every", "10", "--eval-episodes", "2", "--quiet"]
DQN = ["--algorithm", "dqn", "--steps", "120", "--random-steps", "20", "--rows", "4", "--capacity", "100",
       "--channels", "4", "--kernels", "4", "--strides", "4", "--features", "8", "--batch-size", "4",
       "--eval-episodes", "0", "--threads", "1", "--quiet"]  # fmt: skip

MAKE_LOGS = """
import csv
import numpy as np
from sapp.data import save_npz
from sapp.envs.point import behaviour_dataset

data = behaviour_dataset(6)
save_npz(data, "point.npz")
with open("log.csv", "w", newline="") as file:
    out = csv.writer(file)
    out.writerow(["observation_0", "observation_1", "action_0", "action_1", "reward", "terminal", "episode"])
    episode = np.cumsum(np.r_[0, (data.terminal | data.timeout)[:-1]])
    for row in range(data.size):
        out.writerow([*data.observation[row], *data.action[row], data.reward[row], int(data.terminal[row]),
                      episode[row]])
"""
MAKE_STORE = """
from sapp.algorithms import CQL
from sapp.algorithms.config import describe
from sapp.experiments.store import Results, Store, text

ALGORITHM = text(describe(CQL()))
PHASES = text([{"name": "train", "steps": 20, "learn": True, "ratio": False, "weighted": False}])
with Store("results.sqlite", create=True) as store:
    for seed, variant in enumerate(("CQL", "SA-CQL")):
        run = f"run{seed}"
        store.add(Results({
            "experiments": [("table1", "smoke", "Table", "Which?", "SA-CQL")],
            "cells": [("table1", "smoke", "point", seed, variant, 0, run)],
            "runs": [(run, "point", "f" * 64, "point", None, 100, 10, ALGORITHM, seed, PHASES, text({"episodes": 2}),
                      text({}), text({"jax": "1"}))],
            "evaluations": [(run, step, episode, step, 1.0 + episode, 50.0) for step in (10, 20) for episode in (0, 1)],
            "metrics": [(run, step, "train", text({"loss/td": 0.5})) for step in (10, 20)],
        }))
"""
MAKE_ROWS = """
from sapp.experiments import text_store, timings
from sapp.experiments.store import Store

with Store("results.sqlite") as store:
    if not store.timings_path.exists():
        timings.add(store.timings_path, [("job", "CQL", 2, 10, 1.5, "cpu")])
    text_store.write(store, "rows")
"""
MAKE_POLICIES = """
import json
import os
from small_policies import random_policy
from sapp.envs.policy_files import save_policies

os.mkdir("policies")
names = [f"step-{step:010d}" for step in (500, 1000)]
save_policies("policies/hopper.safetensors", {name: random_policy(i) for i, name in enumerate(names)}, {}, half=True)
listed = [{"name": name, "step": step, "score": 1.0} for name, step in zip(names, (500, 1000))]
entry = {"seed": 3, "random_steps": 500, "medium": names[0], "expert": names[1], "snapshots": listed, "shares": {}}
with open("policies/card.json", "w") as file:
    json.dump({"environments": {"hopper": entry}}, file)
"""


HERE = Path(__file__).parents[1] / "collect" / "benchmark"
PIECES: dict[str, Command] = {
    "point.npz": MAKE_LOGS,
    "log.csv": MAKE_LOGS,
    "results.sqlite": MAKE_STORE,
    "policies": f"import sys\nsys.path.insert(0, {str(HERE)!r})\n{MAKE_POLICIES}",
    "run": ["train", "bc", "point.npz", *TINY, *SHORT, "--out", "run"],
    "dqn": ["collect", "catch", *DQN, "--out", "dqn"],
}
"""What makes each."""


def piece(forked: Forked, folder: Path, name: str) -> Path:
    """One of them, made where it is not there yet."""
    if name == "run":
        piece(forked, folder, "point.npz")
    if not (folder / name).exists():
        done = forked.run(folder, PIECES[name])
        assert done.code == 0, done.err
    return folder / name


def copies(forked: Forked, kit: Path, folder: Path, *names: str) -> Path:
    """A new folder with some of them."""
    folder.mkdir()
    for name in names:
        source = piece(forked, kit, name)
        shutil.copytree(source, folder / name) if source.is_dir() else shutil.copy(source, folder / name)
    return folder
