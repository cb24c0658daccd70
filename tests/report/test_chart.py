"""Where the parts of a chart lie."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from sapp.report.chart import Chart, Reference, number, svg, ticks
from sapp.report.curves import Curve


def curve(low: float, high: float, name: str = "CQL") -> Curve:
    return Curve(name, np.array([0.0, 10.0]), np.array([1.0, 3.0]), np.full(2, low), np.full(2, high))


def heights(text: str) -> list[float]:
    return [float(y) for y in re.findall(r'<circle[^>]* cy="([\d.]+)"', text)]


def test_intervals_do_not_squeeze_the_means_but_ranges_are_whole() -> None:
    wide = Chart("T", "x", "y", [curve(-1e6, 1e6)], ["CQL"], intervals=True)
    one, other = heights(svg(wide, "a"))
    assert one - other > 100  # of 278 pixels
    one, other = heights(svg(replace(wide, intervals=False), "a"))
    assert one - other < 1


def test_without_an_interval_there_is_no_band_and_none_is_told() -> None:
    text = svg(Chart("T", "x", "y", [curve(np.nan, np.nan)], ["CQL"]), "a")
    assert "band" not in text
    assert 'data-told="CQL, 10: 3"' in text
    assert 'data-told="CQL, 10: 3 (0 to 4)"' in svg(Chart("T", "x", "y", [curve(0.0, 4.0)], ["CQL"]), "a")


def test_names_are_escaped_and_references_inside_the_frame() -> None:
    limit = Reference("limit", 50.0)
    text = svg(Chart("<T>", "x", "y", [curve(0.0, 4.0, 'a"<b')], [], references=[limit]), "a")
    assert "&lt;T&gt;" in text
    assert "<b" not in text
    assert "limit: 50" in text
    (level,) = [float(y) for y in re.findall(r'<g class="reference"><line[^>]* y1="([\d.]+)"', text)]
    assert 16 <= level <= min(heights(text))
    assert svg(Chart("T", "x", "y", [], []), "a") == ""


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (150_000, "150k"), (2_500_000, "2.5M"), (0.00012, "1e-04"), (12.5, "12.5")]
)
def test_numbers_on_axes_are_short(value: float, text: str) -> None:
    assert number(value) == text


def test_ticks_are_round_and_inside() -> None:
    assert ticks(0.0, 100.0) == [0, 20, 40, 60, 80, 100]
    assert ticks(3.0, 3.0) == [3.0]


@pytest.mark.parametrize("value", [1e17, -3e38, 1e100])
def test_one_value_of_any_size_has_a_place(value: float) -> None:
    """A critic that diverged, say, in a single row."""
    line = Curve("CQL", np.array([10.0]), np.array([value]), np.array([np.nan]), np.array([np.nan]))
    (height,) = heights(svg(Chart("T", "x", "y", [line], ["CQL"]), "a"))
    assert 0 < height < 400
