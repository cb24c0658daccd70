"""The audit: every statement, printed and repaired, over families of MDPs; its table, its figure and its replays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import binom

from sapp.core.errors import SappError
from sapp.core.extras import require
from sapp.core.figures import check_figure, write_figure
from sapp.tabular.divergence import DIVERGENCES, divergence
from sapp.theory.families import DELTA, FAMILIES, REDRAWN, Instances, instances
from sapp.theory.statements import STATEMENTS, Case, Outcome, Statement, statement

if TYPE_CHECKING:
    from rich.console import Console

ALPHAS: tuple[float, ...] = (0.001, 0.01, 0.1, 0.5, 2.0, 10.0)
DISCOUNTS = (0.9, 0.99)
CONVENTIONS = {"paper": False, "normalised": True}
"""How w is normalised, by name."""
SIGNIFICANCE = 1e-9
"""A statement of probability is refuted when more violations than δ allows would be this unlikely, in some cell."""


@dataclass(frozen=True)
class Cell:
    """One statement in one setting: outcomes over its instances, the least margin and the seed it is found at.

    informative: the checks that are neither vacuous nor about numbers that are (``statements.Result``);
    peak: over the policies (or penalties) that the statement is checked for separately, the most violations; draws: the
    instances.
    """

    statement: str
    family: str
    divergence: str
    alpha: float
    discount: float
    convention: str
    counts: tuple[int, int, int, int]
    worst: float
    seed: int
    peak: int
    draws: int
    informative: int

    @property
    def identifier(self) -> str:
        """Names a violation, so that ``replay`` can make it again."""
        return "/".join((
            self.statement, self.family, str(self.seed), self.divergence, f"{self.alpha:g}", f"{self.discount:g}",
            self.convention,
        ))


@dataclass(frozen=True)
class Row:
    """A statement over all its cells: shares of the outcomes, the least margin and where, and the verdict.

    informative: the share of checks that say something, and ``within``, the same within each family.
    """

    statement: Statement
    checked: int
    holds: float
    violated: float
    not_met: float
    vacuous: float
    worst: float
    verdict: str
    counterexample: str | None
    frequency: float | None
    informative: float
    within: dict[str, float]

    @property
    def version(self) -> str:
        """Printed, repaired, generous (a charitable reading), a proof's step, or repaired with the f as run."""
        last = self.statement.key.rsplit("-", 1)[-1]
        return "as run" if last == "log" else last


@dataclass(frozen=True)
class Audit:
    """All cells of an audit."""

    cells: tuple[Cell, ...]
    delta: float

    @property
    def problems(self) -> int:
        """Different MDPs: a family of redrawn logs has one for each γ."""
        draws = {(cell.family, cell.discount): cell.draws for cell in self.cells}
        return sum(1 if family in REDRAWN else count for (family, _), count in draws.items())

    def rows(self, keep: Callable[[Cell], bool] = lambda _: True) -> list[Row]:
        """The table, over the cells that ``keep`` admits."""
        return [row for key in STATEMENTS if (row := self._row(key, keep)) is not None]

    def row(self, key: str, keep: Callable[[Cell], bool] = lambda _: True) -> Row:
        """One statement's row."""
        found = self._row(statement(key).key, keep)
        if found is None:
            raise SappError(f"the audit holds no cell of {key!r} in that selection")
        return found

    def _row(self, key: str, keep: Callable[[Cell], bool]) -> Row | None:
        cells = [cell for cell in self.cells if cell.statement == key and keep(cell)]
        if not cells:
            return None
        subject = statement(key)
        counts = np.sum([cell.counts for cell in cells], 0)
        share = counts / counts.sum()
        margins = [cell.worst for cell in cells if np.isfinite(cell.worst)]
        frequency = None
        suspects = [cell for cell in cells if cell.counts[Outcome.VIOLATED]]
        if subject.probabilistic:
            redrawn = [cell for cell in cells if cell.family in REDRAWN]
            frequency = max((cell.peak / cell.draws for cell in redrawn), default=None)
            suspects = [cell for cell in redrawn if binom.sf(cell.peak - 1, cell.draws, self.delta) < SIGNIFICANCE]
            most = max((cell.peak for cell in suspects), default=0)
            suspects = [cell for cell in suspects if 2 * cell.peak >= most]
        suspects.sort(key=lambda cell: cell.worst * (1 - cell.discount))
        verdict = "refuted" if suspects else ("proved" if subject.proved else "not refuted")
        within = {
            family: sum(cell.informative for cell in cells if cell.family == family)
            / sum(sum(cell.counts) for cell in cells if cell.family == family)
            for family in dict.fromkeys(cell.family for cell in cells)
        }
        return Row(
            subject, int(counts.sum()), float(share[Outcome.HOLDS]), float(share[Outcome.VIOLATED]),
            float(share[Outcome.NOT_MET]), float(share[Outcome.VACUOUS]), worst=min(margins, default=float("nan")),
            verdict=verdict, counterexample=suspects[0].identifier if suspects else None, frequency=frequency,
            informative=sum(cell.informative for cell in cells) / int(counts.sum()), within=within,
        )


def audit(
    families: Iterable[str] = tuple(FAMILIES),
    divergences: Iterable[str] = tuple(DIVERGENCES),
    alphas: Sequence[float] = ALPHAS,
    discounts: Sequence[float] = DISCOUNTS,
    conventions: Iterable[str] = tuple(CONVENTIONS),
    mdps: int = 200,
    seed: int = 0,
    delta: float = DELTA,
    statements: Iterable[str] = tuple(STATEMENTS),
    progress: Callable[[int, int], None] | None = None,
) -> Audit:
    """Check the statements on ``mdps`` instances of each family (seeds ``seed`` … ``seed + mdps − 1``) in each setting.

    ``progress(done, total)`` is called after each family and γ. Same arguments, same audit.
    """
    families, divergences, conventions = tuple(families), tuple(divergences), tuple(conventions)
    subjects = [statement(key) for key in statements]
    _check(families, divergences, alphas, discounts, conventions, mdps, seed, delta)
    cells: list[Cell] = []
    done, total = 0, len(families) * len(discounts)
    for family in families:
        for discount in discounts:
            made = instances(family, range(seed, seed + mdps), discount)
            for name in divergences:
                for convention in conventions:
                    case = Case(made, name, CONVENTIONS[convention], np.asarray(alphas, np.float64), delta)
                    for subject in subjects:
                        cells += _cells(subject, case, made, convention)
            done += 1
            if progress is not None:
                progress(done, total)
    return Audit(tuple(cells), delta)


def _check(
    families: Sequence[str], divergences: Sequence[str], alphas: Sequence[float], discounts: Sequence[float],
    conventions: Sequence[str], mdps: int, seed: int, delta: float,
) -> None:
    for family in families:
        if family not in FAMILIES:
            raise SappError(f"family {family!r} is unknown: use {', '.join(FAMILIES)}")
    for name in divergences:
        divergence(name)
    for convention in conventions:
        if convention not in CONVENTIONS:
            raise SappError(f"convention {convention!r} is unknown: use {' or '.join(CONVENTIONS)}")
    if not all(np.isfinite(alpha) and alpha > 0 for alpha in alphas):
        raise SappError("alphas must be positive numbers")
    if not all(0 < discount < 1 for discount in discounts):
        raise SappError("discounts must lie between 0 and 1")
    if mdps < 1:
        raise SappError(f"mdps is {mdps}: at least one is needed")
    if seed < 0:
        raise SappError(f"seed is {seed}: it must not be negative")
    if not 0 < delta < 1:
        raise SappError(f"delta is {delta}: it must lie between 0 and 1")


def _cells(subject: Statement, case: Case, made: Instances, convention: str) -> list[Cell]:
    result = subject.check(case)
    outcome = result.outcome.reshape(*result.outcome.shape[:2], -1)
    margin = np.where(np.isnan(result.margin), np.inf, result.margin).reshape(outcome.shape)
    informative = result.informative.reshape(outcome.shape)
    cells = []
    for position, alpha in enumerate(case.alphas):
        here, room = outcome[:, position], margin[:, position].min(-1)
        counts = np.bincount(here.ravel(), minlength=4)
        at = int(room.argmin())
        bad = here == Outcome.VIOLATED
        if bad.any() and not bad[at].any():  # violated by nothing but strictness: point at such an instance
            at = int(bad.any(-1).argmax())
        cells.append(Cell(
            subject.key, made.family, case.divergence, float(alpha), case.discount, convention,
            (int(counts[0]), int(counts[1]), int(counts[2]), int(counts[3])), float(room[at]), made.seeds[at],
            int(bad.sum(0).max()), len(made.seeds), int(informative[:, position].sum()),
        ))
    return cells


# --- showing --------------------------------------------------------------------------------------------------------

_STYLE = {"proved": "green", "not refuted": "yellow", "refuted": "red"}


def print_audit(result: Audit, console: Console) -> None:
    """The table in a terminal."""
    from rich.table import Table

    rows = result.rows()
    checks = " to ".join(f"{count:,}" for count in sorted({min(r.checked for r in rows), max(r.checked for r in rows)}))
    title = f"The paper's statements, each checked {checks} times"
    table = Table(title=title, title_justify="left", header_style="bold", box=None, pad_edge=False)
    table.add_column("statement")
    for name in ("holds", "violated", "not met", "vacuous", "says", "margin"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for row in rows:
        shares = [_percent(x) for x in (row.holds, row.violated, row.not_met, row.vacuous, row.informative)]
        often = f" {row.frequency:.1%}" if row.frequency else ""
        verdict = f"[{_STYLE[row.verdict]}]{row.verdict}[/]{often}"
        table.add_row(f"{row.statement.title}: {row.version}", *shares, f"{row.worst:.2g}", verdict)
    console.print(table)
    examples = [row for row in rows if row.counterexample]
    if examples:
        console.print("\n[bold]Counterexamples[/bold] (sapp theory audit --replay ID)")
        for row in examples:
            console.print(f"  {row.statement.title}, {row.version}: {row.counterexample}", soft_wrap=True, emoji=False)
    console.print(
        f"\n{result.problems:,} MDPs. says: the share of checks that say something: hypotheses met, and no bound above "
        "any possible loss or value. margin: the least, in units of return. Statements of probability "
        f"(δ = {result.delta:g}) are refuted when logs redrawn from one MDP violate them significantly more often than "
        "δ; the percentage is how often, at most."
    )


def _percent(share: float) -> str:
    if share == 0:
        return "–"
    return "<0.1 %" if share < 0.001 else f"{100 * share:.1f} %"


def says_where(row: Row, least: float = 0.005) -> str:
    """The share of checks that say something, and the families in which that is more than ``least`` of them."""
    some = sorted(((share, name) for name, share in row.within.items() if share >= least), reverse=True)
    where = ", ".join(f"{name} {_percent(share)}" for share, name in some)
    return _percent(row.informative) + (f" ({where})" if where else "")


def table_markdown(rows: Sequence[Row]) -> str:
    """The same table in Markdown, with the families in which each statement says something."""
    lines = ["| statement | version | holds | violated | not met | vacuous | says something (in which families) "
             "| least margin | verdict |", "|---|---|---|---|---|---|---|---|---|"]
    for row in rows:
        shares = " | ".join(_percent(x) for x in (row.holds, row.violated, row.not_met, row.vacuous))
        extra = f", fails in up to {row.frequency:.1%} of logs" if row.frequency else ""
        named = f"| {row.statement.title} | {row.version} "
        lines.append(f"{named}| {shares} | {says_where(row)} | {row.worst:.3g} | {row.verdict}{extra} |")
    return "\n".join(lines)


def plot(result: Audit, path: str | Path) -> Path:
    """A bar for each statement, split by outcome, written as .png, .svg or .pdf."""
    require("matplotlib", "drawing figures")
    from matplotlib.figure import Figure

    path = Path(path)
    check_figure(path, force=True)
    rows = result.rows()[::-1]
    figure = Figure(figsize=(9, 0.34 * len(rows) + 1.2), layout="constrained")
    axes = figure.subplots()
    names = [f"{row.statement.title} ({row.version})" for row in rows]
    left = np.zeros(len(rows))
    for label, colour, values in [
        ("holds", "#3a7d44", [row.holds for row in rows]), ("vacuous", "#b7d3b0", [row.vacuous for row in rows]),
        ("hypotheses not met", "#d9d9d9", [row.not_met for row in rows]),
        ("violated", "#c1272d", [row.violated for row in rows]),
    ]:
        axes.barh(names, values, left=left, color=colour, label=label)
        left = left + np.array(values)
    axes.set_xlim(0, 1)
    axes.set_xlabel("share of checks")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(left=False)
    figure.legend(loc="outside lower center", ncols=4, frameon=False)
    write_figure(figure, path)
    return path


# --- replaying ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Replay:
    """One instance again: the outcome, the margin, and the numbers behind them."""

    identifier: str
    statement: Statement
    outcome: Outcome
    margin: float
    numbers: dict[str, Any]
    instances: Instances
    frequency: float | None


def replay(identifier: str, delta: float = DELTA, redraws: int = 400) -> Replay:
    """Check one instance again from its identifier statement/family/seed/divergence/alpha/discount/convention."""
    parts = identifier.split("/")
    if len(parts) != 7:
        raise SappError(
            f"replay {identifier!r}: an ID reads statement/family/seed/divergence/alpha/discount/convention"
        )
    key, family, seed_text, name, alpha_text, discount_text, convention = parts
    subject = statement(key)
    try:
        seed, alpha, discount = int(seed_text), float(alpha_text), float(discount_text)
    except ValueError:
        raise SappError(f"replay {identifier!r}: the seed, alpha and discount must be numbers") from None
    _check([family], [name], [alpha], [discount], [convention], 1, seed, delta)

    def checked(seeds: Sequence[int]) -> tuple[Case, np.ndarray, np.ndarray]:
        case = Case(instances(family, seeds, discount), name, CONVENTIONS[convention], np.array([alpha]), delta)
        result = subject.check(case)
        size = len(seeds)
        return case, result.outcome.reshape(size, -1), np.nan_to_num(result.margin, nan=np.inf).reshape(size, -1)

    case, outcome, margin = checked([seed])
    violated = outcome[0] == Outcome.VIOLATED
    at = int(violated.argmax()) if violated.any() and not violated[margin[0].argmin()] else int(margin[0].argmin())
    frequency = None
    if subject.probabilistic and family in REDRAWN:
        _, many, _ = checked(range(redraws))
        frequency = float((many == Outcome.VIOLATED).mean(0).max())
    return Replay(
        identifier, subject, Outcome(outcome[0, at]), float(margin[0, at]), _numbers(case, at, outcome.shape[1]),
        case.instances, frequency,
    )


def _numbers(case: Case, at: int, width: int) -> dict[str, Any]:
    """What the statements are made of, for a case of one instance and one α."""
    found = case.instances
    plain, aware = case.bound(case.weights("pp"), False), case.bound(case.weights("sa"), False)
    first, second = int(aware.arg_sup[0, 0]), int(plain.arg_inf[0, 0])
    excess = case.cost(case.weights("sa")) - case.cost(case.weights("pp"))
    numbers: dict[str, Any] = {
        "C0 printed": case.c0(False), "C0 repaired": case.c0(True), "2/(1-γ)": 2 * case.total,
        "UB(PP)": float(plain.total[0, 0]), "UB(SA-PP)": float(aware.total[0, 0]),
        "UB(f-SA-PP)": float(case.bound(case.weights("f"), False).total[0, 0]),
        "policy π̄1 (sup, SA-PP)": first, "policy π̄2 (inf, PP)": second,
        "⟨d1,(w1-1)Dis1⟩": float(excess[0, first]), "⟨d2,(w2-1)Dis2⟩": float(excess[0, second]),
        "n(s)": found.model.pairs[0].sum(-1), "d^D": found.model.visits[0],
        "d of π̄1": found.occupancy[0, first], "w of π̄1": case.ratio[0, first], "Dis of π̄1": case.distance[0, first],
        "d of π̄2": found.occupancy[0, second], "w of π̄2": case.ratio[0, second], "Dis of π̄2": case.distance[0, second],
    }
    if width == found.size and width > 1:
        pushed = found.propagate(case.ratio * case.distance)[0, at]
        numbers |= {
            "policy checked": at, "π": found.policies[0, at], "V": found.value[0, at],
            "V̂": found.empirical_value[0, at] - float(case.alphas[0]) * pushed, "w": case.ratio[0, at],
            "Dis": case.distance[0, at], "n^{-1/2}_π": found.uncertainty[0, at],
        }
    return numbers


def print_replay(result: Replay, console: Console) -> None:
    """The instance, the numbers and the outcome in a terminal."""
    made = result.instances
    console.print(f"[bold]{result.statement.title}[/bold] · {result.identifier}", soft_wrap=True)
    console.print(f"  if   {result.statement.hypotheses}\n  then {result.statement.claim}", soft_wrap=True)
    console.print("\n[bold]Instance[/bold] (P, r, ρ; then n(s,a,s') of the log)")
    with np.printoptions(precision=4, suppress=True, linewidth=110):
        console.print(_indent(f"P =\n{made.mdp.transition[0]}\nr =\n{made.mdp.reward[0]}\nρ = {made.mdp.start[0]}"),
                      highlight=False, markup=False)
        counts = np.rint(made.model.transition[0] * made.model.pairs[0][..., None]).astype(np.int64)
        console.print(_indent(f"n =\n{counts}"), highlight=False, markup=False)
        console.print("\n[bold]Numbers[/bold]")
        for name, value in result.numbers.items():
            shown = f"{value:.6g}" if isinstance(value, float) else str(value).replace("\n", "\n" + " " * 28)
            console.print(f"  {name:<26}{shown}", highlight=False, markup=False)
    colour = "red" if result.outcome == Outcome.VIOLATED else "green"
    console.print(f"\n[{colour}]{result.outcome.name.lower().replace('_', ' ')}[/], margin {result.margin:.6g}")
    if result.frequency is not None:
        console.print(f"Over redrawn logs of this MDP it is violated in {result.frequency:.1%}.")


def _indent(text: str) -> str:
    return "\n".join("  " + line for line in text.splitlines())
