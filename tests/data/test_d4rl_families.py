"""Files of other benchmarks in the shapes in which they come: OGBench, and D4RL's antmaze, maze2d, adroit, kitchen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from sapp.data import load
from sapp.data.d4rl_families import d4rl_family
from sapp.envs import make
from sapp.runs.problem import Problem

ROWS = 12


def trajectories(observation: int, action: int) -> dict[str, Any]:
    """Two of six rows; the task ends in the fourth row of the second."""
    rng = np.random.default_rng(0)
    seen = rng.normal(size=(ROWS + 1, observation)).astype(np.float32)
    return {
        "observations": seen[:-1],
        "next_observations": seen[1:],
        "actions": rng.uniform(-1, 1, (ROWS, action)).astype(np.float32),
        "rewards": (np.arange(ROWS) == 9).astype(np.float32),  # sparse, as in antmaze
        "terminals": (np.arange(ROWS) % 6 == 5).astype(np.float32),
        "masks": (np.arange(ROWS) != 9).astype(np.float32),
    }


@pytest.mark.parametrize(
    ("name", "sizes", "extra", "environment", "references"),
    [
        ("antmaze-umaze-v2", (29, 8), {"infos/goal": 2, "infos/qpos": 15, "infos/qvel": 14}, None, [0, 1]),
        ("maze2d-umaze-v1", (4, 2), {"infos/goal": 2, "infos/qpos": 2, "infos/qvel": 2}, None, [23.85, 161.86]),
        ("pen-human-v1", (45, 24), {"infos/qpos": 30, "infos/qvel": 30}, None, [96.262799, 3076.8331017826877]),
        ("door-cloned-v1", (39, 28), {"infos/qpos": 30}, "AdroitHandDoor-v1", [-56.512833, 2880.5693087298737]),
        ("kitchen-complete-v0", (60, 9), {}, None, [0, 4]),
    ],
)
def test_d4rl_s_other_families(
    name: str, sizes: tuple[int, int], extra: dict[str, int], environment: str | None, references: list[float],
    tmp_path: Path,
) -> None:
    """No next observations; time-outs are marked; terminals are rare or absent."""
    arrays = trajectories(*sizes)
    path = tmp_path / f"{name}.hdf5"
    with h5py.File(path, "w") as file:
        for key in ("observations", "actions", "rewards"):
            file[key] = arrays[key]
        file["terminals"] = arrays["masks"] == 0
        file["timeouts"] = (arrays["terminals"] == 1) & (arrays["masks"] == 1)
        for key, width in extra.items():
            file[key] = np.zeros((ROWS, width))
    data = load(path)
    assert (data.name, data.environment, data.observation_size, data.action_size) == (name, environment, *sizes)
    # the last row of a trajectory that was cut has no successor in the file: it goes, the row before ends it
    assert data.size == ROWS - 2
    assert np.flatnonzero(data.terminal).tolist() == [8]
    assert np.flatnonzero(data.timeout).tolist() == [4, 9]
    assert ("qpos" in data.extras) == ("infos/qpos" in extra)
    problem = Problem.of(data, str(path))
    assert problem.scores(np.array(references)) == pytest.approx([0, 100])
    if environment is not None:
        pytest.importorskip("gymnasium_robotics")
        env = make(environment)
        assert (env.observation_size, env.action_size, env.max_episode_steps) == (*sizes, 200)


def test_other_names_have_no_references() -> None:
    for name in ("pen-human", "maze2d-umaze-v0", "antmaze-umaze", "kitchen-complete-v1", "door"):
        assert d4rl_family(name) is None
    assert d4rl_family("antmaze_medium_play-v2") == (0.0, 1.0, None)
