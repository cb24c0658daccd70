"""From JSON to dataclasses: every field of its declared type and in its range, or one line that says which is not."""

from __future__ import annotations

import dataclasses
import json
import math
import types
import typing
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

from sapp.core.errors import SappError

T = TypeVar("T")
LARGEST = 2**63 - 1


def decode(kind: type[T], content: Any, where: str) -> T:
    """An instance of a dataclass from a JSON object that has its fields and no others.

    Args:
        kind: the dataclass; fields are plain values, lists of them, or dictionaries, perhaps None.
        content: the object.
        where: what messages call it.
    """
    if not isinstance(content, Mapping):
        raise SappError(f"{where} is {shown(content)}; it must be an object")
    fields = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    refuse_unknown(content, fields, where)
    hints = _hints(typing.cast(Any, kind))
    for name, field in fields.items():
        if name in content:
            check_fits(content[name], hints[name], f"{where}: {name!r}")
        elif field.default is field.default_factory is dataclasses.MISSING:
            raise SappError(f"{where} lacks {name!r}")
    return kind(**content)


def parse_json(text: str) -> Any:
    """The content of JSON that can be written as text again: halves of characters are a ``ValueError``, too."""
    content = json.loads(text)
    if "\\u" in text:
        json.dumps(content, ensure_ascii=False).encode()
    return content


def refuse_unknown(content: Mapping[str, Any], known: typing.Collection[str], where: str) -> None:
    """Refuse fields that this version does not have."""
    if unknown := sorted(set(content) - set(known)):
        raise SappError(f"{where} has {unknown[0]!r}, which this version does not know")


def check_fits(value: Any, hint: Any, where: str) -> None:
    """Refuse a value that is not of a declared type; numbers are finite, whole ones below 2⁶³."""
    if not _fits(value, hint):
        raise SappError(f"{where} is {shown(value)}; it must be {_word(hint)}")


def check_least(content: Any, least: Mapping[str, int], where: str) -> None:
    """Refuse numbers of an object below what they must at least be."""
    for name, low in least.items():
        value = getattr(content, name)
        if value is not None and not low <= value <= LARGEST:
            raise SappError(f"{where}: {name!r} is {value}; it must be at least {low}, and below 2^63")


def shown(value: Any) -> str:
    """A value in a message, cut to a readable length."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _word(hint: Any) -> str:
    """What a type is called."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(map(_word, arguments))
    if origin is list:
        return f"a list, each {_word(arguments[0])}"
    words = {int: "a whole number", float: "a finite number", str: "text", bool: "true or false", dict: "an object"}
    return words.get(origin or hint, "null" if hint is type(None) else str(hint))


def _fits(value: Any, hint: Any) -> bool:
    if hint is Any:
        return True
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, each) for each in arguments)
    if origin is list:
        return isinstance(value, list) and all(_fits(each, arguments[0]) for each in value)
    if origin is dict:
        return isinstance(value, dict) and all(_fits(each, arguments[1]) for each in value.values())
    if hint is type(None):
        return value is None
    if isinstance(value, bool):
        return hint is bool
    if isinstance(value, int) and abs(value) > LARGEST:
        return False
    if hint is float:
        return isinstance(value, int | float) and math.isfinite(value)
    return isinstance(value, hint)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind)
