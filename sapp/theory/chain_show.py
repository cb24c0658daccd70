"""The motivating example shown: tables in a terminal, one figure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sapp.core.comparisons import family_told
from sapp.core.errors import SappError
from sapp.core.extras import require
from sapp.core.figures import write_figure
from sapp.tabular.divergence import BOUNDED
from sapp.theory.chain import SPREADS, Chain, Sweep, chain, sweep
from sapp.theory.chain_tuned import METHODS, tuned_chain

if TYPE_CHECKING:
    from rich.console import Console

SHOWN = 200
"""Chains behind a table in a terminal, half of them to tune on."""
COLOURS = {"none": "#9a9a9a", "pp": "#1f77b4", "w": "#c8102e", "sqrt-w": "#e8943b"}


def print_chain(
    console: Console, divergence: str = "tv", alpha: float = 0.1, left: int = 10, right: int = 90, arm: int = 3,
    smoothing: float = 0.0,
) -> None:
    """The example as tables: state by state at one skew, then as the coverage is skewed."""
    from rich.table import Table

    found = chain(arm=arm, left=left, right=right, divergence=divergence, alpha=alpha, smoothing=smoothing)
    setting = found.setting
    title = f"{left} trajectories to the left, {right} to the right; uniform π; {divergence.upper()}, α = {alpha:g}"
    table = Table(title=title, title_justify="left", header_style="bold", box=None, pad_edge=False)
    for head in ("state", "d^π", "d^D", "w", "Dis", "α·Dis", "α·w·Dis", "V^π", "v none", "v PP", "v SA-PP"):
        table.add_column(head, justify="left" if head == "state" else "right")
    for s, name in enumerate(setting.names[1:-1], 1):
        numbers = (
            found.occupancy[s], found.data[s], found.ratio[s], found.distance[s], found.pessimism["pp"][s],
            found.pessimism["w"][s], found.truth[s], found.value["none"][s], found.value["pp"][s], found.value["w"][s],
        )
        table.add_row(name, *(_number(x) for x in numbers), style="bold" if s == arm + 1 else "")
    console.print(table)
    console.print(f"w(ℓ)/w(r) = {found.skew:.3g} = n/m on mirrored states; the uncertainty of an average asks for "
                  f"√(n/m) = {np.sqrt(right / left):.3g}, which is f = √w.")
    if not setting.finite:
        console.print(f"[yellow]{divergence.upper()} is infinite on both arms, with and without w: the log shows no "
                      "step inwards. Use tv or mmd, or smoothing above 0.[/yellow]")
        return
    if divergence not in BOUNDED and left != right:
        console.print(f"Smoothed, Dis on the better known arm is {_mirrored(found):.3g} times that on the other.")
    console.print(_sweep_table(sweep(setting, total=left + right, points=9)))
    for follow in (True, False):
        console.print(_tuned_table(follow))


def _mirrored(found: Chain) -> float:
    """Dis on the better known arm over Dis on the other."""
    centre, setting = found.setting.arm + 1, found.setting
    quotient = float(found.distance[centre + 1] / found.distance[centre - 1])
    return quotient if setting.right > setting.left else 1 / quotient


def _sweep_table(found: Sweep) -> Any:
    from rich.table import Table

    table = Table(
        title="As the coverage is skewed", title_justify="left", header_style="bold", box=None, pad_edge=False
    )
    table.add_column("left share", justify="right")
    for head in ("ℓ₁/r₁ PP", "ℓ₁/r₁ w", "ℓ₁/r₁ √w", "v none", "v PP", "v w"):
        table.add_column(head, justify="right")
    for k, share in enumerate(found.share):
        with np.errstate(invalid="ignore", divide="ignore"):  # without pessimism there is no ratio of it
            ratios = [found.known_left[name][k] / found.known_right[name][k] for name in ("pp", "w", "sqrt-w")]
        values = [found.value[name][k] for name in ("none", "pp", "w")]
        table.add_row(f"{share:.0%}", *(f"{x:.2f}" for x in (*ratios, *values)))
    table.caption = (
        f"ℓ₁/r₁: pessimism left over right, of PP and of SA-PP with w and √w. v: estimate of the uniform policy at s₀, "
        f"whose true value is {found.truth:.3f}."
    )
    table.caption_justify = "left"
    return table


def _tuned_table(follow: bool) -> Any:
    from rich.table import Table

    arms = "outwards on the arms, as the log" if follow else "uniform on the arms"
    title = f"Choosing a side, every method at its best α; policies {arms}"
    table = Table(title=title, title_justify="left", header_style="bold", box=None, pad_edge=False)
    for head in ("method", "α, tuned", "lost", "− PP", "95 %"):
        table.add_column(head, justify="left" if head == "method" else "right")
    rows = tuned_chain(SHOWN, follow=follow)
    for row in rows:
        low, high = row.difference.low, row.difference.high
        table.add_row(
            METHODS[row.method], f"{row.alpha:.3g}", f"{row.loss:.4f}", f"{row.difference.estimate:+.4f}",
            f"{low:+.4f} to {high:+.4f}",
        )
    table.caption = (
        f"Mean true value lost on {SHOWN - SHOWN // 2} chains of 20 trajectories whose better side is the better known "
        f"one; α chosen on {SHOWN // 2} others. {family_told([row.p for row in rows if row.method != 'pp'])}"
    )
    table.caption_justify = "left"
    return table


def _number(x: float) -> str:
    if np.isinf(x):
        return "∞" if x > 0 else "−∞"
    return f"{x:.3f}" if abs(x) < 100 else f"{x:.0f}"


def plot_chain(
    path: str | Path, divergence: str = "tv", alpha: float = 0.1, left: int = 10, right: int = 90, arm: int = 3,
    smoothing: float = 0.0,
) -> None:
    """The example as one figure: three panels at one skew, three as the coverage is skewed."""
    require("matplotlib", "drawing figures")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    found = chain(arm=arm, left=left, right=right, divergence=divergence, alpha=alpha, smoothing=smoothing)
    setting = found.setting
    if not setting.finite:
        raise SappError(f"{divergence} is infinite for a uniform policy here: use tv or mmd, or smoothing above 0")
    curves = sweep(setting, total=left + right)
    figure = Figure(figsize=(13, 7.2), layout="constrained")
    FigureCanvasAgg(figure)
    (a, b, c), (d, e, f) = figure.subplots(2, 3)
    inner = slice(1, -1)
    x = np.arange(len(setting.names))[inner]
    names = [_tex(name) for name in setting.names[inner]]
    a.bar(x, found.data[inner], width=0.6, color="#c9ced6", label="the log, $d^D$")
    a.plot(x, found.occupancy[inner], "o-", color="#2e8b57", label="uniform policy, $d^π$")
    a.set(title=f"visits: log ({left} left, {right} right) and policy")
    a.set_ylim(0, 1.3 * max(found.data[inner].max(), found.occupancy[inner].max()))  # room for the legend
    b.bar(x, found.ratio[inner], width=0.6, color="#c8102e")
    b.axhline(1, color="#1f1f1f", lw=0.8, ls=":")
    b.set(title=f"$w = d^π/d^D$, mean 1:  $w(ℓ)/w(r) = {found.skew:.3g}$")
    for shift, name in zip((-0.27, 0, 0.27), ("pp", "w", "sqrt-w"), strict=True):
        c.bar(x + shift, found.pessimism[name][inner], width=0.25, color=COLOURS[name], label=SPREADS[name])
    c.set(title=f"pessimism $α·f·$Dis ({divergence.upper()}, α = {alpha:g})")
    for axes in (a, b, c):
        axes.set_xticks(x, names)
    quotient = (1 - curves.share) / curves.share
    d.plot(curves.share, np.sqrt(quotient), color="#2e8b57", lw=6, alpha=0.3, label="uncertainty, $\\sqrt{n/m}$")
    for name in ("pp", "w", "sqrt-w"):
        tilt = curves.known_left[name] / curves.known_right[name]
        d.plot(curves.share, tilt, color=COLOURS[name], label=SPREADS[name])
    d.set(title="pessimism at $ℓ_1$ ÷ pessimism at $r_1$", yscale="log")
    e.axhline(curves.truth, color="#1f1f1f", ls=":", label="true value")
    for name in SPREADS:
        e.plot(curves.share, curves.value[name], color=COLOURS[name], label=SPREADS[name])
    e.set(title="estimated value of the uniform policy at $s_0$")
    rows = tuned_chain(SHOWN)[::-1]
    f.barh([METHODS[row.method] for row in rows], [row.loss for row in rows], color="#7f8fa6")
    f.set(title="true value lost, each method at its best α")
    for axes in (d, e):
        axes.axvline(left / (left + right), color="#1f1f1f", lw=0.7, alpha=0.4)
        axes.set_xlabel("share of the trajectories that go left")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    for axes in (a, b, c, d, e, f):
        axes.set_title(axes.get_title(), loc="left", fontsize=11)
        axes.set_title("", loc="center")
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", alpha=0.2)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(frameon=False, fontsize=8.5)
    write_figure(figure, Path(path))


def _tex(name: str) -> str:
    digits: Sequence[str] = [str(ord(sign) - ord("₀")) for sign in name[1:]]
    return f"${name[0]}_{{{''.join(digits)}}}$"
