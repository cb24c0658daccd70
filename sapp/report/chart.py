"""Line charts as inline SVG: where everything lies; templates/chart.svg draws it, in colours of the page's style."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from sapp.core.statistics import Values
from sapp.report.curves import Curve
from sapp.report.rendering import render

WIDTH, HEIGHT = 640, 340
LEFT, RIGHT, TOP, BOTTOM = 74, 24, 16, 46
Place = Callable[[float], float]
"""From a value to a coordinate."""
STROKES = ("", "7 3", "2 3", "9 3 2 3", "4 2")
"""Dashes that distinguish lines without colour."""


@dataclass(frozen=True)
class Reference:
    """A level to compare curves with: what it is called, and the variant whose colour it has, if any."""

    label: str
    value: float
    variant: str = ""


@dataclass(frozen=True)
class Chart:
    """A chart: its curves, its words, and the place of each variant in the palette.

    ``intervals`` says that bands are intervals, which may reach far beyond what was seen: those are cut off at the
    frame, while ranges of what was seen are always shown whole.
    """

    title: str
    x_label: str
    y_label: str
    curves: Sequence[Curve]
    palette: Sequence[str]
    log_y: bool = False
    references: Sequence[Reference] = field(default_factory=tuple)
    intervals: bool = False


def place(palette: Sequence[str], variant: str) -> int:
    """The number of a variant's colour; grey for whoever has none."""
    return list(palette).index(variant) % 12 if variant in palette else 11


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers that cover a range."""
    span = high - low
    if not span > 0:
        return [low]
    raw = span / count
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * unit for factor in (1, 2, 2.5, 5, 10) if factor * unit >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    found = []
    while first * step <= high + 1e-9 * span:
        found.append(first * step)
        first += 1
    return found


def _decades(low: float, high: float) -> list[float]:
    """Marks on a logarithmic axis: powers of ten, or where those are few, also their double and fivefold."""
    exponents = range(math.floor(low), math.ceil(high) + 1)
    factors = (1,) if high - low > 2 else (1, 2, 5)
    return [f * 10.0**e for e in exponents for f in factors if low <= math.log10(f * 10.0**e) <= high]


def number(value: float) -> str:
    """A number on an axis: short."""
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 1e6:
        return f"{value / 1e6:.3g}M"
    if size >= 1e4:
        return f"{value / 1e3:.3g}k"
    if size < 1e-3:
        return f"{value:.0e}"
    return f"{value:.4g}"


def svg(chart: Chart, identity: str) -> Markup:
    """The chart as an <svg> element; every point carries its numbers for the page's pointer read-out."""
    curves = [curve for curve in chart.curves if len(curve.steps)]
    if not curves:
        return Markup("")
    frame = _Frame(chart, curves)
    across = ticks(frame.x_low, frame.x_high)
    up = _decades(frame.y_low, frame.y_high) if frame.log else ticks(frame.y_low, frame.y_high)
    highest = max((each.value for each in chart.references), default=0.0)
    told = "; ".join(f"{curve.variant} ends at {curve.mean[-1]:.4g}" for curve in curves)
    return render(
        "chart.svg", chart=chart, identity=identity, width=WIDTH, height=HEIGHT, left=LEFT, right=WIDTH - RIGHT,
        top=TOP, bottom=HEIGHT - BOTTOM, middle=(LEFT + WIDTH - RIGHT) / 2, centre=(TOP + HEIGHT - BOTTOM) / 2,
        x_ticks=[(frame.x(value), number(value)) for value in across],
        y_ticks=[(frame.y(value), number(value)) for value in up],
        references=[
            # the highest is named above its line, others below theirs
            (each, frame.y(each.value), place(chart.palette, each.variant), 4 if each.value == highest else -13)
            for each in chart.references
        ],
        series=[_series(curve, place(chart.palette, curve.variant), frame) for curve in curves],
        description=f"{chart.y_label} against {chart.x_label}. {told}.",
    )  # fmt: skip


class _Frame:
    """Where values lie on the picture."""

    def __init__(self, chart: Chart, curves: Sequence[Curve]) -> None:
        self.x_low = float(min(curve.steps.min() for curve in curves))
        self.x_high = float(max(curve.steps.max() for curve in curves))
        means = _finite(curve.mean for curve in curves)
        bands = _finite(part for curve in curves for part in (curve.low, curve.high))
        fixed = means + [each.value for each in chart.references]
        self.log = chart.log_y and min(fixed + bands) > 0
        self.scale: Place = math.log10 if self.log else float
        low, high = self.scale(min(fixed)), self.scale(max(fixed))
        if bands:
            room = 0.5 * (high - low) if chart.intervals and high > low else math.inf
            low = min(low, max(self.scale(min(bands)), low - room))
            high = max(high, min(self.scale(max(bands)), high + room))
        margin = 0.05 * (high - low) or max(0.5, 1e-3 * abs(high))  # half is nothing beside what has diverged
        self.y_low, self.y_high = low - margin, high + margin

    def x(self, value: float) -> float:
        """From left to right."""
        share = (value - self.x_low) / (self.x_high - self.x_low) if self.x_high > self.x_low else 0.5
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)

    def y(self, value: float) -> float:
        """From the bottom up."""
        share = (self.scale(max(value, 1e-300) if self.log else value) - self.y_low) / (self.y_high - self.y_low)
        return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 1)


def _finite(parts: Iterable[Values]) -> list[float]:
    return [value for part in parts for value in part.tolist() if math.isfinite(value)]


def _series(curve: Curve, colour: int, frame: _Frame) -> dict[str, Any]:
    rows = list(zip(*(part.tolist() for part in (curve.steps, curve.mean, curve.low, curve.high)), strict=True))
    band = [row for row in rows if math.isfinite(row[2]) and math.isfinite(row[3])]
    edge = [(step, high) for step, _, _, high in band] + [(step, low) for step, _, low, _ in reversed(band)]
    dots = []
    for step, mean, low, high in rows:
        interval = f" ({low:.4g} to {high:.4g})" if math.isfinite(low) else ""
        dots.append((frame.x(step), frame.y(mean), f"{curve.variant}, {step:,.0f}: {mean:.4g}{interval}"))
    return {
        "variant": curve.variant,
        "colour": colour,
        "dash": STROKES[(colour // 4) % len(STROKES)],
        "band": _points(edge, frame) if len(band) > 1 else "",
        "line": _points([(step, mean) for step, mean, _, _ in rows], frame),
        "radius": 3 if len(rows) <= 40 else 0,  # many points make a line of their own; they still answer the pointer
        "dots": dots,
    }


def _points(pairs: Sequence[tuple[float, float]], frame: _Frame) -> str:
    return " ".join(f"{frame.x(step)},{frame.y(value)}" for step, value in pairs)
