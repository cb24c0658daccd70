"""Which tables and charts an experiment gets, and the sentences that say what they show."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sapp.experiments.paper import published
from sapp.report.chart import Chart
from sapp.report.records import Experiment
from sapp.report.report_tables import Entry, Line, Table, fixed, plain, with_interval
from sapp.report.score_summary import (
    Aggregate,
    Cell,
    Curve,
    Difference,
    aggregates,
    cells,
    differences,
    learning_curves,
    metric_curves,
    profiles,
    ratio_quality,
    weighted,
)
from sapp.weights.controls import ControlKind

CONTROL_WORDS = {
    "CQL": "conservative Q-learning: pessimism of the same weight in every state",
    "SA-CQL": "state-aware CQL: in each state, pessimism is weighted by how often the learned policy visits it",
    "shuffled": "control: SA-CQL's own weights, dealt out to the wrong states",
    "matched": "control: every state gets SA-CQL's mean weight, that is CQL with a better chosen weight",
    "random": "control: weights drawn at random from SA-CQL's range (the paper's s-SA-CQL)",
    "CQL-half": "CQL with half its weight everywhere",
}
"""Methods in plain words."""

DIAGNOSTICS = {
    "weights/mean": ("mean state weight", False),
    "ratio/zeta_mean": ("mean ζ (should be near 1)", False),
    "ratio/ess": ("effective sample size (share of the data)", True),
    "ratio/clamped": ("share of ratios clamped", False),
    "ratio/unreliable": ("share of steps with an unreliable ratio estimate", False),
    "ratio/reward": ("ζ-weighted reward a step", False),
}
"""What is drawn of the ratio estimator: label, and whether on a logarithmic axis."""


@dataclass(frozen=True)
class Content:
    """Everything a page shows of one experiment."""

    experiment: Experiment
    sentences: tuple[str, ...]
    tables: Mapping[str, Table]
    curves: tuple[tuple[str, Chart], ...]
    profile: Chart | None
    diagnostics: tuple[tuple[str, Chart], ...]
    cells: tuple[Cell, ...]


def content(experiment: Experiment) -> Content:
    """Compute an experiment's numbers and put them into tables and charts."""
    found = cells(experiment)
    gaps = differences(experiment, found)
    over_all = aggregates(experiment, found)
    named = {
        "scores": _scores(experiment, found),
        "differences": _differences(experiment, gaps),
        "aggregates": _aggregates(experiment, over_all),
        "quality": _quality(experiment),
        "diagnostics": _estimator(experiment),
        "events": _events(experiment),
        "cost": _cost(experiment),
        "settings": _settings(experiment),
        "data": _data(experiment),
        "runs": _runs(found),
    }
    return Content(
        experiment,
        tuple(_sentences(experiment, found, gaps, over_all)),
        {name: table for name, table in named.items() if table is not None and table.lines},
        tuple(_curves(experiment)),
        _profile(experiment, found),
        tuple(_diagnostics(experiment)),
        tuple(found),
    )


def _scores(experiment: Experiment, found: Sequence[Cell]) -> Table:
    lines = []
    for cell in found:
        gap = None if cell.paper is None else cell.final.estimate - cell.paper
        entries = (
            Entry(cell.dataset), Entry(cell.column), with_interval(cell.final), plain(cell.paper, style="paper"),
            plain(gap), Entry(" ".join(fixed(value) for value in cell.by_seed)), plain(cell.recent),
            plain(cell.best), Entry(f"{cell.step:,}", value=cell.step),
        )  # fmt: skip
        lines.append(Line(entries, cell.dataset, cell.column, cell.column == experiment.focus))
    head = (
        "dataset", "method", "final (95 % interval)", "the paper", "ours − paper", "each seed", "last three", "best",
        "steps",
    )  # fmt: skip
    units = {cell.unit for cell in found}
    what = "Normalised scores: 0 is a random policy, 100 the reference expert." if units == {"score"} else "Returns."
    caption = (
        f"{what} Final: the last checkpoint, with an interval that draws seeds and episodes anew. Last three: the mean "
        "of the last three evaluations. Best: the highest evaluation, chosen after the fact, which flatters every "
        "method. The paper's numbers are after one million steps, three seeds."
    )
    return Table("Scores", caption, head, tuple(lines), frozenset({0, 1, 5}))


def _differences(experiment: Experiment, gaps: Sequence[Difference]) -> Table:
    lines = [
        Line(
            (
                Entry(gap.dataset), Entry(gap.other), with_interval(gap.value),
                Entry(gap.verdict, style={"higher": "higher", "lower": "lower"}.get(gap.verdict, "")),
                Entry(str(gap.pairs), value=gap.pairs),
            ),
            gap.dataset, gap.other,
        )
        for gap in gaps
    ]  # fmt: skip
    caption = (
        f"{experiment.focus} minus each other method at the final checkpoint, paired by seed and start state. Where "
        "the 95 % interval holds 0 the runs do not tell the two apart."
    )
    head = ("dataset", "compared with", f"{experiment.focus} − it (95 % interval)", f"{experiment.focus} is", "pairs")
    return Table("Paired differences", caption, head, tuple(lines), frozenset({0, 1, 3}))


def _aggregates(experiment: Experiment, found: Sequence[Aggregate]) -> Table | None:
    if not found:
        return None
    lines = []
    for each in found:
        entries = (
            Entry(each.column), with_interval(each.iqm), with_interval(each.mean), plain(each.paper, style="paper"),
            with_interval(each.difference) if each.difference else Entry(""),
            with_interval(each.improvement, 2) if each.improvement else Entry(""),
        )  # fmt: skip
        lines.append(Line(entries, "", each.column, each.column == experiment.focus))
    focus = experiment.focus
    head = (
        "method",
        "interquartile mean",
        "mean",
        "the paper's mean",
        f"{focus} − it",
        f"chance that {focus} beats it",
    )
    tasks = found[0].tasks
    caption = (
        f"Over {tasks} dataset{'s' if tasks > 1 else ''}, methods that have them all; final checkpoints. Intervals "
        "(95 %) draw seeds anew within each dataset. The chance is that of a run met at random; 0.5 is even."
    )
    return Table("Over all datasets", caption, head, tuple(lines))


def _quality(experiment: Experiment) -> Table | None:
    found = ratio_quality(experiment)
    if not found:
        return None
    lines = [
        Line(
            (
                Entry(each.dataset), Entry(each.column), Entry(str(each.seed), value=each.seed),
                plain(each.correlation, 2) if np.isfinite(each.correlation) else Entry("none: one of them is constant"),
                Entry(str(each.points), value=each.points),
            ),
            each.dataset, each.column, each.column == experiment.focus,
        )
        for each in found
    ]  # fmt: skip
    caption = (
        "Do the ratios know how good the policy is? Rank correlation, over training, of the reward that they predict "
        "(logged rewards weighted with ζ) and of the return played: 1 means they rise and fall together."
    )
    head = ("dataset", "method", "seed", "rank correlation", "evaluations")
    return Table("Quality of the ratios", caption, head, tuple(lines), frozenset({0, 1}))


def _estimator(experiment: Experiment) -> Table | None:
    names = [name for name in DIAGNOSTICS if any(name in member.metrics for member in experiment.members)]
    if not names:
        return None
    lines = []
    for dataset in experiment.datasets:
        for column in experiment.columns:
            values: list[Entry] = []
            for name in names:
                means = [
                    float(np.mean([value for step, value in member.metrics[name] if step > 0]))
                    for member in experiment.of(dataset, column)
                    if weighted(member) and any(step > 0 for step, _ in member.metrics.get(name, ()))
                ]
                values.append(Entry(f"{np.mean(means):.3g}", value=float(np.mean(means))) if means else Entry(""))
            if any(entry.text for entry in values):
                lines.append(
                    Line((Entry(dataset), Entry(column), *values), dataset, column, column == experiment.focus)
                )
    head = ("dataset", "method", *(DIAGNOSTICS[name][0] for name in names))
    caption = (
        "The ratio estimator over the last phase, mean over steps and seeds. A method that ignores the weights (CQL) "
        "may carry an estimator all the same, so that all train alike."
    )
    return Table("Ratio estimator", caption, head, tuple(lines), frozenset({0, 1}))


def _events(experiment: Experiment) -> Table | None:
    lines = []
    for dataset in experiment.datasets:
        for column in experiment.columns:
            counts = {"diverged": 0, "sick": 0, "healthy again": 0}
            fallen = 0
            members = experiment.of(dataset, column)
            for member in members:
                for _, event in member.events:
                    for word in counts:
                        counts[word] += word in event
                    fallen += "weights are 1" in event
            if any(counts.values()):
                numbers = [counts["sick"], fallen, counts["healthy again"], counts["diverged"]]
                entries = tuple(Entry(str(value), value=value) for value in (len(members), *numbers))
                lines.append(Line((Entry(dataset), Entry(column), *entries), dataset, column))
    if not lines:
        return None
    head = ("dataset", "method", "members", "fell sick", "of these: fell back to weight 1", "recovered", "diverged")
    caption = (
        "Events of all seeds together. Sick: the estimated ratios fail their health checks (mean ζ, effective sample "
        "size, size of ν). Diverged: training stopped at the last finite state."
    )
    return Table("Events", caption, head, tuple(lines), frozenset({0, 1}))


def _cost(experiment: Experiment) -> Table | None:
    speed: dict[str, tuple[float, int, str]] = {}
    for row in experiment.timings:
        steps, members = int(row["steps"]), int(row["members"])
        if steps > 0:
            each = 1e6 * float(row["seconds"]) / steps / members
            for column in row["variants"].split("; "):
                speed.setdefault(column, (each, members, row["device"]))
    lines = []
    for column in experiment.columns:
        member = next((each for each in experiment.members if each.column == column), None)
        held: Mapping[str, Any] | None = member.facts.get("parameters") if member is not None else None
        if held is None and column not in speed:
            continue
        sizes = (held or {}).get("algorithm"), (held or {}).get("weights")
        numbers = [Entry("") if size is None else Entry(f"{size:,}", value=size) for size in sizes]
        entries = (Entry(column), *numbers, *_speed(speed.get(column)))
        lines.append(Line(entries, "", column, column == experiment.focus))
    head = (
        "method", "numbers held", "of the ratio estimator", "microseconds a member's update", "members at once",
        "device",
    )  # fmt: skip
    caption = (
        "What a method costs: numbers held while training (parameters, targets, optimisers' moments) and measured "
        "time, compilation left out. Methods trained in one population share its time: CQL's own is less than the "
        "population's, as it needs no ratio estimator."
    )
    return Table("Cost", caption, head, tuple(lines), frozenset({0, 5})) if lines else None


def _speed(measured: tuple[float, int, str] | None) -> tuple[Entry, Entry, Entry]:
    if measured is None:
        return Entry(""), Entry(""), Entry("")
    time, members, device = measured
    return plain(time), Entry(str(members), value=members), Entry(device)


def _settings(experiment: Experiment) -> Table:
    """Hyper-parameters that differ between methods or datasets, one row a parameter."""
    seen: dict[str, dict[str, list[str]]] = {}
    for member in experiment.members:
        for name, value in flat(member.algorithm):
            values = seen.setdefault(name, {}).setdefault(member.column, [])
            text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
            if text not in values:
                values.append(text)
    columns = [column for column in experiment.columns if any(m.column == column for m in experiment.members)]
    lines = []
    for name, by_column in seen.items():
        texts = [" or ".join(by_column.get(column, ["–"])) for column in columns]
        if len(set(texts)) > 1 or len(columns) == 1:
            lines.append(Line((Entry(name), *(Entry(text) for text in texts))))
    caption = "Hyper-parameters in which methods differ; the full configuration of every method is below."
    return Table("Settings", caption, ("setting", *columns), tuple(lines), frozenset(range(len(columns) + 1)))


def flat(description: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """A described algorithm as (dotted name, value)."""
    out: list[tuple[str, Any]] = []
    for name, value in description.items():
        if isinstance(value, Mapping):
            out += flat(value, f"{prefix}{name}.")
        elif name == "kind" and description.get("class") == "Control":
            out.append((f"{prefix}{name}", ControlKind(int(value)).label))
        else:
            out.append((f"{prefix}{name}", value))
    return out


def _data(experiment: Experiment) -> Table:
    lines = []
    for dataset in experiment.datasets:
        facts = next(member.facts for member in experiment.members if member.dataset == dataset)
        counts = [facts.get(name) for name in ("transitions", "episodes")]
        numbers = [Entry("") if value is None else Entry(f"{value:,}", value=value) for value in counts]
        entries = (
            Entry(dataset), *numbers, Entry(str(facts.get("environment") or "")),
            Entry(str(facts.get("physics") or "")),
            Entry(str(facts.get("fingerprint") or "")[:16]),
        )  # fmt: skip
        lines.append(Line(entries, dataset))
    head = ("dataset", "transitions", "episodes", "environment", "physics", "fingerprint")
    caption = "The data. The fingerprint is a digest of all transitions: equal fingerprints are equal data."
    return Table("Data", caption, head, tuple(lines), frozenset({0, 3, 4, 5}))


def _runs(found: Sequence[Cell]) -> Table:
    lines = [
        Line(
            (Entry(cell.dataset), Entry(cell.column), Entry(str(seed), value=seed), Entry(run)),
            cell.dataset,
            cell.column,
        )
        for cell in found
        for seed, run in zip(cell.seeds, cell.runs, strict=True)
    ]
    caption = "Which runs every number rests on: the key of a run in the results store, or its folder and name."
    return Table(
        "Runs behind the numbers", caption, ("dataset", "method", "seed", "run"), tuple(lines), frozenset({0, 1, 3})
    )


def _curves(experiment: Experiment) -> list[tuple[str, Chart]]:
    out = []
    for dataset in experiment.datasets:
        found = learning_curves(experiment, dataset)
        if not found:
            continue
        unit = next(member.unit for member in experiment.members if member.dataset == dataset)
        paper = [(column, published(experiment.name, column, dataset)) for column in ("CQL", experiment.focus)]
        references = [(column, value) for column, value in dict(paper).items() if value is not None]
        label = "normalised score" if unit == "score" else "return"
        chart = Chart(dataset, "gradient steps", label, found, experiment.columns, references=references)
        out.append((dataset, chart))
    return out


def _profile(experiment: Experiment, found: Sequence[Cell]) -> Chart | None:
    made = profiles(experiment, found)
    if not made:
        return None
    curves = [Curve(name, each.thresholds, each.share, each.low, each.high) for name, each in made.items()]
    return Chart("Performance profile", "score", "share of runs that score higher", curves, experiment.columns)


def _diagnostics(experiment: Experiment) -> list[tuple[str, Chart]]:
    out = []
    for dataset in experiment.datasets:
        for name, (label, log) in DIAGNOSTICS.items():
            curves = metric_curves(experiment, dataset, name)
            if curves:
                out.append((dataset, Chart(f"{dataset}: {label}", "steps; before 0: pre-training", label, curves,
                                           experiment.columns, log)))  # fmt: skip
    return out


def _sentences(
    experiment: Experiment, found: Sequence[Cell], gaps: Sequence[Difference], over_all: Sequence[Aggregate]
) -> list[str]:
    focus = experiment.focus
    out = []
    mine = next((each for each in over_all if each.column == focus), None)
    if mine is not None:
        at = mine.mean
        out.append(
            f"{focus} scores {fixed(at.estimate)} on average over {mine.tasks} dataset{'s' if mine.tasks > 1 else ''} "
            f"(95 % interval {fixed(at.low)} to {fixed(at.high)})."
        )
    for other in experiment.columns:
        own = [gap for gap in gaps if gap.other == other]
        if not own:
            continue
        counts = {word: sum(gap.verdict == word for gap in own) for word in dict.fromkeys(g.verdict for g in own)}
        told = [f"{word} on {count}" for word, count in counts.items() if count]
        aggregate = next((each for each in over_all if each.column == other), None)
        tail = ""
        if aggregate is not None and aggregate.difference is not None:
            gap = aggregate.difference
            tail = f"; over all, {gap.estimate:+.1f} (95 % interval {gap.low:+.1f} to {gap.high:+.1f})".replace(
                "-", "−"
            )
        out.append(
            f"Against {other}: {focus} is {', '.join(told)} of {len(own)} dataset{'s' if len(own) > 1 else ''}{tail}."
        )
    most = max((len(cell.seeds) for cell in found), default=0)
    if 0 < most < 5:
        out.append(f"At most {most} seed{'s' if most > 1 else ''} a method and dataset: intervals are rough and miss "
                   "the truth more often than one time in twenty.")  # fmt: skip
    if "scale: smoke" in experiment.title:
        out.append("This is the smoke scale: tiny networks, a few hundred steps. It shows that every part works, and "
                   "says nothing about which method is better.")  # fmt: skip
    return out


def configuration_text(experiment: Experiment, column: str) -> str:
    """The full configuration of a method, as JSON; where it differs between datasets, the first one's."""
    member = next(each for each in experiment.members if each.column == column)
    shown = {"algorithm": member.algorithm} | {
        name: member.facts[name] for name in ("phases", "evaluation", "versions") if name in member.facts
    }
    return json.dumps(shown, indent=1, ensure_ascii=False)
