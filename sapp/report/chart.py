"""Line charts as inline SVG: colours come from the page's style, so that they follow light and dark mode."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape

from sapp.report.score_summary import Curve

WIDTH, HEIGHT = 640, 340
LEFT, RIGHT, TOP, BOTTOM = 74, 24, 16, 46
Place = Callable[[float], float]
"""From a value to a coordinate."""
STROKES = ("", "7 3", "2 3", "9 3 2 3", "4 2")
"""Dashes that tell lines apart without colour."""


@dataclass(frozen=True)
class Chart:
    """A chart: its curves, its words, and the place of each column in the palette."""

    title: str
    x_label: str
    y_label: str
    curves: Sequence[Curve]
    palette: Sequence[str]
    log_y: bool = False
    references: Sequence[tuple[str, float]] = field(default_factory=tuple)
    description: str = ""


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


def svg(chart: Chart, identity: str) -> str:
    """The chart as an <svg> element; every point carries its numbers for the page's pointer read-out."""
    curves = [curve for curve in chart.curves if len(curve.steps)]
    if not curves:
        return ""
    x_low, x_high = min(c.steps.min() for c in curves), max(c.steps.max() for c in curves)
    values = [v for c in curves for part in (c.low, c.high, c.mean) for v in part.tolist() if math.isfinite(v)]
    values += [value for _, value in chart.references]
    log = chart.log_y and min(values) > 0
    scale = math.log10 if log else float
    y_low, y_high = scale(min(values)), scale(max(values))
    margin = 0.05 * (y_high - y_low) or 0.5
    y_low, y_high = y_low - margin, y_high + margin

    def x(value: float) -> float:
        share = (value - x_low) / (x_high - x_low) if x_high > x_low else 0.5
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)

    def y(value: float) -> float:
        share = (scale(max(value, 1e-300) if log else value) - y_low) / (y_high - y_low)
        return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 1)

    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="{identity}-t {identity}-d" class="chart">',
        f'<title id="{identity}-t">{escape(chart.title)}</title>',
        f'<desc id="{identity}-d">{escape(chart.description or _described(chart, curves))}</desc>',
    ]
    for value in _decades(y_low, y_high) if log else ticks(y_low, y_high):
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(value)}" y2="{y(value)}"/>')
        parts.append(f'<text class="tick" x="{LEFT - 8}" y="{y(value) + 4}" text-anchor="end">{number(value)}</text>')
    for value in ticks(float(x_low), float(x_high)):
        parts.append(
            f'<text class="tick" x="{x(value)}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{number(value)}</text>'
        )
    parts.append(f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{HEIGHT - BOTTOM}" y2="{HEIGHT - BOTTOM}"/>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(
        f'<text class="label" x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">{escape(chart.x_label)}</text>'
    )
    centre = (TOP + HEIGHT - BOTTOM) / 2
    parts.append(
        f'<text class="label" transform="translate(14 {centre}) rotate(-90)" text-anchor="middle">'
        f"{escape(chart.y_label)}</text>"
    )
    highest = max((value for _, value in chart.references), default=0.0)
    for name, value in chart.references:
        below = 4 if value == highest else -13  # the highest is named above its line, others below theirs
        parts.append(
            f'<g class="reference" data-method="{escape(name)}"><line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(value)}" '
            f'y2="{y(value)}" style="stroke:var(--c{_place(chart, name)})"/>'
            f'<text x="{LEFT + 4}" y="{y(value) - below}">the paper\'s {escape(name)}: {value:g}</text></g>'
        )
    for curve in curves:
        parts.append(_curve(curve, _place(chart, curve.column), x, y))
    return "".join(parts) + "</svg>"


def _curve(curve: Curve, place: int, x: Place, y: Place) -> str:
    steps, name = curve.steps.tolist(), escape(curve.column)
    lower = [f"{x(s)},{y(v)}" for s, v in zip(steps, curve.low.tolist(), strict=True)]
    upper = [f"{x(s)},{y(v)}" for s, v in zip(steps, curve.high.tolist(), strict=True)]
    line = " ".join(f"{x(s)},{y(v)}" for s, v in zip(steps, curve.mean.tolist(), strict=True))
    dash = STROKES[(place // 4) % len(STROKES)]
    style = f"--c:var(--c{place})" + (f";stroke-dasharray:{dash}" if dash else "")
    parts = [f'<g class="series" data-method="{name}" style="{style}">']
    if len(steps) > 1:
        parts.append(f'<polygon class="band" points="{" ".join(upper + lower[::-1])}"/>')
    parts.append(f'<polyline class="line" points="{line}"/>')
    radius = 3 if len(steps) <= 40 else 0  # many points make a line of their own; they still answer the pointer
    for step, mean, low, high in zip(steps, curve.mean.tolist(), curve.low.tolist(), curve.high.tolist(), strict=True):
        told = f"{curve.column}, {step:,.0f}: {mean:.4g} ({low:.4g} to {high:.4g})"
        parts.append(f'<circle class="dot" cx="{x(step)}" cy="{y(mean)}" r="{radius}" data-told="{escape(told)}"/>')
    return "".join(parts) + "</g>"


def _place(chart: Chart, column: str) -> int:
    return list(chart.palette).index(column) % 12 if column in chart.palette else 11


def _described(chart: Chart, curves: Sequence[Curve]) -> str:
    ends = "; ".join(f"{curve.column} ends at {curve.mean[-1]:.4g}" for curve in curves)
    return f"{chart.y_label} against {chart.x_label}. {ends}."
