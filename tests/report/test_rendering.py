"""Templates: what is put into them is escaped, what they need must be given, and style and script come as they are."""

from __future__ import annotations

from typing import Any

import jinja2
import pytest

from sapp.report.rendering import render, verbatim


def page(**change: Any) -> str:
    values: dict[str, Any] = {
        "title": "Mine", "style": verbatim("style.css"), "script": verbatim("script.js"), "contents": [], "remarks": [],
        "words": {}, "version": "1", "members": 0, "sources": [],
    } | change  # fmt: skip
    return str(render("page.html", **values))


def test_values_are_escaped_and_files_are_not() -> None:
    text = page(title='<script>alert("&")</script>')
    assert text.count("&lt;script&gt;alert(&#34;&amp;&#34;)&lt;/script&gt;") == 2  # the title and the heading
    assert str(verbatim("style.css")) in text
    assert str(verbatim("script.js")) in text


def test_what_a_template_needs_must_be_given() -> None:
    with pytest.raises(jinja2.UndefinedError, match="is undefined"):
        render("page.html")
    with pytest.raises(jinja2.TemplateNotFound):
        render("nothing.html")
