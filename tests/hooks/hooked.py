"""A tiny run with hooks, for the tests of hooks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sapp
from sapp.envs.point import behaviour_dataset
from sapp.runs.hooks import Hook
from sapp.runs.run import Run as Folder

Train = Callable[..., sapp.Run]


@pytest.fixture
def train(tmp_path: Path) -> Train:
    """A tiny TD3+BC on the point task, evaluated after every ten steps."""

    def train(name: str, *hooks: Hook, **changes: Any) -> sapp.Run:
        options = {"steps": 80, "log_every": 10, "eval_every": 10, "eval_episodes": 2} | changes
        algorithm = {"bc": sapp.TD3BC(hidden=(8,), batch_size=8, actor_lr=3e-2)}
        return sapp.train(algorithm, behaviour_dataset(6), out=tmp_path / name, hooks=hooks, progress=False, **options)

    return train


def same_run(found: Folder, expected: Folder) -> bool:
    """Whether two runs have the same bits, the clock's column aside."""
    tables = [
        [{k: v for k, v in row.items() if k != "seconds"} for row in [*run.metrics(), *run.evaluations()]]
        for run in (found, expected)
    ]
    bits = [[file.read_bytes() for file in run.checkpoints.values()] for run in (found, expected)]
    return tables[0] == tables[1] and bits[0] == bits[1] and list(found.checkpoints) == list(expected.checkpoints)
