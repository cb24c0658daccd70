"""Mappings of columns: as TOML, as objects, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_parquet_csv import GOOD, columns_of, write

from sapp.core.errors import SappError
from sapp.data import Columns, Dataset, load

MAPPING = """
episode = "trip"
time = "clock"
observation = ["speed", "charge"]
next_observation = ["speed after", "charge after"]
action = ["throttle", "brake", "gear"]
reward = "gain"
terminal = "crash"
timeout = "cut"
log_prob = "density"
action_low = [-1, -1, -2]
action_high = 2.5
"""


def renamed(data: Dataset) -> dict[str, Any]:
    new = [
        "trip",
        "clock",
        "gain",
        "crash",
        "cut",
        "speed",
        "charge",
        "throttle",
        "brake",
        "gear",
        "speed after",
        "charge after",
    ]
    table = dict(zip(new, columns_of(data).values(), strict=True))
    return {**table, "density": data.extras["log_prob"], "comment": ["text"] * data.size}


def test_mapping_from_toml(small: Dataset, tmp_path: Path) -> None:
    path = write(tmp_path / "log.csv", renamed(small))
    (tmp_path / "map.toml").write_text(MAPPING)
    found = load(path, columns=tmp_path / "map.toml")
    np.testing.assert_array_equal(found.observation, small.observation)
    np.testing.assert_array_equal(found.next_observation, small.next_observation)
    np.testing.assert_array_equal(found.action, small.action)
    np.testing.assert_array_equal(found.terminal, small.terminal)
    np.testing.assert_array_equal(found.extras["log_prob"], small.extras["log_prob"])
    assert found.action_low.tolist() == [-1, -1, -2]
    assert found.action_high.tolist() == [2.5, 2.5, 2.5]
    assert found.provenance["columns"]["reward"] == "gain"
    options: dict[str, Any] = {"action_low": -1, "action_high": 1}
    assert load(path, columns=tmp_path / "map.toml", **options).fingerprint == small.fingerprint


def test_mapping_as_object_and_dictionary(small: Dataset, tmp_path: Path) -> None:
    path = write(tmp_path / "log.parquet", renamed(small))
    fields: dict[str, Any] = {
        "observation": ["speed", "charge"],
        "next_observation": ["speed after", "charge after"],
        "action": ["throttle", "brake", "gear"],
        "reward": "gain",
        "terminal": "crash",
        "timeout": "cut",
    }
    assert load(path, columns=fields).fingerprint == small.fingerprint
    assert load(path, columns=Columns(**fields)).fingerprint == small.fingerprint


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('observation = ["obs_0"]\naction = ["action_0"]\nrewrd = "reward"\n', ["'rewrd'", "did you mean 'reward'?"]),
        ('observation = ["obs_0"\n', ["not valid TOML", "line"]),
        ('observation = ["obs_0"]\nignore = ["action_0"]\n', ["no action columns"]),
        ('observation = ["obs_0", 3]\naction = "action_0"\n', ["observation", "column name"]),
        ('observation = "obs_0"\naction = "action_0"\nreward = ["a"]\n', ["reward", "column name"]),
        ('observation = "obs_0"\naction = "action_0"\nreward = "rewards"\n', ["'rewards'", "did you mean 'reward'?"]),
        ('observation = "obs_0"\naction = "action_0"\ntime = "step"\n', ["time", "'step'", "episode"]),
        ("", ["empty"]),
    ],
)
def test_bad_toml(tmp_path: Path, text: str, words: list[str]) -> None:
    (tmp_path / "log.csv").write_text(GOOD)
    (tmp_path / "map.toml").write_text(text)
    with pytest.raises(SappError) as caught:
        load(tmp_path / "log.csv", columns=tmp_path / "map.toml")
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message
