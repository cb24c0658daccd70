"""Things that are found by name: each is a "module:attribute" text, imported when it is first asked for."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

from sapp.core.errors import SappError, did_you_mean

T = TypeVar("T")


class Registry(Generic[T]):
    """Names in order, each with where its object is; installed packages add theirs by an entry point group.

    A package adds to the group in its pyproject.toml, for example ``[project.entry-points."sapp.loaders"]`` with
    ``rosbag = "their_package.rosbag:FORMAT"``. Names given here come first and cannot be replaced by a package.

    Args:
        kind: what the entries are, in messages ("data format").
        entries: name to "module:attribute".
        group: entry point group to look in, or None.
    """

    def __init__(self, kind: str, entries: Mapping[str, str], group: str | None = None) -> None:
        self.kind, self.group = kind, group
        self._own = dict(entries)
        self._found: dict[str, T] = {}

    @cached_property
    def _installed(self) -> dict[str, str]:
        if self.group is None:
            return {}
        return {each.name: each.value for each in entry_points(group=self.group) if each.name not in self._own}

    def installed(self) -> tuple[str, ...]:
        """Names that installed packages have added."""
        return tuple(self._installed)

    def target(self, name: str) -> str:
        """Where an entry's object is, "module:attribute"; "this process" for one that was added as an object."""
        return self._own.get(name) or self._installed.get(name) or "this process"

    def __iter__(self) -> Iterator[str]:
        yield from self._own
        yield from self._installed

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in self._installed

    def __len__(self) -> int:
        return len(self._own) + len(self._installed)

    def __getitem__(self, name: str) -> T:
        """The object of that name, imported now if it was not before."""
        if name not in self._found:
            if name not in self:
                raise SappError(f"{name!r}: no such {self.kind}{did_you_mean(name, self)}; choose {', '.join(self)}")
            self._found[name] = resolve(self._own.get(name) or self._installed[name], f"{self.kind} {name!r}")
        return self._found[name]

    def add(self, name: str, target: str | T) -> None:
        """Add an entry, or replace one, for this process.

        Args:
            name: what it goes by.
            target: the object, or "module:attribute".
        """
        self._found.pop(name, None)
        self._own[name] = target if isinstance(target, str) else ""
        if not isinstance(target, str):
            self._found[name] = target

    def remove(self, name: str) -> None:
        """Take out an entry that ``add`` put in."""
        self._own.pop(name, None)
        self._found.pop(name, None)


def resolve(target: str, what: str) -> Any:
    """Import "module:attribute"; what cannot be imported is one line that names it."""
    module, _, attribute = target.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
        return found
    except (ImportError, AttributeError) as error:
        raise SappError(f"{what} cannot be imported from {target} ({error}); reinstall the package it is in") from error
