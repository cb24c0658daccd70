from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator

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
