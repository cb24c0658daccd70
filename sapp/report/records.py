"""What a report is made from: results stores, files of scores and run folders, read into one form."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sapp.core.errors import SappError
from sapp.data.normalised_scores import base_name, normalized_score
from sapp.experiments.store import Store
from sapp.runs import metric_tables as tables

Values = npt.NDArray[np.float64]
SCORE_COLUMNS = ("method", "dataset", "seed", "step", "returns")


@dataclass(frozen=True)
class Member:
    """One trained learner and everything recorded of it.

    Attributes:
        column: the method, as tables name it.
        dataset: by name.
        seed: of the learner.
        run: its key in the store, or folder and name.
        unit: "score" (0 random, 100 expert) or "return".
        evaluations: of each episode, by step of the last phase.
        metrics: (step, value) by name.
        events: (step, what happened).
        algorithm: hyper-parameters.
        facts: about the data, the protocol and the versions.
    """

    column: str
    dataset: str
    seed: int
    run: str
    unit: str
    evaluations: Mapping[int, Values]
    metrics: Mapping[str, Sequence[tuple[int, float]]]
    events: Sequence[tuple[int, str]]
    algorithm: Mapping[str, Any]
    facts: Mapping[str, Any]


@dataclass(frozen=True)
class Experiment:
    """Members that belong in one table."""

    name: str
    title: str
    question: str
    focus: str
    columns: tuple[str, ...]
    datasets: tuple[str, ...]
    members: tuple[Member, ...]
    source: str
    timings: Sequence[Mapping[str, str]] = field(default_factory=tuple)
    videos: Sequence[Path] = field(default_factory=tuple)

    def of(self, dataset: str, column: str) -> list[Member]:
        """Members of a cell, by seed."""
        return sorted(
            (each for each in self.members if (each.dataset, each.column) == (dataset, column)),
            key=lambda each: each.seed,
        )


def read(sources: Sequence[str | Path]) -> list[Experiment]:
    """Experiments of stores and files of scores, then all run folders together as one more."""
    found: list[Experiment] = []
    folders: list[Path] = []
    for source in map(Path, sources):
        if source.is_dir():
            inside = [source] if (source / "config.json").is_file() else _run_folders(source)
            stores = sorted(source.glob("*.sqlite")) if not (source / "config.json").is_file() else []
            for store in stores:
                found += from_store(store)
            if not stores:
                if not inside:
                    raise SappError(f"{source}: neither a run folder nor a folder with runs or a results store")
                folders += inside
        elif source.suffix == ".csv" and source.is_file():
            found.append(from_scores(source))
        elif source.is_file():
            found += from_store(source)
        else:
            raise SappError(f"{source}: no such file or folder; give a results store or run folders")
    if folders:
        found.append(from_runs(folders))
    if not any(experiment.members for experiment in found):
        raise SappError(f"{sources[0] if sources else 'report'}: no finished runs to report on")
    return [experiment for experiment in found if experiment.members]


def _run_folders(folder: Path) -> list[Path]:
    found = [*folder.glob("*/config.json"), *folder.glob("*/joint/config.json")]
    return sorted(file.parent for file in found if (file.parent / "evaluations.csv").is_file())


def from_store(path: Path) -> list[Experiment]:
    """All experiments of a store."""
    with Store(path) as store:
        rows = {name: store.rows(name) for name in ("experiments", "cells", "runs", "evaluations", "metrics", "events")}
        timings = _csv(store.timings_path)
    evaluations: dict[str, dict[int, list[tuple[int, float, float | None]]]] = {}
    for row in rows["evaluations"]:
        by_step = evaluations.setdefault(row["run"], {})
        by_step.setdefault(row["step"], []).append((row["episode"], row["return"], row["score"]))
    metrics: dict[str, dict[str, list[tuple[int, float]]]] = {}
    for row in rows["metrics"]:
        for name, value in json.loads(row["values"]).items():
            if value is not None:
                metrics.setdefault(row["run"], {}).setdefault(name, []).append((row["step"], value))
    events: dict[str, list[tuple[int, str]]] = {}
    for row in rows["events"]:
        events.setdefault(row["run"], []).append((row["step"], row["event"]))
    runs = {row["run"]: row for row in rows["runs"]}
    found = []
    for head in rows["experiments"]:
        cells = [
            row for row in rows["cells"] if (row["experiment"], row["scale"]) == (head["experiment"], head["scale"])
        ]
        members = []
        for cell in cells:
            key = cell["run"]
            members.append(
                _stored(cell, runs[key], evaluations.get(key, {}), metrics.get(key, {}), events.get(key, []))
            )
        order = sorted({(cell["position"], cell["variant"]) for cell in cells})
        columns = tuple(dict.fromkeys(name for _, name in order))
        found.append(
            Experiment(
                head["experiment"],
                f"{head['title']} (scale: {head['scale']})",
                head["question"],
                head["focus"],
                columns,
                _datasets(members),
                tuple(members),
                path.name,
                timings,
                _videos([path.parent]),
            )
        )
    return found


def _stored(
    cell: Mapping[str, Any], run: Mapping[str, Any], evaluations: Mapping[int, list[tuple[int, float, float | None]]],
    metrics: Mapping[str, list[tuple[int, float]]], events: list[tuple[int, str]],
) -> Member:  # fmt: skip
    scored = all(score is not None for episodes in evaluations.values() for _, _, score in episodes)
    played = {
        step: np.array([score if scored else ret for _, ret, score in sorted(episodes)], np.float64)
        for step, episodes in sorted(evaluations.items())
    }
    facts = {name: run[name] for name in ("fingerprint", "environment", "physics", "transitions", "episodes")}
    facts |= {name: json.loads(run[name]) for name in ("phases", "evaluation", "parameters", "versions")}
    return Member(
        cell["variant"], cell["dataset"], cell["seed"], cell["run"], "score" if scored else "return", played,
        metrics, events, json.loads(run["algorithm"]), facts,
    )  # fmt: skip


def from_runs(folders: Sequence[Path]) -> Experiment:
    """Run folders (config.json and evaluations.csv; metrics.csv and events.csv where there are any) as one table."""
    members: list[Member] = []
    for folder in folders:
        members += _members(folder)
    columns = tuple(dict.fromkeys(member.column for member in members))
    focus = next((name for name in ("SA-CQL", "sa-cql", *columns) if name in columns), "")
    names = ", ".join(folder.name for folder in folders)
    return Experiment(
        "runs", f"Runs: {names}", "How do the methods of these runs compare on the same data, seeds and start states?",
        focus, columns, _datasets(members), tuple(members), names, videos=_videos(folders),
    )  # fmt: skip


def _members(folder: Path) -> list[Member]:
    file = folder / "config.json"
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
        problems = {m["name"]: config["problems"][m["dataset"]] for m in config["members"]}
        before = sum(phase["steps"] for phase in config["phases"][:-1])
        described = {m["name"]: (m["algorithm"], m["seed"]) for m in config["members"]}
        facts = {"phases": config["phases"], "versions": config.get("versions", {})}
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        raise SappError(f"{file}: not a run's configuration ({type(error).__name__}: {error})") from None
    evaluations: dict[str, dict[int, Values]] = {}
    metrics: dict[str, dict[str, list[tuple[int, float]]]] = {}
    events: dict[str, list[tuple[int, str]]] = {}
    for row in _rows(folder / "evaluations.csv"):
        step = int(row["step"]) - before
        if step > 0:
            returns = np.array([float(value) for value in row["returns"].split(";")])
            evaluations.setdefault(row["member"], {})[step] = returns
    for row in _rows(folder / "metrics.csv"):
        own = metrics.setdefault(row["member"], {})
        for name, value in row.items():
            if value and "/" in name and np.isfinite(float(value)):
                own.setdefault(name, []).append((int(row["step"]) - before, float(value)))
    for row in _rows(folder / "events.csv"):
        events.setdefault(row["member"], []).append((int(row["step"]) - before, row["event"]))
    found = []
    for name, (algorithm, seed) in described.items():
        problem = problems[name]
        task = base_name(problem.get("environment") or "") or base_name(problem["name"])
        own_facts = {
            key: problem.get(key) for key in ("fingerprint", "environment", "physics", "transitions", "episodes")
        }
        played = {
            step: np.asarray(normalized_score(task, returns) if task else returns, np.float64)
            for step, returns in evaluations.get(name, {}).items()
        }
        column = name.rsplit("/", 2)[0]
        unit = "score" if task else "return"
        found.append(
            Member(column, problem["name"], seed, f"{folder.name}: {name}", unit, played, metrics.get(name, {}),
                   events.get(name, []), algorithm, facts | own_facts)
        )  # fmt: skip
    return found


def from_scores(path: Path) -> Experiment:
    """A CSV file with one evaluation per line, whoever wrote it, as one experiment.

    ``returns`` are the episodes of an evaluation, joined by semicolons; they become normalised scores where the
    dataset's task has them. A column ``run`` tells apart what one method did in several runs.
    """
    rows = _csv(path)
    if missing := [name for name in SCORE_COLUMNS if not rows or name not in rows[0]]:
        raise SappError(f"{path}: has no column {missing[0]!r}; a file of scores has {', '.join(SCORE_COLUMNS)}")
    evaluations: dict[tuple[str, str, str, int], dict[int, Values]] = {}
    for number, row in enumerate(rows, 2):
        try:
            key = row.get("run") or "", row["method"], row["dataset"], int(row["seed"])
            returns = np.array([float(value) for value in row["returns"].split(";")])
            evaluations.setdefault(key, {})[int(row["step"])] = returns
        except (TypeError, ValueError, AttributeError):
            raise SappError(
                f"{path}, line {number}: give whole numbers as seed and step and numbers joined by ; as returns"
            ) from None
    members = _score_members(evaluations, path)
    methods = tuple(dict.fromkeys(member.column for member in members))
    focus = next((name for name in ("SA-CQL", *methods) if name in methods), "")
    return Experiment(
        path.stem, f"Scores: {path.name}", "How do these methods compare on the same data, seeds and start states?",
        focus, methods, _datasets(members), tuple(members), path.name,
    )  # fmt: skip


def _score_members(evaluations: Mapping[tuple[str, str, str, int], Mapping[int, Values]], path: Path) -> list[Member]:
    runs: dict[tuple[str, str, int], set[str]] = {}
    for run, method, dataset, seed in evaluations:
        runs.setdefault((method, dataset, seed), set()).add(run)
    again = {method for (method, _, _), found in runs.items() if len(found) > 1}
    members = []
    for (run, method, dataset, seed), played in evaluations.items():
        task = base_name(dataset) or base_name(dataset.split("-")[0])
        scores = {
            step: np.asarray(normalized_score(task, returns) if task else returns, np.float64)
            for step, returns in sorted(played.items())
        }
        name = f"{method} ({run})" if method in again else method
        source = ", ".join(part for part in (path.name, run) if part)
        members.append(Member(name, dataset, seed, source, "score" if task else "return", scores, {}, [], {}, {}))
    return members


def _videos(folders: Iterable[Path]) -> list[Path]:
    """Animated pictures in run folders, or in the runs of an experiment's folder."""
    patterns = ("videos/*.gif", "*/videos/*.gif", "*/joint/videos/*.gif")
    return [file for folder in folders for pattern in patterns for file in sorted(folder.glob(pattern))]


def _rows(path: Path) -> list[dict[str, str]]:
    return tables.read(path) if path.is_file() else []


def _csv(path: Path) -> list[dict[str, str]]:
    if not path.is_file():
        return []
    with open(path, encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


def _datasets(members: Iterable[Member]) -> tuple[str, ...]:
    """Names in the order of the paper: by environment, then by quality; other names in the order they come."""
    from sapp.algorithms.presets import task
    from sapp.experiments.paper import QUALITIES

    names = list(dict.fromkeys(member.dataset for member in members))

    def place(name: str) -> tuple[str, int, int]:
        environment, quality = task(name) or (name.split("-")[0], "")
        return environment, QUALITIES.index(quality) if quality in QUALITIES else len(QUALITIES), names.index(name)

    return tuple(sorted(names, key=place))
