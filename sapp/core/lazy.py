"""Packages whose names are imported when they are first used: importing such a package costs nothing."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def attach(
    package: str, homes: Mapping[str, Sequence[str]], packages: Sequence[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package.

    Args:
        package: its ``__name__``.
        homes: the package's names, by the module that each is in.
        packages: packages in it that are there without an import of their own.
    """
    modules = {name: module for module, names in homes.items() for name in names}

    def get(name: str) -> Any:
        if name in packages:
            return importlib.import_module(f"{package}.{name}")
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(modules[name]), name)

    return get, lambda: sorted([*modules, *packages])
