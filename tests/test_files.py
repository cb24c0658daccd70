"""Files are written whole or not at all, and what a killed process leaves behind is found."""

from __future__ import annotations

from pathlib import Path

from sapp.core.files import remove_leftovers


def test_leftovers_of_ours_and_of_safetensors_are_removed_and_nothing_else(tmp_path: Path) -> None:
    for name in (".0000000100.safetensors.41.tmp", ".tmpjlEZKZ", "0000000100.safetensors", ".lock", "config.json"):
        (tmp_path / name).touch()
    (tmp_path / ".0123456789abcdef.41.tmp").mkdir()  # frames under way
    (tmp_path / ".0123456789abcdef.41.tmp" / "frames.npy").touch()
    remove_leftovers(tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == [".lock", "0000000100.safetensors", "config.json"]
