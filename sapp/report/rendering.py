"""The templates of the page; whatever is put into them is escaped."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup


def render(name: str, **values: Any) -> Markup:
    """A template filled with values."""
    return Markup(_environment().get_template(name).render(**values))


def verbatim(name: str) -> Markup:
    """A file beside the templates as it is: the page's style and script."""
    return Markup(files("sapp.report").joinpath("templates", name).read_text(encoding="utf-8"))


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("sapp.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
