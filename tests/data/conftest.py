from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from d4rl_files import SOURCES, STEMS, sample

from sapp.data import Dataset


@pytest.fixture(params=[(source, stem) for source in SOURCES for stem in STEMS], ids="-".join)
def d4rl_file(request: pytest.FixtureRequest, d4rl_folder: Path) -> Path:
    """Each of nine files as D4RL lays them out in turn: our own, and the genuine ones where they are."""
    return sample(*request.param[:1], d4rl_folder, *request.param[1:])


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
