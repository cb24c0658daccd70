"""`sapp data make` and `sapp data list`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sapp.cli.main import main
from sapp.collect.benchmark.make import make


@pytest.fixture
def root(tmp_path, monkeypatch, recordable) -> Path:
    folder = tmp_path / "minari"
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(folder))
    return folder


def test_the_list_says_where_each_stands(root, capfd) -> None:
    make("hopper-random", transitions=100)
    assert main(["data", "list"]) == 0
    text = capfd.readouterr().out
    assert all(len(line) <= 80 for line in text.splitlines()[-25:])
    (line,) = (line for line in text.splitlines() if "hopper-random" in line)
    assert line.split()[:2] == ["hopper-random", "100"]
    assert line.rstrip().endswith("uniform actions")
    assert main(["data", "list", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capfd.readouterr().out)}
    assert len(rows) == 18
    assert rows["hopper-random"] | {"score": 0, "episodes": 0, "megabytes": 0} == {
        "name": "hopper-random", "stands": "made", "transitions": 100, "episodes": 0, "megabytes": 0, "score": 0,
        "made_from": "uniform actions", "seed": 0,
    }  # fmt: skip
    assert rows["walker2d-random"]["stands"] == "(not made)"
