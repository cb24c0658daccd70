"""What hyper-parameters mean, read from the docstrings of the classes that have them: the texts are written once."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import textwrap
from functools import cache
from itertools import pairwise

import equinox as eqx

_SECTION = re.compile(r"^(Attributes|Args):\n((?:[ \t]+.*(?:\n|$)|\n)*)", re.MULTILINE)
_ENTRY = re.compile(r"^(\w+): *(.*(?:\n[ \t]+.*)*)", re.MULTILINE)


def field_docs(module: eqx.Module, prefix: str = "") -> dict[str, str]:
    """What hyper-parameters mean, by the dotted names of ``sapp.algorithms.config.options``; see ``field_doc``."""
    found: dict[str, str] = {}
    for field in dataclasses.fields(module):
        value = getattr(module, field.name)
        if isinstance(value, eqx.Module):
            found |= field_docs(value, f"{prefix}{field.name}.")
        else:
            found[f"{prefix}{field.name}"] = field_doc(type(module), field.name)
    return found


def field_doc(kind: type, field: str) -> str:
    """What a field of a class means, or "" where nothing is written.

    Looked for in the class, then in those it is made from: the text below the field, or its entry under "Attributes:"
    or "Args:" in the class's docstring. So what a common field means is said once, in the class that all share.
    """
    return next((_entries(each)[field] for each in inspect.getmro(kind) if field in _entries(each)), "")


@cache
def _entries(kind: type) -> dict[str, str]:
    """What a class itself says of fields: texts below them, and entries of its docstring."""
    found: dict[str, str] = {}
    for _, body in _SECTION.findall(inspect.cleandoc(kind.__dict__.get("__doc__") or "")):
        found |= {name: _plain(text) for name, text in _ENTRY.findall(textwrap.dedent(body))}
    return found | _below(kind)


def _below(kind: type) -> dict[str, str]:
    """Texts below fields. Python does not keep them, so they come from the source, where there is one."""
    try:
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    except (OSError, TypeError, SyntaxError, ValueError):
        return {}
    found = {}
    for field, below in pairwise(getattr(tree, "body", ())):
        text = below.value.value if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) else None
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, str):
            found[field.target.id] = _plain(text)
    return found


def _plain(text: str) -> str:
    return " ".join(text.replace("``", "").split())
