"""Tables once, in three forms: HTML for the page, Markdown and LaTeX for papers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape

from sapp.core.statistics import Interval


@dataclass(frozen=True)
class Entry:
    """One cell: its text, a greyed addition, the value it sorts by, a style class."""

    text: str
    detail: str = ""
    value: float | None = None
    style: str = ""


@dataclass(frozen=True)
class Line:
    """One row: its cells, and what filters go by."""

    entries: tuple[Entry, ...]
    dataset: str = ""
    method: str = ""
    focus: bool = False


@dataclass(frozen=True)
class Table:
    """A table with a caption that says how to read it; ``words`` are columns of text, which align left."""

    name: str
    caption: str
    head: tuple[str, ...]
    lines: tuple[Line, ...]
    words: frozenset[int] = field(default_factory=lambda: frozenset({0}))

    def html(self, prefix: str = "t") -> str:
        """As an accessible, sortable HTML table; the prefix makes its id one of a kind on the page."""
        heads = "".join(
            f'<th scope="col"{_class("text" if i in self.words else "")}>'
            f'<button type="button">{escape(title)}</button></th>'
            for i, title in enumerate(self.head)
        )
        body = "".join(self._row(line) for line in self.lines)
        return (
            f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(self.name)}">'
            f'<table data-sortable id="{escape(prefix)}-{escape(slug(self.name))}">'
            f"<caption><span>{escape(self.caption)}</span></caption>"
            f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>"
        )

    def _row(self, line: Line) -> str:
        marks = f' data-dataset="{escape(line.dataset)}"' if line.dataset else ""
        marks += f' data-method="{escape(line.method)}"' if line.method else ""
        cells = []
        for i, entry in enumerate(line.entries):
            tag, scope = ("th", ' scope="row"') if i == 0 else ("td", "")
            value = f' data-value="{entry.value:.12g}"' if entry.value is not None else ""
            style = " ".join(filter(None, ("text" if i in self.words else "", entry.style)))
            detail = f' <span class="interval">{escape(entry.detail)}</span>' if entry.detail else ""
            cells.append(f"<{tag}{scope}{_class(style)}{value}>{escape(entry.text)}{detail}</{tag}>")
        return f"<tr data-row{_class('focus' if line.focus else '')}{marks}>{''.join(cells)}</tr>"

    def markdown(self) -> str:
        """As a Markdown table under its caption."""
        rule = ["---" if i in self.words else "---:" for i in range(len(self.head))]
        rows = [[_joined(entry).replace("|", "\\|") for entry in line.entries] for line in self.lines]
        lines = [f"| {' | '.join(row)} |" for row in [list(self.head), rule, *rows]]
        return "\n".join([f"**{self.name}.** {self.caption}", "", *lines, ""])

    def latex(self) -> str:
        """As a LaTeX table (needs booktabs)."""
        spec = "".join("l" if i in self.words else "r" for i in range(len(self.head)))
        rows = [" & ".join(tex(_joined(entry)) for entry in line.entries) + r" \\" for line in self.lines]
        return "\n".join(
            [
                r"\begin{table}", r"\centering", rf"\caption{{{tex(self.caption)}}}",
                rf"\label{{tab:{slug(self.name)}}}", rf"\begin{{tabular}}{{{spec}}}", r"\toprule",
                " & ".join(tex(title) for title in self.head) + r" \\", r"\midrule", *rows, r"\bottomrule",
                r"\end{tabular}", r"\end{table}", "",
            ]
        )  # fmt: skip


def text_table(name: str, caption: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """A table whose cells are texts already."""
    return Table(name, caption, tuple(head), tuple(Line(tuple(Entry(text) for text in row)) for row in rows))


def with_interval(interval: Interval, digits: int = 1, style: str = "") -> Entry:
    """An estimate with its interval as a cell."""
    words = f"({fixed(interval.low, digits)} to {fixed(interval.high, digits)})"
    return Entry(fixed(interval.estimate, digits), words, interval.estimate, style)


def plain(value: float | None, digits: int = 1, style: str = "") -> Entry:
    """A number as a cell; nothing for None."""
    return Entry("") if value is None else Entry(fixed(value, digits), "", value, style)


def fixed(value: float, digits: int = 1) -> str:
    """A number with so many decimals and a true minus sign."""
    text = f"{value:,.{digits}f}"
    return f"−{text[1:]}" if text.startswith("-") and float(text.replace(",", "")) != 0 else text.removeprefix("-")


_TEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "−": "$-$", "α": r"$\alpha$", "ζ": r"$\zeta$",
    "ν": r"$\nu$", "×": r"$\times$", "γ": r"$\gamma$",
}  # fmt: skip


def tex(text: str) -> str:
    """Plain text as LaTeX."""
    return "".join(_TEX.get(letter, letter) for letter in text)


def slug(text: str) -> str:
    """A name for files and anchors."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _joined(entry: Entry) -> str:
    return " ".join(part for part in (entry.text, entry.detail) if part)


def _class(names: str) -> str:
    return f' class="{names}"' if names else ""


def write_all(tables: Sequence[Table]) -> tuple[str, str]:
    """All tables as one Markdown and one LaTeX text."""
    return "\n".join(table.markdown() for table in tables), "\n".join(table.latex() for table in tables)
