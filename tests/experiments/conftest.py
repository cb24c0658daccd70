from __future__ import annotations

from pathlib import Path

import pytest
from tiny_experiment import tiny_grid


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the tiny experiment, run once; copy it before changing it."""
    from sapp.experiments.driver import run_experiment

    folder = tmp_path_factory.mktemp("experiment") / "out"
    run_experiment(tiny_grid(), folder, progress=False, say=lambda _: None)
    return folder
