"""Shows what classes of hyper-parameters take: their fields are arguments, which is not to be read off the source."""

from __future__ import annotations

from typing import Any

from griffe import (
    Class,
    DocstringSectionKind,
    Expr,
    ExprCall,
    ExprKeyword,
    Extension,
    Function,
    Module,
    Parameter,
    ParameterKind,
    Parameters,
)


class Fields(Extension):
    """Gives classes that are made of annotated fields the signature that they have once imported."""

    def on_package(self, *, pkg: Module, **kwargs: Any) -> None:
        """Once the whole package is read, so that fields are inherited."""
        if pkg.name == "sapp":
            complete(pkg)


def complete(module: Module) -> None:
    """Adds an __init__ to each class of a module and its submodules that has fields and none."""
    for member in list(module.members.values()):
        if member.is_alias:
            continue
        if isinstance(member, Module):
            complete(member)
        elif isinstance(member, Class) and "__init__" not in member.members and (found := fields(member)):
            named = [Parameter(name, kind=ParameterKind.keyword_only, **found[name]) for name in found]
            own = Parameter("self", kind=ParameterKind.positional_or_keyword)
            member.set_member("__init__", Function("__init__", parameters=Parameters(own, *named)))
        if isinstance(member, Class) and member.docstring is not None:
            for section in member.docstring.parsed:
                for each in section.value if section.kind is DocstringSectionKind.attributes else ():
                    if each.name not in member.members:  # it is a subclass's, and has the type of the one before
                        each.annotation = None


def fields(kind: Class) -> dict[str, dict[str, Any]]:
    """Annotation and default of each field of a class, those of its bases first."""
    found: dict[str, dict[str, Any]] = {}
    for base in reversed(kind.resolved_bases):
        found |= fields(base) if isinstance(base, Class) else {}
    for name, member in kind.members.items():
        if member.is_alias or not member.is_attribute or "property" in member.labels or member.annotation is None:
            continue
        if "instance-attribute" not in member.labels:  # a ClassVar
            continue
        found[name] = {"annotation": member.annotation, "default": default(member.value)}
    return found


def default(value: str | Expr | None) -> str | Expr | None:
    """A field's default, where it is written as one, or as the keyword of ``eqx.field``."""
    if isinstance(value, ExprCall) and str(value.function) in ("eqx.field", "field"):
        given = {each.name: each.value for each in value.arguments if isinstance(each, ExprKeyword)}
        return given.get("default", "..." if "default_factory" in given else None)
    return value
