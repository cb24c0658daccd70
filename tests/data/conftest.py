from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sapp.data import Dataset

FILES = [
    f"{e}_{q}" for e in ("halfcheetah", "hopper", "walker2d") for q in ("medium-v2", "medium_replay-v1", "random-v1")
]
"""Names of the nine genuine files."""


@pytest.fixture(params=FILES)
def stem(request: pytest.FixtureRequest) -> str:
    """Each of the nine genuine files in turn."""
    return str(request.param)


@pytest.fixture(scope="session")
def genuine() -> Path:
    """Folder of nine genuine D4RL files, two episodes each."""
    folder = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "d4rl"
    if not folder.is_dir():
        pytest.skip("genuine D4RL files are not here (expected in ../shared/data/d4rl)")
    return folder


@pytest.fixture
def small() -> Dataset:
    """Three episodes: 3 steps to a terminal, 2 steps to a time-out, 1 step to a terminal."""
    rng = np.random.default_rng(0)
    lengths, ends = (3, 2, 1), ("terminal", "timeout", "terminal")
    paths = [rng.normal(size=(n + 1, 2)) for n in lengths]
    last = np.concatenate([np.arange(n) == n - 1 for n in lengths])
    kind = np.repeat(ends, lengths)
    return Dataset(
        observation=np.concatenate([path[:-1] for path in paths]),
        action=rng.uniform(-1, 1, (6, 3)),
        reward=np.array([1, 2, 3, 4, 5, 6]),
        next_observation=np.concatenate([path[1:] for path in paths]),
        terminal=last & (kind == "terminal"),
        timeout=last & (kind == "timeout"),
        name="small",
        environment="Small-v0",
        provenance={"loader": "test", "seed": 0},
        extras={"log_prob": rng.normal(size=6)},
    )
