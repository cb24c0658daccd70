"""What a report is made from: everything recorded of each member, one member per variant, dataset and seed."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from sapp.runs.events import EventKind

Played = Mapping[int, float]
"""What each episode of an evaluation scored, by its number."""


@dataclass(frozen=True)
class Member:
    """One trained learner and everything recorded of it.

    Attributes:
        variant: the method, as tables name it.
        dataset: by name.
        seed: of the learner.
        run: its key in the store, or folder and name.
        unit: "score" (0 random, 100 expert) or "return".
        evaluations: by step of the last phase, what each episode scored, by its number.
        starts: what the start states of episodes depend on; two members with the same play episode e from one state.
        metrics: (step, value) by name.
        events: (step, kind) of what happened.
        algorithm: hyper-parameters.
        facts: about the data, the protocol and the versions.
        stamp: when it was last written, to tell the newest of two.
    """

    variant: str
    dataset: str
    seed: int
    run: str
    unit: str
    evaluations: Mapping[int, Played]
    starts: Hashable
    metrics: Mapping[str, Sequence[tuple[int, float]]]
    events: Sequence[tuple[int, EventKind]]
    algorithm: Mapping[str, Any]
    facts: Mapping[str, Any]
    stamp: float = 0.0

    def mean(self, step: int, episodes: Iterable[int] | None = None) -> float:
        """Mean over the episodes of an evaluation, or over some of them."""
        played = self.evaluations[step]
        return float(np.mean([played[episode] for episode in sorted(played if episodes is None else episodes)]))


@dataclass(frozen=True)
class Experiment:
    """Members that belong in one table.

    Attributes:
        name: such as "table1".
        scale: "smoke", "small" or "paper"; empty for run folders.
        title: of the section.
        question: that it answers.
        focus: the variant that the others are compared with.
        variants: in the order of the tables.
        datasets: in the order of the paper.
        members: at most one per variant, dataset and seed.
        source: where they were read.
        notes: what was done to the members while reading them, in words.
        timings: rows of how long training took.
        videos: animated pictures of policies.
    """

    name: str
    scale: str
    title: str
    question: str
    focus: str
    variants: tuple[str, ...]
    datasets: tuple[str, ...]
    members: tuple[Member, ...]
    source: str
    notes: tuple[str, ...] = ()
    timings: Sequence[Mapping[str, str]] = field(default_factory=tuple)
    videos: Sequence[Path] = field(default_factory=tuple)

    def of(self, dataset: str, variant: str) -> list[Member]:
        """Members of a variant on a dataset, by seed."""
        return sorted(
            (each for each in self.members if (each.dataset, each.variant) == (dataset, variant)),
            key=lambda each: each.seed,
        )


def unique(members: Sequence[Member]) -> tuple[list[Member], list[str]]:
    """One member per variant, dataset and seed, the newest (of equally old ones the last), and what was left out."""
    kept: dict[tuple[str, str, int], Member] = {}
    notes: list[str] = []
    for member in members:
        key = member.variant, member.dataset, member.seed
        older = kept.get(key)
        if older is not None:
            if older.stamp > member.stamp:
                member, older = older, member
            notes.append(
                f"{member.variant} on {member.dataset}, seed {member.seed}, is there more than once: the newest counts "
                f"({member.run}, not {older.run})."
            )
        kept[key] = member
    return list(kept.values()), notes


def told_apart(members: Sequence[Member]) -> tuple[list[Member], list[str]]:
    """Members whose names agree but not their data or hyper-parameters get names that say which they are."""
    notes: list[str] = []
    prints: dict[str, set[Any]] = {}
    for member in members:
        prints.setdefault(member.dataset, set()).add(member.facts.get("fingerprint"))
    renamed = []
    for member in members:
        if len(prints[member.dataset]) > 1:
            notes.append(f"Different data are called {member.dataset}: their fingerprints distinguish them.")
            member = replace(member, dataset=f"{member.dataset} #{str(member.facts.get('fingerprint'))[:6]}")
        renamed.append(member)
    settings: dict[tuple[str, str], set[str]] = {}
    for member in renamed:
        described = json.dumps(member.algorithm, sort_keys=True)
        settings.setdefault((member.variant, member.dataset), set()).add(described)
    several = {variant for (variant, _), found in settings.items() if len(found) > 1}
    notes += [f"{name} has other hyper-parameters in other runs: these are separate rows." for name in several]
    out = [
        replace(each, variant=f"{each.variant} [{each.run.rpartition(': ')[0]}]") if each.variant in several else each
        for each in renamed
    ]
    return out, list(dict.fromkeys(notes))


def dataset_order(members: Iterable[Member]) -> tuple[str, ...]:
    """Names in the order of the paper: by environment, then by quality; other names in the order they come."""
    from sapp.data.benchmark_names import d4rl_parts
    from sapp.experiments.paper import QUALITIES

    names = list(dict.fromkeys(member.dataset for member in members))

    def place(name: str) -> tuple[str, int, int]:
        environment, quality = d4rl_parts(name) or (name.split("-")[0], "")
        return environment, QUALITIES.index(quality) if quality in QUALITIES else len(QUALITIES), names.index(name)

    return tuple(sorted(names, key=place))
