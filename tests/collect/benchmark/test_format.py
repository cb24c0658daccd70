"""How `sapp.load` finds the datasets of the benchmark."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sapp.data import Dataset, load


def test_the_benchmark_is_found_by_name_and_by_minari_id(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked = []
    made = Dataset.from_arrays(np.zeros((2, 1)), np.zeros((2, 1)), [0, 1], [0, 1], name="hopper-random")

    def fake(name: str, progress: object = None) -> Dataset:
        asked.append(name)
        return made

    monkeypatch.setattr("sapp.collect.benchmark.make.load", fake)
    assert load("hopper-random", environment="other").environment == "other"
    assert load("minari:sapp/hopper/random-v0") is made
    assert asked == ["hopper-random", "hopper-random"]
