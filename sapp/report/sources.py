"""Where members are read from: results stores, files of scores, and run folders."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from sapp.core.csv_files import Line, lines_of, measured, read_text, whole
from sapp.core.decode import check_fits, decode, parse_json, shown
from sapp.core.errors import SappError
from sapp.data.normalised_scores import base_name, normalized_score
from sapp.experiments import text_store, timings
from sapp.experiments.store import TABLES, Store
from sapp.report.records import Experiment, Member, Played, dataset_order, told_apart, unique
from sapp.runs import metric_tables as tables
from sapp.runs.events import Event, EventKind
from sapp.runs.members import MemberId
from sapp.runs.phases import Phase
from sapp.runs.plan import check_format, stamps_of
from sapp.runs.problem import problem

SCORE_COLUMNS = ("method", "dataset", "seed", "step", "returns")


def read(sources: Sequence[str | Path]) -> list[Experiment]:
    """Experiments of stores and files of scores, then all run folders together as one more."""
    found: list[Experiment] = []
    folders: list[Path] = []
    for source in map(Path, sources):
        if source.is_dir() and text_store.is_text_store(source):
            found += from_text(source)
        elif source.is_dir():
            inside = [source] if (source / "config.json").is_file() else _run_folders(source)
            stores = sorted(source.glob("*.sqlite")) if not (source / "config.json").is_file() else []
            for store in stores:
                found += from_store(store)
            if not stores:
                if not inside:
                    raise SappError(f"{source}: neither a run folder nor a folder with runs or results")
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
        rows = {name: store.rows(name) for name in TABLES}
        measured_times = timings.read(store.timings_path)
    return _experiments(path, rows, measured_times, path.parent)


def from_text(folder: Path) -> list[Experiment]:
    """All experiments of a results store that was written as CSV files."""
    found = text_store.read(folder)
    rows = {name: [dict(zip(TABLES[name], row, strict=True)) for row in found.rows[name]] for name in TABLES}
    return _experiments(folder, rows, found.timings, folder)


def _experiments(
    path: Path, rows: Mapping[str, Sequence[Mapping[str, Any]]], times: Iterable[Line], folder: Path
) -> list[Experiment]:
    """The experiments of a store's tables; ``folder`` is where their runs' animations lie."""
    if missing := {cell["run"] for cell in rows["cells"]} - {row["run"] for row in rows["runs"]}:
        raise SappError(f"{path}: has no run {min(missing)!r}, which a cell names; restore it, or run it again")
    evaluations: dict[str, dict[int, list[tuple[int, float, float | None]]]] = {}
    for row in rows["evaluations"]:
        by_step = evaluations.setdefault(row["run"], {})
        by_step.setdefault(row["step"], []).append((row["episode"], row["return"], row["score"]))
    metrics: dict[str, dict[str, list[tuple[int, float]]]] = {}
    for row in rows["metrics"]:
        for name, value in json.loads(row["values"]).items():
            if value is not None:
                metrics.setdefault(row["run"], {}).setdefault(name, []).append((row["step"], value))
    events: dict[str, list[tuple[int, EventKind]]] = {}
    for row in rows["events"]:
        events.setdefault(row["run"], []).append((row["step"], EventKind(row["kind"])))
    runs = {row["run"]: row for row in rows["runs"]}
    found = []
    for head in rows["experiments"]:
        cells = [
            row for row in rows["cells"] if (row["experiment"], row["scale"]) == (head["experiment"], head["scale"])
        ]
        members, notes = unique(
            [
                _stored(cell, runs[key], evaluations.get(key, {}), metrics.get(key, {}), events.get(key, []))
                for cell in cells
                for key in (cell["run"],)
            ]
        )
        order = sorted({(cell["position"], cell["variant"]) for cell in cells})
        found.append(
            Experiment(
                head["experiment"], head["scale"], f"{head['title']} (scale: {head['scale']})", head["question"],
                head["focus"], tuple(dict.fromkeys(name for _, name in order)), dataset_order(members), tuple(members),
                path.name, tuple(notes), [dict(zip(timings.COLUMNS, line, strict=True)) for line in times],
                _videos([folder]),
            )
        )  # fmt: skip
    return found


def _stored(
    cell: Mapping[str, Any], run: Mapping[str, Any], evaluations: Mapping[int, list[tuple[int, float, float | None]]],
    metrics: Mapping[str, list[tuple[int, float]]], events: list[tuple[int, EventKind]],
) -> Member:  # fmt: skip
    scored = all(score is not None for episodes in evaluations.values() for _, _, score in episodes)
    played = {
        step: {number: float(ret if score is None or not scored else score) for number, ret, score in sorted(episodes)}
        for step, episodes in sorted(evaluations.items())
    }
    facts = {name: run[name] for name in ("fingerprint", "environment", "physics", "transitions", "episodes")}
    facts |= {name: json.loads(run[name]) for name in ("phases", "evaluation", "parameters", "versions")}
    return Member(
        cell["variant"], cell["dataset"], cell["seed"], cell["run"], "score" if scored else "return", played,
        run["physics"], metrics, events, json.loads(run["algorithm"]), facts,
    )  # fmt: skip


def from_runs(folders: Sequence[Path]) -> Experiment:
    """Run folders (config.json and evaluations.csv; metrics.csv and events.csv where there are any) as one table."""
    read_members: list[Member] = []
    for folder, name in zip(folders, _names(folders), strict=True):
        read_members += _members(folder, name)
    told, renamed = told_apart(read_members)
    members, notes = unique(told)
    variants = tuple(dict.fromkeys(member.variant for member in members))
    focus = next((name for name in ("SA-CQL", "sa-cql", *variants) if name in variants), "")
    names = ", ".join(folder.name for folder in folders)
    return Experiment(
        "runs", "", f"Runs: {names}",
        "How do the methods of these runs compare on the same data, seeds and start states?",
        focus, variants, dataset_order(members), tuple(members), names, (*renamed, *notes), videos=_videos(folders),
    )  # fmt: skip


def _names(folders: Sequence[Path]) -> list[str]:
    """The shortest ends of the folders' paths that differ."""
    parts = [folder.resolve().parts for folder in folders]
    size = 1
    while len({each[-size:] for each in parts}) < len(set(parts)):
        size += 1
    return ["/".join(each[-size:]) for each in parts]


def _members(folder: Path, label: str) -> list[Member]:
    file = folder / "config.json"
    try:
        config = parse_json(file.read_text(encoding="utf-8"))
        check_fits(config, dict[str, Any], "its content")
        check_format(file, config)
        for part in ("members", "problems", "phases"):
            check_fits(config[part], list[dict[str, Any]], part)
        phases = [decode(Phase, each, "a phase") for each in config["phases"]]
        known = [asdict(problem(each, f"dataset {number}")) for number, each in enumerate(config["problems"])]
        for each in config["members"]:
            for name, kind in {"name": str, "dataset": int, "seed": int, "algorithm": dict[str, Any]}.items():
                check_fits(each[name], kind, f"a member's {name!r}")
            if not each["name"].isprintable():
                raise SappError(f"a member's name {shown(each['name'])} holds control characters")
            if not 0 <= each["dataset"] < len(known):
                raise IndexError(f"dataset {each['dataset']}")
        check_fits(config.get("eval_seed"), int, "'eval_seed'")
        before = sum(phase.steps for phase in phases[:-1])
        problems = [known[m["dataset"]] for m in config["members"]]
        ids = [MemberId(m["name"], p["name"], m["seed"]) for m, p in zip(config["members"], problems, strict=True)]
        algorithms = [m["algorithm"] for m in config["members"]]
        facts = {"phases": config["phases"], "versions": stamps_of(config)}
    except SappError as error:
        raise SappError(str(error) if str(file) in str(error) else f"{file}: {error}; restore it") from None
    except (OSError, ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
        raise SappError(f"{file}: not a run's configuration ({type(error).__name__}: {error})") from None
    log = folder / "evaluations.csv"
    stamp = log.stat().st_mtime if log.is_file() else 0.0
    evaluations: dict[MemberId, dict[int, list[float]]] = {}
    metrics: dict[MemberId, dict[str, list[tuple[int, float]]]] = {}
    events: dict[MemberId, list[tuple[int, EventKind]]] = {}
    for row in _rows(log):
        step = int(row["step"]) - before
        if step > 0:
            evaluations.setdefault(MemberId.of(row), {})[step] = _returns(row, log)
    for row in _rows(folder / "metrics.csv"):
        own = metrics.setdefault(MemberId.of(row), {})
        for name, value in row.items():
            if value and "/" in name and measured(value) is not None:
                own.setdefault(name, []).append((int(row["step"]) - before, float(value)))
    for event in map(Event.of, _rows(folder / "events.csv")):
        events.setdefault(event.member, []).append((event.step - before, event.kind))
    found = []
    for each, own, algorithm in zip(ids, problems, algorithms, strict=True):
        task = base_name(own.get("environment") or "") or base_name(own["name"])
        own_facts = {
            key: own.get(key) for key in ("fingerprint", "environment", "physics", "transitions", "episodes")
        }
        played = {step: _played(task, returns) for step, returns in evaluations.get(each, {}).items()}
        unit = "score" if task else "return"
        starts = config.get("eval_seed"), own.get("physics")
        found.append(
            Member(each.algorithm, each.dataset, each.seed, f"{label}: {each}", unit, played, starts,
                   metrics.get(each, {}), events.get(each, []), algorithm, facts | own_facts, stamp)
        )  # fmt: skip
    return found


def _returns(row: Mapping[str, str], path: Path) -> list[float]:
    """The episodes of a row of evaluations.csv."""
    texts = row.get("returns", "").split(";")
    found = [value for text in texts if (value := measured(text)) is not None]
    if len(found) < len(texts):
        raise SappError(f"{path}, step {row['step']}: 'returns' must be numbers joined by ;; restore the file")
    return found


def from_scores(path: Path) -> Experiment:
    """A CSV file with one evaluation per line, whoever wrote it, as one experiment.

    ``returns`` are the episodes of an evaluation, joined by semicolons; they become normalised scores where the
    dataset's task has them. A column ``run`` separates what one method did in several runs.
    """
    head, *lines = lines_of(path, read_text(path)) or [()]
    if missing := [name for name in SCORE_COLUMNS if head.count(name) != 1 or not lines]:
        names = ", ".join(SCORE_COLUMNS)
        raise SappError(f"{path}: has no column {missing[0]!r}, or two; a file of scores has {names}")
    evaluations: dict[tuple[str, str, str, int], dict[int, list[float]]] = {}
    for number, line in enumerate(lines, 2):
        row = dict(zip(head, line, strict=True))
        seed, step = whole(row["seed"]), whole(row["step"])
        returns = [value for text in row["returns"].split(";") if (value := measured(text)) is not None]
        if seed is None or step is None or len(returns) <= row["returns"].count(";"):
            raise SappError(
                f"{path}, line {number}: give whole numbers as seed and step and finite ones joined by ; as returns"
            )
        played = evaluations.setdefault((row.get("run", ""), row["method"], row["dataset"], seed), {})
        if step in played:
            raise SappError(f"{path}, line {number}: step {step} of that member is there already; keep one of them")
        played[step] = returns
    members = _score_members(evaluations, path)
    methods = tuple(dict.fromkeys(member.variant for member in members))
    focus = next((name for name in ("SA-CQL", *methods) if name in methods), "")
    return Experiment(
        path.stem, "", f"Scores: {path.name}", "How do these methods compare on the same data, seeds and start states?",
        focus, methods, dataset_order(members), tuple(members), path.name,
    )  # fmt: skip


def _score_members(
    evaluations: Mapping[tuple[str, str, str, int], Mapping[int, list[float]]], path: Path
) -> list[Member]:
    runs: dict[tuple[str, str, int], set[str]] = {}
    for run, method, dataset, seed in evaluations:
        runs.setdefault((method, dataset, seed), set()).add(run)
    again = {method for (method, _, _), found in runs.items() if len(found) > 1}
    members = []
    for (run, method, dataset, seed), played in evaluations.items():
        task = base_name(dataset) or base_name(dataset.split("-")[0])
        scores = {step: _played(task, returns) for step, returns in sorted(played.items())}
        name = f"{method} ({run})" if method in again else method
        source = ", ".join(part for part in (path.name, run) if part)
        members.append(Member(name, dataset, seed, source, "score" if task else "return", scores, None, {}, [], {}, {}))
    return members


def _played(task: str | None, returns: Sequence[float]) -> Played:
    """Episodes by their number, as normalised scores where the task has them."""
    values = normalized_score(task, np.array(returns)) if task else returns
    return dict(enumerate(np.asarray(values, np.float64).tolist()))


def _videos(folders: Iterable[Path]) -> list[Path]:
    """Animated pictures in run folders, or in the runs of an experiment's folder."""
    patterns = ("videos/*.gif", "*/videos/*.gif", "*/joint/videos/*.gif")
    found = [file for folder in folders for pattern in patterns for file in sorted(folder.glob(pattern))]
    # a link may lead to any file of whoever makes the page
    return [file for file in found if not (file.is_symlink() or file.parent.is_symlink())]


def _rows(path: Path) -> list[dict[str, str]]:
    return tables.read(path) if path.is_file() else []
