from pathlib import Path

import pytest

DATA = Path(__file__).parents[2].parent / "shared" / "data"


@pytest.fixture
def genuine() -> Path:
    if not DATA.is_dir():
        pytest.skip("genuine D4RL samples are not here: expected a folder ../shared/data beside the repository")
    return DATA
