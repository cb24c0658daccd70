"""Your own Minari datasets: written by sapp, read by Minari and by sapp."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sapp.collect.minari_export import save_minari
from sapp.core.errors import SappError
from sapp.data import Dataset, Ledger, load
from sapp.envs import make
from sapp.envs.collect import collect
from sapp.envs.policies import uniform_policy

minari = pytest.importorskip("minari", reason="minari is an extra")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    return tmp_path / "minari"


def random_logs(name: str, count: int = 120) -> Dataset:
    environment = make(name)
    return collect(uniform_policy(environment), environment, count, seed=0)


@pytest.mark.parametrize("name", ["CartPole-v1", "Pendulum-v1", "hopper"])
def test_what_is_written_comes_back(name: str) -> None:
    data = random_logs(name)
    save_minari(data, "own/logs-v0", description="Random play.")
    found = load("minari:own/logs-v0")
    for key in ("observation", "action", "reward", "next_observation", "terminal", "timeout"):
        np.testing.assert_array_equal(getattr(found, key), getattr(data, key), err_msg=key)
    np.testing.assert_array_equal(found.extras["log_prob"], data.extras["log_prob"])
    assert "infos/log_prob as log-density of the behaviour policy" in str(Ledger.of(found).text())
    for key in ("environment", "physics", "num_actions"):
        assert getattr(found, key) == getattr(data, key)
    assert found.action_low.tolist() == data.action_low.tolist()


def test_minari_recovers_the_environment() -> None:
    save_minari(random_logs("CartPole-v1"), "own/cartpole/random-v0")
    stored = minari.load_dataset("own/cartpole/random-v0")
    assert stored.recover_environment().spec.id == "CartPole-v1"
    assert stored.action_space.n == 2
    assert stored.total_steps == 120


def test_nothing_is_overwritten_or_left_half_done(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = random_logs("CartPole-v1")
    save_minari(data, "own/logs-v0")
    with pytest.raises(SappError, match="exists already"):
        save_minari(data, "own/logs-v0")
    with pytest.raises(SappError, match="no Minari id"):
        save_minari(data, "../outside-v0")
    with pytest.raises(SappError, match="standardised"):
        save_minari(data.standardised(), "own/logs-v1")
    monkeypatch.setattr("sapp.collect.benchmark.minari_files._metadata", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        save_minari(data, "own/logs-v2")
    assert sorted(each.name for each in (folder / "own").iterdir()) == ["logs-v0", "namespace_metadata.json"]
