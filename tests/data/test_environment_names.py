"""Names of environments: a module is imported for the user who typed it, never for a file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from sapp.core.errors import SappError
from sapp.envs import make


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module that registers Planted-v0 and leaves a file behind when it is imported."""
    text = (
        "import pathlib, gymnasium\n"
        "pathlib.Path(__file__).with_name('ran').touch()\n"
        "gymnasium.register('Planted-v0', 'gymnasium.envs.classic_control:CartPoleEnv', max_episode_steps=9)\n"
    )
    (tmp_path / "planted.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("planted", None)
    gymnasium.registry.pop("Planted-v0", None)


def test_a_module_is_imported_for_its_user_only(module: Path) -> None:
    with pytest.raises(SappError, match="'planted:Planted-v0' comes from a file"):
        make("planted:Planted-v0", recorded=True)
    assert not (module / "ran").exists()
    environment = make("planted:Planted-v0")
    assert (environment.name, environment.identity) == ("Planted-v0", "Planted-v0")
    assert (module / "ran").exists()
    assert make("planted:Planted-v0", recorded=True).max_episode_steps == 9


def test_a_module_that_fails_is_named() -> None:
    with pytest.raises(SappError, match=r"nowhere:Env-v0: module 'nowhere' cannot be imported"):
        make("nowhere:Env-v0")
