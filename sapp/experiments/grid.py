"""An experiment as a declared grid: datasets × columns × seeds at a scale, in families that train as populations."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from sapp.algorithms import CQL, Algorithm
from sapp.algorithms import config as configuration
from sapp.algorithms.presets import preset, weight_range
from sapp.core.errors import SappError, did_you_mean
from sapp.data import Dataset
from sapp.data.benchmark_names import ENVIRONMENTS
from sapp.data.frames import FrameDataset
from sapp.data.load import load, load_vectors
from sapp.experiments.paper import TABLE_2
from sapp.runs.phases import Phase, plain_protocol, prepared, sa_protocol
from sapp.weights import DualDICE, LogMinMax, control

A = TypeVar("A", bound=Algorithm)
Maker = Callable[[str], Algorithm]
"""An algorithm by the name of the dataset it is for."""

CONTROLS = {"CQL": "uniform", "SA-CQL": "real", "shuffled": "shuffled", "matched": "matched", "random": "random"}
"""CQL, SA-CQL and the three controls without which SA-CQL's score says nothing about states."""
ALL_QUALITIES = ("medium", "medium-replay", "full-replay", "expert", "medium-expert", "random")
SMOKE_DATA = ("point-60", "point-120")
"""Logs of the point task, 60 and 120 episodes: made in a moment, so a whole experiment can be tried anywhere."""


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
        eval_episodes: a member and evaluation.
        log_every: steps averaged in a row of metrics.
        changes: hyper-parameters, by dotted name, of every algorithm that has them.
        fallback: use weights of 1 while the ratio estimator is sick; the paper does not.
        note: what sets it apart from the scale of its name.
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
    """Columns that train side by side.

    Attributes:
        name: of its run folders.
        columns: algorithms by the name of their column.
        state_aware: the paper's three phases; all columns are one learner until weights count, so the first two
            phases are trained once a dataset and seed and then forked.
        lead_in: for plain columns beside state-aware ones: as many updates before the last phase as those have.
    """

    name: str
    columns: Mapping[str, Maker]
    state_aware: bool = False
    lead_in: bool = False

    def phases(self, scale: Scale, names: Sequence[str]) -> tuple[Phase, ...]:
        """The protocol of the family on some datasets."""
        if self.state_aware:
            return sa_protocol(scale.steps, scale.pretrain, scale.ratio)
        own = max(make(name).preparation for make in self.columns.values() for name in names)
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
        families: the columns, in the order of the table.
        focus: the column that the others are compared with.
    """

    name: str
    title: str
    question: str
    scale: Scale
    datasets: tuple[str, ...]
    families: tuple[Family, ...]
    focus: str = "SA-CQL"

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns."""
        return tuple(name for family in self.families for name in family.columns)

    def jobs(self) -> Iterator[tuple[tuple[str, ...], Family]]:
        """What is trained together: datasets of one environment with one family; each environment's in a row."""
        for environment in dict.fromkeys(name.split("-")[0] for name in self.datasets):
            names = tuple(name for name in self.datasets if name.split("-")[0] == environment)
            for family in self.families:
                yield names, family

    def only(self, datasets: Sequence[str] | None, columns: Sequence[str] | None) -> Grid:
        """The part of the grid with some datasets and columns."""
        for what, chosen, known in (("dataset", datasets, self.datasets), ("column", columns, self.columns)):
            for name in chosen or ():
                if name not in known:
                    hint = did_you_mean(name, known)
                    raise SappError(f"{self.name}: no {what} {name!r}{hint}; it has {', '.join(known)}")
        families = tuple(
            replace(family, columns={name: family.columns[name] for name in kept})
            for family in self.families
            if (kept := [name for name in family.columns if not columns or name in columns])
        )
        kept_data = tuple(name for name in self.datasets if not datasets or name in datasets)
        return replace(self, datasets=kept_data, families=families)


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


def changed(algorithm: A, changes: Mapping[str, Any]) -> A:
    """An algorithm with those hyper-parameters changed that it has."""
    known = {dotted for dotted, _ in configuration.options(algorithm)}
    return configuration.override(algorithm, {name: value for name, value in changes.items() if name in known})


def state_aware(scale: Scale, kind: str, b0: float | None = None) -> Maker:
    """CQL with the paper's state weights for a dataset, or one of their controls; perhaps with another b0."""

    def on(dataset: str) -> Algorithm:
        low, span = weight_range(dataset)
        ratio = DualDICE(f=LogMinMax(low if b0 is None else b0, span), fallback=scale.fallback)
        return changed(CQL(weights=control(ratio, kind)), scale.changes)

    return on


def named(scale: Scale, name: str, **own: Any) -> Maker:
    """A preset by the dataset's name, with numbers of its own."""
    return lambda dataset: changed(changed(preset(name, dataset), scale.changes), own)


def cql_family(scale: Scale) -> Family:
    """CQL, SA-CQL and the controls."""
    return Family("cql", {name: state_aware(scale, kind) for name, kind in CONTROLS.items()}, state_aware=True)


def datasets_of(scale: Scale, environments: Sequence[str], qualities: Sequence[str]) -> tuple[str, ...]:
    """The paper's datasets at a scale: small takes those that match D4RL's by construction (medium, random)."""
    if scale.name == "smoke":
        return SMOKE_DATA
    chosen = [quality for quality in qualities if scale.name == "paper" or quality in ("medium", "random")]
    return tuple(f"{environment}-{quality}" for environment in environments for quality in chosen or qualities)


def all_datasets(scale: Scale) -> tuple[str, ...]:
    """All eighteen, or what a smaller scale has of them."""
    return datasets_of(scale, ENVIRONMENTS, ALL_QUALITIES)


def load_dataset(name: str, folder: Path | None = None) -> Dataset | FrameDataset:
    """A dataset of a grid: from a file in the folder if it has one, else by name as ``sapp.load`` finds or makes it."""
    if name.startswith("catch-"):
        from sapp.envs.catch import behaviour_logs

        return behaviour_logs(int(name.removeprefix("catch-")), name=name)
    if name in TABLE_2:
        return _game_logs(name, folder)
    if name.startswith("point-"):
        from sapp.envs.point import behaviour_dataset

        return load_vectors(behaviour_dataset(int(name.removeprefix("point-"))), name=name)
    if folder is not None:
        stems = [name, f"{name}-v2", name.replace("-", "_", 1), f"{name.replace('-', '_')}-v2"]
        for file in (folder / f"{stem}{ending}" for stem in stems for ending in (".npz", ".hdf5", ".h5", ".parquet")):
            if file.is_file():
                return load_vectors(file, name=name)
        raise SappError(f"{folder}: no file for {name} (such as {name}.npz or {name}-v2.hdf5)")
    return load_vectors(name)


def _game_logs(name: str, folder: Path | None) -> FrameDataset:
    """The log of a game: FOLDER/pong or FOLDER/Pong, itself or what an online DQN left in it."""
    for place in () if folder is None else (folder / name, folder / name.capitalize()):
        for inner in (place / "replay_logs", place):
            if inner.is_dir():
                found = load(inner)
                if not isinstance(found, FrameDataset):
                    raise SappError(f"{inner}: holds no frames")
                return replace(found, name=name)
    make = f"sapp collect ALE/{name.capitalize()}-v5 --algorithm dqn --out LOGS/{name}"
    where = "no folder of logs was given" if folder is None else f"{folder}: no logs of {name}"
    raise SappError(f"{where}; make them with: {make}, then add --data LOGS")


def run_key(
    algorithm: Algorithm,
    dataset: Dataset | FrameDataset,
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
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:20]
