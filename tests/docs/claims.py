"""Fragments of pages that hold results, made from committed rows; each must stand on its page word for word."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sapp.core.comparisons import holm
from sapp.core.statistics import Estimate, Interval, average, student
from sapp.report.score_summary import cells, differences
from sapp.report.sources import read
from studies.baselines import tables as baselines
from studies.physics import tables as physics
from studies.six_datasets.tables import ROWS as SIX
from studies.skewed_coverage import tables as skewed
from studies.state_ratios import page as ratios
from studies.theory.rows import read as read_lines
from studies.theory.tables import ROWS as THEORY
from studies.uneven_coverage import page as uneven

CLAIMS: dict[str, Callable[[], Iterator[str]]] = {}
"""By page."""
Claims = Callable[[], Iterator[str]]


def claims_of(page: str) -> Callable[[Claims], Claims]:
    """Register a function that makes a page's fragments."""

    def register(made: Claims) -> Claims:
        CLAIMS[page] = made
        return made

    return register


def told(found: Interval | Estimate) -> tuple[str, str]:
    """An estimate and the ends of its interval, as pages print them."""
    estimate, low, high = found if isinstance(found, Interval) else found.interval()
    return f"{estimate:.1f}".replace("-", "−"), f"{low:.1f} to {high:.1f}".replace("-", "−")


@claims_of("README.md")
def readme() -> Iterator[str]:
    """What the front page says of each study."""
    replays = [float(row["median"]) for row in physics.rows() if row["physics"] == "d4rl"]
    yield f"median error at most {max(replays):.1e} in".replace("e-0", "e-")
    (experiment,) = read([SIX])
    (gap,) = (each for each in differences(experiment, cells(experiment)) if each.corrected.p < 0.05)
    yield "({}, {}, {})".format(gap.dataset, *told(gap.corrected.raw))
    yield from about_uneven_coverage()
    yield from about_skewed_coverage()
    yield from about_baselines()
    yield from about_ratios()
    yield f"on {int(read_lines(THEORY / 'verdicts.csv')[0]['problems']):,} finite MDPs"


def about_uneven_coverage() -> Iterator[str]:
    """The cells of the study's tables."""

    def row(table: str, name: str) -> list[str]:
        line = next(line for line in table.splitlines() if line.startswith(f"| {name} |"))
        return [cell.strip() for cell in line.strip("| ").split(" | ")]

    exact, learned = uneven.exact(), uneven.learned()
    estimate, _, interval = row(exact, "SA-CQL, w")[2].partition(" (")
    yield f"({estimate} ‰, {interval.rstrip(')')}, of {row(exact, 'CQL')[1]})"
    estimate, _, interval = row(learned, "SA-CQL, true ratio")[3].partition(" (")
    yield f"{estimate} ‰ ({interval} of {row(learned, 'CQL')[2]} with the true ratio"
    yield f"{row(learned, 'SA-CQL, DualDICE')[3]} with DualDICE's"
    yield f"+{row(learned, 'shuffled')[3].split()[0]} shuffled"


def about_skewed_coverage() -> Iterator[str]:
    """Means of five datasets, late in training."""
    (experiment,) = read([skewed.ROWS / "scores.csv"])
    means = {key: average(each) for key, each in skewed.gaps(experiment, 0.5).items()}
    corrected = dict(zip(means, holm([each.p for each in means.values()]), strict=True))
    estimate, interval = told(means["occupancy", "shuffled"])
    yield f"{estimate} ({interval}; Holm's p {corrected['occupancy', 'shuffled']:.2f}) points"
    yield "{} ({}) above CQL".format(*told(means["occupancy", "CQL"]))


def about_baselines() -> Iterator[str]:
    """SA-TD3+BC's differences, and where EDAC ends."""
    made = baselines.scores()
    dataset = "halfcheetah-medium-v2"
    mine = made["sa-td3bc", "sa-td3bc", dataset]
    for other, words in (("td3bc", "above TD3+BC"), ("shuffled-sa-td3bc", "is left over its own weights")):
        theirs = made["sa-td3bc", other, dataset]
        step = max(set(mine) & set(theirs))
        gap = student([mine[step][seed] - theirs[step][seed] for seed in mine[step]])
        yield "{} ({}) {}".format(*told(gap), words)
    for name in ("halfcheetah", "hopper"):
        found = baselines.of(made, "edac", "edac", f"{name}-medium-v2")
        yield f"{student(list(found[max(found)].values())).value:.1f} on {name}"


def about_ratios() -> Iterator[str]:
    """Rank correlations by distance from the data."""
    made = ratios.rows()

    def by_shift(problem: str, estimator: str) -> str:
        means = (student(ratios.cell(made, problem, estimator, shift, "spearman")).value for shift in ratios.SHIFTS)
        return ", ".join(f"{value:.2f}".replace("-", "−") for value in means)

    yield f"HalfCheetah {by_shift('halfcheetah', 'now')};"
    for words, problem in (("a pendulum", "pendulum"), ("corridors", "corridors")):
        yield f"{words} {by_shift(problem, 'now')} ({by_shift(problem, 'dualdice regression')})"
