"""Names that are imported when they are first used."""

from __future__ import annotations

import sys

import pytest

from sapp.core.lazy import attach


def test_a_name_brings_its_module_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    get, names = attach("package", {"colorsys": ["rgb_to_hsv"], "json": ["loads", "dumps"]})
    assert get("loads")("[1]") == [1]
    assert "colorsys" not in sys.modules
    assert get("rgb_to_hsv")(0.0, 0.0, 0.0) == (0.0, 0.0, 0.0)
    assert names() == ["dumps", "loads", "rgb_to_hsv"]
    assert attach("importlib", {}, ["resources"])[0]("resources").__name__ == "importlib.resources"
    with pytest.raises(AttributeError, match="module 'package' has no attribute 'nothing'"):
        get("nothing")
