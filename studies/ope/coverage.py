"""Whether intervals hold the truth and verdicts mean what they say: set on some problems, tested on others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from sapp.core.statistics import Interval
from sapp.ope.calibration import EXACT, NETWORKS, students_factor
from sapp.ope.diagnostics import Measures, Verdict, reasons_of, verdict_of
from sapp.report.report_tables import Table, table
from studies.ope.rows import Row
from studies.ope.tables import grouped

SET_ON = ("InvertedPendulum", "Acrobot", "MountainCar", "point", "walker2d", "ward, solved")
"""Problems on which the widths of intervals were set; all others are tests of them."""
KINDS = {
    "locomotion": ("hopper", "halfcheetah"), "CartPole": ("CartPole",), "Pendulum": ("Pendulum",),
    "sepsis": ("sepsis",),
}  # fmt: skip
"""Kinds of problems that were no part of setting anything."""
HEADINGS = (
    "problem", "used for", "estimates", "refused", "doubtful", "trusted", "trusted: coverage", "with slack",
    "doubtful: coverage", "plain bootstrap", "width / scale", "draws",
)  # fmt: skip


def problem_of(row: Row) -> str:
    """The problem without its number of episodes."""
    return str(row["problem"]).rstrip("0123456789 ")


def quoted(rows: Sequence[Row], factor: float | None = None) -> list[tuple[Row, Interval, Verdict]]:
    """The estimate that the command would quote of each policy and draw, with its interval and verdict.

    Args:
        rows: of all estimators.
        factor: how much intervals are widened, beside Student's factor for the episodes; by default as
            ``sapp.ope.calibration`` says.
    """
    out = []
    for found in grouped(rows, "problem", "policy", "draw").values():
        by = {str(row["estimator"]): row for row in found}
        exact = by["fqe"]["exact"] == "True"
        row = by["dr"] if exact and not by["fqe"]["unhealthy"] else by["fqe"]
        wide = factor if factor is not None else EXACT if exact else NETWORKS
        wide *= students_factor(int(row["episodes"]))
        middle = row["estimate"]
        interval = Interval(middle, middle + wide * (row["low"] - middle), middle + wide * (row["high"] - middle))
        out.append((row, interval, verdict_of(reasons_of(measures_of(row), interval))))
    return out


def measures_of(row: Row) -> Measures:
    """What a row tells of its estimate."""
    return Measures(
        episodes=int(row["episodes"]), off_data=row["off_data"], disagreement=row["disagreement"],
        difference=row["difference"], drift=row["drift"], outside=row["outside"],
        horizons=None if row["horizons"] == "" else row["horizons"], unhealthy=str(row["unhealthy"]),
        scale=row["scale"], possible=(row["possible_low"], row["possible_high"]), steps=int(row["steps"]),
    )  # fmt: skip


def holds(row: Row, interval: Interval, slack: float = 0.0) -> bool:
    """Whether the truth lies inside, give or take ``slack`` of its own standard errors."""
    more = slack * row["truth_error"]
    return bool(interval.low - more <= row["truth"] <= interval.high + more)


def smallest_factor(rows: Sequence[Row], wanted: float = 0.95, least: float = 0.9) -> float:
    """The smallest factor, in tenths, with which intervals that are not refused hold the truth often enough.

    Args:
        rows: of problems to set it on.
        wanted: share over all of them.
        least: share on each.
    """
    for factor in np.arange(10, 100) / 10:
        kept = [(row, interval) for row, interval, verdict in quoted(rows, factor) if verdict is not Verdict.REFUSED]
        shares = [
            np.mean([holds(row, interval) for row, interval in kept if problem_of(row) == name])
            for name in dict.fromkeys(problem_of(row) for row, _ in kept)
        ]
        if np.mean([holds(row, interval) for row, interval in kept]) >= wanted and min(shares) >= least:
            return float(factor)
    raise ValueError("no factor below 10 is enough")


def split(rows: Iterable[Row]) -> tuple[list[Row], list[Row]]:
    """Rows of networks, and of solved equations, on which factors were set."""
    held = [row for row in rows if problem_of(row) in SET_ON]
    return [row for row in held if row["exact"] != "True"], [row for row in held if row["exact"] == "True"]


def coverage(rows: Sequence[Row]) -> Table:
    """One line per problem and per kind."""
    groups = [(name, "setting", (name,)) for name in SET_ON]
    for kind, names in KINDS.items():
        groups += [(name, "test", (name,)) for name in names] if len(names) > 1 else []
        groups.append((kind, "test", names))
    lines = []
    for name, use, names in groups:
        held = [row for row in rows if problem_of(row) in names]
        if held:
            lines.append([name, use, *_counts(held)])
    return table(
        "Coverage", "How often 95 % intervals of quoted estimates contain the true value, by verdict.", HEADINGS, lines
    )


def section(rows: Sequence[Row]) -> str:
    """The page's part about coverage, made of rows alone."""
    networks, solved = split(rows)
    tests = [row for row in rows if problem_of(row) not in SET_ON]
    found = [each for each in quoted(tests) if each[2] is not Verdict.REFUSED]
    trusted = [each for each in found if each[2] is Verdict.TRUSTED]
    inside = sum(holds(row, interval) for row, interval, _ in trusted)
    lines = [
        f"Smallest factor that is enough on the problems for setting: {smallest_factor(networks):.1f} for networks "
        f"({NETWORKS:g} in use), {smallest_factor(solved):.1f} for solved equations ({EXACT:g} in use). "
        f"On the tests {inside} of {len(trusted)} trusted intervals hold the truth without any slack, and "
        f"{sum(holds(row, interval) for row, interval, _ in found)} of {len(found)} of all that were not refused.",
        "",
        coverage(rows).markdown(),
    ]
    return "\n".join(lines).strip()


def _counts(rows: Sequence[Row]) -> list[str]:
    found = quoted(rows)
    by = {verdict: [(row, inside) for row, inside, own in found if own is verdict] for verdict in Verdict}
    kept = by[Verdict.TRUSTED] + by[Verdict.DOUBTFUL]
    trusted = by[Verdict.TRUSTED]
    plain = [
        holds(row, interval) for row, interval, _ in quoted(rows, 1.0)
        if any(row is other for other, _ in kept)
    ]  # fmt: skip
    widths = [(inside.high - inside.low) / row["scale"] for row, inside in kept]
    return [
        str(len(found)), *(f"{len(by[each]) / len(found):.0%}" for each in (Verdict.REFUSED, Verdict.DOUBTFUL)),
        f"{len(trusted) / len(found):.0%}", _share([holds(*each) for each in trusted]),
        _share([holds(*each, slack=2.0) for each in trusted]),
        _share([holds(*each) for each in by[Verdict.DOUBTFUL]]), _share(plain),
        f"{np.median(widths):.2f}" if widths else "–", str(len({(row["problem"], row["draw"]) for row in rows})),
    ]  # fmt: skip


def _share(inside: Sequence[bool]) -> str:
    return f"{np.mean(inside):.0%} of {len(inside)}" if inside else "–"
