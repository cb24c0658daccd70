"""An experiment as a declared grid: datasets × variants × seeds at a scale, in families that train as populations."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from sapp.algorithms import Algorithm
from sapp.algorithms import config as configuration
from sapp.core.errors import SappError, did_you_mean
from sapp.data import Dataset
from sapp.data.frames import FrameDataset
from sapp.runs.members import MemberId
from sapp.runs.phases import Phase, plain_protocol, prepared, sa_protocol

Maker = Callable[[str], Algorithm]
"""An algorithm by the name of the dataset it is for."""
Loader = Callable[[str, Path | None], Dataset | FrameDataset]
"""A dataset by its name, and the folder that was given for data."""


@dataclass(frozen=True)
class Scale:
    """How much of an experiment is run.

    Attributes:
        name: smoke, small or paper.
        steps: of the last phase.
        pretrain: of the plain algorithm before state weights count.
        ratio: in which only the ratio estimator learns.
        seeds: which.
        eval_every: steps between evaluations.
        eval_episodes: per member and evaluation.
        log_every: steps averaged in a row of metrics.
        changes: hyper-parameters, by dotted name, of every algorithm that has them.
        fallback: use weights of 1 while the ratio estimate is unreliable; the paper does not.
        note: what sets it apart from the scale of its name.
        eval_max_steps: where observations are frames, cut episodes of evaluation here.
    """

    name: str
    steps: int
    pretrain: int
    ratio: int
    seeds: tuple[int, ...]
    eval_every: int
    eval_episodes: int
    log_every: int
    changes: Mapping[str, Any] = field(default_factory=dict)
    fallback: bool = False
    note: str = ""
    eval_max_steps: int | None = None

    @property
    def label(self) -> str:
        """Name and note: results under one label are of one kind."""
        return f"{self.name}, {self.note}" if self.note else self.name


_SMOKE_SIZES: dict[str, Any] = {
    "hidden": (32, 32), "vae_hidden": (32, 32), "behaviour_hidden": (32, 32), "weights.of.hidden": (32, 32),
    "batch_size": 64, "action_samples": 2, "critics": 4, "passes": 4, "candidates": 10, "components": 2,
    "behaviour_steps": 100, "warm_steps": 0.0, "discount": 0.9, "critic_lr": 1e-3, "actor_lr": 1e-3,
    "weights.of.zeta_lr": 1e-3, "weights.of.ratio_lr": 1e-3,
}  # fmt: skip
"""Small networks that learn fast: enough to see every part at work, not to compare methods."""

SCALES = {
    "smoke": Scale("smoke", 400, 100, 100, (0, 1), 100, 10, 100, _SMOKE_SIZES),
    "small": Scale("small", 200_000, 20_000, 100_000, (0, 1, 2), 20_000, 10, 5_000),
    "paper": Scale("paper", 1_000_000, 20_000, 100_000, (0, 1, 2), 50_000, 10, 5_000),
}


@dataclass(frozen=True)
class Family:
    """Variants that train side by side.

    Attributes:
        name: of its run folders.
        variants: algorithms by the name that tables give them.
        state_aware: the paper's three phases; all variants are one learner until weights count, so the phases before
            the last are trained once per dataset and seed and then forked.
        lead_in: for plain variants beside state-aware ones: as many updates before the last phase as those have.
    """

    name: str
    variants: Mapping[str, Maker]
    state_aware: bool = False
    lead_in: bool = False

    def phases(self, scale: Scale, names: Sequence[str]) -> tuple[Phase, ...]:
        """The protocol of the family on some datasets."""
        own = max(make(name).preparation for make in self.variants.values() for name in names)
        if self.state_aware:
            return prepared(own, sa_protocol(scale.steps, scale.pretrain, scale.ratio))
        lead = (Phase("pretrain", scale.pretrain, ratio=False, weighted=False),) if self.lead_in else ()
        return prepared(own, (*lead, *plain_protocol(scale.steps)))


@dataclass(frozen=True)
class Grid:
    """An experiment.

    Attributes:
        name: of the command.
        title: what it reproduces.
        question: what it answers, in a sentence for people who do not know the code.
        scale: how much of it is run.
        datasets: by name.
        families: the variants, in the order of the table.
        focus: the variant that the others are compared with.
        load: a dataset by its name; default: by name as ``sapp.load`` does, or from a folder's files.
        members: the runs of a part that is no rectangle of variants, datasets and seeds; None: all.
        whole: the variants of the grid that this is a part of, which say where a variant stands in a table.
    """

    name: str
    title: str
    question: str
    scale: Scale
    datasets: tuple[str, ...]
    families: tuple[Family, ...]
    focus: str = "SA-CQL"
    load: Loader | None = None
    members: frozenset[MemberId] | None = None
    whole: tuple[str, ...] = ()

    @property
    def variants(self) -> tuple[str, ...]:
        """Names of all variants."""
        return tuple(name for family in self.families for name in family.variants)

    def position(self, variant: str) -> int:
        """Where a variant stands in the order of the table, in a part of a grid as in the whole one."""
        return (self.whole or self.variants).index(variant)

    def jobs(self, *, together: bool = False) -> Iterator[tuple[tuple[str, ...], Family]]:
        """What is trained side by side: a family on one environment's datasets, or on all of them ``together``."""
        environments = [name.split("-")[0] for name in self.datasets]
        for environment in [""] if together else dict.fromkeys(environments):
            chosen = zip(self.datasets, environments, strict=True)
            names = tuple(name for name, its in chosen if together or its == environment)
            for family in self.families:
                trained = {run.dataset for run in self.runs(family, names)}
                if own := tuple(name for name in names if name in trained):
                    yield own, family

    def runs(self, family: Family, datasets: Sequence[str]) -> list[MemberId]:
        """A family's runs on some datasets: variant by variant, dataset by dataset, seed by seed."""
        every = (MemberId(v, name, seed) for v in family.variants for name in datasets for seed in self.scale.seeds)
        return [each for each in every if self.members is None or each in self.members]

    def only(self, datasets: Sequence[str] | None, variants: Sequence[str] | None) -> Grid:
        """The part of the grid with some datasets and variants."""
        for what, chosen, known in (("dataset", datasets, self.datasets), ("method", variants, self.variants)):
            for name in chosen or ():
                if name not in known:
                    hint = did_you_mean(name, known)
                    raise SappError(f"{self.name}: no {what} {name!r}{hint}; it has {', '.join(known)}")
        families = tuple(
            replace(family, variants={name: family.variants[name] for name in kept})
            for family in self.families
            if (kept := [name for name in family.variants if not variants or name in variants])
        )
        kept_data = tuple(name for name in self.datasets if not datasets or name in datasets)
        return replace(self, datasets=kept_data, families=families, whole=self.whole or self.variants)

    def part(self, members: Collection[MemberId]) -> Grid:
        """The part of the grid with some runs, which need be no rectangle of variants, datasets and seeds."""
        names, variants, seeds = ({getattr(each, of) for each in members} for of in ("dataset", "algorithm", "seed"))
        part = self.only(sorted(names), sorted(variants))
        if missing := seeds - set(self.scale.seeds):
            raise SappError(f"{self.name}: no seed {min(missing)}; it has {', '.join(map(str, self.scale.seeds))}")
        return replace(part, members=frozenset(members))


def scaled(
    name: str, *, steps: int | None = None, seeds: Sequence[int] | None = None, precision: str | None = None,
    fallback: bool = False,
) -> Scale:  # fmt: skip
    """A scale by name, perhaps with another length, other seeds or another arithmetic."""
    if name not in SCALES:
        raise SappError(f"scale {name!r} is unknown{did_you_mean(name, SCALES)}; use {', '.join(SCALES)}")
    scale, notes = SCALES[name], []
    if steps is not None:
        if steps < 1:
            raise SappError(f"steps is {steps}: it must be at least 1")
        every = max(1, steps // 20 if name != "smoke" else steps // 4)
        rows = -(-every // scale.log_every)  # logged rows from one evaluation to the next
        log_every = max(1, every // rows)
        scale = replace(scale, steps=steps, eval_every=rows * log_every, log_every=log_every)
        notes.append(f"{steps:,} steps")
    if seeds is not None:
        scale = replace(scale, seeds=tuple(seeds))
    if precision is not None:
        scale = replace(scale, changes={**scale.changes, "precision": precision})
        notes.append(precision)
    if fallback:
        scale = replace(scale, fallback=True)
        notes.append("with fall-back")
    return replace(scale, note=", ".join(notes))


class Identity(Protocol):
    """What says which data a run learned from: a dataset itself, or what a table says of it."""

    @property
    def fingerprint(self) -> str:
        """Digest of all transitions."""

    @property
    def environment(self) -> str | None:
        """In which policies are played."""

    @property
    def physics(self) -> str | None:
        """Of that environment."""


def run_key(
    algorithm: Algorithm,
    dataset: Identity,
    seed: int,
    phases: Sequence[Phase],
    scale: Scale,
    eval_seed: int = 0,
) -> str:
    """A name for everything that determines a run's results: two runs of one key are one run."""
    content = {
        "algorithm": configuration.describe(algorithm),
        "data": [dataset.fingerprint, dataset.environment, dataset.physics],
        "seed": seed,
        "phases": [asdict(phase) for phase in phases],
        "evaluation": [scale.eval_every, scale.eval_episodes, eval_seed],
        "log_every": scale.log_every,
    }
    if scale.eval_max_steps is not None:
        content["eval_max_steps"] = scale.eval_max_steps
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:20]
