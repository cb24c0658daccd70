"""Algorithms as JSON and as options: one description for config.json, ``--name value`` and Python overrides."""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import importlib.util
import math
import os
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import equinox as eqx

from sapp import algorithms
from sapp import weights as ratios
from sapp.core.errors import SappError

M = TypeVar("M", bound=eqx.Module)

_KINDS: dict[str, type[eqx.Module]] = {
    kind.__name__: kind
    for module in (algorithms, ratios)
    for kind in vars(module).values()
    if isinstance(kind, type) and issubclass(kind, eqx.Module)
}


def register(kind: type[M]) -> type[M]:
    """Make a class of your own known to run folders (use as a decorator)."""
    _KINDS[kind.__name__] = kind
    return kind


def describe(module: eqx.Module) -> dict[str, Any]:
    """A module's fields as JSON."""
    if _KINDS.get(type(module).__name__) is not type(module):
        name = type(module).__name__
        raise SappError(f"{name} is not registered: decorate its class with sapp.algorithms.config.register")
    fields: dict[str, Any] = {"class": type(module).__name__}
    for field in dataclasses.fields(module):
        value = getattr(module, field.name)
        fields[field.name] = describe(value) if isinstance(value, eqx.Module) else _plain(value)
    return fields


OWN = "SAPP_IMPORT"
"""Environment variable: modules or files, separated by commas, that register classes of one's own."""


def import_own() -> None:
    """Import what the environment names, so that commands know classes that are not part of sapp."""
    for name in filter(None, (each.strip() for each in os.environ.get(OWN, "").split(","))):
        try:
            if not name.endswith(".py"):
                importlib.import_module(name)
                continue
            spec = importlib.util.spec_from_file_location(os.path.basename(name)[:-3], name)
            assert spec is not None  # of a name that ends in .py there is one
            assert spec.loader is not None
            spec.loader.exec_module(importlib.util.module_from_spec(spec))
        except (ImportError, OSError, SyntaxError) as error:
            raise SappError(f"{OWN}: cannot import {name!r} ({error})") from None


def build(description: Mapping[str, Any]) -> Any:
    """The module that ``describe`` described."""
    name = str(description.get("class"))
    if name not in _KINDS:
        import_own()
    kind = _KINDS.get(name)
    if kind is None:
        raise SappError(
            f"config.json names an unknown class {name!r}: import the module that registers it first; for a command, "
            f"name it in the environment ({OWN}=my_algorithm.py sapp ...)"
        )
    names = {field.name for field in dataclasses.fields(kind)}
    if unknown := [name for name in description if name != "class" and name not in names]:
        raise SappError(f"config.json: {description['class']} has no field {unknown[0]!r} in this version of sapp")
    return kind(
        **{
            name: build(value) if isinstance(value, Mapping) else tuple(value) if isinstance(value, list) else value
            for name, value in description.items()
            if name != "class"
        }
    )


def options(module: eqx.Module, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every hyper-parameter as (dotted name, value), outermost first."""
    nested = []
    for field in dataclasses.fields(module):
        value = getattr(module, field.name)
        if isinstance(value, eqx.Module):
            nested.append((f"{prefix}{field.name}.", value))
        else:
            yield f"{prefix}{field.name}", value
    for name, value in nested:
        yield from options(value, name)


def resolve(module: eqx.Module, name: str) -> str:
    """The dotted name of a hyper-parameter given in full or by its last part (the outermost match wins)."""
    name = name.replace("-", "_")
    known = [dotted for dotted, _ in options(module)]
    matches = [dotted for dotted in known if dotted == name] or [
        dotted for dotted in known if dotted.rsplit(".", 1)[-1] == name
    ]
    if matches:
        return min(matches, key=lambda dotted: dotted.count("."))
    close = difflib.get_close_matches(name, [*known, *(dotted.rsplit(".", 1)[-1] for dotted in known)], n=1)
    hint = f"; did you mean {close[0]!r}?" if close else f"; it has {', '.join(known)}"
    raise SappError(f"{type(module).__name__} has no hyper-parameter {name!r}{hint}")


def override(module: M, changes: Mapping[str, Any]) -> M:
    """A copy with hyper-parameters changed by name; text is read as the field's own type."""
    for name, value in changes.items():
        module = _replace(module, resolve(module, name).split("."), value)
    return module


def _replace(module: Any, path: list[str], value: Any) -> Any:
    head, *rest = path
    old = getattr(module, head)
    declared = next(field.type for field in dataclasses.fields(module) if field.name == head)
    if declared in (float, "float") and isinstance(old, int):  # CQL(alpha=5): a real number written without a point
        old = float(old)
    new = _replace(old, rest, value) if rest else _convert(head, old, value)
    return dataclasses.replace(module, **{head: new})


def _convert(name: str, old: Any, value: Any) -> Any:
    try:
        if isinstance(old, bool):
            text = str(value).lower()
            if text not in ("true", "false", "1", "0", "yes", "no"):
                raise ValueError
            return text in ("true", "1", "yes")
        if isinstance(old, tuple):
            parts = value.replace("x", ",").split(",") if isinstance(value, str) else value
            sizes = tuple(int(part) for part in parts)
            if min(sizes) < 1:
                raise ValueError
            return sizes
        if isinstance(old, int) and isinstance(value, float) and not value.is_integer():
            raise ValueError
        new = type(old)(value) if isinstance(old, int | float | str) else value
        if isinstance(new, float) and not math.isfinite(new):
            raise ValueError
        return new
    except (TypeError, ValueError):
        wanted = {bool: "true or false", tuple: "whole numbers of at least 1 such as 256,256", int: "a whole number"}
        raise SappError(
            f"option {name!r}: cannot read {value!r}; give {wanted.get(type(old), 'a finite number')}"
        ) from None


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, float) and not math.isfinite(value):
        raise SappError(f"hyper-parameter value {value!r} is not finite: give a number")
    if isinstance(value, bool | int | float | str) or value is None:
        return value
    raise SappError(f"hyper-parameter value {value!r} cannot be written to config.json: use a number, text or a tuple")
