"""`sapp demo`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest


@pytest.mark.parametrize("content", ["", "[]", json.dumps({"worlds": 2}), json.dumps({"worlds": 2, "hidden": 3})])
def test_a_damaged_demo_is_refused_in_one_line(content: str, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    from sapp.cli.main import main

    (tmp_path / "demo.json").write_text(content)
    assert main(["demo", "--out", str(tmp_path)]) == 2
    assert "not the sizes of a demo" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["demo.json"]


def test_the_demo_never_writes_into_another_folder(trained: Path, capsys: pytest.CaptureFixture) -> None:
    from sapp.cli.main import main

    before = {path: path.read_bytes() for path in trained.rglob("*") if path.is_file()}
    assert main(["demo", "--out", str(trained)]) == 2
    assert "holds files, and they are not a demo's" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in trained.rglob("*") if path.is_file()} == before
