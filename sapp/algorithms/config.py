"""Algorithms as JSON and as options: one description for config.json, ``--name value`` and Python overrides."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import equinox as eqx

from sapp import algorithms
from sapp import weights as ratios
from sapp.algorithms.base import Algorithm
from sapp.algorithms.registry import ALGORITHMS
from sapp.core.errors import SappError, did_you_mean
from sapp.weights import StateWeights
from sapp.weights.registry import WEIGHTS, state_weights

M = TypeVar("M", bound=eqx.Module)
_REGISTERED: dict[str, type[eqx.Module]] = {}


@cache
def _own() -> dict[str, type[eqx.Module]]:
    """Classes of sapp that a description may name."""
    found = [getattr(package, name) for package in (algorithms, ratios) for name in package.__all__]
    return {kind.__name__: kind for kind in found if isinstance(kind, type) and issubclass(kind, eqx.Module)}


def register(kind: type[M]) -> type[M]:
    """Make a class of your own known by name (use as a decorator).

    Run folders then know it by its name, and commands by its name in small letters: an algorithm ``LikelihoodBC`` is
    ``sapp train likelihood-bc``, state weights ``InverseVisits`` are ``--weights inverse-visits``. Classes that an
    installed package offers by an entry point need no decorator.

    Examples:
        >>> import sapp
        >>> @sapp.register
        ... class HalfWeights(sapp.ConstantWeights):
        ...     value: float = 0.5
        >>> sapp.state_weights("half-weights").value
        0.5
    """
    if not isinstance(kind, type):
        raise SappError(f"register takes a class of algorithms or state weights, not {kind!r}")
    name = kind.__name__
    if _own().get(name, kind) is not kind:
        raise SappError(f"{name} is a class of sapp: give yours another name")
    short = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name).lower()
    registry: Any = ALGORITHMS if issubclass(kind, Algorithm) else WEIGHTS if issubclass(kind, StateWeights) else None
    if registry is not None:
        if short in registry and name not in _REGISTERED:
            raise SappError(f"the name {short!r} is taken by {registry.target(short)}: give {name} another name")
        registry.add(short, kind)
    _REGISTERED[name] = kind
    return kind


def know(kind: type[M]) -> type[M]:
    """Make a class known to descriptions alone, without a name for commands: it does not learn from logs."""
    _REGISTERED[kind.__name__] = kind
    return kind


def import_modules(names: Iterable[str]) -> None:
    """Import modules or files (``my_algorithm.py``) that register classes, so that a command knows them."""
    for name in names:
        try:
            if not name.endswith(".py"):
                importlib.import_module(name)
                continue
            module = Path(name).stem
            spec = importlib.util.spec_from_file_location(module, name)
            assert spec is not None  # of a name that ends in .py there is one
            assert spec.loader is not None
            sys.modules[module] = loaded = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(loaded)
        except (ImportError, OSError, SyntaxError) as error:
            raise SappError(f"--import {name}: cannot be imported ({error})") from None


def describe(module: eqx.Module) -> dict[str, Any]:
    """A module's fields as JSON."""
    name = type(module).__name__
    if _kind(name) is not type(module):
        raise SappError(f"{name} is not registered: decorate its class with sapp.register")
    fields: dict[str, Any] = {"class": name}
    for field in dataclasses.fields(module):
        value = getattr(module, field.name)
        fields[field.name] = describe(value) if isinstance(value, eqx.Module) else _plain(value)
    return fields


def build(description: Mapping[str, Any]) -> Any:
    """The module that ``describe`` described; weights may be a name, such as "occupancy"."""
    name = str(description.get("class"))
    kind = _kind(name)
    if kind is None:
        raise SappError(
            f"config.json names an unknown class {name!r}{did_you_mean(name, [*_own(), *_REGISTERED])}: import the "
            "module that registers it first; for a command, with sapp --import my_module.py ..."
        )
    fields = {field.name: field for field in dataclasses.fields(kind)}
    values = {}
    for key, value in description.items():
        if key == "class":
            continue
        if key not in fields:
            raise SappError(f"config.json: {name} has no field {key!r} in this version{did_you_mean(key, fields)}")
        if isinstance(value, Mapping):
            values[key] = build(value)
        else:
            values[key] = tuple(value) if isinstance(value, list) else value
            _check_type(name, fields[key], values[key])
    for key, field in fields.items():
        if key not in values and field.default is field.default_factory is dataclasses.MISSING:
            raise SappError(f"config.json: {name} lacks its field {key!r}")
    return kind(**values)


def _kind(name: str) -> type[eqx.Module] | None:
    """The class of that name: sapp's own, a registered one, or one that an installed package offers."""
    if found := _own().get(name) or _REGISTERED.get(name):
        return found
    for registry in (ALGORITHMS, WEIGHTS):
        for entry in registry.installed():
            offered = registry[entry]
            if isinstance(offered, type) and issubclass(offered, eqx.Module):
                _REGISTERED.setdefault(offered.__name__, offered)
    return _REGISTERED.get(name)


LARGEST = 2**31 - 1
"""Whole numbers of algorithms are of 32 bits, as JAX's are."""
_PLAIN: dict[str, Any] = {"float": (int, float), "int": int, "bool": bool, "str": str, "tuple[int, ...]": tuple}


def _check_type(owner: str, field: dataclasses.Field[Any], value: Any) -> None:
    """Refuse a value of another type than the field's, where that is a plain one."""
    declared = field.type if isinstance(field.type, str) else getattr(field.type, "__name__", "")
    wanted = _PLAIN.get(declared)
    wrong: bool = wanted is not None and not isinstance(value, wanted)
    numbers = value if isinstance(value, tuple) else (value,)
    wrong |= any(isinstance(each, int) and abs(each) > LARGEST for each in numbers)
    wrong |= any(isinstance(each, float) and not math.isfinite(each) for each in numbers)
    wrong |= declared == "tuple[int, ...]" and not all(type(each) is int and each > 0 for each in numbers)
    if wrong or (declared in ("float", "int") and isinstance(value, bool)):
        raise SappError(f"config.json: {owner}: {field.name} is {value!r}; it must be of type {declared}")


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
    """The dotted name of a hyper-parameter given in full or by its last part (the outermost match wins).

    In the full name of a part of weights inside a control the control may be left out: ``weights.f.b1`` is
    ``weights.of.f.b1`` where the weights are shuffled.
    """
    name = name.replace("-", "_")
    known = [dotted for dotted, _ in options(module)]
    matches = (
        [dotted for dotted in known if dotted == name]
        or [dotted for dotted in known if _bare(dotted) == _bare(name)]
        or [dotted for dotted in known if dotted.rsplit(".", 1)[-1] == name]
    )
    if matches:
        return min(matches, key=lambda dotted: dotted.count("."))
    near = did_you_mean(name, [*known, *(dotted.rsplit(".", 1)[-1] for dotted in known)])
    raise SappError(f"{type(module).__name__} has no hyper-parameter {name!r}{near or '; it has ' + ', '.join(known)}")


def _bare(dotted: str) -> str:
    """A dotted name without the controls on its way."""
    return ".".join(part for part in dotted.split(".") if part != "of")


def override(module: M, changes: Mapping[str, Any]) -> M:
    """A copy with hyper-parameters changed by name; text is read as the field's own type, weights by their name."""
    for name, value in changes.items():
        if name == "weights" and isinstance(module, Algorithm):
            chosen = state_weights(value) if isinstance(value, str) else value
            module = dataclasses.replace(module, weights=chosen)
        else:
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
            if min(sizes) < 1 or max(sizes) > LARGEST:
                raise ValueError
            return sizes
        if isinstance(old, int) and isinstance(value, float) and not value.is_integer():
            raise ValueError
        new = type(old)(value) if isinstance(old, int | float | str) else value
        if isinstance(new, int) and abs(new) > LARGEST:
            raise ValueError
        if isinstance(new, float) and not math.isfinite(new):
            raise ValueError
        return new
    except (TypeError, ValueError, OverflowError):
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
    if isinstance(value, list):
        raise SappError(f"hyper-parameter value {value!r} is a list: give a tuple, {tuple(value)!r}")
    raise SappError(f"hyper-parameter value {value!r} cannot be written to config.json: use a number, text or a tuple")
