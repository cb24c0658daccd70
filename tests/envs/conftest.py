import importlib.util
import sys
import types

import pytest


@pytest.fixture
def gymnasium_mujoco(monkeypatch):
    """Gymnasium's MuJoCo environments import imageio for rendering, which no test does."""
    if importlib.util.find_spec("imageio") is None:
        monkeypatch.setitem(sys.modules, "imageio", types.ModuleType("imageio"))
    import gymnasium

    return gymnasium
