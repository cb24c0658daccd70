"""The members of a run: who learns what from which data, and what tables call them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from sapp.algorithms import Algorithm
from sapp.core.errors import SappError


@dataclass(frozen=True, order=True)
class MemberId:
    """What a member is called: the name that its algorithm has in the run, its dataset's name, its seed.

    Tables hold each in a column of its own; ``str`` is for people only, as a name may contain a slash.
    """

    algorithm: str
    dataset: str
    seed: int

    def __str__(self) -> str:
        return f"{self.algorithm}/{self.dataset}/{self.seed}"

    def row(self) -> dict[str, Any]:
        """The member's columns of a table."""
        return asdict(self)

    @classmethod
    def of(cls, row: Mapping[str, str]) -> MemberId:
        """The member that a row of a table is about."""
        try:
            return cls(row["algorithm"], row["dataset"], int(row["seed"]))
        except KeyError as error:
            raise SappError(f"a table of the run has no column {error}; restore the file") from None


ID_COLUMNS = tuple(field.name for field in fields(MemberId))


@dataclass(frozen=True)
class Member:
    """One learner: the name of its algorithm in tables, the algorithm, the number of its dataset, its seed."""

    name: str
    algorithm: Algorithm
    dataset: int
    seed: int
