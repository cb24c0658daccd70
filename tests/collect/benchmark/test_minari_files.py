"""Datasets as Minari keeps them."""

from __future__ import annotations

from pathlib import Path

import minari
import numpy as np
import pytest

import sapp
from sapp.cli.main import main
from sapp.collect.benchmark.make import load, make


@pytest.fixture
def root(tmp_path, monkeypatch, recordable) -> Path:
    folder = tmp_path / "minari"
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(folder))
    return folder


def complaint(text: str) -> str:
    lines = text.strip().splitlines()
    assert len(lines) == 1, text
    return lines[0]


def test_what_minari_reads_is_what_was_recorded(root, policies) -> None:
    make("hopper-medium", transitions=300, policies=policies)
    data = load("hopper-medium")
    assert sapp.load("hopper-medium").fingerprint == data.fingerprint
    assert sapp.load("minari:sapp/hopper/medium-v0").fingerprint == data.fingerprint
    assert (data.environment, data.physics, data.name) == ("hopper", "d4rl", "hopper-medium")
    stored = minari.load_dataset("sapp/hopper/medium-v0")
    assert "sapp/hopper/medium-v0" in minari.list_local_datasets()
    assert stored.total_steps == 300
    assert stored.total_episodes == data.num_episodes
    metadata = stored.storage.metadata
    assert (metadata["ref_min_score"], metadata["ref_max_score"]) == (-20.272305, 3234.3)
    assert minari.get_normalized_score(stored, 3234.3) == 1.0
    starts, ends = data.episode_starts, data.episode_ends
    for number, episode in enumerate(stored.iterate_episodes()):
        rows = slice(starts[number], ends[number] + 1)
        np.testing.assert_array_equal(episode.observations[:-1], data.observation[rows])
        np.testing.assert_array_equal(episode.observations[1:], data.next_observation[rows])
        np.testing.assert_array_equal(episode.actions, data.action[rows])
        np.testing.assert_array_equal(episode.rewards, data.reward[rows])
        np.testing.assert_array_equal(episode.terminations, data.terminal[rows])
        np.testing.assert_array_equal(episode.truncations, data.timeout[rows])
        np.testing.assert_array_equal(episode.infos["log_prob"], data.extras["log_prob"][rows])
    ours = metadata["sapp"]
    assert ours["segments"][0]["policy"] == "step-0000001000"
    assert ours["policies"]["seed"] == 3
    assert ours["summary"]["episodes"] == data.num_episodes
    assert ours["summary"]["terminals"] == data.terminal.sum()
    assert ours["summary"]["return_mean"] == pytest.approx(data.episode_returns.mean())


def test_a_timed_out_episode_is_truncated_and_a_fall_terminates(root) -> None:
    make("halfcheetah-random", transitions=1_010)
    first, second = minari.load_dataset("sapp/halfcheetah/random-v0").iterate_episodes()
    assert (len(first), len(second)) == (1000, 10)
    assert first.truncations[-1]
    assert not first.terminations.any()
    assert second.truncations[-1]  # cut where the data end


def test_damaged_metadata_are_named(root, capfd) -> None:
    make("hopper-random", transitions=100)
    path = root / "sapp" / "hopper" / "random-v0" / "data" / "metadata.json"
    path.write_text(path.read_text()[:-40])
    assert main(["data", "show", "hopper-random"]) == 2
    assert "metadata.json: damaged" in complaint(capfd.readouterr().err)
