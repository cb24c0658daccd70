"""A short online run of two tasks and two seeds, and what a run holds: shared by the tests of online runs."""

from __future__ import annotations

import pytest

from sapp.algorithms.sac import SAC
from sapp.collect.online_run import OnlineRun
from sapp.collect.online_training import train

SMALL = SAC(hidden=(8,), batch_size=16)
SETTINGS = {
    "seeds": 2, "steps": 320, "algorithm": SMALL, "random_steps": 64, "rows": 4, "chunk": 32, "snapshots": 4,
    "checkpoint_every": 96, "log_every": 64, "progress": False, "threads": 1,
}  # fmt: skip
TASKS = ["hopper", "point"]  # of different sizes, so that one of them is padded


@pytest.fixture(scope="session")
def whole(tmp_path_factory) -> OnlineRun:
    return train(TASKS, out=tmp_path_factory.mktemp("runs") / "whole", **SETTINGS)


def contents(run: OnlineRun) -> dict[str, bytes]:
    kinds = (".npy", ".safetensors")
    return {str(p.relative_to(run.path)): p.read_bytes() for p in sorted(run.path.rglob("*")) if p.suffix in kinds}
