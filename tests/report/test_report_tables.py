"""One table in three forms."""

from __future__ import annotations

import math

import pytest

from sapp.core.statistics import Interval, student
from sapp.report.report_tables import Entry, Line, Table, best, cell, ends, fixed, table, write_all

ROWS = [["a|b", Interval(1.25, -2.0, 3.0), 12_345, None], ["50 % & more", student([7.0]).interval(), -3, 2.5]]


def test_cells_are_given_as_what_they_are() -> None:
    made = table("T", "C.", ["name", "score", "count", "x"], ROWS, digits=2)
    texts = [[entry.joined for entry in line.entries] for line in made.lines]
    assert texts == [["a|b", "1.25 (−2.00 to 3.00)", "12,345", ""], ["50 % & more", "7.00 (no interval)", "−3", "2.50"]]
    assert [entry.value for entry in made.lines[1].entries] == [None, 7.0, -3, 2.5]
    assert made.words == {0}
    assert cell(math.nan).text == "–"
    assert ends(Interval(1.0, math.nan, math.nan)) == Entry("")
    assert ends(Interval(1.0, -0.04, 2.0)).text == "0.0 to 2.0"


def test_markdown() -> None:
    assert table("T", "C.", ["name", "score", "count", "x"], ROWS).markdown().splitlines() == [
        "**T.** C.",
        "",
        "| name | score | count | x |",
        "| --- | ---: | ---: | ---: |",
        "| a\\|b | 1.2 (−2.0 to 3.0) | 12,345 |  |",
        "| 50 % & more | 7.0 (no interval) | −3 | 2.5 |",
    ]


def test_latex_escapes_and_aligns() -> None:
    text = table("My table", "50 %.", ["name", "score", "count", "x"], ROWS).latex()
    assert r"\begin{tabular}{lrrr}" in text
    assert r"50 \% \& more & 7.0 (no interval) & $-$3 & 2.5 \\" in text
    assert r"\label{tab:my-table}" in text


def test_html_is_escaped_and_carries_what_it_sorts_by() -> None:
    line = Line((Entry("<b>"), Entry("1", "(x)", 1.0, "higher", bold=True)), 'da"ta', "CQL", True)
    text = Table("T", "<C>", ("a & b", "n"), (line,), ("", "CQL")).html("e0")
    assert 'id="e0-t"' in text
    assert "&lt;C&gt;" in text
    assert "a &amp; b" in text
    assert '<tr data-row class="focus" data-dataset="da&#34;ta" data-method="CQL">' in text
    assert '<th scope="row" class="text">&lt;b&gt;</th>' in text
    assert '<td class="higher best" data-value="1" data-method="CQL">1 <span class="interval">(x)</span></td>' in text


def test_the_two_best_are_bold_with_their_ties_and_not_if_that_is_all() -> None:
    row = best([cell(value) for value in (3.0, 9.0, None, 5.0, 5.0)])
    assert [entry.bold for entry in row] == [False, True, False, True, True]
    assert not any(entry.bold for entry in best([cell(1.0), cell(2.0), cell(None)]))
    made = Table("T", "", ("a", "b"), (Line(best([cell(Interval(9.0, 8.0, 10.0)), cell(1.0)], 1)),))
    assert "| **9.0** (8.0 to 10.0) | 1.0 |" in made.markdown()
    assert r"\textbf{9.0} (8.0 to 10.0) & 1.0 \\" in made.latex()


@pytest.mark.parametrize(("value", "text"), [(-0.04, "0.0"), (-1.26, "−1.3"), (1234.5, "1,234.5"), (0.05, "0.1")])
def test_fixed(value: float, text: str) -> None:
    assert fixed(value) == text


def test_columns_of_words_align_left() -> None:
    made = table("T", "", ["a", "b", "c"], [["x", "higher", "12 (1 to 3)"], ["y", None, "−3"]])
    assert made.words == {0, 1}


def test_all_at_once() -> None:
    both = [table("One", "", ["a"], [["x"]]), table("Two", "", ["b"], [["y"]])]
    markdown, latex = write_all(both)
    assert markdown == both[0].markdown() + "\n" + both[1].markdown()
    assert latex.count(r"\begin{table}") == 2
