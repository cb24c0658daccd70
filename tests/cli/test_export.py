"""`sapp export`: wrong use is one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from sapp.cli.main import main


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["policy.bin"], "must end in .onnx"),
        (["policy.onnx", "--member", "nobody"], "no member 'nobody'"),
        (["policy.onnx", "--step", "7"], "no checkpoint at step 7"),
    ],
)
def test_wrong_use_is_one_line(
    trained: Path, tmp_path: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", str(trained), str(tmp_path / arguments[0]), *arguments[1:]]) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
