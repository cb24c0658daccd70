"""`sapp evaluate`."""

from __future__ import annotations

import json

import numpy as np
import pytest

from sapp.cli.main import main
from sapp.runs.run import Run


def test_evaluate_prints_a_table_or_json(trained, capsys, monkeypatch):
    assert main(["evaluate", str(trained), "--episodes", "3"]) == 0
    page = capsys.readouterr().out
    assert "95 % interval" in page
    # it trains on meanwhile
    monkeypatch.setattr(Run, "step", property(lambda run: 99))
    assert main(["evaluate", str(trained), "--episodes", "3", "--json", "--member", "cql/point-behaviour/0"]) == 0
    found = json.loads(capsys.readouterr().out)
    (member,) = found["members"]
    assert found["step"] == 20
    assert member["return"] == pytest.approx(np.mean(member["returns"]))
    assert member["return_low"] <= member["return"] <= member["return_high"]
    assert len(member["returns"]) == len(member["lengths"]) == 3
    assert member["score"] == pytest.approx(100 * (member["return"] - 1.8) / (38.2 - 1.8))
