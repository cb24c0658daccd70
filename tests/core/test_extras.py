"""What is not installed: the sentence that says what to install, and only where that would help."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest

from sapp.core.errors import SappError
from sapp.core.extras import DISTRIBUTION, EXTRAS, install_line, installed, require

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_every_package_is_in_the_extra_that_is_named_for_it() -> None:
    assert PROJECT["name"] == DISTRIBUTION
    called = {"PIL": "pillow", "mlflow": "mlflow-skinny"}
    for package, extra in EXTRAS.items():
        listed = " ".join(PROJECT["optional-dependencies"][extra]).lower().replace("-", "_")
        assert called.get(package, package).lower().replace("-", "_") in listed, package


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert not installed("onnx")
    assert install_line("onnx") == f"pip install '{DISTRIBUTION}[onnx]'"
    with pytest.raises(SappError, match=r"exporting needs onnx, which is not installed; run: pip install 'sapp-rl\["):
        require("onnx", "exporting")


def test_one_that_is_there_but_broken_is_not_to_be_installed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "wandb.py").write_text("import a_module_that_nobody_has\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "wandb", raising=False)
    with pytest.raises(SappError, match=r"logging needs wandb, which cannot be imported .*a_module_that_nobody_has"):
        require("wandb", "logging")


def test_what_is_there_is_imported() -> None:
    assert require("json.decoder", "a test").JSONDecoder is not None
    assert installed("json")
