"""Tables, written once and given out as Markdown, HTML and LaTeX.

A table is rows of cells, and a cell may be given as what it is: a text, a number, an interval, or nothing.

    rows = [["hopper-medium", student([61.2, 58.9, 64.0]).interval()]]
    table("Scores", "Three seeds.", ["dataset", "CQL"], rows).markdown()
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sapp.core.comparisons import alone_only, family_told
from sapp.core.statistics import Interval
from sapp.report.rendering import render


@dataclass(frozen=True)
class Entry:
    """One cell: its text, a greyed addition, the number it sorts by, a style class, whether it is set in bold."""

    text: str
    detail: str = ""
    value: float | None = None
    style: str = ""
    bold: bool = False

    @property
    def joined(self) -> str:
        """The text and its greyed addition in one string."""
        return " ".join(part for part in (self.text, self.detail) if part)


Cell = Entry | Interval | float | str | None
"""What a cell may be given as; None leaves it empty."""


@dataclass(frozen=True)
class Line:
    """One row: its cells, and what the page's filters go by."""

    entries: tuple[Entry, ...]
    dataset: str = ""
    method: str = ""
    focus: bool = False


@dataclass(frozen=True)
class Table:
    """A table with a caption that says how to read it.

    Attributes:
        name: also its anchor on a page.
        caption: a sentence or two.
        head: titles of the columns.
        lines: the rows.
        methods: the method that each column belongs to, for the page's filter; none for most tables.
    """

    name: str
    caption: str
    head: tuple[str, ...]
    lines: tuple[Line, ...]
    methods: tuple[str, ...] = ()

    @property
    def words(self) -> frozenset[int]:
        """Columns of text, which align left: the first, and those in which something is no number."""
        return frozenset(
            place
            for place in range(len(self.head))
            if place == 0 or not all(_numeric(line.entries[place]) for line in self.lines)
        )

    def html(self, prefix: str = "t") -> str:
        """As an accessible, sortable HTML table; the prefix makes its id one of a kind on the page."""
        methods = self.methods or ("",) * len(self.head)
        return render("table.html", table=self, identity=f"{prefix}-{slug(self.name)}", methods=methods)

    def markdown(self) -> str:
        """As a Markdown table under its caption."""
        words = self.words
        rule = ["---" if place in words else "---:" for place in range(len(self.head))]
        rows = [[_marked(entry) for entry in line.entries] for line in self.lines]
        lines = [f"| {' | '.join(row)} |" for row in [[_bar(title) for title in self.head], rule, *rows]]
        return "\n".join([f"**{self.name}.** {self.caption}".strip(), "", *lines, ""])

    def latex(self) -> str:
        """As a LaTeX table (needs booktabs)."""
        words = self.words
        spec = "".join("l" if place in words else "r" for place in range(len(self.head)))
        rows = [" & ".join(_typeset(entry) for entry in line.entries) + r" \\" for line in self.lines]
        return "\n".join(
            [
                r"\begin{table}", r"\centering", rf"\caption{{{tex(self.caption)}}}",
                rf"\label{{tab:{slug(self.name)}}}", rf"\begin{{tabular}}{{{spec}}}", r"\toprule",
                " & ".join(tex(title) for title in self.head) + r" \\", r"\midrule", *rows, r"\bottomrule",
                r"\end{tabular}", r"\end{table}", "",
            ]
        )  # fmt: skip


def table(name: str, caption: str, head: Sequence[str], rows: Iterable[Sequence[Cell]], digits: int = 1) -> Table:
    """A table of cells given as they are."""
    return Table(name, caption, tuple(head), tuple(line(row, digits=digits) for row in rows))


def line(
    cells: Sequence[Cell], dataset: str = "", method: str = "", focus: bool = False, digits: int = 1
) -> Line:  # fmt: skip
    """A row of cells given as they are."""
    return Line(tuple(cell(each, digits) for each in cells), dataset, method, focus)


def cell(value: Cell, digits: int = 1, style: str = "") -> Entry:
    """A cell: whole numbers whole, others and intervals with so many decimals."""
    match value:
        case Entry():
            return value
        case None:
            return Entry("")
        case str():
            return Entry(value, style=style)
        case Interval():
            ends = f"({fixed(value.low, digits)} to {fixed(value.high, digits)})" if value.known else "(no interval)"
            return Entry(fixed(value.estimate, digits), ends, value.estimate, style)
        case int():
            return Entry(f"{value:,}".replace("-", "−"), "", value, style)
    return Entry(fixed(value, digits), "", value, style) if math.isfinite(value) else Entry("–", style=style)


def family_cell(interval: Interval, fallen: bool, digits: int = 1) -> Entry:
    """A difference as one of a family; † where Holm's correction takes away what it would be alone."""
    made = cell(interval, digits)
    return replace(made, detail=f"{made.detail} †") if fallen else made


def family_caption(p: Sequence[float], what: str = "differences") -> str:
    """What a table of such cells says of its family."""
    return family_told(p, what) + (" †: before it only." if any(alone_only(p)) else "")


def ends(interval: Interval, digits: int = 1) -> Entry:
    """The ends of an interval alone; nothing where there is none."""
    if not interval.known:
        return Entry("")
    return Entry(f"{fixed(interval.low, digits)} to {fixed(interval.high, digits)}", "", interval.low)


def best(entries: Sequence[Entry], count: int = 2) -> tuple[Entry, ...]:
    """The same cells with the highest in bold, and whatever ties with them; none where all would be."""
    values = sorted((entry.value for entry in entries if entry.value is not None), reverse=True)
    if len(values) <= count:
        return tuple(entries)
    return tuple(replace(e, bold=e.value is not None and e.value >= values[count - 1]) for e in entries)


def fixed(value: float, digits: int = 1) -> str:
    """A number with so many decimals and a true minus sign."""
    text = f"{value:,.{digits}f}"
    return f"−{text[1:]}" if text.startswith("-") and float(text.replace(",", "")) != 0 else text.removeprefix("-")


_TEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "−": "$-$", "α": r"$\alpha$", "ζ": r"$\zeta$",
    "ν": r"$\nu$", "×": r"$\times$", "γ": r"$\gamma$", "–": "--",
}  # fmt: skip


def tex(text: str) -> str:
    """Plain text as LaTeX."""
    return "".join(_TEX.get(letter, letter) for letter in text)


def slug(text: str) -> str:
    """A name for files and anchors."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def write_all(tables: Sequence[Table]) -> tuple[str, str]:
    """All tables as one Markdown and one LaTeX text."""
    return "\n".join(each.markdown() for each in tables), "\n".join(each.latex() for each in tables)


def _numeric(entry: Entry) -> bool:
    return entry.value is not None or not entry.text or re.match(r"[+−-]?[\d–]", entry.text) is not None


def _bar(text: str) -> str:
    return text.replace("|", "\\|")


def _marked(entry: Entry) -> str:
    text = f"**{entry.text}**" if entry.bold and entry.text else entry.text
    return _bar(" ".join(part for part in (text, entry.detail) if part))


def _typeset(entry: Entry) -> str:
    text = rf"\textbf{{{tex(entry.text)}}}" if entry.bold and entry.text else tex(entry.text)
    return " ".join(part for part in (text, tex(entry.detail)) if part)
