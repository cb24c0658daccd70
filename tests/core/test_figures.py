"""Figures as files: their endings, and never over somebody else's picture."""

from __future__ import annotations

from pathlib import Path

import pytest

from sapp.core.errors import SappError
from sapp.core.figures import ENDINGS, check_figure, is_figure, write_figure


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_figure_is_known_by_its_content_and_may_be_replaced(tmp_path: Path, ending: str) -> None:
    figure = pytest.importorskip("matplotlib.figure").Figure(figsize=(1, 1))
    path = tmp_path / f"one{ending}"
    check_figure(path)
    write_figure(figure, path)
    assert is_figure(path.read_bytes())
    check_figure(path)


def test_other_endings_and_other_pictures_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SappError, match=r"a figure is not written as '.jpg'; end the name in .png, .svg or .pdf"):
        check_figure(tmp_path / "one.jpg")
    photo = tmp_path / "photo.png"
    photo.write_bytes(b"\x89PNG a holiday")
    with pytest.raises(SappError, match="is not a figure that sapp drew"):
        check_figure(photo)
    check_figure(photo, force=True)
