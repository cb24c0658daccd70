"""Seeds as people write them: how many, or which."""

from __future__ import annotations

from sapp.core.errors import SappError


def parse_seeds(text: str) -> list[int]:
    """The seeds of "3" (0, 1 and 2), of "3,7,11" (those) or of "7," (that one)."""
    try:
        which = text.removesuffix(",").split(",") if "," in text else range(min(int(text), 2**16))
        found = [int(part) for part in which]
    except (ValueError, OverflowError):
        found = []
    if not found or len(found) >= 2**16 or len(set(found)) != len(found) or min(found) < 0 or max(found) >= 2**32:
        raise SappError(f"--seeds {text!r}: give a count such as 3, or which, such as 3,7,11 or 7,")
    return found
