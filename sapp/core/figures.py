"""Figures as files: their endings, whole or not at all, and never over somebody else's picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sapp.core.errors import SappError
from sapp.core.files import check_replaceable, write_aside

ENDINGS = (".png", ".svg", ".pdf")


def check_figure(path: Path, force: bool = False) -> None:
    """Refuse another ending, and a file that is not a figure of ours; better before minutes of work."""
    if path.suffix.lower() not in ENDINGS:
        raise SappError(f"{path}: a figure is not written as {path.suffix!r}; end the name in .png, .svg or .pdf")
    check_replaceable(path, is_figure, "a figure that sapp drew", force)


def is_figure(content: bytes) -> bool:
    """Whether a file's beginning or end is that of a figure drawn by matplotlib."""
    return content.startswith((b"\x89PNG", b"<?xml", b"%PDF")) and b"atplotlib" in content


def write_figure(figure: Any, path: Path) -> None:
    """Write a figure of matplotlib's; the format follows the ending."""
    kind = path.suffix.lower().lstrip(".")
    write_aside(path, lambda aside: figure.savefig(aside, format=kind, dpi=150))
