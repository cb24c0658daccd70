from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import Any

import pytest

from sapp.core import registry as module
from sapp.core.errors import SappError
from sapp.core.registry import Registry


def test_names_resolve_on_first_use() -> None:
    found: Registry[Any] = Registry("sum", {"fsum": "math:fsum", "no": "no_such_module:x"})
    assert list(found) == ["fsum", "no"]
    assert len(found) == 2
    assert found["fsum"]([0.5, 0.25]) == 0.75
    with pytest.raises(SappError, match="sum 'no' cannot be imported from no_such_module:x"):
        found["no"]


def test_an_unknown_name_has_a_suggestion() -> None:
    found: Registry[Any] = Registry("sum", {"fsum": "math:fsum"})
    with pytest.raises(SappError, match=r"'fsun': no such sum \(did you mean 'fsum'\?\); choose fsum"):
        found["fsun"]


def test_packages_add_names_behind_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [EntryPoint("cos", "math:cos", "g"), EntryPoint("fsum", "math:sin", "g")]
    monkeypatch.setattr(module, "entry_points", lambda group: points if group == "g" else [])
    found: Registry[Any] = Registry("sum", {"fsum": "math:fsum"}, group="g")
    assert list(found) == ["fsum", "cos"]
    assert found["cos"](0) == 1
    assert found["fsum"]([1, 2]) == 3


def test_a_program_can_add_and_remove_its_own() -> None:
    found: Registry[Any] = Registry("sum", {})
    found.add("mine", max)
    assert found["mine"](1, 2) == 2
    found.add("mine", "builtins:min")
    assert found["mine"](1, 2) == 1
    found.remove("mine")
    assert "mine" not in found
