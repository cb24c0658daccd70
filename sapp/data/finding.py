"""What a question asked of a dataset finds: what, how sure that is, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Sure(StrEnum):
    """How sure a finding is."""

    CERTAIN = "certain"
    LIKELY = "likely"
    POSSIBLE = "possible"


@dataclass(frozen=True)
class Finding:
    """Something worth knowing before training.

    Attributes:
        what: was found.
        sure: how sure it is that this is so and matters.
        do: what to do about it.
    """

    what: str
    sure: Sure
    do: str

    def __str__(self) -> str:
        return f"{self.what} ({self.sure}): {self.do}"
