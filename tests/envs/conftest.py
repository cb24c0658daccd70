import importlib.util
import sys
import types
from pathlib import Path

import pytest

DATA = Path(__file__).parents[2].parent / "shared" / "data"


@pytest.fixture
def genuine() -> Path:
    if not DATA.is_dir():
        pytest.skip("genuine D4RL samples are not here: expected a folder ../shared/data beside the repository")
    return DATA


@pytest.fixture
def gymnasium_mujoco(monkeypatch):
    """Gymnasium's MuJoCo environments import imageio for rendering, which no test does."""
    if importlib.util.find_spec("imageio") is None:
        monkeypatch.setitem(sys.modules, "imageio", types.ModuleType("imageio"))
    import gymnasium

    return gymnasium
