"""Where the command prints its tables."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

UNBOUNDED = 10_000
"""Columns of something that is not a terminal: no name is folded, so that it can be pasted into an option."""


def console() -> Console:
    """Stdout: as wide as the terminal, or as wide as tables are where it goes into a file or another program."""
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(width=UNBOUNDED)
