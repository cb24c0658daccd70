"""Tables of what is behind the scores: estimators, critics, events, cost, settings, data, runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sapp.report.curves import weighted
from sapp.report.records import Experiment
from sapp.report.report_tables import Entry, Line, Table, cell, line
from sapp.report.score_summary import Cell, beyond_limit, ratio_quality
from sapp.weights.controls import ControlKind

DIAGNOSTICS = {
    "weights/mean": ("mean state weight", False),
    "ratio/zeta_mean": ("mean ζ (should be near 1)", False),
    "ratio/ess": ("effective sample size (share of the data)", True),
    "ratio/clamped": ("share of ratios clamped", False),
    "ratio/unreliable": ("share of steps with an unreliable ratio estimate", False),
    "ratio/reward": ("predicted reward per step", False),
    "ratio/reward_normalised": ("predicted reward per step, self-normalised", False),
}
"""What is told of the ratio estimator: label, and whether on a logarithmic axis."""


def quality(experiment: Experiment) -> Table | None:
    """How the reward that the ratios predict follows the return."""
    lines = []
    for each in ratio_quality(experiment):
        row = (
            each.dataset, each.variant, each.seed, _correlation(each.correlation), _correlation(each.normalised),
            each.points,
        )  # fmt: skip
        lines.append(line(row, each.dataset, each.variant, each.variant == experiment.focus))
    caption = (
        "Do the ratios know how good the policy is? Spearman's rank correlation, over training, of the reward that "
        "they predict (logged rewards, weighted) and of the return played: 1 means they rise and fall together. "
        "Self-normalised: the weighted rewards divided by the sum of the weights."
    )
    head = ("dataset", "method", "seed", "rank correlation", "self-normalised", "evaluations")
    return Table("Quality of the ratios", caption, head, tuple(lines)) if lines else None


def _correlation(value: float | None) -> Entry:
    if value is not None and not np.isfinite(value):
        return Entry("none: one of them is constant")
    return cell(value, 2)


def estimator(experiment: Experiment) -> Table | None:
    """The ratio estimator's diagnostics."""
    names = [name for name in DIAGNOSTICS if any(name in member.metrics for member in experiment.members)]
    lines = []
    for dataset in experiment.datasets:
        for variant in experiment.variants:
            values: list[Entry] = []
            for name in names:
                means = [
                    float(np.mean([value for step, value in member.metrics[name] if step > 0]))
                    for member in experiment.of(dataset, variant)
                    if weighted(member) and any(step > 0 for step, _ in member.metrics.get(name, ()))
                ]
                values.append(Entry(f"{np.mean(means):.3g}", value=float(np.mean(means))) if means else Entry(""))
            if any(entry.text for entry in values):
                lines.append(line((dataset, variant, *values), dataset, variant, variant == experiment.focus))
    head = ("dataset", "method", *(DIAGNOSTICS[name][0] for name in names))
    caption = (
        "The ratio estimator over the last phase, mean over steps and seeds. A method that ignores the weights (CQL) "
        "may train an estimator all the same, so that all methods take the same steps."
    )
    return Table("Ratio estimator", caption, head, tuple(lines)) if lines else None


def beyond(experiment: Experiment) -> Table | None:
    """Members whose critic values more than any policy can earn."""
    lines = [
        line((each.dataset, each.variant, each.seed, each.first, 100 * each.share, each.value, each.limit),
             each.dataset, each.variant)
        for each in beyond_limit(experiment)
    ]  # fmt: skip
    head = ("dataset", "method", "seed", "from step", "% of its steps", "furthest value", "limit there")
    caption = (
        "Members whose critic's mean value went beyond the limit of what the logged rewards can add up to: from there "
        "on their values are not estimates of any return."
    )
    return Table("Values beyond their limit", caption, head, tuple(lines)) if lines else None


def events(experiment: Experiment) -> Table | None:
    """How often what happened, by kind as the runs name it."""
    kinds = list(dict.fromkeys(kind for member in experiment.members for _, kind in member.events))
    lines = []
    for dataset in experiment.datasets:
        for variant in experiment.variants:
            members = experiment.of(dataset, variant)
            happened = [kind for each in members for _, kind in each.events]
            if happened:
                counts = [happened.count(kind) for kind in kinds]
                lines.append(line((dataset, variant, len(members), *counts), dataset, variant))
    caption = (
        "Events of all seeds together. A ratio estimate is unreliable while it fails its health checks (mean ζ, "
        "effective sample size, size of ν); a member that diverged stopped at its last finite state."
    )
    head = ("dataset", "method", "members", *(kind.sentence for kind in kinds))
    return Table("Events", caption, head, tuple(lines)) if lines else None


def cost(experiment: Experiment) -> Table | None:
    """What a method holds and how long it takes."""
    speed: dict[str, tuple[float, int, str]] = {}
    for timing in experiment.timings:
        steps, members = int(timing["steps"]), int(timing["members"])
        if steps > 0:
            each = 1e6 * float(timing["seconds"]) / steps / members
            for variant in timing["variants"].split("; "):
                speed.setdefault(variant, (each, members, timing["device"]))
    lines = []
    for variant in experiment.variants:
        member = next((each for each in experiment.members if each.variant == variant), None)
        held: Mapping[str, Any] | None = member.facts.get("parameters") if member is not None else None
        if held is None and variant not in speed:
            continue
        measured: tuple[Any, ...] = speed.get(variant, (None, None, ""))
        row: list[Any] = [variant, (held or {}).get("algorithm"), (held or {}).get("weights"), *measured]
        lines.append(line(row, "", variant, variant == experiment.focus))
    head = (
        "method", "numbers held", "of the ratio estimator", "microseconds per member's update", "members at once",
        "device",
    )  # fmt: skip
    caption = (
        "What a method costs: numbers held while training (parameters, targets, optimisers' moments) and measured "
        "time, compilation left out. Methods trained in one population share its time: CQL's own is less than the "
        "population's, as it needs no ratio estimator."
    )
    return Table("Cost", caption, head, tuple(lines)) if lines else None


def settings(experiment: Experiment) -> Table:
    """Hyper-parameters that differ between methods or datasets, one row per parameter."""
    seen: dict[str, dict[str, list[str]]] = {}
    for member in experiment.members:
        for name, value in flat(member.algorithm):
            values = seen.setdefault(name, {}).setdefault(member.variant, [])
            text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
            if text not in values:
                values.append(text)
    variants = [variant for variant in experiment.variants if any(m.variant == variant for m in experiment.members)]
    lines = []
    for name, by_variant in seen.items():
        texts = [" or ".join(by_variant.get(variant, ["–"])) for variant in variants]
        if len(set(texts)) > 1 or len(variants) == 1:
            lines.append(Line((Entry(name), *(Entry(text) for text in texts))))
    caption = "Hyper-parameters in which methods differ; the full configuration of every method is below."
    return Table("Settings", caption, ("setting", *variants), tuple(lines), ("", *variants))


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


def data(experiment: Experiment) -> Table:
    """Size, environment and fingerprint of each dataset."""
    lines = []
    for dataset in experiment.datasets:
        facts = next(member.facts for member in experiment.members if member.dataset == dataset)
        words = [str(facts.get(name) or "") for name in ("environment", "physics", "fingerprint")]
        row = dataset, facts.get("transitions"), facts.get("episodes"), *words[:2], words[2][:16]
        lines.append(line(row, dataset))
    head = ("dataset", "transitions", "episodes", "environment", "physics", "fingerprint")
    caption = "The data. The fingerprint is a digest of all transitions: equal fingerprints are equal data."
    return Table("Data", caption, head, tuple(lines))


def runs(found: Sequence[Cell]) -> Table:
    """Which runs the numbers rest on."""
    lines = [
        line((each.dataset, each.variant, seed, run), each.dataset, each.variant)
        for each in found
        for seed, run in each.runs.items()
    ]
    caption = "Which runs every number rests on: the key of a run in the results store, or its folder and name."
    return Table("Runs behind the numbers", caption, ("dataset", "method", "seed", "run"), tuple(lines))
