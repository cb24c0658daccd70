"""Seeds as people write them: how many, or which."""

from __future__ import annotations

from sapp.core.errors import SappError


def parse_seeds(text: str) -> list[int]:
    """The seeds of "3" (0, 1 and 2) or of "3,7,11" (those)."""
    try:
        found = [int(part) for part in text.split(",")] if "," in text else list(range(min(int(text), 2**16)))
    except (ValueError, OverflowError):
        found = []
    if not found or len(found) >= 2**16 or len(set(found)) != len(found) or min(found) < 0 or max(found) >= 2**32:
        raise SappError(f"--seeds {text!r}: give a count such as 3, or which, such as 3,7,11")
    return found
