"""What the tests of the command share: tiny data, and one tiny trained run per process."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def tiny() -> list[str]:
    """Networks that train in no time; compiling is what costs, so every test that trains uses this one shape."""
    return ["--hidden", "8", "--batch-size", "8", "--action-samples", "1"]


@pytest.fixture(scope="session")
def short() -> list[str]:
    """A run of two rows of metrics and two evaluations."""
    return ["--steps", "20", "--log-every", "10", "--eval-every", "10", "--eval-episodes", "2", "--quiet"]


@pytest.fixture(scope="session")
def point_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six logged episodes of the point task."""
    from sapp.data import save_npz
    from sapp.environments.point import behaviour_dataset

    return save_npz(behaviour_dataset(6), tmp_path_factory.mktemp("data") / "point.npz")


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory, point_file: Path, tiny: list[str], short: list[str]) -> Path:
    """A finished run of CQL made by the command; copy it before changing it."""
    from sapp.cli import main

    folder = tmp_path_factory.mktemp("runs") / "cql"
    assert main(["train", "cql", str(point_file), *tiny, *short, "--out", str(folder)]) == 0
    return folder
