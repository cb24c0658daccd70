from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from forked import Forked


@pytest.fixture(scope="session")
def forked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forked]:
    """The process that forks itself for each command."""
    if sys.platform != "linux" or shutil.which("cc") is None:
        pytest.skip("faults are injected on Linux, by a library that a C compiler makes")
    found = Forked(tmp_path_factory.mktemp("forked"))
    yield found
    found.close()


@pytest.fixture(scope="session")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pieces are made, each once, by whoever needs it first."""
    return tmp_path_factory.mktemp("kit")
